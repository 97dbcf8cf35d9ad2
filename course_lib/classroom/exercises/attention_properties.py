"""What an attention that fits no known mistake does wrong, in true sentences."""

from course_lib.classroom.exercises.attention_evidence import (
    alone,
    axis_sums,
    dead_row,
    future_leak,
    hidden_allowed,
    leak,
    negative,
    not_the_mix,
    outside_hull,
    row_sums,
    temperature,
)

_by_query = axis_sums(-2, "queries")
_by_head = axis_sums(-3, "heads")


def sums(seen):
    """Where the weights sum to one, if not over the keys."""
    return _by_query(seen) or _by_head(seen) or row_sums(seen)


def looks(seen):
    """Who is looked at that should not be."""
    return future_leak(seen) or leak(seen) or hidden_allowed(seen)


PROPERTIES = (sums, looks, negative, temperature, dead_row, not_the_mix, outside_hull)
RELATIONS = (alone,)
