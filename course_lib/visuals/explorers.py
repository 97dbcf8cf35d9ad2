"""Explorers: a slider in the notebook, Python behind it, and one picture that follows."""

import base64
import html
import traceback
from collections.abc import Callable, Mapping
from typing import NamedTuple

import anywidget
import ipywidgets as widgets
import numpy as np
from matplotlib.figure import Figure

from course_lib.visuals.figures import figure_bundle, png
from course_lib.visuals.plots import as_array

BARE, SCALED = "#b35806", "#2166ac"


class KeysStayInside(anywidget.AnyWidget):
    """Let sliders and choosers keep their keys in JupyterLab, which else takes arrows and letters.

    It shows nothing. JupyterLab asks the focused element itself, so it is marked as it gains focus;
    a slider's handle gets its label as a name at the same time, for a screen reader.
    """

    _esm = """
    const MARK = "data-lm-suppress-shortcuts";
    const CONTROLS = ["select", "input", ".noUi-handle"].map((c) => `.jupyter-widgets ${c}`);
    function mark({ target }) {
      if (!target.matches?.(CONTROLS.join())) return;
      target.setAttribute(MARK, "");
      const label = target.closest(".jupyter-widgets").querySelector("label")?.innerText;
      // The handle of a slider has no name of its own.
      if (label && target.matches(".noUi-handle")) target.setAttribute("aria-label", label);
    }
    export default {
      render({ el }) {
        el.style.display = "none";
        if (document.documentElement.hasAttribute("data-keys-stay-inside")) return;
        document.documentElement.setAttribute("data-keys-stay-inside", "");
        document.addEventListener("focusin", mark, true);
      },
    };
    """


class Explorer(widgets.VBox):
    """Show controls above a picture, and redraw it whenever a control moves.

    ``update(**values)`` gets the value of each control by its name, moves what is drawn on
    ``figure`` (``set_data``, ``set_height``: nothing is drawn anew) and returns one sentence that
    says what is to be seen. The sentence stands below the picture, is read aloud by a screen
    reader as it changes, and is what remains where there are no widgets, beside the first picture.

    An error in ``update`` is shown below the picture and raised.

    Errors: ValueError for a control without a description, which is its label.
    """

    def __init__(
        self,
        figure: Figure,
        controls: Mapping[str, widgets.ValueWidget],
        update: Callable[..., str],
        *,
        alt: str,
    ):
        for name, control in controls.items():
            if not getattr(control, "description", ""):
                raise ValueError(f"the control {name!r} has no description: it is its label")
            control.style.description_width = "initial"
            control.layout.width = "min(100%, 480px)"
        self.figure, self.controls, self.alt = figure, dict(controls), alt
        self._update, self.sentence = update, ""
        self._image = widgets.Image(format="png")
        self._image.layout = widgets.Layout(max_width="100%", width="760px")
        self._words = widgets.HTML()
        self._redraw()
        # The first picture has settled the places of the axes; finding them again takes long.
        figure.set_layout_engine("none")
        self._first = figure_bundle(figure, alt, self.sentence)
        self._first_png = base64.b64encode(self._image.value).decode()
        for control in controls.values():
            control.observe(self._redraw, "value")
        super().__init__([KeysStayInside(), *controls.values(), self._image, self._words])

    def _redraw(self, change=None) -> None:
        try:
            self.sentence = self._update(**{n: c.value for n, c in self.controls.items()})
            self._image.value = png(self.figure, dpi=120, tight=False)
        except Exception:
            report = html.escape(traceback.format_exc(limit=-2))
            self._words.value = f'<pre role="alert" style="white-space:pre-wrap">{report}</pre>'
            raise
        self._words.value = f'<p role="status" aria-live="polite">{html.escape(self.sentence)}</p>'

    # ipywidgets 7 shows itself by this method, past the bundle below.
    _ipython_display_ = None

    def _repr_mimebundle_(self, **kwargs) -> dict:
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {
            "application/vnd.jupyter.widget-view+json": live,
            **self._first,
            "image/png": self._first_png,
        }


class SoftmaxHealth(NamedTuple):
    """How a softmax fares at each width 1 to D: axis 0 is (q.k, q.k / sqrt(d)), axis 1 the width.

    ``spread`` is the standard deviation of the scores, ``entropy`` that of the weights in nats,
    ``gradient`` the sum of ``w (1 - w)`` over the keys: each a mean over the queries.
    ``ranked`` (2, D, S) holds the mean weight of the best key, of the second, and so on.
    """

    spread: np.ndarray
    entropy: np.ndarray
    gradient: np.ndarray
    ranked: np.ndarray


