"""The exercise on the loss: cross-entropy with label smoothing, over the real tokens."""

import math

import torch

from course_lib.classroom.compare import is_right
from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.label_smoothing_bank import MISTAKES, pairs, saw_loss
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_parts import Probe, Seen
from course_lib.training.losses import label_smoothing_loss


def _loss_probe(name, target, classes, smoothing, pad_id, *, scale=2.0, seed=0, **more) -> Probe:
    ids = torch.tensor(target)

    def make():
        return numbers(*ids.shape, classes, seed=seed) * scale, ids, smoothing, pad_id

    return Probe(name=name, make=make, **more)


def _ran(seen_all: list[Seen]) -> list[Seen]:
    return [one for one in seen_all if one.outcome.error is None and one.comparable("loss")]


def _smoothing_alone(seen_all: list[Seen]) -> str | None:
    """Whether the function goes wrong with smoothing and is right without."""
    ran = [one for one in _ran(seen_all) if one.probe.core]
    without = [is_right(one) for one in ran if not one.args["smoothing"]]
    smooth = [is_right(one) for one in ran if one.args["smoothing"]]
    if without and all(without) and smooth and not any(smooth):
        return "It is right where smoothing is 0 and wrong where it is not."
    return None


def _padding_alone(seen_all: list[Seen]) -> str | None:
    """Whether the function goes wrong with padding and is right without."""
    ran = [one for one in _ran(seen_all) if one.probe.core]
    padded = [(one.args["target"] == one.args["pad_id"]).any().item() for one in ran]
    full = [is_right(one) for one, has in zip(ran, padded, strict=True) if not has]
    short = [is_right(one) for one, has in zip(ran, padded, strict=True) if has]
    if full and all(full) and short and not any(short):
        return "It is right where there is no padding and wrong where there is some."
    return None


def _lasting_ratio(seen_all: list[Seen]) -> str | None:
    """One factor throughout."""
    ran = [one for one in _ran(seen_all) if one.probe.core]
    ratios = [one.yours("loss").item() / one.right("loss").item() for one in ran]
    if len(ratios) < 3 or not all(map(math.isfinite, ratios)) or abs(ratios[0] - 1) < 1e-2:
        return None
    if max(ratios) - min(ratios) > 1e-3 * abs(ratios[0]):
        return None
    return f"On ordinary inputs your loss is always {ratios[0]:.4g} times the right one."


EXERCISE = Exercise(
    name="label_smoothing_loss",
    signature="label_smoothing_loss(logits, target, smoothing, pad_id)",
    arguments=("logits", "target", "smoothing", "pad_id"),
    results=("loss",),
    reference=label_smoothing_loss,
    probes=(
        _loss_probe(
            "two sentences of five and two words",
            [[3, 6, 1, 4, 2], [5, 4, 0, 0, 0]], 7, 0.1, 0, grads=True,
        ),
        _loss_probe(
            "three sentences, padded with class 3",
            [[8, 1, 3, 3], [2, 10, 0, 3], [7, 3, 3, 3]], 11, 0.3, 3, seed=1, grads=True,
        ),
        _loss_probe(
            "no smoothing", [[3, 1, 2], [4, 2, 0]], 5, 0.0, 0, seed=2, grads=True,
        ),
        _loss_probe(
            "no padding", [[5, 1, 3, 9, 2], [4, 4, 12, 6, 1]], 13, 0.2, 0, seed=3,
        ),
        _loss_probe("nothing but padding", [[4, 4, 4], [4, 4, 4]], 5, 0.1, 4, seed=4,
                    core=False, grads=True),
        _loss_probe("one sentence that is all padding", [[0, 0, 0], [2, 3, 0]], 5, 0.1, 0,
                    seed=5, core=False, grads=True),
        _loss_probe("logits in the hundreds", [[3, 1, 2], [4, 2, 0]], 5, 0.1, 0, seed=6,
                    scale=400.0, core=False, grads=True),
        _loss_probe("one word", [[2]], 3, 0.1, 0, seed=8, core=False),
    ),
    mistakes=MISTAKES,
    properties=(saw_loss,),
    relations=(_smoothing_alone, _padding_alone, _lasting_ratio),
    pairs=pairs,
)  # fmt: skip
