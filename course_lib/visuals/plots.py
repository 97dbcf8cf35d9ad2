"""Plots: an array in, a matplotlib Axes out. Without pyplot, so nothing is kept between calls."""

import math
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.path import Path

from course_lib.visuals.labels import drawable

ANNOTATED_CELLS = 144
LONGEST_TITLE = 80
LABELLED_TOKENS = 40
MASKED_FACE, MASKED_LINE, BORDER = "#f1f1f4", "#8a8a94", "#55555f"


def attention_heatmap(
    weights,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    *,
    mask=None,
    kind: str = "weights",
    ax: Axes | None = None,
    title: str = "",
    annotate: bool | None = None,
) -> Axes:
    """Draw a table of queries by keys: weights from 0 to 1, or scores around 0.

    Weights share one fixed scale (viridis, 0 to 1), so that two pictures can be compared. Scores
    have a scale of their own (PuOr, centred at 0). A cell that is masked is hatched; so is a score
    of -inf. A masked cell that holds a weight all the same keeps its colour under the hatching.

    Shapes: ``weights`` (T, S), array or tensor; ``tokens`` T and ``key_tokens`` S words (the same
    words where left out and T = S); ``mask`` boolean, broadcastable to (T, S), True = may look.

    Errors: ValueError where shapes, words and mask do not fit, naming the numbers; where a weight
    lies outside 0 to 1; where a number is NaN.

    >>> ax = attention_heatmap([[0.25, 0.75]], ["sat"], ["cat", "mat"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['cat', 'mat']
    """
    table = _checked_table(weights, kind)
    hidden = ~_checked_mask(mask, table.shape)
    if kind == "scores":
        hidden |= table == -np.inf
    rows, columns = table.shape
    row_words = _checked_words(tokens, rows, "tokens", "rows")
    if key_tokens is None and tokens is not None and rows == columns:
        key_tokens = tokens
    column_words = _checked_words(key_tokens, columns, "key_tokens", "columns")

    if ax is None:
        cell = min(0.55, 7 / columns, 8 / rows)  # inches
        size = (max(3.0, cell * columns + 2.2), max(2.0, cell * rows + 1.2))
        ax = Figure(figsize=size, layout="constrained").add_subplot()
    empty = hidden & (~np.isfinite(table) | (table == 0) | (kind == "scores"))
    reach = np.abs(table[~empty]).max(initial=0.0) or 1.0
    low, high, colours = (0.0, 1.0, "viridis") if kind == "weights" else (-reach, reach, "PuOr")
    colormap = matplotlib.colormaps[colours].with_extremes(bad=MASKED_FACE)
    image = ax.imshow(
        np.ma.masked_where(empty, table),
        cmap=colormap,
        vmin=low,
        vmax=high,
        aspect="equal" if max(rows, columns) <= 3 * min(rows, columns) else "auto",
    )
    _hatch(ax, hidden)
    ax.figure.colorbar(image, ax=ax, label=kind[:-1], shrink=0.85)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    _label_axis(ax.xaxis, column_words, "key")
    _label_axis(ax.yaxis, row_words, "query")
    longest = max(len(label.get_text()) for label in ax.get_xticklabels())
    if longest > 3 and longest * columns > 26:
        for label in ax.get_xticklabels():
            label.set(rotation=50, ha="left", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set(color=BORDER, visible=True)
    if title:
        name, families = drawable(title, longest=LONGEST_TITLE)
        ax.set_title(name, parse_math=False, fontfamily=families)
    if annotate or (annotate is None and table.size <= ANNOTATED_CELLS):
        _write_numbers(ax, image, table, empty)
    return ax


def _checked_table(weights, kind: str) -> np.ndarray:
    if kind not in ("weights", "scores"):
        raise ValueError(f"kind is {kind!r}, expected 'weights' or 'scores'")
    table = as_array(weights)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"{kind} {table.shape}: a heatmap shows one (queries, keys) table; "
            "choose one batch and one head first"
        )
    wrong = np.isnan(table) | (table == np.inf)
    if kind == "weights":
        wrong |= (table < -1e-3) | (table > 1 + 1e-2)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        wish = "weights lie between 0 and 1; for scores say kind='scores'"
        if not np.isfinite(table[row, column]):
            wish = f"{kind} must be numbers"
        raise ValueError(f"row {row}, column {column} holds {table[row, column]:.4g}: {wish}")
    return table


def _checked_mask(mask, shape: tuple[int, int]) -> np.ndarray:
    if mask is None:
        return np.ones(shape, dtype=bool)
    allowed = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if allowed.dtype != bool:
        raise TypeError(f"mask is {allowed.dtype}, expected bool: True where a query may look")
    try:
        return np.broadcast_to(allowed, shape)
    except ValueError:
        raise ValueError(f"mask {allowed.shape} does not fit the table's {shape}") from None


def _checked_words(words, count: int, name: str, axis: str) -> list[str]:
    if words is None:
        return [str(position) for position in range(count)]
    if len(words) != count:
        raise ValueError(f"{len(words)} {name} for {count} {axis}: one word each")
    return [str(word) for word in words]


def as_array(numbers) -> np.ndarray:
    """Turn a tensor on any device, a list or an array into a float64 array."""
    if isinstance(numbers, (list, tuple)) and any(hasattr(part, "detach") for part in numbers):
        numbers = [as_array(part) for part in numbers]
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu()
        numbers = (numbers if numbers.is_complex() else numbers.double()).numpy()
    numbers = np.asarray(numbers)
    if np.iscomplexobj(numbers):
        raise TypeError(f"{numbers.dtype} numbers can't be drawn: take their real part or size")
    return numbers.astype(np.float64)


