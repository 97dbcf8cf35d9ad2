"""Exercises on positions: the sinusoids, and the embedding that stands beside them."""

import math

import torch
import torch.nn.functional as F

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.judge_parts import Mistake, Probe
from course_lib.transformer.positions import scaled_embedding, sinusoidal_positions


def _waves(
    max_len, d_model, *, base=10000.0, start=0, exponent=lambda j, d: (j - j % 2) / d, divide=True,
    swap=False, dtype=torch.float64, turn=1.0,
):  # fmt: skip
    """The table with one piece changed: the bank's mistakes are made of it."""
    position = torch.arange(start, start + max_len, dtype=torch.float64)[:, None]
    feature = torch.arange(d_model, dtype=torch.float64)
    rate = base ** exponent(feature, d_model)
    position = position.to(dtype).double()
    angle = turn * (position / rate if divide else position * rate)
    even = feature % 2 == (1 if swap else 0)
    return torch.where(even, angle.sin(), angle.cos()).float()


def _halves(max_len, d_model):
    angle = torch.arange(max_len, dtype=torch.float64)[:, None] / 10000.0 ** (
        torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    )
    return torch.cat([angle.sin(), angle.cos()], dim=1)[:, :d_model].float()


def _log10(max_len, d_model):
    j = torch.arange(d_model, dtype=torch.float64)
    rate = torch.exp((j - j % 2) * math.log10(10000.0) / d_model)
    angle = torch.arange(max_len, dtype=torch.float64)[:, None] / rate
    return torch.where(j % 2 == 0, angle.sin(), angle.cos()).float()


def _pair_assignment(max_len, d_model):
    """The two-slice form of many tutorials: its last line fails for an odd d_model."""
    table = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def _degrees(max_len, d_model):
    j = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(max_len, dtype=torch.float64)[:, None] / 10000.0 ** ((j - j % 2) / d_model)
    angle = torch.deg2rad(angle)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos()).float()


def _sine_only(max_len, d_model):
    j = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(max_len, dtype=torch.float64)[:, None] / 10000.0 ** ((j - j % 2) / d_model)
    return angle.sin().float()


def _saw_row_zero(seen):
    yours = seen.yours("table")
    if not seen.comparable("table") or len(yours) == 0:
        return None
    row, right = yours[0, :4].tolist(), seen.right("table")[0, :4].tolist()
    if row == right:
        return None
    return (
        f"Position 0 has the angle 0 at every wave, so its row begins {right}. Yours begins "
        f"{[round(x, 4) for x in row]}."
    )


def _saw_shape(seen):
    yours, right = seen.yours("table"), seen.right("table")
    if yours is None or right is None or yours.shape == right.shape:
        return None
    return (
        f"For max_len {seen.args['max_len']} and d_model {seen.args['d_model']} your table has "
        f"shape {tuple(yours.shape)}, expected {tuple(right.shape)}."
    )


def _saw_repeats(seen):
    yours, right = seen.yours("table"), seen.right("table")
    if not seen.comparable("table") or len(yours) < 2050:
        return None
    if torch.equal(yours[2048], yours[2049]) and not torch.equal(right[2048], right[2049]):
        return "Rows 2048 and 2049 of your table are the same."
    return None


