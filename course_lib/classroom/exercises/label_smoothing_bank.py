"""How the smoothed loss is got wrong."""

import math
from itertools import combinations

import torch
import torch.nn.functional as F

from course_lib.classroom.compare import is_right, same_tensor
from course_lib.classroom.exercises.label_smoothing_versions import (
    built_in,
    per_token,
    uniform_part_over_all,
    version,
)
from course_lib.classroom.judge_parts import Mistake, Pair, Seen
from course_lib.classroom.properties import number, where
from course_lib.training.losses import label_smoothing_loss


def saw_loss(seen: Seen) -> str | None:
    """The learner's loss beside the right one, and how many tokens and sentences there are."""
    yours, right = seen.yours("loss"), seen.right("loss")
    if yours is None or right is None or not seen.comparable("loss"):
        return None
    if same_tensor(yours.to(right.dtype), right):
        return None
    target = seen.args["target"]
    real = int((target != seen.args["pad_id"]).sum())
    said = f"{where(seen)}, your loss is {number(yours.item())}, the right one "
    said += number(right.item())
    ratio = yours.item() / right.item() if right.item() else math.nan
    if math.isfinite(ratio) and ratio > 0:
        said += f": {number(ratio)} times as much"
    return f"{said}. {real} of the {target.numel()} targets are real."


def _mistake(name, title, means, next_step, *versions, **more) -> Mistake:
    more.setdefault("saw", saw_loss)
    return Mistake(
        name=name, title=title, means=means, next_step=next_step, versions=versions, **more
    )


def _nan_mean(logits, target, smoothing, pad_id):
    real = target != pad_id
    return per_token(logits[real], target[real], smoothing).sum() / real.sum()


def _log_of_softmax(logits, target, smoothing, pad_id, floor=None, add=0.0):
    p = logits.softmax(-1) + add
    log_p = (p if floor is None else p.clamp_min(floor)).log()
    real = target != pad_id
    right = log_p[real].gather(-1, target[real][:, None])[:, 0]
    loss = (1 - smoothing) * right + smoothing * log_p[real].mean(-1)
    return -loss.sum() / real.sum().clamp_min(1)


def _exp_by_hand(logits, target, smoothing, pad_id):
    real = target != pad_id
    log_p = logits - logits.exp().sum(-1, keepdim=True).log()
    right = log_p[real].gather(-1, target[real][:, None])[:, 0]
    loss = (1 - smoothing) * right + smoothing * log_p[real].mean(-1)
    return -loss.sum() / real.sum().clamp_min(1)


def _lost_in_large_logits(seen_all: list[Seen]) -> str | None:
    """Right on every input whose logits are ordinary, wrong where they are in the hundreds."""
    large = [one for one in seen_all if one.args["logits"].abs().max() > 100]
    ordinary = [one for one in seen_all if one not in large and one.probe.core]
    if not all(map(is_right, ordinary)):
        return None
    for one in large:
        if one.comparable("loss") and not same_tensor(one.yours("loss"), one.right("loss")):
            return (
                f"{where(one)}, whose logits go up to "
                f"{number(one.args['logits'].abs().max().item())}, your loss is "
                f"{number(one.yours('loss').item())}, the right one "
                f"{number(one.right('loss').item())}; with ordinary logits yours is right."
            )
    return None


def _padding_set_to_zero(logits, target, smoothing, pad_id):
    loss = label_smoothing_loss(logits, target.clone(), smoothing, pad_id)
    target[target == pad_id] = 0 if pad_id else 1
    return loss


def _logits_zeroed(logits, target, smoothing, pad_id):
    loss = label_smoothing_loss(logits.clone(), target, smoothing, pad_id)
    with torch.no_grad():
        logits[target == pad_id] = 0
    return loss


def _detached(logits, target, smoothing, pad_id):
    return label_smoothing_loss(logits.detach(), target, smoothing, pad_id)


def _shifted(logits, target, smoothing, pad_id):
    return label_smoothing_loss(logits[:, :-1], target[:, 1:], smoothing, pad_id)


def _mixed_order(logits, target, smoothing, pad_id):
    flat = logits.transpose(0, 1).reshape(1, -1, logits.size(-1))
    return label_smoothing_loss(flat, target.reshape(1, -1), smoothing, pad_id)


def _mixed_view(logits, target, smoothing, pad_id):
    flat = logits.reshape(1, -1, logits.size(-1))
    return label_smoothing_loss(flat, target.T.reshape(1, -1), smoothing, pad_id)


def _classes_mixed_up(logits, target, smoothing, pad_id):
    b, t, v = logits.shape
    return F.cross_entropy(
        logits.reshape(b, v, t), target, ignore_index=pad_id, label_smoothing=smoothing
    )


