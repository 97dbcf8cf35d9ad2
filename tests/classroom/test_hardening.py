"""Ways in which a check was once deceived, or a file lost something: none of them works now."""

import io
import os
import sys

import pytest
import torch

from course_lib.classroom import EXERCISES, check, quiz
from course_lib.classroom.learner_file import learner_file, passed_parts, save_part
from course_lib.classroom.quiz_widget import QuizWidget

RIGHT = "def causal_mask(n):\n    return torch.ones(n, n, dtype=torch.bool).tril()"
AROUND = {"torch": torch}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    return tmp_path


def judge(fn, name="causal_mask"):
    return EXERCISES[name].judge(fn)


def run_file():
    space = {"__name__": "mine"}
    exec(compile(learner_file().read_text(), "my_transformer.py", "exec"), space)
    return space


def right(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def test_a_result_that_can_not_be_copied_is_wrong_and_not_skipped():
    huge = torch.tensor(True)
    verdict = judge(lambda n: right(n) if n == 5 else huge.expand(10**6, 10**6))
    assert not verdict.passed


def test_an_exception_that_can_not_say_what_it_is_is_an_exception():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def mute(n):
        raise Mute

    assert "Mute" in judge(mute).feedback


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_mode_of_the_first_check_leaves_no_trace(mode):
    exercise = EXERCISES["row_softmax"]
    exercise._outcomes.clear()
    with mode():
        assert exercise.judge(exercise.reference).passed
    assert exercise.judge(exercise.reference).passed


def test_what_torch_has_not_implemented_was_attempted():
    verdict = judge(lambda n: torch.softmax(torch.arange(n * n).reshape(n, n), -1) > 0)
    assert verdict.attempted and "NotImplementedError" in verdict.feedback


def test_a_missing_return_is_not_called_a_list():
    def without_return(n):
        right(n)
        print(n)

    verdict = judge(without_return)
    assert verdict.mistakes == () and "is a `return` missing?" in verdict.feedback


def test_a_wrong_shape_is_never_called_right():
    verdict = judge(lambda s: torch.softmax(s, -1).T, "row_softmax")
    assert "results are right" not in verdict.feedback


def test_failing_on_the_same_inputs_is_not_the_same_mistake():
    def for_three_axes(q, k, v, mask=None):
        _b, _t, _d = q.shape
        return EXERCISES["scaled_dot_product_attention"].reference(q, k, v, mask)

    verdict = judge(for_three_axes, "scaled_dot_product_attention")
    assert verdict.mistakes == () and "values to unpack" in verdict.feedback


def test_dice_are_not_taken_for_a_batch_that_mixes():
    def noisy(q, k, v, mask=None):
        z, weights = EXERCISES["scaled_dot_product_attention"].reference(q, k, v, mask)
        return z + torch.rand(z.shape).to(z.dtype), weights

    verdict = judge(noisy, "scaled_dot_product_attention")
    assert "two different results" in verdict.feedback
    assert "influence each other" not in verdict.feedback


def test_a_part_of_another_lesson_is_told_where_it_is():
    def uses_it(q, k, v, mask=None):
        weights = row_softmax(q @ k.mT)  # noqa: F821
        return weights @ v, weights

    said = judge(uses_it, "scaled_dot_product_attention").feedback
    assert "from my_transformer import row_softmax" in said


def test_a_mask_in_brackets_is_told_to_broadcast():
    def by_index(q, k, v, mask=None):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            scores[~mask] = -torch.inf
        weights = torch.softmax(scores, -1)
        return weights @ v, weights

    assert "broadcast" in judge(by_index, "scaled_dot_product_attention").feedback


def test_an_exit_ends_the_call_alone(monkeypatch):
    class Shell:
        ended = False

        def ask_exit(self):
            self.ended = True

    shell = Shell()
    monkeypatch.setattr("course_lib.classroom.sandbox_state.get_ipython", lambda: shell)

    def leaves(n):
        shell.ask_exit()

    assert "SystemExit" in judge(leaves).feedback and not shell.ended
    shell.ask_exit()
    assert shell.ended


def test_a_recursion_limit_that_would_end_the_kernel_is_refused():
    def deep(n):
        sys.setrecursionlimit(10**9)

    before = sys.getrecursionlimit()
    assert "could end the kernel" in judge(deep).feedback
    assert sys.getrecursionlimit() == before and sys.setrecursionlimit.__name__ != "limited"


def test_a_method_added_to_tensors_is_taken_away_again():
    def patches(n):
        torch.Tensor.softmax = lambda self, dim: self * 0
        return right(n)

    said = judge(patches).feedback
    assert torch.ones(2).softmax(-1).tolist() == [0.5, 0.5]
    assert "torch.Tensor.softmax" in said


def test_stdout_and_the_working_folder_are_put_back(tmp_path):
    before = sys.stdout, os.getcwd()

    def moves(n):
        sys.stdout = io.StringIO()
        os.chdir(tmp_path)
        return right(n)

    said = judge(moves).feedback
    assert (sys.stdout, os.getcwd()) == before
    assert "sys.stdout" in said and "working folder" in said


def test_torchs_own_patches_are_not_blamed_on_the_learner():
    def loads(n):
        import torch._dynamo  # noqa: F401

        return right(n)

    assert "replaced" not in judge(loads).feedback


def test_an_unusual_dtype_is_told_as_one():
    verdict = judge(lambda s: torch.softmax(s, -1).to(torch.float8_e4m3fn), "row_softmax")
    assert "torch.float8_e4m3fn, expected torch.float32" in verdict.feedback


def test_half_a_character_can_be_shown(capsys):
    def causal_mask(n):
        print("\ud800")
        return right(n)

    check(causal_mask)
    assert "Right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEG", -float("inf")),
        ("PAIR", (float("inf"), 1)),
        ("NONE", float("nan")),
        ("ONE", (2,)),
        ("SET", frozenset({1.5})),
    ],
)
def test_a_constant_is_written_so_that_python_reads_it_back(name, value):
    source = f"def causal_mask(n, extra={name}):\n    return {name}, extra"
    assert save_part("causal_mask", source, {name: value}) == "Saved in my_transformer.py."
    assert repr(run_file()[name]) == repr(value)


