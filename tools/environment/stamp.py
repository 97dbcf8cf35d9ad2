"""The stamp in .venv says what was installed, and so what is left to do."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

INPUTS = ("pyproject.toml", "constraints.txt")


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What .venv holds. It is written last: no stamp means an install that did not end."""

    root: str
    base: str
    extra: str
    torch: str
    inputs: str
    models: bool = False


def digest(root: Path) -> str:
    """A hash over the files that decide what is installed."""
    parts = [(root / name).read_bytes() for name in INPUTS]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read(venv: Path) -> Stamp | None:
    """The stamp of `venv`, None if there is none that can be read."""
    try:
        return Stamp(**json.loads((venv / "course-stamp.json").read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def write(venv: Path, stamp: Stamp) -> None:
    """Write the stamp whole or not at all."""
    new = venv / "course-stamp.json.new"
    new.write_text(json.dumps(asdict(stamp), indent=1))
    os.replace(new, venv / "course-stamp.json")


def remove(venv: Path) -> None:
    """Take the stamp away while something is changed."""
    (venv / "course-stamp.json").unlink(missing_ok=True)


def decide(found: Stamp | None, wanted: Stamp, *, python_chosen: bool, torch_asked: str) -> str:
    """`ready`, `update` (install over it) or `rebuild` (from nothing).

    A Python or a torch that nobody asked for by name stays as it was installed.
    """
    if found is None or found.root != wanted.root:
        return "rebuild"
    if python_chosen and found.base != wanted.base:
        return "rebuild"
    if torch_asked != "auto" and found.torch != torch_asked:
        return "rebuild"
    if found.inputs != wanted.inputs or wider(found.extra, wanted.extra) != found.extra:
        return "update"
    return "ready"


def wider(one: str, other: str) -> str:
    """The extra that includes the other: `dev` holds `lab`."""
    return "dev" if "dev" in (one, other) else "lab"


def after_models(stamp: Stamp) -> Stamp:
    """The stamp once the weights have been asked for."""
    return replace(stamp, models=True)
