"""Lesson 01: what it says of distance holds over five seeds."""

import pytest
import torch

SEEDS = range(5)
SECONDS = 10.0  # more than the lesson gives, for a slow or busy machine


@pytest.fixture(scope="module")
def lesson(claims):
    return claims("01")


def recall(lesson, build, distance):
    runs = (lesson["trained"](build, distance, seed=s, seconds=SECONDS) for s in SEEDS)
    return [lesson["accuracy"](model, distance) for model, _ in runs]


def test_both_have_the_same_parameters_within_two_per_cent(lesson):
    one, other = (
        sum(p.numel() for p in lesson[name]().parameters()) for name in ("Recurrent", "Attending")
    )
    assert abs(one / other - 1) < 0.02


def test_the_lstm_remembers_over_ten_and_not_over_fifty_or_two_hundred(lesson):
    assert min(recall(lesson, lesson["Recurrent"], 10)) > 0.9
    for distance in (50, 200):
        assert max(recall(lesson, lesson["Recurrent"], distance)) < 0.3


@pytest.mark.parametrize("distance", [10, 50, 200])
def test_attention_remembers_at_any_of_these_distances(lesson, distance):
    assert min(recall(lesson, lesson["Attending"], distance)) > 0.9


def test_a_forget_bias_carries_the_lstm_further_and_not_all_the_way(lesson):
    def build():
        return lesson["Recurrent"](forget_bias=3.0)

    assert min(recall(lesson, build, 20)) > 0.9
    assert max(recall(lesson, build, 200)) < 0.5


def test_the_lstms_gradient_vanishes_and_attentions_shrinks_as_one_over_n(lesson):
    for seed in SEEDS:
        torch.manual_seed(seed)
        models = {name: build().double() for name, build in lesson["KINDS"].items()}
        near, far = (
            {name: lesson["gradient_at_first"](model, n, seed) for name, model in models.items()}
            for n in (10, 200)
        )
        assert 0 < far["LSTM"] < 1e-20 * near["LSTM"]
        assert 3 < near["attention"] / far["attention"] < 100
        assert far["LSTM, forget bias 3"] > 1e6 * far["LSTM"]
