"""Judge a learner's part: run it on the probes, compare, recognise the mistake, say it."""

import dis
from collections.abc import Callable

from course_lib.classroom.compare import is_right, same_outcome
from course_lib.classroom.feedback import (
    describe_failure,
    describe_pass,
    describe_stop,
)
from course_lib.classroom.judge_observe import observe
from course_lib.classroom.judge_parts import Outcome, Probe, Seen
from course_lib.classroom.judge_recognise import evident, recognise
from course_lib.classroom.sandbox import run_each
from course_lib.classroom.verdict import Verdict

NOT_ATTEMPTED = "Not attempted yet. Replace the `...` in `{}` by your own lines, then check again."


def judge(exercise, fn: Callable, *, time_limit: float | None = None) -> Verdict:
    """Compare ``fn`` with the exercise's reference; show nothing, change nothing."""
    if not callable(fn):
        return Verdict(False, (), _not_a_function(exercise, fn))
    if is_stub(fn):
        return Verdict(False, (), NOT_ATTEMPTED.format(exercise.name), attempted=False)
    probes = exercise.probes
    expected = [exercise.expected(probe) for probe in probes]

    def call(probe: Probe) -> Callable[[], Outcome]:
        return lambda: observe(exercise, fn, probe)

    # The first probe comes once more at the end: a part that rolls dice gives another result.
    run = run_each([call(probe) for probe in (*probes, probes[0])], time_limit)
    outcomes = run.results
    error = outcomes[0].error if outcomes else None
    if error and "NotImplementedError" in error.kinds and error.by_own_line:
        return Verdict(False, (), NOT_ATTEMPTED.format(exercise.name), attempted=False)
    if run.stopped:
        return Verdict(False, (), describe_stop(exercise, run))
    if len(outcomes) < len(probes) + 1:
        raise RuntimeError(f"the check of {exercise.name} ended after {len(outcomes)} inputs")
    seen = [
        Seen(probe, exercise.arguments, exercise.results, outcome, right)
        for probe, outcome, right in zip(probes, outcomes, expected, strict=False)
    ]
    steady = same_outcome(outcomes[-1], outcomes[0])
    wrong = [one for one in seen if not is_right(one)]
    if not wrong and steady:
        return Verdict(True, (), describe_pass(exercise, run))
    found = recognise(exercise, seen) if wrong else ()
    shown = evident(exercise, seen) if wrong and steady and not found else ()
    named = [*(mistake for group in found for mistake in group), *(mistake for mistake, _ in shown)]
    names = tuple(dict.fromkeys(mistake.name for mistake in named))
    return Verdict(False, names, describe_failure(exercise, run, seen, wrong, found, shown, steady))


def is_stub(fn: Callable) -> bool:
    """Whether a function (or a class's ``forward``) does nothing at all yet.

    >>> def unsolved(x): ...
    >>> is_stub(unsolved), is_stub(lambda x: x)
    (True, False)
    """
    if isinstance(fn, type):
        fn = fn.__dict__.get("forward", fn)
    if not hasattr(fn, "__code__"):
        return False
    idle = {"RESUME", "NOP", "POP_TOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    steps = list(dis.get_instructions(fn))
    constants = {step.argval for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")}
    return {step.opname for step in steps} <= idle and constants <= {None, Ellipsis, fn.__doc__}


def _not_a_function(exercise, fn) -> str:
    return (
        f"Got {type(fn).__name__}, expected the function itself: write "
        f"`check({exercise.name})`, without calling it."
    )
