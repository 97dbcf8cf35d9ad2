"""The exercise on comparing hypotheses of different lengths."""

import math
from collections.abc import Callable
from itertools import combinations

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.judge_parts import Mistake, Pair, Probe, Seen
from course_lib.classroom.properties import number
from course_lib.training.decoding import beam_score


def _score(log_prob, length, alpha, *, off=0, plus=5, over=6, power=None, divide=True):
    """The right score with one part replaced."""
    penalty = (plus + length + off) / over
    penalty **= alpha if power is None else power(alpha)
    return log_prob / penalty if divide else log_prob * penalty


def _version(**options) -> Callable:
    def version(log_prob, length, alpha):
        return _score(log_prob, length, alpha, **options)

    return version


def _divisor(seen: Seen) -> str | None:
    """By how much the learner's function divided, and by how much it should have."""
    yours, right = seen.yours("score"), seen.right("score")
    if not seen.comparable("score") or not yours.isfinite() or not yours or not right:
        return None
    log_prob, length, alpha = (seen.args[name] for name in ("log_prob", "length", "alpha"))
    mine, wanted = log_prob / yours.item(), log_prob / right.item()
    if abs(mine - wanted) < 1e-3 * abs(wanted):
        return None
    return (
        f"With log_prob {log_prob}, length {length} and alpha {alpha} your score is "
        f"{number(yours.item())}: log_prob divided by {number(mine)}. The right one is "
        f"{number(right.item())}: divided by {number(wanted)}."
    )


def _saw_growth(seen_all: list[Seen]) -> str | None:
    """A score above 0 where the log-probability is below it."""
    for seen in seen_all:
        yours = seen.yours("score")
        if seen.outcome.error is None and seen.comparable("score") and yours.item() > 0:
            return (
                f"With log_prob {seen.args['log_prob']} your score is {number(yours.item())}. A "
                "score keeps the sign of the log-probability, which is never above 0."
            )
    return None


def _mistake(name, title, means, next_step, *versions, **more) -> Mistake:
    return Mistake(
        name=name,
        title=title,
        saw=_divisor,
        means=means,
        next_step=next_step,
        versions=versions,
        **more,
    )


_OPTIONS = {
    "five_missing": {"plus": 0},
    "not_divided_by_six": {"over": 1},
    "length_counts_bos": {"off": 1},
    "length_one_short": {"off": -1},
    "alpha_ignored": {"power": lambda alpha: 1},
    "alpha_fixed": {"power": lambda alpha: 0.6},
    "alpha_negative": {"power": lambda alpha: -alpha},
    "multiplies": {"divide": False},
}

