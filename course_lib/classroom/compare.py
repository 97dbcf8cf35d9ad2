"""When two results are the same: tolerances by dtype, and the first entry that differs."""

import torch

from course_lib.classroom.judge_parts import Outcome, Seen

# (absolute, relative). Half precision leaves room for another order of the same operations;
# float64 is held to float32's, since a part may compute in float32 and cast back.
TOLERANCES = {
    torch.float64: (2e-5, 1e-3),
    torch.float32: (2e-5, 1e-3),
    torch.float16: (5e-3, 2e-2),
    torch.bfloat16: (4e-2, 6e-2),
}


def same_tensor(yours: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether dtype, shape and every entry agree; NaN agrees with NaN."""
    if yours.dtype != right.dtype or yours.shape != right.shape:
        return False
    if right.dtype not in TOLERANCES:
        return torch.equal(yours, right)
    absolute, relative = TOLERANCES[right.dtype]
    return torch.allclose(yours, right, atol=absolute, rtol=relative, equal_nan=True)


def same_grad(yours: torch.Tensor | None, right: torch.Tensor | None) -> bool:
    """Whether two gradients agree; no gradient agrees with zeros."""
    if yours is None or right is None:
        present = right if yours is None else yours
        return present is None or not present.any().item()
    return same_tensor(yours, right)


def same_outcome(yours: Outcome, right: Outcome) -> bool:
    """Whether two calls on one probe did the same; any error agrees with any error."""
    if yours.error is not None or right.error is not None:
        return yours.error is not None and right.error is not None
    return (
        len(yours.values) == len(right.values)
        and yours.complaint == right.complaint
        and yours.changed == right.changed
        and yours.watched == right.watched
        and all(map(same_tensor, yours.values, right.values))
        and all(map(same_grad, yours.grads, right.grads))
    )


def is_right(seen: Seen) -> bool:
    """Whether the learner's part did on this probe what it should."""
    if seen.probe.raises is not None:
        error = seen.outcome.error
        return (
            error is not None
            and seen.probe.raises.__name__ in error.kinds
            and all(name in error.message for name in seen.probe.names)
        )
    return seen.outcome.error is None and same_outcome(seen.outcome, seen.expected)


def differing(yours: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Mark the entries in which two tensors of one shape differ."""
    if right.dtype not in TOLERANCES:
        return yours.to(torch.float64) != right.to(torch.float64)
    absolute, relative = TOLERANCES[right.dtype]
    return ~torch.isclose(
        yours.to(torch.float64),
        right.to(torch.float64),
        atol=absolute,
        rtol=relative,
        equal_nan=True,
    )


def first_difference(yours: torch.Tensor, right: torch.Tensor) -> tuple[int, ...] | None:
    """The index of the first entry that differs, or None.

    >>> first_difference(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]))
    (0, 1)
    """
    places = differing(yours, right).nonzero()
    return tuple(places[0].tolist()) if len(places) else None
