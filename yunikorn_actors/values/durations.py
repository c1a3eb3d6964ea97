"""Durations in nanoseconds, the unit of all times inside, and how one is written for people."""

from typing import Final

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000 * MILLISECOND
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
NEVER_NS: Final = 2**63 - 1
"""A time that does not come: of what is not due, and the end of what has declared no run time."""
LONGEST_S: Final = 1e9
"""So many seconds a wait or a simulation takes at most: about thirty years."""


def duration(seconds: float) -> str:
    """Write so many seconds as people do: `2.5 s`, `1 min 30 s`, `3 h`."""
    if seconds < MINUTE // SECOND:
        return f"{round(seconds, 3):g} s"
    hours, rest = divmod(round(seconds), HOUR // SECOND)
    minutes, rest = divmod(rest, MINUTE // SECOND)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def duration_of(ns: int) -> str:
    """Write it to a tenth of a second: what asks wait for is not known more exactly."""
    return duration(round(ns / SECOND, 1))
