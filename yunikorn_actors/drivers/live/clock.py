"""The clocks of a core on threads: one that runs with the world, one that a program moves.

Real time is the wall clock at start plus the monotonic one, so that it never jumps. A scale lets a
core's clock run faster than the world; timers then wait that much less. With a standing clock
nothing falls due because the computer is slow.
"""

import time
from typing import Protocol, runtime_checkable


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
