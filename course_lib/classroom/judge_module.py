"""Call a learner's module with the library's weights, or say why the weights don't fit it."""

from collections.abc import Callable

import torch
from torch import nn

from course_lib.classroom.judge_parts import Called, Complaint, Probe


def call_module(reference: type[nn.Module]) -> Callable:
    """How a module is called: built by ``probe.build``, with the library module's weights.

    The library's module is built in the same way under a fixed seed, and its weights are loaded
    into the learner's, so that equal modules give equal results and equal gradients.
    """

    def call(candidate: Callable, probe: Probe, args: tuple) -> Called:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            right = reference(*probe.build)
            module = candidate(*probe.build)
        if not isinstance(module, nn.Module):
            raise Complaint(
                f"It makes {type(module).__name__}, expected an `nn.Module`: write "
                f"`class {reference.__name__}(nn.Module)`."
            )
        uneven = _uneven(right)
        complaint = describe_parameters(module, uneven)
        if complaint:
            raise Complaint(complaint)
        module.load_state_dict(uneven, strict=False)
        own = dict(module.named_parameters())
        return Called(module(*args), {name: own[name] for name in uneven})

    return call


def _uneven(module: nn.Module) -> dict[str, torch.Tensor]:
    """A module's parameters, moved a little: a gain of exactly one would hide itself."""
    generator = torch.Generator().manual_seed(1)
    return {
        name: value.detach() + 0.2 * torch.randn(value.shape, generator=generator)
        for name, value in module.named_parameters()
    }


def describe_parameters(module: nn.Module, right: dict[str, torch.Tensor]) -> str:
    """Say how a module's parameters differ from the right ones in name or shape; "" if not at all.

    >>> describe_parameters(nn.Linear(2, 3), {"weight": torch.ones(3, 2), "bias": torch.ones(5)})
    'Its parameter `bias` has shape (3,), expected (5,).'
    """
    own = dict(module.named_parameters(remove_duplicate=False))
    places: dict[int, list[str]] = {}
    for name, value in own.items():
        places.setdefault(id(value), []).append(name)
    shared = next((names for names in places.values() if len(names) > 1), None)
    if shared:
        return (
            f"{_listed(shared)} are one and the same parameter: the same module stands under two "
            "names. Make a new one for each."
        )
    missing = [name for name in right if name not in own]
    extra = [name for name in own if name not in right]
    if missing and not own:
        return (
            "It has no parameters at all. A module knows those that its `__init__` assigns to "
            f"`self`: here {_listed(list(right))} are expected."
        )
    if missing and extra:
        return (
            f"Its parameters are named otherwise: {_listed(missing)} {_are(missing)} missing, and "
            f"{_listed(extra)} {_are(extra)} not expected. A parameter is named after the "
            f"attributes that hold it: `{missing[0]}` comes of what `__init__` assigns to "
            f"`self.{missing[0].split('.')[0]}`."
        )
    if missing and all(name.endswith("bias") for name in missing):
        return (
            f"{_listed(missing)} {_are(missing)} missing: these linear maps have a bias, as "
            "`nn.Linear` has by default."
        )
    if missing:
        return (
            f"{_listed(missing)} {_are(missing)} missing. A module knows the parameters that its "
            "`__init__` assigns to `self`, by the name of the attribute."
        )
    if extra:
        return f"It has parameters that the library's has not: {_listed(extra)}."
    for name, value in right.items():
        if own[name].shape != value.shape:
            return (
                f"Its parameter `{name}` has shape {tuple(own[name].shape)}, expected "
                f"{tuple(value.shape)}."
            )
    return ""


def _listed(names: list[str], most: int = 4) -> str:
    shown = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
