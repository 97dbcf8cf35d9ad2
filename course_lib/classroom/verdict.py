"""What a check finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check: right or not, which known mistakes it equals, and why, in words.

    ``mistakes`` names the known mistakes that the learner's part equals: several where they
    compute the same thing or where two were made at once, none where no known one fits.
    ``feedback`` is plain text, paragraphs apart by an empty line, code between backticks.
    """

    passed: bool
    mistakes: tuple[str, ...]
    feedback: str
    attempted: bool = True


class CheckFailed(Exception):
    """A check that did not pass, where ``COURSE_STRICT=1`` asks for an error."""
