"""Greedy decoding with one or another step done wrong."""

from contextlib import nullcontext

import torch
from torch import nn


def causal(length: int, max_len: int) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def best_of_last(logits: torch.Tensor) -> torch.Tensor:
    return logits[:, -1].argmax(-1)


def decoding(
    *,
    mask=causal,
    pick=best_of_last,
    start=lambda batch, bos, eos: torch.full((batch, 1), bos),
    append=lambda tokens, best: torch.cat([tokens, best[:, None]], 1),
    fill=lambda best, finished, eos: best.masked_fill(finished, eos),
    stop=lambda finished: finished.all(),
    longest=0,
    feed=lambda tokens: tokens,
    grads=False,
    evaluate=True,
    restore=lambda model, was: model.train(was),
    finish=lambda tokens, eos, max_len: tokens,
):
    """Make a greedy decoding whose steps can each be replaced; as it stands it is right."""

    def greedy_decode(model, bos, eos, max_len, batch=1):
        has_modes = isinstance(model, nn.Module)
        was = model.training if has_modes else None
        if has_modes and evaluate:
            model.eval()
        with nullcontext() if grads else torch.no_grad():
            tokens = start(batch, bos, eos)
            finished = torch.zeros(len(tokens), dtype=torch.bool)
            while tokens.size(1) < max_len + longest and not stop(finished):
                given = feed(tokens)
                best = pick(model(given, mask(given.size(1), max_len)))
                ends = best == eos
                tokens = append(tokens, fill(best, finished, eos))
                finished = finished | ends
        if has_modes and evaluate:
            restore(model, was)
        return finish(tokens, eos, max_len)

    return greedy_decode
