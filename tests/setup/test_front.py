"""The first file that runs: on any Python, with one clear line where it does not fit."""

import ast
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import setup_environment

# A later syntax hides from ast.parse's feature_version as a fine tuple or name; these do not.
LATER = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Starred, ast.Await)


def stand_in(version: str) -> str:
    """A shell script that answers as this Python would, and shows what it is asked to run."""
    numbers = " ".join(version.split("."))
    return (
        f'if [ "$1" = -c ]; then echo "{numbers}"; else echo "{version} runs $(basename $1) $2"; fi'
    )


def run_front(root, folder, code_before: str, **environment):
    """Run the front with another sys.version_info, and only `folder` on PATH."""
    front = root / "tools" / "setup_environment.py"
    code = (
        f"import sys; sys.argv = [{str(front)!r}, 'lab']; {code_before};"
        f"exec(compile(open({str(front)!r}).read(), {str(front)!r}, 'exec'),"
        f" {{'__name__': '__main__', '__file__': {str(front)!r}}})"
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYTHON"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PATH": f"{folder}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )


def one_line(done) -> str:
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_an_old_python_can_read_the_file(root):
    text = (root / "tools" / "setup_environment.py").read_text()
    tree = ast.parse(text, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, LATER)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert not node.args.kwonlyargs and node.returns is None
            assert not any(argument.annotation for argument in node.args.args)
    assert text.isascii()


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 9, 18), (3, 14, 0)])
def test_a_python_out_of_range_is_named_with_the_remedy(root, stub, version):
    folder = stub("python3.12", "exit 127")
    for minor in (10, 11, 13):
        stub_file = folder / f"python3.{minor}"
        stub_file.write_text("#!/bin/sh\nexit 127\n")
        stub_file.chmod(0o755)
    line = one_line(run_front(root, folder, f"sys.version_info = {version}"))
    assert f"Python {version[0]}.{version[1]}" in line
    assert setup_environment.NEEDED in line
    assert "make lab PYTHON=" in line


def test_another_python_on_the_path_takes_over_and_is_named(root, stub):
    folder = stub("python3.13", "echo 'a version manager: not found'; exit 127")
    stub_file = folder / "python3.12"
    stub_file.write_text(f"#!/bin/sh\n{stand_in('3.12')}\n")
    stub_file.chmod(0o755)
    done = run_front(root, folder, "sys.version_info = (3, 9, 2)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "python3 is Python 3.9, and the course needs Python 3.10 to 3.13: using python3.12.",
        "3.12 runs setup_environment.py lab",
    ]


def test_a_python_that_was_chosen_is_not_replaced(root, stub):
    folder = stub("python3.12", stand_in("3.12"))
    done = run_front(root, folder, "sys.version_info = (3, 9, 2)", PYTHON="/somewhere/python3.9")
    assert "Python 3.9" in one_line(done)


def test_windows_is_sent_to_its_own_three_lines(monkeypatch, capsys):
    # The module's own `os`: with the real one renamed, pathlib itself would think this is Windows.
    monkeypatch.setattr(setup_environment, "os", SimpleNamespace(name="nt"))
    assert setup_environment.main(["lab"]) == 1
    said = capsys.readouterr().err
    assert "README" in said and said.count("\n") == 1


def test_make_says_so_where_there_is_no_python(root, tmp_path):
    done = subprocess.run(
        ["make", "lab", "PYTHON=/nowhere/python3"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode
    first, *rest = done.stderr.splitlines()
    assert first.startswith("No Python at '/nowhere/python3'. Install Python 3.10 to 3.13")
    assert all(line.startswith("make") for line in rest)


def test_make_alone_lists_every_target_in_one_line_each(root):
    # Inside another make it would say which folder it enters.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    said = subprocess.run(
        ["make"], cwd=root, capture_output=True, text=True, check=True, env=alone
    ).stdout
    phony = next(
        line for line in (root / "Makefile").read_text().splitlines() if line.startswith(".PHONY:")
    )
    assert [line.split()[1] for line in said.splitlines()] == phony.split()[1:]
    assert all(line.endswith(".") and len(line) < 90 for line in said.splitlines())
