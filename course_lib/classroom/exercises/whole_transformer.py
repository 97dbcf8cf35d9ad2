"""The exercise on the whole model: encoder, decoder and one table, assembled from parts."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.whole_transformer_bank import MISTAKES
from course_lib.classroom.judge_module import call_module
from course_lib.classroom.judge_parts import Probe, Seen
from course_lib.classroom.properties import number
from course_lib.transformer.encoder_decoder import Config, Transformer

V = 11
_FULL = "two sentences, padded on both sides"
_OTHER_TOKEN = "the same with another token 2 in the target"
_OTHER_PADDING = "the same with another token in the source's padding"
_OTHER_SOURCE = "the same with another first word in the source"
_LENGTHS = torch.tensor([7, 4]), torch.tensor([3, 5])


def _config(n_layers=2, d_model=6, d_ff=7, n_heads=2, n_vocab=V) -> tuple[Config]:
    sizes = {"n_layers": n_layers, "d_model": d_model, "d_ff": d_ff, "n_heads": n_heads}
    return (Config(n_vocab=n_vocab, dropout=0.0, **sizes),)


def _ids(*shape, seed):
    return torch.randint(3, V, shape, generator=torch.Generator().manual_seed(seed))


def _in(masks="both", n_source=7, n_target=5, change=None):
    """Source and target ids and their masks; ``change`` is (0 or 1, row, place) of one new id."""

    def make():
        ids = [_ids(2, n_source, seed=1), _ids(2, n_target, seed=2)]
        real = [
            torch.arange(x.size(1)) < lengths.clamp_max(x.size(1))[:, None]
            for x, lengths in zip(ids, _LENGTHS, strict=True)
        ]
        if change is not None:
            which, row, place = change
            ids[which][row, place] = 3 + (ids[which][row, place] - 2) % (V - 3)
        kept = {"both": real, "none": [None, None], "source": [real[0], None]}[masks]
        return (*ids, *kept)

    return make


def _dead():
    """A source that is all padding, in one of two sentences."""
    ids = _ids(2, 3, seed=3), _ids(2, 5, seed=4)
    return (*ids, torch.tensor([[True] * 3, [False] * 3]), None)


def _two(seen: list[Seen], other: str) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The learner's logits on the full probe and on its variation."""
    by_name = {one.probe.name: one for one in seen if one.comparable("logits")}
    if _FULL not in by_name or other not in by_name:
        return None
    return by_name[_FULL].yours("logits"), by_name[other].yours("logits")


def _future_leaks(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_TOKEN)
    if two is None:
        return None
    off = (two[0] - two[1])[1, :2].abs().max().item()
    if not off > 1e-3:
        return None
    return (
        "A change of token 2 of the target moves your logits at the positions before it by up to "
        f"{number(off)}: the future leaks into the past."
    )


def _padding_is_read(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_PADDING)
    if two is None:
        return None
    off = (two[0] - two[1]).abs().max().item()
    if not off > 1e-3:
        return None
    return (
        "Another token in the padding of the source moves your logits by up to "
        f"{number(off)}, where nothing should move."
    )


def _source_is_not_read(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_SOURCE)
    if two is None or (two[0] - two[1]).abs().max().item() > 1e-6:
        return None
    return "With another source your logits stay as they were: the source is not read."


EXERCISE = Exercise(
    name="Transformer",
    signature="Transformer(config)",
    arguments=("source", "target", "source_mask", "target_mask"),
    results=("logits",),
    reference=Transformer,
    call=call_module(Transformer),
    probes=(
        Probe(name=_FULL, make=_in(), build=_config(), grads=True),
        Probe(name=_OTHER_TOKEN, make=_in(change=(1, 1, 2)), build=_config()),
        Probe(name=_OTHER_PADDING, make=_in(change=(0, 1, 5)), build=_config()),
        Probe(name=_OTHER_SOURCE, make=_in(change=(0, 1, 0)), build=_config()),
        Probe(
            name="no masks, three heads",
            make=_in("none", n_source=3),
            build=_config(n_heads=3, d_ff=5),
            grads=True,
        ),
        Probe(
            name="a mask for the source alone, three layers",
            make=_in("source", n_source=5),
            build=_config(n_layers=3, d_model=10, n_heads=5),
        ),
        Probe(name="one token each", make=_in("none", 1, 1), build=_config(), core=False),
        Probe(name="a source that is all padding", make=_dead, build=_config(), core=False),
    ),
    relations=(_future_leaks, _padding_is_read, _source_is_not_read),
    mistakes=MISTAKES,
)
