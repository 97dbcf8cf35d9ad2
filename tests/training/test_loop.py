"""The training loop: what bounds it, what it keeps, how it stops."""

import itertools

import pytest
import torch
from torch import nn

from course_lib.training.loop import NonFiniteLoss, fit

TARGET = torch.tensor([[3.0]])


def square_error(model, batch):
    return (model(batch) - TARGET).square().mean()


def one():
    torch.manual_seed(0)
    return nn.Linear(1, 1)


def ones():
    return itertools.repeat(torch.ones(2, 1))


def test_it_learns_and_stops_after_the_steps():
    model = one()
    history = fit(model, ones(), square_error, steps=700, lr=0.03)
    assert len(history.losses) == 700 and history.recent() < 1e-3 < history.losses[0]
    assert history.ended == "all 700 steps done" and not model.training


def test_seconds_bound_a_run_without_steps():
    history = fit(one(), ones(), square_error, seconds=0.05)
    assert "0.05 seconds ran out" in history.ended and history.seconds >= 0.05


def test_a_run_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="steps, seconds or both"):
        fit(one(), ones(), square_error)


def test_the_schedule_sets_the_rate_of_each_step_from_one():
    model, seen = one(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=99.0)

    def watch(history, steps):
        seen.append((optimizer.param_groups[0]["lr"], len(history.losses), steps))

    fit(model, ones(), square_error, steps=3, optimizer=optimizer, watch=watch,
        schedule=lambda step: step / 100)  # fmt: skip
    assert seen == [(0.01, 1, 3), (0.02, 2, 3), (0.03, 3, 3)]


def test_watch_is_told_the_end_once_when_all_is_measured_and_the_best_is_back():
    model, told = one(), []

    def watch(history, steps):
        told.append((history.ended, len(history.evaluations), model.training))

    fit(model, ones(), square_error, steps=3, every=2, evaluate=lambda m: 0.0, watch=watch)
    assert told == [("", 0, True), ("", 1, True), ("all 3 steps done", 2, False)]


def test_the_model_ends_with_the_weights_of_its_best_measurement():
    model, values = one(), iter([0.2, 0.9, 0.1])
    kept = []

    def evaluate(m):
        assert not m.training and not torch.is_grad_enabled()
        kept.append(m.weight.item())
        return next(values)

    history = fit(model, ones(), square_error, steps=6, every=2, evaluate=evaluate)
    assert history.evaluations == [(2, 0.2), (4, 0.9), (6, 0.1)]
    assert model.weight.item() == kept[1] != kept[2]


def test_of_equal_measurements_the_last_one_counts():
    model, kept = one(), []
    fit(model, ones(), square_error, steps=6, every=2,
        evaluate=lambda m: kept.append(m.weight.item()) or 1.0)  # fmt: skip
    assert model.weight.item() == kept[-1] != kept[0]


def test_an_interrupt_ends_the_run_and_keeps_the_best():
    model, kept = one(), []

    def watch(history, steps):
        if len(history.losses) == 5:
            raise KeyboardInterrupt

    def evaluate(m):
        kept.append(m.weight.item())
        return -len(kept)

    history = fit(model, ones(), square_error, steps=99, every=4, evaluate=evaluate, watch=watch)
    assert history.ended == "interrupted after 5 steps"
    assert model.weight.item() == kept[0]


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_rate():
    def loss(model, batch):
        return square_error(model, batch) / (0.0 if next(count) == 3 else 1.0)

    count = itertools.count(1)
    with pytest.raises(NonFiniteLoss, match=r"inf at step 3, at a learning rate of 0\.25"):
        fit(one(), ones(), loss, steps=9, lr=0.25)


def test_gradients_are_clipped_to_the_norm():
    model = one()
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fit(model, ones(), lambda m, b: 1e4 * square_error(m, b), steps=1, optimizer=optimizer,
        max_norm=0.5)  # fmt: skip
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close((after - before).norm(), torch.tensor(0.5))
