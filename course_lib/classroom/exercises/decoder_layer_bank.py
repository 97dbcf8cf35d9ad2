"""The known mistakes of a decoder layer."""

from itertools import permutations, product

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.classroom.judge_parts import Mistake, Seen
from course_lib.classroom.properties import number, where
from course_lib.transformer.attention import causal_mask
from course_lib.transformer.encoder_decoder import DecoderLayer


class Layer(DecoderLayer):
    """The library's decoder layer with one step changed; the steps are the subclasses' to change.

    ``order``: the sub-layers. ``norms``: which norm comes after each of them, 0 for none.
    """

    order = ("look_back", "look_across", "think")
    norms = (1, 2, 3)

    def look_back(self, x):
        return self.attend(self.self_attention, x, x, x, self.self_mask)

    def look_across(self, x):
        memory = self.memory
        return self.attend(self.cross_attention, x, memory, memory, self.memory_mask)

    def think(self, x):
        return self.feed_forward(x)

    def attend(self, attention, query, key, value, mask):
        return attention(query, key, value, mask, need_weights=False)[0]

    def add(self, place, x, y):
        return x + y

    def masks(self, x, self_mask, memory_mask):
        return self_mask, memory_mask

    def read(self, memory):
        return memory

    def norm(self, place, x):
        which = self.norms[place]
        return getattr(self, f"norm{which}")(x) if which else x

    def together(self, x):
        for place, name in enumerate(self.order):
            x = self.norm(place, self.add(place, x, getattr(self, name)(x)))
        return x

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        self.start, self.memory = x, self.read(memory)
        self.self_mask, self.memory_mask = self.masks(x, self_mask, memory_mask)
        return self.together(x)


def changed(**steps) -> type[Layer]:
    return type("DecoderLayer", (Layer,), steps)


def built(change) -> type[DecoderLayer]:
    """The library's layer after ``change(layer, d_model)`` in its constructor."""

    def build(self, d_model, n_heads, d_ff):
        DecoderLayer.__init__(self, d_model, n_heads, d_ff)
        change(self, d_model)

    return type(
        "DecoderLayer", (DecoderLayer,), {"__init__": build, "forward": DecoderLayer.forward}
    )


def crossing(query, key, value, mask="memory_mask", attention="cross_attention"):
    """Cross-attention between any of "x" and "memory"."""

    def look_across(self, x):
        source = {"x": x, "memory": self.memory, "start": self.start}
        return self.attend(
            getattr(self, attention),
            *(source[name] for name in (query, key, value)),
            mask and getattr(self, mask),
        )

    return changed(look_across=look_across)


def masked(pick):
    return changed(masks=lambda self, x, mine, theirs: pick(mine, theirs))


def adding(*places_of_the_start):
    """A layer that adds its own input at these sub-layers."""
    return changed(
        add=lambda self, place, x, y: (self.start if place in places_of_the_start else x) + y
    )


def without_skip(*places):
    return changed(add=lambda self, place, x, y: y if place in places else x + y)


def _not(mask):
    return None if mask is None else ~mask


def _pre_norm(self, x):
    for place, name in enumerate(self.order):
        x = x + getattr(self, name)(self.norm(place, x))
    return x


def _norm_before_and_after(self, x):
    for place, name in enumerate(self.order):
        x = self.norm(place, x + getattr(self, name)(self.norm(place, x)))
    return x


def _branch_normed(self, x):
    for place, name in enumerate(self.order):
        x = x + self.norm(place, getattr(self, name)(x))
    return x


def _side_by_side(self, x):
    return self.norm3(x + self.look_back(x) + self.look_across(x) + self.think(x))


def _side_by_side_normed(self, x):
    return self.norm3(x + self.norm1(self.look_back(x)) + self.norm2(self.look_across(x))
                      + self.think(x))  # fmt: skip


def _attentions_side_by_side(self, x):
    x = self.norm2(self.norm1(x + self.look_back(x) + self.look_across(x)))
    return self.norm3(x + self.think(x))


