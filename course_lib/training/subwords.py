"""Pieces of words for real text: learned, kept in a folder, and joined where a model writes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn

from course_lib.files import write_whole
from course_lib.training.beam import beam_search
from course_lib.training.checkpoint import CheckpointError, History, Run
from course_lib.training.corpus import CorpusError, SentencePair
from course_lib.training.data import BOS, EOS, PAD, Batch, Pair, Vocabulary, batches_once
from course_lib.training.decoding import device_of, evaluating
from course_lib.training.translation import translation_loss, writer

TOKENIZER, SETTINGS, CHECKPOINT = "tokenizer.json", "settings.json", "run.safetensors"
N_BYTES = 256
LONGEST = 10_000  # characters: a longer line is no sentence, and would take minutes to learn from


class Subwords:
    """Cut any text into pieces, and join pieces into the text.

    Every byte is a piece of its own, so no text is unknown; the most frequent pair of
    neighbouring pieces becomes the next piece, and so on. A space is written Ġ in a piece.

    Source: Sennrich et al. 2016, over bytes as in Radford et al. 2019; Vaswani et al. 2017,
    section 5.1, has about 37,000 pieces shared by both languages.

    >>> subwords = Subwords.train(["low lower lowest", "slow slower"], size=260)
    >>> subwords.cut("lower é"), subwords.join(subwords.cut("lower é"))
    (['lowe', 'r', 'Ġ', 'Ã', '©'], 'lower é')
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        ids = tokenizer.get_vocab()
        self.pieces = sorted(ids, key=ids.get)
        self.vocabulary = Vocabulary(self.pieces)

    @classmethod
    def train(cls, sentences: Iterable[str], size: int) -> "Subwords":
        """Learn up to ``size`` pieces, the 256 bytes counted; the same text gives the same ones.

        A pair that occurs once makes no piece: a short text gives fewer than asked.

        Errors: ValueError for a size below 256.
        """
        if size < N_BYTES:
            raise ValueError(
                f"a vocabulary of {size} pieces is too small: each of the {N_BYTES} bytes is a "
                f"piece, so ask for {N_BYTES} or more"
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator((s for s in sentences if len(s) <= LONGEST), trainer)
        return cls(tokenizer)

    def cut(self, text: str) -> list[str]:
        """Cut a text into pieces."""
        return [self.pieces[i] for i in self.tokenizer.encode(text).ids]

    def join(self, pieces: Sequence[str]) -> str:
        """Join pieces into the text; bytes that are no UTF-8 together become U+FFFD."""
        return self.tokenizer.decoder.decode(list(pieces))

    def short_pairs(self, pairs: Sequence[SentencePair], max_len: int) -> list[Pair]:
        """Cut pairs of texts, and leave out those with more than ``max_len`` pieces on a side.

        Errors: CorpusError where none is left.
        """
        cut = ((self.cut(source), self.cut(target)) for source, target in pairs)
        short = [pair for pair in cut if max(map(len, pair)) <= max_len]
        if not short:
            raise CorpusError(
                f"each of {len(pairs):,} pairs has a side of more than {max_len} pieces: give a "
                "greater --max-len"
            )
        return short

    def save(self, path: Path) -> None:
        """Write the pieces into a file of the ``tokenizers`` library, whole or not at all."""
        write_whole(Path(path), self.tokenizer.to_str(pretty=True))

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read the pieces from a file.

        Errors: CheckpointError for a file that holds none.
        """
        try:
            return cls(Tokenizer.from_str(Path(path).read_text("utf-8")))
        except Exception as error:  # the library raises plain Exception for what it can't parse
            raise CheckpointError(
                f"{path} can't be read as a tokenizer ({error}); move its folder away to start anew"
            ) from error


def kept_subwords(folder: Path, settings: dict, texts: Iterable[str], size: int) -> Subwords:
    """Learn pieces and begin a folder with them; or load them, where the settings are the same.

    The settings are written first, so that pieces or a run without them are known as another's.

    Errors: CheckpointError for a folder that is a file, can't be made, or has other settings.
    """
    held = [name for name in (TOKENIZER, CHECKPOINT) if (folder / name).exists()]
    if (folder / SETTINGS).exists():
        _compare(folder, kept_settings(folder), settings)
        if held:
            return Subwords.load(folder / TOKENIZER)
    elif held:
        raise CheckpointError(f"{folder} has a {held[0]} and no {SETTINGS}: give another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / SETTINGS, json.dumps(settings, indent=1))
        subwords = Subwords.train(texts, size)
        subwords.save(folder / TOKENIZER)
    except OSError as error:
        raise CheckpointError(
            f"nothing can be written into the folder {folder} ({error}): give another --out"
        ) from error
    return subwords


def kept_settings(folder: Path, names: Iterable[str] = ()) -> dict:
    """Read the settings that a folder was made with.

    Errors: CheckpointError for a folder without them, or where one of the names is missing.
    """
    path = Path(folder) / SETTINGS
    if not path.exists():
        raise CheckpointError(f"{folder} holds no translator: it has no {SETTINGS}")
    try:
        settings = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} can't be read ({error}): give another --out") from error
    if not isinstance(settings, dict) or not set(names) <= settings.keys():
        raise CheckpointError(f"{path} holds no settings of this command: give another --out")
    return settings


def _compare(folder: Path, stored: dict, wanted: dict) -> None:
    for name in [*wanted, *(stored.keys() - wanted.keys())]:
        was, now = stored.get(name), wanted.get(name)
        if was != now:
            back = "the same files" if name == "data" else f"--{name} {was}"
            raise CheckpointError(
                f"{folder} was made with {name} {was}, and this command has {name} {now}: give "
                f"{back} to go on, or another --out to start anew"
            )


def load_weights(model: nn.Module, folder: Path) -> None:
    """Give a model the best weights of the run that a folder keeps.

    Errors: CheckpointError where there is none, or it is of another model.
    """
    if not (folder / CHECKPOINT).exists():
        raise CheckpointError(f"{folder} has no {CHECKPOINT} yet: train it first")
    run = Run(model, torch.optim.Adam(model.parameters()), History())
    run.load(folder / CHECKPOINT)
    model.load_state_dict(run.best or model.state_dict())


def token_loss(model: nn.Module, pairs: Sequence[Pair], vocabulary: Vocabulary, size: int) -> float:
    """Return the mean loss of a target token, ``eos`` counted, without smoothing.

    Its exponential is the perplexity.
    """
    loss, total, n_tokens = translation_loss(smoothing=0), 0.0, 0
    for _, batch in batches_once(pairs, vocabulary, size):
        n = int((batch.target != PAD).sum())
        total, n_tokens = total + n * loss(model, batch).item(), n_tokens + n
    return total / n_tokens


def write_texts(
    model: nn.Module,
    subwords: Subwords,
    texts: Sequence[str],
    max_len: int,
    beam: int = 4,
    alpha: float = 0.6,
    size: int = 50,
) -> list[str]:
    """Translate texts by beam search, each up to 50 pieces longer than the longest of its batch.

    A text is read up to ``max_len`` pieces.

    Source: Vaswani et al. 2017, section 6.1, for the 50.
    """
    sources = [subwords.cut(text)[:max_len] for text in texts]
    written = [""] * len(texts)
    with evaluating(model), torch.no_grad():
        for places, batch in batches_once([(s, ()) for s in sources], subwords.vocabulary, size):
            best = _search(model, batch.to(device_of(model)), beam, alpha)
            for place, tokens in zip(places, best, strict=True):
                written[place] = subwords.join(subwords.vocabulary.decode(tokens))
    return written


def _search(model: nn.Module, batch: Batch, beam: int, alpha: float) -> list[tuple[int, ...]]:
    source, mask = (x.repeat_interleave(beam, 0) for x in (batch.source, batch.source_mask))
    write = writer(model, source, mask)

    def last_logits(tokens, mask):  # the beams are kept on the CPU, wherever the model is
        return write(tokens.to(source.device), mask)[:, -1:].cpu()

    longest, n = source.size(1) + 50, len(batch.source)
    found = beam_search(last_logits, BOS, EOS, longest, batch=n, beam=beam, alpha=alpha)
    return [hypotheses[0].tokens for hypotheses in found]
