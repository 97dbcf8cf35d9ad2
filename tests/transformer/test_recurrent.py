"""The recurrent encoder-decoder: padding does not matter, the future does not leak."""

import pytest
import torch

from course_lib.transformer.attention import padding_mask
from course_lib.transformer.recurrent import (
    AdditiveAttention,
    RecurrentConfig,
    RecurrentEncoderDecoder,
)

B, T, S, D, V = 2, 5, 7, 6, 11
FORMS = [(False, False), (True, False), (False, True), (True, True)]


def build(attention, bidirectional):
    torch.manual_seed(0)
    return RecurrentEncoderDecoder(
        RecurrentConfig(n_vocab=V, d_model=D, attention=attention, bidirectional=bidirectional)
    )


def tokens():
    torch.manual_seed(1)
    return torch.randint(V, (B, S)), torch.randint(V, (B, T))


@pytest.mark.parametrize(("attention", "bidirectional"), FORMS)
def test_what_stands_in_the_padding_does_not_matter(attention, bidirectional):
    model = build(attention, bidirectional)
    source, target = tokens()
    mask = padding_mask(torch.tensor([S, 3]), S)
    before = model(source, target, mask)
    changed = source.clone()
    changed[1, 3:] = (changed[1, 3:] + 1) % V
    torch.testing.assert_close(model(changed, target, mask), before)
    alone = model(source[1:, :3], target[1:])
    torch.testing.assert_close(before[1:], alone)


@pytest.mark.parametrize(("attention", "bidirectional"), FORMS)
def test_a_later_target_does_not_move_an_earlier_logit(attention, bidirectional):
    model = build(attention, bidirectional)
    source, target = tokens()
    changed = target.clone()
    changed[:, 3:] = (changed[:, 3:] + 1) % V
    before, after = model(source, target), model(source, changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])


def test_without_attention_there_are_no_weights_and_with_it_rows_sum_to_one():
    source, target = tokens()
    assert build(False, False).with_weights(source, target)[1] is None
    weights = build(True, False).with_weights(source, target)[1]
    assert weights.shape == (B, T, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))


def test_additive_scores_are_bahdanaus_formula():
    attention = AdditiveAttention(D)
    state, memory = torch.randn(1, T, D), torch.randn(1, S, D)
    _, weights = attention(state, memory)
    scores = torch.empty(T, S)
    for t in range(T):
        for s in range(S):
            hidden = torch.tanh(
                attention.query.weight @ state[0, t] + attention.key.weight @ memory[0, s]
            )
            scores[t, s] = attention.score.weight[0] @ hidden
    torch.testing.assert_close(weights[0], scores.softmax(-1))


def test_the_forget_bias_is_the_sum_of_torchs_two_biases():
    config = RecurrentConfig(n_vocab=V, d_model=D, forget_bias=3.0)
    lstm = RecurrentEncoderDecoder(config).decoder
    assert torch.equal((lstm.bias_ih_l0 + lstm.bias_hh_l0)[D : 2 * D], torch.full((D,), 3.0))


def test_sizes_that_cannot_be_are_refused_with_their_numbers():
    with pytest.raises(ValueError, match="d_model 7 must be even"):
        RecurrentConfig(n_vocab=V, d_model=7, bidirectional=True)
