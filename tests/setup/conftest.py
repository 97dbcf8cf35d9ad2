import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def stub(tmp_path):
    """Write an executable shell script into a folder made for PATH; return that folder."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name: str, text: str) -> Path:
        file = folder / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return folder

    return write
