"""Save what a learner's code may change for everybody, put it back, and say what was changed."""

import os
import random
import sys
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from IPython import get_ipython

from course_lib.classroom.sandbox_settings import read_settings, restore_settings

DEEPEST = 10_000
_PATCHABLE = {"torch": torch, "torch.nn.functional": F, "torch.Tensor": torch.Tensor}


@contextmanager
def kept_state(notes: list[str]):
    """Restore random states, torch's global settings and its functions; add a note on each."""
    randomness = _random_states()
    settings = read_settings()
    folder = os.getcwd()
    names = {place: dict(vars(owner)) for place, owner in _PATCHABLE.items()}
    try:
        with _no_exit(), _no_deep_recursion():
            yield
    finally:
        # Settings first: setting a dtype makes torch replace some names of its own.
        restore_settings(settings, notes)
        _restore_functions(names, notes)
        _restore_randomness(randomness, notes)
        if os.getcwd() != folder:
            notes.append(f"Your code changed the working folder; it is {folder} again.")
            os.chdir(folder)


@contextmanager
def _no_exit():
    """Let `exit()` of a notebook raise SystemExit, as it does elsewhere, not end the kernel."""
    shell = get_ipython()
    if shell is None:
        yield
        return

    def refuse():
        raise SystemExit

    shell.ask_exit = refuse
    try:
        yield
    finally:
        del shell.ask_exit


@contextmanager
def _no_deep_recursion():
    """Refuse a recursion limit that would overflow the stack and end the kernel."""
    real = sys.setrecursionlimit

    def limited(limit):
        if limit > DEEPEST:
            raise ValueError(f"a recursion limit of {limit} could end the kernel")
        real(limit)

    sys.setrecursionlimit = limited
    try:
        yield
    finally:
        sys.setrecursionlimit = real


def _random_states() -> dict:
    states = {"torch": torch.get_rng_state(), "random": random.getstate()}
    if "numpy" in sys.modules:
        states["numpy.random"] = sys.modules["numpy"].random.get_state()
    return states


def _restore_randomness(before: dict, notes: list[str]) -> None:
    after = _random_states()
    changed = [name for name in before if not _same_state(before[name], after[name])]
    if not changed:
        return
    torch.set_rng_state(before["torch"])
    random.setstate(before["random"])
    if "numpy.random" in before:
        sys.modules["numpy"].random.set_state(before["numpy.random"])
    notes.append(
        f"Your code changed the global random state of {' and '.join(changed)}. It was put back; "
        "a part of a model should leave the dice of others alone."
    )


def _same_state(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one[0], str):  # numpy's: a name, an array, and numbers
        return one[1].tobytes() == other[1].tobytes() and one[2:] == other[2:]
    return one == other


def _is_torchs(value) -> bool:
    """Whether torch itself put it there: some of its modules replace names as they load."""
    home = getattr(value, "__module__", None) or getattr(value, "__name__", None) or ""
    return isinstance(home, str) and home.split(".")[0] == "torch"


def _restore_functions(before: dict, notes: list[str]) -> None:
    for place, names in before.items():
        owner = _PATCHABLE[place]
        now = vars(owner)
        changed = [
            name
            for name in {**names, **now}
            if now.get(name) is not names.get(name) and not _is_torchs(now.get(name))
        ]
        for name in changed:
            if name in names:
                setattr(owner, name, names[name])
            else:
                delattr(owner, name)  # it hid an inherited one
        if changed:
            notes.append(f"Your code replaced `{place}.{changed[0]}`; the original is back.")
