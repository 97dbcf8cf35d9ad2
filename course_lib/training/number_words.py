"""A small language pair that nobody has to download: numbers in words."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from num2words import num2words

from course_lib.training.data import Pair, Vocabulary

LARGEST = 999_999
LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
_STEMS = ("vier", "fünf", "sech", "sieb", "acht", "neun")
_UNITS = ("null", "ein", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TEENS = ("zehn", "elf", "zwölf", "dreizehn", *(f"{stem}zehn" for stem in _STEMS))
_TENS = ("zwanzig", "dreißig", *(f"{stem}zig" for stem in _STEMS))
_GERMAN = (*_UNITS, *_TEENS, *_TENS, "und", "hundert", "tausend")


def number_pieces(number: int, language: str) -> list[str]:
    """Write a number in words, and cut the words where their meanings meet.

    English and French are cut at spaces and hyphens; a comma is a piece of its own. German is
    written in one word and is cut into the longest pieces that mean something. num2words 0.5
    writes *hunderteinstausend*; German has *hunderteintausend*, and so do we.

    Errors: ValueError for a number outside of 0 to 999,999, or an unknown language.

    >>> number_pieces(21, "en"), number_pieces(21, "de"), number_pieces(21, "fr")
    (['twenty', 'one'], ['ein', 'und', 'zwanzig'], ['vingt', 'et', 'un'])
    """
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r} is not one of {', '.join(LANGUAGES)}")
    if not 0 <= number <= LARGEST:
        raise ValueError(f"number {number} is not between 0 and {LARGEST}")
    return list(_pieces(int(number), language))


@lru_cache(maxsize=50_000)
def _pieces(number: int, language: str) -> tuple[str, ...]:
    words = num2words(number, lang=language)
    if language == "de":
        return tuple(_cut(words.replace("einstausend", "eintausend")))
    return tuple(words.replace("-", " ").replace(",", " ,").split())


def _cut(word: str) -> list[str]:
    """Cut a German number word, at each place into the longest piece that fits."""
    pieces, place = [], 0
    while place < len(word):
        fitting = [piece for piece in _GERMAN if word.startswith(piece, place)]
        if not fitting:
            raise ValueError(f"no piece fits {word!r} from {word[place:]!r} on")
        pieces.append(max(fitting, key=len))
        place += len(pieces[-1])
    return pieces


def join_pieces(pieces: list[str], language: str) -> str:
    """Put pieces together as they are written: German as one word, others with spaces.

    >>> join_pieces(["ein", "und", "zwanzig"], "de"), join_pieces(["two", ",", "one"], "en")
    ('einundzwanzig', 'two, one')
    """
    return "".join(pieces) if language == "de" else " ".join(pieces).replace(" ,", ",")


def draw_numbers(count: int, seed: int) -> list[int]:
    """Draw different numbers, the number of digits first: else small ones are almost absent.

    >>> numbers = draw_numbers(1000, seed=0)
    >>> len(set(numbers)), sum(number < 10_000 for number in numbers) > 300
    (1000, True)
    """
    dice, seen = random.Random(seed), {}
    while len(seen) < count:
        number = dice.randrange(10 ** dice.choice((2, 3, 4, 5, 6, 6)))
        seen.setdefault(number)
    return list(seen)


@dataclass(frozen=True)
class NumberTask:
    """English numbers and the same in another language: three parts, no number in two of them."""

    language: str
    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]
    vocabulary: Vocabulary


def number_task(
    language: str = "de",
    *,
    n_train: int = 8000,
    n_validation: int = 500,
    n_test: int = 2000,
    seed: int = 0,
) -> NumberTask:
    """Make the task of translating numbers from English.

    The numbers to train on are drawn first: all below 100 are among them, there are so few. The
    vocabulary holds what occurs in training, of both languages.

    >>> task = number_task("de", n_train=500)
    >>> len(task.train), len(task.test), set(task.train) & set(task.test)
    (500, 2000, set())
    """
    return split_task(
        draw_numbers(n_train + n_validation + n_test, seed), n_train, n_test, language
    )


def split_task(
    numbers: Sequence[int], n_train: int, n_test: int, language: str = "de"
) -> NumberTask:
    """Make a task of different numbers: the first to train on, the last to test on.

    >>> split_task(range(10), n_train=6, n_test=3).validation
    ((('six',), ('sechs',)),)
    """
    pairs = tuple(
        (tuple(number_pieces(number, "en")), tuple(number_pieces(number, language)))
        for number in numbers
    )
    train, rest = pairs[:n_train], len(pairs) - n_test
    return NumberTask(
        language=language,
        train=train,
        validation=pairs[n_train:rest],
        test=pairs[rest:],
        vocabulary=Vocabulary.of(sentence for pair in train for sentence in pair),
    )
