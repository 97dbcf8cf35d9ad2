"""Mistakes that show in the results are named however the rest was written, and never falsely."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from course_lib.classroom import EXERCISES
from course_lib.classroom.judge_parts import Seen

EVIDENT = [
    pytest.param(exercise, mistake, id=f"{name}-{mistake.name}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
    if mistake.evident is not None
]
# Of two mistakes that are made at once by one version, the second may be told of the first.
TOGETHER = {
    ("mask_added_as_numbers", "fill_not_negative_enough"),  # only differences of scores count
    ("additive_float_mask", "fill_not_negative_enough"),
    ("fill_not_negative_enough", "uniform_on_dead_row"),
    ("minus_1e9_overflows_half", "uniform_on_dead_row"),
}


def seen_of(exercise, version):
    return [
        Seen(probe, exercise.arguments, exercise.results, exercise.outcome(version, probe),
             exercise.expected(probe))
        for probe in exercise.probes
    ]  # fmt: skip


@pytest.mark.parametrize(("exercise", "mistake"), EVIDENT)
def test_the_evidence_is_told_of_its_own_mistake_alone(exercise, mistake):
    assert mistake.evident(seen_of(exercise, exercise.reference)) is None
    for other in exercise.mistakes:
        for version in other.versions:
            told = mistake.evident(seen_of(exercise, version))
            if other is mistake:
                assert told and told.endswith(".")
            elif told is not None:
                assert (other.name, mistake.name) in TOGETHER, (other.name, told)


def fill_with(value):
    return lambda s, m: s if m is None else s.masked_fill(~m, value)


def add(value):
    return lambda s, m: s if m is None else s + (1 - m.to(s.dtype)) * value


HIDES = {
    "-inf": fill_with(-math.inf),
    "-1e9": fill_with(-1e9),
    "lowest": lambda s, m: s if m is None else s.masked_fill(~m, torch.finfo(s.dtype).min),
}
GUARDS = {
    "none": lambda w, m: w,
    "no NaN": lambda w, m: w.nan_to_num(0.0),
    "dead rows": lambda w, m: w if m is None else w.masked_fill(~m.any(-1, keepdim=True), 0.0),
}


def attention(hide, guard, axis=-1, turn=lambda m: m):
    def attend(q, k, v, mask=None):
        mask = mask if mask is None else turn(mask)
        scores = hide(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), mask)
        weights = guard(torch.softmax(scores, axis), mask)
        return weights @ v, weights

    return attend


AXES = {-2: "softmax_over_queries", -3: "softmax_over_heads", 1: "softmax_over_heads",
        0: "softmax_over_batch"}  # fmt: skip
judge_attention = EXERCISES["scaled_dot_product_attention"].judge


@pytest.mark.parametrize(("axis", "hide", "guard"), list(product(AXES, HIDES, GUARDS)))
def test_a_softmax_over_the_wrong_axis_is_named(axis, hide, guard):
    verdict = judge_attention(attention(HIDES[hide], GUARDS[guard], axis=axis))
    assert AXES[axis] in verdict.mistakes, verdict.feedback


@pytest.mark.parametrize(("hide", "guard"), list(product(HIDES, GUARDS)))
@pytest.mark.parametrize("turn", [lambda m: m.mT, lambda m: m.T if m.dim() == 2 else m])
def test_a_transposed_mask_is_named(hide, guard, turn):
    verdict = judge_attention(attention(HIDES[hide], GUARDS[guard], turn=turn))
    assert "mask_transposed" in verdict.mistakes, verdict.feedback


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("value", [-1.0, -2.5, -7.0, -30.0, -300.0, -5e3, -1e4])
@pytest.mark.parametrize("hide", [fill_with, add])
def test_a_fill_that_is_not_negative_enough_is_named(hide, value, guard):
    verdict = judge_attention(attention(hide(value), GUARDS[guard]))
    named = {"fill_not_negative_enough", "mask_added_as_numbers"} & set(verdict.mistakes)
    assert named, verdict.feedback


def test_the_fill_is_read_back_from_the_weights():
    said = judge_attention(attention(fill_with(-2.5), GUARDS["none"])).feedback
    assert "the scores of hidden keys are all -2.5" in said
    said = judge_attention(attention(add(-2.5), GUARDS["none"])).feedback
    assert "hidden scores are moved by -2.5" in said


def over(*axes):
    def norm(x, gain, bias, eps):
        mean, var = x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True)
        return (x - mean) * (var + eps).rsqrt() * gain + bias

    return norm


def over_all_but_the_first(x, gain, bias, eps):
    return F.layer_norm(x, x.shape[1:], eps=eps) * gain + bias


def flattened(x, gain, bias, eps):
    flat = x.view(x.size(0), -1)
    normal = (flat - flat.mean(1, keepdim=True)) / (flat.var(1, keepdim=True) + eps).sqrt()
    return normal.view_as(x) * gain + bias


NORMS = [
    (over(1, 2), "over_sequence_and_features"),
    (over(-1, -2), "over_sequence_and_features"),
    (over_all_but_the_first, "over_sequence_and_features"),
    (over(1), "over_tokens"),
    (over(0, 1, 2), "over_everything"),
]


@pytest.mark.parametrize(("version", "name"), NORMS)
def test_a_norm_over_other_axes_is_named(version, name):
    verdict = EXERCISES["layer_norm"].judge(version)
    assert name in verdict.mistakes, verdict.feedback


MIXING = [
    lambda x, w1, b1, w2, b2: torch.relu(x.cumsum(-2) @ w1 + b1) @ w2 + b2,
    lambda x, w1, b1, w2, b2: torch.relu((x - x.mean(-2, keepdim=True)) @ w1 + b1) @ w2 + b2,
    lambda x, w1, b1, w2, b2: torch.relu(x @ w1 + b1).softmax(-2) @ w2 + b2,
    lambda x, w1, b1, w2, b2: torch.relu(x.flip(1) @ w1 + b1) @ w2 + b2,
]


@pytest.mark.parametrize("version", MIXING)
def test_a_network_that_mixes_positions_is_named(version):
    verdict = EXERCISES["position_wise_ffn"].judge(version)
    assert "mixes_positions" in verdict.mistakes, verdict.feedback


def smoothed(log_p, target, smoothing, real):
    right = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    loss = -(1 - smoothing) * right - smoothing * log_p.mean(-1)
    return torch.where(real, loss, 0.0).sum() / real.sum().clamp(min=1)


def log_of_softmax(x, y, eps, pad):
    return smoothed(torch.log(torch.softmax(x, -1)), y, eps, y != pad)


def with_a_floor(x, y, eps, pad):
    return smoothed(torch.log(torch.softmax(x, -1) + 1e-10), y, eps, y != pad)


def by_powers(x, y, eps, pad):
    return smoothed(x - torch.log(torch.exp(x).sum(-1, keepdim=True)), y, eps, y != pad)


def by_products(x, y, eps, pad):
    real = y != pad
    log_p = torch.log(torch.softmax(x, -1))
    hot = torch.nn.functional.one_hot(y, x.size(-1))
    wanted = hot * (1 - eps) + eps / x.size(-1)
    return (-(wanted * log_p).sum(-1) * real).sum() / real.sum().clamp(min=1)


@pytest.mark.parametrize("version", [log_of_softmax, with_a_floor, by_powers, by_products])
def test_a_logarithm_of_a_softmax_is_named(version):
    verdict = EXERCISES["label_smoothing_loss"].judge(version)
    assert verdict.mistakes == ("log_of_softmax",), verdict.feedback
    assert "with ordinary logits yours is right" in verdict.feedback or "Your results" in (
        verdict.feedback
    )
