"""An explorer for depth and norm order: how much gradient arrives at each layer."""

from collections.abc import Callable, Sequence
from functools import cache

import ipywidgets as widgets
from matplotlib.figure import Figure

from course_lib.visuals.explorers import Explorer

POST, PRE = "#b35806", "#2166ac"
DEEPEST = 24


def flow_explorer(measure: Callable[[int, bool], Sequence[float]], *, depth: int = 12) -> Explorer:
    """Move the depth of a stack and see the gradient at each layer, post-norm beside pre-norm.

    ``measure(depth, norm_first)`` gives one number per layer, from the bottom to the top.
    """
    measured = cache(lambda depth, norm_first: list(measure(depth, norm_first)))
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    ax = figure.add_subplot()
    (post,) = ax.plot([], [], "o-", color=POST, label="post-norm")
    (pre,) = ax.plot([], [], "s--", color=PRE, label="pre-norm")
    ax.set(xlabel="layer, from the bottom to the top", ylabel="size of the gradient")
    ax.set(xlim=(0, DEEPEST + 1))
    ax.legend(frameon=False)

    def update(depth: int) -> str:
        sizes = {line: measured(depth, line is pre) for line in (post, pre)}
        for line, values in sizes.items():
            line.set_data(range(1, depth + 1), values)
        ax.set_ylim(0, 1.1 * max(map(max, sizes.values())))
        return (
            f"{depth} layers: the gradient is {sizes[post][0]:.2f} at the bottom and "
            f"{sizes[post][-1]:.2f} at the top of the post-norm stack, {sizes[pre][0]:.2f} and "
            f"{sizes[pre][-1]:.2f} in the pre-norm stack."
        )

    slider = widgets.IntSlider(depth, 1, DEEPEST, description="layers", continuous_update=False)
    alt = "The size of the gradient at each layer, one curve for each order of the norm."
    return Explorer(figure, {"depth": slider}, update, alt=alt)
