"""The exercise on a whole decoder layer, assembled from parts that are given."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.decoder_layer_bank import MISTAKES
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_module import call_module
from course_lib.classroom.judge_parts import Probe, Seen
from course_lib.classroom.properties import number
from course_lib.transformer.attention import causal_mask
from course_lib.transformer.encoder_decoder import DecoderLayer

MOVED_TOKEN, HIDDEN_MEMORY = 3, 5
_FULL = "a causal mask and a padded memory"
_OTHER_TOKEN = f"the same with another token {MOVED_TOKEN} in x"
_OTHER_HIDDEN = f"the same with another hidden token {HIDDEN_MEMORY} in the memory"
_OTHER_MEMORY = "the same with another memory"


def _in(kind, n_memory, d_model, n_tokens=5):
    """Two sentences of tokens beside a memory, with the masks of a kind."""

    def make():
        x = numbers(2, n_tokens, d_model, seed=1) + 0.3
        memory = numbers(2, n_memory, d_model, seed=2) - 0.2
        causal = causal_mask(n_tokens)
        real = torch.arange(n_memory) < torch.tensor([[n_memory], [n_memory - 2]])
        nothing = torch.tensor([[True], [False]]).expand(2, n_memory)
        target = torch.arange(n_tokens) < torch.tensor([[n_tokens - 2], [n_tokens]])
        self_mask = {
            "none": None,
            "memory": None,
            "dead": causal,
            "causal": causal,
            "both": causal,
            "padded": causal & target[:, None, None],
        }[kind]
        memory_mask = {
            "none": None,
            "memory": real[:, None, None],
            "dead": nothing[:, None, None],
            "causal": None,
            "both": real[:, None, None],
            "padded": real[:, None, None],
        }[kind]
        return x, memory, self_mask, memory_mask

    return make


def _changed(place, where):
    """The arguments of the full probe with one of the tensors changed at ``where``."""

    def make():
        args = list(_in("both", 7, 6)())
        args[place] = args[place].clone()
        args[place][where] += 3.0 * torch.tensor([1.0, -1, 0.5, 0, -0.5, 2.0])
        return tuple(args)

    return make


def _two(seen: list[Seen], other: str) -> tuple[torch.Tensor, torch.Tensor] | None:
    """What the learner's layer gave on the full probe and on its variation."""
    by_name = {one.probe.name: one for one in seen if one.comparable("x")}
    if _FULL not in by_name or other not in by_name:
        return None
    return by_name[_FULL].yours("x"), by_name[other].yours("x")


def _future_leaks(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_TOKEN)
    if two is None:
        return None
    off = (two[0] - two[1])[:, :MOVED_TOKEN].abs().amax().item()
    if not off > 1e-3:
        return None
    return (
        f"Under a causal mask, a change of token {MOVED_TOKEN} of x moves your output at the "
        f"tokens before it by up to {number(off)}: the future leaks into the past."
    )


def _hidden_is_read(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_HIDDEN)
    if two is None:
        return None
    off = (two[0] - two[1]).abs().amax().item()
    if not off > 1e-3:
        return None
    return (
        f"Token {HIDDEN_MEMORY} of the second memory is hidden by the mask. A change there moves "
        f"your output by up to {number(off)}, where nothing should move."
    )


def _memory_is_not_read(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_MEMORY)
    if two is None or (two[0] - two[1]).abs().amax().item() > 1e-6:
        return None
    return "With another memory your output stays as it was: the memory is not read."


def _past_is_not_read(seen: list[Seen]) -> str | None:
    two = _two(seen, _OTHER_TOKEN)
    if two is None:
        return None
    after = (two[0] - two[1])[:, MOVED_TOKEN + 1 :].abs().amax().item()
    if not after <= 1e-6:
        return None
    return (
        f"A change of token {MOVED_TOKEN} of x moves nothing at token {MOVED_TOKEN + 1} in your "
        "output: tokens do not read the past."
    )


EXERCISE = Exercise(
    name="DecoderLayer",
    signature="DecoderLayer(d_model, n_heads, d_ff)",
    arguments=("x", "memory", "self_mask", "memory_mask"),
    results=("x",),
    reference=DecoderLayer,
    call=call_module(DecoderLayer),
    probes=(
        Probe(name="as many tokens as memory, padded", make=_in("padded", 5, 6), build=(6, 3, 11)),
        Probe(name=_FULL, make=_in("both", 7, 6), build=(6, 2, 7), grads=True),
        Probe(name=_OTHER_TOKEN, make=_changed(0, (slice(None), MOVED_TOKEN)), build=(6, 2, 7)),
        Probe(name=_OTHER_HIDDEN, make=_changed(1, (1, HIDDEN_MEMORY)), build=(6, 2, 7)),
        Probe(name=_OTHER_MEMORY, make=_changed(1, (slice(None), 2)), build=(6, 2, 7)),
        Probe(
            name="no masks, a short memory", make=_in("none", 3, 10), build=(10, 5, 3), grads=True
        ),
        Probe(name="no masks, as many tokens as memory", make=_in("none", 5, 6), build=(6, 2, 7)),
        Probe(name="a causal mask alone", make=_in("causal", 5, 6), build=(6, 3, 2)),
        Probe(name="a mask for the memory alone", make=_in("memory", 5, 6), build=(6, 1, 5)),
        Probe(name="one token", make=_in("both", 5, 3, n_tokens=1), build=(3, 1, 2), core=False),
        Probe(
            name="a memory that is all hidden", make=_in("dead", 5, 6), build=(6, 2, 7), core=False
        ),
    ),
    relations=(_future_leaks, _hidden_is_read, _memory_is_not_read, _past_is_not_read),
    mistakes=MISTAKES,
)
