"""The lessons as Colab gets them, on the package versions that Colab has."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "tools" / "colab_requirements.txt"
LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="session")
def carried(tmp_path_factory):
    """The self-contained lessons."""
    folder = tmp_path_factory.mktemp("colab")
    command = [sys.executable, str(ROOT / "tools" / "colab.py"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def pip(python, *arguments):
    done = subprocess.run(
        [str(python), "-m", "pip", "--quiet", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="session")
def lane():
    """The Python of an environment with Colab's versions, without the course."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / "build" / f"colab-lane-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip(python, "install", "-r", str(REQUIREMENTS))
        (folder / "complete").touch()
    pip(python, "uninstall", "--yes", "attention-by-hand")
    return python


def versions(python):
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    )
    return json.loads(subprocess.run([str(python), "-c", code], capture_output=True).stdout)


def run_lesson(path, python, folder, monkeypatch):
    kernels = folder / "kernels" / "lane"
    kernels.mkdir(parents=True)
    spec = {"argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "lane", "language": "python"}  # fmt: skip
    (kernels / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(folder))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="lane",
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    # Neither this test's own environment nor the repository may help.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("PYTHONPATH", "COURSE_STRICT", "VIRTUAL_ENV")}  # fmt: skip
    client.execute(env=environment | {"COURSE_FOLDER": str(folder)})
    return notebook


def text_of(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.parametrize("name", LESSONS)
def test_a_self_contained_lesson_runs_on_colabs_versions(
    name, carried, lane, tmp_path, monkeypatch
):
    before = versions(lane)
    notebook = run_lesson(carried / name, lane, tmp_path, monkeypatch)
    first = next(cell for cell in notebook.cells if "install" in cell.metadata.get("tags", []))
    assert "The course is" in text_of(first)
    widgets = [output for cell in notebook.cells if cell.cell_type == "code"
               for output in cell.outputs
               if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]  # fmt: skip
    assert widgets
    after = versions(lane)
    assert {name: after[name] for name in before if name != "attention-by-hand"} == {
        name: before[name] for name in before if name != "attention-by-hand"
    }


def test_the_installing_cell_does_nothing_where_the_course_is(carried, lane, tmp_path, monkeypatch):
    source = next(c for c in nbformat.read(carried / LESSONS[0], 4).cells
                  if "install" in c.metadata.get("tags", [])).source  # fmt: skip
    script = tmp_path / "cell.py"
    script.write_text(source)
    run = lambda: subprocess.run([str(lane), str(script)], capture_output=True, text=True)  # noqa: E731
    assert "The course is" in run().stdout
    before = versions(lane)
    assert run().stdout.startswith("The course is here (")
    assert versions(lane) == before


def test_the_same_lessons_give_the_same_bytes(carried, tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "colab.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for name in LESSONS:
        assert (tmp_path / name).read_bytes() == (carried / name).read_bytes()


def test_a_carried_lesson_is_a_valid_notebook_that_hides_its_bytes(carried):
    for name in LESSONS:
        notebook = nbformat.read(carried / name, 4)
        nbformat.validate(notebook)
        first = notebook.cells[1]
        assert first.source.startswith("#@title") and first.metadata["cellView"] == "form"
        assert all(not c.outputs for c in notebook.cells if c.cell_type == "code")
