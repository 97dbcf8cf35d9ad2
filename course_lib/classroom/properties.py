"""True sentences about what is wrong with a result, for parts of every kind."""

import torch

from course_lib.classroom.compare import TOLERANCES, first_difference, same_grad, same_tensor
from course_lib.classroom.judge_parts import Seen


def where(seen: Seen) -> str:
    """Name a probe with the shapes of its tensors: "On two sentences (q (2, 3), k (5, 3))"."""
    shapes = [
        f"{name} {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else f"{name}={arg}"
        for name, arg in seen.args.items()
        if arg is not None and not callable(arg)
    ]
    return f"On {seen.probe.name} ({', '.join(shapes)})" if shapes else f"On {seen.probe.name}"


def number(value: float) -> str:
    """A number as a learner reads it: three or four digits.

    >>> number(0.12345), number(1.0), number(1e10), number(float("nan"))
    ('0.1235', '1', '1e+10', 'NaN')
    """
    if value != value:
        return "NaN"
    return f"{value:.4g}"


def entry(name: str, index: tuple[int, ...]) -> str:
    return f"`{name}[{', '.join(map(str, index))}]`" if index else f"`{name}`"


def wrong_form(seen: Seen) -> str | None:
    return f"{where(seen)}: {seen.outcome.complaint}" if seen.outcome.complaint else None


def wrong_shape(seen: Seen) -> str | None:
    for name in seen.results:
        yours, right = seen.yours(name), seen.right(name)
        if yours is not None and right is not None and yours.shape != right.shape:
            return (
                f"{where(seen)}, your `{name}` has shape {tuple(yours.shape)}, expected "
                f"{tuple(right.shape)}."
            )
    return None


def wrong_dtype(seen: Seen) -> str | None:
    for name in seen.results:
        yours, right = seen.yours(name), seen.right(name)
        if yours is not None and right is not None and yours.dtype != right.dtype:
            return f"{where(seen)}, your `{name}` is {yours.dtype}, expected {right.dtype}."
    return None


def not_finite(seen: Seen) -> str | None:
    for name in seen.results:
        yours, right = seen.yours(name), seen.right(name)
        if yours is None or right is None or yours.dtype not in TOLERANCES:
            continue
        for word, test in (("NaN", torch.isnan), ("infinite", torch.isinf)):
            count = int(test(yours).sum())
            if count and not test(right).any():
                return f"{where(seen)}, {count} of {yours.numel()} entries of `{name}` are {word}."
    return None


def changed_argument(seen: Seen) -> str | None:
    for name in seen.outcome.changed:
        return (
            f"{where(seen)}, your function changed its argument `{name}` in place: the caller's "
            "own tensor is different afterwards."
        )
    return None


def lost_gradient(seen: Seen) -> str | None:
    for name, yours, right in _gradients(seen):
        if right is not None and right.any() and (yours is None or not yours.any()):
            return f"{where(seen)}, no gradient reaches `{name}`: training could not move it."
    return None


def wrong_gradient(seen: Seen) -> str | None:
    for name, yours, right in _gradients(seen):
        if yours is None or right is None or same_grad(yours, right):
            continue
        count = int(torch.isnan(yours).sum())
        if count and not torch.isnan(right).any():
            return f"{where(seen)}, {count} of {yours.numel()} gradients for `{name}` are NaN."
    if not _results_right(seen):
        return None
    for name, yours, right in _gradients(seen):
        if yours is not None and right is not None and not same_grad(yours, right):
            index = first_difference(yours, right)
            return (
                f"{where(seen)}, the results are right and the gradient for `{name}` is not: at "
                f"{list(index)} yours is {number(yours[index].item())}, the right one "
                f"{number(right[index].item())}."
            )
    return None


def _results_right(seen: Seen) -> bool:
    return (
        not seen.outcome.complaint
        and len(seen.outcome.values) == len(seen.expected.values)
        and all(map(same_tensor, seen.outcome.values, seen.expected.values))
    )


def describe_first_difference(seen: Seen) -> str | None:
    """Name the first entry that differs, yours and the right one."""
    for name in seen.results:
        if not seen.comparable(name):
            continue
        yours, right = seen.yours(name), seen.right(name)
        index = first_difference(yours, right)
        if index is not None:
            return (
                f"{where(seen)}, the first entry that differs is {entry(name, index)}: yours is "
                f"{_item(yours, index)}, the right one {_item(right, index)}."
            )
    return None


def _item(tensor: torch.Tensor, index: tuple[int, ...]) -> str:
    value = tensor[index].item()
    return str(value) if isinstance(value, (bool, complex)) else number(value)


def _gradients(seen: Seen):
    outcome, expected = seen.outcome, seen.expected
    return zip(expected.moved, outcome.grads, expected.grads, strict=False)


# What is asked before an exercise's own properties, and after them.
GENERAL_PROPERTIES = (
    (wrong_form, wrong_shape, wrong_dtype),
    (not_finite, changed_argument, lost_gradient, wrong_gradient),
)
