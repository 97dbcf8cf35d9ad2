"""The exercises on masks: causal, cached, padding, and the mask that broadcasts."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.judge_parts import Mistake, Probe, Seen
from course_lib.transformer.attention import (
    cached_causal_mask,
    causal_mask,
    expand_key_mask,
    padding_mask,
)


def _saw_row(seen: Seen) -> str | None:
    """The first row of a square or padding mask that is not as it should be."""
    yours, right = seen.yours("mask"), seen.right("mask")
    if not seen.comparable("mask") or yours.dim() != 2 or yours.dtype != torch.bool:
        return None
    for row, (mine, wanted) in enumerate(zip(yours, right, strict=True)):
        if not torch.equal(mine, wanted):
            return f"Row {row} of your mask lets {_places(mine)}, expected {_places(wanted)}."
    return None


def _places(row: torch.Tensor) -> str:
    places = row.nonzero().flatten().tolist()
    if not places:
        return "nothing be seen"
    return f"position{'s' if len(places) > 1 else ''} {', '.join(map(str, places))} be seen"


def _saw_shape(seen: Seen) -> str | None:
    yours, right = seen.yours("mask"), seen.right("mask")
    if yours is None or right is None or yours.shape == right.shape:
        return None
    return f"Your mask has shape {tuple(yours.shape)}, expected {tuple(right.shape)}."


def _saw_dtype(seen: Seen) -> str | None:
    yours = seen.yours("mask")
    if yours is None or yours.dtype == torch.bool:
        return None
    values = sorted({x for x in yours.flatten().tolist() if x == x})
    return f"Your mask is {yours.dtype} and holds {values[:3]}; a boolean one is expected."


def _ones(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def _zero_times_inf(n):
    return (1 - torch.ones(n, n).tril()) * -torch.inf


_BOOLEAN_STEP = "Make the table boolean: `dtype=torch.bool`, or compare two numbers."
_NUMBERS_MEAN = "Attention here takes True and False; numbers would be added or inverted wrongly."

CAUSAL_MASK = Exercise(
    name="causal_mask",
    signature="causal_mask(n)",
    arguments=("n",),
    results=("mask",),
    reference=causal_mask,
    probes=(
        Probe(name="five positions", make=lambda: (5,)),
        Probe(name="two positions", make=lambda: (2,)),
        Probe(name="eleven positions", make=lambda: (11,)),
        Probe(name="one position", make=lambda: (1,), core=False),
    ),
    mistakes=(
        Mistake(
            name="strict",
            title="hides each position from itself",
            saw=_saw_row,
            means="Row 0 may then look at nothing at all.",
            next_step="Is the diagonal in or out? Row i sees 0 to i, i included.",
            versions=(lambda n: _ones(n, n).tril(-1),),
        ),
        Mistake(
            name="anti_causal",
            title="lets each position look at itself and the future",
            saw=_saw_row,
            means="A model trained so reads the word that it should guess.",
            next_step="Write down by hand what row 0 should be, then row 1.",
            versions=(lambda n: _ones(n, n).triu(),),
        ),
        Mistake(
            name="true_means_blocked",
            title="marks with True what may not be seen",
            saw=_saw_row,
            means="`nn.Transformer` and `nn.MultiheadAttention` read masks so.",
            next_step="Here True means may look. Turn the mask around.",
            versions=(lambda n: _ones(n, n).triu(1),),
            convention=True,
        ),
        Mistake(
            name="one_too_far",
            title="lets each position see the next one too",
            saw=_saw_row,
            means="That is the very word to be guessed: the loss would fall to nothing.",
            next_step="Look at the diagonal offset.",
            versions=(lambda n: _ones(n, n).tril(1),),
        ),
        Mistake(
            name="diagonal_only",
            title="lets each position see itself alone",
            saw=_saw_row,
            means="No information could flow between words.",
            next_step="The past should be visible too.",
            versions=(lambda n: torch.eye(n, dtype=torch.bool),),
        ),
        Mistake(
            name="all_visible",
            title="hides nothing",
            saw=_saw_row,
            means="The future leaks into the past.",
            next_step="Row 0 may see one position only.",
            versions=(lambda n: _ones(n, n),),
        ),
        Mistake(
            name="nothing_visible",
            title="hides everything",
            saw=_saw_row,
            means="Every row is dead.",
            next_step="Row i sees i + 1 positions.",
            versions=(lambda n: torch.zeros(n, n, dtype=torch.bool),),
        ),
        Mistake(
            name="mirrored",
            title="mirrors the triangle from left to right",
            saw=_saw_row,
            means="Position 0 sees the last word.",
            next_step="The first column should be True throughout.",
            versions=(lambda n: _ones(n, n).tril().flip(-1),),
        ),
        Mistake(
            name="upside_down",
            title="turns the triangle upside down",
            saw=_saw_row,
            means="Position 0 sees everything, the last one a single word.",
            next_step="The last row should be True throughout.",
            versions=(lambda n: _ones(n, n).tril().flip(0),),
        ),
        Mistake(
            name="float_zero_minus_inf",
            title="gives an additive mask, 0 and minus infinity",
            saw=_saw_dtype,
            means="torch takes such masks too: they are added to the scores.",
            next_step="The masks of this course are boolean, True = may look.",
            versions=(
                lambda n: torch.full((n, n), -torch.inf).triu(1),
                lambda n: torch.zeros(n, n).masked_fill(~_ones(n, n).tril(), -torch.inf),
                lambda n: torch.zeros(n, n).masked_fill(~_ones(n, n).tril(), -1e9),
            ),
            convention=True,
        ),
        Mistake(
            name="zero_times_inf",
            title="multiplies the ones to be hidden by minus infinity",
            saw=_saw_dtype,
            means="0 times infinity is NaN, so all that may be seen is NaN.",
            next_step="The masks of this course are boolean: no infinity is needed.",
            versions=(_zero_times_inf,),
        ),
        Mistake(
            name="float_zeros_ones",
            title="gives numbers 0 and 1",
            saw=_saw_dtype,
            means=_NUMBERS_MEAN,
            next_step=_BOOLEAN_STEP,
            versions=(
                lambda n: torch.ones(n, n).tril(),
                lambda n: torch.ones(n, n).tril().long(),
                lambda n: torch.ones(n, n).tril().int(),
            ),
        ),
        Mistake(
            name="extra_leading_axis",
            title="returns (1, n, n)",
            saw=_saw_shape,
            means="It would broadcast, and it is not what was asked: two axes are enough.",
            next_step="Leave out the unsqueeze.",
            versions=(lambda n: _ones(1, n, n).tril(), lambda n: _ones(1, 1, n, n).tril()),
        ),
        Mistake(
            name="one_too_small",
            title="returns (n-1, n-1)",
            saw=_saw_shape,
            means="One position is missing.",
            next_step="n positions look at n positions.",
            versions=(lambda n: _ones(max(n - 1, 0), max(n - 1, 0)).tril(),),
        ),
        Mistake(
            name="one_too_large",
            title="returns (n+1, n+1)",
            saw=_saw_shape,
            means="One position is too many.",
            next_step="n positions look at n positions.",
            versions=(lambda n: _ones(n + 1, n + 1).tril(),),
        ),
        Mistake(
            name="list_of_lists",
            title="returns Python lists",
            means="The table may be right; attention needs a tensor.",
            next_step="`torch.tensor(...)` makes one of it.",
            versions=(lambda n: _ones(n, n).tril().tolist(),),
        ),
    ),
)


def _mask_of(q_len, kv_len, offset):
    return _ones(q_len, kv_len).tril(offset)


CACHED_CAUSAL_MASK = Exercise(
    name="cached_causal_mask",
    signature="cached_causal_mask(q_len, kv_len)",
    arguments=("q_len", "kv_len"),
    results=("mask",),
    reference=cached_causal_mask,
    probes=(
        Probe(name="two new tokens after three", make=lambda: (2, 5)),
        Probe(name="three new tokens after eight", make=lambda: (3, 11)),
        Probe(name="one new token after six", make=lambda: (1, 7)),
        Probe(name="an empty cache", make=lambda: (5, 5)),
        Probe(name="no new token", make=lambda: (0, 3), core=False),
        Probe(name="more queries than keys", make=lambda: (7, 5), core=False, raises=ValueError),
    ),
    mistakes=(
        Mistake(
            name="top_left_aligned",
            title="starts the triangle at key 0",
            saw=_saw_row,
            means="The queries are the last tokens, and here they see as much as the first ones: "
            "what is in the cache is out of sight.",
            next_step="The last query is the last token. Which keys may it see?",
            versions=(lambda q, k: _mask_of(q, k, 0),),
        ),
        Mistake(
            name="offset_one_short",
            title="hides the newest key from each query",
            saw=_saw_row,
            means="A token may see itself.",
            next_step="The last row should be True throughout.",
            versions=(lambda q, k: _mask_of(q, k, k - q - 1),),
        ),
        Mistake(
            name="offset_one_long",
            title="lets each query see one key of the future",
            saw=_saw_row,
            means="The word to be guessed is visible.",
            next_step="With an empty cache this should be the causal mask.",
            versions=(lambda q, k: _mask_of(q, k, k - q + 1),),
        ),
        Mistake(
            name="no_mask",
            title="hides nothing",
            saw=_saw_row,
            means="That is right for one new token; in a block of several, the first would see "
            "the last.",
            next_step="Try q_len = 2 on paper.",
            versions=(lambda q, k: _ones(q, k),),
        ),
        Mistake(
            name="first_rows_of_square",
            title="takes the first rows of the square, not the last",
            saw=_saw_row,
            means="The queries are the last tokens of the text.",
            next_step="Which rows of `causal_mask(kv_len)` belong to the last tokens?",
            versions=(lambda q, k: _ones(k, k).tril()[:q],),
        ),
        Mistake(
            name="anti_causal",
            title="lets each query see itself and the future, not the past",
            saw=_saw_row,
            means="The triangle is the wrong half.",
            next_step="The first column should be True throughout.",
            versions=(lambda q, k: _ones(q, k).triu(k - q),),
        ),
        Mistake(
            name="true_means_blocked",
            title="marks with True what may not be seen",
            saw=_saw_row,
            means="`nn.MultiheadAttention` reads masks so.",
            next_step="Here True means may look. Turn the mask around.",
            versions=(lambda q, k: ~_mask_of(q, k, k - q),),
            convention=True,
        ),
        Mistake(
            name="transposed",
            title="returns (kv_len, q_len)",
            saw=_saw_shape,
            means="Queries are rows, keys are columns.",
            next_step="Swap the axes.",
            versions=(lambda q, k: _mask_of(q, k, k - q).mT,),
        ),
        Mistake(
            name="square",
            title="returns the whole square, (kv_len, kv_len)",
            saw=_saw_shape,
            means="Only the new tokens are asking.",
            next_step="One row per query.",
            versions=(lambda q, k: _ones(k, k).tril(), lambda q, k: _ones(q, q).tril()),
        ),
        Mistake(
            name="numbers",
            title="gives numbers, not True and False",
            saw=_saw_dtype,
            means=_NUMBERS_MEAN,
            next_step=_BOOLEAN_STEP,
            versions=(
                lambda q, k: _mask_of(q, k, k - q).float(),
                lambda q, k: _mask_of(q, k, k - q).long(),
            ),
        ),
        Mistake(
            name="no_error",
            title="accepts more queries than keys",
            means="The queries are the last of the keys, so there can't be more of them.",
            next_step="Raise a ValueError that names both numbers.",
            versions=(lambda q, k: _mask_of(q, k, k - q),),
        ),
    ),
)


def _until(lengths, max_len, shift=0):
    return torch.arange(max_len) < (lengths + shift)[:, None]


PADDING_MASK = Exercise(
    name="padding_mask",
    signature="padding_mask(lengths, max_len)",
    arguments=("lengths", "max_len"),
    results=("mask",),
    reference=padding_mask,
    probes=(
        Probe(name="lengths 3, 1 and 5 in a box of 5", make=lambda: (torch.tensor([3, 1, 5]), 5)),
        Probe(name="as many sentences as places", make=lambda: (torch.tensor([2, 3, 1]), 3)),
        Probe(name="a box with room to spare", make=lambda: (torch.tensor([2, 7]), 11)),
        Probe(name="an empty sentence", make=lambda: (torch.tensor([0, 2]), 3), core=False),
        Probe(
            name="a sentence longer than the box",
            make=lambda: (torch.tensor([9, 2]), 5),
            core=False,
        ),
        Probe(name="one sentence", make=lambda: (torch.tensor([2]), 7), core=False),
    ),
    mistakes=(
        Mistake(
            name="inverted",
            title="marks the padding with True",
            saw=_saw_row,
            means="key_padding_mask of `nn.MultiheadAttention` has that sense.",
            next_step="Here True stands at the real tokens. Turn the comparison around.",
            versions=(lambda n, m: ~_until(n, m),),
            convention=True,
        ),
        Mistake(
            name="off_by_one_long",
            title="counts one padding token as real",
            saw=_saw_row,
            means="Positions count from 0, so the last real one is length - 1.",
            next_step="Strictly less, or less or equal?",
            versions=(lambda n, m: _until(n, m, 1),),
        ),
        Mistake(
            name="off_by_one_short",
            title="counts the last real token as padding",
            saw=_saw_row,
            means="One word of every sentence is lost.",
            next_step="A length of 3 has the real positions 0, 1 and 2.",
            versions=(lambda n, m: _until(n, m, -1),),
        ),
        Mistake(
            name="real_tokens_from_the_length_on",
            title="marks with True the positions beyond the length",
            saw=_saw_row,
            means="The comparison is turned around, and so padding counts as words.",
            next_step="For length 3: is position 0 real, and position 4?",
            versions=(lambda n, m: ~_until(n, m, 1),),
        ),
        Mistake(
            name="first_length_for_all",
            title="uses the first length for every row",
            saw=_saw_row,
            means="Each sentence has a length of its own.",
            next_step="Compare a row of positions with a column of lengths.",
            versions=(lambda n, m: _until(n[:1].expand_as(n), m),),
        ),
        Mistake(
            name="longest_for_all",
            title="uses the longest length for every row",
            saw=_saw_row,
            means="The shorter sentences keep their padding as if it were words.",
            next_step="Compare a row of positions with a column of lengths.",
            versions=(lambda n, m: _until(n.max().expand_as(n), m),),
        ),
        Mistake(
            name="nothing_masked",
            title="marks everything as real",
            saw=_saw_row,
            means="Padding would be read as words.",
            next_step="Compare positions with lengths.",
            versions=(lambda n, m: _ones(len(n), m),),
        ),
        Mistake(
            name="padding_on_the_left",
            title="puts the padding on the left",
            saw=_saw_row,
            means="Some programs pad so when they generate text.",
            next_step="Here the words come first and the padding after them.",
            versions=(lambda n, m: _until(n, m).flip(-1),),
            convention=True,
        ),
        Mistake(
            name="single_position",
            title="marks one position only",
            saw=_saw_row,
            means="Equality marks where a sentence ends, not what it holds.",
            next_step="All positions before the length are real.",
            versions=(
                lambda n, m: torch.arange(m) == n[:, None],
                lambda n, m: torch.arange(m) == n[:, None] - 1,
            ),
        ),
        Mistake(
            name="numbers",
            title="gives numbers, not True and False",
            saw=_saw_dtype,
            means=_NUMBERS_MEAN,
            next_step=_BOOLEAN_STEP,
            versions=(
                lambda n, m: _until(n, m).float(),
                lambda n, m: _until(n, m).long(),
                lambda n, m: _until(n, m).int(),
            ),
        ),
        Mistake(
            name="additive",
            title="gives an additive mask, 0 and minus infinity",
            saw=_saw_dtype,
            means="torch takes such masks too: they are added to the scores.",
            next_step="The masks of this course are boolean, True at real tokens.",
            versions=(
                lambda n, m: torch.zeros(len(n), m).masked_fill(~_until(n, m), -torch.inf),
                lambda n, m: torch.zeros(len(n), m).masked_fill(~_until(n, m), -1e9),
            ),
            convention=True,
        ),
        Mistake(
            name="transposed",
            title="returns (max_len, B)",
            saw=_saw_shape,
            means="Sentences are rows, positions are columns.",
            next_step="Which of the two should be the column in the comparison?",
            versions=(lambda n, m: _until(n, m).mT,),
        ),
        Mistake(
            name="box_of_the_longest",
            title="makes the box as wide as the longest sentence",
            saw=_saw_shape,
            means="The width is given: max_len.",
            next_step="Use max_len for the number of columns.",
            versions=(lambda n, m: _until(n, int(n.max())),),
        ),
        Mistake(
            name="extra_axes",
            title="adds axes for heads and queries",
            saw=_saw_shape,
            means="That is the next step, `expand_key_mask`. Here two axes are enough.",
            next_step="Return (B, max_len).",
            versions=(
                lambda n, m: _until(n, m)[:, None, None, :],
                lambda n, m: _until(n, m)[:, None, :],
            ),
        ),
    ),
)


def _pairs_mask(seed=0):
    return torch.rand(2, 7, generator=torch.Generator().manual_seed(seed)) > 0.4


EXPAND_KEY_MASK = Exercise(
    name="expand_key_mask",
    signature="expand_key_mask(mask)",
    arguments=("mask",),
    results=("mask",),
    reference=expand_key_mask,
    probes=(
        Probe(name="two sentences of seven tokens", make=lambda: (_pairs_mask(),)),
        Probe(
            name="three sentences of three tokens", make=lambda: (torch.eye(3, dtype=torch.bool),)
        ),
        Probe(name="one sentence", make=lambda: (_pairs_mask(1)[:1],), core=False),
    ),
    mistakes=(
        Mistake(
            name="masks_rows_and_columns",
            title="hides the padding as a query too",
            saw=_saw_shape,
            means="A padded query then has an empty row, which becomes NaN in most programs.",
            next_step="The mask says which keys exist; the queries keep an axis of length 1.",
            versions=(
                lambda m: (m[:, None, :] & m[:, :, None])[:, None],
                lambda m: m[:, None, :] & m[:, :, None],
            ),
        ),
        Mistake(
            name="forgets_head_axis",
            title="returns (B, 1, S)",
            saw=_saw_shape,
            means="Beside weights (B, H, T, S) it is read as (1, B, 1, S): right only by chance.",
            next_step="Four axes: batch, heads, queries, keys.",
            versions=(lambda m: m[:, None, :],),
        ),
        Mistake(
            name="axes_in_front",
            title="returns (1, 1, B, S)",
            saw=_saw_shape,
            means="The batch now stands where the queries belong.",
            next_step="The new axes go between B and S.",
            versions=(lambda m: m[None, None],),
        ),
        Mistake(
            name="axes_at_the_end",
            title="returns (B, S, 1, 1) or (B, 1, S, 1)",
            saw=_saw_shape,
            means="The keys are the last axis of the weights; here they stand elsewhere.",
            next_step="S stays last.",
            versions=(lambda m: m[:, :, None, None], lambda m: m[:, None, :, None]),
        ),
        Mistake(
            name="first_example_only",
            title="uses the mask of the first sentence for the whole batch",
            means="Every sentence has padding of its own.",
            next_step="Keep the batch axis.",
            versions=(lambda m: m[:1].expand_as(m)[:, None, None, :], lambda m: m[:1, None, None]),
        ),
        Mistake(
            name="inverted",
            title="turns the mask around",
            means="`nn.MultiheadAttention` reads masks so.",
            next_step="True stays True: only the shape changes.",
            versions=(lambda m: ~m[:, None, None, :],),
            convention=True,
        ),
        Mistake(
            name="not_expanded",
            title="returns the mask as it came",
            saw=_saw_shape,
            means="(B, S) beside (B, H, T, S) is read as (1, 1, B, S).",
            next_step="Two axes of length 1 are missing.",
            versions=(lambda m: m.clone(),),
        ),
        Mistake(
            name="numbers",
            title="gives numbers, not True and False",
            saw=_saw_dtype,
            means=_NUMBERS_MEAN,
            next_step="Keep the dtype that came in.",
            versions=(lambda m: m[:, None, None, :].float(), lambda m: m[:, None, None, :].long()),
        ),
        Mistake(
            name="additive",
            title="gives an additive mask, 0 and minus infinity",
            saw=_saw_dtype,
            means="BERT's code makes such masks: they are added to the scores.",
            next_step="The masks of this course are boolean.",
            versions=(
                lambda m: torch.zeros(m.shape).masked_fill(~m, -torch.inf)[:, None, None, :],
                lambda m: (1.0 - m[:, None, None, :].float()) * -10000.0,
            ),
            convention=True,
        ),
    ),
)
