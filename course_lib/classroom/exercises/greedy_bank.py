"""The known mistakes of greedy decoding."""

import torch

from course_lib.classroom.exercises.greedy_versions import decoding
from course_lib.classroom.judge_parts import Mistake, Seen
from course_lib.classroom.properties import where


def _saw(kind: str):
    """What the spy noted of that kind."""

    def saw(seen: Seen) -> str | None:
        text = dict(seen.outcome.watched or ()).get(kind)
        return f"{where(seen)}: {text}." if text else None

    return saw


def _saw_row(seen: Seen) -> str | None:
    yours, right = seen.yours("tokens"), seen.right("tokens")
    if yours is None or yours.dim() != 2 or len(yours) != len(right):
        return None
    for row, (mine, wanted) in enumerate(zip(yours.tolist(), right.tolist(), strict=True)):
        if mine != wanted:
            return f"{where(seen)}, row {row} of yours is {mine}, expected {wanted}."
    return None


def _saw_shape(seen: Seen) -> str | None:
    yours, right = seen.yours("tokens"), seen.right("tokens")
    if yours is None or yours.shape == right.shape:
        return None
    return f"{where(seen)}, yours gives {tuple(yours.shape)}, expected {tuple(right.shape)}."


def _ranks(seen_all: list[Seen]) -> list[int]:
    """How likely each token was that stands in the learner's rows, 0 for the most likely.

    Tokens that are the most likely ones of an earlier position are left out.
    """
    ranks = []
    for seen in seen_all:
        yours, script = seen.yours("tokens"), seen.args["model"]
        if yours is None or yours.dim() != 2 or yours.is_floating_point():
            continue
        for row, tokens in enumerate(yours.tolist()):
            for t in range(1, len(tokens)):
                if seen.args["eos"] in tokens[1:t]:
                    break
                logits = script.logits(row, tuple(tokens[:t]))
                earlier = [script.logits(row, tuple(tokens[:u])).argmax() for u in range(1, t)]
                if tokens[t] not in earlier:
                    ranks.append(int((logits > logits[tokens[t]]).sum()))
    return ranks


def _samples(seen_all: list[Seen]) -> bool:
    """Whether tokens of many ranks were taken, likely ones more often than others."""
    ranks = _ranks(seen_all)
    likely = sum(rank < 4 for rank in ranks)
    return len(set(ranks)) >= 4 and ranks.count(0) >= 1 and likely > len(ranks) / 2


def _ones(length, max_len=0):
    return torch.ones(length, length, dtype=torch.bool)


def _none(length, max_len):
    return None


def _triangle(length, max_len):
    return torch.ones(length, length).tril()


def _cut_after_eos(tokens, eos, max_len):
    return tokens[:, :-1] if (tokens[:, -1] == eos).any() else tokens


def _padded(tokens, eos, max_len):
    rest = torch.full((len(tokens), max(max_len - tokens.size(1), 0)), eos)
    return torch.cat([tokens, rest], 1)


def _read_at(place):
    return lambda logits: logits[:, place(logits.size(1))].argmax(-1)


def _prepended(tokens, best):
    return torch.cat([best[:, None], tokens], 1)


_MASK_STEP = "Build the mask anew for the tokens that there are: row i sees 0 to i."

