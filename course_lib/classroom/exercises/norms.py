"""Exercises on what treats every token by itself: LayerNorm and the feed-forward network."""

import torch
import torch.nn.functional as F

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.classroom.properties import number, where
from course_lib.transformer.layers import layer_norm, position_wise_ffn


def _centred(x):
    return x - x.mean(-1, keepdim=True)


def _variance(x):
    return _centred(x).square().mean(-1, keepdim=True)


def _raw_moments(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


def _over(axes):
    def version(x, gain, bias, eps):
        if axes is None:
            mean, variance = x.mean(), x.var(correction=0)
        else:
            mean = x.mean(axes, keepdim=True)
            variance = x.var(axes, correction=0, keepdim=True)
        return (x - mean) / torch.sqrt(variance + eps) * gain + bias

    return version


def _saw_spread(seen):
    """The mean and the spread of one token before gain and bias, where they can be had."""
    gain, bias = seen.args["gain"], seen.args["bias"]
    if not seen.comparable("y") or (gain == 0).any():
        return None
    yours, right = ((made("y") - bias) / gain for made in (seen.yours, seen.right))
    row = yours.reshape(-1, yours.size(-1))[0].double()
    should = right.reshape(-1, right.size(-1))[0].double()
    found, wanted = row.std(correction=0).item(), should.std(correction=0).item()
    if not abs(found - wanted) > 1e-3 * wanted:
        return None
    return (
        f"{where(seen)}, gain and bias taken off again, the first token has standard deviation "
        f"{number(found)} in yours, {number(wanted)} in the right one."
    )


def _tokens_meet(all_seen):
    """Whether changing one token moved another: two probes differ from the first in one alone."""
    by_name = {one.probe.name: one for one in all_seen}
    plain = by_name[PLAIN]
    (name,) = plain.results
    for other, changed, watched in ((CHANGED, "last", "first"), (CHANGED_FIRST, "first", "last")):
        if not (plain.comparable(name) and by_name[other].comparable(name)):
            continue
        token = 0 if watched == "first" else -1
        moved = (plain.yours(name) - by_name[other].yours(name))[0, token].abs().max().item()
        if moved > 1e-4:
            return (
                f"Two of our inputs differ in the {changed} token of the first example alone. Your "
                f"result for its {watched} token moved by {number(moved)} between them; it should "
                "not move."
            )
    return None


def _is_normal(x, axes):
    spread = x.std(axes, correction=0)
    return x.mean(axes).abs().max() < 1e-3 and (spread - 1).abs().max() < 1e-2


def _normalised_over(axes: tuple[int, ...], what: str, *fewer: tuple[int, ...]):
    """With gain and bias taken off, three-axis results have mean 0 and spread 1 over ``axes``.

    ``fewer``: sets of axes over which they must not be so already.
    """

    def evident(all_seen):
        told = []
        for one in all_seen:
            gain, bias = one.args["gain"], one.args["bias"]
            if not (one.probe.core and one.args["x"].dim() == 3 and one.comparable("y")):
                continue
            plain = (one.yours("y") - bias) / gain
            if not _is_normal(plain, axes) or any(_is_normal(plain, part) for part in fewer):
                return None
            token = plain[0, 0]
            if token.mean().abs() > 0.01:
                told.append(
                    f"{where(one)}, gain and bias taken off again, your results have mean 0 and "
                    f"standard deviation 1 over {what}; the first token has mean "
                    f"{number(token.mean().item())}."
                )
        return told[0] if len(told) > 1 else None

    return evident


PLAIN = "two examples of three tokens"
CHANGED = "the same with another last token"
CHANGED_FIRST = "the same with another first token"


def _tokens(changed=None):
    x = numbers(2, 3, 7, seed=1) * 2 + 1
    if changed is not None:
        x[0, changed] = numbers(7, seed=9) - 3
    return x


def _norm_probe(name, make_x, eps=1e-5, **more):
    def make():
        x = make_x()
        gain, bias = numbers(x.size(-1), seed=2) + 1.5, numbers(x.size(-1), seed=3)
        return x, gain.to(x.dtype), bias.to(x.dtype), eps

    return Probe(name=name, make=make, **more)


LAYER_NORM = Exercise(
    name="layer_norm",
    signature="layer_norm(x, gain, bias, eps)",
    arguments=("x", "gain", "bias", "eps"),
    results=("y",),
    reference=layer_norm,
    probes=(
        _norm_probe(PLAIN, _tokens, grads=True),
        _norm_probe(CHANGED, lambda: _tokens(changed=2)),
        _norm_probe(CHANGED_FIRST, lambda: _tokens(changed=0)),
        _norm_probe(
            "a large eps, to see where it stands",
            lambda: numbers(5, 3, seed=4),
            eps=0.5,
            grads=True,
        ),
        _norm_probe("as many tokens as features", lambda: numbers(2, 5, 5, seed=5) * 3),
        _norm_probe("one token", lambda: numbers(11, seed=6) + 4),
        _norm_probe("features that are all equal", lambda: torch.full((2, 3, 5), 2.0), core=False),
        _norm_probe(
            "tiny differences on a large mean",
            lambda: 300 + 0.25 * torch.tensor([[1.0, -1, 2, 0, 3], [0, 2, 1, -3, 1]]),
            core=False,
        ),
        _norm_probe("double precision", lambda: numbers(2, 3, 5, seed=7).double(), core=False),
        _norm_probe(
            "axes in another order of memory",
            lambda: numbers(3, 7, 2, seed=8).permute(2, 0, 1),
            core=False,
        ),
    ),
    relations=(_tokens_meet,),
    mistakes=(
        Mistake(
            name="unbiased_variance",
            title="divides the squares by D - 1",
            saw=_saw_spread,
            means="`Tensor.var` and `Tensor.std` do so by default. LayerNorm divides by D.",
            next_step="Look for the argument of `var` that chooses, or take the mean of squares.",
            versions=(
                lambda x, g, b, e: _centred(x) / torch.sqrt(x.var(-1, keepdim=True) + e) * g + b,
            ),
        ),
        Mistake(
            name="eps_outside",
            title="adds eps to the standard deviation, outside of the root",
            saw=_saw_spread,
            means="For a small eps it hardly shows. We made it large.",
            next_step="What stands under the root?",
            versions=(lambda x, g, b, e: _centred(x) / (_variance(x).sqrt() + e) * g + b,),
        ),
        Mistake(
            name="unbiased_and_eps_outside",
            title="divides by D - 1 and adds eps outside of the root",
            saw=_saw_spread,
            means="Both at once, as in much-copied code that takes `x.std(-1)`.",
            next_step="Take the mean of squares, add eps, then the root.",
            versions=(lambda x, g, b, e: _centred(x) / (x.std(-1, keepdim=True) + e) * g + b,),
        ),
        Mistake(
            name="root_of_std",
            title="takes the root twice: sqrt(std + eps)",
            saw=_saw_spread,
            means="`std` has the root in it already.",
            next_step="What has to stand under the root is the variance.",
            versions=(
                lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x).sqrt() + e) * g + b,
                lambda x, g, b, e: _centred(x) / torch.sqrt(x.std(-1, keepdim=True) + e) * g + b,
            ),
        ),
        Mistake(
            name="divides_by_variance",
            title="divides by the variance, without the root",
            saw=_saw_spread,
            means="The spread would come out as one over what it was.",
            next_step="Which power of the variance has the unit of x?",
            versions=(lambda x, g, b, e: _centred(x) / (_variance(x) + e) * g + b,),
        ),
        Mistake(
            name="eps_ignored",
            title="leaves eps out",
            means="For a token whose features are all equal that is 0/0.",
            next_step="The argument eps is not used yet.",
            versions=(lambda x, g, b, e: _centred(x) / _variance(x).sqrt() * g + b,),
        ),
        Mistake(
            name="eps_fixed",
            title="uses 1e-5, whatever eps is",
            saw=_saw_spread,
            means="The argument is not used.",
            next_step="Where does eps belong in your line?",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + 1e-5) * g + b,),
        ),
        Mistake(
            name="divides_by_rsqrt",
            title="divides by the reciprocal root, and so multiplies by the root",
            saw=_saw_spread,
            means="`rsqrt` is one over the root already.",
            next_step="Multiply by it, or divide by `sqrt`.",
            versions=(lambda x, g, b, e: _centred(x) / torch.rsqrt(_variance(x) + e) * g + b,),
        ),
        Mistake(
            name="mean_not_subtracted",
            title="divides by the spread and does not subtract the mean",
            means="The scale is right and the place is not.",
            next_step="Two things are to be brought to fixed values: which two?",
            versions=(lambda x, g, b, e: x / torch.sqrt(_variance(x) + e) * g + b,),
        ),
        Mistake(
            name="rms_norm",
            title="divides by the root of the mean square of x, without centring",
            means="That is RMSNorm, with a bias: newer models use it. LayerNorm subtracts the mean "
            "first.",
            next_step="What is the mean of a token after your function, before gain and bias?",
            versions=(
                lambda x, g, b, e: x / torch.sqrt(x.square().mean(-1, keepdim=True) + e) * g + b,
            ),
        ),
        Mistake(
            name="sum_not_mean",
            title="divides by the root of the summed squares",
            saw=_saw_spread,
            means="The sum grows with D; the result is too small by the root of D.",
            next_step="A variance is a mean.",
            versions=(
                lambda x, g, b, e: (
                    _centred(x) / torch.sqrt(_centred(x).square().sum(-1, keepdim=True) + e) * g + b
                ),
            ),
        ),
        Mistake(
            name="over_sequence_and_features",
            title="takes one mean and one variance for a whole example",
            means="Tokens then influence each other, and so does padding.",
            next_step="Over which axis alone?",
            evident=_normalised_over(
                (1, 2), "the tokens and features of an example together", (1,), (2,)
            ),
            versions=(lambda x, g, b, e: _over((-2, -1) if x.dim() > 1 else -1)(x, g, b, e),),
        ),
        Mistake(
            name="over_everything",
            title="takes one mean and one variance for the whole tensor",
            means="Examples of a batch then influence each other.",
            next_step="Over which axis alone, and what does `keepdim` do?",
            evident=_normalised_over((0, 1, 2), "the whole tensor", (1, 2), (1,), (2,)),
            versions=(_over(None),),
        ),
        Mistake(
            name="over_tokens",
            title="takes mean and variance over the tokens, for each feature",
            means="That is closer to BatchNorm: a token's result depends on its neighbours.",
            next_step="Which axis is last?",
            evident=_normalised_over((1,), "the tokens, for each feature", (2,)),
            versions=(lambda x, g, b, e: _over(-2 if x.dim() > 1 else -1)(x, g, b, e),),
        ),
        Mistake(
            name="bias_missing",
            title="does not add the bias",
            means="A token's mean then stays where the norm put it.",
            next_step="One argument is not used.",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e) * g,),
        ),
        Mistake(
            name="gain_missing",
            title="does not multiply by the gain",
            means="Every feature keeps spread 1.",
            next_step="One argument is not used.",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e) + b,),
        ),
        Mistake(
            name="gain_and_bias_missing",
            title="uses neither gain nor bias",
            means="Every feature keeps mean 0 and spread 1.",
            next_step="Two arguments are not used.",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e),),
        ),
        Mistake(
            name="gain_and_bias_swapped",
            title="multiplies by the bias and adds the gain",
            means="The two have changed places.",
            next_step="Which one starts at one, which at zero?",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e) * b + g,),
        ),
        Mistake(
            name="bias_inside_gain",
            title="adds the bias before it multiplies by the gain",
            means="The bias is then scaled too.",
            next_step="Product first, sum after.",
            versions=(lambda x, g, b, e: (_centred(x) / torch.sqrt(_variance(x) + e) + b) * g,),
        ),
        Mistake(
            name="gain_plus_one",
            title="multiplies by 1 + gain",
            means="Some models store the gain as an offset from 1. Here the gain is the factor.",
            next_step="With a gain of one, what should change?",
            versions=(lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e) * (1 + g) + b,),
            convention=True,
        ),
        Mistake(
            name="statistics_detached",
            title="treats mean and variance as constants",
            means="The values are right; the gradient is not, since the mean moves with x.",
            next_step="Leave out `detach`, `data` or `no_grad`.",
            versions=(
                lambda x, g, b, e: (
                    (x - x.mean(-1, keepdim=True).detach())
                    / torch.sqrt(_variance(x) + e).detach()
                    * g
                    + b
                ),
            ),
        ),
        Mistake(
            name="variance_detached",
            title="treats the variance as a constant",
            means="The values are right; the gradient is not, since the variance moves with x.",
            next_step="Leave out `detach`, `data` or `no_grad`.",
            versions=(
                lambda x, g, b, e: _centred(x) / torch.sqrt(_variance(x) + e).detach() * g + b,
            ),
        ),
        Mistake(
            name="raw_moment_variance",
            title="computes the variance as E[x²] - E[x]²",
            means="Equal on paper. In float32 two large numbers cancel where the mean is large, "
            "and what is left can even be negative.",
            next_step="Subtract the mean first, then square.",
            versions=(_raw_moments,),
        ),
        Mistake(
            name="in_place",
            title="changes the caller's tensor",
            means="The residual path still needs x as it was.",
            next_step="Write `x = x - mean`, not `x -= mean`.",
            versions=(
                lambda x, g, b, e: (
                    x.sub_(x.mean(-1, keepdim=True)).div_(
                        torch.sqrt(x.square().mean(-1, keepdim=True) + e)
                    )
                    * g
                    + b
                ),
            ),
        ),
    ),
)


