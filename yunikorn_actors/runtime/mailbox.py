"""The inbox of an actor, and the hold of it: one thread at a time sees to what is in there.

A thread that leaves something in an inbox that nobody holds has the hold. It handles what waits, or
hands the hold on to the actor's own thread. The others leave their item and go on: the thread with
the hold looks again after it has let go. So nothing is forgotten, and nobody waits.
"""

import queue
import threading
from collections import deque
from typing import Any

import pykka

from yunikorn_actors.messages.base import Envelope


class Letter:
    """What pykka's loop finds in an inbox, if nobody waits for the outcome."""

    __slots__ = ("message",)
    reply_to = None

    def __init__(self, message: Envelope) -> None:
        self.message = message


class Mailbox:
    """An inbox that counts what it takes, and takes nothing once its actor has ended."""

    def __init__(self) -> None:
        self.received = 0
        self._closed = False
        self._lock = threading.RLock()
        """Held from the look whether it is closed to the putting: an item that came in between
        would be counted and never handled. Nothing is taken out under it: two threads that have
        met at a lock once meet there at each item, and change places every time."""
        self._items: deque[Any] = deque()
        self._hold = threading.Lock()
        """Tried, and never waited for; first the actor's own thread has it."""
        self._hold.acquire()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Here its own thread waits for the hold."""

    def leave(self, item: object) -> bool:
        """Put something in; True if nobody had the hold, which now this thread has."""
        with self._lock:
            if self._closed:
                raise pykka.ActorDeadError("the actor has ended")
            # Counted before it can be taken out: the count of handled messages is never ahead.
            self.received += 1
            self._items.append(item)
        return self._hold.acquire(blocking=False)

    def put(self, item: object) -> None:
        """Take what pykka puts, which the actor's own thread handles."""
        if self.leave(item):
            self.ring()

    def ring(self) -> None:
        """Hand the hold to the actor's own thread."""
        self._bell.put(None)

    def get(self) -> Any:  # noqa: ANN401 - letters, and what pykka puts
        """Take out what is next, on the actor's own thread; wait if it does not have the hold."""
        while not self.keep():
            self._bell.get()
        item = self._items.popleft()
        return Letter(item) if type(item) is Envelope else item

    # -- with the hold

    def keep(self) -> bool:
        """Keep the hold if something is left, or else let go."""
        if self._items:
            return True
        self._hold.release()
        # Looked at again: what came in between was left by a thread that did not get the hold.
        return bool(self._items) and self._hold.acquire(blocking=False)

    def look(self) -> Envelope | None:
        """Return what would be taken out next, if that is an envelope."""
        item = self._items[0] if self._items else None
        return item if type(item) is Envelope else None

    def take_out(self) -> None:
        self._items.popleft()

    def empty(self) -> bool:
        return not self._items

    def close(self) -> None:
        with self._lock:
            self._closed = True
