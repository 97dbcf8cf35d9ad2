"""Lesson 04: what it says of training holds over five seeds."""

import pytest

from course_lib.transformer.positions import sinusoidal_positions

SEEDS = range(5)


@pytest.fixture(scope="module")
def lesson(claims):
    return claims("04", positions=sinusoidal_positions)


@pytest.fixture(scope="module")
def first(lesson):
    return [lesson["readers"](seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def last(lesson):
    return [lesson["readers"](seed, answer=-1) for seed in SEEDS]


def test_without_positions_the_first_symbol_is_guessed(lesson, first):
    for models in first:
        for n in (4, 6, 8):
            assert abs(lesson["accuracy"](models["none"], n) - 1 / n) < 0.06


@pytest.mark.parametrize("kind", ["added", "learned", "concatenated"])
def test_each_kind_of_position_solves_it_within_the_trained_lengths(lesson, first, last, kind):
    for answer, runs in ((0, first), (-1, last)):
        for models in runs:
            for n in (4, 6, 8):
                assert lesson["accuracy"](models[kind], n, answer) > 0.9


def test_one_symbol_further_the_sinusoids_carry_and_the_learned_table_does_not(lesson, last):
    for models in last:
        assert lesson["accuracy"](models["learned"], 9, -1) < 0.2
        for kind in ("added", "concatenated"):
            assert lesson["accuracy"](models[kind], 9, -1) > 0.6


@pytest.mark.parametrize("kind", ["added", "learned", "concatenated"])
def test_all_fail_at_twice_the_trained_length(lesson, last, kind):
    for models in last:
        assert lesson["accuracy"](models[kind], 16, -1) < 0.5
