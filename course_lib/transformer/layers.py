"""Around attention: the norm, the feed-forward network, the residual, and one encoder layer."""

from collections.abc import Callable

import torch
from torch import nn

from course_lib.transformer.checks import check_fits, check_numbers, check_same_shape, check_shapes
from course_lib.transformer.heads import MultiHeadAttention


def identity(x: torch.Tensor) -> torch.Tensor:
    """Give ``x`` back: what dropout is when there is none.

    >>> identity(torch.tensor(2.0))
    tensor(2.)
    """
    return x


def layer_norm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Bring the features of every token to mean 0 and variance 1, then scale and shift them.

    Formula: ``(x - mean) / sqrt(var + eps) * gain + bias``, over the last axis alone; the
    variance divides by D (biased), eps stands inside the root.

    Source: Ba, Kiros and Hinton 2016, equation 4; Vaswani et al. 2017, section 3.1.

    Shapes: ``x`` (..., D), ``gain`` and ``bias`` (D,) -> (..., D).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> layer_norm(torch.tensor([1.0, 3.0]), torch.ones(2), torch.zeros(2), eps=0.0)
    tensor([-1.,  1.])
    """
    check_shapes(x=(x, "...D"), gain=(gain, "D"), bias=(bias, "D"))
    check_numbers(x=x, gain=gain, bias=bias)
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * gain + bias


def position_wise_ffn(
    x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor
) -> torch.Tensor:
    """Send every token, by itself, through the same two-layer network.

    Formula: ``max(0, x w1 + b1) w2 + b2``.

    Source: Vaswani et al. 2017, equation 2.

    Shapes: ``x`` (..., D), ``w1`` (D, F), ``b1`` (F,), ``w2`` (F, D), ``b2`` (D,) -> (..., D).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> w = torch.eye(2)
    >>> position_wise_ffn(torch.tensor([5.0, -5.0]), w, torch.zeros(2), w, torch.ones(2))
    tensor([6., 1.])
    """
    check_shapes(x=(x, "...D"), w1=(w1, "DF"), b1=(b1, "F"), w2=(w2, "FD"), b2=(b2, "D"))
    check_numbers(x=x, w1=w1, b1=b1, w2=w2, b2=b2)
    return torch.relu(x @ w1 + b1) @ w2 + b2


def post_norm_sublayer(
    x: torch.Tensor, fn: Callable, norm: Callable, drop: Callable = identity
) -> torch.Tensor:
    """Add a sub-layer's output to its input, then normalise the sum: the order of 2017.

    Formula: ``norm(x + drop(fn(x)))``.

    Source: Vaswani et al. 2017, section 3.1, with the dropout of section 5.4.

    Shapes: ``x`` (B, T, D) -> (B, T, D).

    Errors: ValueError where ``fn`` does not give the shape that it takes.

    >>> post_norm_sublayer(torch.tensor(3.0), fn=torch.square, norm=torch.neg)
    tensor(-12.)
    """
    out = drop(fn(x))
    check_same_shape(x, out)
    return norm(x + out)


def pre_norm_sublayer(
    x: torch.Tensor, fn: Callable, norm: Callable, drop: Callable = identity
) -> torch.Tensor:
    """Normalise the input of a sub-layer and add its output to the untouched stream.

    Formula: ``x + drop(fn(norm(x)))``.

    Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".

    Shapes: ``x`` (B, T, D) -> (B, T, D).

    Errors: ValueError where ``fn`` does not give the shape that it takes.

    >>> pre_norm_sublayer(torch.tensor(3.0), fn=torch.square, norm=torch.neg)
    tensor(12.)
    """
    out = drop(fn(norm(x)))
    check_same_shape(x, out)
    return x + out


class FeedForward(nn.Module):
    """Hold the weights of ``position_wise_ffn`` as the linear maps ``inner`` and ``outer``.

    Shapes: ``x`` (..., D) -> (..., D).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> FeedForward(d_model=3, d_ff=7)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x):
        check_fits(self.inner.weight, x=x)
        return self.outer(torch.relu(self.inner(x)))


class EncoderLayer(nn.Module):
    """Let tokens exchange (self-attention), then let each think by itself (feed-forward).

    Formula: two sub-layers, each ``post_norm_sublayer`` as published in 2017, or
    ``pre_norm_sublayer`` with ``norm_first=True``.

    Source: Vaswani et al. 2017, section 3.1; dropout on sub-layer outputs, section 5.4.

    Shapes: ``x`` (B, T, D), ``mask`` boolean (True where a query may look), broadcastable to
    (B, H, T, T) -> (B, T, D).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> EncoderLayer(d_model=6, n_heads=2, d_ff=7)(torch.ones(1, 5, 6)).shape
    torch.Size([1, 5, 6])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.sublayer = pre_norm_sublayer if norm_first else post_norm_sublayer
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        return self.with_weights(x, mask, need_weights=False)[0]

    def with_weights(self, x, mask=None, *, need_weights=True):
        """Return the output and the attention weights (B, H, T, T) that made it.

        With ``need_weights=False`` the fused kernel runs and the weights are None.
        """
        check_fits(self.feed_forward.inner.weight, x=x)
        weights = None

        def attend(y):
            nonlocal weights
            z, weights = self.self_attention(y, y, y, mask, need_weights=need_weights)
            return z

        x = self.sublayer(x, attend, self.norm1, self.drop)
        return self.sublayer(x, self.feed_forward, self.norm2, self.drop), weights
