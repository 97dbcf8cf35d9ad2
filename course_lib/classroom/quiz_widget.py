"""The quiz as a widget: real radio buttons, an explanation at once, keys that stay inside."""

from pathlib import Path

import anywidget
import traitlets

from course_lib.classroom.quiz import as_html, as_text, said
from course_lib.classroom.quiz_bank import Question, keep_answer
from course_lib.visuals._widget import joined_module


class QuizWidget(anywidget.AnyWidget):
    """Show the questions of a lesson; ``answers`` holds the chosen places, by question id."""

    _esm = joined_module(Path(__file__).parent / "quiz.mjs")
    lesson = traitlets.Unicode().tag(sync=True)
    questions = traitlets.List().tag(sync=True)
    answers = traitlets.Dict().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    # ipywidgets 7 shows a widget by this method, and would leave out the other forms.
    _ipython_display_ = None

    def __init__(self, lesson: str, questions: tuple[Question, ...]):
        self._bank = {question.id: question for question in questions}
        super().__init__(lesson=lesson, questions=[_sent(question) for question in questions])
        self.observe(self._keep, "answers")

    def _keep(self, change) -> None:
        notes = []
        for name, place in change.new.items():
            question = self._bank.get(name)
            if question is None or place not in range(len(question.choices)):
                continue  # not from this page
            if change.old.get(name) != place:
                notes.append(keep_answer(question, question.choices[place]))
        self.note = " ".join(note for note in notes if note)

    def __repr__(self) -> str:
        return as_text(self.lesson, tuple(self._bank.values()))

    def _repr_mimebundle_(self, **options):
        live, metadata = super()._repr_mimebundle_(**options)
        bank = tuple(self._bank.values())
        other = {"text/html": as_html(self.lesson, bank), "text/plain": repr(self)}
        return {**live, **other}, metadata


def _sent(question: Question) -> dict:
    return {
        "id": question.id,
        "question": question.question,
        "code": question.code,
        "choices": [
            {"text": choice.text, "right": choice.right, "said": said(choice.right),
             "why": choice.why}
            for choice in question.choices
        ],
    }  # fmt: skip
