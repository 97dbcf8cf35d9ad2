"""The quiz: well-formed banks, answers explained and kept, text where there are no widgets."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from course_lib.classroom import quiz_bank
from course_lib.classroom.quiz import as_html, as_text, quiz
from course_lib.classroom.quiz_bank import BANKS, keep_answer, questions_of, quiz_history
from course_lib.classroom.quiz_widget import QuizWidget

BANK = {
    "lesson": "77",
    "questions": [
        {
            "id": f"77-{n}",
            "question": f"Is `a < {n}`?",
            "code": "print('<b>')" if n else "",
            "choices": [
                {"text": f"yes {n}", "right": True, "why": "It is."},
                {"text": f"<i>no</i> {n}", "right": False, "why": "Look again."},
                {"text": f"perhaps {n}", "right": False, "why": "It is one or the other."},
            ],
        }
        for n in range(7)
    ],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    return tmp_path


@pytest.fixture
def bank(tmp_path, monkeypatch):
    folder = tmp_path / "banks"
    folder.mkdir()
    (folder / "77.json").write_text(json.dumps(BANK))
    monkeypatch.setattr(quiz_bank, "BANKS", folder)
    monkeypatch.setattr(quiz_bank.questions_of, "__defaults__", (folder,))
    return questions_of("77")


def letter_of(question, right):
    return next(x for x, c in zip("abc", question.choices, strict=True) if c.right == right)


def test_an_answer_is_explained_and_kept(bank):
    answers = {1: letter_of(bank[0], True), 2: letter_of(bank[1], False)}
    text = repr(quiz("77", answers=answers))
    assert "Right. It is." in text and "Not this one." in text
    history = quiz_history()
    assert history["77-0"][0]["right"] and not history["77-1"][0]["right"]


def test_answers_that_are_no_choice_are_refused_with_what_there_is(bank):
    with pytest.raises(ValueError, match="no question 9: they are numbered 1 to 7"):
        quiz("77", answers={9: "a"})
    with pytest.raises(ValueError, match="no choice 'z': a, b, c"):
        quiz("77", answers={1: "z"})
    with pytest.raises(ValueError, match="there is no quiz '78'; there are 77"):
        quiz("78")


def test_choices_are_shuffled_the_same_way_each_time(bank):
    assert bank == questions_of("77")
    assert len({[c.right for c in q.choices].index(True) for q in bank}) > 1


def test_plain_text_holds_all_and_gives_no_answer_away(bank):
    text = as_text("77", bank)
    assert "1. Is `a < 0`?" in text and "a)" in text and 'quiz("77", answers=' in text
    assert "It is." not in text


def test_what_stands_in_a_bank_is_escaped(bank):
    page = as_html("77", bank)
    assert "<i>no" not in page and "&lt;i&gt;no" in page and "<code>a &lt; 0</code>" in page
    assert "print('&lt;b&gt;')" in page or "&lt;b&gt;" in page


def test_the_widget_keeps_answers_as_they_are_chosen(bank):
    widget = QuizWidget("77", bank)
    widget.answers = {"77-3": 1}
    widget.answers = {"77-3": 2, "77-4": 0}
    history = quiz_history()
    assert [entry["answer"] for entry in history["77-3"]] == [
        bank[3].choices[1].text,
        bank[3].choices[2].text,
    ]
    assert len(history["77-4"]) == 1 and widget.note == ""


def test_the_widget_comes_in_three_forms(bank):
    bundle, _ = QuizWidget("77", bank)._repr_mimebundle_()
    assert set(bundle) >= {
        "application/vnd.jupyter.widget-view+json", "text/html", "text/plain",
    }  # fmt: skip


def test_a_history_that_is_no_json_is_set_aside_and_not_lost(bank, folder):
    (folder / "quiz_history.json").write_text("{broken")
    assert quiz_history() == {}
    assert keep_answer(bank[0], bank[0].right) == ""
    assert next(folder.glob("quiz_history_unreadable_*")).read_text() == "{broken"
    assert list(quiz_history()) == ["77-0"]


def test_a_full_disk_is_explained(bank, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quiz_bank, "write_whole", fail)
    assert "Free some space" in keep_answer(bank[0], bank[0].right)


def test_eight_processes_at_once_lose_no_answer(folder):
    code = (
        "import sys\nfrom course_lib.classroom import storage\n"
        "from course_lib.classroom.quiz_bank import Choice, Question, keep_answer\n"
        "storage.WAIT = 60.0\n"
        "c = Choice('yes', True, 'so')\n"
        "for i in range(5): keep_answer(Question(f'{sys.argv[1]}-{i}', 'q', (c,)), c)"
    )
    jobs = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(8)]
    assert [job.wait() for job in jobs] == [0] * 8
    assert len(quiz_history()) == 40


FILES = sorted(BANKS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_bank_is_whole(path):
    questions = questions_of(path.stem)
    assert len(questions) >= 6
    assert all(q.id.startswith(f"{path.stem}-") for q in questions)
    assert sum(bool(q.code) or "picture" in q.question.lower() for q in questions) >= 2
    for question in questions:
        texts = [choice.text for choice in question.choices]
        assert 3 <= len(texts) == len(set(texts)), question.id
        assert all(choice.why.strip() for choice in question.choices), question.id


def test_question_ids_are_unique_over_all_banks():
    ids = Counter(q.id for path in FILES for q in questions_of(path.stem))
    assert [name for name, count in ids.items() if count > 1] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_longest_choice_is_not_a_tell(path):
    questions = questions_of(path.stem)
    longest = sum(max(q.choices, key=lambda c: len(c.text)).right for q in questions)
    by_chance = sum(1 / len(q.choices) for q in questions)
    assert longest <= by_chance + 1, f"right is longest {longest} times, chance {by_chance:.1f}"
