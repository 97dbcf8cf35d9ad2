"""Where cross-attention looks while a German number is written, against where it should."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from course_lib.training.data import BOS, Pair, Vocabulary, batches_once
from course_lib.training.number_words import number_pieces
from course_lib.transformer.encoder_decoder import Transformer, shift_right


@lru_cache
def english_of() -> dict[str, str]:
    """The English word of each German piece that has one; *und* joins, and has none.

    >>> english_of()["sechzehn"], english_of()["ein"], "und" in english_of()
    ('sixteen', 'one', False)
    """
    plain = [*range(20), *range(20, 100, 10)]
    words = {number_pieces(n, "de")[0]: number_pieces(n, "en")[0] for n in plain}
    return words | {"ein": "one", "hundert": "hundred", "tausend": "thousand"}


def right_places(source: Sequence[str], target: Sequence[str]) -> list[int | None]:
    """For each German piece, where its English word stands; None for *und*.

    The n-th *ein* belongs to the n-th *one*: the two languages differ in the order within a
    number below 100 alone, and no word is twice in one.

    >>> right_places(["twenty", "one"], ["ein", "und", "zwanzig"])
    [1, None, 0]
    """
    seen: Counter = Counter()
    places = []
    for piece in target:
        word = english_of().get(piece)
        at = [i for i, one in enumerate(source) if one == word]
        places.append(at[seen[word]] if word else None)
        seen[word] += 1
    return places


def swapped(target: Sequence[str]) -> set[int]:
    """The places of the units and tens around each *und*.

    >>> sorted(swapped(["vier", "hundert", "ein", "und", "zwanzig"]))
    [2, 4]
    """
    return {
        place + step for place, piece in enumerate(target) if piece == "und" for step in (-1, 1)
    }


@dataclass
class Alignment:
    """How often the strongest source word was the right one: in the swaps, and by German piece."""

    swaps: list[bool] = field(default_factory=list)
    by_piece: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    instead: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def share_in_swaps(self) -> float:
        return sum(self.swaps) / len(self.swaps)

    @property
    def share_of_all(self) -> float:
        right = [one for ones in self.by_piece.values() for one in ones]
        return sum(right) / len(right)


def measure_alignment(
    model: Transformer, pairs: Sequence[Pair], vocabulary: Vocabulary
) -> Alignment:
    """Compare where the model looks with where it should, for English and German pairs.

    It looks at the source word of the largest weight, in the mean over the heads of the last
    layer's cross-attention, in the row that **produces** a piece. The right pieces are given.
    """
    found = Alignment()
    model.eval()
    with torch.no_grad():
        for places, batch in batches_once(pairs, vocabulary):
            memory, _ = model.encode(batch.source, batch.source_mask, need_weights=False)
            given = shift_right(batch.target, BOS)
            _, seen = model.decode(given, memory, batch.source_mask)
            looked = seen[-1][1].mean(1).argmax(-1)  # (B, T): a place in the source
            for place, row in zip(places, looked.tolist(), strict=True):
                _compare(found, *pairs[place], row)
    return found


def _compare(found: Alignment, source, target, looked: list[int]) -> None:
    in_swap = swapped(target)
    for place, right in enumerate(right_places(source, target)):
        if right is None:
            continue
        is_right = looked[place] == right
        found.by_piece[target[place]].append(is_right)
        if place in in_swap:
            found.swaps.append(is_right)
        if not is_right:
            at = looked[place]
            found.instead[target[place]][source[at] if at < len(source) else "<pad>"] += 1
