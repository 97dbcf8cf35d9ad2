"""Beam search: keep the few best hypotheses at every step, not the single best token."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from course_lib.training.decoding import beam_score, device_of, evaluating
from course_lib.transformer.attention import causal_mask


@dataclass(frozen=True)
class Hypothesis:
    """What a beam holds for one sentence: tokens from ``bos`` on, and their log-probability."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float


def beam_search(
    model: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    bos: int,
    eos: int,
    max_len: int,
    *,
    batch: int = 1,
    beam: int = 4,
    alpha: float = 0.6,
) -> list[list[Hypothesis]]:
    """Write each row with a beam of hypotheses; return the finished ones of each, best first.

    At each step every open hypothesis is continued by every token, and the ``beam`` most likely
    continuations of a row stay: those that end go to the finished ones, scored by ``beam_score``.
    A row is done when it has ``beam`` finished ones and no open one can still beat the best of
    them. At ``max_len`` tokens, ``bos`` counted, what is open counts as finished as it stands.

    ``model(tokens, mask)`` gives logits for ``batch * beam`` rows: the hypotheses of row 0 first.
    With ``beam=1`` and ``alpha=0`` this is ``greedy_decode``.

    Source: Vaswani et al. 2017, section 6.1 (beam 4, alpha 0.6); Wu et al. 2016, section 7.

    >>> def counts_up(tokens, mask):
    ...     return 5 * torch.eye(9)[(tokens + 1) % 9]
    >>> beam_search(counts_up, bos=1, eos=4, max_len=7, beam=2)[0][0].tokens
    (1, 2, 3, 4)
    """
    if beam < 1:
        raise ValueError(f"beam {beam} must be at least 1")
    with evaluating(model), torch.no_grad():
        tokens = torch.full((batch, beam, 1), bos, device=device_of(model))
        # At the start all hypotheses of a row are the same: only the first may be continued.
        total = torch.full((batch, beam), -torch.inf, device=tokens.device)
        total[:, 0] = 0.0
        finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        done = [False] * batch
        while tokens.size(-1) < max_len and not all(done):
            length = tokens.size(-1)  # that of the continuations, bos not counted
            mask = causal_mask(length).to(tokens.device)
            log_p = model(tokens.flatten(0, 1), mask)[:, -1].log_softmax(-1)
            log_p = log_p.view(batch, beam, -1) + total.unsqueeze(-1)  # (B, beam, V)
            n_vocab = log_p.size(-1)
            # Twice as many as stay: `beam` of them may end.
            total, place = log_p.flatten(1).topk(min(2 * beam, beam * n_vocab), dim=-1)
            rows = tokens.gather(1, (place // n_vocab).unsqueeze(-1).expand(-1, -1, length))
            tokens = torch.cat([rows, (place % n_vocab).unsqueeze(-1)], dim=-1)
            ends = tokens[..., -1] == eos
            for row in range(batch):
                if not done[row]:
                    _collect(finished[row], tokens[row], total[row], ends[row], length, alpha, beam)
            # The ended ones go to the back, and the `beam` best open ones stay.
            total, order = total.masked_fill(ends, -torch.inf).topk(beam, dim=-1)
            tokens = tokens.gather(1, order.unsqueeze(-1).expand(-1, -1, length + 1))
            done = [
                done[row]
                or _is_done(finished[row], total[row, 0].item(), length, max_len, alpha, beam)
                for row in range(batch)
            ]
        for row in range(batch):
            if not done[row]:
                length = tokens.size(-1) - 1
                _collect(finished[row], tokens[row], total[row], None, length, alpha, beam)
    return [sorted(ones, key=lambda one: -one.score)[:beam] for ones in finished]


def _collect(finished, tokens, total, ends, length, alpha, beam) -> None:
    """Take what has ended among the ``beam`` best (or, with ``ends`` None, all that is open)."""
    for i in range(min(beam, len(total))):
        log_prob = total[i].item()
        if log_prob > -torch.inf and (ends is None or ends[i]):
            score = beam_score(log_prob, length, alpha)
            finished.append(Hypothesis(tuple(tokens[i].tolist()), log_prob, score))


def _is_done(finished, best_open, length, max_len, alpha, beam) -> bool:
    """Whether no open hypothesis can beat the best finished one any more.

    A log-probability only falls as a hypothesis grows; the most that a length penalty can make of
    it is at the greatest length.
    """
    if len(finished) < beam:
        return False
    best = max(one.score for one in finished)
    return max(beam_score(best_open, n, alpha) for n in (length + 1, max_len - 1)) <= best
