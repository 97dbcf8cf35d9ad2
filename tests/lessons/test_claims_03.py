"""Lesson 03: what it says of heads holds over five seeds."""

import pytest

SEEDS = range(5)


@pytest.fixture(scope="module")
def lesson(claims):
    return claims("03")


@pytest.fixture(scope="module")
def pickers(lesson):
    return {h: [lesson["trained"](h, seed) for seed in SEEDS] for h in (1, 2, 4, 8)}


def test_one_and_two_heads_can_not_do_what_four_can(lesson, pickers):
    got = {h: [lesson["explained"](m).mean().item() for m in pickers[h]] for h in pickers}
    assert max(got[1]) < 0.5 and max(got[2]) < 0.8
    assert min(got[4]) > 0.95 and min(got[8]) > 0.95


def test_all_of_them_have_the_same_parameters(pickers):
    assert len({sum(p.numel() for p in pickers[h][0].parameters()) for h in pickers}) == 1


def test_each_of_four_heads_takes_a_box_of_its_own_and_it_is_lost_without_it(lesson, pickers):
    for model in pickers[4]:
        lost = []
        for head in range(4):
            left = lesson["explained"](lesson["without"](model, head))
            lost.append(left.argmin().item())
            assert left.min() < 0.4
            assert left.topk(3).values.min() > 0.8
        assert sorted(lost) == [0, 1, 2, 3]
