"""The backlog of a resource manager: requests that were taken and are not handled yet.

The gateway counts what it takes. Now and then a mark follows the requests to where they are
handled, waits there until their answers have been taken, and comes back with its count. Above the
bound a caller waits at the gateway, so the mailboxes of the core stay bounded however fast a
resource manager sends, and however slowly it listens (R-139).
"""

import sys
import threading
from collections.abc import Callable

from yunikorn_actors.machines.rm_proxy.flow_control import marked_each


class Backlog:
    """Counts for callers on several threads; a signal handler may come in between."""

    def __init__(self, unhandled_max: int) -> None:
        # One lock with a condition on it. It is reentrant, because a signal handler runs on a
        # thread that may hold it.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._max = unhandled_max
        self._marked_each = marked_each(unhandled_max)
        self._taken = 0
        self._handled = 0
        self._is_closed = False
        self._waiting: list[Callable[[], None]] = []
        """Called once each, as soon as nobody has to wait."""

    @property
    def unhandled(self) -> int:
        """The most requests that may be unhandled; all since the last mark count."""
        return max(0, self._taken - self._handled)

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def is_full(self) -> bool:
        # Looked at without the lock, once for every request: what is a moment old lets one more in,
        # or has a caller look again in `wait`, which holds the lock.
        return self._taken - self._handled > self._max and not self._is_closed

    def take(self) -> int:
        """Count one more request; return the number for a mark, or 0 where no mark is due."""
        # The order of numbers has to be that of the requests: the caller holds
        # `RegisteredManagers.order` too, so the mark goes behind the request that it counts.
        with self._lock:
            self._taken += 1
            return 0 if self._taken % self._marked_each else self._taken

    def handled(self, count: int) -> None:
        """Take the number of a mark; that of a call which a signal interrupted may come late."""
        with self._changed:
            self._handled = max(self._handled, count)
            self._let_go()

    def bound(self, unhandled_max: int) -> int:
        """Set another bound; return the number for a mark, as the last mark may be long ago."""
        with self._changed:
            if self._is_closed:
                return 0
            self._max = unhandled_max
            self._marked_each = marked_each(unhandled_max)
            self._let_go()
            return self._taken

    def wait(self) -> None:
        with self._changed:
            # A loop: several callers wake together, and one of them may fill the backlog again.
            while self.is_full:
                self._changed.wait()

    def when_room(self, call: Callable[[], None]) -> None:
        """Make a call that does not block as soon as no caller has to wait; perhaps at once."""
        with self._changed:
            self._waiting.append(call)
            self._let_go()

    def _let_go(self) -> None:
        """Called with the lock held, after whatever may have made room."""
        if self.is_full:
            return
        self._changed.notify_all()
        # Swapped first: one that is called may ask to be called again, and that is another time.
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def close(self) -> None:
        """Let all callers go: no request is taken any more, so no mark is due either."""
        with self._changed:
            self._is_closed = True
            self._marked_each = sys.maxsize
            self._let_go()
