"""Real sentence pairs: read from two files or from Multi30k, checked, and split without a leak."""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SentencePair = tuple[str, str]
MULTI30K = "bentrevett/multi30k"
_BOM, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class CorpusError(ValueError):
    """Sentence pairs that can't be used; the message says which, and what helps."""


class Parts(NamedTuple):
    """Pairs to train on, pairs to validate on, and how many were kept out of training."""

    train: list[SentencePair]
    validation: list[SentencePair]
    n_removed: int


def read_parallel(
    source_path: str | Path, target_path: str | Path, *, skip_empty: bool = False
) -> list[SentencePair]:
    r"""Read two files of UTF-8 text; line n of one is the translation of line n of the other.

    A line ends with ``\n`` or ``\r\n`` and with nothing else; white space around it is taken off.
    With ``skip_empty`` a pair with an empty side is left out.

    Errors: CorpusError for a file that is missing, a folder, empty or no UTF-8, for files of
    unequal length, and for empty lines without ``skip_empty``.
    """
    paths = Path(source_path), Path(target_path)
    source, target = (_lines(path) for path in paths)
    if len(source) != len(target):
        raise CorpusError(
            f"{paths[0]} has {len(source):,} lines and {paths[1]} has {len(target):,}: line n of "
            "one must be the translation of line n of the other, so give files of equal length"
        )
    pairs = list(zip(source, target, strict=True))
    empty = [n for n, pair in enumerate(pairs) if not all(pair)]
    if empty and not skip_empty:
        where = paths[0] if not source[empty[0]] else paths[1]
        raise CorpusError(
            f"{_lines_are(len(empty))} empty, the first is line {empty[0] + 1:,} of {where}: "
            "remove such a line from both files, or pass --skip-empty"
        )
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        raise CorpusError(f"all {len(empty):,} lines have an empty side: no pair is left to use")
    return pairs


def load_multi30k(split: str) -> list[SentencePair]:
    """Fetch the English-German captions of Multi30k: ``train``, ``validation`` or ``test``.

    It takes the library ``datasets``, which the course doesn't install. Pairs with an empty side
    are left out.

    Source: Elliott et al. 2016; 29,000 pairs to train on, 1,014 to validate, 1,000 to test.

    Errors: CorpusError where the library is missing or the hub can't be reached.
    """
    instead = "or give two files of your own with --source and --target"
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise CorpusError(
            f"{MULTI30K} is read with the library datasets, which can't be imported ({error}): "
            f"`pip install datasets`, {instead}"
        ) from error
    try:
        rows = load_dataset(MULTI30K, split=split)
    except Exception as error:  # the library, the hub and their network layers raise many kinds
        raise CorpusError(
            f"tried load_dataset({MULTI30K!r}, split={split!r}), and got "
            f"{type(error).__name__} ({error}): look at the network and try again, {instead}"
        ) from error
    pairs = [(row["en"].strip(), row["de"].strip()) for row in rows]
    return [pair for pair in pairs if all(pair)]


def split_off(pairs: Sequence[SentencePair], n_validation: int, seed: int) -> Parts:
    """Draw pairs to validate on, and keep out of training whatever shares a sentence with them.

    Errors: CorpusError where one of the parts would be empty.

    >>> pairs = [("one", "eins"), ("two", "zwei"), ("one", "ein"), ("three", "drei")]
    >>> train, validation, n_removed = split_off(pairs, n_validation=1, seed=0)
    >>> validation, len(train), n_removed
    ([('three', 'drei')], 3, 0)
    """
    if not 1 <= n_validation < len(pairs):
        raise CorpusError(
            f"{n_validation:,} of {len(pairs):,} pairs can't be split off to validate on: it takes "
            "at least one, and others to train on; the command takes a tenth at most, so give it "
            "10 pairs or more, or files of their own with --validation-source, --validation-target"
        )
    drawn = set(random.Random(seed).sample(range(len(pairs)), n_validation))
    return keep_apart(
        [pair for n, pair in enumerate(pairs) if n not in drawn],
        [pair for n, pair in enumerate(pairs) if n in drawn],
    )


def keep_apart(train: Sequence[SentencePair], validation: Sequence[SentencePair]) -> Parts:
    """Take out of training each pair with a side that is also in validation, on the same side.

    Errors: CorpusError where nothing is left to train on.

    >>> keep_apart([("one", "ein"), ("two", "zwei")], [("one", "eins")])
    Parts(train=[('two', 'zwei')], validation=[('one', 'eins')], n_removed=1)
    """
    sources, targets = (set(side) for side in zip(*validation, strict=True))
    kept = [pair for pair in train if pair[0] not in sources and pair[1] not in targets]
    if not kept:
        raise CorpusError(
            f"all {len(train):,} pairs to train on share a sentence with one of the "
            f"{len(validation):,} to validate on, so none is left: give a corpus that repeats "
            "itself less"
        )
    return Parts(kept, list(validation), len(train) - len(kept))


def fingerprint(parts: Parts) -> str:
    """Say in one line which pairs these are, so that other ones can be told from them.

    >>> fingerprint(Parts([("one", "eins")], [("two", "zwei")], 0))
    '1 + 1 pairs, sha256 615103d8cbd0'
    """
    digest = hashlib.sha256(json.dumps([parts.train, parts.validation]).encode()).hexdigest()
    return f"{len(parts.train):,} + {len(parts.validation):,} pairs, sha256 {digest[:12]}"


def scores(written: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Score translations by BLEU and chrF, each in one line that ends with its signature.

    Source: Papineni et al. 2002; Popović 2015; the signatures are those of Post 2018.

    >>> for line in scores(["Ein Mann liest ein Buch."], ["Ein Mann liest ein Buch."]):
    ...     print(line.split("|")[0])
    BLEU 100.00  nrefs:1
    chrF2 100.00  nrefs:1
    """
    from sacrebleu.metrics import BLEU, CHRF

    lines = []
    for metric in (BLEU(), CHRF()):
        score = metric.corpus_score(list(written), [list(wanted)])
        lines.append(f"{score.name} {score.score:.2f}  {metric.get_signature()}")
    return lines


def _lines(path: Path) -> list[str]:
    if path.is_dir():
        raise CorpusError(f"{path} is a folder: give a file with one sentence a line")
    if not path.exists():
        raise CorpusError(f"{path} is not there: give a file with one sentence a line")
    content = path.read_bytes()
    how = "UTF-16" if content.startswith(_UTF16) else "ISO-8859-1"
    lines = content.removeprefix(_BOM).split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise CorpusError(f"{path} is empty (0 lines): give a file with one sentence a line")
    return [_decoded(line, path, n, how) for n, line in enumerate(lines, start=1)]


def _decoded(line: bytes, path: Path, n: int, how: str) -> str:
    """Decode one line; a NUL byte is refused too: it is a sign of UTF-16, or of no text at all."""
    try:
        text = line.decode("utf-8")
        place = text.encode().find(0) if "\0" in text else -1
    except UnicodeDecodeError as error:
        place = error.start
    if place < 0:
        return text.strip()
    how = "UTF-16" if line[place] == 0 else how
    raise CorpusError(
        f"line {n:,} of {path} is no UTF-8 text: byte {place + 1:,} of it is 0x{line[place]:02x}; "
        f"write the file anew, for instance with `iconv -f {how} -t UTF-8 {path} > {path}.utf8`"
    )


def _lines_are(count: int) -> str:
    return "1 line is" if count == 1 else f"{count:,} lines are"
