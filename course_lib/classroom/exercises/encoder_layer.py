"""The exercise on a whole encoder layer, assembled from parts that are given."""

import torch
from torch import nn

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_module import call_module
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.transformer.attention import causal_mask
from course_lib.transformer.layers import EncoderLayer


def _layer(forward, **changes):
    """A faulty encoder layer: the library's parts, put together by ``forward``."""

    def build(self, d_model, n_heads, d_ff):
        EncoderLayer.__init__(self, d_model, n_heads, d_ff)
        for name, change in changes.items():
            setattr(self, name, change(d_model))

    return type("EncoderLayer", (EncoderLayer,), {"__init__": build, "forward": forward})


def _attend(self, x, mask):
    return self.self_attention(x, x, x, mask)[0]


def _right(self, x, mask=None):
    x = self.norm1(x + _attend(self, x, mask))
    return self.norm2(x + self.feed_forward(x))


def _pre_norm(self, x, mask=None):
    x = x + _attend(self, self.norm1(x), mask)
    return x + self.feed_forward(self.norm2(x))


def _mask_ignored(self, x, mask=None):
    return _right(self, x)


def _mask_inverted(self, x, mask=None):
    return _right(self, x, None if mask is None else ~mask)


def _attention_skip_missing(self, x, mask=None):
    x = self.norm1(_attend(self, x, mask))
    return self.norm2(x + self.feed_forward(x))


def _feed_forward_skip_missing(self, x, mask=None):
    x = self.norm1(x + _attend(self, x, mask))
    return self.norm2(self.feed_forward(x))


def _both_skips_missing(self, x, mask=None):
    return self.norm2(self.feed_forward(self.norm1(_attend(self, x, mask))))


def _from_the_start(self, x, mask=None):
    y = self.norm1(x + _attend(self, x, mask))
    return self.norm2(x + self.feed_forward(y))


def _feed_forward_of_the_start(self, x, mask=None):
    y = self.norm1(x + _attend(self, x, mask))
    return self.norm2(y + self.feed_forward(x))


def _norms_swapped(self, x, mask=None):
    x = self.norm2(x + _attend(self, x, mask))
    return self.norm1(x + self.feed_forward(x))


def _one_norm(self, x, mask=None):
    x = self.norm1(x + _attend(self, x, mask))
    return self.norm1(x + self.feed_forward(x))


def _feed_forward_first(self, x, mask=None):
    x = self.norm1(x + self.feed_forward(x))
    return self.norm2(x + _attend(self, x, mask))


def _second_norm_missing(self, x, mask=None):
    x = self.norm1(x + _attend(self, x, mask))
    return x + self.feed_forward(x)


def _first_norm_missing(self, x, mask=None):
    x = x + _attend(self, x, mask)
    return self.norm2(x + self.feed_forward(x))


def _side_by_side(self, x, mask=None):
    return self.norm2(x + _attend(self, x, mask) + self.feed_forward(self.norm1(x)))


def _without_feed_forward(self, x, mask=None):
    return self.norm2(self.norm1(x + _attend(self, x, mask)))


def _residual_after_norm(self, x, mask=None):
    x = x + self.norm1(_attend(self, x, mask))
    return x + self.norm2(self.feed_forward(x))


def _with_weights(self, x, mask=None):
    y, weights = self.self_attention(x, x, x, mask)
    x = self.norm1(x + y)
    return self.norm2(x + self.feed_forward(x)), weights


def _in(kind, d_model):
    def make():
        x = numbers(2, 5, d_model, seed=1) + 0.3
        mask = {
            "none": None,
            "causal": causal_mask(5),
            "padding": torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None],
        }[kind]
        return x, mask

    return make


