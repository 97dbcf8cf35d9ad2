"""Exercises on heads: cut the features into blocks, and join them again."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.classroom.properties import number
from course_lib.transformer.heads import merge_heads, split_heads


def _counted(*shape):
    """0, 1, 2, ...: every number says where it came from."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def _cut(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, x.size(-1) // n_heads)


def _saw_shape(seen):
    (name,) = seen.results
    yours, right = seen.yours(name), seen.right(name)
    if yours is None or yours.shape == right.shape:
        return None
    return (
        f"From `x` of shape {tuple(seen.args['x'].shape)} you made {tuple(yours.shape)}, "
        f"expected {tuple(right.shape)}."
    )


def _saw_head(seen):
    """What stands in head 1 of the first token, beside what should."""
    if not seen.comparable("heads") or seen.yours("heads").size(1) < 2:
        return None
    yours, right = (made("heads")[0, 1, 0] for made in (seen.yours, seen.right))
    if torch.equal(yours, right):
        return None
    return (
        f"On {seen.probe.name}, head 1 of token 0 holds {_plain(yours)} in yours, and should hold "
        f"{_plain(right)}."
    )


def _plain(row):
    shown = [number(x) for x in row[:6].tolist()]
    return f"[{', '.join(shown)}{', ...' if len(row) > 6 else ''}]"


