"""Attention as functions: the softmax, the look-up, the masks, and the formula of the paper."""

import math

import torch
import torch.nn.functional as F

from course_lib.transformer.checks import (
    check_integers,
    check_mask,
    check_numbers,
    check_shapes,
    check_sizes,
)


def row_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Turn each row of scores into weights that are positive and sum to one.

    Formula: ``weights[t, s] = exp(scores[t, s]) / sum over s' of exp(scores[t, s'])``.

    Source: the softmax of Vaswani et al. 2017, equation 1, taken over the keys.

    Shapes: ``scores`` (..., T, S) -> (..., T, S). The last axis is the one that sums to one.
    A score of -inf gets the weight 0. A row of nothing but -inf gets zeros, and sends no gradient.

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> row_softmax(torch.tensor([[0.0, 0.0], [10000.0, -10000.0]]))
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    check_numbers(scores=scores)
    check_shapes(scores=(scores, "...S"))
    dead = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)


def soft_lookup(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Look one query up in a soft dictionary: a mean of the values, weighted by how keys match.

    Formula: ``sum over s of softmax(keys[s] . query) * values[s]``; plain dot products, no scale.

    Source: dot-product attention as in Luong et al. 2015, section 3.1 ("dot"), with separate
    keys and values as in Vaswani et al. 2017, section 3.2.

    Shapes: ``query`` (K,), ``keys`` (S, K), ``values`` (S, V) -> (V,).
    Here V is the width of a value.

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> soft_lookup(torch.tensor([9.0, 0.0]), torch.eye(2), torch.tensor([[1.0], [5.0]]))
    tensor([1.0005])
    """
    check_shapes(query=(query, "K"), keys=(keys, "SK"), values=(values, "SV"))
    check_numbers(query=query, keys=keys, values=values)
    return row_softmax(keys @ query) @ values


def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    need_weights: bool = True,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Let every query take a weighted mean of the values, by how well it matches their keys.

    Formula: ``softmax(q k^T / sqrt(d_k)) v``.

    Source: Vaswani et al. 2017, equation 1; its Q, K, V are our ``q``, ``k``, ``v``, its d_k is
    our axis K. A boolean ``mask`` is True where a query may look (section 3.2.3 sets the other
    scores to minus infinity); the paper does not say what a query with no key does: here it gets
    zero weights and a zero output.

    Shapes: ``q`` (..., T, K), ``k`` (..., S, K), ``v`` (..., S, V), ``mask`` broadcastable to
    (..., T, S) -> ``z`` (..., T, V), ``weights`` (..., T, S), both in the dtype of the input.
    With ``need_weights=False`` torch's fused kernel computes the same ``z``, and ``weights``
    is None.

    Errors: ValueError where shapes do not fit, naming them; TypeError for a mask that is not
    boolean, and where q, k and v are not floating numbers of one dtype.

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> z, weights = scaled_dot_product_attention(q, k, v=torch.tensor([[10.0], [20.0]]))
    >>> weights
    tensor([[0.6698, 0.3302]])
    >>> z
    tensor([[13.3024]])
    """
    if not need_weights:
        return fused_attention(q, k, v, mask)
    check_attention_inputs(q, k, v, mask)
    # Scaled before the product, so that float16 scores stay below 65504.
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1)  # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = row_softmax(scores)
    return weights @ v, weights  # (..., T, V), (..., T, S)


def fused_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, None]:
    """Compute the ``z`` of ``scaled_dot_product_attention`` by torch's fused kernel.

    Shapes: as there, and the same errors; no weights are kept, so their place holds None.

    >>> z, weights = fused_attention(torch.ones(2, 3), torch.ones(5, 3), torch.ones(5, 7))
    >>> z.shape, weights
    (torch.Size([2, 7]), None)
    """
    check_attention_inputs(q, k, v, mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), None


def check_attention_inputs(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None
) -> None:
    """Raise a ValueError or TypeError that names the numbers, where q, k, v, mask do not fit.

    >>> check_attention_inputs(torch.ones(2, 3), torch.ones(5, 4), torch.ones(5, 4), None)
    Traceback (most recent call last):
    ValueError: q (2, 3) and k (5, 4) differ in K: 3 and 4; give both the same K
    """
    check_shapes(q=(q, "...TK"), k=(k, "...SK"), v=(v, "...SV"))
    check_numbers(q=q, k=k, v=v)
    batch = q.shape[:-2]
    try:
        if not batch == k.shape[:-2] == v.shape[:-2]:
            batch = torch.broadcast_shapes(batch, k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"the leading axes of q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} "
            "do not broadcast; give all three the same"
        ) from None
    check_mask((*batch, q.size(-2), k.size(-2)), mask=mask)


def causal_mask(n: int) -> torch.Tensor:
    """Let position i look at positions 0 to i: itself and the past.

    Formula: ``mask[t, s] = (s <= t)``.

    Source: Vaswani et al. 2017, section 3.2.3, third use of attention.

    Shapes: -> (n, n), boolean, True where a query may look.

    Errors: ValueError or TypeError where n is no number of positions.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    check_sizes(n=n)
    return torch.ones(n, n, dtype=torch.bool).tril()


def cached_causal_mask(q_len: int, kv_len: int) -> torch.Tensor:
    """Let the last ``q_len`` of ``kv_len`` positions look at themselves and the past.

    Formula: ``mask[t, s] = (s <= t + kv_len - q_len)``: the last rows of ``causal_mask(kv_len)``.

    Shapes: -> (q_len, kv_len), boolean, True where a query may look.

    Errors: ValueError where there are more queries than keys, or fewer than none.

    >>> cached_causal_mask(2, 5)
    tensor([[ True,  True,  True,  True, False],
            [ True,  True,  True,  True,  True]])
    """
    check_sizes(q_len=q_len, kv_len=kv_len)
    if q_len > kv_len:
        raise ValueError(f"{q_len} queries are more than {kv_len} keys: the queries are the last")
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)


def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    """Mark the real tokens of a padded batch.

    Formula: ``mask[b, s] = (s < lengths[b])``.

    Shapes: ``lengths`` (B,) integers -> (B, max_len), boolean, True at real tokens.
    A length beyond ``max_len`` fills its row.

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> padding_mask(torch.tensor([1, 3]), max_len=3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    check_shapes(lengths=(lengths, "B"))
    check_integers(lengths=lengths)
    check_sizes(max_len=max_len)
    return torch.arange(max_len, device=lengths.device) < lengths.unsqueeze(-1)


def expand_key_mask(mask: torch.Tensor) -> torch.Tensor:
    """Give a mask over keys the axes of the weights, so that it holds for all heads and queries.

    Shapes: ``mask`` (B, S) -> (B, 1, 1, S), which broadcasts to (B, H, T, S).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> expand_key_mask(torch.tensor([[True, False]])).shape
    torch.Size([1, 1, 1, 2])
    """
    check_shapes(mask=(mask, "BS"))
    check_mask(mask.shape, mask=mask)
    return mask[:, None, None, :]
