"""The exercise on greedy decoding, judged with a model that notes how it is called."""

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.greedy_bank import MISTAKES
from course_lib.classroom.exercises.greedy_spy import Script, call_with_spy
from course_lib.classroom.judge_parts import Probe, Seen
from course_lib.classroom.properties import where
from course_lib.training.decoding import greedy_decode

BOS, EOS = 1, 2


def _did_to_the_model(seen: Seen) -> str | None:
    """Everything that the spy noted, in one sentence."""
    faults = [text for _, text in seen.outcome.watched or ()]
    return f"{where(seen)}: {'; '.join(faults)}." if faults else None


def _first_wrong_token(seen: Seen) -> str | None:
    yours, right = seen.yours("tokens"), seen.right("tokens")
    if yours is None or yours.dim() != 2 or len(yours) != len(right):
        return None
    for row, (mine, wanted) in enumerate(zip(yours.tolist(), right.tolist(), strict=True)):
        if mine != wanted:
            return f"{where(seen)}, row {row} of yours is {mine}, expected {wanted}."
    return None


def _unequal_rows(seen: Seen) -> str | None:
    """A finished row that is not filled with eos."""
    yours = seen.yours("tokens")
    if yours is None or yours.dim() != 2 or yours.is_floating_point():
        return None
    for row in yours.tolist():
        if EOS in row[1:]:
            end = row.index(EOS, 1)
            if set(row[end:]) != {EOS}:
                return f"{where(seen)}, a row goes on after eos ({EOS}): {row}."
    return None


def _probe(name, *rows, max_len=9, batch=None, bos=BOS, eos=EOS, core=True, **script) -> Probe:
    sizes = () if batch is None else (batch,)
    args = Script(rows, **script), bos, eos, max_len, *sizes
    return Probe(name=name, make=lambda: args, core=core)


EXERCISE = Exercise(
    name="greedy_decode",
    signature="greedy_decode(model, bos, eos, max_len, batch=1)",
    arguments=("model", "bos", "eos", "max_len", "batch"),
    results=("tokens",),
    reference=greedy_decode,
    call=call_with_spy,
    probes=(
        _probe("one row that ends", (5, 7, 4, EOS)),
        _probe("three rows that end at different steps", (5, EOS), (6, 4, 8, 3, EOS), (9, 7, EOS),
               batch=3),
        _probe("two rows, one of which never ends", (5, 4, EOS), (6, 7, 8, 9, 10, 6, 7, 8, 9),
               batch=2, max_len=7),
        _probe("a model in eval mode", (7, 9, EOS), (3, EOS), batch=2, training=False),
        _probe("other ids for bos and eos", (5, 7, 3), (8, 3), batch=2, bos=4, eos=3),
        _probe("a plain function as the model", (5, 7, EOS), module=False, core=False),
        _probe("max_len of 1", (5, EOS), max_len=1, core=False),
        _probe("eos as the first token", (EOS,), (EOS,), batch=2, core=False),
        _probe("eos at the very last place", (5, 7, EOS), max_len=4, core=False),
    ),
    mistakes=MISTAKES,
    properties=(_did_to_the_model, _unequal_rows, _first_wrong_token),
)  # fmt: skip
