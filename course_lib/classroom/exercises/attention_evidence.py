"""What can be seen in a learner's weights: sentences with numbers that were computed from them.

Each function takes a ``Seen`` and returns None where its sentence would not be true.
"""

import math

import torch

from course_lib.classroom.compare import TOLERANCES, same_tensor
from course_lib.classroom.judge_parts import Seen
from course_lib.classroom.properties import entry, number, where


def weights_of(seen: Seen) -> torch.Tensor | None:
    """The learner's weights in float64, where they have the right shape and are finite."""
    if not seen.comparable("weights"):
        return None
    weights = seen.yours("weights").double()
    return weights if torch.isfinite(weights).all() else None


def mask_of(seen: Seen) -> torch.Tensor | None:
    mask = seen.args.get("mask")
    return None if mask is None else mask.expand(seen.right("weights").shape)


def slack(seen: Seen) -> float:
    return 10 * TOLERANCES[seen.right("weights").dtype][0]


def first(places: torch.Tensor) -> tuple[int, ...] | None:
    found = places.nonzero()
    return tuple(found[0].tolist()) if len(found) else None


def row_sums(seen: Seen) -> str | None:
    """Rows that sum to neither one nor zero."""
    weights = weights_of(seen)
    if weights is None:
        return None
    sums = weights.sum(-1)
    odd = first(((sums - 1).abs() > slack(seen)) & (sums.abs() > slack(seen)))
    if odd is None:
        return None
    return (
        f"{where(seen)}, row {entry('weights', odd)} sums to {number(sums[odd].item())}: a row of "
        "weights sums to 1, or to 0 where there is nothing to look at."
    )


def axis_sums(axis: int, what: str):
    """All sums along another axis are one, where those of the rows are not."""

    def say(seen: Seen) -> str | None:
        weights = weights_of(seen)
        if weights is None or weights.dim() < -axis or weights.size(axis) == 1:
            return None
        sums = weights.sum(axis)
        one_or_none = ((sums - 1).abs() < slack(seen)) | (sums.abs() < slack(seen))
        rows = weights.sum(-1)
        if not one_or_none.all() or ((rows - 1).abs() < slack(seen)).all():
            return None
        odd = first(((rows - 1).abs() > slack(seen)) & (rows.abs() > slack(seen)))
        if odd is None:
            return None
        return (
            f"{where(seen)}, your weights sum to 1 over the {what} (axis {axis}), while row "
            f"{entry('weights', odd)} sums to {number(rows[odd].item())}."
        )

    return say


def leak(seen: Seen) -> str | None:
    """A key that the mask hides gets weight."""
    weights, mask = weights_of(seen), mask_of(seen)
    if weights is None or mask is None:
        return None
    alive = mask.any(-1, keepdim=True)
    place = first((weights.abs() > slack(seen)) & ~mask & alive)
    if place is None:
        return None
    return (
        f"{where(seen)}, {entry('weights', place)} is {number(weights[place].item())}, yet the "
        "mask is False there: that key should get 0."
    )


def future_leak(seen: Seen) -> str | None:
    """Weight above the diagonal under a causal mask."""
    weights, mask = weights_of(seen), mask_of(seen)
    if weights is None or mask is None or mask.size(-1) != mask.size(-2):
        return None
    if not torch.equal(mask, torch.ones_like(mask).tril()):
        return None
    place = first((weights.abs() > slack(seen)) & ~mask)
    if place is None:
        return None
    return (
        f"{where(seen)}, query {place[-2]} gives weight {number(weights[place].item())} to key "
        f"{place[-1]}, which lies in its future."
    )


def hidden_allowed(seen: Seen) -> str | None:
    """A key that may be looked at gets nothing, though the right weight is well above zero."""
    weights, right = weights_of(seen), seen.right("weights").double()
    if weights is None:
        return None
    place = first((weights.abs() < 1e-9) & (right > 0.01))
    if place is None:
        return None
    return (
        f"{where(seen)}, {entry('weights', place)} is {number(weights[place].item())}, though "
        f"query {place[-2]} may look at key {place[-1]}; the right weight is "
        f"{number(right[place].item())}."
    )


def dead_row(seen: Seen) -> str | None:
    """What stands in a row with no key to look at."""
    mask = mask_of(seen)
    if mask is None or not seen.comparable("weights"):
        return None
    weights = seen.yours("weights").double()
    dead = ~mask.any(-1)
    place = first(dead & ((weights != 0).any(-1) | weights.isnan().any(-1)))
    if place is None:
        return None
    shown = ", ".join(number(x) for x in weights[place][:4].tolist())
    dots = ", ..." if weights.size(-1) > 4 else ""
    return (
        f"{where(seen)}, query {list(place)} may look at no key at all, and your row of weights "
        f"for it is [{shown}{dots}]; it should be all zeros."
    )


def negative(seen: Seen) -> str | None:
    weights = weights_of(seen)
    if weights is None:
        return None
    place = first(weights < -slack(seen))
    if place is None:
        return None
    return (
        f"{where(seen)}, {entry('weights', place)} is {number(weights[place].item())}: a weight "
        "is never below 0."
    )


