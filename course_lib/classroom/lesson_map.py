"""The map of the lessons, with what the learner has passed."""

import html

from course_lib.classroom.learner_file import passed_parts
from course_lib.classroom.lessons import LESSONS, Lesson
from course_lib.classroom.quiz_bank import questions_of, quiz_history

_STYLE = (
    "border-collapse:collapse;text-align:left;color:var(--jp-content-font-color1,inherit);"
    "font-family:var(--jp-content-font-family,inherit)"
)
_CELL = "padding:6px 14px 6px 0;vertical-align:top;text-align:left;border-bottom:1px solid #8888"


class LessonMap:
    """The lessons that there are and the learner's own progress, as a table and as text."""

    def __init__(self):
        parts, history = set(passed_parts()), quiz_history()
        self.rows = [(lesson, *_progress(lesson, parts, history)) for lesson in LESSONS]

    def __repr__(self) -> str:
        return "\n".join(
            f"{lesson.number} {lesson.title} ({lesson.minutes} minutes): {lesson.question}\n"
            f"   Parts: {parts}. Quiz: {quiz}."
            for lesson, parts, quiz in self.rows
        )

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th scope="col" style="{_CELL}">{head}</th>'
            for head in ("Lesson", "The question it answers", "Minutes", "Parts you built", "Quiz")
        )
        rows = "".join(_row(*row) for row in self.rows)
        return (
            f'<table style="{_STYLE}"><caption style="text-align:left;padding:4px 0">Your way '
            f"through the lessons</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def lesson_map() -> LessonMap:
    """Show the lessons and what of them is done, read from ``my_transformer.py`` and the quizzes.

    It is read anew at each call, so it can't disagree with the file.
    """
    return LessonMap()


def _progress(lesson: Lesson, parts: set[str], history: dict) -> tuple[str, str]:
    passed = [name for name in lesson.exercises if name in parts]
    text = f"{len(passed)} of {len(lesson.exercises)}"
    if passed:
        text += f": {', '.join(passed)}"
    questions = questions_of(lesson.number)
    right = sum(bool(history.get(q.id)) and history[q.id][-1]["right"] for q in questions)
    return text, f"{right} of {len(questions)} right"


def _row(lesson: Lesson, parts: str, quiz: str) -> str:
    title = f"{lesson.number} {html.escape(lesson.title)}"
    cells = (html.escape(lesson.question), lesson.minutes, html.escape(parts), quiz)
    return (
        f'<tr><th scope="row" style="{_CELL}"><a href="{lesson.file}">{title}</a></th>'
        + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        + "</tr>"
    )
