"""Times, for people to read."""

from datetime import UTC, datetime
from typing import Final

from yunikorn_actors.values.durations import SECOND


def moment(ns: int) -> str:
    """Write a time; outside the calendar it is the number."""
    seconds, rest_ns = divmod(ns, SECOND)
    try:
        written = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ns)
    return f"{written}.{rest_ns // 1_000_000:03}Z"


_AGES: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def age(ns: int) -> str:
    """Write how long it is, in the largest unit of which there are two; clocks may differ."""
    seconds = max(0, ns // SECOND)
    found = (f"{seconds // size}{unit}" for unit, size in _AGES if seconds >= 2 * size)
    return next(found, f"{seconds}s")
