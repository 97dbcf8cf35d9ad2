"""Put a verdict into words: what we saw, what it means, a next step."""

from course_lib.classroom.feedback_errors import describe_raised
from course_lib.classroom.judge_parts import Mistake, Seen
from course_lib.classroom.judge_recognise import Group, unexplained
from course_lib.classroom.properties import (
    GENERAL_PROPERTIES,
    describe_first_difference,
    where,
)
from course_lib.classroom.sandbox import Run

MOST_PROPERTIES = 3
SHOWN_LINES = 5


def describe_pass(exercise, run: Run) -> str:
    """Say that the part is right, and what else was noticed."""
    n = len(exercise.probes)
    text = f"Right. `{exercise.name}` agrees with the library's on all {n} inputs of the check."
    return _join([text, *_asides(run)])


def describe_stop(exercise, run: Run) -> str:
    """Say why the check ended a part before it was done."""
    probe = exercise.probes[len(run.results) % len(exercise.probes)]
    place = f"on {probe.name}"
    if run.stopped == "memory":
        text = (
            f"Stopped {place}: your function took more than {run.memory_limit / 2**30:.1f} GiB of "
            "memory on an input of a few hundred numbers. Look for a tensor whose size grows with "
            "the values, or for a list that never stops growing."
        )
    elif run.stopped == "stuck":
        text = (
            f"No result {place} after {run.time_limit:g} seconds, and the call could not be ended: "
            "it waits inside a library. It goes on in the background and no longer counts; restart "
            "the kernel if the machine stays busy."
        )
    else:
        text = (
            f"No result {place} after {run.time_limit:g} seconds, so the call was ended. The input "
            "is tiny: look for a loop whose end is never reached."
        )
    return _join([text, *_asides(run)])


def describe_failure(
    exercise,
    run: Run,
    seen: list[Seen],
    wrong: list[Seen],
    found: tuple[Group, ...],
    shown: tuple[tuple[Mistake, str], ...],
    steady: bool,
) -> str:
    """Explain what is wrong: errors, known mistakes, then properties and the first difference."""
    raised = [one for one in wrong if one.outcome.error is not None]
    stopped = _describe_stopped(raised, seen)
    if found:
        rest = unexplained(exercise, wrong, found) if steady else []
        told = [one for one in wrong if one not in rest]
        paragraphs = [_describe_group(group, told, whole=not rest) for group in found]
        if len(found) > 1:
            paragraphs.insert(0, "Two known mistakes together give exactly what we saw.")
        paragraphs += _describe_rest(exercise, seen, rest)
        # What stops the code on ordinary inputs comes first, what stops it at an edge last.
        if raised and raised[0].probe.core:
            paragraphs = stopped + paragraphs
        else:
            paragraphs += stopped
    else:
        right = len(seen) - len(wrong)
        counted = [] if raised else [f"Right on {right} of {len(seen)} inputs."]
        told = [_describe_shown(*one) for one in shown]
        told = told or _describe_unknown(exercise, seen, wrong, steady)
        # As above: what stops the code at an edge comes last.
        first = not raised or raised[0].probe.core
        paragraphs = [*stopped, *counted, *told] if first else [*told, *stopped]
    if not steady:
        paragraphs.append(
            "Called twice with the same input, it gave two different results: somewhere it draws "
            "random numbers or remembers an earlier call."
        )
    return _join([*paragraphs, *_asides(run)])


def _describe_stopped(raised: list[Seen], seen: list[Seen]) -> list[str]:
    """The first exception, and on how many inputs the code ran."""
    if not raised:
        return []
    text = describe_raised(raised[0])
    if raised[0].probe.raises is not None:
        text += f" A {_expected_error(raised[0])} is expected here."
    if len(raised) == len(seen):
        return [text]
    return [f"{text} It ran on {len(seen) - len(raised)} of {len(seen)} inputs."]


def _describe_group(group: Group, told: list[Seen], whole: bool) -> str:
    first = group[0]
    titles = ", or that ".join(mistake.title for mistake in group)
    reach = "" if whole else "On ordinary inputs, "
    subject = "your" if reach else "Your"
    parts = [
        _evidence(first, told),
        f"{reach}{subject} results equal those of a function that {titles}.",
        first.means,
    ]
    other = next((mistake for mistake in group[1:] if mistake.convention), None)
    if other is not None and not first.convention:
        parts.append(other.means)
    if other is not None or first.convention:
        parts.append("That is a convention, right elsewhere, and not the one of this course.")
    return f"{' '.join(part for part in parts if part)}\n\nNext: {first.next_step}"


def _describe_shown(mistake: Mistake, evidence: str) -> str:
    text = f"{evidence} Your function {mistake.title}. {mistake.means}"
    if mistake.convention:
        text += " That is a convention, right elsewhere, and not the one of this course."
    return f"{text}\n\nNext: {mistake.next_step}"


def _evidence(mistake: Mistake, told: list[Seen]) -> str:
    if mistake.saw is not None:
        for one in told:
            text = mistake.saw(one)
            if text is not None:
                return text
    form, numbers = GENERAL_PROPERTIES
    for say in (describe_first_difference, *form, *numbers, _missed_error):
        for one in told:
            if one.outcome.error is None and (text := say(one)) is not None:
                return text
    return ""


def _missed_error(seen: Seen) -> str | None:
    """An error that should have been raised and was not."""
    if seen.probe.raises is None:
        return None
    return f"{where(seen)}, expected a {_expected_error(seen)}."


def _expected_error(seen: Seen) -> str:
    named = f" that names {' and '.join(seen.probe.names)}" if seen.probe.names else ""
    return f"{seen.probe.raises.__name__}{named}"


def _describe_rest(exercise, seen: list[Seen], rest: list[Seen]) -> list[str]:
    ran = [one for one in rest if one.outcome.error is None]
    if not ran:
        return []
    told = _true_properties(exercise, seen, ran)[:1]
    return [" ".join(["Something else shows on other inputs.", *told])] if told else []


def _describe_unknown(exercise, seen: list[Seen], wrong: list[Seen], steady: bool) -> list[str]:
    ran = [one for one in wrong if one.outcome.error is None]
    if not steady:
        # Numbers drawn anew each time would be taken for effects: the form alone is told.
        form, _ = GENERAL_PROPERTIES
        told = [text for say in form for one in ran if (text := say(one)) is not None]
        return told[:1]
    told = _true_properties(exercise, seen, ran)[:MOST_PROPERTIES]
    for one in ran:
        text = describe_first_difference(one)
        if text is not None:
            told.append(text)
            break
    return told + [text for one in ran if (text := _missed_error(one)) is not None][:1]


def _true_properties(exercise, seen: list[Seen], wrong: list[Seen]) -> list[str]:
    form, numbers = GENERAL_PROPERTIES
    told = [say(seen) for say in exercise.relations]
    for say in (*form, *exercise.properties, *numbers):
        told.append(next((text for text in map(say, wrong) if text is not None), None))
    return [text for text in told if text is not None]


def _asides(run: Run) -> list[str]:
    asides = list(run.notes)
    if run.printed.text:
        lines = run.printed.text.splitlines()
        shown = "\n".join(line[:100] for line in lines[:SHOWN_LINES])
        count = max(run.printed.lines, len(lines))
        some = f"{count} lines; the first:" if count > SHOWN_LINES else "this:"
        asides.append(f"During the check your code printed {some}\n{shown}")
    return asides


def _join(paragraphs: list[str]) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
