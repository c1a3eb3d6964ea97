"""Event streams: event records for a reader that iterates over them.

Each stream has room for a number of records that were not taken yet. What comes beyond that is
counted and not kept: the core never waits for a reader. A stream ends when it is closed or the core
is over; what it has kept by then can still be taken.
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from yunikorn_actors import si
from yunikorn_actors.errors import CoreError, anew
from yunikorn_actors.si.form import check_counts
from yunikorn_actors.values.resource import INT64_MAX

ROOM: Final = 1_000


class Feed(si.ResourceManagerCallback):
    """Takes records on a delivery thread; `on_change` is called after each, on any thread."""

    def __init__(self, room: int) -> None:
        self.kept: deque[si.EventRecord] = deque()
        self.overflow = 0
        self.has_ended = False
        self.failure: CoreError | None = None
        self.on_change: Callable[[], None] = lambda: None
        self._room = room

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        # The reader may take some meanwhile: then fewer are kept than there is room for, never
        # more.
        taken = events[: max(0, self._room - len(self.kept))]
        self.overflow += len(events) - len(taken)
        self.kept.extend(taken)
        # On every batch, also one that was dropped: the reader may wait for the count.
        self.on_change()

    def end(self, failure: CoreError | None = None) -> None:
        # Twice is once: a stop and a failure may both end it.
        if not self.has_ended:
            # The failure first: a reader that sees the end looks for it.
            self.failure, self.has_ended = failure, True
            self.on_change()

    def take(self) -> si.EventRecord | None:
        """Hand out the oldest, None while there is none; raise what ended the core."""
        if self.kept:
            return self.kept.popleft()
        if self.failure is not None:
            raise anew(self.failure)
        return None


class ClosedAtEnd(ABC):
    """What is closed when its `with` block ends, whatever was raised in it."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class EventStream(Iterator[si.EventRecord], ClosedAtEnd):
    """Iterate over it in a `with` block; each step waits for the next record."""

    def __init__(self, feed: Feed, leave: Callable[[], None]) -> None:
        self._feed = feed
        self._leave = leave
        self._changed = threading.Condition()
        """No change is missed between a look and the sleep; the deque itself needs no lock."""
        feed.on_change = self._notify

    @property
    def overflow(self) -> int:
        """How many records were not kept, because too many waited to be taken."""
        return self._feed.overflow

    def close(self) -> None:
        """Hear no more; what has come can still be taken."""
        self._leave()
        self._feed.end()

    def __next__(self) -> si.EventRecord:
        with self._changed:
            while True:
                # Read before the records: one may come, and the end behind it, between the two.
                is_over = self._feed.has_ended
                record = self._feed.take()
                if record is not None:
                    return record
                if is_over:
                    raise StopIteration
                # Without a time: the end of the core wakes it.
                self._changed.wait()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


class EventStreams(ABC):
    """Iterable streams of event records, for any core that can feed them."""

    def event_stream(self, history: int = 0) -> EventStream:
        """Hear every event record from now on, after the last `history` ones."""
        check_counts("event_stream", least=-INT64_MAX, history=history)
        # A history that is longer than the room would overflow at once.
        feed = Feed(max(ROOM, history))
        return EventStream(feed, self.open_feed(feed, history))

    @abstractmethod
    def open_feed(self, feed: Feed, history: int) -> Callable[[], None]:
        """Feed it event records from now on; what is returned ends that."""