MISTAKES = (
    Mistake(
        name="no_causal_mask",
        title="passes no mask",
        saw=_saw("mask"),
        means="Earlier positions then see later ones, as they never did in training, and change "
        "as the output grows.",
        next_step=_MASK_STEP,
        versions=(decoding(mask=_none),),
    ),
    Mistake(
        name="all_true_mask",
        title="passes a mask that hides nothing",
        saw=_saw("mask"),
        means="It is as if there were none: earlier positions see later ones.",
        next_step=_MASK_STEP,
        versions=(decoding(mask=_ones),),
    ),
    Mistake(
        name="mask_inverted",
        title="marks with True what may not be seen",
        saw=_saw("mask"),
        means="`nn.Transformer` reads masks so. Here True means may look.",
        next_step="Turn the mask around.",
        versions=(decoding(mask=lambda n, longest: _ones(n, n).triu(1)),),
        convention=True,
    ),
    Mistake(
        name="mask_anti_causal",
        title="lets each position see itself and the future",
        saw=_saw("mask"),
        means="The upper triangle is the future; the past is the lower one.",
        next_step=_MASK_STEP,
        versions=(decoding(mask=lambda n, longest: _ones(n, n).triu()),),
    ),
    Mistake(
        name="float_mask",
        title="passes a mask of numbers",
        saw=_saw("mask"),
        means="The masks of this course are boolean; numbers would be added or inverted wrongly.",
        next_step="`dtype=torch.bool` makes the table boolean.",
        versions=(
            decoding(mask=_triangle),
            decoding(mask=lambda n, longest: torch.full((n, n), -torch.inf).triu(1)),
            decoding(mask=lambda n, longest: _triangle(n, n).long()),
        ),
    ),
    Mistake(
        name="mask_of_max_len",
        title="passes one mask of (max_len, max_len) at every step",
        saw=_saw("mask"),
        means="The mask has to fit the tokens that there are: T grows by one at each step.",
        next_step="How many tokens does the model get at this step?",
        versions=(decoding(mask=lambda n, longest: _ones(longest, longest).tril()),),
    ),
    Mistake(
        name="mask_with_more_axes",
        title="passes a mask with more than two axes",
        saw=_saw("mask"),
        means="(T, T) was asked for; the model itself gives it what else it needs.",
        next_step="Leave out the unsqueeze.",
        versions=(
            decoding(mask=lambda n, longest: _ones(n, n).tril()[None]),
            decoding(mask=lambda n, longest: _ones(n, n).tril()[None, None]),
        ),
    ),
    Mistake(
        name="dropout_left_on",
        title="does not switch to eval mode",
        saw=_saw("mode"),
        means="With dropout the output changes from call to call.",
        next_step="Which two modes does an `nn.Module` have?",
        versions=(decoding(evaluate=False),),
    ),
    Mistake(
        name="stays_in_eval",
        title="leaves the model in eval mode",
        saw=_saw("after"),
        means="A training that goes on afterwards would go on without dropout, and nobody would "
        "notice.",
        next_step="Keep the mode before you change it, and put it back at the end.",
        versions=(decoding(restore=lambda model, was: None),),
    ),
    Mistake(
        name="always_back_to_training",
        title="puts the model into training mode at the end, whatever it was before",
        saw=_saw("after"),
        means="A model that was in eval mode is then in another than the caller left it in.",
        next_step="Keep the earlier mode in a variable.",
        versions=(decoding(restore=lambda model, was: model.train()),),
    ),
    Mistake(
        name="gradients_left_on",
        title="calls the model with gradients on",
        saw=_saw("gradients"),
        means="Nothing comes out wrong, but every step keeps what a backward pass would need: "
        "time and memory for nothing.",
        next_step="torch has a context for it: `torch.no_grad()`.",
        versions=(decoding(grads=True),),
    ),
    Mistake(
        name="reads_first_position",
        title="takes the logits of position 0 at every step",
        saw=_saw_row,
        means="Position 0 tells what follows bos, again and again.",
        next_step="Which position knows all that is written so far?",
        versions=(decoding(pick=_read_at(lambda n: 0)),),
    ),
    Mistake(
        name="reads_previous_position",
        title="takes the logits of the last position but one",
        saw=_saw_row,
        means="They tell what was to be written a step ago.",
        next_step="Which position knows all that is written so far?",
        versions=(decoding(pick=_read_at(lambda n: max(n - 2, 0))),),
    ),
    Mistake(
        name="least_likely",
        title="takes the least likely token",
        saw=_saw_row,
        means="The smallest logit is the smallest probability.",
        next_step="min or max?",
        versions=(decoding(pick=lambda logits: logits[:, -1].argmin(-1)),),
    ),
    Mistake(
        name="second_best",
        title="takes the second most likely token",
        saw=_saw_row,
        means="Greedy takes the best.",
        next_step="Which of the two that topk gives is the larger?",
        versions=(decoding(pick=lambda logits: logits[:, -1].topk(2).indices[:, 1]),),
    ),
    Mistake(
        name="samples",
        title="draws tokens by their probability",
        saw=_saw_row,
        means="That is sampling, which lesson 09 builds. Greedy takes the most likely one.",
        next_step="Which torch function gives the place of the largest number?",
        recognise=_samples,
    ),
    Mistake(
        name="ignores_eos",
        title="never looks for eos and always writes max_len tokens",
        saw=_saw_row,
        means="What stands after eos is no part of the sentence.",
        next_step="When is a row finished, and what is written there from then on?",
        versions=(decoding(stop=lambda f: torch.tensor(False), fill=lambda best, f, eos: best),),
    ),
    Mistake(
        name="stops_at_first_finished",
        title="stops as soon as one row has written eos",
        saw=_saw_row,
        means="The other rows are cut off in the middle of their sentence.",
        next_step="any or all?",
        versions=(decoding(stop=lambda finished: finished.any()),),
    ),
    Mistake(
        name="writes_after_eos",
        title="goes on writing in rows that are finished",
        saw=_saw_row,
        means="A finished row is to be filled with eos while the others go on.",
        next_step="Replace the token of a finished row before you append it.",
        versions=(decoding(fill=lambda best, finished, eos: best),),
    ),
    Mistake(
        name="fills_with_zero",
        title="fills finished rows with 0",
        saw=_saw_row,
        means="0 is the padding in many vocabularies, and any word in others. eos was asked for.",
        next_step="With which id should a finished row be filled?",
        versions=(decoding(fill=lambda best, finished, eos: best.masked_fill(finished, 0)),),
    ),
    Mistake(
        name="fills_up_to_max_len",
        title="does not end early, but fills all rows with eos up to max_len",
        saw=_saw_shape,
        means="The tokens are right and more than needed: the result ends once every row has.",
        next_step="Leave the loop when all rows are finished.",
        versions=(
            decoding(stop=lambda finished: torch.tensor(False)),
            decoding(finish=_padded),
        ),
    ),
    Mistake(
        name="one_token_too_short",
        title="stops one token before max_len",
        saw=_saw_shape,
        means="max_len counts bos, and the last token too.",
        next_step="How many tokens are there after n steps?",
        versions=(decoding(longest=-1),),
    ),
    Mistake(
        name="one_token_too_long",
        title="writes max_len tokens behind bos",
        saw=_saw_shape,
        means="bos counts as one of the max_len.",
        next_step="How many tokens are there after n steps?",
        versions=(decoding(longest=1),),
    ),
    Mistake(
        name="prepends",
        title="adds new tokens at the front",
        saw=_saw_row,
        means="The model would read the sentence backwards, and bos comes last.",
        next_step="In which order are the two joined?",
        versions=(decoding(append=_prepended),),
    ),
    Mistake(
        name="drops_bos",
        title="leaves bos out of the result",
        saw=_saw_shape,
        means="The result is to begin with bos.",
        next_step="Return all the tokens that the model has read.",
        versions=(decoding(finish=lambda tokens, eos, max_len: tokens[:, 1:]),),
    ),
    Mistake(
        name="drops_eos",
        title="leaves the last eos out of the result",
        saw=_saw_shape,
        means="eos belongs to the result: it says that the sentence is finished.",
        next_step="Append the token first, then look whether it is eos.",
        versions=(decoding(finish=_cut_after_eos),),
    ),
    Mistake(
        name="starts_with_eos",
        title="starts from eos",
        saw=_saw_row,
        means="The model has learned to begin after bos.",
        next_step="Which id stands in the first column?",
        versions=(decoding(start=lambda batch, bos, eos: torch.full((batch, 1), eos)),),
    ),
    Mistake(
        name="starts_with_zero",
        title="starts from id 0, whatever bos is",
        saw=_saw_row,
        means="The model has learned to begin after bos.",
        next_step="Which id stands in the first column?",
        versions=(decoding(start=lambda batch, bos, eos: torch.zeros(batch, 1, dtype=torch.long)),),
    ),
    Mistake(
        name="batch_ignored",
        title="writes one row, whatever batch is",
        saw=_saw_shape,
        means="Each of the batch's rows has a sentence of its own.",
        next_step="Which shape has the first column?",
        versions=(decoding(start=lambda batch, bos, eos: torch.full((1, 1), bos)),),
    ),
    Mistake(
        name="feeds_the_last_token_alone",
        title="gives the model the newest token alone",
        saw=_saw_row,
        means="The model keeps nothing between two calls: it needs all that is written so far.",
        next_step="What does the model know of the words before?",
        versions=(decoding(feed=lambda tokens: tokens[:, -1:]),),
    ),
    Mistake(
        name="one_row_squeezed",
        title="gives one axis where there is one row",
        saw=_saw_shape,
        means="(batch, T) was asked for, with a batch of 1 too.",
        next_step="Leave out the squeeze.",
        versions=(decoding(finish=lambda tokens, eos, max_len: tokens.squeeze(0)),),
    ),
)
