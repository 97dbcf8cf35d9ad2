"""The settings that a learner's code can change for everybody: save them, and put them back."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy
import torch
from torch import _tensor_str


class Setting(NamedTuple):
    """How to read a setting, how to put it back, and the sentence that says so."""

    read: Callable[[], object]
    restore: Callable[[object], None]
    said: str  # {now} and {before} stand for the two values


def _set_default_device(device: torch.device) -> None:
    torch.set_default_device(None)  # without a mode that costs time at each call
    if torch.get_default_device() != device:
        torch.set_default_device(device)


def _deterministic() -> tuple[bool, bool]:
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), warn_only


def _figures() -> frozenset[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return frozenset(pyplot.get_fignums() if pyplot else ())


def _close_figures(before: frozenset[int]) -> None:
    for number in _figures() - before:
        sys.modules["matplotlib.pyplot"].close(number)


SETTINGS = [
    Setting(
        torch.get_default_dtype,
        torch.set_default_dtype,
        "Your code set torch's default dtype to {now}; it is {before} again.",
    ),
    Setting(
        torch.get_default_device,
        _set_default_device,
        "Your code set torch's default device to {now}; it is {before} again.",
    ),
    Setting(
        torch.get_num_threads,
        torch.set_num_threads,
        "Your code set torch to {now} threads; it is {before} again.",
    ),
    Setting(
        sys.getrecursionlimit,
        sys.setrecursionlimit,
        "Your code changed the recursion limit; it is {before} again.",
    ),
    Setting(
        lambda: dict(vars(_tensor_str.PRINT_OPTS)),
        lambda before: vars(_tensor_str.PRINT_OPTS).update(before),
        "Your code changed how torch prints tensors; it prints them as before again.",
    ),
    Setting(
        numpy.get_printoptions,
        lambda before: numpy.set_printoptions(**before),
        "Your code changed how numpy prints arrays; it prints them as before again.",
    ),
    Setting(
        _deterministic,
        lambda before: torch.use_deterministic_algorithms(before[0], warn_only=before[1]),
        "Your code changed whether torch uses deterministic algorithms; that is as before again.",
    ),
    Setting(
        torch.is_grad_enabled,
        torch.set_grad_enabled,
        "Your code set torch's recording of gradients to {now}; it is {before} again.",
    ),
    Setting(
        torch.is_anomaly_enabled,
        torch.set_anomaly_enabled,
        "Your code set torch's search for anomalies to {now}; it is {before} again.",
    ),
    Setting(
        _figures,
        _close_figures,
        "Your code left figures of matplotlib open; they were closed.",
    ),
]


def read_settings() -> list:
    return [setting.read() for setting in SETTINGS]


def restore_settings(before: list, notes: list[str]) -> None:
    """Put every setting back that differs from what ``read_settings`` gave; note each."""
    for setting, was in zip(SETTINGS, before, strict=True):
        now = setting.read()
        if now != was:
            setting.restore(was)
            notes.append(setting.said.format(now=now, before=was))