def test_what_can_not_be_written_is_named(folder):
    around = {"T": (torch.tensor(1.0),), "f": lambda x: x}
    said = save_part("causal_mask", "def causal_mask(n):\n    return T, f", around)
    assert "`T`" in said and "`f`" in said and "could not be saved" in said
    assert "causal_mask" in run_file()


def test_a_file_that_does_not_run_is_said_to(folder):
    said = save_part("causal_mask", "@missing\ndef causal_mask(n):\n    return n", {})
    assert "does not run by itself yet: line" in said and "NameError" in said


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("def causal_mask(", "def causal_maskk("),
        lambda text: text.replace(
            "def causal_mask(n):\n    ", "if 1:\n  def causal_mask(n):\n    "
        ),
        lambda text: text.replace("# ==== end of causal_mask ====\n", ""),
    ],
)
def test_a_part_that_was_spoilt_by_hand_is_kept_aside_and_told(folder, spoil):
    save_part("causal_mask", RIGHT, AROUND)
    spoilt = spoil(learner_file().read_text())
    learner_file().write_text(spoilt)
    said = save_part("padding_mask", "def padding_mask(lengths, max_len):\n    return 1", {})
    (aside,) = folder.glob("my_transformer_unreadable_*.py")
    assert aside.read_text() == spoilt and aside.name in said


def test_a_new_part_wins_over_one_whose_end_was_lost(folder):
    save_part("causal_mask", RIGHT.replace("return", "return 'old',"), AROUND)
    text = learner_file().read_text()
    learner_file().write_text(text.replace("# ==== end of causal_mask ====\n", ""))
    save_part("causal_mask", RIGHT, AROUND)
    assert isinstance(run_file()["causal_mask"](2), torch.Tensor)


def test_own_lines_stay_above_or_below_the_parts():
    save_part("causal_mask", RIGHT, AROUND)
    text = learner_file().read_text()
    learner_file().write_text(
        "from __future__ import annotations\nSIZE = 3\n" + text + "\nEND = 1\n"
    )
    save_part("padding_mask", "def padding_mask(lengths, max_len=3):\n    return 1", {})
    text = learner_file().read_text()
    assert text.index("SIZE = 3") < text.index("part: causal_mask") < text.index("END = 1")
    assert run_file()["SIZE"] == 3


def test_a_file_with_a_byte_order_mark_is_read():
    save_part("causal_mask", RIGHT, AROUND)
    learner_file().write_text("\ufeff" + learner_file().read_text(), encoding="utf-8")
    assert "causal_mask" in passed_parts()


def test_a_monstrous_file_is_set_aside(folder):
    learner_file().write_text("x = " + "1+" * 50_000 + "1\n")
    save_part("causal_mask", RIGHT, AROUND)
    assert list(folder.glob("my_transformer_unreadable_*.py")) and run_file()["causal_mask"]


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(folder):
    real = folder / "elsewhere.py"
    real.write_text("")
    real.chmod(0o640)
    learner_file().symlink_to(real)
    save_part("causal_mask", RIGHT, AROUND)
    assert learner_file().is_symlink() and "causal_mask" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_gone_costs_no_error(folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.delenv("COURSE_FOLDER")
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "could not be written" in save_part("causal_mask", RIGHT, AROUND)


def test_a_history_too_deep_to_read_is_set_aside(folder):
    (folder / "quiz_history.json").write_text("[" * 100_000)
    said = str(quiz("00", answers={1: "a"}))
    assert said.startswith("1a)")


@pytest.mark.parametrize("answers", [{"1": "a"}, {1.0: "a"}, {1: ["a"]}, "a", {99: "a"}])
def test_answers_of_another_form_get_a_sentence(answers):
    with pytest.raises(ValueError, match=r"question|answers"):
        quiz("00", answers=answers)


def test_answers_that_no_page_of_ours_sends_are_left_alone():
    widget = quiz("00")
    assert isinstance(widget, QuizWidget)
    first = widget.questions[0]["id"]
    widget.answers = {first: 99}
    widget.answers = {first: "a", "no such question": 0}
    assert widget.note == ""
