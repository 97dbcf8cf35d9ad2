"""The picture of an encoder-decoder: every box with its output shape and parameter count."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

WIDTH, BOX = 7.7, 2.42  # inches: a page shows about 760 pixels, and text keeps its size
COLUMNS = 2.12, 5.58  # the middle of the encoder and of the decoder
PART, NORM, GAP, SPLIT, PAD = 0.52, 0.48, 0.16, 0.3, 0.14  # heights, and what lies between
TIMES = "\N{MULTIPLICATION SIGN}"
INK, LINE, CARD = "#1b1b1f", "#4a4a55", "#f4f4f6"
FILLS = {
    "attention": "#fde3c8",
    "feed": "#d6eaf6",
    "norm": "#f5f1c6",
    "embed": "#f8dce3",
    "output": "#e0e1f5",
}


class Box(NamedTuple):
    """One part of a model: its name, the shape that comes out of it, and its own parameters."""

    name: str
    shape: tuple[int, ...]
    count: int


Layer = Sequence[tuple[Box, Box]]


def total_parameters(
    encoder: Layer, decoder: Layer, n_layers: int, outside: Sequence[Box]
) -> tuple[int, int, int, int]:
    """Add up the boxes: outside of the stacks, one encoder layer, one decoder layer, and all.

    >>> one = [(Box("a", (1,), 2), Box("b", (1,), 3))]
    >>> total_parameters(one, one, 10, [Box("table", (1,), 7)])
    (7, 5, 5, 107)
    """
    own = sum(box.count for box in outside)
    layers = [sum(box.count for pair in layer for box in pair) for layer in (encoder, decoder)]
    return own, *layers, own + n_layers * sum(layers)


def draw_architecture(
    encoder: Layer,
    decoder: Layer,
    *,
    n_layers: int,
    embeddings: tuple[Box, Box],
    output: Box,
) -> Axes:
    """Draw figure 1 of the paper from a model's own numbers.

    ``encoder`` and ``decoder`` hold the sub-layers of one layer, from the bottom up: pairs of the
    part and of the norm behind it (post-norm). The decoder's second part reads the memory.
    ``embeddings`` are the two below the stacks, ``output`` is the map to the logits. A count of 0
    stands for a table that was counted before.

    Errors: ValueError for a decoder of fewer than two sub-layers.
    """
    if len(decoder) < 2:
        raise ValueError(f"{len(decoder)} sub-layers in the decoder: which one reads the memory?")
    floor = 1.72  # where the stacks begin
    high = floor + max(len(encoder), len(decoder)) * (PART + GAP + NORM + SPLIT) + 1.72
    ax = Figure(figsize=(WIDTH, high)).add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(0, high))
    ax.set_axis_off()

    said = ("source", "target, shifted right")
    for middle, box, words in zip(COLUMNS, embeddings, said, strict=True):
        _embedding(ax, middle, floor, box, words)
    top = _stack(ax, COLUMNS[0], floor, encoder, n_layers, side=-1)
    _memory(ax, top, floor, encoder[-1][1].shape)
    top = _stack(ax, COLUMNS[1], floor, decoder, n_layers, side=1)
    bottom = top + GAP + 0.14
    _arrow(ax, [(COLUMNS[1], top), (COLUMNS[1], bottom)])
    _box(ax, COLUMNS[1], bottom, PART, output, FILLS["output"])
    _arrow(ax, [(COLUMNS[1], bottom + PART), (COLUMNS[1], bottom + PART + 0.24)])
    _words(ax, COLUMNS[1], bottom + PART + 0.36, "logits, for the softmax")

    own, one, other, whole = total_parameters(encoder, decoder, n_layers, (*embeddings, output))
    lines = (
        f"{own:,} outside of the layers\n+ {n_layers} {TIMES} {one:,} encoder\n"
        f"+ {n_layers} {TIMES} {other:,} decoder"
    )
    _words(ax, 0.25, high - 0.25, f"{whole:,} parameters", ha="left", weight="bold", fontsize=12)
    _words(ax, 0.25, high - 0.68, lines, ha="left", linespacing=1.4)
    _words(ax, 0.25, high - 1.18, "in a box: output shape, parameters", ha="left", style="italic")
    return ax


def _embedding(ax: Axes, middle: float, floor: float, box: Box, words: str) -> None:
    """A table, the sum with the positions, and what goes in below."""
    bottom, plus = 0.52, floor - 0.4
    _words(ax, middle, 0.14, f"{words} {_shape(box.shape[:-1])}")
    _arrow(ax, [(middle, 0.25), (middle, bottom)])
    _box(ax, middle, bottom, PART, box, FILLS["embed"])
    _arrow(ax, [(middle, bottom + PART), (middle, plus - 0.1)])
    ax.add_patch(Circle((middle, plus), 0.1, facecolor="white", edgecolor=LINE, linewidth=1.2))
    for dx, dy in ((0.06, 0), (0, 0.06)):
        ax.plot([middle - dx, middle + dx], [plus - dy, plus + dy], color=LINE, linewidth=1.2)
    side = -1 if middle == COLUMNS[0] else 1
    _words(ax, middle + side * 0.84, plus, "positions")
    _arrow(ax, [(middle + side * 0.5, plus), (middle + side * 0.1, plus)])


def _stack(ax: Axes, middle: float, floor: float, layer: Layer, n: int, *, side: int) -> float:
    """One layer in its frame, the residual arrows on its outer side; return where it ends."""
    height = len(layer) * (PART + GAP + NORM + SPLIT) + PAD
    half = BOX / 2 + 0.36
    frame = FancyBboxPatch(
        (middle - half + (0 if side < 0 else 0.2), floor),
        2 * half - 0.2,
        height,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor=CARD,
        edgecolor=LINE,
        linewidth=1.2,
        zorder=0,
    )
    frame.set_gid("frame")
    ax.add_patch(frame)
    edge = middle + side * (half + 0.1)
    arm = edge - side * 0.06
    ends = floor + 0.06, floor + height - 0.06
    ax.plot([arm, edge, edge, arm], [ends[0], ends[0], ends[1], ends[1]], color=LINE, linewidth=1.2)
    _words(ax, edge + side * 0.24, floor + height / 2, f"{n} {TIMES}", weight="bold", fontsize=11)

    start, bottom = floor - 0.3, floor + SPLIT
    for part, norm in layer:
        kind = "attention" if "attention" in part.name.lower() else "feed"
        above = bottom + PART + GAP
        _arrow(ax, [(middle, start), (middle, bottom)])
        _box(ax, middle, bottom, PART, part, FILLS[kind])
        _arrow(ax, [(middle, bottom + PART), (middle, above)])
        _box(ax, middle, above, NORM, norm, FILLS["norm"])
        out = middle + side * (BOX / 2 + 0.2)
        inner = middle + side * BOX / 2
        branch = bottom - 0.17
        _arrow(ax, [(middle, branch), (out, branch), (out, above + NORM / 2),
                    (inner, above + NORM / 2)], "residual")  # fmt: skip
        start = above + NORM
        bottom = start + SPLIT
    end = floor + height
    ax.plot([middle, middle], [start, end], color=LINE, linewidth=1.2, zorder=1)
    return end


def _memory(ax: Axes, top: float, floor: float, shape: tuple[int, ...]) -> None:
    """From the top of the encoder into the decoder's second part."""
    turn, lane = top + 0.28, (COLUMNS[0] + COLUMNS[1]) / 2
    into = floor + (PART + GAP + NORM + SPLIT) + SPLIT + PART / 2
    _arrow(ax, [(COLUMNS[0], top), (COLUMNS[0], turn), (lane, turn), (lane, into),
                (COLUMNS[1] - BOX / 2, into)], "memory")  # fmt: skip
    _words(ax, COLUMNS[0] - 0.1, turn + 0.13, f"memory {_shape(shape)}", ha="left")


