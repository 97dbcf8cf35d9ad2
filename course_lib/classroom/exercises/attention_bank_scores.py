"""Known mistakes of attention before the softmax: the scores, their scale, and the mask."""

import math

import torch

from course_lib.classroom.exercises.attention_evidence import (
    dead_row,
    future_leak,
    hidden_allowed,
    leak,
    temperature,
)
from course_lib.classroom.exercises.attention_evident import (
    adds_up_on_dead_rows,
    fill_too_high,
    half_fails,
    mask_transposed,
)
from course_lib.classroom.exercises.attention_stages import attention_with
from course_lib.classroom.judge_parts import Mistake
from course_lib.transformer.attention import causal_mask


def _fill(value: float, keep: bool = True) -> dict:
    """Fill where the mask is False (or, with ``keep=False``, where it is True)."""

    def hide(scores, mask):
        return scores if mask is None else scores.masked_fill(mask ^ keep, value)

    return {"hide": hide}


def _hide_first(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(~(mask.flatten(0, -3)[0] if mask.dim() > 2 else mask), -torch.inf)


def _hide_future_too(scores, mask):
    hidden = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return hidden.masked_fill(future, -torch.inf)


def _hide_future_without_mask(scores, mask):
    if mask is None and scores.size(-1) == scores.size(-2):
        mask = causal_mask(scores.size(-1))
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def _harmless_dead_rows(scores, mask):
    """Minus infinity where hidden, and 0 throughout a row where nothing else is left."""
    if mask is None:
        return scores
    hidden = scores.masked_fill(~mask, -torch.inf)
    return hidden.masked_fill((hidden == -torch.inf).all(-1, keepdim=True), 0.0)


def _dead_by_mask(weights, scores, mask):
    return weights if mask is None else weights * mask.any(-1, keepdim=True)


# What each mistake does to the chain of stages; several where people do it in several ways.
CHANGES = {
    "no_scale": [{"scale": lambda q, k, v: 1.0}],
    "scale_by_d_k": [{"scale": lambda q, k, v: 1 / q.size(-1)}],
    "multiply_by_sqrt_dk": [{"scale": lambda q, k, v: math.sqrt(q.size(-1))}],
    "scale_by_queries": [{"scale": lambda q, k, v: 1 / math.sqrt(q.size(-2))}],
    "scale_by_keys": [{"scale": lambda q, k, v: 1 / math.sqrt(k.size(-2))}],
    "scale_by_d_v": [{"scale": lambda q, k, v: 1 / math.sqrt(v.size(-1))}],
    "fixed_scale": [{"scale": lambda q, k, v: 1 / 8}, {"scale": lambda q, k, v: 1 / math.sqrt(2)}],
    "log_scale": [{"scale": lambda q, k, v: 1 / math.log(q.size(-1))}],
    "queries_and_keys_swapped": [{"score": lambda q, k: k @ q.transpose(-2, -1)}],
    "dot_T_on_batches": [{"score": lambda q, k: q @ (k.T if k.dim() == 2 else k)}],
    "fixed_axes_transposed": [
        {"score": lambda q, k: q @ k.transpose(1, 2)},
        {"score": lambda q, k: q @ k.transpose(0, 1)},
        {"score": lambda q, k: q @ k.transpose(2, 3)},
    ],
    "absolute_scores": [{"score": lambda q, k: (q @ k.transpose(-2, -1)).abs()}],
    "negative_scores": [{"score": lambda q, k: -(q @ k.transpose(-2, -1))}],
    "mask_ignored": [{"hide": lambda s, m: s}],
    "mask_inverted": [_fill(-torch.inf, keep=False), _fill(-1e9, keep=False)],
    "mask_transposed": [
        {"hide": lambda s, m: s if m is None else s.masked_fill(~m.mT, -torch.inf)}
    ],
    "mask_fill_tiny_number": [_fill(-1e-9), _fill(1e-9)],
    "mask_fill_zero": [_fill(0.0)],
    "mask_fill_plus_inf": [_fill(1e9), _fill(1e4)],
    "mask_added_as_numbers": [{"hide": lambda s, m: s if m is None else s + m}],
    "mask_multiplies_scores": [{"hide": lambda s, m: s if m is None else s * m}],
    "fill_not_negative_enough": [_fill(-v) for v in (10.0, 20.0, 50.0, 100.0, 1000.0, 1e4)],
    "minus_1e9_overflows_half": [_fill(-v) for v in (1e9, 1e10, 1e20, 1e38)],
    "mask_lifts_half": [
        {
            "hide": lambda s, m: s if m is None else s + (1 - m.float()) * -1e9,
            "guard": _dead_by_mask,
        }
    ],
    "uniform_on_dead_row": [
        {"hide": lambda s, m: s if m is None else s.masked_fill(~m, torch.finfo(s.dtype).min)},
        {"hide": _harmless_dead_rows},
    ],
    "zero_times_inf": [
        {"hide": lambda s, m: s if m is None else s + (~m) * -torch.inf},
        {"hide": lambda s, m: s if m is None else s + ((~m) * -torch.inf).to(s.dtype)},
    ],
    "keys_reshaped": [{"score": lambda q, k: q @ k.reshape(*k.shape[:-2], *k.mT.shape[-2:])}],
    "first_mask_for_all": [{"hide": _hide_first}],
    "always_causal": [{"hide": _hide_future_too}, {"hide": _hide_future_without_mask}],
}


def versions(name: str) -> tuple:
    return tuple(attention_with(**change) for change in CHANGES[name])


def _any(*says):
    return lambda seen: next((text for say in says if (text := say(seen)) is not None), None)


_looks = _any(future_leak, leak, hidden_allowed)


def _known(name, title, means, next_step, saw=None, **more) -> Mistake:
    return Mistake(
        name=name, title=title, means=means, next_step=next_step, saw=saw,
        versions=versions(name), **more,
    )  # fmt: skip


MISTAKES = (
    _known(
        "no_scale",
        "does not divide the scores by sqrt(d_k)",
        "Wider heads then have larger scores, and the softmax gets too decided to learn.",
        "Compare your first line with the formula: what stands below the fraction bar?",
        temperature,
    ),
    _known(
        "scale_by_d_k",
        "divides by d_k, without the root",
        "The scores become too small, and attention close to a plain average.",
        "The formula has a root. Which function takes it?",
        temperature,
    ),
    _known(
        "multiply_by_sqrt_dk",
        "multiplies by sqrt(d_k) where it should divide",
        "The scores grow instead of shrinking.",
        "On which side of the fraction bar does the root stand?",
        temperature,
    ),
    _known(
        "scale_by_queries",
        "divides by the root of the number of queries",
        "A longer sentence would then have flatter weights.",
        "d_k is the width of a key: which axis is that?",
        temperature,
    ),
    _known(
        "scale_by_keys",
        "divides by the root of the number of keys",
        "A longer sentence would then have flatter weights.",
        "d_k is the width of a key: which axis is that?",
        temperature,
    ),
    _known(
        "scale_by_d_v",
        "divides by the root of the width of a value",
        "Values may be wider or narrower than keys; the products that are summed are d_k.",
        "Take the width from q or k.",
        temperature,
    ),
    _known(
        "fixed_scale",
        "divides by a fixed number",
        "It is right for one width only; here the widths change.",
        "Read the width from the tensor.",
        temperature,
    ),
    _known(
        "log_scale",
        "divides by the logarithm of d_k",
        "A logarithm grows much more slowly than a root.",
        "Which function takes a square root?",
        temperature,
    ),
    _known(
        "queries_and_keys_swapped",
        "computes k q^T where it should be q k^T",
        "The table is turned around: rows belong to keys. It fits by chance where both are "
        "equally many.",
        "Rows of the table should be queries. Which factor gives the rows of a product?",
    ),
    _known(
        "dot_T_on_batches",
        "swaps the last two axes only where there are no others",
        "With a batch and heads in front, the last two axes of k are still to be swapped.",
        "`transpose` takes the two axes to swap; counted from the end they are the same for any "
        "input.",
    ),
    _known(
        "fixed_axes_transposed",
        "swaps two axes of k counted from the front",
        "Where the last two axes stand depends on how many come before them.",
        "Count from the end: -2 and -1.",
    ),
    _known(
        "absolute_scores",
        "takes the absolute value of the scores",
        "A key that points the other way would match as well as one that points the same way.",
        "Leave the sign as it is.",
    ),
    _known(
        "negative_scores",
        "turns the sign of the scores",
        "The worst match gets the largest weight.",
        "Look for a minus.",
    ),
    _known(
        "mask_ignored",
        "never uses the mask",
        "Padding and the future are read like any word.",
        "Where does `mask` appear in your lines?",
        _looks,
    ),
    _known(
        "mask_inverted",
        "hides what may be seen and shows what may not",
        "In `nn.MultiheadAttention` True means may not look; here it means may look.",
        "`~mask` turns True and False around.",
        _looks,
        convention=True,
    ),
    _known(
        "mask_transposed",
        "swaps rows and columns of the mask",
        "A causal mask becomes an anti-causal one.",
        "The mask has the axes of the scores already: (queries, keys).",
        _looks,
        evident=mask_transposed,
    ),
    _known(
        "mask_fill_zero",
        "sets hidden scores to 0",
        "A score of 0 is an ordinary score: e to the power of 0 is 1.",
        "Which score does the softmax turn into a weight of exactly 0?",
        _looks,
    ),
    _known(
        "mask_fill_plus_inf",
        "fills with a large positive number",
        "Hidden keys then get all the weight.",
        "Look at the sign.",
        _looks,
    ),
    _known(
        "mask_added_as_numbers",
        "adds the mask to the scores as 0 and 1",
        "A key that may be seen gains one point, and a hidden one loses nothing.",
        "Hide, before the softmax, what the mask says False to.",
        _looks,
    ),
    Mistake(
        name="additive_float_mask",
        title="takes the mask for an additive one",
        saw=_looks,
        means="torch has such masks: 0 where a query may look, minus infinity elsewhere, added to "
        "the scores. A boolean one added so counts as 0 and 1.",
        next_step="The mask here is boolean: ask for it with `masked_fill` or `torch.where`.",
        versions=versions("mask_added_as_numbers"),
        convention=True,
    ),
    _known(
        "mask_multiplies_scores",
        "multiplies the scores by the mask",
        "A hidden score becomes 0, which is an ordinary score: e to the power of 0 is 1.",
        "Which score does the softmax turn into a weight of exactly 0?",
        _looks,
    ),
    _known(
        "mask_fill_tiny_number",
        "fills with a number close to 0, such as -1e-9",
        "A score of almost 0 is an ordinary score: e to the power of 0 is 1.",
        "Which score does the softmax turn into a weight of exactly 0?",
        _looks,
    ),
    _known(
        "zero_times_inf",
        "adds minus infinity times the mask turned around",
        "At every key that may be seen that is 0 times infinity: NaN.",
        "Choose instead of multiplying: `masked_fill` or `torch.where`.",
    ),
    _known(
        "keys_reshaped",
        "reshapes k to (K, S) and so does not transpose it",
        "The shape is right and the numbers are not: a reshape reads on along the rows, a "
        "transpose turns rows into columns.",
        "Which function swaps two axes?",
    ),
    _known(
        "fill_not_negative_enough",
        "hides with a number that real scores can fall below",
        "Where the keys that may be seen score very low too, the hidden ones get weight.",
        "No score is below minus infinity.",
        _any(leak, future_leak, dead_row),
        evident=fill_too_high,
    ),
    _known(
        "minus_1e9_overflows_half",
        "fills with a literal such as -1e9",
        "float16 ends at 65504 and can't hold it, and without more, a row with nothing to look at "
        "gets equal weights: it looks at all that it may not see.",
        "Fill with minus infinity, which every dtype has, and give dead rows zeros.",
        dead_row,
        evident=half_fails("without overflow"),
    ),
    _known(
        "mask_lifts_half",
        "makes float32 of the scores",
        "A mask turned into float32 numbers lifts float16 scores to float32, and the product with "
        "v then fails.",
        "Choose instead of adding: `masked_fill` keeps the dtype of the scores.",
        evident=half_fails("same dtype"),
    ),
    _known(
        "uniform_on_dead_row",
        "gives a row with nothing to look at weights all the same",
        "All that it may not see then gets a share. Scores that stay finite do that, be they a "
        "very low number or a 0 that keeps the softmax from 0/0.",
        "Set the weights of such a row to zero, after the softmax.",
        dead_row,
        evident=adds_up_on_dead_rows,
    ),
    _known(
        "first_mask_for_all",
        "uses the mask of the first example for all",
        "Every sentence has padding of its own.",
        "Let the mask broadcast as it is.",
        _looks,
    ),
    _known(
        "always_causal",
        "hides the future although no mask says so",
        "The mask is an argument: an encoder hands in none and sees everything.",
        "Hide only what `mask` says.",
        hidden_allowed,
    ),
)