SINUSOIDAL_POSITIONS = Exercise(
    name="sinusoidal_positions",
    signature="sinusoidal_positions(max_len, d_model)",
    arguments=("max_len", "d_model"),
    results=("table",),
    reference=sinusoidal_positions,
    probes=(
        Probe(name="seven positions of ten features", make=lambda: (7, 10)),
        Probe(name="more positions than features", make=lambda: (53, 6)),
        Probe(name="as many positions as features", make=lambda: (12, 12)),
        Probe(name="an odd width", make=lambda: (5, 7), core=False),
        Probe(name="a width of one", make=lambda: (5, 1), core=False),
        Probe(name="two thousand positions and more", make=lambda: (2053, 4), core=False),
    ),
    mistakes=(
        Mistake(
            name="cosine_uses_odd_index",
            title="gives the cosine the exponent (2i+1)/d",
            means="Sine and cosine of a pair then have two different wavelengths, and moving "
            "along is no longer a rotation of the pair.",
            next_step="Features 2i and 2i+1 share one angle.",
            versions=(lambda n, d: _waves(n, d, exponent=lambda j, d: j / d),),
        ),
        Mistake(
            name="cosine_uses_next_pair",
            title="gives the cosine the exponent (2i+2)/d",
            means="The cosine has the wavelength of the next pair.",
            next_step="Features 2i and 2i+1 share one angle.",
            versions=(lambda n, d: _waves(n, d, exponent=lambda j, d: (j + j % 2) / d),),
        ),
        Mistake(
            name="exponent_halved",
            title="uses the exponent i/d where the formula has 2i/d",
            means="The wavelengths grow half as fast: the longest is near 100 times the shortest, "
            "not near 10,000 times.",
            next_step="i counts pairs. Which exponent should the last pair have, about?",
            versions=(lambda n, d: _waves(n, d, exponent=lambda j, d: (j - j % 2) / 2 / d),),
        ),
        Mistake(
            name="column_number_as_i",
            title="takes the column's number for i: exponent 2j/d in column j",
            means="i counts pairs, and columns 2i and 2i+1 belong to pair i. Here every column has "
            "a wave of its own, and the last ones are far too slow.",
            next_step="Which pair does column 5 belong to?",
            versions=(lambda n, d: _waves(n, d, exponent=lambda j, d: 2 * j / d),),
        ),
        Mistake(
            name="turns_not_radians",
            title="multiplies the angle by 2 pi",
            means="The formula has no pi: the angle is in radians already.",
            next_step="What is the angle of position 1 in the first pair?",
            versions=(lambda n, d: _waves(n, d, base=10000.0, turn=2 * math.pi),),
        ),
        Mistake(
            name="exponent_doubled",
            title="uses the exponent 4i/d where the formula has 2i/d",
            means="The feature's number was doubled although it was even already.",
            next_step="If your range runs 0, 2, 4, ..., it holds 2i already.",
            versions=(lambda n, d: _waves(n, d, exponent=lambda j, d: 2 * (j - j % 2) / d),),
        ),
        Mistake(
            name="base_1000",
            title="uses the base 1000",
            means="The slow waves are up to ten times too short.",
            next_step="Count the zeros.",
            versions=(lambda n, d: _waves(n, d, base=1000.0),),
        ),
        Mistake(
            name="base_100000",
            title="uses the base 100000",
            means="The slow waves are up to ten times too long.",
            next_step="Count the zeros.",
            versions=(lambda n, d: _waves(n, d, base=100000.0),),
        ),
        Mistake(
            name="multiplies_instead_of_divides",
            title="multiplies the position by 10000^(2i/d)",
            means="The frequencies grow along the features where they should shrink.",
            next_step="Is the last pair the fastest or the slowest wave?",
            versions=(lambda n, d: _waves(n, d, divide=False),),
        ),
        Mistake(
            name="log10",
            title="uses the base-10 logarithm under `exp`",
            means="`exp` undoes the natural logarithm only.",
            next_step="Which logarithm belongs to exp?",
            versions=(_log10,),
        ),
        Mistake(
            name="sine_cosine_swapped",
            title="puts the cosine in even columns and the sine in odd ones",
            saw=_saw_row_zero,
            means="The same numbers, in the other order within each pair.",
            next_step="The row of position 0 tells: sin 0 is 0, cos 0 is 1.",
            versions=(lambda n, d: _waves(n, d, swap=True),),
        ),
        Mistake(
            name="positions_start_at_one",
            title="gives row 0 the code of position 1",
            saw=_saw_row_zero,
            means="Everything is one step late.",
            next_step="Positions count from 0.",
            versions=(lambda n, d: _waves(n, d, start=1),),
        ),
        Mistake(
            name="transposed",
            title="returns (d_model, max_len)",
            saw=_saw_shape,
            means="Positions are the rows, so that the table can be added to (T, D).",
            next_step="Swap the axes.",
            versions=(lambda n, d: _waves(n, d).T,),
        ),
        Mistake(
            name="one_row_short",
            title="returns max_len - 1 rows",
            saw=_saw_shape,
            means="The last position has no code.",
            next_step="Where does your range end?",
            versions=(lambda n, d: _waves(max(n - 1, 0), d),),
        ),
        Mistake(
            name="rounded_positions",
            title="counts the positions in float16",
            saw=_saw_repeats,
            means="float16 has no odd numbers above 2048: positions collide.",
            next_step="Count in float32 or finer.",
            versions=(lambda n, d: _waves(n, d, dtype=torch.float16),),
        ),
        Mistake(
            name="extra_batch_axis",
            title="returns (1, max_len, d_model)",
            saw=_saw_shape,
            means="Many modules keep the table so, ready to be added. Here it has two axes; "
            "broadcasting adds the third.",
            next_step="Leave out the unsqueeze at the end.",
            versions=(lambda n, d: _waves(n, d)[None],),
        ),
        Mistake(
            name="degrees",
            title="takes the angles for degrees",
            means="sin and cos count in radians.",
            next_step="No conversion is needed.",
            versions=(_degrees,),
        ),
        Mistake(
            name="sine_only",
            title="uses the sine for every feature",
            means="A sine alone does not say whether its wave rises or falls, and a shift is no "
            "longer a rotation.",
            next_step="Odd features take the cosine of the same angle.",
            versions=(_sine_only,),
        ),
        Mistake(
            name="odd_width_fails",
            title="has one cosine too many where d_model is odd",
            means="With 7 features there are 4 sines and 3 cosines.",
            next_step="Cut the cosines to the number of odd columns.",
            versions=(_pair_assignment,),
        ),
        Mistake(
            name="sine_half_then_cosine_half",
            title="puts all sines first and all cosines after them",
            means="tensor2tensor and others order them so: the same information in other columns.",
            next_step="Here sine and cosine alternate, as in the paper's formula.",
            versions=(_halves,),
            convention=True,
        ),
    ),
)


