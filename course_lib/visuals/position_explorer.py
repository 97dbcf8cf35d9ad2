"""An explorer for sinusoidal positions: two places, one pair of features, and what they share."""

import math

import ipywidgets as widgets
import numpy as np
from matplotlib.figure import Figure

from course_lib.visuals.explorers import Explorer
from course_lib.visuals.plots import as_array

FIRST, SECOND = "#b35806", "#2166ac"


def sinusoid_explorer(table, *, first: int = 5, second: int = 15, pair: int = 2) -> Explorer:
    """Move two positions over a table of sinusoids and see the rotation and the similarity.

    The left panel is the table with both rows marked, the middle one the chosen pair of features
    as two hands of a clock, the right one the dot product of the first position with all.

    Shapes: ``table`` (positions, D), sines at even features, cosines at odd ones.

    Errors: ValueError for a table without a whole pair of features or with fewer than two rows.
    """
    table = as_array(table)
    if table.ndim != 2 or len(table) < 2 or table.shape[1] < 2:
        raise ValueError(f"table {table.shape} needs two positions and two features at least")
    n_positions, d_model = table.shape
    figure = Figure(figsize=(7.6, 3.1), layout="constrained")
    move = _draw(figure, table)
    controls = {
        "first": widgets.IntSlider(first, 0, n_positions - 1, description="first position"),
        "second": widgets.IntSlider(second, 0, n_positions - 1, description="second position"),
        "pair": widgets.IntSlider(pair, 0, d_model // 2 - 1, description="pair of features"),
    }

    def update(first: int, second: int, pair: int) -> str:
        move(first, second, pair)
        wavelength = 2 * math.pi * 10000 ** (2 * pair / d_model)
        turn = 360 * (second - first) / wavelength
        return (
            f"Pair {pair} (features {2 * pair} and {2 * pair + 1}) goes round once in "
            f"{wavelength:.1f} positions; from position {first} to {second} it turns by "
            f"{turn:.0f} degrees. The dot product of the two codes is "
            f"{table[first] @ table[second]:.2f}; that of a code with itself is "
            f"{table[first] @ table[first]:.2f}."
        )

    alt = "The table of sinusoids, one pair of features as hands of a clock, and the similarity."
    return Explorer(figure, controls, update, alt=alt)


def _draw(figure: Figure, table: np.ndarray):
    """Draw the three panels; give back what moves them."""
    left, clock, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1.2))
    left.imshow(table, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    left.set(title="the table", xlabel="feature", ylabel="position")
    rows = [left.axhline(0, color=colour, linewidth=2) for colour in (FIRST, SECOND)]
    columns = [left.axvline(0, color="black", linewidth=1, linestyle=":") for _ in range(2)]
    around = np.linspace(0, 2 * math.pi, 100)
    clock.plot(np.sin(around), np.cos(around), color="#999999", linewidth=1)
    clock.set(title="one pair, as a hand", aspect="equal", xlabel="sine", ylabel="cosine")
    clock.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    styles = ((FIRST, "o-", "first"), (SECOND, "s--", "second"))
    hands = [clock.plot([0, 0], [0, 1], style, color=c, label=name)[0] for c, style, name in styles]
    clock.legend(loc="lower center", fontsize=8, frameon=False)
    right.set(title="similarity to the first", xlabel="position", ylabel="dot product")
    places = np.arange(len(table))
    (curve,) = right.plot(places, places, color=FIRST)
    (point,) = right.plot([0], [0], "s", color=SECOND)
    products = table @ table.T
    right.set_ylim(products.min() - 1, products.max() + 1)

    def move(first: int, second: int, pair: int) -> None:
        for row, hand, place in zip(rows, hands, (first, second), strict=True):
            row.set_ydata([place, place])
            sine, cosine = table[place, 2 * pair : 2 * pair + 2]
            hand.set_data([0, sine], [0, cosine])
        for column, edge in zip(columns, (2 * pair - 0.5, 2 * pair + 1.5), strict=True):
            column.set_xdata([edge, edge])
        curve.set_ydata(products[first])
        point.set_data([second], [products[first, second]])

    return move
