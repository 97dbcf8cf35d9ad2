"""A small language pair that nobody has to download: numbers in words."""

import random
from functools import lru_cache

from num2words import num2words

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


def split_numbers(
    n_train: int = 2000, n_test: int = 2000, seed: int = 0
) -> tuple[list[int], list[int]]:
    """Return the numbers to train on and the numbers to test on; none is in both.

    Those to train on are drawn first: most numbers below 100 are among them, there are so few.

    >>> train, test = split_numbers()
    >>> len(train), len(test), set(train) & set(test)
    (2000, 2000, set())
    """
    drawn = draw_numbers(n_train + n_test, seed)
    return drawn[:n_train], drawn[n_train:]