def _box(ax: Axes, middle: float, bottom: float, height: float, box: Box, fill: str) -> None:
    number = sum(patch.get_gid() == "box" for patch in ax.patches)
    patch = FancyBboxPatch(
        (middle - BOX / 2, bottom),
        BOX,
        height,
        boxstyle="round,pad=0,rounding_size=0.07",
        facecolor=fill,
        edgecolor=LINE,
        linewidth=1.1,
        zorder=2,
    )
    patch.set_gid("box")
    ax.add_patch(patch)
    count = f"{box.count:,}" if box.count else "none of its own"
    for share, text, how in (
        (0.71, box.name, {"weight": "bold", "fontsize": 9.5}),
        (0.28, f"{_shape(box.shape)}   {count}", {}),
    ):
        _words(ax, middle, bottom + share * height, text, **how).set_gid(f"in box {number}")


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _words(ax: Axes, x: float, y: float, text: str, **how):
    how = {"ha": "center", "va": "center", "fontsize": 9, "color": INK, "zorder": 3} | how
    return ax.text(x, y, text, parse_math=False, **how)


def _arrow(ax: Axes, corners: Sequence[tuple[float, float]], label: str = "flow") -> None:
    """A line around its corners with a head at its end."""
    x, y = zip(*corners, strict=True)
    ax.plot(x[:-1], y[:-1], color=LINE, linewidth=1.2, zorder=1, solid_joinstyle="round")
    style = {"arrowstyle": "-|>,head_width=0.2,head_length=0.4", "color": LINE, "linewidth": 1.2}
    style |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 10}
    head = ax.annotate("", corners[-1], corners[-2], arrowprops=style, zorder=2)
    head.set_gid(label)
