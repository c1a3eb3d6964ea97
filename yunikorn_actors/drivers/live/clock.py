"""Clocks and timers on threads: time of the world, or a time that a program moves.

Real time is the wall clock at the start plus the monotonic clock since then, so it never jumps. A
scale lets a core's clock run faster than the world; timers then wait that much less. With a
standing clock nothing falls due because the computer is slow.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from yunikorn_actors.core.due import ArmedTimers
from yunikorn_actors.messages.base import Envelope


@runtime_checkable
class Clock(Protocol):
    """What a core needs of a clock; times are nanoseconds since 1970."""

    scale: int
    """How much faster than the world it runs."""

    def now_ns(self) -> int:
        """The time now."""

    def seconds_until(self, due_ns: int) -> float:
        """How long to wait in the world until this clock shows `due_ns`."""
        ...


class RealClock:
    """The time of the world, or a time that runs faster by a whole factor."""

    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        # Read together, once: later jumps of the wall clock change nothing.
        self._wall_ns = time.time_ns()
        self._start_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        """The time now."""
        return self._wall_ns + (time.monotonic_ns() - self._start_ns) * self.scale

    def seconds_until(self, due_ns: int) -> float:
        """How long to wait in the world until this clock shows `due_ns`."""
        return max(0.0, (due_ns - self.now_ns()) / self.scale / 1e9)


class StandingClock:
    """Shows the same time until it is moved, and tells the core (`clock_was_moved`)."""

    scale = 1

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """The time that it was moved to last."""
        return self._now_ns

    def move_to(self, now_ns: int) -> None:
        """Show another time; tell the core of it, by `clock_was_moved`."""
        self._now_ns = now_ns

    def seconds_until(self, due_ns: int) -> float:
        """For ever, unless it is due: nothing falls due by itself."""
        return 0.0 if due_ns <= self._now_ns else float("inf")


class TimerThread:
    """Hands envelopes to `deliver` when they are due, and then calls `go_on`."""

    def __init__(
        self,
        clock: Clock,
        deliver: Callable[[str, Envelope], object],
        go_on: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """`failed` gets what a clock or what was called has raised; no timer fires after that."""
        self._clock = clock
        self._deliver = deliver
        self._go_on = go_on
        self._failed = failed
        self._is_woken = False
        self._looks_ns = math.inf
        """When the thread looks again by itself, while it waits."""
        self._condition = threading.Condition()
        """Guards what is armed; also held while a timer is handed over, see `_run`."""
        self._armed = ArmedTimers()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        # Made here: from Python 3.13 on, one that was made before a fork cannot be started after.
        thread = threading.Thread(target=self._run, name="yunikorn-actors-timers", daemon=True)
        thread.start()
        self._thread = thread

    def arm(self, address: str, name: str, due_ns: int, envelope: Envelope) -> None:
        with self._condition:
            self._armed.arm(address, name, due_ns, envelope)
            # Nearly every timer is armed behind others and cancelled long before it is due. To wake
            # the thread for each of them costs as much as a message, and a caller waits meanwhile.
            if due_ns < self._looks_ns:
                self._condition.notify()

    def cancel(self, address: str, name: str) -> None:
        """Cancel a timer; a firing that is in a mailbox already still comes (R-027)."""
        # Nobody is woken: at worst the thread wakes for this timer and finds nothing due.
        with self._condition:
            self._armed.cancel(address, name)

    def cancel_all(self, address: str) -> None:
        with self._condition:
            self._armed.cancel_all(address)

    def wake(self) -> None:
        """The clock was moved by hand."""
        with self._condition:
            self._is_woken = True
            self._condition.notify()

    def next_due_ns(self) -> int | None:
        """When the first timer fires that is armed now."""
        with self._condition:
            return self._armed.first_due_ns()

    def is_settled(self, settled: Callable[[], bool]) -> bool:
        """Whether nothing is due, and everybody else is at rest at the same moment.

        Nobody can arm a timer and none is delivered while `settled` is asked, so both answers hold
        together.
        """
        with self._condition:
            due_ns = self._armed.first_due_ns()
            return (due_ns is None or due_ns > self._clock.now_ns()) and settled()

    def stop(self) -> None:
        with self._condition:
            # Not joined here: the thread may be handing over a timer to the thread that stops the
            # core.
            self._stopping = True
            self._condition.notify()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._fire_all()
        except BaseException as error:  # noqa: BLE001 - the edge: nothing would fall due any more
            self._failed(error)

    def _fire_all(self) -> None:
        while True:
            with self._condition:
                if self._stopping:
                    return
                # Waits here, with the condition given back meanwhile.
                due = self._next_due()
                # The condition is held: a timer that is neither armed nor in a mailbox would make
                # the core look settled.
                if due is not None:
                    self._deliver(*due)
                self._is_woken = False
            if due is not None:
                # Outside of the condition: this may run machines, which arm timers.
                self._go_on()

    def _next_due(self) -> tuple[str, Envelope] | None:
        """Wait for the first timer, or for a change; the condition is held."""
        due_ns = self._armed.first_due_ns()
        seconds = math.inf if due_ns is None else self._clock.seconds_until(due_ns)
        if seconds <= 0:
            # Due: taken out under the same hold of the condition, so a cancellation comes before or
            # after.
            return self._armed.pop()
        # A wake-up that came while a timer was handed over is not lost.
        if not self._is_woken:
            self._looks_ns = math.inf if due_ns is None else due_ns
            self._condition.wait(min(seconds, threading.TIMEOUT_MAX))
        return None
