"""AttentionView in Python: what it sends, what it refuses, what it says."""

import base64
import json
import re
import warnings

import numpy as np
import pytest
import torch
import traitlets

from course_lib.visuals._widget import joined_module
from course_lib.visuals.attention_view import AttentionView

L, H, T, S = 2, 3, 5, 7
WORDS, KEYS = [f"q{t}" for t in range(T)], [f"k{s}" for s in range(S)]


def weights(*lead, t=T, s=S, seed=0):
    scores = torch.randn(*lead, t, s, generator=torch.Generator().manual_seed(seed))
    return scores.softmax(-1)


def sent(view):
    return np.frombuffer(view.values, "<f4").reshape(-1, *view.sizes[1:])


@pytest.mark.parametrize("lead", [(), (H,), (L, H)], ids=str)
def test_weights_are_sent_once_as_four_bytes_each(lead):
    table = weights(*lead)
    view = AttentionView(table, WORDS, KEYS)
    assert view.sizes == [*(1,) * (2 - len(lead)), *lead, T, S]
    np.testing.assert_array_equal(sent(view).reshape(table.shape), table.numpy())
    everything = json.dumps(view.page_state(), default=lambda b: "x" * len(b))
    assert len(view.values) == 4 * table.numel() and len(everything) < 4 * table.numel() + 700


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_any_floating_dtype_with_a_gradient_is_taken(dtype):
    view = AttentionView(weights(H).to(dtype).requires_grad_(), WORDS, KEYS)
    np.testing.assert_allclose(sent(view)[0], weights(H).numpy(), atol=4e-3)


def test_a_change_of_the_callers_array_changes_nothing():
    table = weights().numpy().copy()
    view = AttentionView(table, WORDS, KEYS)
    before = view.sentence()
    table[:] = 0
    assert view.sentence() == before


def test_the_selection_can_be_set_and_stays_within_the_weights():
    view = AttentionView(weights(L, H), WORDS, KEYS, layer=1, head=2)
    view.query, view.key = T - 1, S - 1
    for name, most in (("layer", L), ("head", H), ("query", T), ("key", S)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {most}, expected at most"):
            setattr(view, name, most)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: AttentionView(weights(), WORDS[:3], KEYS), "3 tokens for 5 queries"),
        (lambda: AttentionView(weights(), WORDS), "5 queries and 7 keys"),
        (lambda: AttentionView(weights(), "abcde", KEYS), "one text"),
        (lambda: AttentionView(weights(2, L, H), WORDS, KEYS), r"\(2, 2, 3, 5, 7\)"),
        (lambda: AttentionView(-weights(), WORDS, KEYS), r"weights\[0, 0\] is -0"),
        (lambda: AttentionView(weights() * torch.nan, WORDS, KEYS), "nan"),
        (lambda: AttentionView(weights(), WORDS, KEYS, mask=np.ones((S, T), bool)), r"\(7, 5\)"),
        (lambda: AttentionView(weights(), WORDS, KEYS, kind="maps"), "'maps'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers(make, named):
    with pytest.raises(ValueError, match=named):
        make()


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match="expected bool"):
        AttentionView(weights(), WORDS, KEYS, mask=np.ones((T, S)))


def test_a_row_that_sums_to_neither_one_nor_zero_is_named_and_a_dead_row_is_not():
    table = weights(L, H)
    table[1, 2, 3] *= 0.5
    table[0, 0, 1] = 0.0
    with pytest.warns(UserWarning, match=r"layer 1, head 2, row 3 sums to 0\.5.*\(1 such rows\)"):
        AttentionView(table, WORDS, KEYS)
    table[1, 2, 3] *= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AttentionView(table, WORDS, KEYS)


def test_longer_texts_are_cut_and_say_so():
    view = AttentionView(weights(t=100, s=100), [str(i) for i in range(100)])
    assert view.sizes == [1, 1, 64, 64] and len(view.tokens) == 64
    assert view.note == "The first 64 of 100 tokens are shown."
    assert view.note in view.sentence()


def test_large_models_send_one_layer_at_a_time():
    table = weights(24, 12, t=64, s=64)
    view = AttentionView(table, [str(i) for i in range(64)], layer=3)
    assert view.loaded == 3 and len(view.values) == 4 * 12 * 64 * 64
    np.testing.assert_array_equal(sent(view)[0], table[3].numpy())
    view.layer = 7
    assert view.loaded == 7
    np.testing.assert_array_equal(sent(view)[0], table[7].numpy())
    assert "One of 24 layers" in view.note


def test_masks_are_sent_as_bits_shared_or_one_for_each_head():
    shared = torch.rand(T, S) > 0.5
    view = AttentionView(weights(L, H), WORDS, KEYS, mask=shared)
    bits = np.unpackbits(np.frombuffer(view.hidden, "u1"), bitorder="little")[: T * S]
    np.testing.assert_array_equal(bits.reshape(T, S), ~shared.numpy())
    each = torch.rand(L, H, T, S) > 0.5
    view = AttentionView(weights(L, H), WORDS, KEYS, mask=each)
    bits = np.unpackbits(np.frombuffer(view.hidden, "u1"), bitorder="little")[: each.numel()]
    np.testing.assert_array_equal(bits.reshape(each.shape), ~each.numpy())


def test_scores_may_be_negative_and_minus_infinity_is_masked():
    scores = torch.randn(T, S)
    scores[0, 1] = -torch.inf
    view = AttentionView(scores, WORDS, KEYS, kind="scores")
    assert view.reach == pytest.approx(scores[scores.isfinite()].abs().max().item())
    assert np.frombuffer(view.hidden, "u1")[0] == 2


def test_it_is_shown_in_four_ways():
    view = AttentionView(weights(L, H), WORDS, KEYS, layer=1, head=2, title="Who")
    bundle, _ = view._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    best = weights(L, H)[1, 2, 0].argmax().item()
    assert bundle["text/plain"] == view.sentence()
    assert f"The query q0 looks most at k{best}" in view.sentence()
    assert re.search(r'<img alt="Attention weights, layer 1 of 2, head 2 of 3', bundle["text/html"])


def test_tokens_cannot_end_the_script_of_a_page():
    hostile = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>"]
    view = AttentionView(weights(t=2, s=2), hostile)
    page = view._repr_mimebundle_()[0]["text/html"]
    assert "<script>alert" not in page and "<img src=x" not in page


def test_the_module_stays_small_and_imports_nothing():
    module = joined_module("attention_view.mjs")
    assert len(module.encode()) <= 25 * 1024
    assert not re.search(r"^\s*import |import\(|https?://|innerHTML", module, re.M)
