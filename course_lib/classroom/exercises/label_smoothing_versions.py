"""The smoothed loss in three parts, each of which may be a wrong one."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F


def _labels(target, classes, on, off):
    return torch.full((*target.shape, classes), off).scatter(-1, target.unsqueeze(-1), on)


def _without_target_and_pad(target, classes, eps, pad_id):
    share = _labels(target, classes, 1 - eps, eps / (classes - 2))
    share[..., pad_id] = torch.where(target == pad_id, 1 - eps, 0.0)
    return share


def _without_pad(target, classes, eps, pad_id, over):
    share = torch.full((*target.shape, classes), eps / over)
    share[..., pad_id] = 0.0
    return share + _labels(target, classes, 1 - eps, 0.0)


def _by_labels(make: Callable) -> Callable:
    def loss(log_p, target, eps, pad_id):
        return -(make(target, log_p.size(-1), eps, pad_id) * log_p).sum(-1)

    return loss


def _weighed(on: Callable, spread: Callable) -> Callable:
    """A smoothing with weights for the target's part and for the mean over the classes."""

    def loss(log_p, target, eps, pad_id):
        right = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        return -on(eps) * right - spread(eps, log_p.size(-1)) * log_p.mean(-1)

    return loss


def _divergence(make: Callable) -> Callable:
    def loss(log_p, target, eps, pad_id):
        labels = make(target, log_p.size(-1), eps, pad_id)
        return (torch.xlogy(labels, labels) - labels * log_p).sum(-1)

    return loss


def _torchs(target, classes, eps, pad_id):
    return _labels(target, classes, 1 - eps + eps / classes, eps / classes)


def _others(target, classes, eps, pad_id):
    return _labels(target, classes, 1 - eps, eps / (classes - 1))


# How much each class is asked for, by name.
SMOOTHINGS: dict[str, Callable] = {
    "right": _weighed(lambda e: 1 - e, lambda e, v: e),
    "swapped": _weighed(lambda e: e, lambda e, v: 1 - e),
    "none": _weighed(lambda e: 1, lambda e, v: 0),
    "weakened": _weighed(lambda e: 1 - e, lambda e, v: 0),
    "added": _weighed(lambda e: 1, lambda e, v: e),
    "subtracted": _weighed(lambda e: 1 - e, lambda e, v: -e),
    "summed": _weighed(lambda e: 1 - e, lambda e, v: e * v),
    "extra": _weighed(lambda e: 1 - e, lambda e, v: e * v / (v - 1)),
    "missing": _by_labels(lambda y, v, e, pad: _labels(y, v, 1 - e, e / v)),
    "others": _by_labels(_others),
    "annotated": _by_labels(_without_target_and_pad),
    "without pad, eps / V": _by_labels(lambda y, v, e, pad: _without_pad(y, v, e, pad, v)),
    "without pad, eps / (V - 1)": _by_labels(
        lambda y, v, e, pad: _without_pad(y, v, e, pad, v - 1)
    ),
    "kl": _divergence(_torchs),
    "kl of others": _divergence(_others),
    "kl of annotated": _divergence(_without_target_and_pad),
}

# What is taken for the logarithm of a probability.
READINGS: dict[str, Callable] = {
    "right": lambda logits: logits.log_softmax(-1),
    "twice": lambda logits: logits.softmax(-1).log_softmax(-1),
    "time": lambda logits: logits.log_softmax(1),
    "batch": lambda logits: logits.log_softmax(0),
    "raw": lambda logits: logits,
    "probabilities": lambda logits: logits.softmax(-1),
    "base two": lambda logits: logits.log_softmax(-1) / math.log(2),
}

# How the losses (B, T) of the tokens become one number.
MEANS: dict[str, Callable] = {
    "right": lambda loss, real, v: (loss * real).sum() / real.sum().clamp_min(1),
    "all": lambda loss, real, v: loss.mean(),
    "zeroed": lambda loss, real, v: (loss * real).mean(),
    "batch": lambda loss, real, v: (loss * real).sum() / len(real),
    "sum": lambda loss, real, v: (loss * real).sum(),
    "classes": lambda loss, real, v: (loss * real).sum() / (real.sum().clamp_min(1) * v),
    "classes, all": lambda loss, real, v: (loss * real).mean() / v,
    "sentences": lambda loss, real, v: ((loss * real).sum(1) / real.sum(1).clamp_min(1)).mean(),
    "sentences, NaN": lambda loss, real, v: ((loss * real).sum(1) / real.sum(1)).mean(),
    "sentences with words": lambda loss, real, v: (
        ((loss * real).sum(1) / real.sum(1).clamp_min(1)).sum() / real.any(1).sum().clamp_min(1)
    ),
}


def smoothed_loss(logits, target, smoothing, pad_id, *, read="right", smooth="right", mean="right"):
    """The loss with its three parts chosen by name.

    >>> smoothed_loss(torch.zeros(1, 2, 5), torch.tensor([[3, 0]]), 0.1, 0)
    tensor(1.6094)
    """
    classes = logits.size(-1)
    loss = SMOOTHINGS[smooth](READINGS[read](logits), target, smoothing, pad_id)
    return MEANS[mean](loss, target != pad_id, classes)


def version(**parts) -> Callable:
    """A loss with some parts replaced."""

    def loss(logits, target, smoothing, pad_id):
        return smoothed_loss(logits, target, smoothing, pad_id, **parts)

    return loss


def per_token(logits, target, smoothing):
    """The right losses of single tokens, padding included."""
    log_p = logits.log_softmax(-1)
    right = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return -(1 - smoothing) * right - smoothing * log_p.mean(-1)


def uniform_part_over_all(logits, target, smoothing, pad_id, *, counted_alike):
    """Padding left out of the target's part alone."""
    log_p = logits.log_softmax(-1)
    real = target != pad_id
    right = -(log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1) * real).sum()
    spread, count = -log_p.mean(-1), real.sum().clamp_min(1)
    spread = spread.sum() / count if counted_alike else spread.mean()
    return (1 - smoothing) * right / count + smoothing * spread


def built_in(logits, target, smoothing, pad_id):
    """torch's own loss: NaN where every target is padding."""
    return F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
