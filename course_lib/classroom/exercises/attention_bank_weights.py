"""Known mistakes of attention from the softmax on: the weights, the sum, what is returned."""

import math

import torch

from course_lib.classroom.exercises.attention_evidence import (
    axis_sums,
    dead_row,
    leak,
    negative,
    not_the_mix,
    row_sums,
    swapped,
)
from course_lib.classroom.exercises.attention_evident import sums_over
from course_lib.classroom.exercises.attention_stages import attention_with
from course_lib.classroom.judge_parts import Mistake, Seen
from course_lib.transformer.attention import scaled_dot_product_attention


def _unshifted(scores):
    powers = torch.exp(scores)
    return powers / powers.sum(-1, keepdim=True)


def _finite(scores, fill=0.0):
    return scores.masked_fill(scores == -torch.inf, fill)


def _one_hot(scores):
    return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)


def _relu_shares(scores):
    kept = _finite(scores).clamp_min(0)
    return kept / kept.sum(-1, keepdim=True).clamp_min(1e-9)


def _keep(weights, scores, mask):
    return weights


def _zero_hidden(weights, scores, mask):
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


CHANGES = {
    "softmax_over_queries": [{"normalise": lambda s: torch.softmax(s, -2)},
                             {"normalise": lambda s: torch.softmax(s, -2).nan_to_num(0.0)}],
    "softmax_over_heads": [{"normalise": lambda s: torch.softmax(s, -3)},
                           {"normalise": lambda s: torch.softmax(s, 1)}],
    "softmax_over_batch": [{"normalise": lambda s: torch.softmax(s, 0)}],
    "softmax_over_everything": [
        {"normalise": lambda s: torch.softmax(s.flatten(), 0).reshape(s.shape)},
        {"normalise": lambda s: torch.softmax(s.flatten(-2), -1).reshape(s.shape)},
    ],
    "no_softmax": [{"normalise": _finite}],
    "log_softmax": [{"normalise": lambda s: torch.log_softmax(s, -1)}],
    "sigmoid": [{"normalise": torch.sigmoid}],
    "softmax_twice": [{"normalise": lambda s: torch.softmax(torch.softmax(s, -1), -1)}],
    "divides_without_exp": [
        {"normalise": lambda s: _finite(s) / _finite(s).sum(-1, keepdim=True)},
        {"normalise": _relu_shares},
    ],
    "exp_overflow": [{"normalise": _unshifted}],
    "exp_not_normalised": [{"normalise": torch.exp}],
    "hard_maximum": [{"normalise": _one_hot}],
    "weights_detached": [{"normalise": lambda s: torch.softmax(s.detach(), -1)}],
    "nan_on_dead_row": [{"guard": _keep}],
    "mask_after_softmax": [{"hide": lambda s, m: s, "guard": _zero_hidden}],
    "mixes_keys_not_values": [{"mix": lambda w, q, k, v: w @ k}],
    "mixes_queries": [{"mix": lambda w, q, k, v: w @ q}],
    "mean_of_weighted_values": [{"mix": lambda w, q, k, v: w @ v / v.size(-2)}],
    "adds_the_query": [{"mix": lambda w, q, k, v: w @ v + q}],
    "transposed_weights_mix": [{"mix": lambda w, q, k, v: w.mT @ v}],
    "scales_the_output": [{"mix": lambda w, q, k, v: w @ v / math.sqrt(q.size(-1))}],
    "only_z": [{"give": lambda z, w, s, v: z}],
    "results_swapped": [{"give": lambda z, w, s, v: (w, z)}],
    "scores_returned": [{"give": lambda z, w, s, v: (z, s)}],
    "weights_transposed": [{"give": lambda z, w, s, v: (z, w.mT)}],
    "head_averaged_weights": [
        {"give": lambda z, w, s, v: (z, w.mean(-3) if w.dim() > 2 else w)},
        {"give": lambda z, w, s, v: (z, w.mean(1) if w.dim() > 3 else w)},
    ],
    "weights_of_first_head": [
        {"give": lambda z, w, s, v: (z, w[:, 0] if w.dim() > 3 else w)},
    ],
    "returns_a_list": [{"give": lambda z, w, s, v: [z, w]}],
    "returned_weights_detached": [{"give": lambda z, w, s, v: (z, w.detach())}],
}  # fmt: skip


def _scale_after_softmax(q, k, v, mask=None):
    right = attention_with(scale=lambda q, k, v: 1.0)
    weights = right(q, k, v, mask)[1] / math.sqrt(q.size(-1))
    return weights @ v, weights


def _in_place(q, k, v, mask=None):
    q /= math.sqrt(q.size(-1))
    return attention_with(scale=lambda q, k, v: 1.0)(q, k, v, mask)


def _mask_in_place(q, k, v, mask=None):
    return attention_with()(q, k, v, mask if mask is None else mask.logical_not_().logical_not())


