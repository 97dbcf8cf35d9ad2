"""Call a part on a probe and note what it did: results, gradients, changes, errors."""

import traceback
from collections.abc import Callable

import torch

from course_lib.classroom.judge_parts import Called, Complaint, Outcome, Probe, Raised
from course_lib.classroom.sandbox import Stopped


def call_function(candidate: Callable, probe: Probe, args: tuple) -> Called:
    """How a function is called on a probe: with its arguments."""
    return Called(candidate(*args))


def observe(exercise, candidate: Callable, probe: Probe) -> Outcome:
    """Call ``candidate`` on fresh copies of the probe's arguments and note the outcome."""
    leaves = [_leaf(arg, probe.grads) for arg in probe.args]
    # Copies of the leaves: a leaf itself can't be changed in place, and that shall be seen.
    args = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in leaves)
    try:
        called = exercise.call(candidate, probe, args)
        values, complaint = read_result(exercise, called.result, args)
        changed = tuple(
            name
            for name, arg, kept in zip(exercise.arguments, args, leaves, strict=False)
            if _is_changed(arg, kept)
        )
        inputs = {
            name: leaf
            for name, leaf in zip(exercise.arguments, leaves, strict=False)
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        }
        moved = {**inputs, **called.parameters} if probe.grads and values else {}
        grads = _gradients(values, list(moved.values()))
        # A view of one number can pretend to any size: copying it is part of the attempt.
        values = tuple(value.detach().clone() for value in values)
    except Stopped:
        raise
    except Complaint as complaint:
        return Outcome(complaint=str(complaint))
    except BaseException as error:
        return Outcome(error=describe_error(error, candidate))
    return Outcome(
        values=values,
        grads=grads,
        moved=tuple(moved),
        complaint=complaint or called.complaint,
        changed=changed,
        watched=called.watched,
    )


def read_result(exercise, result, args: tuple) -> tuple[tuple[torch.Tensor, ...], str]:
    """The tensors in a result, and a sentence on its form where that is not as asked."""
    names = exercise.results
    wanted = _wanted(names)
    if len(names) == 1:
        parts = (result,)
    elif isinstance(result, tuple):
        parts = tuple(result)
    elif isinstance(result, list):
        return _tensors(result), f"It returns a list, expected {wanted}."
    else:
        return _tensors([result]), f"It returns {_kind(result)}, expected {wanted}."
    if len(parts) != len(names):
        return _tensors(parts), f"It returns {len(parts)} things, expected {wanted}."
    tensors = []
    for name, part in zip(names, parts, strict=True):
        if isinstance(part, (bool, int, float)) and exercise.gives_numbers:
            part = torch.tensor(part, dtype=torch.float64)
        if type(part) is not torch.Tensor:
            place = "It returns" if len(names) == 1 else f"Its `{name}` is"
            return _tensors(parts), f"{place} {_kind(part)}, expected a torch tensor."
        if exercise.gives_numbers and part.dim() == 0:
            part = part.to(torch.float64)
        if part.device.type != "cpu" or part.layout is not torch.strided:
            return (), (
                f"Its `{name}` is {part.layout} on the device {part.device}, expected an "
                "ordinary tensor on the device of the input, cpu."
            )
        tensors.append(part)
    return tuple(tensors), ""


def _wanted(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return "one tensor"
    return "the " + ("pair" if len(names) == 2 else "tuple") + f" `{', '.join(names)}`"


def _kind(value) -> str:
    if value is None:
        return "None (is a `return` missing?)"
    if value is Ellipsis:
        return "`...`, the unfinished part"
    if isinstance(value, torch.Tensor):
        if type(value) is torch.Tensor:
            return f"one tensor of shape {tuple(value.shape)}"
        return f"a {type(value).__name__}, a special kind of tensor"
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if name == "generator":
        return "a generator (the function says `yield` where it should say `return`)"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _tensors(parts) -> tuple[torch.Tensor, ...]:
    return tuple(part for part in parts if type(part) is torch.Tensor)


def describe_error(error: BaseException, candidate: Callable) -> Raised:
    """Note an exception, and the last line of the learner's own code that it passed."""
    source = getattr(getattr(candidate, "__code__", None), "co_filename", None)
    if source is None and isinstance(candidate, type):
        source = getattr(
            getattr(candidate.__dict__.get("forward"), "__code__", None), "co_filename", None
        )
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    kinds = tuple(kind.__name__ for kind in type(error).__mro__)
    try:
        message = str(error)
    except Exception:
        message = ""  # an exception that can't say what it is
    if not own:
        return Raised(type(error).__name__, message, kinds=kinds)
    line = own[-1].line or ""
    # What a library raised from C has the learner's line as its innermost too.
    raised = line.startswith("raise") or not (line or message)
    return Raised(type(error).__name__, message, own[-1].lineno, line, kinds, raised)


def _leaf(arg, grads: bool):
    if not isinstance(arg, torch.Tensor):
        return arg
    copy = arg.detach().clone()
    return copy.requires_grad_() if grads and copy.is_floating_point() else copy


def _is_changed(arg, kept) -> bool:
    if not isinstance(kept, torch.Tensor):
        return False
    return arg.shape != kept.shape or not torch.equal(arg, kept)


def _gradients(values, moved: list[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """The gradients of one number made of all results, with respect to what may move."""
    if not moved:
        return ()
    total = sum((value.double() * _pattern(value)).sum() for value in values if value.requires_grad)
    live = [x for x in moved if x.requires_grad]
    if not isinstance(total, torch.Tensor) or not live:
        return (None,) * len(moved)
    found = iter(torch.autograd.grad(total, live, allow_unused=True))
    return tuple(next(found) if x.requires_grad else None for x in moved)


def _pattern(value: torch.Tensor) -> torch.Tensor:
    """Uneven numbers, so that no two entries' gradients cancel; the same for the same shape."""
    return torch.cos(1.7 * torch.arange(1, value.numel() + 1)).reshape(value.shape)
