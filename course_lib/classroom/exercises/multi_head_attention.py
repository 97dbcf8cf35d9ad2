"""The exercise on a whole multi-head attention: a module, checked with the library's weights."""

import math

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_module import call_module
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.classroom.properties import number, where
from course_lib.transformer.attention import causal_mask, scaled_dot_product_attention
from course_lib.transformer.heads import MultiHeadAttention, merge_heads, split_heads


class _Wrong(MultiHeadAttention):
    """The library's module with one step changed; the steps are the subclasses' to change."""

    def split(self, x):
        return split_heads(x, self.n_heads)

    def merge(self, z):
        return merge_heads(z)

    def attend(self, q, k, v, mask):
        return scaled_dot_product_attention(q, k, v, mask)

    def finish(self, z, weights):
        return self.output(z), weights

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            self.split(linear(x))
            for linear, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        z, weights = self.attend(q, k, v, mask)
        return self.finish(self.merge(z), weights)


def _wrong(**steps):
    return type("MultiHeadAttention", (_Wrong,), steps)


def _scaled(factor):
    def attend(self, q, k, v, mask):
        return scaled_dot_product_attention(q * factor(self, q), k, v, mask)

    return attend


def _from(pick):
    def forward(self, query, key, value, mask=None):
        return _Wrong.forward(self, *pick(query, key, value), mask)

    return forward


def _through(*maps):
    """Queries, keys and values through these maps, in this order."""

    def forward(self, query, key, value, mask=None):
        linears = (getattr(self, name) for name in maps)
        q, k, v = (
            self.split(linear(x)) for linear, x in zip(linears, (query, key, value), strict=True)
        )
        z, weights = self.attend(q, k, v, mask)
        return self.finish(self.merge(z), weights)

    return forward


def _large_fill(self, q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1)
    return weights @ v, weights


def _one_linear_for_all(self, query, key, value, mask=None):
    q, k, v = (self.split(self.query(x)) for x in (query, key, value))
    z, weights = self.attend(q, k, v, mask)
    return self.finish(self.merge(z), weights)


def _scrambled_split(self, x):
    return x.reshape(x.size(0), self.n_heads, x.size(1), -1)


def _scrambled_merge(self, z):
    return z.reshape(z.size(0), z.size(2), -1)


def _strided_split(self, x):
    return x.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)


def _strided_merge(self, z):
    return z.permute(0, 2, 3, 1).flatten(2)


def _without_mask(self, q, k, v, mask):
    return scaled_dot_product_attention(q, k, v)


def _inverted(self, q, k, v, mask):
    return scaled_dot_product_attention(q, k, v, None if mask is None else ~mask)


def _naive(self, q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    return weights @ v, weights


def _across_heads(self, q, k, v, mask):
    z, weights = scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)))
    return z.transpose(1, 2), weights


def _saw_weights_shape(seen):
    yours, right = seen.yours("weights"), seen.right("weights")
    if yours is None or yours.shape == right.shape:
        return None
    return f"{where(seen)}, your weights are {tuple(yours.shape)}, expected {tuple(right.shape)}."


def _saw_z_alone(seen):
    """Whether the weights are right and only z is wrong."""
    if not (seen.comparable("z") and seen.comparable("weights")):
        return None
    if not torch.allclose(seen.yours("weights"), seen.right("weights"), atol=1e-5):
        return None
    off = (seen.yours("z") - seen.right("z")).abs().max().item()
    if off < 1e-3:
        return None
    return (
        f"{where(seen)}, the weights of all {seen.right('weights').size(1)} heads are right; z is "
        f"not: it is off by up to {number(off)}."
    )


def _mask_of(kind):
    if kind == "causal":
        return causal_mask(5)
    if kind == "padding":
        return torch.tensor([[True] * 5, [True, True, False, False, False]])[:, None, None]
    if kind == "dead":
        return torch.tensor([[True] * 5, [False] * 5])[:, None, None]
    return None


def _attending(kind, *, n_query=5, cross=False, d_model=6):
    def make():
        x = numbers(2, n_query, d_model, seed=1)
        if not cross:
            return x, x, x, _mask_of(kind)
        return x, numbers(2, 5, d_model, seed=2), numbers(2, 5, d_model, seed=3), _mask_of(kind)

    return make


