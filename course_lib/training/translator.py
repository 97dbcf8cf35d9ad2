"""A trained translator of number words: made from a seed, kept in one file, ready to use."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from course_lib.files import write_whole
from course_lib.training.checkpoint import CheckpointError, History, check_shapes
from course_lib.training.data import BOS, SPECIAL, Vocabulary, batches_of, pad_rows
from course_lib.training.loop import fit
from course_lib.training.number_words import NumberTask, join_pieces, number_pieces
from course_lib.training.schedule import cosine_learning_rate
from course_lib.training.translation import exact_match, translate, translation_loss
from course_lib.transformer.encoder_decoder import Config, Transformer

SIZES = {"n_layers": 1, "d_model": 64, "d_ff": 128, "n_heads": 4, "dropout": 0.0}
PEAK, WARMUP, STEPS, BATCH = 3e-3, 50, 800, 64
MOST_WORDS = 40
SHIPPED = Path(__file__).parent / "english_german_numbers.safetensors"


@dataclass(frozen=True)
class Reading:
    """One translation, and where it looked: weights (L, H, T, S) of the cross-attention.

    ``tokens`` is what was written, with ``<eos>`` at its end; ``key_tokens`` what was read. Row t
    of the weights belongs to the query that **produces** ``tokens[t]``.
    """

    key_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    weights: torch.Tensor
    note: str = ""


@dataclass(frozen=True)
class Translator:
    """A model, its vocabulary, and the language that it writes."""

    model: Transformer
    vocabulary: Vocabulary
    language: str

    def __call__(self, text: str | int) -> str:
        """Translate a number, given in digits or in English words."""
        [pieces] = translate(self.model, [english_pieces(text)], self.vocabulary)
        return join_pieces(pieces, self.language)

    def read(self, text: str | int) -> Reading:
        """Translate a number, and keep the cross-attention of every layer and head."""
        source = english_pieces(text)
        [written] = translate(self.model, [source], self.vocabulary)
        return read_alignment(self.model, self.vocabulary, source, written)

    def read_mean(self, text: str | int) -> Reading:
        """Like ``read``, with the mean over the heads in their place: weights (L, 1, T, S)."""
        reading = self.read(text)
        return replace(reading, weights=reading.weights.mean(1, keepdim=True))

    def save(self, path: Path) -> None:
        """Write everything into one safetensors file, whole or not at all."""
        about = {
            "config": json.dumps(asdict(self.model.config)),
            "pieces": json.dumps(self.vocabulary.pieces[len(SPECIAL) :], ensure_ascii=False),
            "language": self.language,
        }
        tensors = {name: x.detach().contiguous() for name, x in self.model.state_dict().items()}
        write_whole(Path(path), save(tensors, about))

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "Translator":
        """Read a translator from its file; without a path, the German one that ships.

        Errors: CheckpointError for a file that holds none.
        """
        try:
            with safe_open(path, "pt") as file:
                about = file.metadata() or {}
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} can't be read as a translator ({error})") from None
        if not {"config", "pieces", "language"} <= about.keys():
            raise CheckpointError(f"{path} holds no translator: it lacks the config or the pieces")
        model = Transformer(Config(**json.loads(about["config"])))
        check_shapes(weights, model.state_dict(), str(path))
        model.load_state_dict(weights)
        return cls(model.eval(), Vocabulary(json.loads(about["pieces"])), about["language"])


def english_pieces(text: str | int) -> list[str]:
    """Cut a number, in digits or in English words, into the pieces that the translator reads.

    Errors: ValueError for a text without a word, of more than 40 words, or for a number that is
    not between 0 and 999,999.

    >>> english_pieces("Forty-two"), english_pieces("1,000")
    (['forty', 'two'], ['one', 'thousand'])
    """
    text = str(text).strip().lower()
    digits = text.replace(",", "").replace(" ", "")
    if digits.isascii() and digits.isdigit():
        return number_pieces(int(digits[:12]), "en")
    pieces = text.replace("-", " ").replace(",", " , ").split()
    if not 1 <= len(pieces) <= MOST_WORDS:
        raise ValueError(
            f"{len(pieces)} words, expected 1 to {MOST_WORDS}: type a number, in digits or in "
            "English words"
        )
    return pieces


def read_alignment(
    model: Transformer, vocabulary: Vocabulary, source: Sequence[str], target: Sequence[str]
) -> Reading:
    """Let the model write ``target`` and return its cross-attention, a row per piece produced."""
    unknown = [piece for piece in source if piece not in vocabulary.ids]
    note = f"It knows number words alone, and read as unknown: {', '.join(unknown)}."
    ids = pad_rows([vocabulary.encode(source)])
    written = pad_rows([[BOS, *vocabulary.encode(target)]])  # the last row produces <eos>
    with torch.no_grad():
        memory, _ = model.encode(ids, need_weights=False)
        _, seen = model.decode(written, memory)
    weights = torch.stack([cross[0] for _, cross in seen])  # (L, H, T, S)
    return Reading(tuple(source), (*target, "<eos>"), weights, note if unknown else "")


def train_translator(
    task: NumberTask,
    seed: int = 0,
    *,
    steps: int = STEPS,
    watch: Callable[[History, int | None], None] | None = None,
) -> tuple[Translator, History]:
    """Train the course's small model on a number task; the best on its validation part is kept."""
    torch.manual_seed(seed)
    model = Transformer(Config(n_vocab=len(task.vocabulary), **SIZES))
    history = fit(
        model,
        batches_of(task.train, task.vocabulary, BATCH, seed),
        translation_loss(smoothing=0.1),
        steps=steps,
        schedule=lambda step: cosine_learning_rate(step, PEAK, WARMUP, steps),
        evaluate=lambda model: exact_match(model, task.validation, task.vocabulary),
        watch=watch,
    )
    return Translator(model, task.vocabulary, task.language), history
