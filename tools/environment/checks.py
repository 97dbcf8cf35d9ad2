"""What must be true before anything is written: Python's own parts, room, and no second set-up."""

import contextlib
import fcntl
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from environment.problem import SetupProblem

GIGABYTE = 10**9
# Measured on Linux with the development extras, rounded up; pip's cache and the unpacked wheel
# of torch stand beside the installed copy for a while.
ROOM = {"cpu": 3 * GIGABYTE, "default": 9 * GIGABYTE}


def check_venv(find_spec: Callable[[str], object] = importlib.util.find_spec) -> None:
    """Raise if this Python cannot make a virtual environment (Debian splits the module off)."""
    if find_spec("venv") and find_spec("ensurepip"):
        return
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    raise SetupProblem(
        f"This Python ({sys.executable}) lacks its venv module. On Debian and Ubuntu:"
        f" sudo apt install {name}-venv. Elsewhere install Python from python.org/downloads."
    )


def check_room(folder: Path, torch: str, disk_usage: Callable = shutil.disk_usage) -> None:
    """Raise if the disk of `folder` cannot hold the packages with this build of torch."""
    free, needed = disk_usage(folder).free, ROOM[torch]
    if free < needed:
        raise SetupProblem(
            f"{folder} has {free / GIGABYTE:.1f} GB free, and the course needs about"
            f" {needed / GIGABYTE:.0f} GB. Free some space or move the course to a larger disk,"
            " then run the same command again."
        )


def check_ours(venv: Path) -> None:
    """Raise if something that is no virtual environment stands where .venv belongs."""
    marks = ("pyvenv.cfg", "install.log")
    ours = venv.is_dir() and (
        not any(venv.iterdir()) or any((venv / mark).exists() for mark in marks)
    )
    if os.path.lexists(venv) and not ours:
        raise SetupProblem(
            f"{venv} exists and is no virtual environment. Move it away, then run the same"
            " command again."
        )


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[int]:
    """Hold the lock file while one set-up runs; wait for another one to end first."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up of this folder is running; waiting for it to end.", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held.fileno()
