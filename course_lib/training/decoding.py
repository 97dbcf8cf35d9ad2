"""Let a model write: the most likely token each time, or the best of several hypotheses."""

from collections.abc import Callable
from contextlib import contextmanager

import torch
from torch import nn

from course_lib.transformer.attention import causal_mask


def greedy_decode(
    model: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    bos: int,
    eos: int,
    max_len: int,
    batch: int = 1,
) -> torch.Tensor:
    """Write one token after another, each time the most likely one.

    ``model(tokens, mask)`` gives logits (B, T, V) for the tokens (B, T) written so far, under the
    causal mask (T, T), True = may look. Writing ends when every row has written ``eos``, or at
    ``max_len`` tokens, ``bos`` counted; a row that is finished is filled with ``eos``. No
    gradients; a module is in eval mode while it runs, and in its earlier mode after.

    Shapes: -> (batch, up to max_len) integers.

    >>> def counts_up(tokens, mask):
    ...     return torch.eye(9)[tokens + 1]
    >>> greedy_decode(counts_up, bos=1, eos=4, max_len=7)
    tensor([[1, 2, 3, 4]])
    """
    with evaluating(model), torch.no_grad():
        tokens = torch.full((batch, 1), bos, device=device_of(model))
        finished = torch.zeros(batch, dtype=torch.bool, device=tokens.device)
        while tokens.size(1) < max_len and not finished.all():
            mask = causal_mask(tokens.size(1)).to(tokens.device)
            best = model(tokens, mask)[:, -1].argmax(-1).masked_fill(finished, eos)
            tokens = torch.cat([tokens, best.unsqueeze(1)], dim=1)
            finished |= best == eos
    return tokens


def beam_score(log_prob: float, length: int, alpha: float) -> float:
    """Make hypotheses of different lengths comparable: a longer one has more factors below 1.

    Formula: ``log_prob / ((5 + length) / 6)^alpha``; ``length`` counts ``eos`` and not ``bos``.

    Source: Wu et al. 2016, equation 14, without its coverage term; Vaswani et al. 2017, section
    6.1, with alpha = 0.6 and a beam of 4. alpha = 0 leaves the log-probability as it is.

    >>> round(beam_score(-4.0, length=7, alpha=1.0), 6)
    -2.0
    """
    return log_prob / ((5 + length) / 6) ** alpha


@contextmanager
def evaluating(model):
    """Put a module into eval mode for a while; what has no modes is left alone."""
    modes = {part: part.training for part in model.modules()} if _has_modes(model) else {}
    if modes:
        model.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training


def _has_modes(model) -> bool:
    return isinstance(model, nn.Module)


def device_of(model) -> torch.device:
    """Where a module's parameters are; the CPU for what has none."""
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device
