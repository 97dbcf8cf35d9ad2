"""Watch a training run as it goes: a curve and a bar in a notebook, plain lines elsewhere."""

import html
import time

from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from course_lib.visuals.figures import figure_bundle

SECONDS = 1.0  # between two drawings: drawing takes time from the training


class TrainingCurve:
    """What ``fit`` takes as ``watch``: it draws the loss, and the measurements as they come.

    In a notebook one picture is drawn again about every second, under a bar and a line of text,
    and stays as it is at the end. Elsewhere a line is printed about every second. ``measured``
    names what the run measures, a share between 0 and 1.

    >>> from types import SimpleNamespace
    >>> history = SimpleNamespace(losses=[2.0, 1.0], evaluations=[(2, 0.5)], seconds=1.0, ended="")
    >>> TrainingCurve(measured="accuracy").line(history, steps=8)
    'step 2 of 8, loss 1.50, accuracy 50.0 %, 1 s'
    """

    def __init__(self, measured: str = "exact match"):
        self.measured = measured
        self._last, self._handle, self._figure = -SECONDS, None, None

    def __call__(self, history, steps: int | None) -> None:
        now = time.monotonic()
        if not history.ended and now - self._last < SECONDS:
            return
        if not hasattr(get_ipython(), "kernel"):
            print(self.line(history, steps))
        else:
            self._show(history, steps)
        self._last = time.monotonic()

    def line(self, history, steps: int | None) -> str:
        """Say in a line how far the run is."""
        done = len(history.losses)
        recent = history.losses[-20:]
        parts = [f"step {done}" + (f" of {steps}" if steps else "")]
        if recent:
            parts.append(f"loss {sum(recent) / len(recent):.2f}")
        if history.evaluations:
            parts.append(f"{self.measured} {100 * history.evaluations[-1][1]:.1f} %")
        parts.append(f"{history.seconds:.0f} s")
        return ", ".join(parts) + (f": {history.ended}" if history.ended else "")

    def draw(self, history, steps: int | None) -> Figure:
        """Draw the run so far."""
        if self._figure is None:
            self._figure = Figure(figsize=(7.4, 3.0), dpi=100, layout="constrained")
            self._axes = self._figure.subplots(1, 2)
            (self._loss,) = self._axes[0].plot([], [], color="#2166ac", linewidth=1)
            (self._share,) = self._axes[1].plot([], [], "o-", color="#b35806", markersize=4)
            self._axes[0].set(xlabel="step", ylabel="loss")
            self._axes[1].set(xlabel="step", ylabel=self.measured, ylim=(-0.03, 1.03))
        n = len(history.losses)
        self._loss.set_data(range(1, n + 1), history.losses)
        if history.evaluations:
            self._share.set_data(*zip(*history.evaluations, strict=True))
        finite = [loss for loss in history.losses if loss == loss and loss < float("inf")]
        self._axes[0].set_ylim(0, 1.05 * max(finite, default=1.0) or 1.0)
        for ax in self._axes:
            ax.set_xlim(0, steps or max(n, 1))
        return self._figure

    def bundle(self, history, steps: int | None) -> dict[str, str]:
        """The picture of the run so far, as HTML, and the line, as plain text."""
        line = self.line(history, steps)
        alt = f"Loss and {self.measured} against the step: {line}."
        drawn = figure_bundle(self.draw(history, steps), alt, dpi=160 if history.ended else 80)
        return {"text/html": drawn["text/html"], "text/plain": line}

    def _show(self, history, steps: int | None) -> None:
        bundle, bar = self.bundle(history, steps), ""
        if steps and not history.ended:
            bar = f'<progress max="{steps}" value="{len(history.losses)}" style="width:300px">'
            bar += "</progress> "
        words = html.escape(bundle["text/plain"])
        bundle["text/html"] = f"<div>{bar}{words}</div>{bundle['text/html']}"
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        if history.ended:
            self._last, self._handle, self._figure = -SECONDS, None, None