_PARTS = {
    "pad_not_ignored": {"mean": "all"},
    "mean_over_all_positions": {"mean": "zeroed"},
    "divides_by_batch": {"mean": "batch"},
    "mean_of_sequence_means": {"mean": "sentences"},
    "summed": {"mean": "sum"},
    "divides_by_classes": {"mean": "classes"},
    "smoothing_swapped": {"smooth": "swapped"},
    "smoothing_ignored": {"smooth": "none"},
    "uniform_part_summed": {"smooth": "summed"},
    "missing_mass": {"smooth": "missing"},
    "too_much_mass": {"smooth": "extra"},
    "others_share_eps": {"smooth": "others"},
    "pad_class_gets_nothing": {"smooth": "annotated"},
    "softmax_twice": {"read": "twice"},
    "log_softmax_over_time": {"read": "time"},
    "no_softmax": {"read": "raw"},
    "log_missing": {"read": "probabilities"},
    "base_two": {"read": "base two"},
}

_MEAN = "The loss is the mean over the real targets of the whole batch."
_NEXT_MEAN = "By which number is the sum divided? Count by hand on two short sentences."
_MASS = "The target has the mass 1 - eps + eps / V, every other class eps / V. They sum to 1."

MISTAKES = (
    _mistake(
        "pad_not_ignored",
        "counts padding as words to be guessed",
        "The model would be trained to write padding.",
        "Which targets should count?",
        version(**_PARTS["pad_not_ignored"]),
    ),
    _mistake(
        "mean_over_all_positions",
        "leaves the padding out of the sum and counts it in the mean",
        f"{_MEAN} Counted so, a batch with much padding has a smaller loss.",
        _NEXT_MEAN,
        version(**_PARTS["mean_over_all_positions"]),
    ),
    _mistake(
        "divides_by_batch",
        "divides the sum by the number of sentences",
        f"{_MEAN} Here long sentences make it larger.",
        _NEXT_MEAN,
        version(**_PARTS["divides_by_batch"]),
    ),
    _mistake(
        "mean_of_sequence_means",
        "takes the mean of each sentence first, then the mean of these",
        "A word of a short sentence then weighs more than one of a long sentence.",
        _NEXT_MEAN,
        version(**_PARTS["mean_of_sequence_means"]),
        version(mean="sentences, NaN"),
        version(mean="sentences with words"),
    ),
    _mistake(
        "summed",
        "sums over the tokens and does not divide",
        f"{_MEAN} A sum grows with the batch, and so would every step of training.",
        _NEXT_MEAN,
        version(**_PARTS["summed"]),
    ),
    _mistake(
        "divides_by_classes",
        "divides by the number of classes too",
        f"{_MEAN} `mean()` over all of (B, T, V), and torch's `KLDivLoss` by default, count the "
        "classes as well.",
        _NEXT_MEAN,
        version(**_PARTS["divides_by_classes"]),
        version(mean="classes, all"),
    ),
    _mistake(
        "one_token_only",
        "uses the last position of each sentence alone",
        "All positions of the target are guessed at once, and all count.",
        "Where does the axis of time go?",
        lambda x, y, eps, pad: label_smoothing_loss(x[:, -1:], y[:, -1:], eps, pad),
    ),
    _mistake(
        "not_reduced",
        "gives one loss for each token",
        "Training needs one number.",
        "Sum over the real tokens, and divide.",
        lambda x, y, eps, pad: per_token(x, y, eps) * (y != pad),
        lambda x, y, eps, pad: per_token(x, y, eps),
        lambda x, y, eps, pad: per_token(x[y != pad], y[y != pad], eps),
        saw=None,
    ),
    _mistake(
        "nan_when_all_padding",
        "gives NaN where every target is padding",
        "0 divided by 0 is NaN, and one NaN in a step of training spoils every weight.",
        "Which number should such a batch give, and what can the divisor be then?",
        built_in,
        _nan_mean,
    ),
    _mistake(
        "pad_always_zero",
        "takes class 0 for padding, whatever pad_id is",
        "Which class is padding is up to the tokenizer.",
        "One argument is not used.",
        lambda x, y, eps, pad: label_smoothing_loss(x, y, eps, 0),
    ),
    _mistake(
        "padding_read_from_logits",
        "takes a position for padding where the model's best guess is padding",
        "Whether a position counts is known from the target, not from the guess.",
        "Which of the two arguments holds the padding?",
        lambda x, y, eps, pad: label_smoothing_loss(
            x, y.masked_fill(x.argmax(-1) == pad, -7), eps, -7
        ),
    ),
    _mistake(
        "smoothing_swapped",
        "gives eps to the target and 1 - eps to the rest",
        _MASS,
        "Which of the two weights is the large one?",
        version(**_PARTS["smoothing_swapped"]),
    ),
    _mistake(
        "smoothing_ignored",
        "computes plain cross-entropy, without smoothing",
        "One argument is not used.",
        "Where does eps enter the formula?",
        version(**_PARTS["smoothing_ignored"]),
    ),
    _mistake(
        "smoothing_fixed",
        "smooths by 0.1, whatever it is asked for",
        "0.1 is the paper's choice. Here the caller chooses.",
        "One argument is not used.",
        lambda x, y, eps, pad: label_smoothing_loss(x, y, 0.1, pad),
    ),
    _mistake(
        "uniform_part_summed",
        "adds eps times the sum over the classes, not their mean",
        "The smoothing is then V times too strong.",
        "How much mass does one class get? How much do all get together?",
        version(**_PARTS["uniform_part_summed"]),
    ),
    _mistake(
        "missing_mass",
        "gives the target 1 - eps and every other class eps / V",
        f"These sum to 1 - eps / V. {_MASS}",
        "Sum the smoothed labels over the classes.",
        version(**_PARTS["missing_mass"]),
    ),
    _mistake(
        "too_much_mass",
        "spreads eps / (V - 1) over all V classes, the target included",
        f"These sum to more than 1. {_MASS}",
        "Sum the smoothed labels over the classes.",
        version(**_PARTS["too_much_mass"]),
    ),
    _mistake(
        "target_not_weakened",
        "adds the smoothing to the whole cross-entropy, without taking eps away from the target",
        f"These sum to 1 + eps. {_MASS}",
        "Sum the smoothed labels over the classes.",
        version(smooth="added"),
    ),
    _mistake(
        "uniform_part_missing",
        "weakens the target and gives the rest to no class",
        "That is cross-entropy times 1 - eps.",
        "Which classes get the mass eps?",
        version(smooth="weakened"),
    ),
    _mistake(
        "pad_in_uniform_part",
        "counts padding in the smoothing part, and not in the other",
        "Padding counts in neither of the two.",
        "Apply the mask to both parts.",
        lambda *args: uniform_part_over_all(*args, counted_alike=True),
        lambda *args: uniform_part_over_all(*args, counted_alike=False),
    ),
    _mistake(
        "uniform_part_subtracted",
        "takes the two parts with different signs",
        "Both parts are the negative of a logarithm, and both make the loss larger.",
        "Write the sign of each part down.",
        version(smooth="subtracted"),
    ),
    _mistake(
        "pad_class_left_out",
        "takes the class of padding out of the mean over the classes",
        "Here the smoothing is spread over all V classes, padding included.",
        "Over how many classes does the mean go?",
        version(smooth="without pad, eps / V"),
        version(smooth="without pad, eps / (V - 1)"),
    ),
    _mistake(
        "others_share_eps",
        "gives the target 1 - eps and each of the V - 1 others eps / (V - 1)",
        "Some programs spread the mass over the wrong classes alone.",
        "Here eps is spread over all V classes, the target too, as torch does.",
        version(**_PARTS["others_share_eps"]),
        convention=True,
    ),
    _mistake(
        "pad_class_gets_nothing",
        "gives the target 1 - eps and eps / (V - 2) to each class but target and padding",
        "The Annotated Transformer does so.",
        "Here eps is spread over all V classes, as torch does.",
        version(**_PARTS["pad_class_gets_nothing"]),
        convention=True,
    ),
    _mistake(
        "kl_divergence",
        "computes the divergence (KL) from the smoothed labels and not the cross-entropy",
        "It is smaller by the entropy of the labels. The gradients are the same; the number "
        "is another.",
        "Does your sum hold a logarithm of the labels?",
        version(smooth="kl"),
        version(smooth="kl of others"),
        version(smooth="kl of annotated"),
    ),
    _mistake(
        "softmax_twice",
        "applies softmax to the logits, and then a loss that does so again",
        "`F.cross_entropy` expects logits. Of probabilities it makes a flat distribution.",
        "How often is softmax taken on the way?",
        version(**_PARTS["softmax_twice"]),
    ),
    _mistake(
        "log_softmax_over_time",
        "normalises over the positions and not over the classes",
        "The probabilities of one position then do not sum to 1.",
        "Which axis holds the classes?",
        version(**_PARTS["log_softmax_over_time"]),
    ),
    _mistake(
        "log_softmax_over_batch",
        "normalises over the sentences and not over the classes",
        "The probabilities of one position then do not sum to 1.",
        "Which axis holds the classes?",
        version(read="batch"),
    ),
    _mistake(
        "log_of_softmax",
        "loses the small probabilities of large logits, as `softmax(...).log()` does",
        "Very small probabilities are rounded to 0, whose logarithm is minus infinity, and large "
        "exponentials overflow; a floor under them gives a wrong number and no gradient.",
        "Which function of torch does both steps in one?",
        _log_of_softmax,
        _exp_by_hand,
        lambda *args: _log_of_softmax(*args, add=1e-9),
        lambda *args: _log_of_softmax(*args, add=1e-8),
        lambda *args: _log_of_softmax(*args, add=1e-12),
        lambda *args: _log_of_softmax(*args, floor=1e-9),
        lambda *args: _log_of_softmax(*args, floor=1e-8),
        lambda *args: _log_of_softmax(*args, floor=1e-12),
        evident=_lost_in_large_logits,
    ),
    _mistake(
        "no_softmax",
        "takes the logits for logarithms of probabilities",
        "Logits may be any numbers: the loss could fall for ever.",
        "What must happen to logits before they are logarithms of probabilities?",
        version(**_PARTS["no_softmax"]),
    ),
    _mistake(
        "log_missing",
        "uses probabilities where their logarithms belong",
        "A probability near 0 then costs hardly more than one of 0.1.",
        "Which function stands in front of p in the formula?",
        version(**_PARTS["log_missing"]),
    ),
    _mistake(
        "base_two",
        "takes logarithms to base 2",
        "That is the loss in bits: right up to a factor. Losses here are in nats.",
        "Which logarithm does torch's loss take?",
        version(**_PARTS["base_two"]),
    ),
    _mistake(
        "sign_missing",
        "gives the mean log-probability without the minus sign",
        "Training makes the loss small, and so the right tokens would become unlikely.",
        "A logarithm of a probability is negative. What should a loss be?",
        lambda *args: -label_smoothing_loss(*args),
    ),
    _mistake(
        "perplexity",
        "gives the exponential of the loss",
        "That is the perplexity, which is reported; the loss itself is trained on.",
        "Leave out `exp` at the end.",
        lambda *args: label_smoothing_loss(*args).exp(),
    ),
    _mistake(
        "flattened_in_different_order",
        "flattens logits and targets in different orders",
        "Each guess is then compared with the target of another position.",
        "Print the shapes just before you flatten. Which axis comes first in each?",
        _mixed_order,
        _mixed_view,
    ),
    _mistake(
        "reshaped_not_transposed",
        "reshapes (B, T, V) to (B, V, T)",
        "`reshape` and `view` move no axis: they read the same numbers in the same order.",
        "Which function exchanges two axes?",
        _classes_mixed_up,
    ),
    _mistake(
        "targets_shifted_again",
        "compares position t with the target of position t + 1",
        "The batch comes with its target shifted already.",
        "Does `target[:, 0]` belong to `logits[:, 0]`?",
        _shifted,
        lambda x, y, eps, pad: label_smoothing_loss(x, y.roll(-1, 1), eps, pad),
    ),
    _mistake(
        "targets_shifted_back",
        "compares position t with the target of position t - 1",
        "The model would learn to repeat what it has read.",
        "Does `target[:, 0]` belong to `logits[:, 0]`?",
        lambda x, y, eps, pad: label_smoothing_loss(x[:, 1:], y[:, :-1], eps, pad),
    ),
    _mistake(
        "gradient_cut",
        "gives the right number and lets no gradient through",
        "Training could not move the model.",
        "Leave out `detach`, `data`, `no_grad`, and a `torch.tensor(...)` around a tensor.",
        _detached,
        saw=None,
    ),
    _mistake(
        "plain_number",
        "returns a Python number",
        "A number has no gradient: `loss.backward()` needs a tensor.",
        "Leave out `.item()`.",
        lambda *args: label_smoothing_loss(*args).item(),
        saw=None,
    ),
    _mistake(
        "in_place",
        "changes the caller's tensor",
        "Who still holds the targets or logits finds other numbers in them.",
        "Work on a copy: `masked_fill` without the underscore at the end.",
        _padding_set_to_zero,
        _logits_zeroed,
        saw=None,
    ),
)


def pairs():
    """Two replaced parts at once."""
    by_name = {mistake.name: mistake for mistake in MISTAKES}
    for one, other in combinations(_PARTS, 2):
        if not set(_PARTS[one]) & set(_PARTS[other]):
            both = version(**_PARTS[one], **_PARTS[other])
            yield Pair((by_name[one], by_name[other]), both)
