"""Text for people: names of others made harmless, moments, and tables.

A table is as wide as it is for a pipe, and as wide as the terminal for a terminal. The commands
that ask a service print such tables, and start without what reads recordings.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from yunikorn_actors.recording.text_width import columns, cut, filled
from yunikorn_actors.values.durations import SECOND


def printable(text: str) -> str:
    """Escape what a terminal would act on: control characters, line ends, changes of direction."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def moment(ns: int, digits: int = 3) -> str:
    """Write a time of day as ISO 8601 and RFC 3339 have it; outside the calendar it is the number.

    Digits behind the seconds are cut off and not rounded: a moment is not named before it was.
    """
    seconds, rest_ns = divmod(ns, SECOND)
    # Outside of the calendar the number is better than an error.
    try:
        whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ns)
    return f"{whole}.{rest_ns:09}"[: len(whole) + (1 + digits if digits else 0)] + "Z"


_GAP = "  "
_NARROWEST = 12
"""A column of names is not made narrower; then the lines wrap."""


def table(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], left: int, width: int = 0
) -> Iterator[str]:
    """Yield the lines of a table; the first `left` columns are aligned left, the others right.

    With a width, those at the left are cut until the lines fit.
    """
    # Escaped first: a control character would count as no column.
    all_rows = [head, *(tuple(map(printable, row)) for row in rows)]
    by_column: list[Sequence[str]] = list(zip(*all_rows, strict=True))
    widths = [max(map(columns, column)) for column in by_column]
    if width:
        _narrow(widths, left, sum(widths) + len(_GAP) * (len(widths) - 1) - width)
        by_column[:left] = map(cut, by_column[:left], widths)
    for row in zip(*by_column, strict=True):
        cells = (
            filled(cell, wide, right=number >= left)
            for number, (cell, wide) in enumerate(zip(row, widths, strict=True))
        )
        yield _GAP.join(cells).rstrip()


def fits(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], left: int, width: int) -> bool:
    """Say whether `table` can cut these to that width; any fits where nothing is cut."""
    if not width:
        return True
    widths = [max(map(columns, column)) for column in zip(head, *rows, strict=True)]
    least = sum(
        min(wide, _NARROWEST) if number < left else wide for number, wide in enumerate(widths)
    )
    return least + len(_GAP) * (len(widths) - 1) <= width


def _narrow(widths: list[int], left: int, excess: int) -> None:
    """Narrow the widest column by and by, none below `_NARROWEST`."""
    while excess > 0:
        widest = max(range(left), key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            return
        others = [it for number, it in enumerate(widths[:left]) if number != widest]
        # Down to the next widest, so that columns shrink together.
        floor = max(_NARROWEST, *(it for it in others if it < widths[widest]), 0)
        taken = min(excess, max(1, widths[widest] - floor))
        widths[widest] -= taken
        excess -= taken