def _own_causal(self, x, mine, theirs):
    causal = causal_mask(x.size(1))
    return causal if mine is None else mine & causal, theirs


def _causal_always(self, x, mine, theirs):
    return causal_mask(x.size(1)), theirs


def _no_relu(self, x):
    return self.feed_forward.outer(self.feed_forward.inner(x))


def _saw_open_rows(seen: Seen) -> str | None:
    """Whether the tokens with nothing hidden from them are right, and others are not."""
    mask = seen.args["self_mask"]
    if mask is None or not seen.comparable("x"):
        return None
    right = seen.right("x")
    every = torch.ones(len(right), 1, right.size(1), right.size(1), dtype=torch.bool)
    whole = (every & mask).all(-1).all(1)  # (B, T)
    off = (seen.yours("x") - right).abs().amax(-1)
    if not _apart(off, whole):
        return None
    return (
        f"{where(seen)}, the tokens that may see all of x are right ({int(whole.sum())} of "
        f"{whole.numel()}); the others are off by up to {number(off[~whole].max().item())}."
    )


def _saw_whole_memory(seen: Seen) -> str | None:
    """Whether the sentences with nothing hidden in their memory are right, and others are not."""
    mask = seen.args["memory_mask"]
    if mask is None or not seen.comparable("x"):
        return None
    whole = mask.flatten(1).all(1)  # (B,)
    off = (seen.yours("x") - seen.right("x")).abs().amax((1, 2))
    if not _apart(off, whole):
        return None
    return (
        f"{where(seen)}, sentence {int(whole.nonzero()[0])}, whose memory has no padding, is "
        f"right; sentence {int((~whole).nonzero()[0])} is off by up to "
        f"{number(off[~whole].max().item())}."
    )


