"""Keep what a learner wrote: in one folder, whole or not at all, one writer at a time."""

import errno
import os
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

WAIT = 2.0  # seconds for another notebook to finish writing; a save takes a tenth of one


def course_folder() -> Path:
    """The folder of the learner's files: COURSE_FOLDER, else where the notebook runs."""
    return Path(os.environ.get("COURSE_FOLDER") or Path.cwd())


@contextmanager
def locked(path: Path):
    """Hold ``path`` for this writer alone. OSError, within two seconds, where that can't be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lock is waited for, also where none can ever be had: a folder's refusal comes at once.
    with tempfile.TemporaryFile(dir=path.parent):
        pass
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=WAIT)
    try:
        with warnings.catch_warnings():  # on a drive without locks the library takes another kind
            warnings.simplefilter("ignore")
            lock.acquire()
    except IsADirectoryError:
        raise OSError(errno.EISDIR, f"there is a folder in the way, {lock.lock_file}") from None
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
    number = error.errno or 0
    if number in (errno.ENOENT, errno.EEXIST, errno.ENOTDIR):
        reason = f"the folder {path.parent} takes no files"
        return f"{path.name} could not be written: {reason}. Set COURSE_FOLDER to one that does."
    remedy = {
        errno.ENOSPC: "Free some space, then check again.",
        errno.EDQUOT: "Free some space, then check again.",
        errno.EACCES: _ELSEWHERE,
        errno.EPERM: _ELSEWHERE,
        errno.EROFS: _ELSEWHERE,
        errno.EISDIR: "Move that folder away, then check again.",
        errno.ENOLCK: _LOCKS,
        errno.EOPNOTSUPP: _LOCKS,
        errno.ENOSYS: _LOCKS,
    }.get(number, "Check again in a moment.")
    remedy = remedy.format(path.parent)
    return f"{path.name} could not be written: {error.strerror or error}. {remedy}"


_ELSEWHERE = "Make the folder {} writable, or set COURSE_FOLDER to one that is."
_LOCKS = "The drive of {} can't lock files: set COURSE_FOLDER to a folder on this machine's disk."
