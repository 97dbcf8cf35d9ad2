"""Train and measure a translator: its loss, exact match, and what it writes."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from course_lib.training.data import BOS, EOS, PAD, Batch, Pair, Vocabulary, batches_once
from course_lib.training.decoding import device_of, evaluating, greedy_decode
from course_lib.training.losses import label_smoothing_loss
from course_lib.transformer.encoder_decoder import shift_right


def translation_loss(smoothing: float = 0.1) -> Callable[[nn.Module, Batch], torch.Tensor]:
    """Make the loss of a batch: the target, shifted right, goes in; the target is asked for.

    The model is called as ``model(source, target, source_mask)``.
    """

    def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
        batch = batch.to(device_of(model))
        logits = model(batch.source, shift_right(batch.target, BOS), batch.source_mask)
        return label_smoothing_loss(logits, batch.target, smoothing, PAD)

    return loss


def exact_matches(model: nn.Module, pairs: Sequence[Pair], vocabulary: Vocabulary) -> list[bool]:
    """Say for every pair whether the model writes exactly its target.

    One pass is enough: if every token is the most likely one after the right tokens before it,
    greedy decoding writes just these; if one is not, greedy decoding goes wrong there.
    """
    right = [False] * len(pairs)
    with evaluating(model), torch.no_grad():
        for places, batch in batches_once(pairs, vocabulary):
            batch = batch.to(device_of(model))
            logits = model(batch.source, shift_right(batch.target, BOS), batch.source_mask)
            is_right = (logits.argmax(-1) == batch.target) | (batch.target == PAD)
            for place, one in zip(places, is_right.all(-1).tolist(), strict=True):
                right[place] = one
    return right


def exact_match(model: nn.Module, pairs: Sequence[Pair], vocabulary: Vocabulary) -> float:
    """Return the share of pairs whose target the model writes exactly."""
    right = exact_matches(model, pairs, vocabulary)
    return sum(right) / len(right)


def writer(
    model: nn.Module, source: torch.Tensor, source_mask: torch.Tensor | None = None
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Read the source, and return what decoding asks for: ``write(tokens, mask)`` gives logits.

    The model makes the same causal mask itself. A model that has ``reader`` reads once; another
    is called as ``model(source, tokens, source_mask)`` each time.

    Shapes: ``source`` (B, S), ``source_mask`` (B, S); tokens (B, T) -> logits (B, T, V).
    """
    if hasattr(model, "reader"):
        read = model.reader(source, source_mask)
    else:

        def read(tokens):
            return model(source, tokens, source_mask)

    # Decoding keeps its tokens on the CPU where it can't ask a function for its device.
    return lambda tokens, mask: read(tokens.to(source.device)).to(tokens.device)


def translate(
    model: nn.Module, sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, max_len: int = 40
) -> list[list[str]]:
    """Translate sentences greedily; what is longer than ``max_len`` tokens is cut off there."""
    written: list[list[str]] = [[] for _ in sentences]
    with evaluating(model), torch.no_grad():
        for places, batch in batches_once([(s, ()) for s in sentences], vocabulary):
            batch = batch.to(device_of(model))
            write = writer(model, batch.source, batch.source_mask)
            rows = greedy_decode(write, BOS, EOS, max_len, batch=len(places))
            for place, row in zip(places, rows.tolist(), strict=True):
                written[place] = vocabulary.decode(row)
    return written
