"""The attention functions: shapes at primes, properties, and torch's own kernels as reference."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.transformer.attention import (
    row_softmax,
    scaled_dot_product_attention,
    soft_lookup,
)

B, H, T, S, K, V = 2, 3, 5, 7, 11, 13
HALVES = (torch.float16, torch.bfloat16)


def inputs(*, dtype=torch.float32, seed=0, t=T, s=S):
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, H, t, K), (B, H, s, K), (B, H, s, V)
    return tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes)


def mask_with_a_dead_row():
    mask = torch.rand(T, S, generator=torch.Generator().manual_seed(1)) > 0.4
    mask[2] = False
    mask[3] = True
    return mask


def test_shapes_and_dtypes_follow_the_inputs():
    for dtype in (torch.float64, torch.float32, *HALVES):
        z, weights = scaled_dot_product_attention(*inputs(dtype=dtype))
        assert (z.shape, weights.shape) == ((B, H, T, V), (B, H, T, S))
        assert z.dtype == weights.dtype == dtype


def test_inputs_without_batch_axes_are_one_attention():
    q, k, v = (x[1, 2] for x in inputs())
    z, weights = scaled_dot_product_attention(q, k, v)
    whole, whole_weights = scaled_dot_product_attention(*inputs())
    torch.testing.assert_close(z, whole[1, 2])
    torch.testing.assert_close(weights, whole_weights[1, 2])


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "a mask with a dead row"])
@pytest.mark.parametrize("need_weights", [True, False], ids=["written out", "fused"])
def test_values_and_gradients_equal_torchs_kernel(masked, need_weights):
    mask = mask_with_a_dead_row() if masked else None
    ours = [x.requires_grad_() for x in inputs()]
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    z, _ = scaled_dot_product_attention(*ours, mask, need_weights=need_weights)
    expected = F.scaled_dot_product_attention(*theirs, attn_mask=mask)
    pull = torch.randn(z.shape, generator=torch.Generator().manual_seed(2))
    (z * pull).sum().backward()
    (expected * pull).sum().backward()
    torch.testing.assert_close(z, expected, atol=1e-5, rtol=1e-5)
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, reference.grad, atol=1e-5, rtol=1e-5)


def test_the_fused_path_returns_no_weights():
    z, weights = scaled_dot_product_attention(*inputs(), need_weights=False)
    assert weights is None
    assert z.shape == (B, H, T, V)


@pytest.mark.parametrize("need_weights", [True, False], ids=["written out", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_a_query_with_no_key_gets_zeros_and_sends_no_gradient(dtype, need_weights):
    q, k, v = (x.requires_grad_() for x in inputs(dtype=dtype))
    z, weights = scaled_dot_product_attention(
        q, k, v, mask_with_a_dead_row(), need_weights=need_weights
    )
    assert (z[..., 2, :] == 0).all()
    if need_weights:
        assert (weights[..., 2, :] == 0).all()
    z.float().sum().backward()
    assert (q.grad[..., 2, :] == 0).all()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_a_mask_of_nothing_but_false_gives_zeros_everywhere():
    z, weights = scaled_dot_product_attention(*inputs(), torch.zeros(T, S, dtype=torch.bool))
    assert (z == 0).all() and (weights == 0).all()


def test_a_key_that_may_not_be_seen_moves_nothing():
    q, k, v = inputs()
    mask = mask_with_a_dead_row()
    before, _ = scaled_dot_product_attention(q, k, v, mask)
    hidden = ~mask[0]
    k[..., hidden, :] += 100.0
    v[..., hidden, :] -= 100.0
    after, _ = scaled_dot_product_attention(q, k, v, mask)
    assert hidden.any()
    torch.testing.assert_close(before[..., 0, :], after[..., 0, :])


@pytest.mark.parametrize("shape", [(T, S), (1, S), (B, 1, 1, S), (B, H, T, S), (H, 1, S)], ids=str)
def test_masks_broadcast_to_the_scores(shape):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) > 0.3
    _, weights = scaled_dot_product_attention(*inputs(), mask)
    assert (weights.masked_select(~mask.expand(B, H, T, S)) == 0).all()
    alive = mask.expand(B, H, T, S).any(-1)
    torch.testing.assert_close(weights.sum(-1), alive.float())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_precision_stays_finite_for_scores_of_sixty_thousand(dtype):
    size = math.sqrt(6e4 / math.sqrt(K)) * K**-0.25
    q = torch.full((2, K), size).to(dtype)
    q[1] *= -1
    z, weights = scaled_dot_product_attention(q, q, torch.eye(2).to(dtype))
    assert z.isfinite().all()
    torch.testing.assert_close(weights, torch.eye(2).to(dtype))


def test_half_precision_is_near_the_same_sum_in_double():
    for dtype in HALVES:
        q, k, v = inputs(dtype=dtype)
        z, weights = scaled_dot_product_attention(q, k, v, mask_with_a_dead_row())
        exact = scaled_dot_product_attention(
            q.double(), k.double(), v.double(), mask_with_a_dead_row()
        )
        error = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(weights.double(), exact[1], atol=error, rtol=error)
        torch.testing.assert_close(z.double(), exact[0], atol=4 * error, rtol=error)


def test_the_arguments_are_left_as_they_were():
    q, k, v = inputs()
    mask = mask_with_a_dead_row()
    before = [x.clone() for x in (q, k, v, mask)]
    scaled_dot_product_attention(q, k, v, mask)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v, mask), before, strict=True))


@settings(deadline=None, max_examples=50)
@given(
    t=st.integers(1, 6), s=st.integers(1, 6), seed=st.integers(0, 10**6), spread=st.floats(0.1, 50)
)
def test_rows_sum_to_one_and_outputs_stay_within_the_values(t, s, seed, spread):
    q, k, v = inputs(seed=seed, t=t, s=s)
    z, weights = scaled_dot_product_attention(q * spread, k, v)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, t))
    assert (weights >= 0).all()
    assert (z <= v.amax(-2, keepdim=True) + 1e-4).all()
    assert (z >= v.amin(-2, keepdim=True) - 1e-4).all()


@settings(deadline=None, max_examples=30)
@given(order=st.permutations(range(S)), seed=st.integers(0, 10**6))
def test_permuting_the_tokens_permutes_the_rows(order, seed):
    x = inputs(seed=seed)[1]
    z, weights = scaled_dot_product_attention(x, x, x)
    moved = x[..., order, :]
    z_moved, weights_moved = scaled_dot_product_attention(moved, moved, moved)
    torch.testing.assert_close(z_moved, z[..., order, :])
    torch.testing.assert_close(weights_moved, weights[..., order, :][..., order])


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), row=st.integers(0, S - 2))
def test_under_a_causal_mask_the_future_does_not_move_the_past(seed, row):
    x = inputs(seed=seed)[1]
    mask = torch.ones(S, S, dtype=torch.bool).tril()
    before, _ = scaled_dot_product_attention(x, x, x, mask)
    changed = x.clone()
    changed[..., row + 1 :, :] = 9.0
    after, _ = scaled_dot_product_attention(changed, changed, changed, mask)
    assert torch.equal(before[..., : row + 1, :], after[..., : row + 1, :])


@pytest.mark.parametrize(
    ("shapes", "named"),
    [
        (((T, K), (S, V), (S, V)), ["(5, 11)", "(7, 13)", "11 and 13"]),
        (((T, K), (S, K), (T, V)), ["(7, 11)", "(5, 13)", "differ in S: 7 and 5"]),
        (((2, T, K), (3, S, K), (3, S, V)), ["(2, 5, 11)", "(3, 7, 11)"]),
        (((K,), (S, K), (S, V)), ["q (11,)", "(..., T, K)"]),
    ],
    ids=["features differ", "positions differ", "batches differ", "one axis"],
)
def test_shapes_that_do_not_fit_are_named(shapes, named):
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(*(torch.ones(shape) for shape in shapes))
    assert all(part in str(error.value) for part in named)


@pytest.mark.parametrize("shape", [(S, T), (B, T, S), (5, B, H, T, S)], ids=str)
def test_a_mask_that_does_not_fit_is_named_beside_the_scores(shape):
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(*inputs(), torch.ones(shape, dtype=torch.bool))
    assert str(shape) in str(error.value) and str((B, H, T, S)) in str(error.value)


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match=r"torch\.float32, expected torch\.bool"):
        scaled_dot_product_attention(*inputs(), torch.ones(T, S))


def test_row_softmax_equals_torchs_on_ordinary_rows():
    scores = torch.randn(T, S, generator=torch.Generator().manual_seed(4)) * 3
    torch.testing.assert_close(row_softmax(scores), torch.softmax(scores, -1))


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_row_softmax_is_safe_for_scores_of_ten_thousand(size):
    weights = row_softmax(torch.tensor([[size, size, 0.0]]))
    expected = [[0.5, 0.5, 0.0]] if size > 0 else [[0.0, 0.0, 1.0]]
    assert torch.equal(weights, torch.tensor(expected))


def test_a_row_of_minus_infinity_gives_zeros_and_no_gradient():
    scores = torch.tensor([[-torch.inf] * 3, [1.0, -torch.inf, 2.0]], requires_grad=True)
    weights = row_softmax(scores)
    assert (weights[0] == 0).all() and weights[1, 1] == 0
    (weights * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert (scores.grad[0] == 0).all() and scores.grad.isfinite().all()
    assert scores.grad[1, 0] != 0


def test_soft_lookup_is_attention_with_one_query_and_no_scale():
    q, k, v = (x[0, 0] for x in inputs())
    z, _ = scaled_dot_product_attention(q[:1] * math.sqrt(K), k, v)
    torch.testing.assert_close(soft_lookup(q[0], k, v), z[0])
