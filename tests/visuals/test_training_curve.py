"""A run as it goes: what is drawn, what is said, and the button that starts one."""

import re

import pytest

from course_lib.training.checkpoint import History
from course_lib.visuals import training_curve
from course_lib.visuals.live_run import LiveRun
from course_lib.visuals.training_curve import TrainingCurve


def history(n, ended="", evaluations=()):
    return History([2.0 / (i + 1) for i in range(n)], list(evaluations), n / 10, ended)


def test_the_curves_hold_what_the_run_saw_and_follow_it():
    curve = TrainingCurve("accuracy")
    figure = curve.draw(history(3), steps=8)
    again = curve.draw(history(5, evaluations=[(2, 0.25), (4, 0.5)]), steps=8)
    assert again is figure
    loss, share = (ax.lines[0] for ax in figure.axes)
    assert list(loss.get_xdata()) == [1, 2, 3, 4, 5] and list(loss.get_ydata()) == history(5).losses
    assert list(share.get_xdata()) == [2, 4] and list(share.get_ydata()) == [0.25, 0.5]
    assert figure.axes[0].get_xlim() == (0, 8) and figure.axes[1].get_ylabel() == "accuracy"


def test_a_loss_without_bound_leaves_the_axes_finite():
    curve = TrainingCurve()
    run = History([1.0, float("inf"), float("nan")], [], 0.1, "")
    low, high = curve.draw(run, None).axes[0].get_ylim()
    assert (low, high) == (0, 1.05)


def test_outside_of_a_notebook_lines_are_printed_seldom_and_the_end_always(capsys, monkeypatch):
    clock = iter([0.0, 0.0, 0.4, 0.8, 1.2, 1.2, 1.3, 1.3])
    monkeypatch.setattr(training_curve.time, "monotonic", lambda: next(clock))
    curve = TrainingCurve()
    for n in (1, 2, 3, 4):
        curve(history(n), 5)
    curve(history(5, ended="all 5 steps done", evaluations=[(5, 1.0)]), 5)
    lines = capsys.readouterr().out.splitlines()
    assert [re.match(r"step (\d)", line)[1] for line in lines] == ["1", "4", "5"]
    assert lines[-1].endswith("exact match 100.0 %, 0 s: all 5 steps done")


def test_in_a_notebook_one_output_is_replaced_and_has_words(monkeypatch):
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)

    def display(bundle, raw, display_id):
        shown.append(bundle)
        return Handle()

    monkeypatch.setattr(training_curve, "display", display)
    monkeypatch.setattr(training_curve, "SECONDS", 0.0)
    monkeypatch.setattr(
        training_curve, "get_ipython", lambda: type("Shell", (), {"kernel": object()})()
    )
    curve = TrainingCurve("<accuracy>")
    curve(history(2), 4)
    curve(history(4, ended="all 4 steps done"), 4)
    assert 'progress max="4" value="2"' in shown[0]["text/html"]
    assert "progress" not in shown[1]["text/html"] and "all 4 steps done" in shown[1]["text/html"]
    assert all("<accuracy>" not in bundle["text/html"] for bundle in shown)
    assert all(re.search(r'alt="Loss and [^"]+ step \d', bundle["text/html"]) for bundle in shown)


def run(watch):
    watch(history(2), 4)
    watch(history(4, ended="all 4 steps done"), 4)
    return "1.00 of <them>"


def test_a_run_is_started_followed_and_its_result_is_said():
    live = LiveRun({"first": lambda watch: "no", "second": run}, choose="Model")
    live.choice.value = "second"
    live.button.click()
    assert live._words.value == (
        '<p role="status" aria-live="polite">second: 1.00 of &lt;them&gt;</p>'
    )
    assert "<img alt" in live._curve.value and live._bar.value == live._bar.max == 4
    assert not live.button.disabled and live._bar.layout.visibility == "hidden"


def test_an_error_in_a_run_is_shown_and_raised_and_the_button_lives():
    def fail(watch):
        raise RuntimeError("<b>no</b>")

    live = LiveRun({"only": fail}, choose="Model")
    with pytest.raises(RuntimeError):
        live.start("only")
    assert "&lt;b&gt;no" in live._words.value and not live.button.disabled


def test_where_there_are_no_widgets_a_sentence_names_the_runs():
    bundle = LiveRun({"a <run>": run}, choose="Model")._repr_mimebundle_()
    assert "a &lt;run&gt;" in bundle["text/html"] and "a <run>" in bundle["text/plain"]
