"""What an exercise is made of: probes, known mistakes, and the outcome of one call."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One input on which the learner's part is compared with the library's.

    ``name`` completes "on ...": "two sentences with a causal mask". ``make`` gives the positional
    arguments and leaves the global random state alone. ``core`` marks ordinary inputs: a mistake
    is still recognised where a learner's part equals it on all of these and differs at the edges.
    ``grads`` compares the gradients of the floating arguments, and of a module's parameters.
    ``raises`` is the error that the part must raise here, ``names`` what its message must name.
    ``build`` is what a module's
    constructor gets.
    """

    name: str
    make: Callable[[], tuple]
    core: bool = True
    grads: bool = False
    raises: type[Exception] | None = None
    names: tuple[str, ...] = ()
    build: tuple = ()

    @cached_property
    def args(self) -> tuple:
        return self.make()


@dataclass(frozen=True)
class Raised:
    """An exception of a learner's code, with the line of theirs that it came from.

    ``by_own_line``: that line raised it, not something that it called.
    """

    kind: str
    message: str
    line_number: int | None = None
    line: str = ""
    kinds: tuple[str, ...] = ()
    by_own_line: bool = False


@dataclass(frozen=True)
class Called:
    """What calling a candidate gave: its result, a module's parameters by name, a complaint.

    ``watched``: what an exercise's ``call`` noted on the way, compared by ``==``.
    """

    result: object
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)
    complaint: str = ""
    watched: object = None


class Complaint(Exception):
    """A candidate that can't be called as asked; the message is a sentence for the learner."""


@dataclass(frozen=True)
class Outcome:
    """What one call on one probe gave; ``grads`` are those of ``moved``, by name."""

    values: tuple[torch.Tensor, ...] = ()
    grads: tuple[torch.Tensor | None, ...] = ()
    moved: tuple[str, ...] = ()
    complaint: str = ""
    error: Raised | None = None
    changed: tuple[str, ...] = ()
    watched: object = None


@dataclass(frozen=True)
class Seen:
    """One probe with what the learner's part and the library's gave: the ground of a sentence."""

    probe: Probe
    names: tuple[str, ...]
    results: tuple[str, ...]
    outcome: Outcome
    expected: Outcome

    @property
    def args(self) -> dict:
        return dict(zip(self.names, self.probe.args, strict=False))

    def yours(self, name: str) -> torch.Tensor | None:
        """The learner's result of that name, or None where there is none of that place."""
        return self._pick(self.outcome, name)

    def right(self, name: str) -> torch.Tensor | None:
        return self._pick(self.expected, name)

    def comparable(self, name: str) -> bool:
        """Whether the learner's result of that name has the right shape."""
        yours, right = self.yours(name), self.right(name)
        return yours is not None and right is not None and yours.shape == right.shape

    def _pick(self, outcome: Outcome, name: str) -> torch.Tensor | None:
        place = self.results.index(name)
        return outcome.values[place] if place < len(outcome.values) else None


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A known way to get a part wrong.

    ``name``: snake_case. ``title``: completes "your function ...", a verb phrase, true of any
    function that equals it. ``saw``: what we saw, with numbers from the learner's own results; it
    is tried on each probe that went wrong and returns None where it does not hold there, so that
    it never says a false thing. ``means``: what that means. ``next_step``: not the answer.
    ``versions``: faulty implementations; a learner's part that equals one on every probe has
    made this mistake. ``recognise``: for what no fixed implementation shows (randomness): told
    all that was seen, it says whether this is the mistake. ``evident``: asked where no version of
    any mistake agrees; told all that was seen, it gives a true sentence that shows this mistake,
    however the rest was written, or None. ``convention``: right elsewhere.
    """

    name: str
    title: str
    means: str
    next_step: str
    saw: Callable[[Seen], str | None] | None = None
    versions: tuple[Callable, ...] = ()
    recognise: Callable[[list[Seen]], bool] | None = None
    evident: Callable[[list[Seen]], str | None] | None = None
    convention: bool = False


@dataclass(frozen=True)
class Pair:
    """Two mistakes made at once, with the function that makes both."""

    mistakes: tuple[Mistake, Mistake]
    version: Callable = field(compare=False)
