"""The exercises ``row_softmax`` and ``soft_lookup``."""

import torch

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.judge_parts import Mistake, Probe, Seen
from course_lib.transformer.attention import row_softmax, soft_lookup


def _numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _with_dead_row(seed):
    scores = _numbers(3, 5, seed=seed)
    scores[1] = -torch.inf
    scores[2, 3] = -torch.inf
    return scores


def _exp(scores, axis=-1):
    """A softmax by hand, safe for large scores and not for dead rows."""
    powers = torch.exp(scores - scores.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


def _revived(weights):
    """Rows of NaN become zeros."""
    return torch.where(weights.isnan().all(-1, keepdim=True), 0.0, weights)


def _uniform_on_dead_rows(scores):
    return torch.softmax(scores.clamp_min(torch.finfo(scores.dtype).min), -1)


def _in_place(scores):
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    scores.masked_fill_(dead, 0.0)
    return torch.softmax(scores, -1).masked_fill(dead, 0.0)


def _nan_to_num(scores):
    return torch.softmax(scores, -1).nan_to_num(0.0)


def _saw_sums(seen: Seen) -> str | None:
    weights = seen.yours("weights")
    if not seen.comparable("weights") or weights.dim() != 2 or not weights.isfinite().all():
        return None
    rows, columns = weights.double().sum(-1), weights.double().sum(0)
    right = seen.right("weights").double().sum(-1)
    if torch.allclose(rows, right, atol=1e-2):
        return None
    text = f"Row 0 of your result sums to {rows[0]:.3g}, expected {right[0]:.3g}"
    if torch.allclose(columns, torch.ones_like(columns), atol=1e-2):
        return text + "; each column sums to 1."
    if abs(weights.double().sum() - 1) < 1e-2:
        return text + "; all entries together sum to 1."
    return text + "."


def _saw_dead(seen: Seen) -> str | None:
    weights, scores = seen.yours("weights"), seen.args["scores"]
    dead = (scores == -torch.inf).all(-1)
    if not seen.comparable("weights") or not dead.any():
        return None
    row = weights[dead][0]
    if row.isfinite().all() and not row.any():
        return None
    return f"A row of nothing but -inf became {[round(x, 3) for x in row.tolist()]}."


def _saw_large(seen: Seen) -> str | None:
    weights, scores = seen.yours("weights"), seen.args["scores"]
    if not seen.comparable("weights") or scores.abs().max() < 1000:
        return None
    count = int((~weights.isfinite()).sum())
    if not count:
        return None
    top = scores[scores.isfinite()].abs().max()
    return f"With scores up to {top:.0f}, {count} of your {weights.numel()} weights are no numbers."


ROW_SOFTMAX = Exercise(
    name="row_softmax",
    signature="row_softmax(scores)",
    arguments=("scores",),
    results=("weights",),
    reference=row_softmax,
    probes=(
        Probe(name="three rows of five scores", make=lambda: (_numbers(3, 5),), grads=True),
        Probe(name="as many rows as columns", make=lambda: (_numbers(5, 5, seed=1) * 3,)),
        Probe(name="one row", make=lambda: (_numbers(1, 7, seed=2),)),
        Probe(name="one column", make=lambda: (_numbers(7, 1, seed=3),)),
        Probe(
            name="scores of ten thousand and minus ten thousand",
            make=lambda: (_numbers(3, 5, seed=4).sign() * 1e4,),
            core=False,
        ),
        Probe(
            name="scores that are all very negative",
            make=lambda: (_numbers(3, 5, seed=5) - 1e4,),
            core=False,
        ),
        Probe(
            name="a row of minus infinity",
            make=lambda: (_with_dead_row(6),),
            core=False,
            grads=True,
        ),
        Probe(
            name="half precision with a row of minus infinity",
            make=lambda: (_with_dead_row(7).half(),),
            core=False,
        ),
        Probe(name="double precision", make=lambda: (_numbers(3, 5, seed=8).double(),), core=False),
        Probe(
            name="a tensor that lies in memory in another order",
            make=lambda: (_numbers(5, 3, seed=9).mT,),
            core=False,
        ),
    ),
    mistakes=(
        Mistake(
            name="softmax_over_columns",
            title="takes the softmax down the columns",
            saw=_saw_sums,
            means="Each column is shared out, so a row sums to anything.",
            next_step="Which axis runs along a row? Counting from the end, it is the last.",
            versions=(
                lambda s: _exp(s, 0),
                lambda s: _exp(s, -2),
                lambda s: torch.softmax(s, 0).nan_to_num(0.0),
            ),
        ),
        Mistake(
            name="softmax_over_everything",
            title="divides by the sum of the whole table",
            saw=_saw_sums,
            means="All rows share one unit; each row should have one of its own.",
            next_step="Sum along the last axis alone, and keep that axis for the division.",
            versions=(
                lambda s: torch.softmax(s.flatten(), 0).reshape(s.shape),
                lambda s: torch.exp(s) / torch.exp(s).sum(),
                lambda s: torch.exp(s - s.max()) / torch.exp(s - s.max()).sum(),
            ),
        ),
        Mistake(
            name="not_normalised",
            title="raises e to each score and does not divide",
            saw=_saw_sums,
            means="The numbers are positive, and a row sums to anything.",
            next_step="Divide each row by its own sum.",
            versions=(torch.exp, lambda s: torch.exp(s - s.amax(-1, keepdim=True))),
        ),
        Mistake(
            name="divides_without_exp",
            title="divides each score by the sum of its row",
            saw=_saw_sums,
            means="Scores may be negative, so weights become negative and a sum near 0 blows up.",
            next_step="Make the numbers positive first. Which function does that?",
            versions=(lambda s: s / s.sum(-1, keepdim=True),),
        ),
        Mistake(
            name="log_softmax",
            title="returns the logarithm of the weights",
            saw=_saw_sums,
            means="log_softmax is for losses. Its numbers are negative and do not sum to 1.",
            next_step="There is a function with the same name but for three letters.",
            versions=(lambda s: torch.log_softmax(s, -1),),
        ),
        Mistake(
            name="sigmoid",
            title="squeezes each score by itself, with a sigmoid",
            saw=_saw_sums,
            means="Each score becomes a number between 0 and 1 without looking at its neighbours.",
            next_step="The weights of a row compete: they share one unit.",
            versions=(torch.sigmoid,),
        ),
        Mistake(
            name="hard_maximum",
            title="puts all the weight on the largest score",
            means="Nothing is left for the others, and no gradient reaches the scores.",
            next_step="Soft means that every finite score gets something.",
            versions=(lambda s: torch.zeros_like(s).scatter(-1, s.argmax(-1, keepdim=True), 1.0),),
        ),
        Mistake(
            name="negative_sign",
            title="gives the smallest score the largest weight",
            means="Somewhere the sign of the scores was turned around.",
            next_step="e to the score, not to minus the score.",
            versions=(lambda s: torch.softmax(-s, -1), lambda s: _exp(-s)),
        ),
        Mistake(
            name="base_two",
            title="raises 2 to the scores, not e",
            means="The weights order the same way and are flatter.",
            next_step="The softmax uses the exponential function.",
            versions=(lambda s: torch.softmax(s * 0.6931471805599453, -1),),
        ),
        Mistake(
            name="exp_overflow",
            title="exponentiates the scores as they are",
            saw=_saw_large,
            means="e to the power of 10,000 is too large for a float, and e to the power of "
            "-10,000 is 0: infinity over infinity, or 0/0.",
            next_step="Subtracting one number from a whole row does not change its softmax. Which "
            "number makes the largest exponent 0?",
            versions=(
                lambda s: torch.exp(s) / torch.exp(s).sum(-1, keepdim=True),
                lambda s: _revived(torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)),
                lambda s: (torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)).nan_to_num(0.0),
                lambda s: torch.exp(s) / torch.exp(s).sum(-1, keepdim=True).clamp_min(1e-9),
                lambda s: torch.exp(s) / (torch.exp(s).sum(-1, keepdim=True) + 1e-9),
            ),
        ),
        Mistake(
            name="nan_on_dead_row",
            title="gives NaN for a row of nothing but -inf",
            saw=_saw_dead,
            means="A softmax over nothing divides 0 by 0, and one NaN spoils every sum it meets.",
            next_step="Find the rows whose scores are all -inf, and treat them apart.",
            versions=(lambda s: torch.softmax(s, -1), _exp),
        ),
        Mistake(
            name="uniform_on_dead_row",
            title="gives a row of nothing but -inf equal weights",
            saw=_saw_dead,
            means="Such a row may look at nothing, and here it looks at everything.",
            next_step="Its weights should be 0: they can be set after the softmax.",
            versions=(_uniform_on_dead_rows,),
        ),
        Mistake(
            name="nan_replaced_afterwards",
            title="replaces NaN by 0 after the softmax",
            means="The weights are right. On the way back the gradient still passes through 0/0 "
            "and is NaN.",
            next_step="Give the dead rows harmless scores before the softmax, and zeros after it.",
            versions=(
                _nan_to_num,
                lambda s: _revived(torch.softmax(s, -1)),
                lambda s: _revived(_exp(s)),
            ),
        ),
        Mistake(
            name="in_place",
            title="changes the caller's scores",
            means="A function that ends in an underscore writes into its tensor.",
            next_step="Use the form without the underscore: it makes a new tensor.",
            versions=(_in_place,),
        ),
        Mistake(
            name="float32_result",
            title="returns float32 whatever the scores are",
            means="Half precision comes back twice as large, and the next product fails.",
            next_step="Return the dtype that came in.",
            versions=(lambda s: row_softmax(s.float()),),
        ),
        Mistake(
            name="detached",
            title="cuts the weights from the gradient",
            means="The values are right; nothing that made the scores could learn.",
            next_step="Stay with torch from the scores to the weights: no `detach`, `data`, "
            "`no_grad`, `.item()` or `.tolist()`, and no new `torch.tensor(...)`.",
            versions=(lambda s: row_softmax(s.detach()),),
        ),
    ),
)


