"""The exercise on the decoder's input: the target, one step later."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.judge_parts import Mistake, Probe, Seen
from course_lib.classroom.properties import where
from course_lib.transformer.encoder_decoder import shift_right


def _saw_row(seen: Seen) -> str | None:
    """The first row that is not as it should be."""
    yours, right = seen.yours("shifted"), seen.right("shifted")
    if not seen.comparable("shifted"):
        return None
    for row, (mine, wanted) in enumerate(zip(yours, right, strict=True)):
        if not torch.equal(mine, wanted):
            return (
                f"{where(seen)}, row {row} of the target is {seen.args['target'][row].tolist()}. "
                f"Yours gives {mine.tolist()}, expected {wanted.tolist()}."
            )
    return None


def _saw_shape(seen: Seen) -> str | None:
    yours, right = seen.yours("shifted"), seen.right("shifted")
    if yours is None or yours.shape == right.shape:
        return None
    return f"{where(seen)}, yours gives {tuple(yours.shape)}, expected {tuple(right.shape)}."


def _saw_dtype(seen: Seen) -> str | None:
    yours, right = seen.yours("shifted"), seen.right("shifted")
    if yours is None or yours.dtype == right.dtype:
        return None
    return f"{where(seen)}, yours is {yours.dtype}, expected {right.dtype}."


def _saw_changed(seen: Seen) -> str | None:
    if "target" not in seen.outcome.changed:
        return None
    row = seen.args["target"][0].tolist()
    return f"{where(seen)}, row 0 of the target is {row} before the call and not after it."


def _reads_its_label(seen: Seen) -> str | None:
    """Where the decoder would read the token that it has to write."""
    if not seen.comparable("shifted"):
        return None
    yours, right, target = seen.yours("shifted"), seen.right("shifted"), seen.args["target"]
    given = (yours == target) & (yours != right)
    if not given.any():
        return None
    row, place = given.nonzero()[0].tolist()
    return (
        f"{where(seen)}, the input at position {place} of row {row} is "
        f"{yours[row, place].item()}, the very token to be written there. That happens at "
        f"{int(given.sum())} of {yours.numel()} positions."
    )


def _first_is_not_bos(seen: Seen) -> str | None:
    if not seen.comparable("shifted"):
        return None
    firsts, bos = seen.yours("shifted")[:, 0], seen.args["bos"]
    wrong = int((firsts != bos).sum())
    if not wrong:
        return None
    return (
        f"{where(seen)}, {wrong} of {len(firsts)} rows do not start with {bos}: position 0 holds "
        f"{firsts.tolist()}."
    )


def _bos(target, bos):
    return torch.full_like(target[:, :1], bos)


def _with_first(target, first):
    return torch.cat([_bos(target, first), target[:, :-1]], dim=1)


def _overwrites_first(target, bos):
    out = target.clone()
    out[:, 0] = bos
    return out


def _in_place(target, bos):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = bos
    return target


def _overwrites_first_in_place(target, bos):
    target[:, 0] = bos
    return target


def _rows_shifted(target, bos):
    return torch.cat([torch.full_like(target[:1], bos), target[:-1]])


def _first_row_only(target, bos):
    out = target.roll(1, dims=1)
    out[0, 0] = bos
    return out


def _flat(target, bos):
    flat = target.flatten()
    return torch.cat([flat.new_tensor([bos]), flat[:-1]]).reshape(target.shape)


def _target(*shape):
    """Tokens that are all different, so that no move of one can hide."""
    n = shape[0] * shape[1]
    return (torch.arange(n) * 7 % n + 20).reshape(shape)


def _on(shape, bos):
    return lambda: (_target(*shape), bos)


SHIFT_RIGHT = Exercise(
    name="shift_right",
    signature="shift_right(target, bos)",
    arguments=("target", "bos"),
    results=("shifted",),
    reference=shift_right,
    probes=(
        Probe(name="two sentences", make=_on((2, 5), 3)),
        Probe(name="three sentences", make=_on((3, 11), 13)),
        Probe(name="as many sentences as tokens", make=_on((5, 5), 1)),
        Probe(name="one sentence of two tokens", make=_on((1, 2), 2)),
        Probe(name="one token each", make=_on((3, 1), 7), core=False),
        Probe(name="a bos of 0", make=_on((2, 3), 0), core=False),
    ),
    properties=(_first_is_not_bos, _reads_its_label),
    mistakes=(
        Mistake(
            name="not_shifted",
            title="gives the target back as it is",
            saw=_saw_row,
            means="The decoder then reads at each position the token that it has to write there. "
            "It learns to copy.",
            next_step="Write down by hand the row for the target 5, 6, 7 and bos 1.",
            versions=(lambda t, bos: t.clone(),),
        ),
        Mistake(
            name="shifted_left",
            title="drops the first token and puts bos at the end",
            saw=_saw_row,
            means="Each position then reads the token after the one that it has to write.",
            next_step="At position 0 nothing is written yet. What should stand there?",
            versions=(lambda t, bos: torch.cat([t[:, 1:], _bos(t, bos)], 1),),
        ),
        Mistake(
            name="shifted_left_after_bos",
            title="puts bos first and the target without its first two tokens after it",
            saw=_saw_shape,
            means="The tokens moved to the left, not to the right.",
            next_step="Which token should be lost: an early one or the last?",
            versions=(lambda t, bos: torch.cat([_bos(t, bos), t[:, 2:]], 1),),
        ),
        Mistake(
            name="wraps_around",
            title="moves the last token round to the front",
            saw=_saw_row,
            means="`roll` loses nothing: what falls out at the end comes back at position 0. The "
            "decoder would start with the end of the sentence.",
            next_step="What should position 0 hold in every row?",
            versions=(lambda t, bos: t.roll(1, dims=1),),
        ),
        Mistake(
            name="overwrites_first",
            title="puts bos in the place of token 0 and moves nothing",
            saw=_saw_row,
            means="From position 1 on the input is still the token to be written.",
            next_step="The target's token 0 is missing. At which position should it be read?",
            versions=(_overwrites_first,),
        ),
        Mistake(
            name="overwrites_first_in_place",
            title="writes bos over token 0 of the caller's target and moves nothing",
            saw=_saw_row,
            means="From position 1 on the input is still the token to be written, and the labels "
            "of the loss have lost their first token.",
            next_step="Build a new tensor. At which position should the target's token 0 be read?",
            versions=(_overwrites_first_in_place,),
        ),
        Mistake(
            name="shifts_twice",
            title="shifts by two positions",
            saw=_saw_row,
            means="The token just written is then out of sight.",
            next_step="Is there a shift in two of your lines?",
            versions=(
                lambda t, bos: shift_right(shift_right(t, bos), bos),
                lambda t, bos: shift_right(t.roll(1, dims=1), bos),
            ),
        ),
        Mistake(
            name="zero_instead_of_bos",
            title="starts with the id 0, whatever bos is",
            saw=_saw_row,
            means="The id 0 stands for another token, often for padding.",
            next_step="The second argument says which id comes first.",
            versions=(lambda t, bos: _with_first(t, 0),),
        ),
        Mistake(
            name="fixed_bos",
            title="starts with an id written into the code, whatever bos is",
            saw=_saw_row,
            means="It is right for one vocabulary only.",
            next_step="The second argument says which id comes first.",
            versions=(lambda t, bos: _with_first(t, 1), lambda t, bos: _with_first(t, 2)),
        ),
        Mistake(
            name="first_token_repeated",
            title="shifts by one and leaves token 0 at the front too",
            saw=_saw_row,
            means="The decoder is told the first word before it writes it.",
            next_step="What should position 0 hold in every row?",
            versions=(lambda t, bos: torch.cat([t[:, :1], t[:, :-1]], 1),),
        ),
        Mistake(
            name="drops_without_bos",
            title="drops the last token and puts nothing in front",
            saw=_saw_shape,
            means="There is no start symbol, and no token has moved: each position still reads "
            "what it has to write.",
            next_step="How many tokens does each row have, and how many should it have?",
            versions=(lambda t, bos: t[:, :-1],),
        ),
        Mistake(
            name="drops_the_first",
            title="drops the first token and puts nothing in front",
            saw=_saw_shape,
            means="Those are the labels of a model that reads the whole sentence, not its input.",
            next_step="Which end of the row loses a token, and what comes in at the other?",
            versions=(lambda t, bos: t[:, 1:],),
        ),
        Mistake(
            name="keeps_the_last",
            title="puts bos in front and drops nothing",
            saw=_saw_shape,
            means="There is then one input more than there are labels.",
            next_step="The last token is only written, never read. What follows for its place?",
            versions=(lambda t, bos: torch.cat([_bos(t, bos), t], 1),),
        ),
        Mistake(
            name="bos_everywhere",
            title="fills the whole row with bos",
            saw=_saw_row,
            means="A loop that copies from left to right reads what it has just written, so bos "
            "runs through the row. The decoder then knows nothing of what came before.",
            next_step="Read from the target, and write into another tensor.",
            versions=(lambda t, bos: torch.full_like(t, bos),),
        ),
        Mistake(
            name="rows_shifted",
            title="shifts the sentences, not the tokens",
            saw=_saw_row,
            means="Axis 0 is the batch. Each sentence gets the words of the one before it.",
            next_step="Along which axis do the tokens of one sentence stand?",
            versions=(_rows_shifted,),
        ),
        Mistake(
            name="shifted_as_one_row",
            title="shifts all sentences as one long row",
            saw=_saw_row,
            means="The last token of one sentence becomes the first of the next.",
            next_step="Each row starts with a bos of its own.",
            versions=(_flat, _first_row_only),
        ),
        Mistake(
            name="reversed",
            title="shifts the tokens in reversed order",
            saw=_saw_row,
            means="The order of the words stays as it is; all stand one step later.",
            next_step="Which tokens stand at positions 1 and 2?",
            versions=(lambda t, bos: shift_right(t.flip(1), bos),),
        ),
        Mistake(
            name="changes_the_target",
            title="gives the right rows and changes the caller's target",
            saw=_saw_changed,
            means="The target holds the labels too. After the call they are shifted with it, and "
            "the model learns to copy.",
            next_step="Build a new tensor, or work on a `clone`.",
            versions=(_in_place,),
        ),
        Mistake(
            name="gives_floats",
            title="gives the right ids as floating-point numbers",
            saw=_saw_dtype,
            means="An embedding is looked up by whole numbers.",
            next_step="Make the column of bos in the target's dtype.",
            versions=(
                lambda t, bos: shift_right(t, bos).float(),
                lambda t, bos: shift_right(t, bos).double(),
            ),
        ),
        Mistake(
            name="gives_other_integers",
            title="gives the right ids in another integer type",
            saw=_saw_dtype,
            means="The ids would no longer fit beside the target.",
            next_step="Make the column of bos in the target's dtype.",
            versions=(lambda t, bos: shift_right(t, bos).int(),),
        ),
        Mistake(
            name="list_of_lists",
            title="returns a Python list",
            means="The ids may be right; the model needs a tensor.",
            next_step="`torch.tensor(...)` makes one of it.",
            versions=(lambda t, bos: shift_right(t, bos).tolist(),),
        ),
    ),
)
