"""Mistakes of attention that show in the weights, however the rest of the function was written.

Each function is told all that was seen and returns a true sentence, or None.
"""

import torch

from course_lib.classroom.compare import is_right
from course_lib.classroom.exercises.attention_evidence import (
    first,
    mask_of,
    not_the_mix,
    slack,
    weights_of,
)
from course_lib.classroom.judge_parts import Seen
from course_lib.classroom.properties import entry, number, where


def _ordinary(seen_all: list[Seen]) -> list[Seen]:
    """Ordinary inputs with finite weights of the right shape, which are those that made z."""
    return [
        one
        for one in seen_all
        if one.probe.core
        and weights_of(one) is not None
        and one.comparable("z")
        and not_the_mix(one) is None
    ]


def _right_on_ordinary(seen_all: list[Seen]) -> bool:
    return all(is_right(one) for one in seen_all if one.probe.core)


def _sum_to_one(sums: torch.Tensor, seen: Seen) -> bool:
    """All of them, but for those of keys or queries that are hidden throughout."""
    none = sums.abs() < slack(seen)
    return bool((((sums - 1).abs() < slack(seen)) | none).all() and not none.all())


def sums_over(axis: int, what: str):
    """Weights sum to one along ``axis`` wherever there is such an axis, and rows do not."""

    def evident(seen_all: list[Seen]) -> str | None:
        told = []
        for one in _ordinary(seen_all):
            weights = weights_of(one)
            place = axis if axis >= 0 else weights.dim() + axis
            if not 0 <= place < weights.dim() - 1:
                continue
            if not _sum_to_one(weights.sum(place), one):
                return None
            if weights.size(place) > 1 and not _sum_to_one(weights.sum(-1), one):
                row = first((weights.sum(-1) - 1).abs() > slack(one))
                told.append(
                    f"{where(one)}, your weights sum to 1 over the {what} (axis {axis}), while "
                    f"row {entry('weights', row)} sums to {number(weights.sum(-1)[row].item())}."
                )
        return told[0] if len(told) > 1 else None

    return evident


def mask_transposed(seen_all: list[Seen]) -> str | None:
    """On square masks, nothing is seen but where the mask with its axes swapped is True."""
    told = []
    for one in _ordinary(seen_all):
        mask, weights = mask_of(one), weights_of(one)
        if mask is None or mask.size(-1) != mask.size(-2) or torch.equal(mask, mask.mT):
            continue
        alive = mask.mT.any(-1, keepdim=True)
        if not torch.equal((weights > 1e-9) & alive, mask.mT & alive):
            return None
        place = first(mask.mT & ~mask & alive)
        told.append(
            f"{where(one)}, {entry('weights', place)} is {number(weights[place].item())}, where "
            f"the mask is False, and {entry('mask', (*place[:-2], place[-1], place[-2]))} is True."
        )
    return told[0] if len(told) > 1 else None


def _scores(seen: Seen) -> torch.Tensor:
    q, k = seen.args["q"].double(), seen.args["k"].double()
    return q @ k.mT / q.size(-1) ** 0.5


def _read_back(seen: Seen) -> torch.Tensor | None:
    """The scores of hidden keys that would give the learner's weights; None where none would.

    Where weights are a softmax, two of a row have a ratio of e to the difference of their scores.
    """
    weights, mask, scores = weights_of(seen), mask_of(seen), _scores(seen)
    if mask is None or mask.all() or not (weights > 0).all() or not mask.any(-1).all():
        return None
    offset = weights.log() - scores  # one number in each row, over the keys that may be seen
    mean = (offset * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
    if ((offset - mean).abs() * mask).max() > 1e-2:
        return None
    return (weights.log() - mean)[~mask]


def fill_read_back(seen_all: list[Seen]) -> str | None:
    """Hidden scores that are all one number, or all too low by one number."""
    found = []
    for one in _ordinary(seen_all):
        if one.right("weights").dtype != torch.float32 or (filled := _read_back(one)) is None:
            continue
        moved = filled - _scores(one).expand(mask_of(one).shape)[~mask_of(one)]
        found.append((one, filled, moved))
    if len(found) < 2:
        return None
    for place, said in (
        (1, "the scores of hidden keys are all"),
        (2, "hidden scores are moved by"),
    ):
        numbers = torch.cat([one[place] for one in found])
        value = numbers.mean().item()
        if value < -1e-3 and (numbers - value).abs().max() < 0.02 * max(1.0, abs(value)):
            seen, mask = found[0][0], mask_of(found[0][0])
            odd = first(~mask)
            return (
                f"{where(seen)}, {entry('weights', odd)} is "
                f"{number(weights_of(seen)[odd].item())}, yet the mask is False there. Read back "
                f"from your weights, {said} {number(value)}."
            )
    return None


def low_scores_leak(seen_all: list[Seen]) -> str | None:
    """Hidden keys get weight on very low scores, and on no ordinary input."""
    if not _right_on_ordinary(seen_all):
        return None
    for one in seen_all:
        weights, mask = weights_of(one), mask_of(one)
        if weights is None or mask is None or not mask.any(-1).all() or mask.all():
            continue
        place = first((weights > slack(one)) & ~mask)
        if place is not None:
            lowest = _scores(one).masked_fill(~mask, torch.inf)[place[:-1]].min()
            return (
                f"{where(one)}, {entry('weights', place)} is {number(weights[place].item())}, yet "
                "the mask is False there. The keys that this query may look at have scores down "
                f"to {number(lowest.item())}."
            )
    return None


def fill_too_high(seen_all: list[Seen]) -> str | None:
    return fill_read_back(seen_all) or low_scores_leak(seen_all)


def half_fails(message: str):
    """Right on ordinary inputs; in float16 torch raises an error that says ``message``."""

    def evident(seen_all: list[Seen]) -> str | None:
        if not _right_on_ordinary(seen_all):
            return None
        for one in seen_all:
            error, dtype = one.outcome.error, one.args["q"].dtype
            if error is not None and dtype == torch.float16 and message in error.message:
                return f"{where(one)}, all inputs are {dtype}; torch says: {error.message}."
        return None

    return evident


def adds_up_on_dead_rows(seen_all: list[Seen]) -> str | None:
    """Right but where a query may look at nothing: its weights there sum to one."""
    if not _right_on_ordinary(seen_all):
        return None
    for one in seen_all:
        weights, mask = weights_of(one), mask_of(one)
        if weights is None or mask is None or mask.any(-1).all():
            continue
        dead = ~mask.any(-1)
        if not _sum_to_one(weights.sum(-1)[dead], one):
            return None
        place = first(dead)
        shown = ", ".join(number(x) for x in weights[place][:4].tolist())
        return (
            f"{where(one)}, query {list(place)} may look at no key at all, and its weights "
            f"[{shown}, ...] sum to {number(weights[place].sum().item())}."
        )
    return None
