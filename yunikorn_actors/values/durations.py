"""Durations in nanoseconds, the unit of all times inside."""

from typing import Final

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000 * MILLISECOND
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
NEVER_NS: Final = 2**63 - 1
"""A time that does not come: of what is not due, and the end of what has declared no run time."""
LONGEST_S: Final = 1e9
"""So many seconds a wait or a simulation takes at most: about thirty years."""
