"""The map of the lessons: the notebooks that there are, and the learner's own progress."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_lib.classroom.learner_file import save_part
from course_lib.classroom.lesson_map import lesson_map
from course_lib.classroom.lessons import LESSONS, PART_ORDER
from course_lib.classroom.quiz_bank import keep_answer, questions_of

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))


def test_the_table_holds_the_notebooks_that_there_are():
    assert [lesson.file for lesson in LESSONS] == sorted(p.name for p in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.number)
def test_title_question_minutes_and_exercises_are_those_of_the_notebook(lesson):
    cells = json.loads((NOTEBOOKS / lesson.file).read_text(encoding="utf-8"))["cells"]
    first = "".join(cells[0]["source"])
    assert first.startswith(f"# {lesson.title}\n")
    assert f"{lesson.minutes} minutes" in first
    assert lesson.question.casefold() in first.casefold()
    code = ["".join(cell["source"]) for cell in cells
            if "exercise" in cell["metadata"].get("tags", [])]  # fmt: skip
    for name in lesson.exercises:
        assert any(f"def {name}(" in text or f"class {name}(" in text for text in code), name


def test_no_part_stands_twice_in_the_order():
    assert len(set(PART_ORDER)) == len(PART_ORDER)


def test_progress_is_read_from_the_files_at_each_call():
    assert "Parts: 0 of 3." in repr(lesson_map())
    save_part("causal_mask", "def causal_mask(n): ...")
    question = questions_of("02")[0]
    keep_answer(question, question.right)
    text = repr(lesson_map())
    assert "Parts: 1 of 3: causal_mask." in text
    assert f"1 of {len(questions_of('02'))} right" in text


class Tables(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_the_table_can_be_heard_and_links_to_each_lesson():
    parser = Tables()
    parser.feed(lesson_map()._repr_html_())
    tags = [tag for tag, _ in parser.tags]
    assert "caption" in tags
    assert [a["href"] for tag, a in parser.tags if tag == "a"] == [x.file for x in LESSONS]
    assert all(a.get("scope") in ("row", "col") for tag, a in parser.tags if tag == "th")
