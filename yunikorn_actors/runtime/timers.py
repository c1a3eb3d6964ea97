"""One thread with a heap of everything that is due later."""

import heapq
import threading
from collections.abc import Callable
from itertools import count

from yunikorn_actors.messages.base import Envelope
from yunikorn_actors.runtime.clock import Clock

Key = tuple[str, str]


class TimerThread:
    """Hands envelopes to `deliver` when they are due; a name armed again replaces the former."""

    def __init__(self, clock: Clock, deliver: Callable[[str, Envelope], object]) -> None:
        self._clock = clock
        self._deliver = deliver
        self._condition = threading.Condition()
        self._heap: list[tuple[int, int, Key]] = []
        self._armed: dict[Key, tuple[int, Envelope]] = {}
        self._numbers = count()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name="yunikorn-actors-timers", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def arm(self, address: str, name: str, due_ns: int, envelope: Envelope) -> None:
        with self._condition:
            number = next(self._numbers)
            self._armed[address, name] = (number, envelope)
            heapq.heappush(self._heap, (due_ns, number, (address, name)))
            self._condition.notify()

    def cancel(self, address: str, name: str) -> None:
        with self._condition:
            self._armed.pop((address, name), None)

    def cancel_all(self, address: str) -> None:
        """Nobody is at this address any more."""
        with self._condition:
            for key in [key for key in self._armed if key[0] == address]:
                del self._armed[key]

    def wake(self) -> None:
        """The clock was moved by hand."""
        with self._condition:
            self._condition.notify()

    def next_due_ns(self) -> int | None:
        """When the first timer fires that is armed now."""
        with self._condition:
            return self._first_due_ns()

    def is_settled(self, settled: Callable[[], bool]) -> bool:
        """Whether nothing is due, and everybody else is at rest at the same moment.

        Nobody can arm a timer and none is delivered while `settled` is asked, so both answers hold
        together.
        """
        with self._condition:
            due_ns = self._first_due_ns()
            return (due_ns is None or due_ns > self._clock.now_ns()) and settled()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def join(self, timeout: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._stopping:
                    return
                due = self._next_due()
                if due is not None:
                    self._deliver(*due)

    def _next_due(self) -> tuple[str, Envelope] | None:
        """Wait for the first timer, or for a change; the condition is held."""
        due_ns = self._first_due_ns()
        if due_ns is None:
            self._condition.wait()
            return None
        seconds = self._clock.seconds_until(due_ns)
        if seconds > 0:
            self._condition.wait(min(seconds, threading.TIMEOUT_MAX))
            return None
        _, _, key = heapq.heappop(self._heap)
        return key[0], self._armed.pop(key)[1]

    def _first_due_ns(self) -> int | None:
        """Forget what was cancelled or armed anew, up to the first timer that still counts."""
        while self._heap:
            due_ns, number, key = self._heap[0]
            armed = self._armed.get(key)
            if armed is not None and armed[0] == number:
                return due_ns
            heapq.heappop(self._heap)
        return None
