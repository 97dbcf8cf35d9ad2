"""Positions: the formula in float64, the rotation, and the end of what was learned."""

import math

import pytest
import torch

from course_lib.transformer.positions import (
    LearnedPositions,
    scaled_embedding,
    sinusoidal_positions,
)


@pytest.mark.parametrize("d_model", [1, 2, 7, 12])
def test_every_entry_is_the_papers_formula(d_model):
    table = sinusoidal_positions(1013, d_model)
    assert table.shape == (1013, d_model) and table.dtype == torch.float32
    for position in (0, 1, 2, 17, 1000, 1012):
        for j in range(d_model):
            angle = position / 10000 ** ((j - j % 2) / d_model)
            expected = math.cos(angle) if j % 2 else math.sin(angle)
            assert abs(table[position, j].item() - expected) < 1e-6


def test_the_dot_product_of_two_positions_depends_on_their_distance_alone():
    table = sinusoidal_positions(101, 22).double()
    products = table @ table.T
    for offset in (1, 7, 31):
        diagonal = products.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=1e-5)


def test_the_embedding_is_scaled_by_the_root_of_its_width():
    table = torch.randn(13, 7)
    ids = torch.tensor([[3, 0], [12, 3]])
    torch.testing.assert_close(scaled_embedding(ids, table), table[ids] * 7**0.5)


def test_learned_positions_add_the_same_rows_to_every_example():
    positions = LearnedPositions(max_len=5, d_model=3)
    out = positions(torch.zeros(2, 4, 3))
    assert torch.equal(out[0], positions.table[:4]) and torch.equal(out[0], out[1])


def test_a_position_past_the_learned_ones_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"6 positions .* max_len 5"):
        LearnedPositions(max_len=5, d_model=3)(torch.zeros(2, 6, 3))
