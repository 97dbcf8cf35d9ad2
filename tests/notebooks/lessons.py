"""What the notebook tests share: read lessons, solve them, run them, flag what breaks a rule."""

import ast
import json
import os
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("*.ipynb"))
CELL_SECONDS = 180


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def read(path: Path):
    return nbformat.read(path, as_version=4)


def defined(cell) -> list[str]:
    """The functions and classes that a cell defines at its top level."""
    body = ast.parse(cell.source).body
    return [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


def solved(notebook):
    """The lesson with every exercise replaced by the library's own source."""
    from course_lib.classroom import EXERCISES
    from course_lib.classroom.display import solution_source

    for cell in notebook.cells:
        if "exercise" in tags(cell):
            names = [name for name in defined(cell) if name in EXERCISES]
            parts = [solution_source(name) for name in names]
            cell.source = "\n\n\n".join(parts)
    return notebook


def twice(notebook):
    """Every cell, and then every cell again, in the same kernel."""
    again = [nbformat.from_dict(json.loads(json.dumps(cell))) for cell in notebook.cells]
    for cell in again:
        cell.id = f"{cell.id}-again"
    notebook.cells = [*notebook.cells, *again]
    return notebook


class Runner:
    """Run cells of a lesson one by one in a fresh kernel, in a folder of its own."""

    def __init__(self, notebook, folder: Path, *, strict: bool, **environment: str):
        self.notebook = notebook
        self.client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )  # fmt: skip
        self.environment = os.environ | {
            "COURSE_FOLDER": str(folder), "COURSE_STRICT": "1" if strict else "",
            **environment,
        }  # fmt: skip
        self.seconds = 0.0

    def run(self, keep=lambda cell: True) -> dict[str, CellExecutionError | None]:
        """Run the code cells that ``keep`` picks; give each cell's error, or None, by its id."""
        found, start = {}, time.monotonic()
        with self.client.setup_kernel(env=self.environment):
            for place, cell in enumerate(self.notebook.cells):
                if cell.cell_type != "code" or not keep(cell):
                    continue
                try:
                    self.client.execute_cell(cell, place)
                    found[cell.id] = None
                except CellExecutionError as error:
                    found[cell.id] = error
        self.seconds = time.monotonic() - start
        return found


def explain(found) -> str:
    """The first error, with the cell that it is from."""
    failed = {name: error for name, error in found.items() if error is not None}
    return "\n".join(f"cell {name}:\n{error}" for name, error in list(failed.items())[:2])
