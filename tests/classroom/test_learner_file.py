"""The learner's file: whole at every moment, nothing lost, and alone with torch."""

import errno
import inspect
import math
import os
import re
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from filelock import FileLock
from torch import nn

from course_lib.classroom import learner_file, quiz, storage
from course_lib.classroom.learner_file import passed_parts, save_part
from course_lib.transformer.attention import causal_mask, scaled_dot_product_attention


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    return tmp_path


def text(folder):
    return (folder / "my_transformer.py").read_text(encoding="utf-8")


def run_alone(folder, code):
    """Run code in a Python that does not know the course, in the learner's folder."""
    blocked = "import sys; sys.modules['course_lib'] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + textwrap.dedent(code)],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip


def test_a_part_is_saved_and_read_back(folder):
    assert save_part("causal_mask", "def causal_mask(n):\n    return n") == (
        "Saved in my_transformer.py."
    )
    assert passed_parts() == {"causal_mask": "def causal_mask(n):\n    return n"}


def test_parts_stand_in_the_order_of_the_course_whatever_came_first(folder):
    for name in ("scaled_dot_product_attention", "zebra", "row_softmax", "causal_mask"):
        save_part(name, f"def {name}(): pass")
    names = ["row_softmax", "causal_mask", "scaled_dot_product_attention", "zebra"]
    places = [text(folder).index(f"part: {name}") for name in names]
    assert places == sorted(places)


def test_a_new_version_replaces_the_old_one_which_is_kept(folder):
    save_part("causal_mask", "def causal_mask(n): return 1")
    save_part("causal_mask", "def causal_mask(n): return 2")
    save_part("causal_mask", "def causal_mask(n): return 2")
    assert passed_parts()["causal_mask"].endswith("return 2")
    kept = list((folder / ".my_transformer_history").iterdir())
    assert [file.read_text().strip() for file in kept] == ["def causal_mask(n): return 1"]


def test_lines_of_the_learners_own_and_edits_inside_a_part_stay(folder):
    save_part("causal_mask", "def causal_mask(n): return 1")
    path = folder / "my_transformer.py"
    path.write_text(text(folder).replace("return 1", "return 11") + "\nMY_OWN = 5\n")
    save_part("row_softmax", "def row_softmax(x): return x")
    save_part("row_softmax", "def row_softmax(x): return -x")
    assert run_alone(folder, "import my_transformer as m; print(m.causal_mask(0), m.MY_OWN)") == (
        "11 5"
    )
    assert text(folder).count("my own lines") == 1


def test_the_file_runs_with_torch_alone_and_brings_imports_and_helpers(folder):
    namespace = {"torch": torch, "nn": nn, "math": math, "F": nn.functional, "STEPS": 3}
    code = """
    def half(x):
        return x / math.sqrt(4) * STEPS

    def double(x: torch.Tensor) -> torch.Tensor:
        return F.relu(half(x) * 4)

    class Doubler(nn.Module):
        factor = 2

        def forward(self, x):
            return other(x)
    """
    code = textwrap.dedent(code)
    path = folder / "cell.py"
    path.write_text(code)
    exec(compile(code, str(path), "exec"), namespace)
    namespace["other"] = namespace["double"]
    assert save_part("double", inspect.getsource(namespace["double"]), namespace) == (
        "Saved in my_transformer.py."
    )
    doubler = code[code.index("class Doubler") :]
    save_part("Doubler", doubler, namespace)
    out = run_alone(
        folder,
        "import torch, my_transformer as m; print(m.double(torch.ones(1)).item(), "
        "m.Doubler()(torch.ones(1)).item())",
    )
    assert out == "6.0 6.0"
    assert text(folder).count("import math\n") == 1


def test_the_librarys_own_parts_run_alone_too(folder):
    for part in (causal_mask, scaled_dot_product_attention):
        note = save_part(part.__name__, inspect.getsource(part), part.__globals__)
        assert note == "Saved in my_transformer.py."
    out = run_alone(
        folder,
        """
        import torch, my_transformer as m
        z, weights = m.scaled_dot_product_attention(*[torch.ones(2, 3)] * 3, m.causal_mask(2))
        print(weights.tolist())
        """,
    )
    assert out == "[[1.0, 0.0], [0.5, 0.5]]"


def test_what_cannot_be_saved_with_a_part_is_named(folder):
    note = save_part("f", "def f(x): return model(x) + unknown", {"model": nn.Linear(1, 1)})
    assert "`model`, `unknown`" in note and "Move what it needs into the function" in note


