"""Seconds of one processor thread until the translator writes 99 % of held-out numbers exactly.

``make bench`` runs it. Training time alone counts: not the making of pairs, nor the measuring.
"""

import statistics
import time

import torch

from course_lib.training.data import batches_of
from course_lib.training.loop import fit
from course_lib.training.number_words import number_task
from course_lib.training.schedule import cosine_learning_rate
from course_lib.training.translation import exact_match, translation_loss
from course_lib.training.translator import BATCH, PEAK, SIZES, STEPS, WARMUP
from course_lib.transformer.encoder_decoder import Config, Transformer

GOAL, SEEDS, EVERY = 0.99, range(7), 10


def seconds_to_goal(task, seed: int) -> tuple[float, int]:
    """Train until the test numbers reach the goal; return the seconds and the steps."""
    torch.manual_seed(seed)
    model = Transformer(Config(n_vocab=len(task.vocabulary), **SIZES))
    measuring, reached = 0.0, None
    start = time.process_time()

    def watch(history, steps):
        nonlocal measuring, reached
        if reached is None and len(history.losses) % EVERY == 0:
            before = time.process_time()
            share = exact_match(model, task.test, task.vocabulary)
            model.train()
            measuring += time.process_time() - before
            if share >= GOAL:
                reached = time.process_time() - start - measuring, len(history.losses)
                raise KeyboardInterrupt

    fit(
        model,
        batches_of(task.train, task.vocabulary, BATCH, seed),
        translation_loss(0.1),
        steps=STEPS,
        schedule=lambda step: cosine_learning_rate(step, PEAK, WARMUP, STEPS),
        watch=watch,
    )
    if reached is None:
        raise RuntimeError(f"seed {seed} did not reach {GOAL:.0%} in {STEPS} steps")
    return reached


def main() -> None:
    torch.set_num_threads(1)
    for language in ("de", "fr"):
        task = number_task(language)
        found = [seconds_to_goal(task, seed) for seed in SEEDS]
        seconds, steps = zip(*found, strict=True)
        print(
            f"{language}: {GOAL:.0%} exact after {statistics.median(seconds):.1f} s "
            f"({min(seconds):.1f} to {max(seconds):.1f}), {statistics.median(steps):.0f} steps "
            f"({min(steps)} to {max(steps)}), {len(found)} seeds, torch {torch.__version__}",
            flush=True,
        )


if __name__ == "__main__":
    main()
