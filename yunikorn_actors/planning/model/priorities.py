"""How many of those below a queue have which priority: the highest of them is what it shows.

A queue may have a thousand leaves, and a priority comes or goes with nearly each application that
has something to try. So what changes is counted, and nobody walks past all the others.
"""

from bisect import bisect_left, insort

NO_PRIORITY = -(2**31)
"""Of what has nothing to try; it counts nowhere."""


class Priorities:
    __slots__ = ("_counts", "_order", "highest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._order: list[int] = []
        """Those that a queue below has, each once, ascending."""
        self.highest = NO_PRIORITY

    @property
    def counts(self) -> dict[int, int]:
        return self._counts

    def change(self, old: int, new: int) -> None:
        """A queue below has another priority now."""
        counts, order = self._counts, self._order
        if new != NO_PRIORITY:
            if new not in counts:
                counts[new] = 0
                insort(order, new)
            counts[new] += 1
        if old != NO_PRIORITY:
            counts[old] -= 1
            if not counts[old]:
                del counts[old], order[bisect_left(order, old)]
        self.highest = order[-1] if order else NO_PRIORITY
