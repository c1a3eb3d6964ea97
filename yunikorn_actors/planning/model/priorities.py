"""How many of those below a queue have which priority: the highest of them is what it shows.

A queue may have a thousand leaves, and a priority comes or goes with nearly each application that
has something to try. So what changes is counted, and nobody walks past all the others.
"""

from bisect import bisect_left, insort

NO_PRIORITY = -(2**31)
"""Of what has nothing to try; it counts nowhere."""


class Priorities:
    __slots__ = ("_counts", "_order")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._order: list[int] = []
        """Those that a queue below has, each once, ascending."""

    @property
    def highest(self) -> int:
        return self._order[-1] if self._order else NO_PRIORITY

    @property
    def counts(self) -> dict[int, int]:
        return self._counts

    def change(self, old: int, new: int) -> None:
        """A queue below has another priority now."""
        if new != NO_PRIORITY:
            self._join(new)
        if old != NO_PRIORITY:
            self._part(old)

    def _join(self, priority: int) -> None:
        if priority not in self._counts:
            self._counts[priority] = 0
            insort(self._order, priority)
        self._counts[priority] += 1

    def _part(self, priority: int) -> None:
        self._counts[priority] -= 1
        if not self._counts[priority]:
            del self._counts[priority]
            del self._order[bisect_left(self._order, priority)]