MISTAKES = (
    _mistake(
        "no_normalisation",
        "gives the log-probability as it is",
        "Every token makes a sum of logarithms smaller, so the shortest hypothesis would win.",
        "Two arguments are not used.",
        lambda log_prob, length, alpha: log_prob,
        _version(power=lambda alpha: 0),
    ),
    _mistake(
        "added_not_divided",
        "subtracts the penalty or adds it, and does not divide by it",
        "The formula has a quotient. Its effect grows with the log-probability; that of a sum "
        "does not.",
        "Which operation stands between log P and lp in the formula?",
        lambda log_prob, length, alpha: log_prob - ((5 + length) / 6) ** alpha,
        lambda log_prob, length, alpha: log_prob + ((5 + length) / 6) ** alpha,
    ),
    _mistake(
        "alpha_ignored",
        "divides by (5 + length) / 6 whatever alpha is",
        "That is alpha = 1. Alpha says how much length counts: at 0, not at all.",
        "One argument is not used.",
        _version(**_OPTIONS["alpha_ignored"]),
    ),
    _mistake(
        "alpha_fixed",
        "takes 0.6 for alpha, whatever it is given",
        "0.6 is the paper's choice. Here the caller chooses.",
        "One argument is not used.",
        _version(**_OPTIONS["alpha_fixed"]),
    ),
    _mistake(
        "length_power",
        "divides by length to the power of alpha",
        "Hugging Face's `length_penalty` does so. The formula of Wu et al. is milder for short "
        "hypotheses.",
        "Two numbers of the formula are missing.",
        lambda log_prob, length, alpha: log_prob / length**alpha,
        convention=True,
    ),
    _mistake(
        "plain_mean",
        "divides by the length",
        "That is the mean log-probability of a token: another rule, which favours long hypotheses.",
        "Where do alpha, 5 and 6 stand in the formula?",
        lambda log_prob, length, alpha: log_prob / length,
    ),
    _mistake(
        "five_missing",
        "leaves the 5 out: (length / 6) to the power of alpha",
        "The 5 softens the rule for short hypotheses, and makes the divisor 1 at length 1.",
        "What should the divisor be for length 1?",
        _version(**_OPTIONS["five_missing"]),
    ),
    _mistake(
        "not_divided_by_six",
        "leaves the 6 out: (5 + length) to the power of alpha",
        "The order of the hypotheses stays the same, since the 6 is the same factor for all. The "
        "score itself is not the formula's.",
        "What should the divisor be for length 1?",
        _version(**_OPTIONS["not_divided_by_six"]),
    ),
    _mistake(
        "six_outside_the_power",
        "takes the power of 5 + length first and divides by 6 after it",
        "The power belongs to the whole fraction.",
        "Set brackets around the fraction. What is the divisor for length 1?",
        lambda log_prob, length, alpha: log_prob / ((5 + length) ** alpha / 6),
    ),
    _mistake(
        "power_of_six_alone",
        "raises the 6 alone to the power of alpha",
        "`**` binds before `/`, so `(5 + length) / 6**alpha` reads so.",
        "Set brackets around what the power belongs to.",
        lambda log_prob, length, alpha: log_prob / ((5 + length) / 6**alpha),
    ),
    _mistake(
        "bracket_around_divisor_missing",
        "divides by 5 + length and then by 6 to the power of alpha",
        "`a / b / c` divides by both b and c.",
        "Set brackets around the whole divisor.",
        lambda log_prob, length, alpha: log_prob / (5 + length) / 6**alpha,
        lambda log_prob, length, alpha: log_prob / (5 + length) ** alpha / 6,
    ),
    _mistake(
        "five_over_six_apart",
        "divides the length alone by 6 and adds 5",
        "`5 + length / 6` divides first.",
        "Set brackets around the sum.",
        lambda log_prob, length, alpha: log_prob / (5 + length / 6) ** alpha,
        lambda log_prob, length, alpha: log_prob / (5 / 6 + length) ** alpha,
    ),
    _mistake(
        "quotient_to_the_power",
        "raises the whole quotient, log-probability included, to the power of alpha",
        "The power belongs to the divisor. A negative number to a fractional power is not even "
        "a real number.",
        "Compute the divisor first, and give it a name.",
        lambda log_prob, length, alpha: -((-log_prob / ((5 + length) / 6)) ** alpha),
        lambda log_prob, length, alpha: (log_prob / ((5 + length) / 6)) ** alpha,
    ),
    _mistake(
        "multiplies",
        "multiplies by the penalty",
        "A log-probability is negative: multiplied, long hypotheses lose even more.",
        "Should a long hypothesis gain or lose by the rule?",
        _version(**_OPTIONS["multiplies"]),
        _version(**_OPTIONS["alpha_negative"]),
    ),
    _mistake(
        "alpha_multiplies",
        "multiplies the fraction by alpha",
        "Alpha is an exponent. As a factor it would divide by 0 where it is 0.",
        "Where does alpha stand in the formula?",
        lambda log_prob, length, alpha: log_prob / ((5 + length) / 6 * alpha),
        lambda log_prob, length, alpha: log_prob / max((5 + length) / 6 * alpha, 1e-12),
    ),
    _mistake(
        "numbers_swapped",
        "swaps the 5 and the 6",
        "At length 1 the divisor would be 7/5, not 1.",
        "What should the divisor be for length 1?",
        _version(plus=6, over=5),
    ),
    _mistake(
        "fraction_inverted",
        "turns the fraction around: 6 / (5 + length)",
        "The divisor then shrinks with the length: long hypotheses lose even more.",
        "Is the divisor above 1 or below it for a long hypothesis?",
        lambda log_prob, length, alpha: log_prob / (6 / (5 + length) ** alpha),
        lambda log_prob, length, alpha: log_prob / (6 / (5 + length)),
    ),
    _mistake(
        "length_counts_bos",
        "counts one token more than `length`",
        "`length` counts what the model wrote, `eos` included. `bos` was given to it.",
        "Use `length` as it comes.",
        _version(**_OPTIONS["length_counts_bos"]),
    ),
    _mistake(
        "length_one_short",
        "counts one token less than `length`",
        "`eos` was written by the model too, and its probability is in the sum.",
        "Use `length` as it comes.",
        _version(**_OPTIONS["length_one_short"]),
    ),
    _mistake(
        "whole_numbers",
        "divides by 6 without a remainder",
        "`//` cuts the fraction off: lengths 1 to 6 would all count the same.",
        "Which sign divides exactly?",
        lambda log_prob, length, alpha: log_prob / ((5 + length) // 6) ** alpha,
    ),
    _mistake(
        "sign_turned",
        "turns the sign around",
        "The best hypothesis has the highest score. With the sign turned it would be the worst.",
        "A score stays negative.",
        lambda log_prob, length, alpha: -beam_score(log_prob, length, alpha),
    ),
    _mistake(
        "probability",
        "scores the probability and not its logarithm",
        "`exp` of a long hypothesis is so small that it becomes 0.",
        "log_prob is a logarithm, and the formula uses it as one.",
        lambda log_prob, length, alpha: math.exp(log_prob) / ((5 + length) / 6) ** alpha,
        lambda log_prob, length, alpha: math.exp(beam_score(log_prob, length, alpha)),
    ),
    _mistake(
        "log_taken_again",
        "takes a logarithm of something that is one already",
        "log_prob is the sum of logarithms already.",
        "Use log_prob as it comes.",
        lambda log_prob, length, alpha: (
            -math.log(max(-log_prob, 1e-12)) / ((5 + length) / 6) ** alpha
        ),
    ),
    _mistake(
        "penalty_only",
        "gives the divisor and not the score",
        "The log-probability is missing.",
        "One argument is not used.",
        lambda log_prob, length, alpha: ((5 + length) / 6) ** alpha,
    ),
    _mistake(
        "root",
        "takes 1 / alpha for the exponent",
        "Alpha is the exponent itself; 1 / alpha has no value at alpha = 0.",
        "Where does alpha stand in the formula?",
        _version(power=lambda alpha: 1 / alpha),
        _version(power=lambda alpha: 1 / alpha if alpha else 0),
    ),
)


def _pairs():
    by_name = {mistake.name: mistake for mistake in MISTAKES}
    options = {name: more for name, more in _OPTIONS.items() if name in by_name}
    for one, other in combinations(options, 2):
        if not set(options[one]) & set(options[other]):
            version = _version(**options[one], **options[other])
            yield Pair((by_name[one], by_name[other]), version)


EXERCISE = Exercise(
    name="beam_score",
    signature="beam_score(log_prob, length, alpha)",
    arguments=("log_prob", "length", "alpha"),
    results=("score",),
    reference=beam_score,
    gives_numbers=True,
    probes=(
        Probe(name="a hypothesis of seven tokens", make=lambda: (-4.5, 7, 0.6)),
        Probe(name="a longer hypothesis", make=lambda: (-11.25, 23, 0.6)),
        Probe(name="an alpha of one", make=lambda: (-3.0, 11, 1.0)),
        Probe(name="an alpha above one", make=lambda: (-2.5, 3, 1.5)),
        Probe(name="an alpha of zero", make=lambda: (-7.0, 13, 0.0)),
        Probe(name="one token", make=lambda: (-0.7, 1, 0.6)),
        Probe(name="a certain hypothesis", make=lambda: (0.0, 5, 0.6), core=False),
        Probe(name="a very long hypothesis", make=lambda: (-812.5, 1009, 0.6), core=False),
    ),
    mistakes=MISTAKES,
    properties=(_divisor,),
    relations=(_saw_growth,),
    pairs=_pairs,
)