def _apart(off: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether the error is none at all here and plain to see there."""
    if whole.all() or not whole.any():
        return False
    return bool(off[whole].max() <= 1e-5) and bool(off[~whole].max() > 1e-3)


def _mistake(name, title, means, next_step, *versions, saw=None, convention=False):
    return Mistake(
        name=name,
        title=title,
        means=means,
        next_step=next_step,
        versions=versions,
        saw=saw,
        convention=convention,
    )


_EVERY_NORM = tuple(product((1, 2, 3), repeat=3))
_ORDERS = tuple(permutations((1, 2, 3)))
_SKIPS = "Each of the three sub-layers has a residual."
_NORMS = "In post-norm every sub-layer ends with a norm."
_INVERTED = "True means *may look* here. `nn.TransformerDecoderLayer` has the other sense."

MISTAKES = (
    _mistake(
        "is_pre_norm",
        "is pre-norm",
        "The parts are right, in the order of newer models. This exercise asks for the post-norm "
        "of 2017, as published.",
        "Use `post_norm_sublayer` three times.",
        changed(together=_pre_norm),
        convention=True,
    ),
    _mistake(
        "masks_swapped",
        "gives each attention the other one's mask",
        "The self-mask is about x, the memory mask about the memory. Where x and memory have "
        "different lengths they don't even fit.",
        "For each of the two attentions: what are its keys, and which mask speaks of them?",
        masked(lambda mine, theirs: (theirs, mine)),
    ),
    _mistake(
        "self_mask_for_both",
        "gives the self-mask to both attentions",
        "The self-mask says which tokens of x may be seen. It says nothing about the memory.",
        "There are four arguments: is each one read?",
        masked(lambda mine, theirs: (mine, mine)),
    ),
    _mistake(
        "memory_mask_for_both",
        "gives the memory mask to both attentions",
        "The memory mask says which tokens of the source are real. It says nothing about x.",
        "There are four arguments: is each one read?",
        masked(lambda mine, theirs: (theirs, theirs)),
    ),
    _mistake(
        "self_mask_ignored",
        "gives the self-attention no mask",
        "The future is read: in training the layer sees the words that it should guess.",
        "Which call takes the self-mask?",
        masked(lambda mine, theirs: (None, theirs)),
        saw=_saw_open_rows,
    ),
    _mistake(
        "memory_mask_ignored",
        "gives the cross-attention no mask",
        "The padding of the source is read as if it were words.",
        "Which call takes the memory mask?",
        masked(lambda mine, theirs: (mine, None)),
        saw=_saw_whole_memory,
    ),
    _mistake(
        "both_masks_ignored",
        "hands neither mask on",
        "Padding and the future are read.",
        "Which call takes which mask?",
        masked(lambda mine, theirs: (None, None)),
    ),
    _mistake(
        "self_mask_inverted",
        "lets self-attention look exactly where the mask forbids it",
        _INVERTED,
        "Hand the mask on as it is.",
        masked(lambda mine, theirs: (_not(mine), theirs)),
    ),
    _mistake(
        "memory_mask_inverted",
        "lets cross-attention look exactly where the mask forbids it",
        _INVERTED,
        "Hand the mask on as it is.",
        masked(lambda mine, theirs: (mine, _not(theirs))),
    ),
    _mistake(
        "both_masks_inverted",
        "lets both attentions look exactly where the masks forbid it",
        _INVERTED,
        "Hand the masks on as they are.",
        masked(lambda mine, theirs: (_not(mine), _not(theirs))),
    ),
    _mistake(
        "own_causal_mask",
        "makes a causal mask of its own",
        "What may be seen is the caller's to say: the layer gets it as `self_mask`, and None "
        "means that nothing is hidden.",
        "Hand the self-mask on as it is.",
        changed(masks=_own_causal),
        changed(masks=_causal_always),
    ),
    _mistake(
        "cross_attention_reads_x",
        "lets the second attention read x in place of the memory",
        "It is self-attention twice: the source sentence has no way into the layer.",
        "What are the keys and values of the second attention?",
        crossing("x", "x", "x"),
        crossing("x", "x", "x", mask="self_mask"),
        crossing("x", "x", "x", mask=None),
    ),
    _mistake(
        "values_from_x",
        "takes the keys of the second attention from the memory and its values from x",
        "It then weighs its own tokens by how well the source's match.",
        "Keys and values come from the same side. Which one?",
        crossing("x", "memory", "x"),
    ),
    _mistake(
        "keys_from_x",
        "takes the values of the second attention from the memory and its keys from x",
        "It then weighs the source's tokens by how well its own match.",
        "Keys and values come from the same side. Which one?",
        crossing("x", "x", "memory"),
    ),
    _mistake(
        "roles_swapped",
        "asks with the memory and looks in x",
        "Cross-attention then gives a row for every token of the source, not of the target.",
        "Who asks: the sentence being written, or the one being read?",
        crossing("memory", "x", "x"),
        crossing("memory", "x", "x", mask="self_mask"),
        crossing("memory", "x", "x", mask=None),
    ),
    _mistake(
        "cross_attention_stays_in_memory",
        "takes the queries of the second attention from the memory too",
        "The source looks at itself; what is written so far asks nothing.",
        "Who asks: the sentence being written, or the one being read?",
        crossing("memory", "memory", "memory"),
    ),
    _mistake(
        "self_attention_reads_memory",
        "lets the first attention read the memory too",
        "No token sees what was written before it.",
        "What are the keys and values of the first attention?",
        changed(look_back=lambda self, x: self.look_across(x)),
        *(
            changed(
                look_back=lambda self, x, mask=mask: self.attend(
                    self.self_attention, x, self.memory, self.memory, getattr(self, mask)
                )
            )
            for mask in ("memory_mask", "self_mask")
        ),
    ),
    _mistake(
        "cross_before_self",
        "runs cross-attention before self-attention",
        "The order within a layer is self-attention, cross-attention, feed-forward.",
        "Which of the two comes first in figure 1 of the paper?",
        changed(order=("look_across", "look_back", "think")),
        changed(order=("look_across", "look_back", "think"), norms=(2, 1, 3)),
    ),
    _mistake(
        "feed_forward_in_the_middle",
        "runs the feed-forward between the two attentions",
        "The order within a layer is self-attention, cross-attention, feed-forward.",
        "Which of the three comes last in figure 1 of the paper?",
        changed(order=("look_back", "think", "look_across")),
        changed(order=("look_back", "think", "look_across"), norms=(1, 3, 2)),
    ),
    _mistake(
        "feed_forward_first",
        "runs the feed-forward before both attentions",
        "The order within a layer is self-attention, cross-attention, feed-forward.",
        "Which of the three comes first in figure 1 of the paper?",
        changed(order=("think", "look_back", "look_across")),
        changed(order=("think", "look_back", "look_across"), norms=(3, 1, 2)),
    ),
    _mistake(
        "feed_forward_twice",
        "runs the feed-forward after each of the attentions",
        "That is an encoder layer and one more. A decoder layer thinks once, at the end.",
        "How many sub-layers does the layer have?",
        changed(order=("look_back", "think", "look_across", "think"), norms=(1, 3, 2, 3)),
    ),
    _mistake(
        "self_attention_for_both",
        "uses the weights of `self_attention` in both places",
        "The second attention has matrices of its own: what a token asks of the source is not "
        "what it asks of its own sentence.",
        "Which of your submodules is never called?",
        crossing("x", "memory", "memory", attention="self_attention"),
    ),
    _mistake(
        "cross_attention_for_both",
        "uses the weights of `cross_attention` in both places",
        "The first attention has matrices of its own.",
        "Which of your submodules is never called?",
        changed(
            look_back=lambda self, x: self.attend(self.cross_attention, x, x, x, self.self_mask)
        ),
    ),
    _mistake(
        "attentions_exchanged",
        "uses `cross_attention` on x and `self_attention` on the memory",
        "Freshly made, both are alike, and so it is seldom noticed. Weights learned elsewhere "
        "would be read in the wrong place.",
        "Each of them is named after what it does.",
        changed(
            look_back=lambda self, x: self.attend(self.cross_attention, x, x, x, self.self_mask),
            look_across=lambda self, x: self.attend(
                self.self_attention, x, self.memory, self.memory, self.memory_mask
            ),
        ),
    ),
    _mistake(
        "one_module_under_two_names",
        "holds one attention under the names `self_attention` and `cross_attention`",
        "The two attentions learn different things and need matrices of their own.",
        "Make two attentions in `__init__`.",
        built(lambda self, d: setattr(self, "cross_attention", self.self_attention)),
    ),
    _mistake(
        "one_norm_under_several_names",
        "holds one norm under several of the names `norm1`, `norm2` and `norm3`",
        "Each sub-layer has a norm with a gain and bias of its own.",
        "Make three norms in `__init__`.",
        built(lambda self, d: setattr(self, "norm2", self.norm1)),
        built(lambda self, d: setattr(self, "norm3", self.norm1)),
        built(lambda self, d: setattr(self, "norm3", self.norm2)),
        built(lambda self, d: [setattr(self, f"norm{i}", self.norm1) for i in (2, 3)]),
    ),
    _mistake(
        "cross_attention_not_made",
        "has no module `cross_attention`",
        "That is an encoder layer: it can't look at the source.",
        "How many attentions does figure 1 of the paper draw in a decoder layer?",
        built(lambda self, d: delattr(self, "cross_attention")),
        built(lambda self, d: [delattr(self, name) for name in ("cross_attention", "norm3")]),
    ),
    _mistake(
        "third_norm_not_made",
        "has no module `norm3`",
        "A decoder layer has three sub-layers, and each ends with a norm of its own.",
        "Count the sub-layers in figure 1 of the paper.",
        built(lambda self, d: delattr(self, "norm3")),
    ),
    _mistake(
        "self_attention_missing",
        "never lets the tokens of x look at each other",
        "No token knows what was written before it.",
        "How many sub-layers does the layer have?",
        changed(order=("look_across", "think"), norms=(2, 3)),
        changed(order=("look_across", "think"), norms=(1, 2)),
        changed(look_back=lambda self, x: 0.0 * x),
    ),
    _mistake(
        "cross_attention_missing",
        "never looks at the memory",
        "That is an encoder layer: the source sentence has no way into it.",
        "How many sub-layers does the layer have?",
        changed(order=("look_back", "think"), norms=(1, 3)),
        changed(order=("look_back", "think"), norms=(1, 2)),
        changed(look_across=lambda self, x: 0.0 * x),
    ),
    _mistake(
        "feed_forward_missing",
        "never calls the feed-forward",
        "A decoder layer has three sub-layers.",
        "Which part of yours is never called?",
        changed(order=("look_back", "look_across"), norms=(1, 2)),
        changed(think=lambda self, x: 0.0 * x),
    ),
    _mistake(
        "memory_added",
        "adds the memory to x without attention",
        "Token t of the target would get token t of the source, whatever the two are.",
        "The second sub-layer is an attention: who asks, and who answers?",
        changed(look_across=lambda self, x: self.memory),
    ),
    _mistake(
        "first_skip_missing",
        "does not add x to the output of self-attention",
        _SKIPS,
        "What is added in your first sub-layer?",
        without_skip(0),
    ),
    _mistake(
        "second_skip_missing",
        "does not add x to the output of cross-attention",
        "What self-attention gathered is lost: the token keeps only what it took from the source.",
        "What is added in your second sub-layer?",
        without_skip(1),
    ),
    _mistake(
        "third_skip_missing",
        "does not add x to the output of the feed-forward",
        _SKIPS,
        "What is added in your third sub-layer?",
        without_skip(2),
    ),
    _mistake(
        "attention_skips_missing",
        "adds x to the output of neither attention",
        _SKIPS,
        "What is added in each of your sub-layers?",
        without_skip(0, 1),
    ),
    _mistake(
        "all_skips_missing",
        "has no residual at all",
        "No sub-layer has a direct way through.",
        "Each of the three sub-layers adds its input.",
        without_skip(0, 1, 2),
    ),
    _mistake(
        "residual_from_the_start",
        "adds the layer's own input at a later sub-layer",
        "Each residual is the input of its own sub-layer, which is the output of the one before.",
        "What does x stand for in each of your lines?",
        adding(1),
        adding(2),
        adding(1, 2),
    ),
    _mistake(
        "residual_of_the_first_at_the_end",
        "adds the first sub-layer's output at the third",
        "Each residual is the input of its own sub-layer, which is the output of the one before.",
        "What does each variable of yours hold?",
        changed(together=lambda self, x: _skipping(self, x)),
    ),
    _mistake(
        "memory_as_residual",
        "adds the memory, not x, to the output of cross-attention",
        "The residual keeps what the token knew already. Memory comes in through attention alone.",
        "What is the input of the second sub-layer?",
        changed(add=lambda self, place, x, y: (self.memory if place == 1 else x) + y),
    ),
    _mistake(
        "cross_attention_asks_with_the_start",
        "lets cross-attention ask with the layer's own input",
        "The question is then put before self-attention has read what was written so far.",
        "What does the second sub-layer read?",
        crossing("start", "memory", "memory"),
    ),
    _mistake(
        "feed_forward_reads_the_start",
        "lets the feed-forward read the layer's own input",
        "What the two attentions gathered goes round it.",
        "What does the third sub-layer read?",
        changed(think=lambda self, x: self.feed_forward(self.start)),
    ),
    _mistake(
        "side_by_side",
        "runs the sub-layers on the same input and adds them",
        "Some newer models do so, to save time. Here each reads what the one before gave.",
        "Follow x from line to line.",
        changed(together=_side_by_side),
        changed(together=_side_by_side_normed),
        changed(together=_attentions_side_by_side),
    ),
    _mistake(
        "norms_out_of_order",
        "uses the three norms in another order",
        "At the start all do the same, and so it is seldom noticed. With learned gains they "
        "differ.",
        "Number them in the order in which they come.",
        *(changed(norms=order) for order in _ORDERS if order != (1, 2, 3)),
    ),
    _mistake(
        "one_norm_for_all",
        "uses the same norm in all three places",
        "Each sub-layer has a norm with a gain and bias of its own.",
        "Which of your norms is never called?",
        *(changed(norms=(i, i, i)) for i in (1, 2, 3)),
    ),
    _mistake(
        "one_norm_in_two_places",
        "uses one of its norms in two places",
        "Each sub-layer has a norm with a gain and bias of its own.",
        "Which of your norms is never called?",
        *(changed(norms=order) for order in _EVERY_NORM if len(set(order)) == 2),
    ),
    _mistake(
        "first_norm_missing",
        "leaves out the norm after self-attention",
        _NORMS,
        "Where is `norm1` used?",
        changed(norms=(0, 2, 3)),
    ),
    _mistake(
        "second_norm_missing",
        "leaves out the norm after cross-attention",
        _NORMS,
        "Where is `norm2` used?",
        changed(norms=(1, 0, 3)),
    ),
    _mistake(
        "third_norm_missing",
        "leaves out the norm after the feed-forward",
        _NORMS,
        "Where is `norm3` used?",
        changed(norms=(1, 2, 0)),
    ),
    _mistake(
        "only_the_last_norm",
        "normalises once, at the end",
        _NORMS,
        "Where are `norm1` and `norm2` used?",
        changed(norms=(0, 0, 3)),
        changed(norms=(0, 0, 1)),
    ),
    _mistake(
        "no_norms",
        "never normalises",
        _NORMS,
        "Where are the three norms used?",
        changed(norms=(0, 0, 0)),
    ),
    _mistake(
        "norm_before_and_after",
        "normalises the input of every sub-layer and the sum too",
        "In post-norm a sub-layer reads the stream as it is.",
        "How often is each norm called?",
        changed(together=_norm_before_and_after),
    ),
    _mistake(
        "residual_after_norm",
        "normalises each branch and adds x after it",
        "The stream itself is then never normalised.",
        "What is normalised in post-norm: the branch or the sum?",
        changed(together=_branch_normed),
    ),
    _mistake(
        "memory_normalised",
        "normalises the memory before it looks there",
        "The encoder's last layer ends with a norm already.",
        "Hand the memory on as it is.",
        *(
            changed(read=lambda self, memory, i=i: getattr(self, f"norm{i}")(memory))
            for i in (1, 2, 3)
        ),
        changed(read=lambda self, memory: F.layer_norm(memory, memory.shape[-1:])),
    ),
    _mistake(
        "memory_detached",
        "cuts the memory from the gradient",
        "The encoder learns from nothing but what comes back through the memory.",
        "Leave out `detach`, `data` or `no_grad`.",
        changed(read=lambda self, memory: memory.detach()),
    ),
    _mistake(
        "relu_missing",
        "sends x through `inner` and `outer` without a ReLU between them",
        "Two linear maps in a row are one linear map.",
        "What stands between the two maps in equation 2 of the paper?",
        changed(think=_no_relu),
    ),
    _mistake(
        "returns_a_tuple",
        "returns a tuple, not x alone",
        "This module gives one tensor, so that layers can be stacked. Each attention gives a pair.",
        "Return the tensor alone.",
        changed(together=lambda self, x: (Layer.together(self, x), None)),
    ),
    _mistake(
        "eps_too_large",
        "has norms with an eps of 1e-3 or more",
        "`nn.LayerNorm`'s own eps is 1e-5, as here.",
        "Make the norms without naming eps.",
        *(
            built(
                lambda self, d, eps=eps: [
                    setattr(self, f"norm{i}", nn.LayerNorm(d, eps=eps)) for i in (1, 2, 3)
                ]
            )
            for eps in (1e-3, 1e-2)
        ),
    ),
)


def _skipping(self, x):
    first = self.norm1(x + self.look_back(x))
    second = self.norm2(first + self.look_across(first))
    return self.norm3(first + self.think(second))