def test_a_file_that_is_no_python_any_more_is_set_aside_and_loses_nothing(folder):
    save_part("causal_mask", "def causal_mask(n): return 1")
    save_part("row_softmax", "def row_softmax(x): return x")
    broken = text(folder).replace("def row_softmax(x)", "def row_softmax(x") + "MY_OWN = 5\n"
    (folder / "my_transformer.py").write_text(broken)
    assert list(passed_parts()) == ["causal_mask"]
    note = save_part("padding_mask", "def padding_mask(a, b): return a")
    aside = next(folder.glob("my_transformer_unreadable_*.py"))
    assert aside.name in note and aside.read_text() == broken
    assert list(passed_parts()) == ["causal_mask", "padding_mask"]
    run_alone(folder, "import my_transformer")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "writable"), (errno.EACCES, "COURSE_FOLDER")],
)
def test_a_file_that_cannot_be_written_is_explained_and_left_whole(
    folder, monkeypatch, number, remedy
):
    save_part("causal_mask", "def causal_mask(n): return 1")
    before = text(folder)

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(storage.os, "replace", fail)
    note = save_part("row_softmax", "def row_softmax(x): return x")
    assert note.startswith("Your part counts, but my_transformer.py could not be written")
    assert remedy in note and text(folder) == before
    assert not list(folder.glob(".*.tmp"))


def test_a_folder_that_is_not_there_is_made(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path / "new" / "course"))
    assert "Saved" in save_part("row_softmax", "def row_softmax(x): return x")
    assert "row_softmax" in passed_parts()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's own odd places")
@pytest.mark.parametrize("place", ["/proc", "/proc/self/new", "/sys", "/dev/full", "/dev/null/x"])
def test_a_folder_that_takes_no_files_is_said_at_once(monkeypatch, place):
    monkeypatch.setenv("COURSE_FOLDER", place)
    monkeypatch.setattr(storage, "WAIT", 600.0)
    note = save_part("row_softmax", "def row_softmax(x): return x")
    assert re.fullmatch(
        r"Your part counts, but my_transformer\.py could not be written: [^.]*\. [^.]*\.", note
    )
    assert place in note and "COURSE_FOLDER" in note
    assert quiz("00", answers={1: "a"}).text.endswith(note.split("written: ")[1])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks files by other means")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_drive_that_refuses_locks_is_said_at_once(folder, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    note = save_part("row_softmax", "def row_softmax(x): return x")
    assert os.strerror(number) in note and f"The drive of {folder} can't lock files" in note


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks files by other means")
def test_on_a_drive_without_locks_a_part_is_saved_and_nothing_is_warned_of(folder, monkeypatch):
    def lacking(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", lacking)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert (
            save_part("row_softmax", "def row_softmax(x): return x")
            == "Saved in my_transformer.py."
        )
    assert told == [] and "row_softmax" in passed_parts()


def test_a_file_that_another_notebook_holds_costs_two_seconds(folder):
    with FileLock(folder / ".my_transformer.py.lock"):
        code = (
            "import time; from course_lib.classroom.learner_file import save_part\n"
            "began = time.monotonic()\n"
            "print(save_part('row_softmax', 'def row_softmax(x): return x'))\n"
            "print(time.monotonic() - began)"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    note, seconds = run.stdout.splitlines()
    assert "another notebook has held my_transformer.py for 2 seconds" in note
    assert 2 <= float(seconds) < 4


def test_eight_processes_at_once_lose_no_part(folder):
    code = (
        "import sys; from course_lib.classroom import storage\n"
        "from course_lib.classroom.learner_file import save_part\n"
        "storage.WAIT = 60.0\n"
        "for i in range(5): save_part(f'part{sys.argv[1]}{i}', "
        "f'def part{sys.argv[1]}{i}(): return {i}')"
    )
    jobs = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(8)]
    assert [job.wait() for job in jobs] == [0] * 8
    assert len(passed_parts()) == 40
    run_alone(folder, "import my_transformer")


def test_a_writer_killed_in_the_middle_leaves_the_file_whole(folder):
    save_part("causal_mask", "def causal_mask(n): return 1")
    code = (
        "import os, signal\n"
        "from course_lib.classroom import storage, learner_file\n"
        "storage.os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
        "learner_file.save_part('row_softmax', 'def row_softmax(x): return x')"
    )
    job = subprocess.run([sys.executable, "-c", code])
    assert job.returncode == -9
    assert list(passed_parts()) == ["causal_mask"]
    assert learner_file.save_part("row_softmax", "def row_softmax(x): return x").startswith("Saved")
    assert list(passed_parts()) == ["row_softmax", "causal_mask"]


def test_a_helper_behind_a_decorator_brings_the_imports_of_its_own_module(folder):
    from course_lib.transformer import positions

    source = inspect.getsource(positions.scaled_embedding)
    assert save_part("scaled_embedding", source, vars(positions)) == "Saved in my_transformer.py."
    assert "from collections.abc import Iterator" in text(folder)
    assert "def known_ids(" in text(folder)
