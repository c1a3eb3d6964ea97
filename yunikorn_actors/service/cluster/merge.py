"""Answers of several cores as one: numbers add up, lists are joined, the rest stays apart."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

GREATEST: Final = frozenset({"worst_ns", "format", "as_of"})
"""Fields of which the greatest counts, not the sum."""
COUNTS: Final = "counts"
"""Field with a histogram: its numbers are added place by place."""


def merged(answers: Sequence[Any]) -> Any:  # noqa: ANN401 - plain values
    return reduce(lambda a, b: _both("", a, b), answers)


def _both(name: str, one: Any, other: Any) -> Any:  # noqa: ANN401 - plain values
    # A part that knows nothing adds nothing.
    match one, other:
        case None, _:
            return other
        case _, None:
            return one
        case bool(), bool():
            return one and other
        # After truth values, which are numbers in Python as well.
        case int() | float(), int() | float():
            return max(one, other) if name in GREATEST else one + other
        case Mapping(), Mapping():
            # What only one of them has is kept: a partition may have what others have not.
            return {
                key: _both(key, one[key], other[key])
                if key in one and key in other
                else one.get(key, other.get(key))
                for key in {**one, **other}
            }
        case (list() | tuple(), list() | tuple()) if name == COUNTS:
            return [a + b for a, b in zip(one, other, strict=True)]
        case list() | tuple(), list() | tuple():
            return [*one, *other]
    return one or other
