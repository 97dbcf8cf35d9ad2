"""An exercise: a part of the library that the learner builds, and how to tell whether it is right.

To add one, make a module in ``course_lib.classroom.exercises``: see there.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property

import torch

from course_lib.classroom import judge
from course_lib.classroom.judge_observe import call_function, observe
from course_lib.classroom.judge_parts import Mistake, Outcome, Pair, Probe, Seen
from course_lib.classroom.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A part to build, its probes, and its bank of known mistakes.

    ``signature``: as the learner writes it. ``arguments`` and ``results``: the names of what it
    takes and gives, in order; several results come as a tuple. ``reference``: the library's part.
    ``properties``: functions of one probe's Seen that return a true sentence about what is wrong
    there, or None; ``relations`` do so from all probes at once. ``pairs``: two mistakes at once,
    tried where no single one fits. ``call``: how a candidate is called on a probe
    (``call_module`` for modules). ``gives_numbers``: a plain number is as good a result as a
    tensor with one entry.
    """

    name: str
    signature: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    reference: Callable
    probes: tuple[Probe, ...]
    mistakes: tuple[Mistake, ...] = ()
    properties: tuple[Callable[[Seen], str | None], ...] = ()
    relations: tuple[Callable[[list[Seen]], str | None], ...] = ()
    pairs: Callable[[], Iterable[Pair]] = tuple
    call: Callable = call_function
    gives_numbers: bool = False
    _outcomes: dict = field(default_factory=dict, repr=False, compare=False)

    def judge(self, fn: Callable, *, time_limit: float | None = None) -> Verdict:
        """Compare ``fn`` with the library's part; show nothing.

        ``time_limit``: seconds that one call may take.
        """
        return judge.judge(self, fn, time_limit=time_limit)

    def expected(self, probe: Probe) -> Outcome:
        return self.outcome(self.reference, probe)

    def outcome(self, version: Callable, probe: Probe) -> Outcome:
        """What one of the course's own functions does on a probe; computed once."""
        key = version, probe.name
        if key not in self._outcomes:
            # Kept for all later checks: what mode the caller is in must not show in it.
            with ExitStack() as stack:
                stack.enter_context(torch.inference_mode(False))
                stack.enter_context(torch.enable_grad())
                if torch.get_default_device().type != "cpu":  # a mode that slows every call
                    stack.enter_context(torch.device("cpu"))
                self._outcomes[key] = observe(self, version, probe)
        return self._outcomes[key]

    @cached_property
    def all_pairs(self) -> tuple[Pair, ...]:
        return tuple(self.pairs())