def _ffn_probe(name, make_x, d_ff, **more):
    def make():
        x = make_x()
        d_model = x.size(-1)
        return (
            x,
            numbers(d_model, d_ff, seed=2, dtype=x.dtype),
            numbers(d_ff, seed=3, dtype=x.dtype),
            numbers(d_ff, d_model, seed=4, dtype=x.dtype),
            numbers(d_model, seed=5, dtype=x.dtype),
        )

    return Probe(name=name, make=make, **more)


def _hidden(x, w1, b1):
    return torch.relu(x @ w1 + b1)


def _hidden_averaged(x, w1, b1, w2, b2):
    hidden = _hidden(x, w1, b1)
    if hidden.dim() > 1:
        hidden = hidden.mean(-2, keepdim=True).expand_as(hidden)
    return hidden @ w2 + b2


POSITION_WISE_FFN = Exercise(
    name="position_wise_ffn",
    signature="position_wise_ffn(x, w1, b1, w2, b2)",
    arguments=("x", "w1", "b1", "w2", "b2"),
    results=("y",),
    reference=position_wise_ffn,
    probes=(
        _ffn_probe(PLAIN, _tokens, 11, grads=True),
        _ffn_probe(CHANGED, lambda: _tokens(changed=2), 11),
        _ffn_probe(CHANGED_FIRST, lambda: _tokens(changed=0), 11),
        _ffn_probe("as many hidden units as features", lambda: numbers(2, 3, 5, seed=6), 5),
        _ffn_probe("one token", lambda: numbers(3, seed=7), 2),
        _ffn_probe("four axes", lambda: numbers(2, 3, 5, 2, seed=8), 7, core=False),
        _ffn_probe("double precision", lambda: numbers(2, 3, seed=9).double(), 5, core=False),
    ),
    relations=(_tokens_meet,),
    mistakes=(
        Mistake(
            name="no_activation",
            title="has no ReLU between the two maps",
            means="Two linear maps in a row are one linear map: the hidden layer gains nothing.",
            next_step="What does equation 2 do to negative hidden numbers?",
            versions=(lambda x, w1, b1, w2, b2: (x @ w1 + b1) @ w2 + b2,),
        ),
        Mistake(
            name="activation_first",
            title="applies the ReLU to the input",
            means="What is cut off is x, not the hidden layer.",
            next_step="In equation 2, what stands inside the max?",
            versions=(lambda x, w1, b1, w2, b2: (torch.relu(x) @ w1 + b1) @ w2 + b2,),
        ),
        Mistake(
            name="activation_last",
            title="applies the ReLU to the result as well",
            means="The result could then never be negative.",
            next_step="There is one ReLU, between the two maps.",
            versions=(lambda x, w1, b1, w2, b2: torch.relu(_hidden(x, w1, b1) @ w2 + b2),),
        ),
        Mistake(
            name="activation_only_last",
            title="applies the ReLU to the result, not to the hidden layer",
            means="The two maps then collapse into one.",
            next_step="There is one ReLU, between the two maps.",
            versions=(lambda x, w1, b1, w2, b2: torch.relu((x @ w1 + b1) @ w2 + b2),),
        ),
        Mistake(
            name="gelu",
            title="uses GELU where the paper has ReLU",
            means="Later models (BERT, GPT-2) do. Equation 2 has max(0, ...).",
            next_step="Which function is max(0, ...)?",
            versions=(
                lambda x, w1, b1, w2, b2: F.gelu(x @ w1 + b1) @ w2 + b2,
                lambda x, w1, b1, w2, b2: F.gelu(x @ w1 + b1, approximate="tanh") @ w2 + b2,
            ),
            convention=True,
        ),
        Mistake(
            name="sigmoid_hidden",
            title="sends the hidden layer through a sigmoid or tanh",
            means="The hidden numbers are squeezed; equation 2 cuts only the negative ones.",
            next_step="Which function is max(0, ...)?",
            versions=(
                lambda x, w1, b1, w2, b2: torch.sigmoid(x @ w1 + b1) @ w2 + b2,
                lambda x, w1, b1, w2, b2: torch.tanh(x @ w1 + b1) @ w2 + b2,
            ),
        ),
        Mistake(
            name="softmax_hidden",
            title="takes a softmax over the hidden units",
            means="The hidden numbers would share a total of 1.",
            next_step="No softmax here: which function is max(0, ...)?",
            versions=(lambda x, w1, b1, w2, b2: (x @ w1 + b1).softmax(-1) @ w2 + b2,),
        ),
        Mistake(
            name="output_bias_missing",
            title="does not add b2",
            means="One argument is not used.",
            next_step="Compare with equation 2, term by term.",
            versions=(lambda x, w1, b1, w2, b2: _hidden(x, w1, b1) @ w2,),
        ),
        Mistake(
            name="inner_bias_missing",
            title="does not add b1",
            means="One argument is not used.",
            next_step="Compare with equation 2, term by term.",
            versions=(lambda x, w1, b1, w2, b2: torch.relu(x @ w1) @ w2 + b2,),
        ),
        Mistake(
            name="bias_after_activation",
            title="adds b1 after the ReLU",
            means="The bias moves the point at which a unit switches on; after the ReLU it can't.",
            next_step="In equation 2, is b1 inside the max?",
            versions=(lambda x, w1, b1, w2, b2: (torch.relu(x @ w1) + b1) @ w2 + b2,),
        ),
        Mistake(
            name="residual_inside",
            title="adds x to the result",
            means="The residual is added around this part; with this one it is added twice.",
            next_step="Equation 2 ends with b2.",
            versions=(lambda x, w1, b1, w2, b2: x + _hidden(x, w1, b1) @ w2 + b2,),
        ),
        Mistake(
            name="mixes_positions",
            title="lets tokens influence each other",
            means="Position-wise means: every token by itself.",
            next_step="Only the last axis takes part in the products.",
            evident=_tokens_meet,
            versions=(_hidden_averaged,),
        ),
        Mistake(
            name="linear_layout_weights",
            title="takes the weights for `nn.Linear`'s, of shape (out, in)",
            means="`nn.Linear` and `F.linear` keep their weights transposed. Here w1 is (D, F).",
            next_step="Write the product with `@`, in the order of equation 2.",
            versions=(lambda x, w1, b1, w2, b2: F.linear(torch.relu(F.linear(x, w1, b1)), w2, b2),),
            convention=True,
        ),
        Mistake(
            name="leaky_relu",
            title="lets a little of the negative numbers through",
            means="That is a leaky ReLU. Equation 2 has exactly 0 there.",
            next_step="Which function is max(0, ...)?",
            versions=(lambda x, w1, b1, w2, b2: F.leaky_relu(x @ w1 + b1) @ w2 + b2,),
        ),
        Mistake(
            name="absolute_value",
            title="takes the absolute value of the hidden layer",
            means="Negative numbers come out positive, where they should become 0.",
            next_step="Which function is max(0, ...)?",
            versions=(lambda x, w1, b1, w2, b2: (x @ w1 + b1).abs() @ w2 + b2,),
        ),
        Mistake(
            name="minimum_taken",
            title="keeps the negative hidden numbers and drops the positive ones",
            means="That is min(0, ...).",
            next_step="Which of the two is `clamp(min=0)`?",
            versions=(lambda x, w1, b1, w2, b2: (x @ w1 + b1).clamp(max=0) @ w2 + b2,),
        ),
    ),
)