def _always_float32(q, k, v, mask=None):
    return scaled_dot_product_attention(q.float(), k.float(), v.float(), mask)


def _weights_unmasked(q, k, v, mask=None):
    z, _ = scaled_dot_product_attention(q, k, v, mask)
    return z, scaled_dot_product_attention(q, k, v)[1]


def _value_rows_hidden(q, k, v, mask=None):
    weights = scaled_dot_product_attention(q, k, v)[1]
    kept = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return kept @ v, weights


OTHERS = {
    "scale_after_softmax": (_scale_after_softmax,),
    "in_place": (_in_place,),
    "mask_in_place": (_mask_in_place,),
    "always_float32": (_always_float32,),
    "weights_unmasked": (_weights_unmasked,),
    "hidden_values_only": (_value_rows_hidden,),
}


def versions(name: str) -> tuple:
    if name in OTHERS:
        return OTHERS[name]
    return tuple(attention_with(**change) for change in CHANGES[name])


def has_dropout(seen: list[Seen]) -> bool:
    """Whether weights are either 0 or one fixed factor above 1 times the right ones."""
    factors = []
    for one in seen:
        if not one.probe.core or not one.comparable("weights"):
            continue
        weights, right = one.yours("weights").double(), one.right("weights").double()
        kept = weights.abs() > 1e-12
        if kept.all() or not kept.any() or not weights.isfinite().all():
            continue
        ratio = (weights / right)[kept & (right > 1e-3)]
        if len(ratio) < 2 or ratio.std() > 1e-3 or ratio.mean() < 1.02:
            return False
        factors.append(ratio.mean().item())
    return len(factors) >= 2 and max(factors) - min(factors) < 1e-2


def _known(name, title, means, next_step, saw=None, **more) -> Mistake:
    return Mistake(
        name=name, title=title, means=means, next_step=next_step, saw=saw,
        versions=versions(name), **more,
    )  # fmt: skip


