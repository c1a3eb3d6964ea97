"""Deadlines of asks: those that still wait then are handed over, on a thread of their own.

That thread waits for the core: an ask that is withdrawn says what it waited for.
"""

import heapq
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from yunikorn_actors.front.records import AskRecord, AskStage

KEPT_MIN: Final = 1_000
"""Entries that are kept before the ended ones among them are dropped."""


class Due(NamedTuple):
    """An entry of the heap; its first two fields give the order."""

    at_s: float
    number: int
    record: AskRecord[Any]
    alike: Hashable
    """The same for asks that wait for the same."""


class Deadlines:
    """Starts its thread with the first deadline; most programs have none."""

    def __init__(
        self, passed: Callable[[Sequence[Due]], None], failed: Callable[[BaseException], None]
    ) -> None:
        """`passed` gets what still waits; `failed` gets what that raised, and is the end."""
        self._passed = passed
        self._failed = failed
        self._changed = threading.Condition()
        self._due: list[Due] = []
        self._kept_max = KEPT_MIN
        self._numbers = count()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def add(self, records: Sequence[AskRecord[Any]], alike: Hashable) -> None:
        now_s = time.monotonic()
        with self._changed:
            if self._is_closed:
                return
            for record in records:
                due = Due(now_s + record.deadline_s, next(self._numbers), record, alike)
                heapq.heappush(self._due, due)
            if len(self._due) > self._kept_max:
                # Most asks wait no longer, and those only take memory.
                self._due = [it for it in self._due if it.record.stage is AskStage.WAITS]
                heapq.heapify(self._due)
                # Doubled, so that it is looked for less and less often.
                self._kept_max = max(KEPT_MIN, 2 * len(self._due))
            if self._thread is None:
                name = "yunikorn-actors-deadlines"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                # First: where that fails the next deadline tries again.
                thread.start()
                self._thread = thread
            # The thread may be waiting for a later deadline.
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._due.clear()
            self._changed.notify()

    def join(self, timeout: float) -> None:
        # Called at the end: the thread may be this one, when it reports its own failure.
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        try:
            while passed := self._await_passed():
                self._passed(passed)
        except BaseException as error:  # noqa: BLE001 - the edge: whatever it is, it is reported
            self._failed(error)

    def _await_passed(self) -> list[Due]:
        """Wait for deadlines; nothing comes after the end."""
        with self._changed:
            while not self._is_closed:
                now_s = time.monotonic()
                passed: list[Due] = []
                while self._due and self._due[0].at_s <= now_s:
                    passed.append(heapq.heappop(self._due))
                if passed:
                    return passed
                # Wakes when the next is due, when another one comes, or at the end.
                self._changed.wait(self._due[0].at_s - now_s if self._due else None)
            return []
