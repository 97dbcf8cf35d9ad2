"""Make the German translator that ships with the course: ``make translator``."""

import torch

from course_lib.training.number_words import number_task
from course_lib.training.translation import exact_match
from course_lib.training.translator import SHIPPED, train_translator

SEED = 0

if __name__ == "__main__":
    torch.set_num_threads(1)
    task = number_task("de")
    translator, history = train_translator(task, SEED)
    share = exact_match(translator.model, task.test, task.vocabulary)
    translator.save(SHIPPED)
    print(f"{history.ended} in {history.seconds:.0f} s; exact match on test numbers {share:.4f}")
    print(f"{SHIPPED.name}: {SHIPPED.stat().st_size:,} bytes")
