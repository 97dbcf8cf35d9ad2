"""What tells attention where a token stands: sinusoids by formula, or vectors that are learned."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.transformer.checks import (
    check_fits,
    check_integers,
    check_shapes,
    check_sizes,
    known_ids,
)


def sinusoidal_positions(max_len: int, d_model: int) -> torch.Tensor:
    """Write every position as waves of many lengths: sine at even features, cosine at odd ones.

    Formula: ``PE[pos, 2i] = sin(pos / 10000^(2i/D))``, ``PE[pos, 2i+1] = cos(the same angle)``.

    Source: Vaswani et al. 2017, section 3.5. Positions count from 0. An odd D leaves the last
    sine without its cosine. The angles are computed in float64: in float32 a wide table
    (D = 512) is off by more than 1e-5 from about position 150 on.

    Shapes: -> (max_len, D), float32.

    Errors: ValueError or TypeError where a size is no number of positions or features.

    >>> sinusoidal_positions(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    check_sizes(max_len=max_len, d_model=d_model)
    positions = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = positions / 10000.0**exponents  # (max_len, ceil(D / 2))
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return waves[:, :d_model].float()


def scaled_embedding(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Look tokens up in a table, times the square root of its width.

    Formula: ``table[ids] * sqrt(D)``.

    Source: Vaswani et al. 2017, section 3.4; the paper gives no reason. With entries of
    variance 1/D the product has variance 1; the sinusoids beside it have a mean square of 1/2.

    Shapes: ``ids`` (...) integers, ``table`` (V, D) -> (..., D).

    Errors: ValueError for an id that the table does not hold; TypeError for ids that are no
    integers.

    >>> scaled_embedding(torch.tensor([1]), torch.tensor([[1.0] * 4, [3.0] * 4]))
    tensor([[6., 6., 6., 6.]])
    """
    check_shapes(table=(table, "VD"))
    check_integers(ids=ids)
    with known_ids(ids, table):
        return F.embedding(ids, table) * math.sqrt(table.size(-1))


class LearnedPositions(nn.Module):
    """Add a learned vector per position; there are ``max_len`` of them and no more.

    Source: Vaswani et al. 2017, section 3.5 and Table 3 row E; used by BERT and GPT-2.

    Shapes: ``x`` (B, T, D) -> (B, T, D).

    Errors: ValueError where T is beyond ``max_len``: no vector was learned there; ValueError or
    TypeError where shapes or dtypes do not fit.

    >>> LearnedPositions(max_len=3, d_model=2)(torch.zeros(1, 4, 2))
    Traceback (most recent call last):
    ValueError: 4 positions are more than max_len 3: positions past it were never learned
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def forward(self, x):
        check_shapes(x=(x, "...TD"))
        check_fits(self.table, x=x)
        if x.size(-2) > len(self.table):
            raise ValueError(
                f"{x.size(-2)} positions are more than max_len {len(self.table)}: "
                "positions past it were never learned"
            )
        return x + self.table[: x.size(-2)]
