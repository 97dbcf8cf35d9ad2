"""Take one idea of the paper away at a time, and train again: what shows at our size."""

from dataclasses import dataclass

import torch

from course_lib.training.data import batches_of
from course_lib.training.loop import fit
from course_lib.training.number_words import NumberTask
from course_lib.training.schedule import cosine_learning_rate, noam_learning_rate
from course_lib.training.translation import exact_match, translation_loss
from course_lib.training.translator import BATCH, PEAK, SIZES, STEPS, WARMUP
from course_lib.transformer.encoder_decoder import Config, Transformer
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.positions import scaled_embedding

NOAM_FACTOR, NOAM_WARMUP = 0.3, 200  # a peak of 2.7e-3 at d_model 64


@dataclass(frozen=True)
class Ablation:
    """What is changed of the course's translator; the defaults change nothing."""

    name: str
    n_heads: int = SIZES["n_heads"]
    scaling: bool = True
    positions: bool = True
    smoothing: float = 0.1
    warmup: int = WARMUP
    noam: bool = False

    def rate(self, step: int) -> float:
        """The learning rate of a step; that of the paper is scaled to a peak like the other's."""
        if self.noam:
            return NOAM_FACTOR * noam_learning_rate(step, SIZES["d_model"], NOAM_WARMUP)
        return cosine_learning_rate(step, PEAK, self.warmup, STEPS)


ABLATIONS = (
    Ablation("nothing taken away"),
    Ablation("no division by root d_head", scaling=False),
    Ablation("one head of 64, not four of 16", n_heads=1),
    Ablation("no positions", positions=False),
    Ablation("no label smoothing", smoothing=0.0),
    Ablation("no warm-up", warmup=0),
    Ablation("the paper's own schedule", noam=True),
)


class WithoutPositions(Transformer):
    """The model with its embeddings alone: it can't tell in which order the words came."""

    def embed(self, ids):
        return self.drop(scaled_embedding(ids, self.table))


def without_scaling(model: Transformer) -> Transformer:
    """Undo attention's division by the root of d_head: the queries are made larger by it."""
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            root = (model.config.d_model // model.config.n_heads) ** 0.5
            part.query.register_forward_hook(lambda module, given, out, root=root: out * root)
    return model


def run_ablation(
    task: NumberTask, ablation: Ablation, seed: int, *, steps: int = STEPS, every: int = 100
) -> list[tuple[int, float]]:
    """Train with one thing changed; return the steps and the exact match on the test numbers.

    With fewer ``steps`` than ``STEPS`` it is the beginning of the same run.
    """
    torch.manual_seed(seed)
    sizes = {**SIZES, "n_heads": ablation.n_heads}
    kind = Transformer if ablation.positions else WithoutPositions
    model = kind(Config(n_vocab=len(task.vocabulary), **sizes))
    history = fit(
        model if ablation.scaling else without_scaling(model),
        batches_of(task.train, task.vocabulary, BATCH, seed),
        translation_loss(ablation.smoothing),
        steps=steps,
        schedule=lambda step: ablation.rate(step),
        # Measured, and nothing chosen by it: what is reported is each step's own value.
        evaluate=lambda model: exact_match(model, task.test, task.vocabulary),
        every=every,
    )
    return history.evaluations
