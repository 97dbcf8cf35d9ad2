"""The bank of ``scaled_dot_product_attention``, and pairs of its mistakes."""

from collections.abc import Iterator
from itertools import combinations

from course_lib.classroom.exercises import attention_bank_scores, attention_bank_weights
from course_lib.classroom.exercises.attention_stages import attention_with
from course_lib.classroom.judge_parts import Pair

MISTAKES = attention_bank_scores.MISTAKES + attention_bank_weights.MISTAKES
_CHANGES = attention_bank_scores.CHANGES | attention_bank_weights.CHANGES


def pairs() -> Iterator[Pair]:
    """Two mistakes in different stages, made at once."""
    known = [mistake for mistake in MISTAKES if mistake.name in _CHANGES]
    for one, other in combinations(known, 2):
        for first in _CHANGES[one.name]:
            for second in _CHANGES[other.name]:
                if not first.keys() & second.keys():
                    yield Pair((one, other), attention_with(**first, **second))
