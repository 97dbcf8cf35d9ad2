"""Decoding: greedy and beam against every sequence that there is, written out."""

import itertools

import pytest
import torch
from torch import nn

from course_lib.training.beam import beam_search
from course_lib.training.decoding import beam_score, evaluating, greedy_decode

BOS, EOS, V = 1, 2, 5


class Table(nn.Module):
    """Random next-token logits for each prefix, the same each time; row r has its own."""

    def __init__(self, seed, rows, sharpness=1.5):
        super().__init__()
        self.seed, self.rows, self.sharpness = seed, rows, sharpness

    def logits_of(self, prefix, row):
        dice = torch.Generator().manual_seed(hash((self.seed, row, *prefix)) % 2**31)
        logits = torch.randn(V, generator=dice) * self.sharpness
        logits[[0, BOS]] = -torch.inf
        return logits

    def forward(self, tokens, mask):
        assert mask.shape == (tokens.size(1),) * 2 and mask.dtype == torch.bool
        assert not self.training and not torch.is_grad_enabled()
        out = torch.zeros(*tokens.shape, V)
        for i, row in enumerate(tokens.tolist()):
            out[i, -1] = self.logits_of(tuple(row), i * self.rows // len(tokens))
        return out


def every_sequence(model, row, max_len):
    """All sequences that end with eos or are max_len long, with their log-probability."""
    for n in range(1, max_len):
        for middle in itertools.product((3, 4), repeat=n - 1):
            for last in (EOS,) if n < max_len - 1 else (EOS, 3, 4):
                tokens, total = (BOS, *middle, last), 0.0
                for i in range(1, len(tokens)):
                    total += model.logits_of(tokens[:i], row).log_softmax(-1)[tokens[i]].item()
                yield tokens, total


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_the_best_sequence_that_there_is(seed, alpha):
    model = Table(seed, rows=2)
    found = beam_search(model, BOS, EOS, 6, batch=2, beam=40, alpha=alpha)
    for row in range(2):
        best = max(
            every_sequence(model, row, 6),
            key=lambda one: beam_score(one[1], len(one[0]) - 1, alpha),
        )
        assert found[row][0].tokens == best[0]
        assert found[row][0].log_prob == pytest.approx(best[1], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_decoding(seed):
    model = Table(seed, rows=3)
    greedy = greedy_decode(model, BOS, EOS, 6, batch=3)
    for row, found in zip(
        greedy.tolist(), beam_search(model, BOS, EOS, 6, batch=3, beam=1, alpha=0.0), strict=True
    ):
        end = row.index(EOS) + 1 if EOS in row else len(row)
        assert found[0].tokens == tuple(row[:end])


def test_a_beam_is_seldom_less_likely_than_greedy_and_often_more():
    better = worse = 0
    for seed in range(60):
        model = Table(seed, rows=1)
        one, four = (beam_search(model, BOS, EOS, 7, beam=n, alpha=0.0)[0][0] for n in (1, 4))
        better += four.log_prob > one.log_prob + 1e-6
        worse += four.log_prob < one.log_prob - 1e-6
    assert better > 10 > 3 > worse


def test_a_longer_sequence_wins_by_the_length_penalty():
    class Short(Table):
        def logits_of(self, prefix, row):
            p = {1: {EOS: 0.42, 3: 0.58}, 2: {3: 0.85, EOS: 0.15}}.get(
                len(prefix), {EOS: 0.8, 3: 0.2}
            )
            return torch.tensor([p.get(i, 0.0) for i in range(V)]).log()

    plain = beam_search(Short(0, 1), BOS, EOS, 8, beam=4, alpha=0.0)[0][0]
    normalised = beam_search(Short(0, 1), BOS, EOS, 8, beam=4, alpha=1.0)[0][0]
    assert plain.tokens == (BOS, EOS) and normalised.tokens == (BOS, 3, 3, EOS)
    assert plain.log_prob > normalised.log_prob


def test_finished_rows_are_filled_and_the_mode_comes_back_part_by_part():
    model = nn.Sequential(Table(0, rows=3), nn.Dropout(0.5))
    model[1].eval()

    def write(tokens, mask):
        return model[0](tokens, mask)

    with evaluating(model):
        rows = greedy_decode(write, BOS, EOS, 9, batch=3)
    assert model.training and model[0].training and not model[1].training
    for row in rows.tolist():
        if EOS in row:
            assert set(row[row.index(EOS) :]) == {EOS}


def test_a_beam_of_none_is_refused():
    with pytest.raises(ValueError, match="beam 0"):
        beam_search(lambda tokens, mask: tokens, BOS, EOS, 5, beam=0)
