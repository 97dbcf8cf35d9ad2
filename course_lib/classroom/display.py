"""Check a part and show what was found; show the library's own source."""

import ast
import difflib
import html
import os
import sys
from collections.abc import Callable

from IPython import get_ipython
from IPython.display import display
from torch import nn

from course_lib.classroom.borrowed import global_names, import_line
from course_lib.classroom.exercises import EXERCISES
from course_lib.classroom.learner_file import FILE, SAVED, passed_parts, run_file, save_part
from course_lib.classroom.lessons import PART_ORDER
from course_lib.classroom.markup import paragraphs
from course_lib.classroom.source import source_of, without_checks
from course_lib.classroom.verdict import CheckFailed, Verdict

_TITLES = {"passed": "✓ Right", "open": "○ Not attempted yet", "failed": "✗ Not right yet"}
_EDGES = {"passed": "#2e8b57", "open": "#8a8a94", "failed": "#c2410c"}


def check(fn: Callable) -> Callable:
    """Judge a part by its name, show the verdict, and give back the part to go on with.

    That is the learner's own where it is right, else the library's. A right part is saved in
    ``my_transformer.py``. With ``COURSE_STRICT=1`` in the environment, a part that is not right
    raises CheckFailed.
    """
    name = getattr(fn, "__name__", "")
    exercise = EXERCISES.get(name)
    if exercise is None:
        return _unknown(fn, name)
    verdict = exercise.judge(fn)
    tail = _saved(fn, name) if verdict.passed else _going_on(name, verdict)
    _show(name, verdict, tail)
    if not verdict.passed and _is_strict():
        raise CheckFailed(f"{name}: {verdict.feedback.splitlines()[0]}")
    return fn if verdict.passed else exercise.reference


def show_solution(name: str) -> None:
    """Show the library's own source of a part, with the imports that it needs.

    Errors: ValueError for a name that is no exercise.
    """
    if name not in EXERCISES:
        raise ValueError(_no_exercise(name))
    code = solution_source(name)
    _display({"text/markdown": f"```python\n{code}\n```", "text/plain": code})


def solution_source(name: str) -> str:
    """The library's source of a part, below the imports that it needs: it runs as it stands."""
    part = EXERCISES[name].reference
    source = without_checks(source_of(part))
    around = vars(sys.modules[part.__module__])
    lines = {import_line(used, around[used]) for used in global_names(source) if used in around}
    return "\n\n\n".join(["\n".join(sorted(lines)), source]).strip()


def _is_strict() -> bool:
    return os.environ.get("COURSE_STRICT", "") not in ("", "0")


def _no_exercise(name: str) -> str:
    near = difflib.get_close_matches(name, EXERCISES, n=1)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    return f"There is no exercise `{name}`. {hint}There are: {', '.join(PART_ORDER)}."


def _unknown(fn, name: str):
    if isinstance(fn, nn.Module):
        kind = type(fn).__name__
        text = (
            f"Got one {kind} that is built already, expected the class itself: write "
            f"`check({kind})`."
        )
    elif not callable(fn):
        text = (
            f"Got {type(fn).__name__}, expected the function itself: write `check(causal_mask)`, "
            "without calling it and without quotes."
        )
    else:
        named = name.isidentifier()
        text = (
            f"The check finds a function by its name. {_no_exercise(name)}"
            if named
            else (
                "The check finds a function by its name, and this one has none: write "
                "`def causal_mask(n):`, with the name of the exercise, and hand that in."
            )
        )
    _show(name, Verdict(False, (), text), "")
    if _is_strict():
        raise CheckFailed(text)
    return fn


def _saved(fn: Callable, name: str) -> str:
    if (fn.__module__ or "").split(".")[0] == "course_lib":
        return "This is the library's own part, so there is nothing of yours to save."
    try:
        source = source_of(fn)
        if name not in {getattr(node, "name", None) for node in ast.parse(source).body}:
            raise OSError(f"no definition of {name}")
    except (OSError, SyntaxError):
        return "Its source can't be read here, so it was not saved in my_transformer.py."
    around = getattr(fn, "__globals__", None) or vars(sys.modules[fn.__module__])
    said = save_part(name, source, around)
    return " ".join([said, *_misfits(name)]) if said == SAVED else said


def _misfits(name: str) -> list[str]:
    """Judge the part where it stands now, in the learner's file, and those that call it.

    There it meets the learner's other parts, and not those that it met in the notebook.
    """
    parts = passed_parts()
    space = run_file()
    concerned = [p for p, source in parts.items() if p == name or name in global_names(source)]
    for part in concerned:
        if part in EXERCISES and part in space:
            verdict = EXERCISES[part].judge(space[part])
            if not verdict.passed:
                reason = verdict.feedback.splitlines()[0]
                return [
                    f"But in {FILE} `{part}` calls your other parts, and there it does not pass: "
                    f"{reason} Write `{part}` so that it calls them as the exercises have it, and "
                    "check it again."
                ]
    return []


def _going_on(name: str, verdict: Verdict) -> str:
    if not verdict.attempted:
        return f"Until then the lesson goes on with the library's `{name}`."
    return f"The lesson goes on with the library's `{name}`. Change yours and check again."


def _show(name: str, verdict: Verdict, tail: str) -> None:
    state = "passed" if verdict.passed else "failed" if verdict.attempted else "open"
    title = f"{_TITLES[state]}: {name}" if name else _TITLES[state]
    body = "\n\n".join(part for part in (verdict.feedback, tail) if part)
    page = (
        f'<div role="status" style="border-left:4px solid {_EDGES[state]};padding:2px 12px;'
        'max-width:760px;overflow-wrap:anywhere;color:var(--jp-content-font-color1,inherit)">'
        f'<p style="margin:6px 0"><strong>{html.escape(title)}</strong></p>{paragraphs(body)}</div>'
    )
    _display({"text/html": page, "text/plain": f"{title}\n\n{body}"})


def _display(forms: dict[str, str]) -> None:
    # A lone surrogate in a learner's text can't be sent to the page.
    forms = {kind: text.encode("utf-8", "replace").decode() for kind, text in forms.items()}
    if get_ipython() is None:  # a plain Python shows text alone
        print(forms["text/plain"])
    else:
        display(forms, raw=True)
