"""Lesson 05: what it says of norm order, depth and warm-up holds over five seeds."""

import math

import pytest

SEEDS = range(5)


@pytest.fixture(scope="module")
def lesson(claims):
    return claims("05")


def last(lesson, *run):
    return [lesson["train"](*run, seed).recent(20) for seed in SEEDS]


def test_twelve_post_norm_layers_at_the_full_rate_learn_nothing(lesson):
    assert min(last(lesson, 12, False, False)) > math.log(16) - 0.3


@pytest.mark.parametrize(("norm_first", "warm_up"), [(False, True), (True, False), (True, True)])
def test_twelve_layers_learn_with_a_warm_up_or_as_pre_norm(lesson, norm_first, warm_up):
    assert max(last(lesson, 12, norm_first, warm_up)) < 1.0


@pytest.mark.parametrize("depth", [2, 6])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("warm_up", [False, True])
def test_two_and_six_layers_learn_in_any_order(lesson, depth, norm_first, warm_up):
    assert max(last(lesson, depth, norm_first, warm_up)) < 1.0


def test_at_the_top_of_24_layers_the_gradient_of_post_norm_is_the_larger(lesson):
    for seed in SEEDS:
        post, pre = (lesson["gradient_sizes"](24, first, seed)[-1] for first in (False, True))
        assert post > 2 * pre


def test_sizes_explode_without_a_norm_and_do_not_with_one(lesson):
    none, pre, post = (lesson["sizes"](kind) for kind in ("no norm", "pre-norm", "post-norm"))
    assert none[-1] > 20 * pre[-1] > 20 * post[-1]
    assert max(post) < 1.05 * min(post)
