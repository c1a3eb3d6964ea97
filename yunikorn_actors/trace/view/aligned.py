"""Two runs above each other: which messages share a column, and which are different."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from yunikorn_actors.trace.compare_runs import align, compare, comparison_lines
from yunikorn_actors.trace.view.run_data import NONE, Shown

SAME: Final = 0
CHANGED: Final = 1
ONLY_HERE: Final = 2

Pair = tuple[int, int]
"""Messages of the one and the other run, each by its place in the columns of its run."""


class Side(Struct, kw_only=True):
    """An entry of each list is about one message of a run."""

    column: list[int]
    partner: list[int]
    """The message of the other run that tells of the same thing, or NONE."""
    difference: list[int]
    """SAME, also where nothing happened that can be compared, CHANGED or ONLY_HERE."""


class Aligned(Struct, kw_only=True):
    sides: tuple[Side, Side]
    width: int
    """How many columns there are."""
    lines: list[str]
    """What `trace diff` says."""


def aligned(one: Shown, other: Shown, records: tuple[list[int], list[int]]) -> Aligned:
    """Lay two pictures side by side, from the records of their messages."""
    found = align(one.path, other.path)
    places = [{record: place for place, record in enumerate(it)} for it in records]
    same, changed = (_placed(pairs, places) for pairs in (found.same, found.changed))
    pairs = dict(sorted((*changed, *same)))
    sides = [
        Side(column=[], partner=[NONE] * len(it), difference=[SAME] * len(it)) for it in records
    ]
    for here, there in pairs.items():
        sides[0].partner[here], sides[1].partner[there] = there, here
    for pair in changed:
        for side, place in zip(sides, pair, strict=True):
            side.difference[place] = CHANGED
    for side, numbers, known in zip(sides, found.only, places, strict=True):
        for record in numbers:
            if record in known:
                side.difference[known[record]] = ONLY_HERE
    sides[0].column, sides[1].column, width = columns(
        in_order(pairs.items()), (len(records[0]), len(records[1]))
    )
    names, said = (Path(one.name), Path(other.name)), compare(one.path, other.path)
    return Aligned(
        sides=(sides[0], sides[1]), width=width, lines=list(comparison_lines(names, said))
    )


def _placed(pairs: Iterable[Pair], places: Sequence[dict[int, int]]) -> list[Pair]:
    one, other = places
    return [(one[a], other[b]) for a, b in pairs if a in one and b in other]


def in_order(pairs: Iterable[Pair]) -> list[Pair]:
    """Take as many pairs as can stand in one order in both runs; they are sorted by the first."""
    ends: list[int] = []
    """The lowest second of the last pair of a series, by its length."""
    last: list[int] = []
    all_pairs = list(pairs)
    before: list[int] = []
    for number, (_, other) in enumerate(all_pairs):
        length = bisect_left(ends, other)
        before.append(last[length - 1] if length else NONE)
        ends[length : length + 1] = [other]
        last[length : length + 1] = [number]
    taken: list[Pair] = []
    number = last[-1] if last else NONE
    while number != NONE:
        taken.append(all_pairs[number])
        number = before[number]
    return taken[::-1]


def columns(shared: Iterable[Pair], counts: Pair) -> tuple[list[int], list[int], int]:
    """Give each message a column: shared ones the same, the others stand side by side between."""
    one: list[int] = []
    other: list[int] = []
    column = 0
    for first, second in (*shared, counts):
        between = (first - len(one), second - len(other))
        one += range(column, column + between[0])
        other += range(column, column + between[1])
        column += max(between)
        one.append(column)
        other.append(column)
        column += 1
    return one[:-1], other[:-1], column - 1
