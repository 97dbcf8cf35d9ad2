"""Keep what a learner wrote: in one folder, whole or not at all, one writer at a time."""

import os
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

WAIT = 20.0  # seconds for another notebook to finish writing


def course_folder() -> Path:
    """The folder of the learner's files: COURSE_FOLDER, else where the notebook runs."""
    return Path(os.environ.get("COURSE_FOLDER") or Path.cwd())


@contextmanager
def locked(path: Path):
    """Hold ``path`` for this writer alone. OSError where that is not possible."""
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=WAIT)
    try:
        lock.acquire()
    except IsADirectoryError:
        raise OSError(21, f"there is a folder in the way, {lock.lock_file}") from None
    except Timeout:
        raise OSError(f"another notebook has held {path.name} for {WAIT:g} seconds") from None
    try:
        yield
    finally:
        lock.release()


def explain_failure(error: OSError, path: Path) -> str:
    """Say in one sentence why a file could not be written, and what helps.

    >>> explain_failure(OSError(28, "No space left on device"), Path("notes.txt"))
    'notes.txt could not be written: No space left on device. Free some space, then check again.'
    """
    remedy = {
        28: "Free some space, then check again.",
        13: f"Make the folder {path.parent} writable, or set COURSE_FOLDER to one that is.",
        30: f"Make the folder {path.parent} writable, or set COURSE_FOLDER to one that is.",
        21: "Move that folder away, then check again.",
        2: f"Make the folder {path.parent}, or set COURSE_FOLDER to one that exists.",
    }.get(error.errno or 0, "Check again in a moment.")
    return f"{path.name} could not be written: {error.strerror or error}. {remedy}"