def _look(query, keys, values, *, scale=1.0, weigh=row_softmax):
    return weigh(keys @ query * scale) @ values


def _cosine(query, keys, values):
    scores = torch.nn.functional.cosine_similarity(keys, query[None], dim=-1)
    return row_softmax(scores) @ values


def _distance(query, keys, values):
    return row_softmax(-(keys - query).square().sum(-1)) @ values


def _nearest(query, keys, values):
    return values[(keys @ query).argmax()]


def _as_pair(query, keys, values):
    weights = row_softmax(keys @ query)
    return weights @ values, weights


def _lookup_probe(name, s, k, v, *, seed, scale=1.0, core=True, dtype=torch.float32):
    def make():
        inputs = _numbers(k, seed=seed) * scale, _numbers(s, k, seed=seed + 1)
        return tuple(x.to(dtype) for x in (*inputs, _numbers(s, v, seed=seed + 2)))

    return Probe(name=name, make=make, core=core, grads=dtype == torch.float32)


SOFT_LOOKUP = Exercise(
    name="soft_lookup",
    signature="soft_lookup(query, keys, values)",
    arguments=("query", "keys", "values"),
    results=("found",),
    reference=soft_lookup,
    probes=(
        _lookup_probe("a dictionary of five entries", 5, 3, 2, seed=0),
        _lookup_probe("keys as wide as values", 5, 3, 3, seed=10),
        _lookup_probe("as many entries as features", 3, 3, 3, seed=20),
        _lookup_probe("one entry", 1, 5, 7, seed=30),
        _lookup_probe("a query that matches strongly", 5, 3, 2, seed=40, scale=1e3, core=False),
        _lookup_probe("double precision", 5, 3, 2, seed=50, core=False, dtype=torch.float64),
    ),
    mistakes=(
        Mistake(
            name="scaled",
            title="divides the scores by the square root of their width",
            means="That is scaled dot-product attention, the next step. This look-up has no scale.",
            next_step="Leave the dot products as they are.",
            versions=(lambda q, k, v: _look(q, k, v, scale=k.size(-1) ** -0.5),),
        ),
        Mistake(
            name="shares_returned",
            title="returns the shares and does not mix the values",
            means="The shares say how much of each value to take.",
            next_step="(S,) times (S, V): one product is missing.",
            versions=(lambda q, k, v: row_softmax(k @ q),),
        ),
        Mistake(
            name="mean_of_weighted_values",
            title="takes the mean of the weighted values, not their sum",
            means="The shares sum to 1 already; a mean divides by the number of entries once more.",
            next_step="Add up, over all entries.",
            versions=(lambda q, k, v: (row_softmax(k @ q)[:, None] * v).mean(0),),
        ),
        Mistake(
            name="negated_scores",
            title="gives the worst match the largest share",
            means="The sign of the scores is turned around.",
            next_step="Look for a minus.",
            versions=(lambda q, k, v: row_softmax(-(k @ q)) @ v,),
        ),
        Mistake(
            name="softmax_over_one",
            title="takes the softmax over an axis of length one, so that every share is 1",
            means="The values are added up whole, whatever the query is.",
            next_step="Along which axis do the entries lie?",
            versions=(lambda q, k, v: v.sum(0),),
        ),
        Mistake(
            name="softmax_twice",
            title="takes the softmax twice",
            means="The second one flattens: its scores lie between 0 and 1.",
            next_step="Once is enough.",
            versions=(lambda q, k, v: row_softmax(row_softmax(k @ q)) @ v,),
        ),
        Mistake(
            name="sigmoid",
            title="squeezes each score by itself, with a sigmoid",
            means="The shares do not compete and do not sum to 1.",
            next_step="Which function makes shares of scores?",
            versions=(lambda q, k, v: torch.sigmoid(k @ q) @ v,),
        ),
        Mistake(
            name="softmax_before_the_sum",
            title="takes a softmax of the products of features, before they are added up",
            means="A match is one number for each key: the sum over its features.",
            next_step="First the whole dot product, then the softmax.",
            versions=(
                lambda q, k, v: torch.softmax(k * q, 1).sum(1) @ v,
                lambda q, k, v: torch.softmax(k * q, 0).sum(1) @ v,
                lambda q, k, v: torch.softmax(k * q, 0).mean(1) @ v,
            ),
        ),
        Mistake(
            name="no_softmax",
            title="uses the dot products themselves as weights",
            means="Weights should be positive and sum to 1, so that the result is a mean.",
            next_step="Something stands between the scores and the sum.",
            versions=(lambda q, k, v: _look(q, k, v, weigh=lambda s: s),),
        ),
        Mistake(
            name="divides_without_exp",
            title="divides the dot products by their sum",
            means="Scores may be negative, so weights become negative and a sum near 0 blows up.",
            next_step="`row_softmax` makes weights of scores.",
            versions=(lambda q, k, v: _look(q, k, v, weigh=lambda s: s / s.sum()),),
        ),
        Mistake(
            name="nearest_entry",
            title="returns the value of the best key alone",
            means="That is the hard look-up of a dictionary. The soft one takes a little of all.",
            next_step="Weigh all the values, do not choose one.",
            versions=(_nearest,),
        ),
        Mistake(
            name="mixes_keys",
            title="averages the keys, not the values",
            means="Keys are what is matched; values are what is taken home.",
            next_step="Which tensor does the last product use?",
            versions=(lambda q, k, v: row_softmax(k @ q) @ k,),
        ),
        Mistake(
            name="matches_values",
            title="compares the query with the values",
            means="The query is matched with keys.",
            next_step="Which tensor does the first product use?",
            versions=(lambda q, k, v: row_softmax(v @ q) @ v,),
        ),
        Mistake(
            name="plain_mean",
            title="averages all values alike",
            means="The query plays no part.",
            next_step="Where does the query enter?",
            versions=(lambda q, k, v: v.mean(0) + 0 * q.sum() + 0 * k.sum(),),
        ),
        Mistake(
            name="sum_not_mean",
            title="raises e to the scores and does not divide by their sum",
            means="The result grows with the scores.",
            next_step="The weights should sum to 1.",
            versions=(lambda q, k, v: _look(q, k, v, weigh=torch.exp),),
        ),
        Mistake(
            name="exp_overflow",
            title="exponentiates the scores as they are",
            means="e to a score of a few hundred is too large for a float32.",
            next_step="`row_softmax` of lesson 00 is safe.",
            versions=(
                lambda q, k, v: _look(q, k, v, weigh=lambda s: torch.exp(s) / torch.exp(s).sum()),
            ),
        ),
        Mistake(
            name="cosine",
            title="compares directions only, by the cosine",
            means="The lengths of query and key no longer count.",
            next_step="Plain dot products.",
            versions=(_cosine,),
        ),
        Mistake(
            name="distance",
            title="scores by the squared distance",
            means="Near keys win also here, but by another rule.",
            next_step="Plain dot products.",
            versions=(_distance,),
        ),
        Mistake(
            name="extra_axis",
            title="returns a row, (1, V)",
            means="One query went in as a vector, so one vector should come out.",
            next_step="Leave out the axis of length 1.",
            versions=(lambda q, k, v: _look(q, k, v)[None],),
        ),
        Mistake(
            name="returns_the_weights_too",
            title="returns a pair",
            means="`soft_lookup` gives the found vector alone.",
            next_step="Return the first of the two.",
            versions=(_as_pair,),
        ),
    ),
)
