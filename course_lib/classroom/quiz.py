"""A quiz at the end of a lesson: choose, and be told why, right or wrong."""

import html
from collections.abc import Mapping

from course_lib.classroom.markup import marked
from course_lib.classroom.quiz_bank import Question, keep_answer, questions_of


def quiz(lesson: str, answers: Mapping[int, str] | None = None):
    """Show the questions of a lesson.

    With ``answers``, such as ``{1: "b", 3: "a"}``, the verdicts on these come as text: for where
    there are no widgets.

    Errors: ValueError for a lesson without a quiz, or for an answer that is no choice.
    """
    questions = questions_of(lesson)
    if answers is not None:
        return PlainText("\n\n".join(_verdicts(questions, answers)))
    from course_lib.classroom.quiz_widget import QuizWidget

    return QuizWidget(lesson, questions)


class PlainText:
    """Text that a notebook shows as it is."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def as_text(lesson: str, questions: tuple[Question, ...]) -> str:
    """The whole quiz as plain text, without the answers."""
    blocks = []
    for number, question in enumerate(questions, start=1):
        lines = [f"{number}. {question.question}"]
        lines += [f"       {line}" for line in question.code.splitlines()]
        lines += [f"   {letter}) {choice.text}" for letter, choice in lettered(question)]
        blocks.append("\n".join(lines))
    how = f'To answer here, write for example: quiz("{lesson}", answers={{1: "a", 2: "c"}})'
    return "\n\n".join([*blocks, how])


def as_html(lesson: str, questions: tuple[Question, ...]) -> str:
    """The quiz for a page that runs nothing: each answer opens its explanation."""
    blocks = []
    for question in questions:
        code = f"<pre>{html.escape(question.code)}</pre>" if question.code else ""
        choices = "".join(
            f"<details><summary>{letter}) {marked(choice.text)}</summary>"
            f"<p><strong>{said(choice.right)}</strong> {marked(choice.why)}</p></details>"
            for letter, choice in lettered(question)
        )
        blocks.append(f"<li><p>{marked(question.question)}</p>{code}{choices}</li>")
    return f'<section aria-label="Quiz {html.escape(lesson)}"><ol>{"".join(blocks)}</ol></section>'


def lettered(question: Question):
    return zip("abcdefgh", question.choices, strict=False)


def said(right: bool) -> str:
    return "Right." if right else "Not this one."


def _verdicts(questions: tuple[Question, ...], answers: Mapping[int, str]):
    if not isinstance(answers, Mapping):
        raise ValueError(f'answers is {answers!r}, expected for example {{1: "a", 2: "c"}}')
    for number, letter in answers.items():
        if type(number) is not int or not 1 <= number <= len(questions):
            raise ValueError(
                f"there is no question {number!r}: they are numbered 1 to {len(questions)}"
            )
        question = questions[number - 1]
        choices = dict(lettered(question))
        if not isinstance(letter, str) or letter not in choices:
            raise ValueError(f"question {number} has no choice {letter!r}: {', '.join(choices)}")
        choice = choices[letter]
        note = keep_answer(question, choice)
        yield f"{number}{letter}) {said(choice.right)} {choice.why} {note}".rstrip()
