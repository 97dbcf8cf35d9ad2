"""Attention as a chain of stages, so that a mistake is one stage done wrong.

score -> scale -> hide -> normalise -> guard -> mix -> give. With no stage changed the chain is
right; two mistakes in different stages combine into a third function.
"""

import math
from collections.abc import Callable

import torch

Stages = dict[str, Callable]


def score(q, k):
    return q @ k.transpose(-2, -1)


def scale(q, k, v):
    return 1.0 / math.sqrt(q.size(-1))


def hide(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def normalise(scores):
    return torch.softmax(scores, dim=-1)


def guard(weights, scores, mask):
    """Zeros for a row that has nothing to look at."""
    return weights.masked_fill((scores == -torch.inf).all(dim=-1, keepdim=True), 0.0)


def mix(weights, q, k, v):
    return weights @ v


def give(z, weights, scores, v):
    return z, weights


RIGHT: Stages = {
    "score": score,
    "scale": scale,
    "hide": hide,
    "normalise": normalise,
    "guard": guard,
    "mix": mix,
    "give": give,
}


def attention_with(**changed: Callable) -> Callable:
    """Attention with some of its stages replaced.

    >>> attention_with(normalise=lambda scores: torch.ones_like(scores))(
    ...     torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 1)
    ... )[0]
    tensor([[3.]])
    """
    stages = RIGHT | changed

    def faulty(q, k, v, mask=None):
        scores = stages["score"](q * stages["scale"](q, k, v), k)
        scores = stages["hide"](scores, mask)
        weights = stages["guard"](stages["normalise"](scores), scores, mask)
        return stages["give"](stages["mix"](weights, q, k, v), weights, scores, v)

    return faulty
