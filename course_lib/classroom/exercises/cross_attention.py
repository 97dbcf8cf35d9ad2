"""The exercise on attention from one sequence to another."""

import math

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.classroom.properties import where
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.heads import (
    cross_attention,
)


def _crossing(batch, n_dec, n_mem, d_model, d_head, mask=None):
    def make():
        dec, mem = numbers(batch, n_dec, d_model, seed=1), numbers(batch, n_mem, d_model, seed=2)
        maps = [numbers(d_model, d_head, seed=seed) / math.sqrt(d_model) for seed in (3, 4, 5)]
        return dec, mem, *maps, None if mask is None else torch.tensor(mask)

    return make


def _cross(q_from, k_from, v_from, wq, wk, wv, mask=None):
    return scaled_dot_product_attention(q_from @ wq, k_from @ wk, v_from @ wv, mask)[0]


def _keys(mask):
    return None if mask is None else mask[:, None, :]


def _unscaled(dec, mem, wq, wk, wv, mask=None):
    return scaled_dot_product_attention(
        dec @ wq * math.sqrt(wq.size(-1)), mem @ wk, mem @ wv, _keys(mask)
    )[0]


def _on_decoder_rows(dec, mem, wq, wk, wv, mask=None):
    if mask is None:
        return _cross(dec, mem, mem, wq, wk, wv)
    return _cross(dec, mem, mem, wq, wk, wv, mask[:, :, None].expand(-1, -1, mem.size(1)))


def _triangle(dec, mem, wq, wk, wv, mask=None):
    seen = torch.ones(dec.size(1), mem.size(1), dtype=torch.bool).tril()
    return _cross(dec, mem, mem, wq, wk, wv, seen if mask is None else seen & _keys(mask))


def _nan_rows(dec, mem, wq, wk, wv, mask=None):
    scores = dec @ wq @ (mem @ wk).mT / math.sqrt(wq.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~_keys(mask), -torch.inf)
    return scores.softmax(-1) @ (mem @ wv)


def _filled(value):
    def version(dec, mem, wq, wk, wv, mask=None):
        scores = dec @ wq @ (mem @ wk).mT / math.sqrt(wq.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~_keys(mask), value)
        return scores.softmax(-1) @ (mem @ wv)

    return version


_uniform_rows, _zero_fill = _filled(-1e9), _filled(0.0)


def _zeroed_memory(dec, mem, wq, wk, wv, mask=None):
    if mask is not None:
        mem = mem * mask[..., None]
    return _cross(dec, mem, mem, wq, wk, wv)


def _saw_rows(seen):
    yours = seen.yours("z")
    if yours is None or seen.comparable("z") or yours.dim() != 3:
        return None
    n_dec, n_mem = seen.args["dec"].size(1), seen.args["mem"].size(1)
    return (
        f"{where(seen)}, your result has {yours.size(1)} rows: there are {n_dec} decoder tokens "
        f"and {n_mem} memory tokens."
    )


