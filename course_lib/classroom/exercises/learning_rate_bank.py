"""How the learning rate of 2017 is got wrong."""

import math
from collections.abc import Callable
from itertools import combinations

from course_lib.classroom.compare import is_right
from course_lib.classroom.judge_parts import Mistake, Pair, Seen
from course_lib.classroom.properties import number
from course_lib.training.schedule import noam_learning_rate


def _rate(step, d_model, warmup, *, off=0, model=None, rise=None, fall=None, choose=min):
    """The right rate with one part replaced."""
    step = max(step, 1) + off
    scale = d_model**-0.5 if model is None else model(d_model)
    fallen = step**-0.5 if fall is None else fall(step)
    risen = step * warmup**-1.5 if rise is None else rise(step, warmup)
    return scale * choose(fallen, risen)


def _version(**options) -> Callable:
    def version(step, d_model, warmup):
        return _rate(step, d_model, warmup, **options)

    return version


def saw_rate(seen: Seen) -> str | None:
    yours, right = seen.yours("rate"), seen.right("rate")
    if not seen.comparable("rate") or is_right(seen):
        return None
    step, d_model, warmup = (seen.args[name] for name in ("step", "d_model", "warmup"))
    said = (
        f"At step {step} with d_model {d_model} and warmup {warmup} your rate is "
        f"{number(yours.item())}, the right one {number(right.item())}"
    )
    ratio = yours.item() / right.item()
    if math.isfinite(ratio) and ratio > 0:
        said += f": {number(ratio)} times the right one"
    return f"{said}."


def _zero_is_zero(step, d_model, warmup):
    return 0.0 if step == 0 else noam_learning_rate(step, d_model, warmup)


def _mistake(name, title, means, next_step, *versions, **more) -> Mistake:
    return Mistake(
        name=name,
        title=title,
        saw=saw_rate,
        means=means,
        next_step=next_step,
        versions=versions,
        **more,
    )


_OPTIONS = {
    "warmup_exponent_half": {"rise": lambda step, warmup: step * warmup**-0.5},
    "warmup_exponent_one": {"rise": lambda step, warmup: step / warmup},
    "warmup_exponent_positive": {"rise": lambda step, warmup: step * warmup**1.5},
    "model_factor_missing": {"model": lambda d_model: 1},
    "model_factor_inverted": {"model": lambda d_model: d_model**0.5},
    "model_factor_not_rooted": {"model": lambda d_model: 1 / d_model},
    "larger_of_the_two": {"choose": max},
    "one_step_early": {"off": 1},
}

