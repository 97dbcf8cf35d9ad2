"""The explorers of lessons 03, 04 and 05 say and draw what torch computes."""

import math

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.positions import sinusoidal_positions
from course_lib.visuals.flow_explorer import flow_explorer
from course_lib.visuals.heads_explorer import costs, heads_explorer
from course_lib.visuals.position_explorer import sinusoid_explorer

TABLE = sinusoidal_positions(31, 14)


def test_the_sentence_gives_the_dot_product_of_the_two_rows():
    explorer = sinusoid_explorer(TABLE, first=3, second=11, pair=1)
    assert f"{TABLE[3] @ TABLE[11]:.2f}" in explorer.sentence
    explorer.controls["second"].value = 30
    assert f"{TABLE[3] @ TABLE[30]:.2f}" in explorer.sentence


def test_the_hands_stand_at_the_chosen_pair_and_the_point_at_the_second_position():
    explorer = sinusoid_explorer(TABLE)
    explorer.controls["pair"].value = 5
    clock, right = explorer.figure.axes[1], explorer.figure.axes[2]
    tips = [line.get_xydata()[1] for line in clock.lines[1:]]
    np.testing.assert_allclose(tips, [TABLE[5, 10:12], TABLE[15, 10:12]], atol=1e-6)
    np.testing.assert_allclose(
        right.lines[1].get_xydata()[0], [15, TABLE[5] @ TABLE[15]], rtol=1e-5
    )


def test_the_turn_is_the_angle_between_the_two_hands():
    explorer = sinusoid_explorer(TABLE, first=2, second=3, pair=0)
    said = int(explorer.sentence.split("it turns by ")[1].split(" degrees")[0])
    angles = [math.degrees(math.atan2(*TABLE[p, :2].tolist())) for p in (2, 3)]
    assert said == round((angles[1] - angles[0]) % 360)


@pytest.mark.parametrize("shape", [(1, 8), (5, 1), (5,)])
def test_a_table_that_has_no_pair_is_refused_with_its_shape(shape):
    with pytest.raises(ValueError, match=str(shape[0])):
        sinusoid_explorer(np.zeros(shape))


def test_the_flow_of_a_chosen_depth_is_measured_once_for_each_order():
    asked = []

    def measure(depth, norm_first):
        asked.append((depth, norm_first))
        return [depth + norm_first + layer for layer in range(depth)]

    explorer = flow_explorer(measure, depth=3)
    assert "3.00 at the bottom and 5.00 at the top of the post-norm" in explorer.sentence
    explorer.controls["depth"].value = 7
    explorer.controls["depth"].value = 3
    assert sorted(asked) == [(3, False), (3, True), (7, False), (7, True)]
    post, pre = explorer.figure.axes[0].lines
    np.testing.assert_allclose(post.get_ydata(), [3, 4, 5])
    np.testing.assert_allclose(pre.get_ydata(), [4, 5, 6])


def test_the_costs_of_heads_are_those_of_the_module():
    for n_heads in (1, 2, 7):
        module = MultiHeadAttention(14, n_heads)
        counted = costs(14, n_heads, 5)
        assert counted["parameters"] == sum(p.numel() for p in module.parameters())
        x = torch.ones(1, 5, 14)
        assert counted["weights"] == module(x, x, x)[1].numel()
        with FlopCounterMode(display=False) as counter:
            module(x, x, x)
        assert counted["products"] * 2 == counter.get_total_flops()


def test_the_heads_fill_the_width_and_only_the_weights_grow():
    explorer = heads_explorer(12, n_heads=2, n_tokens=5)
    explorer.controls["n_heads"].value = 6
    left, right = explorer.figure.axes
    assert sum(block.get_width() for block in left.patches) == 12
    assert [bar.get_height() for bar in right.patches] == [1, 1, 6]
    assert "6 heads of 2 features" in explorer.sentence and "150 attention" in explorer.sentence


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="d_model 12 is not divisible by n_heads 5"):
        heads_explorer(12, n_heads=5)