def _mixed_sources(seen):
    """Whether a merged token holds numbers of another token: only counted numbers can tell."""
    x, yours = seen.args["x"], seen.yours("merged")
    if not seen.comparable("merged") or not torch.equal(x, _counted(*x.shape)):
        return None
    n_tokens, d_head = x.shape[-2:]
    token = (yours // d_head) % n_tokens
    wrong = (token != torch.arange(n_tokens)[:, None]).any(-1).nonzero()
    if not len(wrong):
        return None
    b, t = wrong[0].tolist()
    others = sorted({int(i) for i in token[b, t].tolist()} - {t})
    return (
        f"On {seen.probe.name}, your token {t} of example {b} holds numbers of token "
        f"{', '.join(map(str, others))}."
    )


def _split_probe(name, shape, n_heads, **more):
    return Probe(name=name, make=lambda: (_counted(*shape), n_heads), **more)


SPLIT_HEADS = Exercise(
    name="split_heads",
    signature="split_heads(x, n_heads)",
    arguments=("x", "n_heads"),
    results=("heads",),
    reference=split_heads,
    probes=(
        _split_probe("counted numbers, two heads", (2, 3, 10), 2, grads=True),
        _split_probe("counted numbers, five heads", (3, 7, 15), 5),
        _split_probe("as many tokens as heads", (2, 3, 6), 3),
        _split_probe("one example, as many heads as features", (1, 5, 7), 7, core=False),
        _split_probe("one head", (2, 3, 5), 1, core=False),
        Probe(
            name="a tensor that is not contiguous",
            make=lambda: (_counted(2, 6, 5).transpose(1, 2), 3),
        ),
        Probe(
            name="seven features for three heads",
            make=lambda: (_counted(2, 3, 7), 3),
            core=False,
            raises=ValueError,
            names=("7", "3"),
        ),
    ),
    mistakes=(
        Mistake(
            name="no_transpose",
            title="leaves the heads behind the tokens, (B, T, H, K)",
            saw=_saw_shape,
            means="Attention works on the last two axes: it would now run across the heads of one "
            "token, not across tokens.",
            next_step="Which two axes must stand last?",
            versions=(_cut,),
        ),
        Mistake(
            name="view_without_transpose",
            title="reshapes straight to (B, H, T, K)",
            saw=_saw_head,
            means="The shape is right and the numbers are not: a reshape reads the numbers on, "
            "last axis fastest, so a head gets whole tokens, not a block of each.",
            next_step="First cut the last axis in two, then move an axis.",
            versions=(lambda x, n: x.reshape(x.size(0), n, x.size(1), x.size(2) // n),),
        ),
        Mistake(
            name="strided_features",
            title="gives head h every H-th feature, beginning at h",
            saw=_saw_head,
            means="Split and merge of this kind can fit each other, and then a model trains; but "
            "weights of torch or of the paper's layout would be read in the wrong order.",
            next_step="A head is a block of neighbouring features. In which order do the two new "
            "axes stand?",
            versions=(
                lambda x, n: x.reshape(*x.shape[:2], x.size(-1) // n, n).permute(0, 3, 1, 2),
            ),
        ),
        Mistake(
            name="head_count_and_size_swapped",
            title="makes D/H heads of size H",
            saw=_saw_shape,
            means="The two new axes have changed places: the number of heads and the size of one.",
            next_step="For D = 10 and two heads, how many features has each?",
            versions=(lambda x, n: x.reshape(*x.shape[:2], x.size(-1) // n, n).transpose(1, 2),),
        ),
        Mistake(
            name="splits_time_axis",
            title="cuts the tokens into n_heads parts, not the features",
            means="Each head would read a part of the sentence. A head reads all of it, with a "
            "part of the features.",
            next_step="Which axis is D?",
            versions=(lambda x, n: x.reshape(x.size(0), n, x.size(1) // n, x.size(2)),),
        ),
        Mistake(
            name="same_slice_for_all_heads",
            title="gives every head the first D/H features",
            saw=_saw_head,
            means="The heads would all be the same, and the other features lost.",
            next_step="Head h begins at feature h times K.",
            versions=(lambda x, n: x[:, None, :, : x.size(-1) // n].expand(-1, n, -1, -1).clone(),),
        ),
        Mistake(
            name="reversed_heads",
            title="gives the heads in reverse order",
            saw=_saw_head,
            means="Head 0 holds the last block.",
            next_step="Head h holds the block that begins at h times K.",
            versions=(lambda x, n: split_heads(x, n).flip(1),),
        ),
        Mistake(
            name="heads_first",
            title="puts the heads before the examples, (H, B, T, K)",
            saw=_saw_shape,
            means="A mask of shape (B, 1, 1, S) would no longer meet the examples.",
            next_step="The examples stay first.",
            versions=(lambda x, n: split_heads(x, n).transpose(0, 1),),
        ),
        Mistake(
            name="features_before_tokens",
            title="returns (B, H, K, T)",
            saw=_saw_shape,
            means="The last axis must be the features of a head: attention multiplies along it.",
            next_step="Of the four axes, which two change places?",
            versions=(lambda x, n: split_heads(x, n).mT,),
        ),
        Mistake(
            name="heads_in_the_batch",
            title="returns (B·H, T, K)",
            saw=_saw_shape,
            means="Many libraries fold the heads into the batch so that a batched product can take "
            "them. Here they keep an axis of their own.",
            next_step="Leave out the last reshape.",
            versions=(lambda x, n: split_heads(x, n).flatten(0, 1),),
            convention=True,
        ),
        Mistake(
            name="list_of_heads",
            title="returns the heads as a list or tuple",
            means="One tensor with an axis of heads lets a single product do all of them.",
            next_step="Which function of torch puts tensors side by side on a new axis?",
            versions=(lambda x, n: list(split_heads(x, n).unbind(1)),),
        ),
        Mistake(
            name="remainder_dropped",
            title="drops the features that are left over where D is not divisible",
            means="Features would vanish without a word.",
            next_step="Raise a ValueError that names both numbers.",
            versions=(lambda x, n: split_heads(x[..., : x.size(-1) // n * n], n),),
        ),
    ),
)


def _merge_probe(name, shape, **more):
    return Probe(name=name, make=lambda: (_counted(*shape),), **more)


MERGE_HEADS = Exercise(
    name="merge_heads",
    signature="merge_heads(x)",
    arguments=("x",),
    results=("merged",),
    reference=merge_heads,
    probes=(
        _merge_probe("counted numbers, two heads", (3, 2, 5, 7), grads=True),
        _merge_probe("counted numbers, five heads", (2, 5, 3, 2)),
        _merge_probe("as many tokens as heads", (2, 3, 3, 5)),
        _merge_probe("as many examples as tokens", (3, 2, 3, 5)),
        _merge_probe("one head", (2, 1, 3, 5), core=False),
        _merge_probe("one feature a head", (2, 3, 5, 1), core=False),
        Probe(
            name="heads as split_heads gives them",
            make=lambda: (split_heads(_counted(2, 5, 6), 3),),
        ),
        Probe(
            name="contiguous heads",
            make=lambda: (numbers(2, 3, 5, 7),),
            core=False,
        ),
    ),
    properties=(_mixed_sources,),
    mistakes=(
        Mistake(
            name="reshape_without_transpose",
            title="reshapes (B, H, T, K) straight to (B, T, H·K)",
            saw=_mixed_sources,
            means="The shape is right and the tokens are scrambled: memory holds all tokens of "
            "head 0 first.",
            next_step="Before two axes can be joined they must stand side by side.",
            versions=(lambda x: x.reshape(x.size(0), x.size(2), -1),),
        ),
        Mistake(
            name="sums_heads",
            title="adds the heads",
            saw=_saw_shape,
            means="Joining keeps what every head found; a sum mixes it.",
            next_step="The result has H·K features.",
            versions=(lambda x: x.sum(1),),
        ),
        Mistake(
            name="averages_heads",
            title="averages the heads",
            saw=_saw_shape,
            means="Joining keeps what every head found; a mean mixes it.",
            next_step="The result has H·K features.",
            versions=(lambda x: x.mean(1),),
        ),
        Mistake(
            name="reversed_heads",
            title="joins the heads last to first",
            means="Head 0 comes last, so the result no longer undoes the split.",
            next_step="Head 0 fills the first K features.",
            versions=(lambda x: merge_heads(x.flip(1)),),
        ),
        Mistake(
            name="time_major_result",
            title="puts the tokens first and then reshapes as if the examples were",
            means="Numbers of different examples stand in one token.",
            next_step="The first axis stays where it is.",
            versions=(lambda x: x.permute(2, 0, 1, 3).reshape(x.size(0), x.size(2), -1),),
        ),
        Mistake(
            name="tokens_first",
            title="returns (T, B, H·K)",
            saw=_saw_shape,
            means="The first axis is the example.",
            next_step="Which axis is first in the input?",
            versions=(lambda x: merge_heads(x).transpose(0, 1),),
        ),
        Mistake(
            name="interleaved",
            title="puts feature 0 of all heads first, then feature 1 of all",
            means="Each head's features are torn apart: that undoes another split.",
            next_step="Head 0 fills the first K features. In which order do the two last axes "
            "stand before they are joined?",
            versions=(lambda x: x.permute(0, 2, 3, 1).flatten(2),),
        ),
        Mistake(
            name="stays_in_heads",
            title="moves the axes and does not join them",
            saw=_saw_shape,
            means="There are still four axes.",
            next_step="Join the last two.",
            versions=(lambda x: x.transpose(1, 2).contiguous(),),
        ),
        Mistake(
            name="first_head_only",
            title="keeps the first head alone",
            saw=_saw_shape,
            means="The other heads are lost.",
            next_step="The result has H·K features.",
            versions=(lambda x: x[:, 0],),
        ),
        Mistake(
            name="view_on_noncontiguous",
            title="fails by `view` on a tensor whose axes were moved",
            means="`view` never moves a number, and after `transpose` the numbers don't lie in the "
            "order that the new shape needs.",
            next_step="`reshape` copies where it must; so does `.contiguous()` before `.view`.",
            recognise=lambda all_seen: any(
                one.outcome.error is not None
                and "view size is not compatible" in one.outcome.error.message
                for one in all_seen
            ),
        ),
    ),
)