def softmax_health(q, k) -> SoftmaxHealth:
    """Measure the softmax of q.k at every width: with the first feature, with two, with all.

    Source: Vaswani et al. 2017, section 3.2.1 and its footnote 4.

    Shapes: ``q`` (N, D): N queries; ``k`` (N, S, D): S keys for each of them.

    Errors: ValueError where the shapes do not fit.

    >>> health = softmax_health(np.ones((1, 4)), np.zeros((1, 3, 4)))
    >>> [round(float(x), 4) for x in health.entropy[0]]  # equal weights: the logarithm of 3
    [1.0986, 1.0986, 1.0986, 1.0986]
    """
    q, k = as_array(q), as_array(k)
    if q.ndim != 2 or k.ndim != 3 or k.shape[::2] != q.shape:
        raise ValueError(f"q {q.shape} and k {k.shape} do not fit: expected (N, D) and (N, S, D)")
    dots = np.cumsum(q[:, None, :] * k, axis=-1).transpose(2, 0, 1)  # (D, N, S)
    roots = np.sqrt(np.arange(1, len(dots) + 1))[:, None, None]
    measured = []
    for scores in (dots, dots / roots):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = powers / powers.sum(axis=-1, keepdims=True)
        logs = np.log(np.where(weights > 0, weights, 1.0))
        measured.append(
            (
                scores.std(axis=(1, 2)),
                -(weights * logs).sum(axis=-1).mean(axis=-1),
                (weights * (1 - weights)).sum(axis=-1).mean(axis=-1),
                np.sort(weights, axis=-1)[..., ::-1].mean(axis=1),
            )
        )
    return SoftmaxHealth(*(np.stack(pair) for pair in zip(*measured, strict=True)))


def scale_explorer(width: int = 64, *, n_keys: int = 16, seed: int = 0) -> Explorer:
    """Move d_k from 1 to 256 and see what the division by its root does to the softmax.

    500 random queries meet ``n_keys`` random keys each; every feature is drawn from the standard
    normal distribution.
    """
    numbers = np.random.default_rng(seed)
    health = softmax_health(
        numbers.standard_normal((500, 256)), numbers.standard_normal((500, n_keys, 256))
    )
    figure = Figure(figsize=(7.6, 5.2), layout="constrained")
    move = _draw_health(figure, health, n_keys)
    slider = widgets.IntSlider(width, 1, 256, description="features in q and k, d_k")

    def update(width: int) -> str:
        move(width)
        spread, entropy, gradient = (part[:, width - 1] for part in health[:3])
        best = health.ranked[:, width - 1, 0]
        return (
            f"At d_k = {width}, without and with the division by √d_k: the scores spread by "
            f"{spread[0]:.1f} and {spread[1]:.1f}; the best of {n_keys} keys takes {best[0]:.2f} "
            f"and {best[1]:.2f} of the weight; the entropy is {entropy[0]:.2f} and "
            f"{entropy[1]:.2f} (equal weights: {np.log(n_keys):.2f}); the gradient is "
            f"{gradient[0]:.2f} and {gradient[1]:.2f}."
        )

    alt = "Mean weights by rank, and the spread of the scores, the entropy and the gradient by d_k."
    return Explorer(figure, {"width": slider}, update, alt=alt)


def _draw_health(figure: Figure, health: SoftmaxHealth, n_keys: int) -> Callable[[int], None]:
    """Draw the four panels; give back what moves them to a width."""
    (bars, spread), (entropy, gradient) = figure.subplots(2, 2)
    places, names = np.arange(1, n_keys + 1), ("$q · k$", r"$q · k\,/\,\sqrt{d_k}$")
    moving, colours, marks = [], (BARE, SCALED), "so"
    columns = [
        bars.bar(places + 0.4 * i - 0.2, np.zeros(n_keys), 0.4, color=colours[i], label=names[i])
        for i in range(2)
    ]
    bars.set(ylim=(0, 1), title="weight of the best key, the second, …", xlabel="rank of the key")
    bars.set_xticks(places[:: max(1, n_keys // 8)])
    bars.legend(frameon=False)
    widths = np.arange(1, health.spread.shape[1] + 1)
    panels = {spread: "spread of the scores", entropy: "entropy of the weights, in nats"}
    panels[gradient] = "size of the gradient, $\\sum w\\,(1 - w)$"
    for (ax, title), curves in zip(panels.items(), health[:3], strict=True):
        ax.set_xscale("log", base=2)
        ax.set(title=title, xlabel="$d_k$", xticks=[1, 4, 16, 64, 256])
        ax.xaxis.set_major_formatter("{x:.0f}")
        line = ax.axvline(1, color="#999999", linewidth=1)
        points = []
        for curve, colour, mark in zip(curves, colours, marks, strict=True):
            ax.plot(widths, curve, color=colour, linewidth=1.5)
            points += ax.plot([1], [curve[0]], mark, color=colour, markersize=7)
        ax.set_ylim(bottom=0)
        moving.append((line, points, curves))
    for ax in (bars, spread, entropy, gradient):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)

    def move(width: int) -> None:
        for column, heights in zip(columns, health.ranked[:, width - 1], strict=True):
            for bar, height in zip(column, heights, strict=True):
                bar.set_height(height)
        for line, points, curves in moving:
            line.set_xdata([width, width])
            for point, curve in zip(points, curves, strict=True):
                point.set_data([width], [curve[width - 1]])

    return move
