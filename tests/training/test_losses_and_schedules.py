"""The loss against torch's own, the schedules against their formulas."""

import math

import pytest
import torch
from torch.nn import functional as F

from course_lib.training.losses import label_smoothing_loss
from course_lib.training.schedule import cosine_learning_rate, noam_learning_rate

B, T, V = 3, 5, 7


def batch(pad_id):
    dice = torch.Generator().manual_seed(0)
    logits = torch.randn(B, T, V, generator=dice, requires_grad=True)
    target = torch.randint(V, (B, T), generator=dice)
    target[0, 3:] = target[2, 1:] = pad_id
    return logits, target


@pytest.mark.parametrize("pad_id", [0, 4, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_and_its_gradient_equal_torchs(smoothing, pad_id):
    logits, target = batch(pad_id)
    ours = label_smoothing_loss(logits, target, smoothing, pad_id)
    theirs = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
    torch.testing.assert_close(ours, theirs)
    mine, other = (torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs))
    torch.testing.assert_close(mine, other)


def test_nothing_but_padding_costs_nothing():
    logits, _ = batch(0)
    loss = label_smoothing_loss(logits, torch.zeros(B, T, dtype=torch.long), 0.1, 0)
    loss.backward()
    assert loss.item() == 0.0 and not logits.grad.any()


def test_an_impossible_token_is_no_trouble_without_smoothing():
    logits = torch.tensor([[[0.0, 1.0, -torch.inf]]], requires_grad=True)
    loss = label_smoothing_loss(logits, torch.tensor([[1]]), 0.0, pad_id=0)
    loss.backward()
    assert loss.item() == pytest.approx(math.log1p(math.exp(-1))) and logits.grad.isfinite().all()


def test_noam_peaks_at_the_end_of_the_warm_up():
    rates = [noam_learning_rate(step, 512, 4000) for step in range(0, 12_001)]
    assert rates[0] == rates[1] > 0
    assert max(range(12_001), key=rates.__getitem__) == 4000
    assert rates[2000] == pytest.approx(rates[4000] / 2)
    assert rates[12_000] == pytest.approx(rates[4000] / math.sqrt(3))


def test_cosine_starts_peaks_and_ends_where_it_should():
    rates = [cosine_learning_rate(step, 3e-3, 50, 800) for step in range(1, 900)]
    assert rates[0] == pytest.approx(3e-3 / 50) and max(rates) == rates[49] == 3e-3
    assert 0 < rates[799] < 1e-7 and rates[800] == rates[890] == 0
    assert cosine_learning_rate(1, 1.0, warmup=0, steps=10) == pytest.approx(1.0, rel=0.03)