EXERCISE = Exercise(
    name="MultiHeadAttention",
    signature="MultiHeadAttention(d_model, n_heads)",
    arguments=("query", "key", "value", "mask"),
    results=("z", "weights"),
    reference=MultiHeadAttention,
    call=call_module(MultiHeadAttention),
    probes=(
        Probe(
            name="three sequences of their own, two heads",
            make=_attending(None, n_query=3, cross=True),
            build=(6, 2),
            grads=True,
        ),
        Probe(
            name="a causal mask, three heads",
            make=_attending("causal", cross=True),
            build=(6, 3),
            grads=True,
        ),
        Probe(
            name="self-attention with padding",
            make=_attending("padding", d_model=10),
            build=(10, 5),
        ),
        Probe(
            name="as many tokens as heads",
            make=_attending(None, d_model=15),
            build=(15, 5),
        ),
        Probe(name="one head", make=_attending(None), build=(6, 1), core=False),
        Probe(
            name="an example that is all padding",
            make=_attending("dead", n_query=3, cross=True),
            build=(6, 2),
            grads=True,
            core=False,
        ),
    ),
    properties=(_saw_z_alone,),
    mistakes=(
        Mistake(
            name="output_map_missing",
            title="does not send the merged heads through `output`",
            saw=_saw_z_alone,
            means="Without W^O the heads stand side by side and never meet.",
            next_step="Section 3.2.2 has a fourth matrix.",
            versions=(_wrong(finish=lambda self, z, weights: (z, weights)),),
        ),
        Mistake(
            name="view_without_transpose",
            title="splits by a plain reshape to (B, H, T, K) and merges by a transpose",
            means="A head then gets whole tokens, not a block of every token.",
            next_step="Use your `split_heads` of above.",
            versions=(_wrong(split=_scrambled_split),),
        ),
        Mistake(
            name="merge_without_transpose",
            title="merges by a plain reshape of (B, H, T, K)",
            saw=_saw_z_alone,
            means="The tokens are scrambled just before the output.",
            next_step="Use your `merge_heads` of above.",
            versions=(_wrong(merge=_scrambled_merge),),
        ),
        Mistake(
            name="reshapes_that_cancel",
            title="splits and merges by plain reshapes that undo each other",
            means="The round trip gives every number back its place, so a test of split and merge "
            "alone passes. In between, each head attends to scraps of tokens.",
            next_step="Look at one head before attention: is row t made of token t?",
            versions=(_wrong(split=_scrambled_split, merge=_scrambled_merge),),
        ),
        Mistake(
            name="strided_heads_that_cancel",
            title="gives head h the features h, h + H, ... and puts them back so",
            means="Split and merge fit each other and a model trains. But weights learned "
            "elsewhere would be read in the wrong order.",
            next_step="A head is a block of neighbouring features.",
            versions=(_wrong(split=_strided_split, merge=_strided_merge),),
        ),
        Mistake(
            name="attends_across_heads",
            title="attends with the heads and the tokens in each other's place",
            saw=_saw_weights_shape,
            means="The heads of one token look at each other; no token sees another.",
            next_step="The last two axes before attention are tokens and features.",
            versions=(_wrong(attend=_across_heads),),
        ),
        Mistake(
            name="no_scale",
            title="does not divide the scores",
            means="The scale of lesson 02 belongs here too.",
            next_step="Which size stands under the root?",
            versions=(_wrong(attend=_scaled(lambda self, q: math.sqrt(q.size(-1)))),),
        ),
        Mistake(
            name="scaled_by_d_model",
            title="divides the scores by the root of d_model, not of d_head",
            means="A head multiplies vectors of d_head features.",
            next_step="Take the size from the queries after the split.",
            versions=(_wrong(attend=_scaled(lambda self, q: self.n_heads**-0.5)),),
        ),
        Mistake(
            name="attends_before_splitting",
            title="attends once in all of d_model and gives every head the same weights",
            means="That is one head. The split has to come before the scores.",
            next_step="In which order come split, attend and merge?",
            versions=(
                _wrong(
                    attend=lambda self, q, k, v, mask: _attend_whole(self, q, k, v, mask),
                ),
            ),
        ),
        Mistake(
            name="mask_ignored",
            title="never uses the mask",
            means="Padding and the future are read.",
            next_step="Hand the mask on to the attention.",
            versions=(_wrong(attend=_without_mask),),
        ),
        Mistake(
            name="mask_inverted",
            title="looks exactly where the mask forbids it",
            means="True means *may look* here. `nn.MultiheadAttention` has the other sense.",
            next_step="Which sense does your attention expect?",
            versions=(_wrong(attend=_inverted),),
        ),
        Mistake(
            name="nan_on_dead_row",
            title="gives NaN to a query that may look nowhere",
            means="A softmax over nothing but minus infinity is 0/0.",
            next_step="Lesson 02's attention gives zeros there.",
            versions=(_wrong(attend=_naive),),
        ),
        Mistake(
            name="weights_averaged_over_heads",
            title="returns the mean of the heads' weights",
            saw=_saw_weights_shape,
            means="`nn.MultiheadAttention` does so by default. Here every head stays visible.",
            next_step="Return the weights with their axis of heads.",
            versions=(_wrong(finish=lambda self, z, weights: (self.output(z), weights.mean(1))),),
            convention=True,
        ),
        Mistake(
            name="z_alone",
            title="returns z without the weights",
            means="A lesson can't draw what it doesn't get.",
            next_step="Return the pair.",
            versions=(_wrong(finish=lambda self, z, weights: self.output(z)),),
        ),
        Mistake(
            name="results_swapped",
            title="returns the weights first and z second",
            means="The order is z, then the weights, as lesson 02's function has it.",
            next_step="Swap them.",
            versions=(_wrong(finish=lambda self, z, weights: (weights, self.output(z))),),
        ),
        Mistake(
            name="one_linear_for_all",
            title="makes queries, keys and values with the same linear map",
            means="The three roles need three maps: what a word asks for is not what it offers.",
            next_step="Look at which map each line uses.",
            versions=(_wrong(forward=_one_linear_for_all),),
        ),
        Mistake(
            name="everything_from_query",
            title="makes keys and values from `query` too",
            means="It can only do self-attention: the other two arguments are never read.",
            next_step="Which argument goes into which map?",
            versions=(_wrong(forward=_from(lambda q, k, v: (q, q, q))),),
        ),
        Mistake(
            name="values_from_key",
            title="makes the values from `key`",
            means="In self- and cross-attention the two are the same tensor, and so it is seldom "
            "noticed.",
            next_step="There are three arguments: is each one read?",
            versions=(_wrong(forward=_from(lambda q, k, v: (q, k, k))),),
        ),
        Mistake(
            name="keys_and_values_exchanged",
            title="makes the keys from `value` and the values from `key`",
            means="The two have changed roles.",
            next_step="Follow one argument from its name to the attention.",
            versions=(_wrong(forward=_from(lambda q, k, v: (q, v, k))),),
        ),
        Mistake(
            name="maps_of_keys_and_values_exchanged",
            title="sends `key` through the map `value` and `value` through the map `key`",
            means="The arguments are right, and the maps have changed roles.",
            next_step="Each argument has a map of its own name.",
            versions=(_wrong(forward=_through("query", "value", "key")),),
        ),
        Mistake(
            name="maps_of_queries_and_keys_exchanged",
            title="sends `query` through the map `key` and `key` through the map `query`",
            means="The arguments are right, and the maps have changed roles.",
            next_step="Each argument has a map of its own name.",
            versions=(_wrong(forward=_through("key", "query", "value")),),
        ),
        Mistake(
            name="uniform_on_dead_row",
            title="gives a query that may look nowhere equal weights",
            means="All of its scores are equal, so all it may not see gets the same share.",
            next_step="Set the weights of such a row to zero, after the softmax.",
            versions=(_wrong(attend=_large_fill),),
        ),
        Mistake(
            name="adds_the_residual",
            title="adds the query to the result",
            means="The residual comes in lesson 05, around this module: with this one it would be "
            "added twice.",
            next_step="Return what `output` gives.",
            versions=(
                _wrong(
                    forward=lambda self, query, key, value, mask=None: _with_residual(
                        self, query, key, value, mask
                    )
                ),
            ),
        ),
        Mistake(
            name="weights_detached",
            title="cuts the weights from the gradient",
            means="Values train; queries and keys never do.",
            next_step="Leave out `detach`, `data` or `no_grad`.",
            versions=(_wrong(attend=lambda self, q, k, v, mask: _detached(q, k, v, mask)),),
        ),
    ),
)


def _attend_whole(self, q, k, v, mask):
    q, k, v = (merge_heads(x).unsqueeze(1) for x in (q, k, v))
    z, weights = scaled_dot_product_attention(q, k, v, mask)
    return split_heads(z.squeeze(1), self.n_heads), weights.expand(-1, self.n_heads, -1, -1)


def _with_residual(self, query, key, value, mask):
    z, weights = _Wrong.forward(self, query, key, value, mask)
    return query + z, weights


def _detached(q, k, v, mask):
    weights = scaled_dot_product_attention(q, k, v, mask)[1].detach()
    return weights @ v, weights
