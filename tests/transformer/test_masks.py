"""The masks: boolean, True where a query may look."""

import pytest
import torch

from course_lib.transformer.attention import (
    cached_causal_mask,
    causal_mask,
    expand_key_mask,
    padding_mask,
    scaled_dot_product_attention,
)


def test_row_i_of_the_causal_mask_sees_zero_to_i():
    for n in (0, 1, 2, 7):
        mask = causal_mask(n)
        assert mask.shape == (n, n) and mask.dtype == torch.bool
        assert all(mask[i, j].item() == (j <= i) for i in range(n) for j in range(n))


def test_the_cached_mask_is_the_last_rows_of_the_square():
    for kv_len in (1, 5, 7):
        for q_len in range(kv_len + 1):
            expected = causal_mask(kv_len)[kv_len - q_len :]
            assert torch.equal(cached_causal_mask(q_len, kv_len), expected)


def test_more_queries_than_keys_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"7 queries .* 5 keys"):
        cached_causal_mask(7, 5)


def test_the_padding_mask_is_true_at_real_tokens():
    mask = padding_mask(torch.tensor([3, 0, 5, 11]), 5)
    assert mask.dtype == torch.bool
    assert mask.sum(-1).tolist() == [3, 0, 5, 5]
    assert mask[0].tolist() == [True, True, True, False, False]


def test_the_expanded_mask_hides_padding_from_every_head_and_query():
    q, k = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7)
    mask = padding_mask(torch.tensor([11, 2]), 11)
    assert expand_key_mask(mask).shape == (2, 1, 1, 11)
    _, weights = scaled_dot_product_attention(q, k, k, expand_key_mask(mask))
    assert (weights[1, :, :, 2:] == 0).all()
    assert (weights[0] > 0).all()
