import numpy as np
import pytest
import torch
import torch.nn.functional as F
import traitlets
from matplotlib.collections import PathCollection

from course_lib.visuals._widget import joined_module
from course_lib.visuals.attention_steps import MOST_TOKENS, AttentionSteps

T, S, K, V = 3, 5, 7, 2
QUERIES, KEYS = ["ein", "und", "x"], ["a", "b", "c", "d", "e"]


@pytest.fixture
def qkv():
    numbers = torch.Generator().manual_seed(1)
    return [torch.randn(n, width, generator=numbers) for n, width in ((T, K), (S, K), (S, V))]


@pytest.fixture
def steps(qkv):
    return AttentionSteps(*qkv, QUERIES, KEYS)


def test_q_k_and_v_cross_as_float32_in_that_order(qkv, steps):
    sent = np.frombuffer(steps.numbers, dtype="<f4")
    np.testing.assert_array_equal(sent, torch.cat([part.flatten() for part in qkv]))
    assert steps.sizes == [T, S, K, V]


def test_lists_arrays_and_half_precision_are_taken(qkv):
    listed = AttentionSteps(*(part.tolist() for part in qkv), QUERIES, KEYS)
    assert listed.numbers == AttentionSteps(*(p.numpy() for p in qkv), QUERIES, KEYS).numbers
    AttentionSteps(*(part.bfloat16().requires_grad_() for part in qkv), QUERIES, KEYS)


def test_the_mask_starts_open_and_every_feature_counts(steps):
    assert steps.mask.dtype == bool
    assert steps.mask.shape == (T, S)
    assert steps.mask.all()
    assert steps.d == K


def test_a_mask_of_keys_alone_is_spread_over_the_queries(qkv):
    steps = AttentionSteps(*qkv, QUERIES, KEYS, mask=torch.arange(S) < 4)
    assert steps.mask.tolist() == [[True] * 4 + [False]] * T


def test_a_painted_mask_is_read_back_in_the_right_cells(steps):
    steps.set_state({"allowed": "111111101111110"})  # as it comes from the page
    assert np.argwhere(~steps.mask).tolist() == [[1, 2], [2, 4]]
    assert torch.tensor(steps.mask).dtype == torch.bool


def test_a_mask_set_from_python_is_what_the_page_gets(steps):
    steps.mask = torch.ones(T, S, dtype=torch.bool).tril()
    assert steps.get_state("allowed") == {"allowed": "100001100011100"}


def test_writing_into_the_mask_is_refused_not_lost(steps):
    with pytest.raises(ValueError, match="read-only"):
        steps.mask[0, 0] = False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", 5),
        ("step", -1),
        ("row", T),
        ("column", S),
        ("row", -1),
        ("d", 0),
        ("d", K + 1),
        ("temperature", 0.0),
        ("allowed", "1" * (T * S - 1)),
        ("allowed", "2" * (T * S)),
    ],
)
def test_a_choice_outside_its_range_is_refused(steps, name, value):
    with pytest.raises(traitlets.TraitError):
        setattr(steps, name, value)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 7), (5, 6), (5, 2)), "q has 7 features and k has 6"),
        (((3, 7), (5, 7), (4, 2)), "5 keys and 4 values"),
        (((1, 3, 7), (5, 7), (5, 2)), r"q \(1, 3, 7\) is not \(tokens, features\)"),
        (((3, 7), (0, 7), (0, 2)), r"k \(0, 7\)"),
        (((2, 7), (5, 7), (5, 2)), "3 tokens for 2 queries"),
        (((3, 7), (4, 7), (4, 2)), "5 key_tokens for 4 keys"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, message):
    with pytest.raises(ValueError, match=message):
        AttentionSteps(*(torch.zeros(shape) for shape in shapes), QUERIES, KEYS)


def test_keys_of_another_number_need_names_of_their_own(qkv):
    with pytest.raises(ValueError, match="3 queries and 5 keys: name the keys"):
        AttentionSteps(*qkv, QUERIES)


def test_numbers_that_are_not_finite_are_named(qkv):
    qkv[1][4, 2] = torch.nan
    with pytest.raises(ValueError, match=r"k\[4, 2\] is nan"):
        AttentionSteps(*qkv, QUERIES, KEYS)


def test_too_many_tokens_are_refused_with_the_remedy():
    x = torch.zeros(MOST_TOKENS + 1, 2)
    with pytest.raises(ValueError, match=f"25 queries by 25 keys.*at most {MOST_TOKENS}"):
        AttentionSteps(x, x, x, ["a"] * 25)


@pytest.mark.parametrize(("mask", "error"), [(np.ones((3, 4), bool), ValueError), (1.0, TypeError)])
def test_a_mask_that_does_not_fit_is_refused(qkv, mask, error):
    with pytest.raises(error, match="mask"):
        AttentionSteps(*qkv, QUERIES, KEYS, mask=mask)


def test_the_picture_shows_torchs_weights_and_hatches_the_mask(qkv, steps):
    mask = torch.ones(T, S, dtype=torch.bool).tril()
    steps.mask, steps.temperature, steps.d = mask, 0.5, 4
    (image,) = steps.picture().axes[0].images
    q, k, _ = qkv
    scores = q[:, :4] @ k[:, :4].T / 2 / 0.5
    wanted = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    np.testing.assert_allclose(image.get_array().filled(0), wanted, atol=1e-6)
    hatched = [c for c in steps.picture().axes[0].collections if isinstance(c, PathCollection)]
    outlines = hatched[0].get_paths()[0].vertices.reshape(-1, 5, 2)
    widths = outlines[..., 0].max(1) - outlines[..., 0].min(1)
    assert widths.sum() == int((~mask).sum())


def test_the_sentence_names_the_strongest_key_of_the_chosen_query(qkv, steps):
    steps.row = 2
    weights = torch.softmax(qkv[0] @ qkv[1].T / K**0.5, dim=-1)[2]
    assert f"the query x looks most at {KEYS[weights.argmax()]}" in steps.sentence()
    assert f"weight {weights.max():.2f}" in steps.sentence()


def test_a_query_that_sees_nothing_is_said_and_drawn(steps):
    steps.mask = np.arange(T)[:, None] != 0
    assert "the query ein may look at nothing" in steps.sentence()
    assert not steps.picture().axes[0].images[0].get_array()[0].filled(0).any()


def test_the_weights_in_python_equal_torchs_kernel(qkv, steps):
    steps.mask = torch.rand(T, S, generator=torch.Generator().manual_seed(3)) < 0.5
    q, k, _ = qkv
    mask = torch.tensor(steps.mask)
    wanted = F.scaled_dot_product_attention(q, k, torch.eye(S), attn_mask=mask)
    np.testing.assert_allclose(steps._weights(), wanted.nan_to_num(0.0), atol=1e-6)


def test_the_module_and_the_shared_text_stay_within_25_kilobytes():
    assert len(joined_module("attention_steps.mjs").encode()) <= 25 * 1024


def test_four_forms_of_output_are_given(steps):
    shown, _ = steps._repr_mimebundle_()
    assert set(shown) >= {
        "application/vnd.jupyter.widget-view+json",
        "text/html",
        "image/png",
        "text/plain",
    }
    assert shown["text/plain"] == steps.sentence()
