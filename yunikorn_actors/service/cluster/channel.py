"""The channel of a partition: what waits at its core until its portal has it.

The portal asks again and again, each time with the number of the last entry that it has. So an
answer that is lost on the way is given once more, and nothing comes twice. An entry leaves once it
is acknowledged.
"""

import asyncio
import threading
import time
from collections import deque
from itertools import islice
from typing import Any, Final, NamedTuple

ROOM: Final = 1_000
"""Entries that may wait; then the thread that brings more waits as well."""
BATCH: Final = 500


class Entry(NamedTuple):
    number: int
    kind: str
    value: Any


class Channel:
    """Filled on threads of a core, emptied on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.last = 0
        """The number of the newest entry."""
        self._changed = threading.Condition()
        self._kept: deque[Entry] = deque()
        self._is_bounded = True
        self._is_closed = False
        self._news = asyncio.Event()
        self.asked_s = time.monotonic()
        """When the portal has asked last."""

    # -- on threads of the core

    def put(self, kind: str, value: object, *, waits: bool = True) -> int:
        """Add an entry and return its number; wait while there is no room."""
        with self._changed:
            # Bounded: a portal that is gone must not fill the memory; the core waits instead.
            while waits and self._is_bounded and len(self._kept) >= ROOM:
                self._changed.wait()
            self.last += 1
            if not self._is_closed:
                self._kept.append(Entry(self.last, kind, value))
                # On the loop of the host, where the portal waits.
                self._loop.call_soon_threadsafe(self._news.set)
            return self.last

    @property
    def waiting(self) -> int:
        """How many entries wait to be acknowledged."""
        with self._changed:
            return len(self._kept)

    def lift(self) -> None:
        """Take whatever comes: the thread that brings it is needed elsewhere."""
        with self._changed:
            self._is_bounded = False
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody will ask any more: nothing is kept, and nobody waits for room."""
        with self._changed:
            self._is_bounded, self._is_closed = False, True
            self._kept.clear()
            self._changed.notify_all()
            self._loop.call_soon_threadsafe(self._news.set)

    # -- on the loop

    async def take(self, acknowledged: int, patience_s: float) -> list[Entry]:
        """Return the next entries, none if none comes in time; up to that number they leave."""
        # Read by `_look`: a portal that asks no more is gone.
        self.asked_s = time.monotonic()
        with self._changed:
            # What it has is let go of here and nowhere else, as an answer may be lost.
            while self._kept and self._kept[0].number <= acknowledged:
                self._kept.popleft()
            self._changed.notify_all()
        found = self._first()
        if not found:
            try:
                await asyncio.wait_for(self._news.wait(), patience_s)
            except TimeoutError:
                return []
            found = self._first()
        return found

    def _first(self) -> list[Entry]:
        # Cleared under the lock that guards the entries: one that comes later sets it again.
        with self._changed:
            self._news.clear()
            return list(islice(self._kept, BATCH))
