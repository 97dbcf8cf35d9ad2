"""Call a part on a probe and note what it did: results, gradients, changes, errors."""

import traceback
from collections.abc import Callable

import torch

from course_lib.classroom.judge_parts import Outcome, Probe, Raised
from course_lib.classroom.sandbox import Stopped


def call_function(candidate: Callable, probe: Probe, args: tuple):
    """How a function is called on a probe: with its arguments."""
    return candidate(*args)


def call_module(reference: type) -> Callable:
    """How a module is called: built by ``probe.build``, with the library module's weights.

    The library's module is built in the same way under a fixed seed, and its weights are loaded
    into the learner's, so that equal modules give equal results.
    """

    def call(candidate: Callable, probe: Probe, args: tuple):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            weights = reference(*probe.build).state_dict()
            module = candidate(*probe.build)
        module.load_state_dict(weights)
        return module(*args)

    return call


def observe(exercise, candidate: Callable, probe: Probe) -> Outcome:
    """Call ``candidate`` on fresh copies of the probe's arguments and note the outcome."""
    leaves = [_leaf(arg, probe.grads) for arg in probe.args]
    # Copies of the leaves: a leaf itself can't be changed in place, and that shall be seen.
    args = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in leaves)
    try:
        result = exercise.call(candidate, probe, args)
        values, complaint = read_result(exercise, result, args)
        changed = tuple(
            name
            for name, arg, kept in zip(exercise.arguments, args, leaves, strict=False)
            if _is_changed(arg, kept)
        )
        grads = _gradients(values, leaves) if probe.grads and values else ()
    except Stopped:
        raise
    except BaseException as error:
        return Outcome(error=describe_error(error, candidate))
    return Outcome(
        values=tuple(value.detach().clone() for value in values),
        grads=grads,
        complaint=complaint,
        changed=changed,
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
        return "None: is a `return` missing?"
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
    if not own:
        return Raised(type(error).__name__, str(error), kinds=kinds)
    return Raised(type(error).__name__, str(error), own[-1].lineno, own[-1].line or "", kinds)


def _leaf(arg, grads: bool):
    if not isinstance(arg, torch.Tensor):
        return arg
    copy = arg.detach().clone()
    return copy.requires_grad_() if grads and copy.is_floating_point() else copy


def _is_changed(arg, kept) -> bool:
    if not isinstance(kept, torch.Tensor):
        return False
    return arg.shape != kept.shape or not torch.equal(arg, kept)


def _gradients(values, leaves) -> tuple[torch.Tensor | None, ...]:
    """The gradients of one number made of all results, with respect to the arguments."""
    inputs = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
    total = sum((value.double() * _pattern(value)).sum() for value in values if value.requires_grad)
    if not isinstance(total, torch.Tensor):
        return (None,) * len(inputs)
    return torch.autograd.grad(total, inputs, allow_unused=True)


def _pattern(value: torch.Tensor) -> torch.Tensor:
    """Uneven numbers, so that no two entries' gradients cancel; the same for the same shape."""
    return torch.cos(1.7 * torch.arange(1, value.numel() + 1)).reshape(value.shape)
