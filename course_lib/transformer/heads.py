"""Many attentions side by side: split into heads, attend in each, merge."""

import torch
from torch import nn

from course_lib.transformer.attention import fused_attention, scaled_dot_product_attention
from course_lib.transformer.checks import check_fits, check_mask, check_numbers, check_shapes


def split_heads(x: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Cut the features of every token into ``n_heads`` blocks and give the heads an axis.

    Formula: ``out[b, h, t] = x[b, t, h*K : (h+1)*K]`` with ``K = D / n_heads``.

    Source: Vaswani et al. 2017, section 3.2.2. There each head has its own W_i of size D x K;
    stacked side by side they are one D x D matrix, and block h of its product is head h.

    Shapes: ``x`` (B, T, D) -> (B, H, T, K).

    Errors: ValueError where D is not divisible by ``n_heads``, or an axis is missing.

    >>> split_heads(torch.arange(4.0).reshape(1, 1, 4), n_heads=2)
    tensor([[[[0., 1.]],
    <BLANKLINE>
             [[2., 3.]]]])
    """
    check_shapes(x=(x, "...TD"))
    d_model = x.size(-1)
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
    return x.unflatten(-1, (n_heads, d_model // n_heads)).transpose(-3, -2)  # (B, H, T, K)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads of every token back side by side: the inverse of ``split_heads``.

    Formula: ``out[b, t, h*K : (h+1)*K] = x[b, h, t]``: the Concat of the paper.

    Source: Vaswani et al. 2017, section 3.2.2.

    Shapes: ``x`` (B, H, T, K) -> (B, T, H*K).

    Errors: ValueError where an axis is missing.

    >>> merge_heads(torch.tensor([[[[0.0, 1.0]], [[2.0, 3.0]]]]))
    tensor([[[0., 1., 2., 3.]]])
    """
    check_shapes(x=(x, "...HTK"))
    return x.transpose(-3, -2).flatten(-2)  # (B, T, D)


def cross_attention(
    dec: torch.Tensor,
    mem: torch.Tensor,
    wq: torch.Tensor,
    wk: torch.Tensor,
    wv: torch.Tensor,
    mem_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Let one sequence look at another: queries from the decoder, keys and values from memory.

    Formula: ``attention(dec wq, mem wk, mem wv)``, one head.

    Source: Vaswani et al. 2017, section 3.2.3, "encoder-decoder attention".

    Shapes: ``dec`` (B, T, D), ``mem`` (B, S, D), ``wq``, ``wk``, ``wv`` (D, K), ``mem_mask``
    (B, S), True at the memory's real tokens -> z (B, T, K).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> dec, mem = torch.zeros(1, 2, 3), torch.ones(1, 5, 3)
    >>> cross_attention(dec, mem, torch.eye(3), torch.eye(3), torch.eye(3)).shape
    torch.Size([1, 2, 3])
    """
    check_shapes(dec=(dec, "BTD"), mem=(mem, "BSD"))
    check_shapes(dec=(dec, "BTD"), wq=(wq, "DK"), wk=(wk, "DK"), wv=(wv, "DV"))
    check_numbers(dec=dec, mem=mem, wq=wq, wk=wk, wv=wv)
    check_mask(mem.shape[:2], mem_mask=mem_mask)
    mask = None if mem_mask is None else mem_mask[:, None, :]  # (B, 1, S)
    z, _ = scaled_dot_product_attention(dec @ wq, mem @ wk, mem @ wv, mask)
    return z


class MultiHeadAttention(nn.Module):
    """Attend in ``n_heads`` subspaces at once, each projected from all of d_model.

    Formula: ``merge(head_1, ..., head_h) W_O`` with ``head_i = attention(query W_Q, key W_K,
    value W_V)`` on the i-th block of features of each projection.

    Source: Vaswani et al. 2017, section 3.2.2. Its W^Q, W^K, W^V, W^O are the linear maps
    ``query``, ``key``, ``value``, ``output``; like ``nn.MultiheadAttention`` they have biases,
    which the paper does not print.

    Shapes: ``query`` (B, T, D), ``key`` and ``value`` (B, S, D), ``mask`` boolean (True where a
    query may look), broadcastable to (B, H, T, S) -> ``z`` (B, T, D), ``weights`` (B, H, T, S).
    With ``need_weights=False`` the fused kernel runs and ``weights`` is None.

    Errors: ValueError where ``d_model`` is not divisible by ``n_heads``; ValueError or TypeError
    where shapes or dtypes do not fit, naming them.

    >>> z, weights = MultiHeadAttention(d_model=6, n_heads=2)(*[torch.ones(1, 5, 6)] * 3)
    >>> z.shape, weights.shape
    (torch.Size([1, 5, 6]), torch.Size([1, 2, 5, 5]))
    """

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        if min(d_model, n_heads) < 1 or d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None, *, need_weights=True):
        check_fits(self.query.weight, query=query, key=key, value=value)
        q = split_heads(self.query(query), self.n_heads)  # (B, H, T, K)
        k = split_heads(self.key(key), self.n_heads)  # (B, H, S, K)
        v = split_heads(self.value(value), self.n_heads)
        attend = scaled_dot_product_attention if need_weights else fused_attention
        z, weights = attend(q, k, v, mask)
        return self.output(merge_heads(z)), weights  # (B, T, D), (B, H, T, S)
