"""Norm, feed-forward, residuals and the encoder layer, against torch's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.transformer.attention import expand_key_mask, padding_mask
from course_lib.transformer.layers import (
    EncoderLayer,
    FeedForward,
    layer_norm,
    position_wise_ffn,
    post_norm_sublayer,
    pre_norm_sublayer,
)

B, T, H, D, D_FF = 2, 5, 3, 33, 13


def test_layer_norm_equals_torchs_in_values_and_gradients():
    x = torch.randn(B, T, D, requires_grad=True)
    gain, bias = torch.randn(D, requires_grad=True), torch.randn(D, requires_grad=True)
    pull = torch.randn(B, T, D)
    for eps in (1e-5, 0.7):
        ours, theirs = layer_norm(x, gain, bias, eps), F.layer_norm(x, (D,), gain, bias, eps)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
        mine = torch.autograd.grad((ours * pull).sum(), (x, gain, bias))
        reference = torch.autograd.grad((theirs * pull).sum(), (x, gain, bias))
        torch.testing.assert_close(mine, reference, atol=1e-5, rtol=1e-5)


def test_a_constant_token_is_normalised_to_the_bias():
    bias = torch.randn(D)
    assert torch.equal(layer_norm(torch.full((2, D), 3.0), torch.ones(D), bias, 1e-5)[0], bias)


def test_a_large_mean_does_not_cancel():
    x = torch.randn(T, D) + 1e4
    expected = F.layer_norm(x.double(), (D,)).float()
    ours = layer_norm(x, torch.ones(D), torch.zeros(D), 1e-5)
    torch.testing.assert_close(ours, expected, atol=5e-3, rtol=5e-3)


def test_the_feed_forward_module_is_the_function_on_its_own_weights():
    module, x = FeedForward(D, D_FF), torch.randn(B, T, D)
    inner, outer = module.inner, module.outer
    expected = position_wise_ffn(x, inner.weight.T, inner.bias, outer.weight.T, outer.bias)
    torch.testing.assert_close(module(x), expected)


def test_the_feed_forward_network_does_not_mix_positions():
    module = FeedForward(7, D_FF).double()
    x = torch.randn(T, 7, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(module, x)
    for t in range(T):
        others = [s for s in range(T) if s != t]
        assert (jacobian[t][:, others] == 0).all()
        assert (jacobian[t][:, t] != 0).any()


def test_the_two_sublayers_put_norm_and_dropout_where_they_belong():
    x = torch.randn(B, T, D)
    fn, norm, drop = nn.Linear(D, D), nn.LayerNorm(D), lambda y: y * 0.5
    torch.testing.assert_close(post_norm_sublayer(x, fn, norm, drop), norm(x + fn(x) * 0.5))
    torch.testing.assert_close(pre_norm_sublayer(x, fn, norm, drop), x + fn(norm(x)) * 0.5)


def layers(norm_first):
    torch.manual_seed(1)
    ours = EncoderLayer(D, H, D_FF, norm_first=norm_first)
    theirs = nn.TransformerEncoderLayer(
        D, H, D_FF, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    attention = ours.self_attention
    maps = attention.query, attention.key, attention.value
    with torch.no_grad():
        for norm in (ours.norm1, ours.norm2):
            norm.weight.uniform_(0.5, 2.0)
            norm.bias.normal_()
    theirs.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([m.weight for m in maps]).detach(),
            "self_attn.in_proj_bias": torch.cat([m.bias for m in maps]).detach(),
            "self_attn.out_proj.weight": attention.output.weight.detach(),
            "self_attn.out_proj.bias": attention.output.bias.detach(),
            "linear1.weight": ours.feed_forward.inner.weight.detach(),
            "linear1.bias": ours.feed_forward.inner.bias.detach(),
            "linear2.weight": ours.feed_forward.outer.weight.detach(),
            "linear2.bias": ours.feed_forward.outer.bias.detach(),
            **{f"norm{n}.{k}": p.detach() for n in (1, 2)
               for k, p in getattr(ours, f"norm{n}").named_parameters()},
        }
    )  # fmt: skip
    return ours, theirs


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_the_encoder_layer_equals_torchs_in_values_and_gradients(norm_first):
    ours, theirs = layers(norm_first)
    real = padding_mask(torch.tensor([T, 3]), T)
    x = torch.randn(B, T, D)
    mine, reference = x.clone().requires_grad_(), x.clone().requires_grad_()
    out = ours(mine, expand_key_mask(real))
    expected = theirs(reference, src_key_padding_mask=~real)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    pull = torch.randn(B, T, D)
    (out * pull).sum().backward()
    (expected * pull).sum().backward()
    torch.testing.assert_close(mine.grad, reference.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        ours.feed_forward.inner.weight.grad, theirs.linear1.weight.grad, atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(
        ours.self_attention.output.weight.grad,
        theirs.self_attn.out_proj.weight.grad,
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_the_weights_come_with_the_same_output(norm_first):
    ours, _ = layers(norm_first)
    x = torch.randn(B, T, D)
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    out, weights = ours.with_weights(x, mask)
    torch.testing.assert_close(out, ours(x, mask))
    assert weights.shape == (B, H, T, T)
    assert (weights.masked_select(~mask) == 0).all()


def test_dropout_acts_while_training_alone():
    layer, x = EncoderLayer(D, H, D_FF, dropout=0.5), torch.randn(B, T, D)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