def temperature(seen: Seen) -> str | None:
    """By which factor the scores differ, read back from the weights of one row.

    Where weights are a softmax of c times the right scores, the ratio of the logarithms of two
    weights gives c; the sentence is said only where the same c explains every row.
    """
    weights, right = weights_of(seen), seen.right("weights").double()
    if weights is None or seen.right("weights").dtype not in (torch.float32, torch.float64):
        return None
    if not (weights >= 0).all() or not ((weights > 1e-6) == (right > 1e-6)).all():
        return None
    keep = right > 1e-6
    ours = torch.where(keep, right, 1.0).log()
    yours = torch.where(keep, weights, 1.0).log()
    spread_ours, spread_yours = _spread(ours, keep), _spread(yours, keep)
    denominator = (spread_ours**2).sum()
    if denominator < 1e-6:
        return None
    factor = ((spread_ours * spread_yours).sum() / denominator).item()
    if not torch.allclose(spread_yours, factor * spread_ours, atol=1e-2, rtol=1e-2):
        return None
    if abs(factor - 1) < 0.02 or factor <= 0:
        return None
    word = f"{number(factor)} times" if factor > 1 else f"{number(1 / factor)} times smaller than"
    k = seen.args["q"].size(-1)
    tail = " what they should be" if factor > 1 else " they should be"
    sharp = "sharper" if factor > 1 else "flatter"
    return (
        f"{where(seen)}, the scores behind your weights are {word}{tail}, so every row is "
        f"{sharp} (d_k is {k}, its square root {number(math.sqrt(k))})."
    )


def _spread(logs: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    count = keep.sum(-1, keepdim=True).clamp(min=1)
    mean = (logs * keep).sum(-1, keepdim=True) / count
    return torch.where(keep, logs - mean, 0.0)


def not_the_mix(seen: Seen) -> str | None:
    """z is not the learner's own weights times v."""
    weights = weights_of(seen)
    if weights is None or not seen.comparable("z"):
        return None
    z, v = seen.yours("z"), seen.args["v"]
    if z.dtype not in (torch.float32, torch.float64):
        return None
    own = (weights @ v.double()).to(z.dtype)
    if not torch.isfinite(z).all() or same_tensor(z, own):
        return None
    place = first(~torch.isclose(z.double(), own.double(), atol=1e-4, rtol=1e-3))
    if place is None:
        return None
    return (
        f"{where(seen)}, your {entry('z', place)} is {number(z[place].item())}, while your own "
        f"weights times `v` give {number(own[place].item())} there."
    )


def outside_hull(seen: Seen) -> str | None:
    """An output beyond the values, although it should be a mean of them."""
    if not seen.comparable("z") or seen.probe.args[2].dim() < 2:
        return None
    z, v = seen.yours("z").double(), seen.args["v"].double()
    if not torch.isfinite(z).all() or z.size(-1) != v.size(-1):
        return None
    high, low = v.amax(-2, keepdim=True), v.amin(-2, keepdim=True)
    margin = 0.05 * (1 + v.abs().max())
    place = first((z > high + margin) | (z < torch.minimum(low, torch.zeros_like(low)) - margin))
    if place is None:
        return None
    return (
        f"{where(seen)}, {entry('z', place)} is {number(z[place].item())}, beyond every value of "
        "that feature: a weighted mean can't leave the range of what it averages."
    )


def swapped(seen: Seen) -> str | None:
    """The two results come in the other order."""
    values, z, weights = seen.outcome.values, seen.right("z"), seen.right("weights")
    if len(values) != 2 or values[0].shape != weights.shape or values[1].shape != z.shape:
        return None
    if z.shape == weights.shape and not same_tensor(values[0], weights):
        return None
    return (
        f"{where(seen)}, your first result has shape {tuple(values[0].shape)} and your second "
        f"{tuple(values[1].shape)}: the shapes of the weights and of z, in this order."
    )


def alone(seen: list[Seen]) -> str | None:
    """One example comes out differently with others beside it."""
    pair = [one for one in seen if one.probe.name in (_BATCH, _ALONE)]
    if len(pair) != 2:
        return None
    batch, single = sorted(pair, key=lambda one: one.probe.name != _BATCH)
    for name in ("z", "weights"):
        if not batch.comparable(name) or not single.comparable(name):
            continue
        together, apart = batch.yours(name)[0], single.yours(name)[0]
        if torch.isfinite(together).all() and not same_tensor(together, apart):
            place = first(~torch.isclose(together, apart, atol=1e-4, rtol=1e-3))
            if place is None:
                continue
            return (
                f"The first example of a batch of {batch.args['q'].size(0)} gives "
                f"{entry(name, (0, *place))} = {number(together[place].item())}, and "
                f"{number(apart[place].item())} when it is alone in the batch: examples "
                "influence each other."
            )
    return None


_BATCH, _ALONE = "a batch without heads", "the first example of that batch alone"


def right_weights(seen: Seen) -> bool:
    """Whether the learner's weights are right, whatever z is."""
    return seen.comparable("weights") and same_tensor(seen.yours("weights"), seen.right("weights"))
