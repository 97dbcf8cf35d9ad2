"""The figure of the architecture: all words legible, in their boxes, and true to the numbers."""

import re
from itertools import combinations, pairwise

import pytest
import torch

from course_lib.transformer.encoder_decoder import Config, Transformer
from course_lib.visuals.architecture import Box, draw_architecture, total_parameters

DPI = 96  # a page's pixels
WIDEST, SMALLEST = 760, 9.0


def stack(shape, names, width, first):
    return [
        (Box(name, shape, first + 10 * i), Box("Add & norm", shape, 2 * width + i))
        for i, name in enumerate(names)
    ]


def given(n_layers=6, d_model=512, vocabulary=37_000, batch=2):
    source, target = (batch, 7, d_model), (batch, 5, d_model)
    names = "Masked self-attention", "Cross-attention", "Feed-forward"
    return {
        "encoder": stack(source, ("Self-attention", "Feed-forward"), d_model, 1_050_603),
        "decoder": stack(target, names, d_model, 4_198_427),
        "n_layers": n_layers,
        "embeddings": (
            Box("Embedding E, times √D", source, vocabulary * d_model),
            Box("the same E, times √D", target, 0),
        ),
        "output": Box("the same E, transposed", (batch, 5, vocabulary), 0),
    }


SIZES = pytest.mark.parametrize(
    "arguments",
    [given(), given(12, 16_384, 250_000, 128), given(1, 2, 3, 1)],
    ids=["base", "very large", "tiny"],
)


def drawn(arguments):
    ax = draw_architecture(**arguments)
    ax.figure.set_dpi(DPI)
    ax.figure.canvas.draw()
    return ax


def extents(ax):
    """The text, and the rectangle that it takes in pixels."""
    return [(t, t.get_window_extent()) for t in ax.texts if t.get_text()]


def inside(inner, outer, room=1.0):
    return (
        inner.x0 >= outer.x0 + room
        and inner.x1 <= outer.x1 - room
        and inner.y0 >= outer.y0 + room
        and inner.y1 <= outer.y1 - room
    )


@SIZES
def test_every_text_lies_inside_the_picture_and_is_large_enough_to_read(arguments):
    ax = drawn(arguments)
    width = ax.figure.get_window_extent().width
    assert width <= WIDEST
    for text, extent in extents(ax):
        assert inside(extent, ax.figure.bbox), text.get_text()
        assert text.get_fontsize() >= SMALLEST, text.get_text()


@SIZES
def test_words_of_a_box_lie_inside_it(arguments):
    ax = drawn(arguments)
    boxes = [patch for patch in ax.patches if patch.get_gid() == "box"]
    seen = [0] * len(boxes)
    for text, extent in extents(ax):
        found = re.fullmatch(r"in box (\d+)", text.get_gid() or "")
        if found:
            number = int(found[1])
            seen[number] += 1
            assert inside(extent, boxes[number].get_window_extent()), text.get_text()
    pairs = len(arguments["encoder"]) + len(arguments["decoder"])
    assert seen == [2] * (2 * pairs + 3)


@SIZES
def test_no_two_texts_and_no_two_boxes_overlap(arguments):
    ax = drawn(arguments)
    for (a, one), (b, other) in combinations(extents(ax), 2):
        assert not one.overlaps(other), (a.get_text(), b.get_text())
    boxes = [p.get_window_extent() for p in ax.patches if p.get_gid() == "box"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@SIZES
def test_no_line_runs_through_words(arguments):
    ax = drawn(arguments)
    for line in ax.lines:
        corners = ax.transData.transform(line.get_xydata())
        for (x0, y0), (x1, y1) in pairwise(corners):
            steps = torch.linspace(0, 1, 200).tolist()
            points = [(x0 + (x1 - x0) * s, y0 + (y1 - y0) * s) for s in steps]
            for text, extent in extents(ax):
                hit = any(extent.contains(*point) for point in points)
                assert not hit, text.get_text()


def test_every_name_shape_and_count_is_said_once_a_box():
    arguments = given()
    texts = [text.get_text() for text in draw_architecture(**arguments).texts]
    pairs = (*arguments["encoder"], *arguments["decoder"])
    boxes = [box for pair in pairs for box in pair]
    boxes += [*arguments["embeddings"], arguments["output"]]
    for box in boxes:
        shape = f"({', '.join(map(str, box.shape))})"
        line = f"{shape}   {box.count:,}" if box.count else f"{shape}   none of its own"
        assert texts.count(line) == sum(
            (other.shape, other.count) == (box.shape, box.count) for other in boxes
        )
        assert texts.count(box.name) == sum(other.name == box.name for other in boxes)


def test_the_sum_is_that_of_the_boxes_and_of_the_model():
    config = Config(n_vocab=13, n_layers=3, d_model=10, d_ff=7, n_heads=2)
    model = Transformer(config)

    def pairs(layer, *kinds):
        parts = [getattr(layer, kind) for kind in kinds]
        norms = [getattr(layer, f"norm{i + 1}") for i in range(len(parts))]
        numbers = ([sum(p.numel() for p in m.parameters()) for m in ms] for ms in (parts, norms))
        return [
            (Box("part", (1, 5, 10), part), Box("norm", (1, 5, 10), norm))
            for part, norm in zip(*numbers, strict=True)
        ]

    stacks = (
        pairs(model.encoder[0], "self_attention", "feed_forward"),
        pairs(model.decoder[0], "self_attention", "cross_attention", "feed_forward"),
    )
    table, again = Box("E", (1, 5, 10), 130), Box("E", (1, 5, 10), 0)
    assert total_parameters(*stacks, 3, (table, again))[-1] == config.n_parameters()
    ax = draw_architecture(*stacks, n_layers=3, embeddings=(table, again), output=again)
    texts = [text.get_text() for text in ax.texts]
    assert f"{config.n_parameters():,} parameters" in texts
    assert sum(re.match(r"3 \W", text) is not None for text in texts) == 2


def test_each_sublayer_has_its_residual_and_one_arrow_carries_the_memory_into_cross_attention():
    ax = draw_architecture(**given())
    labels = [text.get_gid() for text in ax.texts]
    assert labels.count("residual") == 5 and labels.count("memory") == 1
    (memory,) = (text for text in ax.texts if text.get_gid() == "memory")
    x, y = memory.xy
    names = [t.get_text() for t in ax.texts if (t.get_gid() or "").startswith("in box")]
    cross = [p for p in ax.patches if p.get_gid() == "box"][names.index("Cross-attention") // 2]
    assert x == pytest.approx(cross.get_x()) and cross.get_y() < y
    assert y < cross.get_y() + cross.get_height()


def test_a_decoder_that_reads_no_memory_is_refused():
    arguments = given()
    with pytest.raises(ValueError, match="1 sub-layers in the decoder"):
        draw_architecture(**arguments | {"decoder": arguments["decoder"][:1]})
