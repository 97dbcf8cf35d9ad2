"""The questions of a lesson, and what the learner answered to them."""

import json
import random
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from course_lib.classroom.storage import course_folder, explain_failure, locked
from course_lib.files import write_whole

BANKS = Path(__file__).parent / "quizzes"
HISTORY = "quiz_history.json"


@dataclass(frozen=True)
class Choice:
    """One answer that can be chosen, whether it is right, and why."""

    text: str
    right: bool
    why: str


@dataclass(frozen=True)
class Question:
    """A question with one right choice; ``code`` is shown below it where there is some."""

    id: str
    question: str
    choices: tuple[Choice, ...]
    code: str = ""

    @property
    def right(self) -> Choice:
        return next(choice for choice in self.choices if choice.right)


def questions_of(lesson: str, folder: Path = BANKS) -> tuple[Question, ...]:
    """Read a lesson's bank; each question's choices in an order of its own, always the same.

    Errors: ValueError for a lesson without a bank, or a bank that is not well formed.
    """
    path = folder / f"{lesson}.json"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.json")))
        raise ValueError(f"there is no quiz {lesson!r}; there are {known}")
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["lesson"] != lesson:
        raise ValueError(f"{path.name} is the bank of lesson {data['lesson']!r}")
    return tuple(_question(entry, path.name) for entry in data["questions"])


def _question(entry: dict, file: str) -> Question:
    choices = [Choice(**choice) for choice in entry["choices"]]
    right = sum(choice.right for choice in choices)
    if right != 1:
        raise ValueError(f"{file}: question {entry['id']!r} has {right} right choices, expected 1")
    random.Random(entry["id"]).shuffle(choices)
    return Question(entry["id"], entry["question"], tuple(choices), entry.get("code", ""))


def quiz_history() -> dict[str, list[dict]]:
    """All answers so far, by question id, oldest first."""
    return _read(course_folder() / HISTORY)


def keep_answer(question: Question, choice: Choice) -> str:
    """Add an answer to the history; return a sentence where that failed, else nothing."""
    path = Path(HISTORY)
    entry = {
        "answer": choice.text,
        "right": choice.right,
        "at": datetime.now().isoformat(timespec="seconds"),
    }
    try:
        path = course_folder() / HISTORY
        with locked(path):
            history = _read(path, set_aside=True)
            history.setdefault(question.id, []).append(entry)
            write_whole(path, json.dumps(history, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        return f"Your answer counts, but {explain_failure(error, path)}"
    return ""


def _read(path: Path, set_aside: bool = False) -> dict[str, list[dict]]:
    try:
        history = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(history, dict) and all(map(_is_list_of_answers, history.values())):
            return history
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        pass
    if set_aside:
        stamp = datetime.now().strftime("%Y-%m-%d_%H%M%S_%f")
        path.replace(path.with_name(f"quiz_history_unreadable_{stamp}.json"))
    return {}


def _is_list_of_answers(value) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("right"), bool) for entry in value
    )
