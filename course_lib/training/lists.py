"""Lists of numbers: where the one vector between two LSTMs is too small, and attention is not."""

import random
from collections.abc import Callable, Sequence

import torch
from torch import nn

from course_lib.training.checkpoint import History
from course_lib.training.data import SPECIAL, Pair, Vocabulary, batches_of
from course_lib.training.loop import fit
from course_lib.training.number_words import NumberTask, split_task
from course_lib.training.schedule import cosine_learning_rate
from course_lib.training.translation import exact_match, translation_loss
from course_lib.transformer.encoder_decoder import Config, Transformer
from course_lib.transformer.recurrent import RecurrentConfig, RecurrentEncoderDecoder

SEPARATOR = ";"
PEAKS = (1e-3, 3e-3, 1e-2)  # learning rates: each model trains at that which validates best
TRAINED_COUNTS = (1, 2, 3, 4, 5, 6)  # numbers in a list
UNSEEN_COUNTS = (7, 8)
STEPS = 1200


def list_task(language: str = "de") -> NumberTask:
    """The numbers below 1000 in three parts: 800 to train on, 100 to validate, 100 to test."""
    numbers = list(range(1000))
    random.Random(0).shuffle(numbers)
    return split_task(numbers, n_train=800, n_test=100, language=language)


def list_pairs(pairs: Sequence[Pair], counts: Sequence[int], n_lists: int, seed: int) -> list[Pair]:
    """Join pairs into lists of several numbers, each list's length drawn from ``counts``.

    >>> list_pairs([(["one"], ["eins"])], counts=[2], n_lists=1, seed=0)
    [(['one', ';', 'one'], ['eins', ';', 'eins'])]
    """
    dice = random.Random(seed)
    lists = []
    for _ in range(n_lists):
        chosen = [dice.choice(pairs) for _ in range(dice.choice(counts))]
        lists.append(tuple(_joined([pair[side] for pair in chosen]) for side in (0, 1)))
    return lists


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return [piece for part in parts for piece in (SEPARATOR, *part)][1:]


def list_models(n_vocab: int) -> dict[str, Callable[[], nn.Module]]:
    """The four models that are compared on lists, of about equal size."""

    def recurrent(d_model: int, **options) -> Callable[[], nn.Module]:
        config = RecurrentConfig(n_vocab=n_vocab, d_model=d_model, **options)
        return lambda: RecurrentEncoderDecoder(config)

    sizes = {"n_layers": 2, "d_model": 64, "d_ff": 256, "n_heads": 4, "dropout": 0.0}
    return {
        "Transformer": lambda: Transformer(Config(n_vocab=n_vocab, **sizes)),
        "LSTM with attention": recurrent(112, attention=True),
        "LSTM": recurrent(120),
        "LSTM, reading both ways": recurrent(128, bidirectional=True),
    }


def train_on_lists(
    task: NumberTask,
    name: str,
    seed: int,
    *,
    peak: float,
    steps: int = STEPS,
    watch: Callable[[History, int | None], None] | None = None,
) -> tuple[nn.Module, History]:
    """Train one of ``list_models`` on lists of one to six numbers, as each of the others is."""
    torch.manual_seed(seed)
    vocabulary = list_vocabulary(task)
    model = list_models(len(vocabulary))[name]()
    lists = list_pairs(task.train, TRAINED_COUNTS, 20_000, seed=1)
    validation = list_pairs(task.validation, TRAINED_COUNTS, 300, seed=2)
    history = fit(
        model,
        batches_of(lists, vocabulary, 32, seed),
        translation_loss(smoothing=0.1),
        steps=steps,
        schedule=lambda step: cosine_learning_rate(step, peak, 50, steps),
        evaluate=lambda model: exact_match(model, validation, vocabulary),
        every=100,
        watch=watch,
    )
    return model, history


def list_vocabulary(task: NumberTask) -> Vocabulary:
    """The vocabulary of a task with the piece that separates the numbers of a list."""
    return Vocabulary([*task.vocabulary.pieces[len(SPECIAL) :], SEPARATOR])


def match_by_count(
    model: nn.Module, task: NumberTask, n_lists: int = 500
) -> dict[int, tuple[float, float]]:
    """For lists of each length, test numbers alone: mean source length, and exact match."""
    vocabulary, found = list_vocabulary(task), {}
    for count in (*TRAINED_COUNTS, *UNSEEN_COUNTS):
        lists = list_pairs(task.test, [count], n_lists, seed=100 + count)
        length = sum(len(source) for source, _ in lists) / n_lists
        found[count] = length, exact_match(model, lists, vocabulary)
    return found