def _numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _saw_ratio(seen):
    yours, right = seen.yours("x"), seen.right("x")
    if not seen.comparable("x") or not right.any():
        return None
    place = right.abs().argmax()
    ratio = (yours.flatten()[place] / right.flatten()[place]).item()
    if not torch.allclose(yours, right * ratio, rtol=1e-3, atol=1e-5) or abs(ratio - 1) < 1e-3:
        return None
    width = seen.args["table"].size(-1)
    return f"With D = {width} your result is {ratio:.4g} times the right one."


def _one_hot(ids, table):
    return F.one_hot(ids, len(table)).float() @ table


SCALED_EMBEDDING = Exercise(
    name="scaled_embedding",
    signature="scaled_embedding(ids, table)",
    arguments=("ids", "table"),
    results=("x",),
    reference=scaled_embedding,
    properties=(_saw_ratio,),
    probes=(
        Probe(
            name="two sentences of three tokens",
            make=lambda: (torch.tensor([[3, 0, 12], [5, 5, 1]]), _numbers(13, 7)),
            grads=True,
        ),
        Probe(name="one token", make=lambda: (torch.tensor(4), _numbers(5, 11, seed=1))),
        Probe(
            name="three axes of ids",
            make=lambda: (torch.ones(2, 3, 5, dtype=torch.long), _numbers(3, 2, seed=2)),
        ),
        Probe(
            name="double precision",
            make=lambda: (torch.tensor([2, 0]), _numbers(3, 5, seed=3).double()),
            core=False,
        ),
    ),
    mistakes=(
        Mistake(
            name="not_scaled",
            title="looks the rows up and does not scale them",
            saw=_saw_ratio,
            means="The factor sqrt(D) is missing.",
            next_step="Which factor does section 3.4 of the paper name?",
            versions=(lambda ids, table: table[ids],),
        ),
        Mistake(
            name="divided",
            title="divides by sqrt(D)",
            saw=_saw_ratio,
            means="That is attention's scale, which makes scores smaller. Here the rows are made "
            "larger.",
            next_step="Which way does section 3.4 go?",
            versions=(lambda ids, table: table[ids] / math.sqrt(table.size(-1)),),
        ),
        Mistake(
            name="scaled_by_d_model",
            title="multiplies by D",
            saw=_saw_ratio,
            means="The square root is missing.",
            next_step="Compare with section 3.4.",
            versions=(lambda ids, table: table[ids] * table.size(-1),),
        ),
        Mistake(
            name="scaled_by_vocabulary",
            title="multiplies by the square root of the number of tokens in the table",
            saw=_saw_ratio,
            means="The first axis of the table is the vocabulary, the last one the width.",
            next_step="Which size is D?",
            versions=(lambda ids, table: table[ids] * math.sqrt(len(table)),),
        ),
        Mistake(
            name="normalised",
            title="brings every row to length sqrt(D)",
            means="The rows keep their direction and lose their length; the paper multiplies by "
            "one number, the same for all.",
            next_step="No norm is needed.",
            versions=(
                lambda ids, table: F.normalize(table[ids], dim=-1) * math.sqrt(table.size(-1)),
            ),
        ),
        Mistake(
            name="fixed_width",
            title="multiplies by the root of 512, whatever the width",
            saw=_saw_ratio,
            means="512 is the width of the paper's base model. This table has another.",
            next_step="Take the width from the table.",
            versions=(lambda ids, table: table[ids] * math.sqrt(512),),
        ),
        Mistake(
            name="ids_from_one",
            title="takes row id - 1",
            means="Ids count from 0: id 0 is row 0.",
            next_step="Index with the ids as they are.",
            versions=(lambda ids, table: table[ids - 1] * math.sqrt(table.size(-1)),),
        ),
        Mistake(
            name="table_scaled_in_place",
            title="scales the caller's table itself",
            means="Called twice it scales twice, and the model's weights have changed.",
            next_step="Scale what you looked up.",
            versions=(lambda ids, table: table.mul_(math.sqrt(table.size(-1)))[ids],),
        ),
        Mistake(
            name="gradient_cut",
            title="takes the rows without their gradient",
            means="The table would never learn.",
            next_step="Leave out `detach`, `data`, `no_grad`, or `from_pretrained`, which freezes.",
            versions=(lambda ids, table: table.detach()[ids] * math.sqrt(table.size(-1)),),
        ),
        Mistake(
            name="float32_result",
            title="returns float32 whatever the table is",
            means="A float64 table comes back coarser than it was.",
            next_step="A look-up keeps the dtype by itself.",
            versions=(
                lambda ids, table: table[ids].float() * math.sqrt(table.size(-1)),
                lambda ids, table: _one_hot(ids, table.float()) * math.sqrt(table.size(-1)),
            ),
        ),
    ),
)
