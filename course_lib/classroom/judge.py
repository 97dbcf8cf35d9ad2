"""Judge a learner's part: run it on the probes, compare, recognise the mistake, say it."""

import dis
from collections.abc import Callable

from course_lib.classroom.compare import same_outcome
from course_lib.classroom.feedback import (
    describe_failure,
    describe_pass,
    describe_stop,
)
from course_lib.classroom.judge_observe import observe
from course_lib.classroom.judge_parts import Outcome, Probe, Seen
from course_lib.classroom.judge_recognise import recognise
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
    if outcomes and outcomes[0].error and "NotImplementedError" in outcomes[0].error.kinds:
        return Verdict(False, (), NOT_ATTEMPTED.format(exercise.name), attempted=False)
    if run.stopped:
        return Verdict(False, (), describe_stop(exercise, run))
    seen = [
        Seen(probe, exercise.arguments, exercise.results, outcome, right)
        for probe, outcome, right in zip(probes, outcomes, expected, strict=False)
    ]
    steady = same_outcome(outcomes[-1], outcomes[0])
    wrong = [one for one in seen if not is_right(one)]
    if not wrong and steady:
        return Verdict(True, (), describe_pass(exercise, run))
    found = recognise(exercise, seen) if wrong else ()
    names = tuple(dict.fromkeys(mistake.name for group in found for mistake in group))
    return Verdict(False, names, describe_failure(exercise, run, seen, wrong, found, steady))


def is_right(seen: Seen) -> bool:
    """Whether the learner's part did on this probe what it should."""
    if seen.probe.raises is not None:
        error = seen.outcome.error
        return error is not None and seen.probe.raises.__name__ in error.kinds
    return seen.outcome.error is None and same_outcome(seen.outcome, seen.expected)


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