EXERCISE = Exercise(
    name="cross_attention",
    signature="cross_attention(dec, mem, wq, wk, wv, mem_mask=None)",
    arguments=("dec", "mem", "wq", "wk", "wv", "mem_mask"),
    results=("z",),
    reference=cross_attention,
    probes=(
        Probe(
            name="three decoder tokens and five of memory",
            make=_crossing(2, 3, 5, 7, 4),
            grads=True,
        ),
        Probe(
            name="a memory whose end is padding",
            make=_crossing(2, 3, 5, 7, 4, [[True] * 5, [True, True, False, False, False]]),
            grads=True,
        ),
        Probe(
            name="as many decoder tokens as memory tokens",
            make=_crossing(2, 5, 5, 3, 3, [[True] * 5, [True, True, True, False, False]]),
        ),
        Probe(
            name="a memory that is all padding",
            make=_crossing(2, 3, 5, 7, 4, [[True] * 5, [False] * 5]),
            grads=True,
            core=False,
        ),
        Probe(name="one token of each", make=_crossing(1, 1, 1, 2, 3), core=False),
    ),
    mistakes=(
        Mistake(
            name="is_self_attention",
            title="takes keys and values from the decoder",
            means="The memory is never read: that is self-attention.",
            next_step="Whose words should be looked at?",
            versions=(lambda dec, mem, wq, wk, wv, m=None: _cross(dec, dec, dec, wq, wk, wv),),
        ),
        Mistake(
            name="roles_swapped",
            title="takes queries from the memory, keys and values from the decoder",
            saw=_saw_rows,
            means="The memory asks and the decoder is read.",
            next_step="There is one result for each token that asks.",
            versions=(lambda dec, mem, wq, wk, wv, m=None: _cross(mem, dec, dec, wq, wk, wv),),
        ),
        Mistake(
            name="values_from_decoder",
            title="scores the memory and then averages the decoder's values",
            means="The weights belong to the memory's tokens, the values to others.",
            next_step="Keys and values are two views of the same tokens.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(dec, mem, dec, wq, wk, wv, _keys(m)),
            ),
        ),
        Mistake(
            name="memory_mask_ignored",
            title="reads the memory's padding",
            means="What `mem_mask` marks False is not a word.",
            next_step="The mask is (B, S): which axis does it need to meet scores (B, T, S)?",
            versions=(lambda dec, mem, wq, wk, wv, m=None: _cross(dec, mem, mem, wq, wk, wv),),
        ),
        Mistake(
            name="mask_inverted",
            title="reads the padding and nothing else",
            means="True means *real* here. `nn.MultiheadAttention`'s `key_padding_mask` has the "
            "other sense.",
            next_step="Which sense does your attention expect?",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(
                    dec, mem, mem, wq, wk, wv, None if m is None else ~_keys(m)
                ),
            ),
        ),
        Mistake(
            name="one_matrix_for_all",
            title="projects everything with `wq`",
            means="Query, key and value are three roles with a matrix each.",
            next_step="Look at which matrix each product uses.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(dec, mem, mem, wq, wq, wq, _keys(m)),
            ),
        ),
        Mistake(
            name="keys_and_values_swapped",
            title="uses `wv` for the keys and `wk` for the values",
            means="The two matrices have changed roles.",
            next_step="Which one belongs to the scores?",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(dec, mem, mem, wq, wv, wk, _keys(m)),
            ),
        ),
        Mistake(
            name="values_not_projected",
            title="averages the memory's vectors without `wv`",
            means="What is looked up is the value, and that is the memory's vector times `wv`.",
            next_step="Three matrices are given: is each used?",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: scaled_dot_product_attention(
                    dec @ wq, mem @ wk, mem, _keys(m)
                )[0],
            ),
        ),
        Mistake(
            name="no_scale",
            title="does not divide the scores by sqrt(K)",
            means="The scale of lesson 02 belongs here too; K is the width of the queries.",
            next_step="Your attention function does it, if you call it on the projected tensors.",
            versions=(_unscaled,),
        ),
        Mistake(
            name="scaled_by_d_model",
            title="divides the scores by the root of D, not of K",
            means="What is multiplied has K features: D is their width before the projection.",
            next_step="Take the size from the queries themselves.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: scaled_dot_product_attention(
                    dec @ wq * math.sqrt(wq.size(1) / wq.size(0)), mem @ wk, mem @ wv, _keys(m)
                )[0],
            ),
        ),
        Mistake(
            name="causal_over_memory",
            title="lets decoder token t see the memory's tokens 0 to t only",
            means="The source is known as a whole: no triangle belongs here.",
            next_step="Which of the two sequences is being written?",
            versions=(_triangle,),
        ),
        Mistake(
            name="memory_mask_on_queries",
            title="puts the memory's mask on the decoder's rows",
            means="The mask tells which memory tokens are words: those are the columns of the "
            "scores.",
            next_step="Scores are (B, T, S); the mask is (B, S). Where does the new axis go?",
            versions=(_on_decoder_rows,),
        ),
        Mistake(
            name="padding_zeroed_not_masked",
            title="sets the padding's vectors to zero and does not mask them",
            means="A zero vector still has a score, 0, and takes a share of the softmax.",
            next_step="Hand the mask to the attention.",
            versions=(_zeroed_memory,),
        ),
        Mistake(
            name="nan_on_dead_row",
            title="gives NaN where all of a memory is padding",
            means="A softmax over nothing but minus infinity is 0/0.",
            next_step="Lesson 02's attention gives zeros there.",
            versions=(_nan_rows,),
        ),
        Mistake(
            name="uniform_on_dead_row",
            title="averages all of a memory that is padding throughout",
            means="All scores of such a row are equal, so what it may not see gets equal shares.",
            next_step="Lesson 02's attention gives zeros there.",
            versions=(_uniform_rows,),
        ),
        Mistake(
            name="queries_and_keys_exchanged",
            title="projects the queries with `wk` and the keys with `wq`",
            means="The two matrices have changed roles.",
            next_step="Each letter belongs to its own matrix.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(dec, mem, mem, wk, wq, wv, _keys(m)),
            ),
        ),
        Mistake(
            name="all_from_the_memory",
            title="takes the queries from the memory too",
            saw=_saw_rows,
            means="The decoder never asks: that is the memory's self-attention.",
            next_step="There is one result for each decoder token.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: _cross(mem, mem, mem, wq, wk, wv, _keys(m)),
            ),
        ),
        Mistake(
            name="hidden_scores_zero",
            title="sets the scores of padding to 0",
            means="A score of 0 is an ordinary score: e to the power of 0 is 1.",
            next_step="Which score does the softmax turn into a weight of exactly 0?",
            versions=(_zero_fill,),
        ),
        Mistake(
            name="returns_the_pair",
            title="returns z and the weights",
            means="This part gives z alone.",
            next_step="Keep the first of the two.",
            versions=(
                lambda dec, mem, wq, wk, wv, m=None: scaled_dot_product_attention(
                    dec @ wq, mem @ wk, mem @ wv, _keys(m)
                ),
            ),
        ),
    ),
)