def _hatch(ax: Axes, hidden: np.ndarray) -> None:
    # One outline for all: a polygon a cell takes long to draw, and hatches each anew.
    outlines = [
        [(left, row), (right, row), (right, row + 1), (left, row + 1), (left, row)]
        for row, left, right in _runs(hidden)
    ]
    path = Path(np.array(outlines).reshape(-1, 2) - 0.5, _CODES * len(outlines))
    ax.add_collection(
        PathCollection(
            [path] if outlines else [],
            facecolor="none",
            edgecolor=MASKED_LINE,
            hatch="////",
            linewidth=0,
            label="masked",
        ),
        autolim=False,
    )


_CODES = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]


def _runs(hidden: np.ndarray):
    """Rows of neighbouring True cells: (row, first column, column after the last)."""
    for row, cells in enumerate(hidden):
        edges = np.flatnonzero(np.diff(np.r_[False, cells, False]))
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            yield row, int(left), int(right)


def _label_axis(axis, words: list[str], name: str) -> None:
    step = math.ceil(len(words) / LABELLED_TOKENS)
    shown = [drawable(word) for word in words[::step]]
    size = 10 if len(shown) <= 16 else 7
    axis.set_ticks(range(0, len(words), step), [word for word, _ in shown])
    for label, (_, families) in zip(axis.get_ticklabels(), shown, strict=True):
        label.set(parse_math=False, fontfamily=families, fontsize=size)
    axis.set_label_text(name if step == 1 else f"{name} (1 in {step} named)")


def _write_numbers(ax: Axes, image, table: np.ndarray, empty: np.ndarray) -> None:
    size = 9 if table.shape[1] <= 8 else 7
    for (row, column), number in np.ndenumerate(table):
        if empty[row, column]:
            continue
        red, green, blue, _ = image.cmap(image.norm(number))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        ink = "black" if light else "white"
        ax.text(column, row, f"{number:.2f}", ha="center", va="center", color=ink, fontsize=size)


def _plain_axes(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    ax = ax or Figure(figsize=figsize, layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def power_law_plot(
    measured: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    xlabel: str,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw measurements on two logarithmic axes, each with its fitted line and exponent.

    Formula: ``y = c * x ** exponent``, fitted by least squares to ``log y`` over ``log x``.

    Errors: ValueError for a series of fewer than two points, or one that is not positive.

    >>> ax = power_law_plot({"table": ([1, 2, 4], [3, 12, 48])}, xlabel="n", ylabel="entries")
    >>> ax.get_legend().get_texts()[0].get_text()
    'table: n^2.0'
    """
    ax = _plain_axes(ax, (5.6, 3.8))
    for (name, (x, y)), marker in zip(measured.items(), "os^DvP" * len(measured), strict=False):
        x, y = as_array(x), as_array(y)
        if len(x) < 2 or len(x) != len(y) or min(x.min(), y.min()) <= 0:
            raise ValueError(
                f"{name}: {len(x)} sizes and {len(y)} measurements; "
                "a fit on logarithmic axes needs two or more, as many of each, all above 0"
            )
        exponent, start = np.polyfit(np.log(x), np.log(y), 1)
        label = f"{name}: {xlabel}^{exponent:.1f}"
        (points,) = ax.loglog(x, y, marker, label=label)
        ax.loglog(x, np.exp(start) * x**exponent, "--", color=points.get_color(), linewidth=1)
    sizes = sorted({size for x, _ in measured.values() for size in as_array(x).tolist()})
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax


def hull_plot(
    values, outputs, labels: Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw values of two features, the hull they span, and the outputs inside it.

    Shapes: ``values`` (S, 2), ``outputs`` (T, 2); ``labels`` S words.

    Errors: ValueError where the last axis is not 2, or words and values differ in number.
    """
    values, outputs = as_array(values), as_array(outputs)
    for name, points in (("values", values), ("outputs", outputs)):
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"{name} {points.shape}: a plane shows points of 2 features, (n, 2)")
    words = _checked_words(labels, len(values), "labels", "values")
    ax = _plain_axes(ax, (5.6, 4.6))
    ax.fill(*convex_hull(values).T, alpha=0.15, label="hull of the values")
    ax.plot(*values.T, "s", label="values")
    ax.plot(*outputs.T, "o", label="outputs")
    for point in np.unique(values, axis=0):
        same = [word for word, value in zip(words, values, strict=True) if (value == point).all()]
        text, families = drawable(" ".join(dict.fromkeys(same)))
        note = ax.annotate(text, point, xytext=(6, 5), textcoords="offset points")
        note.set(parse_math=False, fontfamily=families)
    ax.margins(0.12)
    ax.legend(frameon=False, loc="best")
    return ax


def convex_hull(points: np.ndarray) -> np.ndarray:
    """Give the corners of the convex hull of points (n, 2), counter-clockwise.

    Source: the monotone chain of Andrew 1979.

    >>> convex_hull(np.array([[0, 0], [2, 0], [0, 2], [0.5, 0.5]])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]
    """
    ordered = np.unique(points, axis=0)

    def chain(points):
        corners = []
        for point in points:
            while len(corners) > 1:
                (ax, ay), (bx, by) = corners[-1] - corners[-2], point - corners[-2]
                if ax * by - ay * bx > 0:
                    break
                corners.pop()
            corners.append(point)
        return corners[:-1] if len(points) > 1 else corners

    return np.array(chain(ordered) + (chain(ordered[::-1]) if len(ordered) > 1 else []))
