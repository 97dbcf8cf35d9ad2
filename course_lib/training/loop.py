"""One training loop for the whole course: steps or seconds, a history, and a clean stop."""

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.training.checkpoint import CheckpointError, History, Run


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
    checkpoint: str | Path | None = None,
) -> History:
    """Train ``model`` until the steps, the seconds or the batches run out.

    Each step: ``loss_fn(model, batch)``, backward, gradients clipped to the norm ``max_norm``,
    one step of Adam (or of the optimizer given). ``schedule(step)``, counted from 1, is the
    learning rate of a step. Seconds are seconds of processor time of this process, without those
    of ``watch``, so that two models given the same budget get the same work from a busy machine.

    Every ``every`` steps, and at the end, ``evaluate(model)`` measures the model in eval mode
    without gradients: higher is better, and the model ends with the weights of its best
    measurement, the last of equals. ``watch(history, steps)`` is called after each step, and once
    at the end with ``history.ended`` set: to draw, to print.

    ``checkpoint`` names a safetensors file. It is written whenever the model is measured, and at
    the end. Where it is there already the run is taken up from it: as many batches are skipped
    as it has seen, and it goes on as if it had never stopped. ``steps`` and ``seconds`` count the
    whole run.

    An interrupt (Ctrl-C, or the stop button of a notebook) ends the run as if it were done.

    Errors: ValueError where neither steps nor seconds bound the run, or a bound is no positive
    number; TypeError where ``loss_fn`` does not give one number with a gradient; NonFiniteLoss
    where the loss or its gradient is NaN or infinite; CheckpointError where the checkpoint is of
    another model. After a NonFiniteLoss the model ends as after an interrupt: in eval mode, with
    its best weights.

    >>> model = nn.Linear(1, 1)
    >>> data = [(torch.ones(2, 1), torch.ones(2, 1))] * 5
    >>> history = fit(model, data, lambda m, b: (m(b[0]) - b[1]).square().mean(), steps=9)
    >>> len(history.losses), history.ended
    (5, 'the batches ran out after 5 steps')
    """
    _check_bounds(steps, seconds, every)
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr, betas=(0.9, 0.98))
    run = Run(model, optimizer, History())
    history = run.history
    path = _opened(run, checkpoint)
    model.train()
    try:
        clock = _Clock(history.seconds)
        history.ended = _bound_reached(history, steps, seconds)
        for batch in itertools.islice(batches, len(history.losses), None):
            if history.ended:
                break
            step = len(history.losses) + 1
            if schedule is not None:
                for group in optimizer.param_groups:
                    group["lr"] = schedule(step)
            history.losses.append(_step(model, batch, loss_fn, optimizer, max_norm, step))
            if step % every == 0:
                _measure(run, evaluate)
            history.seconds = clock.read()
            history.ended = _bound_reached(history, steps, seconds)
            if step % every == 0 and path is not None:
                run.save(path)
            if watch is not None and not history.ended:
                with clock.stopped():
                    watch(history, steps)
        history.ended = history.ended or f"the batches ran out after {len(history.losses)} steps"
    except KeyboardInterrupt:
        history.ended = f"interrupted after {len(history.losses)} steps"
    except NonFiniteLoss:
        _end(run)
        raise
    _measure(run, evaluate)
    if path is not None:
        run.save(path)
    _end(run)
    if watch is not None:
        with suppress(KeyboardInterrupt):  # the run is over: its history is not to be lost
            watch(history, steps)
    return history


def _opened(run: Run, checkpoint: str | Path | None) -> Path | None:
    """Take up the run of a checkpoint where there is one; say early where none can be written."""
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    if path.exists():
        run.load(path)
    elif not path.parent.is_dir():
        raise CheckpointError(f"{path} can't be written: make the folder {path.parent} first")
    return path


def _bound_reached(history: History, steps: int | None, seconds: float | None) -> str:
    done = len(history.losses)
    if steps is not None and done >= steps:
        return f"all {steps} steps done"
    if seconds is not None and history.seconds >= seconds:
        return f"the {seconds:g} seconds ran out after {done} steps"
    return ""


class _Clock:
    """Seconds of processor time of this process, without those while it is stopped."""

    def __init__(self, already: float):
        self.start = time.process_time() - already

    def read(self) -> float:
        return time.process_time() - self.start

    @contextmanager
    def stopped(self):
        before = time.process_time()
        yield
        self.start += time.process_time() - before


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


def _measure(run: Run, evaluate) -> None:
    """Measure the model, and keep its weights where it is the best so far."""
    history, step = run.history, len(run.history.losses)
    if evaluate is None or (history.evaluations and history.evaluations[-1][0] == step):
        return
    run.model.eval()
    with torch.no_grad():
        value = float(evaluate(run.model))
    run.model.train()
    # Of equals the last: it has trained for longer.
    if value >= max((value for _, value in history.evaluations), default=-math.inf):
        run.best = copy.deepcopy(run.model.state_dict())
    history.evaluations.append((step, value))


def _end(run: Run) -> None:
    """Leave the model with its best weights, ready for use."""
    if run.best is not None:
        run.model.load_state_dict(run.best)
    run.model.eval()
