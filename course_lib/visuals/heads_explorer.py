"""An explorer for the number of heads: how one width is cut, and what stays and what grows."""

import ipywidgets as widgets
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.visuals.explorers import Explorer

COLOURS = ("#b35806", "#2166ac", "#f1a340", "#67a9cf")


def costs(d_model: int, n_heads: int, n_tokens: int) -> dict[str, int]:
    """What one multi-head self-attention over ``n_tokens`` needs: all by formula.

    Parameters: four maps with biases, ``4 (D D + D)``. Products: four maps, ``4 n D D``, then
    scores and mix, ``2 n n D``: H heads of width D / H. Weights: ``H n n``.

    >>> costs(8, 2, 3)
    {'parameters': 288, 'products': 912, 'weights': 18}
    """
    return {
        "parameters": 4 * (d_model * d_model + d_model),
        "products": 4 * n_tokens * d_model**2 + 2 * n_tokens**2 * d_model,
        "weights": n_heads * n_tokens**2,
    }


def heads_explorer(d_model: int = 512, *, n_heads: int = 8, n_tokens: int = 100) -> Explorer:
    """Choose the number of heads and see the width cut into them, and the three costs.

    Errors: ValueError where ``n_heads`` does not divide ``d_model``.
    """
    choices = [h for h in range(1, d_model + 1) if d_model % h == 0]
    if n_heads not in choices:
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
    figure = Figure(figsize=(7.4, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.set(
        xlim=(0, d_model), ylim=(0, 1), yticks=[], xlabel="feature", title="heads, side by side"
    )
    blocks = [left.add_patch(Rectangle((0, 0), 0, 1, linewidth=0)) for _ in range(max(choices))]
    one = costs(d_model, 1, n_tokens)
    bars = right.bar(list(one), [1.0] * 3, color=COLOURS[:3])
    right.set(yscale="log", ylim=(0.5, 2 * max(choices)), title="times one head's")
    right.tick_params(axis="x", labelsize=8)

    def update(n_heads: int) -> str:
        width = d_model // n_heads
        for h, block in enumerate(blocks):
            block.set(x=h * width, width=width if h < n_heads else 0, facecolor=COLOURS[h % 4])
        now = costs(d_model, n_heads, n_tokens)
        for bar, name in zip(bars, now, strict=True):
            bar.set_height(now[name] / one[name])
        return (
            f"{n_heads} heads of {width} features each: {now['parameters']:,} parameters and "
            f"{now['products']:,} products for {n_tokens} tokens, whatever the number of heads; "
            f"{now['weights']:,} attention weights, {n_heads} times those of one head."
        )

    slider = widgets.SelectionSlider(
        options=choices, value=n_heads, description="heads", continuous_update=True
    )
    alt = "The features cut into heads, and three costs against those of a single head."
    return Explorer(figure, {"n_heads": slider}, update, alt=alt)