MISTAKES = (
    _known(
        "softmax_over_queries",
        "makes the weights sum to 1 over the queries, axis -2",
        "Each key shares itself out among the queries; a query should share its attention among "
        "the keys.",
        "Which axis of (queries, keys) should sum to 1 along a row?",
        axis_sums(-2, "queries"),
        evident=sums_over(-2, "queries"),
    ),
    _known(
        "softmax_over_heads",
        "makes the weights sum to 1 over the heads",
        "The heads compete with each other. Each should share its own attention among the keys.",
        "The keys are the last axis.",
        axis_sums(-3, "heads"),
        evident=lambda seen: sums_over(-3, "heads")(seen) or sums_over(1, "heads")(seen),
    ),
    _known(
        "softmax_over_batch",
        "makes the weights sum to 1 over the first axis",
        "Examples of a batch compete; with one example every weight is 1.",
        "The keys are the last axis.",
        row_sums,
        evident=sums_over(0, "first axis, the batch where there is one,"),
    ),
    _known(
        "softmax_over_everything",
        "takes one softmax over a whole table",
        "All queries share one unit; each should have one of its own.",
        "Along the last axis alone.",
        row_sums,
    ),
    _known(
        "no_softmax",
        "uses the scores themselves as weights",
        "Weights should be positive and sum to 1, so that the result is a mean of the values.",
        "Something stands between the scores and the weighted sum.",
        row_sums,
    ),
    _known(
        "log_softmax",
        "returns and uses the logarithm of the weights",
        "log_softmax is for losses; its numbers are negative.",
        "There is a function with the same name but for three letters.",
        negative,
    ),
    _known(
        "sigmoid",
        "squeezes each score by itself, with a sigmoid",
        "The keys of a row should compete: together they get 1.",
        "Which function makes a row of numbers sum to 1?",
        row_sums,
    ),
    _known(
        "softmax_twice",
        "takes the softmax of a softmax",
        "The second one sees numbers between 0 and 1 and makes them almost equal.",
        "Once is enough.",
    ),
    _known(
        "divides_without_exp",
        "divides the scores by their sum",
        "Scores may be negative, so weights become negative or lost, and a sum near 0 blows up.",
        "Make the numbers positive first: which function does that smoothly?",
        negative,
    ),
    _known(
        "exp_overflow",
        "exponentiates the scores as they are",
        "e to the power of 10,000 is infinite, and infinity over infinity is NaN.",
        "Subtract the largest score of each row first, or use torch's softmax, which does.",
    ),
    _known(
        "exp_not_normalised",
        "raises e to the scores and does not divide",
        "The weights are positive, and a row sums to anything.",
        "Divide each row by its own sum.",
        row_sums,
    ),
    _known(
        "hard_maximum",
        "puts all the weight on the best key",
        "Nothing is left for the others, and no gradient reaches q and k.",
        "Soft means that every key that may be seen gets something.",
    ),
    _known(
        "weights_detached",
        "cuts the weights from the gradient",
        "Values would be trained; queries and keys would not.",
        "Leave out `detach`, `data` or `no_grad`.",
    ),
    _known(
        "nan_on_dead_row",
        "gives NaN to a query that may look at nothing",
        "A softmax over nothing but minus infinity is 0/0, and one NaN spoils every sum it meets.",
        "Find the rows whose scores are all -inf; give them harmless scores before the softmax "
        "and zeros after it.",
        dead_row,
    ),
    _known(
        "mask_after_softmax",
        "sets hidden weights to 0 after the softmax",
        "The hidden keys have taken their share already: what is left of a row no longer sums "
        "to 1.",
        "Hide before the softmax: what is left then shares the whole.",
        row_sums,
    ),
    _known(
        "scale_after_softmax",
        "divides the weights by sqrt(d_k), not the scores",
        "The softmax has worked on unscaled scores, and rows no longer sum to 1.",
        "The division stands inside the softmax.",
        row_sums,
    ),
    _known(
        "mixes_keys_not_values",
        "averages the keys",
        "Keys are what is matched; values are what is brought back.",
        "Which tensor does the last product use?",
        not_the_mix,
    ),
    _known(
        "mixes_queries",
        "averages the queries",
        "It fits by chance where there are as many queries as keys.",
        "Which tensor does the last product use?",
        not_the_mix,
    ),
    _known(
        "mean_of_weighted_values",
        "divides the weighted sum by the number of keys",
        "The weights sum to 1, so their sum is a mean already.",
        "A product of two matrices is enough.",
        not_the_mix,
    ),
    _known(
        "adds_the_query",
        "adds q to the result",
        "The residual connection belongs to the layer around attention.",
        "z is the weighted sum alone.",
        not_the_mix,
    ),
    _known(
        "transposed_weights_mix",
        "multiplies by the transposed weights",
        "Columns take the part of rows. It fits by chance where there are as many queries as keys.",
        "The weights have the axes (queries, keys) already.",
        not_the_mix,
    ),
    _known(
        "scales_the_output",
        "divides the output by sqrt(d_k) once more",
        "z is then no mean of the values.",
        "The scale belongs to the scores alone.",
        not_the_mix,
    ),
    _known(
        "hidden_values_only",
        "leaves hidden keys out of the sum and in the weights",
        "The weights that you return are not those that made z, and rows of the sum are too small.",
        "Hide before the softmax; then both follow.",
        leak,
    ),
    _known(
        "weights_unmasked",
        "returns weights that were made without the mask",
        "z is right; the weights show something that did not happen.",
        "Return the weights that you multiplied with v.",
        leak,
    ),
    _known(
        "only_z",
        "returns z alone",
        "The weights are half of the result: all pictures of this course are made of them.",
        "Return a pair, z and weights.",
    ),
    _known(
        "results_swapped",
        "returns (weights, z)",
        "Both are there, in the other order.",
        "First z, then the weights.",
        swapped,
    ),
    _known(
        "scores_returned",
        "returns the scores in place of the weights",
        "Scores are what stands before the softmax.",
        "Which name did you give to the softmax's result?",
    ),
    _known(
        "weights_transposed",
        "returns the weights with rows and columns swapped",
        "Rows should be queries, columns keys.",
        "Return the weights as they were in the product with v.",
    ),
    _known(
        "head_averaged_weights",
        "returns the mean of the weights over the heads",
        "`nn.MultiheadAttention` does so by default; single heads are then out of sight.",
        "Return one table per head.",
        convention=True,
    ),
    _known(
        "weights_of_first_head",
        "returns the weights of head 0 alone",
        "The other heads are out of sight.",
        "Return one table per head.",
    ),
    _known(
        "returns_a_list",
        "returns a list",
        "The contents are right; the contract is a pair, (z, weights).",
        "Round brackets, or none at all.",
    ),
    _known(
        "returned_weights_detached",
        "returns weights without their gradient",
        "z learns; a loss on the weights could not.",
        "Leave out `detach` where you return.",
    ),
    _known(
        "in_place",
        "changes q itself",
        "The caller's tensor is smaller after every call.",
        "`q /= ...` writes into q; `q / ...` makes a new tensor.",
    ),
    _known(
        "mask_in_place",
        "changes the mask itself",
        "The next layer would get another mask.",
        "Leave the underscore out: `logical_not`, or `~mask`.",
    ),
    _known(
        "always_float32",
        "returns float32 whatever comes in",
        "A model in half precision fails at the next product.",
        "You may compute in float32; return the dtype of the input.",
    ),
    Mistake(
        name="dropout_left_in",
        title="drops weights at random",
        means="The paper's attention has dropout nowhere inside, and the same input gives two "
        "different results.",
        next_step="Leave dropout to the layer around it.",
        recognise=has_dropout,
    ),
)
