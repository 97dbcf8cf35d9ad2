"""check and show_solution: what a learner sees, what is given back, what is saved."""

import pytest
import torch

from course_lib.classroom import CheckFailed, check, show_solution
from course_lib.classroom.display import solution_source
from course_lib.classroom.exercises import EXERCISES
from course_lib.classroom.learner_file import passed_parts
from course_lib.classroom.markup import paragraphs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    monkeypatch.delenv("COURSE_STRICT", raising=False)


def causal_mask(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def wrong():
    def causal_mask(n):
        return torch.ones(n, n, dtype=torch.bool)

    return causal_mask


def stub():
    def causal_mask(n): ...

    return causal_mask


def test_a_right_part_is_given_back_and_saved(capsys):
    assert check(causal_mask) is causal_mask
    assert "✓ Right: causal_mask" in capsys.readouterr().out
    assert "tril()" in passed_parts()["causal_mask"]


def test_a_wrong_part_gives_the_librarys_and_saves_nothing(capsys):
    assert check(wrong()) is EXERCISES["causal_mask"].reference
    said = capsys.readouterr().out
    assert "✗ Not right yet" in said and "goes on with the library's" in said
    assert passed_parts() == {}


def test_an_unsolved_part_raises_nothing(capsys):
    assert check(stub()) is EXERCISES["causal_mask"].reference
    assert "○ Not attempted yet" in capsys.readouterr().out


@pytest.mark.parametrize("part", [wrong, stub])
def test_strict_raises_and_names_the_exercise(part, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(CheckFailed, match=r"^causal_mask: "):
        check(part())
    assert check(causal_mask) is causal_mask


def test_a_name_that_is_no_exercise_is_told_what_there_is(capsys):
    def causl_mask(n): ...

    assert check(causl_mask) is causl_mask
    assert "Did you mean `causal_mask`?" in capsys.readouterr().out
    check("causal_mask")
    assert "Got str, expected the function itself" in capsys.readouterr().out


def test_the_librarys_own_part_is_not_saved_as_the_learners(capsys):
    check(EXERCISES["causal_mask"].reference)
    assert "nothing of yours to save" in capsys.readouterr().out and passed_parts() == {}


def test_a_part_without_source_still_counts(capsys):
    space = {}
    exec("import torch\ndef causal_mask(n): return torch.ones(n, n).tril().bool()", space)
    assert check(space["causal_mask"]) is space["causal_mask"]
    assert "it was not saved" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXERCISES)
def test_a_solution_is_the_librarys_source_and_runs_by_itself(name, capsys):
    space = {}
    exec(solution_source(name), space)
    assert EXERCISES[name].judge(space[name]).passed
    show_solution(name)
    kind = "class" if isinstance(space[name], type) else "def"
    assert f"{kind} {name}(" in capsys.readouterr().out


def test_a_solution_of_no_exercise_is_refused():
    with pytest.raises(ValueError, match=r"no exercise `causal_maks`. Did you mean `causal_mask`"):
        show_solution("causal_maks")


def test_feedback_is_escaped():
    page = paragraphs("a <b> & `<i>`\n\nNext: c")
    assert "<b>" not in page and "<code>&lt;i&gt;</code>" in page
