"""The exercise on the learning rate of 2017: a warm-up, then a slow fall."""

import math

from course_lib.classroom.compare import is_right
from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.learning_rate_bank import MISTAKES, pairs, saw_rate
from course_lib.classroom.judge_parts import Probe, Seen
from course_lib.classroom.properties import number
from course_lib.training.schedule import noam_learning_rate


def _side(seen_all: list[Seen]) -> str | None:
    """Say on which side of the peak alone a function is wrong."""
    ran = [one for one in seen_all if one.outcome.error is None and one.comparable("rate")]
    rising = [is_right(one) for one in ran if 0 < one.args["step"] < one.args["warmup"]]
    falling = [is_right(one) for one in ran if one.args["step"] > one.args["warmup"]]
    if not rising or not falling:
        return None
    if all(rising) and not any(falling):
        return "Every rate before the end of the warm-up is right, every one after it is wrong."
    if all(falling) and not any(rising):
        return "Every rate after the warm-up is right, every one before its end is wrong."
    return None


def _lasting_ratio(seen_all: list[Seen]) -> str | None:
    """One factor throughout the steps of one size of model and one warm-up."""
    ran = [one for one in seen_all if one.outcome.error is None and one.comparable("rate")]
    same = [one for one in ran if (one.args["d_model"], one.args["warmup"]) == (7, 5)]
    ratios = [one.yours("rate").item() / one.right("rate").item() for one in same]
    if len(ratios) < 3 or not all(map(math.isfinite, ratios)) or abs(ratios[0] - 1) < 1e-2:
        return None
    if ratios[0] <= 0 or max(ratios) - min(ratios) > 1e-3 * abs(ratios[0]):
        return None
    return (
        f"With d_model 7 and warmup 5 every rate is {number(ratios[0])} times the right one: the "
        "shape over the steps is right, a factor is not."
    )


def _probe(name, *args, **more) -> Probe:
    return Probe(name=name, make=lambda: args, **more)


EXERCISE = Exercise(
    name="noam_learning_rate",
    signature="noam_learning_rate(step, d_model, warmup)",
    arguments=("step", "d_model", "warmup"),
    results=("rate",),
    reference=noam_learning_rate,
    gives_numbers=True,
    # Small models and short warm-ups: the paper's own rates are so small that all look alike.
    probes=(
        _probe("the first step", 1, 7, 5),
        _probe("the middle of the warm-up", 3, 7, 5),
        _probe("the last step of the warm-up", 5, 7, 5),
        _probe("the first step after the warm-up", 6, 7, 5),
        _probe("four times the warm-up", 20, 7, 5),
        _probe("another width and a longer warm-up", 13, 3, 29),
        _probe("another width after its warm-up", 101, 3, 29),
        _probe("the paper's sizes at the peak", 4000, 512, 4000),
        _probe("step 0, which counts as 1", 0, 7, 5, core=False),
        _probe("a warm-up of one step", 2, 11, 1, core=False),
        _probe("a late step", 50_021, 2, 11, core=False),
    ),
    mistakes=MISTAKES,
    properties=(saw_rate,),
    relations=(_side, _lasting_ratio),
    pairs=pairs,
)