ENCODER_LAYER = Exercise(
    name="EncoderLayer",
    signature="EncoderLayer(d_model, n_heads, d_ff)",
    arguments=("x", "mask"),
    results=("x",),
    reference=EncoderLayer,
    call=call_module(EncoderLayer),
    probes=(
        Probe(name="two sentences", make=_in("none", 6), build=(6, 2, 7), grads=True),
        Probe(name="padding", make=_in("padding", 6), build=(6, 3, 11), grads=True),
        Probe(name="a causal mask", make=_in("causal", 10), build=(10, 5, 3)),
        Probe(name="one head", make=_in("none", 3), build=(3, 1, 2), core=False),
    ),
    mistakes=(
        Mistake(
            name="is_pre_norm",
            title="is pre-norm",
            means="The parts are right, in the order of newer models. This exercise asks for the "
            "post-norm of 2017, as published.",
            next_step="Use `post_norm_sublayer` twice.",
            versions=(_layer(_pre_norm),),
            convention=True,
        ),
        Mistake(
            name="mask_ignored",
            title="does not hand the mask to the attention",
            means="Padding and the future are read.",
            next_step="Which call takes the mask?",
            versions=(_layer(_mask_ignored),),
        ),
        Mistake(
            name="mask_inverted",
            title="looks exactly where the mask forbids it",
            means="True means *may look* here. `nn.TransformerEncoderLayer` has the other sense.",
            next_step="Hand the mask on as it is.",
            versions=(_layer(_mask_inverted),),
        ),
        Mistake(
            name="attention_skip_missing",
            title="does not add x to the attention's output",
            means="A token then keeps of itself only what it attends to.",
            next_step="Each of the two sub-layers has a residual.",
            versions=(_layer(_attention_skip_missing),),
        ),
        Mistake(
            name="feed_forward_skip_missing",
            title="does not add x to the feed-forward's output",
            means="The second sub-layer has no direct way through.",
            next_step="Each of the two sub-layers has a residual.",
            versions=(_layer(_feed_forward_skip_missing),),
        ),
        Mistake(
            name="both_skips_missing",
            title="has no residual at all",
            means="Neither sub-layer has a direct way through.",
            next_step="Each of the two sub-layers adds its input.",
            versions=(_layer(_both_skips_missing),),
        ),
        Mistake(
            name="residual_from_the_start",
            title="adds the layer's own input at the second sub-layer",
            means="The second residual is the second sub-layer's input, which is the first one's "
            "output.",
            next_step="What does x stand for in your last line?",
            versions=(_layer(_from_the_start),),
        ),
        Mistake(
            name="feed_forward_reads_the_start",
            title="lets the feed-forward read the layer's own input",
            means="What attention gathered would go round it.",
            next_step="What does the second sub-layer read?",
            versions=(_layer(_feed_forward_of_the_start),),
        ),
        Mistake(
            name="norms_swapped",
            title="uses `norm2` after the attention and `norm1` after the feed-forward",
            means="At the start both do the same, and so it is seldom noticed. With learned gains "
            "they differ.",
            next_step="Number them in the order in which they come.",
            versions=(_layer(_norms_swapped),),
        ),
        Mistake(
            name="one_norm_for_both",
            title="uses `norm1` in both places",
            means="Each sub-layer has a norm with a gain and bias of its own.",
            next_step="Where is `norm2` used?",
            versions=(_layer(_one_norm),),
        ),
        Mistake(
            name="feed_forward_first",
            title="runs the feed-forward before the attention",
            means="The order within a layer is attention, then feed-forward.",
            next_step="Which comes first in figure 1 of the paper?",
            versions=(_layer(_feed_forward_first),),
        ),
        Mistake(
            name="second_norm_missing",
            title="leaves out the norm after the feed-forward",
            means="In post-norm every sub-layer ends with a norm.",
            next_step="Where is `norm2` used?",
            versions=(_layer(_second_norm_missing),),
        ),
        Mistake(
            name="first_norm_missing",
            title="leaves out the norm after the attention",
            means="In post-norm every sub-layer ends with a norm.",
            next_step="Where is `norm1` used?",
            versions=(_layer(_first_norm_missing),),
        ),
        Mistake(
            name="residual_after_norm",
            title="normalises each branch and adds x after it",
            means="The stream itself is then never normalised.",
            next_step="What is normalised in post-norm: the branch or the sum?",
            versions=(_layer(_residual_after_norm),),
        ),
        Mistake(
            name="side_by_side",
            title="runs both sub-layers on the same input and adds them",
            means="Some newer models do so, to save time. Here the second reads what the first "
            "gave.",
            next_step="Follow x from line to line.",
            versions=(_layer(_side_by_side),),
        ),
        Mistake(
            name="feed_forward_missing",
            title="never calls the feed-forward",
            means="A layer has two sub-layers.",
            next_step="Which part of yours is never called?",
            versions=(_layer(_without_feed_forward),),
        ),
        Mistake(
            name="returns_the_weights_too",
            title="returns the attention weights too",
            means="This module gives x alone, so that layers can be stacked.",
            next_step="Return the tensor alone.",
            versions=(_layer(_with_weights),),
        ),
        Mistake(
            name="eps_too_large",
            title="has norms with an eps of 1e-3 or more",
            means="`nn.LayerNorm`'s own eps is 1e-5, as here.",
            next_step="Make the norms without naming eps.",
            versions=tuple(
                _layer(
                    _right,
                    norm1=lambda d, eps=eps: nn.LayerNorm(d, eps=eps),
                    norm2=lambda d, eps=eps: nn.LayerNorm(d, eps=eps),
                )
                for eps in (1e-3, 1e-2)
            ),
        ),
    ),
)
