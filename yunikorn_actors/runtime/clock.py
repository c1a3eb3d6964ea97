"""Real time: the wall clock at start plus the monotonic one, so that it never jumps.

A scale lets a core's clock run faster than the world; timers then wait that much less.
"""

import time


class Clock:
    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        self._wall_ns = time.time_ns()
        self._start_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        return self._wall_ns + (time.monotonic_ns() - self._start_ns) * self.scale

    def seconds_until(self, due_ns: int) -> float:
        """How long to wait in the world until this clock shows `due_ns`."""
        return max(0.0, (due_ns - self.now_ns()) / self.scale / 1e9)
