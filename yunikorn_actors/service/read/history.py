"""How many applications ran and containers stood, a sample a minute, for a day.

Nothing wakes the read side each minute. Between two messages nothing changes, so the samples that
fell due in between are taken when the next message comes, or the next question.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from yunikorn_actors.values.durations import MINUTE

SAMPLES_MAX: Final = 1_440


class Sample(NamedTuple):
    at_ns: int
    applications: int
    containers: int


class History:
    def __init__(self, start_ns: int) -> None:
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._due_ns = start_ns + MINUTE

    def catch_up(self, now_ns: int, count: Callable[[], tuple[int, int]]) -> None:
        """Take what fell due up to now; so it has to be asked before anything changes."""
        if now_ns < self._due_ns:
            return
        applications, containers = count()
        missed = (now_ns - self._due_ns) // MINUTE
        # After a day of rest all samples are the same: no more of them are made than are kept.
        self._due_ns += max(0, missed - SAMPLES_MAX) * MINUTE
        while self._due_ns <= now_ns:
            self.samples.append(Sample(self._due_ns, applications, containers))
            self._due_ns += MINUTE
