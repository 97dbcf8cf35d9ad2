"""Heads: blocks of features, attended side by side; equal to torch's weight for weight."""

import pytest
import torch
from torch import nn

from course_lib.transformer.attention import expand_key_mask, padding_mask
from course_lib.transformer.heads import (
    MultiHeadAttention,
    cross_attention,
    merge_heads,
    split_heads,
)

B, T, S, H, K = 2, 5, 7, 3, 11
D = H * K


def test_head_h_has_the_hth_block_of_features():
    x = torch.randn(B, T, D)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, T, K)
    for h in range(H):
        assert torch.equal(heads[:, h], x[..., h * K : (h + 1) * K])


def test_merging_undoes_splitting():
    x = torch.randn(B, T, D)
    assert torch.equal(merge_heads(split_heads(x, H)), x)
    assert torch.equal(merge_heads(split_heads(x.mT.contiguous().mT, H)), x)


@pytest.mark.parametrize("build", [lambda: split_heads(torch.ones(B, T, D), 2),
                                   lambda: MultiHeadAttention(D, 2)])  # fmt: skip
def test_a_width_that_does_not_divide_is_refused_with_both_numbers(build):
    with pytest.raises(ValueError, match=r"d_model 33 .* n_heads 2"):
        build()


def test_cross_attention_ignores_what_memorys_mask_hides():
    dec, mem = torch.randn(B, T, D), torch.randn(B, S, D)
    matrices = [torch.randn(D, K) / D**0.5 for _ in range(3)]
    mask = padding_mask(torch.tensor([3, 0]), S)
    z = cross_attention(dec, mem, *matrices, mask)
    assert z.shape == (B, T, K)
    torch.testing.assert_close(z[:1], cross_attention(dec[:1], mem[:1, :3], *matrices))
    assert (z[1] == 0).all()


def pair():
    """Our module and torch's, with the same weights."""
    ours, theirs = MultiHeadAttention(D, H), nn.MultiheadAttention(D, H, batch_first=True)
    copy_attention(ours, theirs)
    return ours, theirs


def copy_attention(ours, theirs):
    maps = ours.query, ours.key, ours.value
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        theirs.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention_equals_torchs_in_values_weights_and_gradients(need_weights):
    torch.manual_seed(0)
    ours, theirs = pair()
    query, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    real = padding_mask(torch.tensor([S, 4]), S)
    mine = [x.clone().requires_grad_() for x in (query, memory)]
    reference = [x.clone().requires_grad_() for x in (query, memory)]
    z, weights = ours(mine[0], mine[1], mine[1], expand_key_mask(real), need_weights=need_weights)
    expected, expected_weights = theirs(
        reference[0], reference[1], reference[1], key_padding_mask=~real, average_attn_weights=False
    )
    torch.testing.assert_close(z, expected, atol=1e-5, rtol=1e-5)
    if need_weights:
        torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=1e-5)
    else:
        assert weights is None
    z.square().sum().backward()
    expected.square().sum().backward()
    for x, y in zip(mine, reference, strict=True):
        torch.testing.assert_close(x.grad, y.grad, atol=1e-5, rtol=1e-5)
    grads = torch.cat([m.weight.grad for m in (ours.query, ours.key, ours.value)])
    torch.testing.assert_close(grads, theirs.in_proj_weight.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        ours.output.weight.grad, theirs.out_proj.weight.grad, atol=1e-5, rtol=1e-5
    )
