"""The house: arrows point down, imports are light, files are small, docstrings are true."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import course_lib

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "course_lib").rglob("*.py"))
NAMES = [m.name for m in pkgutil.walk_packages(course_lib.__path__, "course_lib.")]
# What each room may import of the others.
MAY = {
    "transformer": set(),
    "files": set(),
    "training": {"transformer", "files"},
    "pretrained": {"transformer"},
    "visuals": set(),
    "classroom": {"transformer", "training", "visuals", "files"},
    "health": {"pretrained", "classroom"},
}
MOST_LINES = 300


def room_of(path):
    return path.relative_to(ROOT / "course_lib").parts[0].removesuffix(".py")


def imported(path):
    """The modules that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down(path):
    room = room_of(path)
    if room == "__init__":
        return
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "course_lib" and len(parts) > 1 and parts[1] != room:
            assert parts[1] in MAY[room], f"{room} imports {module}"
        if room == "transformer":
            assert parts[0] in {"torch", "course_lib", *sys.stdlib_module_names}, module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_small(path):
    lines = path.read_text("utf-8").count("\n")
    if path.parent.name == "exercises":  # banks are data: one file for each kind of part
        return
    assert lines <= MOST_LINES


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("course_lib.transformer.encoder_decoder", ["matplotlib", "IPython", "transformers"]),
        ("course_lib.classroom", ["matplotlib", "transformers", "ipywidgets"]),
        ("course_lib.visuals.plots", ["torch", "transformers", "matplotlib.pyplot"]),
        ("course_lib.pretrained.minilm", ["transformers", "matplotlib", "IPython"]),
    ],
)
def test_importing_a_room_brings_nothing_heavy(module, unwanted):
    code = f"import sys, {module}; print([m for m in {unwanted} if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


def test_no_module_prints_on_import():
    names = [n for n in NAMES if not n.endswith("make_example")]
    assert run("\n".join(f"import {name}" for name in names)).stdout == ""


def public_parts():
    for name in NAMES:
        module = importlib.import_module(name)
        for label, part in vars(module).items():
            if label.startswith("_") or getattr(part, "__module__", None) != name:
                continue
            if inspect.isfunction(part) or inspect.isclass(part):
                yield f"{name}.{label}", part


PARTS = dict(public_parts())


@pytest.mark.parametrize("name", [n for n in PARTS if ".transformer." in n])
def test_a_part_of_the_subject_says_shapes_and_shows_an_example(name):
    text = inspect.getdoc(PARTS[name]) or ""
    assert ">>>" in text
    skipped = ("Config", "identity", "check_attention_inputs", "set_forget_bias")
    if not name.endswith(skipped) and ".checks." not in name:
        assert "Shapes:" in text


def texts():
    for pattern in ("*.py", "*.md", "*.toml", "*.ipynb", "*.mjs", "*.yml", "Makefile", "*.json"):
        for path in ROOT.rglob(pattern):
            if not {".venv", ".git", "build", "dist"} & set(path.relative_to(ROOT).parts):
                yield path


def test_no_file_names_a_folder_of_somebodys_machine():
    found = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/")
    bad = [
        f"{path.relative_to(ROOT)}: {line.strip()[:80]}"
        for path in texts()
        for line in path.read_text("utf-8").splitlines()
        if found.search(line) and path.name != Path(__file__).name
    ]
    assert bad == []
