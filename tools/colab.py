"""Write the lessons for Colab: each file carries the course itself, so nothing need be published.

python tools/colab.py [FOLDER]   writes FOLDER/*.ipynb, dist/colab where none is named
"""

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
EPOCH = "1577836800"  # the time that stands in the wheel: the same input gives the same bytes


def build_wheel(folder: Path) -> Path:
    """Build the course's wheel with pip, from a copy-free tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    done = subprocess.run(
        [*command, str(ROOT)], capture_output=True, text=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"The course's wheel could not be built:\n{done.stderr[-2000:]}")
    return next(folder.glob("*.whl"))


def first_cell(wheel: Path):
    """The cell that installs the course from the bytes that it carries."""
    version = wheel.name.split("-")[1]
    carried = base64.b64encode(wheel.read_bytes()).decode()
    code = (ROOT / "tools" / "colab_cell.txt").read_text("utf-8")
    title, rest = code.split("\n", 1)
    source = (
        f'{title}\nVERSION, WHEEL_NAME = "{version}", "{wheel.name}"\nWHEEL = "{carried}"\n\n{rest}'
    )
    cell = nbformat.v4.new_code_cell(source.rstrip("\n"), id="install-course")
    cell.metadata = {"cellView": "form", "tags": ["install"]}
    return cell


def for_colab(path: Path, cell):
    """A lesson with the installing cell in front and no outputs."""
    notebook = nbformat.read(path, as_version=4)
    for old in notebook.cells:
        if old.cell_type == "code":
            old.outputs, old.execution_count = [], None
    notebook.cells = [notebook.cells[0], cell, *notebook.cells[1:]]
    notebook.metadata["colab"] = {"name": path.name, "provenance": []}
    return notebook


def write(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        cell = first_cell(build_wheel(Path(place)))
    written = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        nbformat.write(for_colab(path, cell), folder / path.name)
        written.append(folder / path.name)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "colab"):
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
