"""Pairs of sentences as tensors: a vocabulary, and batches of sentences of like length."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

Pair = tuple[Sequence[str], Sequence[str]]
PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """Pieces and their ids, in one list for both languages; the first four ids are special.

    >>> words = Vocabulary.of([["two", "one"], ["zwei"]])
    >>> words.encode(["one", "three"]), words.decode([4, 2])
    ([4, 3], ['one'])
    """

    def __init__(self, pieces: Sequence[str]):
        self.pieces = (*SPECIAL, *pieces)
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        if len(self.ids) < len(self.pieces):
            raise ValueError("a piece is twice in the vocabulary")

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """Make a vocabulary of every piece that occurs, in the order of the alphabet."""
        return cls(sorted({piece for sentence in sentences for piece in sentence}))

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, pieces: Sequence[str]) -> list[int]:
        return [self.ids.get(piece, UNKNOWN) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces up to the first ``eos``, without special ones but ``<unk>``."""
        pieces = []
        for i in ids:
            if i == EOS:
                break
            if i not in (PAD, BOS):
                pieces.append(self.pieces[i])
        return pieces


@dataclass(frozen=True)
class Batch:
    """Sentences of one step, padded at the end; ``target`` ends with ``eos``, and has no ``bos``.

    Shapes: ``source`` (B, S), ``source_mask`` (B, S) True at real tokens, ``target`` (B, T).
    """

    source: torch.Tensor
    source_mask: torch.Tensor
    target: torch.Tensor

    def to(self, device) -> "Batch":
        return Batch(*(x.to(device) for x in (self.source, self.source_mask, self.target)))


def pad_rows(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Put rows of ids into one table, padded at the end.

    >>> pad_rows([[5, 6, 7], [8]])
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def make_batch(pairs: Sequence[Pair], vocabulary: Vocabulary) -> Batch:
    """Turn pairs of sentences into a batch.

    >>> words = Vocabulary.of([["one", "two"], ["zwei"]])
    >>> make_batch([(["one", "two"], ["zwei"])], words).target
    tensor([[6, 2]])
    """
    source = pad_rows([vocabulary.encode(pair[0]) for pair in pairs])
    target = pad_rows([[*vocabulary.encode(pair[1]), EOS] for pair in pairs])
    return Batch(source, source != PAD, target)


def batches_of(
    pairs: Sequence[Pair], vocabulary: Vocabulary, size: int, seed: int, pool: int = 20
) -> Iterator[Batch]:
    """Give batches for ever, each of sentences of like length, in a new order each time round.

    Sentences of one batch are padded to the longest of them. So ``pool`` batches' worth of
    sentences are sorted by length before they are cut, and the batches are then shuffled.

    Errors: ValueError for no pairs.

    >>> words = Vocabulary.of([["one"], ["a", "b", "c"]])
    >>> batch = next(batches_of([(["one"], ["a"])] * 3, words, size=3, seed=0))
    >>> batch.source.shape
    torch.Size([3, 1])
    """
    if not pairs:
        raise ValueError("there are 0 pairs to make batches of")
    dice = random.Random(seed)
    pairs = list(pairs)
    while True:
        dice.shuffle(pairs)
        for start in range(0, len(pairs), size * pool):
            near = sorted(pairs[start : start + size * pool], key=_lengths)
            cut = [near[i : i + size] for i in range(0, len(near), size)]
            dice.shuffle(cut)
            for part in cut:
                yield make_batch(part, vocabulary)


def batches_once(
    pairs: Sequence[Pair], vocabulary: Vocabulary, size: int = 500
) -> Iterator[tuple[list[int], Batch]]:
    """Give every pair once, with the places at which they stood: to measure, not to train."""
    order = sorted(range(len(pairs)), key=lambda i: _lengths(pairs[i]))
    for start in range(0, len(order), size):
        places = order[start : start + size]
        yield places, make_batch([pairs[i] for i in places], vocabulary)


def _lengths(pair: Pair) -> tuple[int, int]:
    return len(pair[0]), len(pair[1])
