"""Every lesson three ways: as shipped, solved under strict twice over, unsolved under strict."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from lessons import LESSONS, Runner, defined, explain, read, solved, tags, twice
from rules import wide_rows

from course_lib.classroom import EXERCISES

EACH = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name[:2])
FAR_BEYOND = 3 * 90  # seconds; a lesson should run within 90


def nbval(path, folder):
    """Run nbval's lax check: no cell may fail, and kept outputs must come again."""
    return subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "nbval_times", "-p", "no:cacheprovider",
            "-c", os.devnull, "--rootdir", str(folder), "--nbval-lax", "--nbval-current-env",
            "--nbval-cell-timeout=180", "-q", "--tb=short", str(path),
        ],
        env=os.environ | {
            "COURSE_FOLDER": str(folder), "COURSE_STRICT": "",
            "PYTHONPATH": str(Path(__file__).parent),
        },
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip


@EACH
def test_a_lesson_runs_as_shipped_and_its_facts_come_again(path, tmp_path):
    run = nbval(path, tmp_path)
    assert run.returncode == 0, run.stdout[-4000:]
    assert re.search(r"\d+ passed", run.stdout)


@EACH
def test_a_solved_lesson_passes_every_check_twice_over_in_one_kernel(path, tmp_path, capsys):
    runner = Runner(twice(solved(read(path))), tmp_path, strict=True)
    found = runner.run()
    assert not any(found.values()), explain(found)
    assert list(wide_rows(runner.notebook)) == []
    with capsys.disabled():
        print(f"\n{path.name}: {runner.seconds / 2:.0f} s for one run, solved", end=" ")
    assert runner.seconds / 2 < FAR_BEYOND
    names = [n for cell in read(path).cells if "exercise" in tags(cell) for n in defined(cell)]
    written = (tmp_path / "my_transformer.py").read_text("utf-8")
    assert all(f"part: {name} " in written for name in names if name in EXERCISES)


@EACH
def test_each_unsolved_exercise_fails_by_its_own_check(path, tmp_path):
    notebook = read(path)
    runner = Runner(notebook, tmp_path, strict=True)
    needed = {"setup", "exercise", "check"}
    found = runner.run(lambda cell: needed & set(tags(cell)))
    checks = [cell for cell in notebook.cells if "check" in tags(cell)]
    assert checks
    for cell in checks:
        name = re.search(r"check\((\w+)\)", cell.source).group(1)
        error = found.pop(cell.id)
        assert error is not None and error.ename == "CheckFailed", f"{cell.id}: {error}"
        assert error.evalue.startswith(f"{name}: Not attempted yet")
    assert not any(found.values()), explain(found)


def small(folder, *sources):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    path = folder / "small.ipynb"
    nbformat.write(notebook, path)
    return path


def test_a_cell_that_swallows_the_interrupt_of_the_time_limit_fails(tmp_path):
    source = "import time\ntry:\n    time.sleep(60)\nexcept BaseException:\n    pass"
    path = small(tmp_path, source)
    run = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "nbval_times", "-c", os.devnull, "--rootdir",
            str(tmp_path), "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=3", "-q",
            str(path),
        ],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 1 and "time limit" in run.stdout, run.stdout[-2000:]


def test_an_output_that_has_changed_fails(tmp_path):
    path = small(tmp_path, "print(1 + 1)")
    notebook = nbformat.read(path, 4)
    notebook.cells[0].metadata["tags"] = ["nbval-check-output"]
    notebook.cells[0].execution_count = 1
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text="3\n")]
    nbformat.write(notebook, path)
    assert nbval(path, tmp_path).returncode == 1
    notebook.cells[0].outputs[0].text = "2\n"
    nbformat.write(notebook, path)
    assert nbval(path, tmp_path).returncode == 0
