"""Timers that are armed, the first due first; used by the timer thread and by the simulator.

A timer that is cancelled or armed anew leaves its entry in the heap, where it costs nothing until
it comes up. When such entries are more than half of the heap and a few, the heap is made anew. So
what is kept is bounded by what is armed, however far away the cancelled timers were due.
"""

import heapq
from collections.abc import Iterator
from itertools import count

from yunikorn_actors.messages.base import Envelope

FEW = 16
"""Entries that are not worth a rebuild: a small core would rebuild at each cancelling."""
Key = tuple[str, str]
"""Address and name."""


class ArmedTimers:
    """A name armed again replaces the former; among those due together the first armed is first."""

    def __init__(self) -> None:
        self._armed: dict[Key, tuple[int, Envelope]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._armed)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._armed)

    def arm(self, address: str, name: str, due_ns: int, envelope: Envelope) -> None:
        key, number = (address, name), next(self._numbers)
        self._armed[key] = (number, envelope)
        # The number stands before the key: of those due together the first armed comes first, and
        # an entry of before is told from that of the same name armed anew.
        heapq.heappush(self._heap, (due_ns, number, key))
        self._sift()

    def cancel(self, address: str, name: str) -> None:
        if self._armed.pop((address, name), None) is not None:
            self._sift()

    def cancel_all(self, address: str) -> None:
        """Nobody is at this address any more."""
        for key in [key for key in self._armed if key[0] == address]:
            del self._armed[key]
        self._sift()

    def first_due_ns(self) -> int | None:
        """When the first timer is due that counts; None where none is armed."""
        while self._heap and not self._counts(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def armed(self) -> Iterator[tuple[Key, Envelope]]:
        """Yield each timer that counts, in the order of arming."""
        for key, (_, envelope) in self._armed.items():
            yield key, envelope

    def dues(self, address: str) -> dict[str, int]:
        """Return when the timers of an address are due, by name."""
        return {
            key[1]: due_ns
            for due_ns, number, key in self._heap
            if key[0] == address and self._counts((due_ns, number, key))
        }

    def get(self, key: Key) -> Envelope | None:
        """Return what an armed timer would send."""
        armed = self._armed.get(key)
        return None if armed is None else armed[1]

    def take(self, key: Key) -> tuple[int, Envelope]:
        """Take a timer out before it fires; return its due time, and the message it would send."""
        number, envelope = self._armed.pop(key)
        # A look at all of them: only runs that fire timers out of their order take one by name.
        due_ns = next(entry[0] for entry in self._heap if entry[1] == number)
        self._sift()
        return due_ns, envelope

    def pop(self) -> tuple[str, Envelope]:
        """Take the first out, with its address; one is armed."""
        assert self.first_due_ns() is not None
        _, _, key = heapq.heappop(self._heap)
        _, envelope = self._armed.pop(key)
        self._sift()
        return key[0], envelope

    def _counts(self, entry: tuple[int, int, Key]) -> bool:
        _, number, key = entry
        armed = self._armed.get(key)
        return armed is not None and armed[0] == number

    def _sift(self) -> None:
        """Drop cancelled entries once they are the most: those pay for the rebuild."""
        if len(self._heap) > 2 * len(self._armed) + FEW:
            self._heap = [entry for entry in self._heap if self._counts(entry)]
            heapq.heapify(self._heap)
