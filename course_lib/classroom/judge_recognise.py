"""Find the known mistakes that compute what the learner's part computes."""

from collections.abc import Callable

from course_lib.classroom.compare import is_right, same_outcome
from course_lib.classroom.judge_parts import Mistake, Seen

Group = tuple[Mistake, ...]


def recognise(exercise, seen: list[Seen]) -> tuple[Group, ...]:
    """Groups of mistakes: within a group they compute the same, several groups came together.

    First the mistakes that agree on every probe, then pairs that do. Where none does, mistakes
    and pairs that agree on all the ordinary inputs: the edges are then told apart.
    """
    told = tuple(m for m in exercise.mistakes if m.recognise is not None and m.recognise(seen))
    if told:
        return (told,)
    core = [one for one in seen if one.probe.core]
    for part in (seen, core):
        if not _is_telling(part):
            continue
        singles = _singles(exercise, part)
        if singles:
            return (singles,)
        for pair in exercise.all_pairs:
            if _agrees(exercise, pair.version, part):
                return tuple((mistake,) for mistake in pair.mistakes)
    return ()


def evident(exercise, seen: list[Seen]) -> tuple[tuple[Mistake, str], ...]:
    """The mistakes that show in the results of a part which equals no known version."""
    told = ((m, m.evident(seen)) for m in exercise.mistakes if m.evident is not None)
    return tuple((mistake, text) for mistake, text in told if text is not None)


def unexplained(exercise, wrong: list[Seen], found: tuple[Group, ...]) -> list[Seen]:
    """The probes on which the learner's part is wrong in another way than what was found."""
    versions = [version for group in found for m in group for version in m.versions]
    if len(found) > 1:
        names = {m.name for group in found for m in group}
        versions = [
            pair.version for pair in exercise.all_pairs if {m.name for m in pair.mistakes} == names
        ]
    return [
        one
        for one in wrong
        if not any(same_outcome(one.outcome, exercise.outcome(v, one.probe)) for v in versions)
    ]


def _singles(exercise, seen: list[Seen]) -> Group:
    return tuple(
        mistake
        for mistake in exercise.mistakes
        if any(_agrees(exercise, version, seen) for version in mistake.versions)
    )


def _agrees(exercise, version: Callable, seen: list[Seen]) -> bool:
    """Whether a faulty version does on every probe what the learner's part does.

    Where nothing but exceptions tells them from a right part, the exceptions must be the same:
    two parts may fail on the same inputs for different reasons.
    """
    pairs = []
    for one in seen:  # a version that differs soon is not run any further: there are many
        pairs.append((one.outcome, exercise.outcome(version, one.probe)))
        if not same_outcome(*pairs[-1]):
            return False
    if any(one.outcome.error is None and not is_right(one) for one in seen):
        return True
    return all(
        yours.error is None
        or (yours.error.kind, yours.error.message) == (theirs.error.kind, theirs.error.message)
        for yours, theirs in pairs
    )


def _is_telling(seen: list[Seen]) -> bool:
    """Whether these outcomes can identify a mistake: a wrong one, and not errors alone."""
    from_results = [one for one in seen if one.outcome.error is None]
    wrong = [one for one in seen if not same_outcome(one.outcome, one.expected)]
    return bool(from_results) and bool(wrong)
