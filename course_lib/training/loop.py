"""One training loop for the whole course: steps or seconds, a history, and a clean stop."""

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass
class History:
    """What a run saw: the loss at every step, the evaluations, and why it ended.

    >>> History(losses=[3.0, 1.0, 2.0]).recent(2)
    1.5
    """

    losses: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    ended: str = ""

    def recent(self, n: int = 20) -> float:
        """Return the mean of the last ``n`` losses: one batch alone is too noisy to quote."""
        last = self.losses[-n:]
        return sum(last) / len(last) if last else math.nan


class NonFiniteLoss(RuntimeError):
    """The loss became NaN or infinite; the message says at which step."""


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss_fn: Callable[[nn.Module, Any], torch.Tensor],
    *,
    steps: int | None = None,
    seconds: float | None = None,
    lr: float = 3e-3,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: Callable[[int], float] | None = None,
    max_norm: float | None = 1.0,
    evaluate: Callable[[nn.Module], float] | None = None,
    every: int = 50,
    watch: Callable[[History, int | None], None] | None = None,
) -> History:
    """Train ``model`` until the steps, the seconds or the batches run out.

    Each step: ``loss_fn(model, batch)``, backward, gradients clipped to the norm ``max_norm``,
    one step of Adam (or of the optimizer given). ``schedule(step)``, counted from 1, is the
    learning rate of a step. Seconds are seconds of processor time of this process, so that two
    models given the same budget get the same work from a busy machine.

    Every ``every`` steps, and at the end, ``evaluate(model)`` measures the model in eval mode
    without gradients: higher is better, and the model ends with the weights of its best
    measurement. ``watch(history, steps)`` is called after each step: to draw, to print.

    An interrupt (Ctrl-C, or the stop button of a notebook) ends the run as if it were done.

    Errors: ValueError where neither steps nor seconds bound the run, or a bound is no positive
    number; TypeError where ``loss_fn`` does not give one number with a gradient; NonFiniteLoss
    where the loss or its gradient is NaN or infinite. The model then ends as after an interrupt:
    in eval mode, with its best weights.

    >>> model = nn.Linear(1, 1)
    >>> data = [(torch.ones(2, 1), torch.ones(2, 1))] * 5
    >>> history = fit(model, data, lambda m, b: (m(b[0]) - b[1]).square().mean(), steps=9)
    >>> len(history.losses), history.ended
    (5, 'the batches ran out after 5 steps')
    """
    _check_bounds(steps, seconds, every)
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr, betas=(0.9, 0.98))
    history, best = History(), _Best(evaluate)
    start = time.process_time()
    model.train()
    try:
        for step, batch in enumerate(batches, start=1):
            if schedule is not None:
                for group in optimizer.param_groups:
                    group["lr"] = schedule(step)
            history.losses.append(_step(model, batch, loss_fn, optimizer, max_norm, step))
            history.seconds = time.process_time() - start
            if step % every == 0:
                best.measure(model, history)
            if watch is not None:
                watch(history, steps)
            if step == steps:
                history.ended = f"all {steps} steps done"
                break
            if seconds is not None and history.seconds >= seconds:
                history.ended = f"the {seconds:g} seconds ran out after {step} steps"
                break
        else:
            history.ended = f"the batches ran out after {len(history.losses)} steps"
    except KeyboardInterrupt:
        history.ended = f"interrupted after {len(history.losses)} steps"
    except NonFiniteLoss:
        best.restore(model)
        model.eval()
        raise
    best.measure(model, history)
    best.restore(model)
    model.eval()
    return history


def _check_bounds(steps, seconds, every) -> None:
    if steps is None and seconds is None:
        raise ValueError("give steps, seconds or both: nothing else bounds the run")
    if steps is not None and not (isinstance(steps, int) and steps >= 1):
        raise ValueError(f"steps is {steps}, expected a whole number from 1 on")
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}, expected a positive number")
    if not (isinstance(every, int) and every >= 1):
        raise ValueError(f"every is {every}, expected a whole number from 1 on")


def _step(model, batch, loss_fn, optimizer, max_norm, step):
    loss = loss_fn(model, batch)
    if not (isinstance(loss, torch.Tensor) and loss.numel() == 1 and loss.requires_grad):
        shown = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else loss
        raise TypeError(f"loss_fn gave {shown}, expected a tensor of one number with a gradient")
    value = loss.item()
    if not math.isfinite(value):
        raise _not_finite("loss", value, step, optimizer)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if max_norm is None else max_norm)
    if not math.isfinite(norm):
        raise _not_finite("gradient", norm.item(), step, optimizer)
    optimizer.step()
    return value


def _not_finite(what: str, value: float, step: int, optimizer) -> NonFiniteLoss:
    rate = optimizer.param_groups[0]["lr"]
    return NonFiniteLoss(
        f"the {what} became {value} at step {step}, at a learning rate of {rate:.2g}: "
        "try a smaller one, or look for a row with nothing to look at"
    )


class _Best:
    """The best measurement so far and the weights that gave it."""

    def __init__(self, evaluate):
        self.evaluate, self.value, self.weights = evaluate, -math.inf, None

    def measure(self, model, history):
        step = len(history.losses)
        if self.evaluate is None or (history.evaluations and history.evaluations[-1][0] == step):
            return
        model.eval()
        with torch.no_grad():
            value = float(self.evaluate(model))
        model.train()
        history.evaluations.append((step, value))
        if value > self.value:
            self.value, self.weights = value, copy.deepcopy(model.state_dict())

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)
