"""The folder that keeps fetched weights."""

import os
from pathlib import Path

import platformdirs

COURSE = "attention-by-hand"


class WeightsProblem(Exception):
    """Weights that cannot be had: one sentence says what was tried and what to do."""


def cache_folder() -> Path:
    """Name the cache: the environment variable ``COURSE_CACHE``, else the user's own cache."""
    chosen = os.environ.get("COURSE_CACHE")
    return (
        Path(chosen).expanduser().absolute()
        if chosen
        else Path(platformdirs.user_cache_dir(COURSE))
    )


def make_cache(cache: Path) -> Path:
    """Make the folder, or say why it cannot be used."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        probe = cache / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise unwritable(cache, error) from error
    return cache


def unwritable(cache: Path, error: OSError) -> WeightsProblem:
    """Say that the cache cannot be written, and how to use another."""
    reason = error.strerror or error
    return WeightsProblem(
        f"The cache folder {cache} cannot be written ({reason}): "
        "name a folder that you may write in the environment variable COURSE_CACHE."
    )
