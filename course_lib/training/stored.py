"""Runs that are too long for a lesson: made by a target, stored with where they come from.

``python -m course_lib.training.stored ablations`` or ``lists`` makes them; a lesson reads them.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from course_lib.files import write_whole
from course_lib.training.ablations import ABLATIONS, run_ablation
from course_lib.training.lists import (
    PEAKS,
    list_models,
    list_task,
    match_by_count,
    train_on_lists,
)
from course_lib.training.number_words import number_task

FOLDER = Path(__file__).parent / "results"
SEEDS = range(5)


def stored(name: str) -> dict:
    """Read the stored runs of that name: ``rows``, and in ``made`` how they came about.

    >>> stored("ablations")["made"]["by"]
    'make ablations'
    """
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def provenance(result: dict) -> str:
    """Say in a line where stored runs come from."""
    made = result["made"]
    return (
        f"Stored: {made['by']}, {made['seeds']} seeds, torch {made['torch']}, "
        f"{made['minutes']:.0f} minutes of one {made['machine']} thread."
    )


def ablation_rows(seeds: Iterable[int] = SEEDS) -> Iterator[dict]:
    """Train every ablation with every seed."""
    task = number_task("de")
    for ablation in ABLATIONS:
        for seed in seeds:
            evaluations = run_ablation(task, ablation, seed)
            yield {"name": ablation.name, "seed": seed, "evaluations": evaluations}


def list_rows(seeds: Iterable[int] = SEEDS) -> Iterator[dict]:
    """Train each model on lists: at three rates with the first seed, at the best with the others.

    Which rate is the best the validation lists say; the test lists choose nothing.
    """
    task, (first, *others) = list_task(), seeds
    for name in list_models(len(task.vocabulary)):
        tried = [list_row(task, name, first, peak) for peak in PEAKS]
        yield from tried
        best = max(tried, key=lambda row: row["validation"])["peak"]
        for seed in others:
            yield list_row(task, name, seed, best)


def list_row(task, name: str, seed: int, peak: float, **options) -> dict:
    """Train one model on lists, and measure it."""
    model, history = train_on_lists(task, name, seed, peak=peak, **options)
    return {
        "name": name,
        "seed": seed,
        "peak": peak,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(history.seconds, 1),
        "validation": max(value for _, value in history.evaluations),
        "by_count": match_by_count(model, task),
    }


def at_the_best_rate(rows: Iterable[dict]) -> dict[str, list[dict]]:
    """Keep the runs on lists whose rate validated best in the first seed, by model."""
    by_name: dict[str, list[dict]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    kept = {}
    for name, ones in by_name.items():
        tried = [row for row in ones if row["seed"] == ones[0]["seed"]]
        best = max(tried, key=lambda row: row["validation"])["peak"]
        kept[name] = [row for row in ones if row["peak"] == best]
    return kept


MAKERS: dict[str, Callable[[], Iterator[dict]]] = {"ablations": ablation_rows, "lists": list_rows}


def make(name: str) -> None:
    """Run everything of that name on one thread, and store it."""
    torch.set_num_threads(1)
    rows, start = [], time.process_time()
    for row in MAKERS[name]():
        rows.append(row)
        print(f"{time.process_time() - start:6.0f} s  {json.dumps(row)[:150]}", flush=True)
    made = {
        "by": f"make {name}",
        "seeds": len({row["seed"] for row in rows}),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "minutes": round((time.process_time() - start) / 60, 1),
    }
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"made": made, "rows": rows}, indent=1, ensure_ascii=False)
    write_whole(FOLDER / f"{name}.json", text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the stored runs of a lesson anew.")
    parser.add_argument("name", choices=sorted(MAKERS))
    make(parser.parse_args().name)