MISTAKES = (
    _mistake(
        "step_zero_crash",
        "has no value for step 0",
        "Some schedulers of torch ask for step 0 before the first step. Here 0 counts as 1.",
        "Which step should stand in for 0?",
        lambda step, d_model, warmup: d_model**-0.5 * min(step**-0.5, step * warmup**-1.5),
        lambda step, d_model, warmup: d_model**-0.5 * min(1 / math.sqrt(step), step * warmup**-1.5),
        lambda step, d_model, warmup: d_model**-0.5 * min(1 / step**0.5, step * warmup**-1.5),
        lambda step, d_model, warmup: (
            d_model**-0.5 * min(math.pow(step, -0.5), step * math.pow(warmup, -1.5))
        ),
    ),
    _mistake(
        "step_zero_is_zero",
        "gives the rate 0 at step 0",
        "A step of size 0 learns nothing. Here 0 counts as 1.",
        "Which step should stand in for 0?",
        _zero_is_zero,
    ),
    _mistake(
        "step_zero_moved",
        "counts from 0, so that every step is taken for the next one, and only there is right",
        "Steps count from 1 here; 0 alone is taken for 1.",
        "What should the rate be at step `warmup`?",
        lambda step, d_model, warmup: noam_learning_rate(step + 1, d_model, warmup),
    ),
    _mistake(
        "warmup_exponent_half",
        "multiplies the step by warmup^-0.5",
        "The rising line is then so steep that the rate leaves it too soon.",
        "At step `warmup` both terms should be equal. Insert it.",
        _version(**_OPTIONS["warmup_exponent_half"]),
    ),
    _mistake(
        "warmup_exponent_positive",
        "multiplies the step by warmup^1.5",
        "The rising line is above the falling curve from the first step: no warm-up is left.",
        "At step `warmup` both terms should be equal. Insert it.",
        _version(**_OPTIONS["warmup_exponent_positive"]),
        _version(rise=lambda step, warmup: math.inf),
        _version(rise=lambda step, warmup: step * warmup**0.5),
    ),
    _mistake(
        "warmup_exponent_one",
        "multiplies the step by 1 / warmup",
        "The two terms then meet before the end of the warm-up.",
        "At step `warmup` both terms should be equal. Insert it.",
        _version(**_OPTIONS["warmup_exponent_one"]),
    ),
    _mistake(
        "warmup_not_used",
        "rises by 1 with every step",
        "The warm-up is over after one step, whatever `warmup` says, or never begins.",
        "One argument is not used.",
        _version(rise=lambda step, warmup: step),
        _version(rise=lambda step, warmup: step**1.5),
    ),
    _mistake(
        "warmup_inside_the_power",
        "takes the power of step and warmup together: (step warmup)^-1.5",
        "The exponent -1.5 belongs to warmup alone.",
        "`**` binds before `*`; a bracket changes that.",
        _version(rise=lambda step, warmup: (step * warmup) ** -1.5),
        _version(rise=lambda step, warmup: (step / warmup) ** -1.5),
    ),
    _mistake(
        "warmup_rooted_rise",
        "rises with the root of the step",
        "Section 5.3: the rate rises in a straight line.",
        "With which power of the step does a straight line rise?",
        _version(rise=lambda step, warmup: (step / warmup) ** 0.5 * warmup**-0.5),
    ),
    _mistake(
        "model_factor_missing",
        "leaves out d_model^-0.5",
        "The rate would be the same for every width.",
        "One argument is not used.",
        _version(**_OPTIONS["model_factor_missing"]),
    ),
    _mistake(
        "model_factor_inverted",
        "multiplies by the root of d_model",
        "A wider model takes smaller steps in the paper, not larger ones.",
        "Look at the sign of the exponent.",
        _version(**_OPTIONS["model_factor_inverted"]),
    ),
    _mistake(
        "model_factor_not_rooted",
        "divides by d_model without the root",
        "The exponent is -0.5, not -1.",
        "Compare both exponents with equation 3.",
        _version(**_OPTIONS["model_factor_not_rooted"]),
    ),
    _mistake(
        "model_factor_on_one_term",
        "multiplies one of the two terms alone by d_model^-0.5",
        "The factor stands in front of the minimum and belongs to both terms.",
        "Where does the bracket begin?",
        lambda step, d_model, warmup: min(
            d_model**-0.5 * max(step, 1) ** -0.5, max(step, 1) * warmup**-1.5
        ),
        lambda step, d_model, warmup: min(
            max(step, 1) ** -0.5, d_model**-0.5 * max(step, 1) * warmup**-1.5
        ),
    ),
    _mistake(
        "width_fixed",
        "takes 512 for the width, whatever it is given",
        "512 is the width of the paper's base model.",
        "One argument is not used.",
        _version(model=lambda d_model: 512**-0.5),
    ),
    _mistake(
        "warmup_fixed",
        "takes 4000 for the warm-up, whatever it is given",
        "4000 is the paper's choice for its own run.",
        "One argument is not used.",
        lambda step, d_model, warmup: noam_learning_rate(step, d_model, 4000),
    ),
    _mistake(
        "width_and_warmup_swapped",
        "takes d_model and warmup for each other",
        "The two arguments have changed places.",
        "Which one stands in front of the minimum?",
        lambda step, d_model, warmup: noam_learning_rate(step, warmup, d_model),
    ),
    _mistake(
        "step_and_warmup_swapped",
        "takes step and warmup for each other",
        "The two have changed places in the minimum.",
        "Which of the two terms holds warmup?",
        lambda step, d_model, warmup: (
            d_model**-0.5 * min(warmup**-0.5, warmup * max(step, 1) ** -1.5)
        ),
    ),
    _mistake(
        "larger_of_the_two",
        "takes the larger of the two terms",
        "The rate then falls where it should rise, and rises without end.",
        "Which of the two terms is the smaller one at step 1?",
        _version(**_OPTIONS["larger_of_the_two"]),
    ),
    _mistake(
        "product_or_sum_of_both",
        "combines the two terms by a sum or a product",
        "At each step one of the two counts alone.",
        "What stands in front of the bracket in equation 3?",
        _version(choose=lambda fall, rise: fall * rise),
        _version(choose=lambda fall, rise: fall + rise),
    ),
    _mistake(
        "no_decay",
        "rises to the peak and stays there",
        "The rate should fall after the warm-up.",
        "Which term should count at step 4 * warmup?",
        lambda step, d_model, warmup: noam_learning_rate(min(step, warmup), d_model, warmup),
    ),
    _mistake(
        "rises_for_ever",
        "gives the rising line alone",
        "The rate should fall after the warm-up.",
        "Equation 3 has two terms. Where is the other?",
        _version(choose=lambda fall, rise: rise),
    ),
    _mistake(
        "falls_too_fast",
        "falls with the step itself, not with its root",
        "At four times the warm-up the rate should be half the peak.",
        "Look at the exponent of the falling term.",
        _version(fall=lambda step: 1 / step),
        lambda step, d_model, warmup: (
            d_model**-0.5 * warmup**-0.5 * min(max(step, 1) / warmup, warmup / max(step, 1))
        ),
    ),
    _mistake(
        "falling_term_rises",
        "takes the root of the step with a positive exponent",
        "Both terms then rise.",
        "Look at the sign of the exponent.",
        _version(fall=lambda step: step**0.5),
    ),
    _mistake(
        "one_step_early",
        "takes every step for the next one",
        "Steps count from 1 already: the peak comes one step too soon.",
        "What should the rate be at step `warmup`?",
        _version(**_OPTIONS["one_step_early"]),
    ),
    _mistake(
        "one_step_late",
        "takes every step for the one before",
        "Steps count from 1 here: the peak comes one step too late.",
        "What should the rate be at step `warmup`?",
        lambda step, d_model, warmup: noam_learning_rate(step - 1, d_model, warmup),
        lambda step, d_model, warmup: (
            d_model**-0.5 * min(max(step - 1, 1) ** -0.5, max(step - 1, 0) * warmup**-1.5)
        ),
    ),
    _mistake(
        "integer_division",
        "divides step by warmup without a remainder",
        "`//` gives 0 throughout the warm-up.",
        "Which sign divides exactly?",
        _version(rise=lambda step, warmup: step // warmup * warmup**-0.5),
        _version(rise=lambda step, warmup: step // warmup**1.5),
    ),
    _mistake(
        "whole_number",
        "gives a whole number",
        "Rates are far below 1: rounded, they are 0.",
        "Return the number as it is.",
        lambda step, d_model, warmup: int(noam_learning_rate(step, d_model, warmup)),
        lambda step, d_model, warmup: round(noam_learning_rate(step, d_model, warmup)),
    ),
    _mistake(
        "rounded",
        "rounds the rate to two or three places",
        "The rates of a real run are smaller than 0.001.",
        "Return the number as it is.",
        lambda step, d_model, warmup: round(noam_learning_rate(step, d_model, warmup), 2),
        lambda step, d_model, warmup: round(noam_learning_rate(step, d_model, warmup), 3),
    ),
    _mistake(
        "peak_is_base_rate",
        "rises to exactly 1 at step `warmup`",
        "Such a factor is multiplied by a base rate elsewhere, which is then the peak.",
        "Here d_model^-0.5 stands in front. What should the peak be?",
        lambda step, d_model, warmup: (
            warmup**0.5 * min(max(step, 1) ** -0.5, max(step, 1) * warmup**-1.5)
        ),
        convention=True,
    ),
)


def pairs():
    """Two replaced parts at once."""
    by_name = {mistake.name: mistake for mistake in MISTAKES}
    for one, other in combinations(_OPTIONS, 2):
        if not set(_OPTIONS[one]) & set(_OPTIONS[other]):
            version = _version(**_OPTIONS[one], **_OPTIONS[other])
            yield Pair((by_name[one], by_name[other]), version)
