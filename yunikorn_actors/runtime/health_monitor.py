"""The health monitor: a thread that checks a core now and then, while a caller wishes it.

Each check is a state dump, which Context makes between two messages; so it is made only where
somebody has asked for it.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from yunikorn_actors.checks.health_checks import Health
from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply
from yunikorn_actors.policies.guard import OUTSIDE, fault_of, tried
from yunikorn_actors.recording.logs import logger


class HealthWatch:
    def __init__(self, look: Callable[[], Health]) -> None:
        self._look = look
        self._condition = threading.Condition()
        """Guards the wish and the end; the thread waits here between two looks."""
        self._seconds: float | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def every(self, seconds: float | None) -> None:
        """Look that often from now on; None for not at all."""
        with self._condition:
            # After a stop no thread is started: nobody would join it.
            if seconds == self._seconds or self._stopping:
                return
            self._seconds = seconds
            self._condition.notify()
            if self._thread is None:
                # With the first wish, as most cores are never looked at; made here, as for timers.
                thread = threading.Thread(
                    target=self._run, name="yunikorn-actors-health", daemon=True
                )
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._condition:
                seconds = self._seconds
                # Waits for the interval, or for a change of the wish, whichever comes first.
                changed = self._condition.wait_for(partial(self._has_changed, seconds), seconds)
                if self._stopping:
                    return
            # A change of the interval is no reason to look: the time begins anew.
            if not changed and not self._tell():
                return

    def _has_changed(self, seconds: float | None) -> bool:
        """Whether there is no more to wait for; it may have come before the waiting began."""
        return self._stopping or self._seconds != seconds

    def _tell(self) -> bool:
        """Say what was found; False where there is nothing to look at any more."""
        try:
            health = self._look()
        except NoReply as error:
            # The core was busy for longer than a question waits: it is asked again the next time.
            logger.warning("health check: {}", error)
            return True
        except (CoreStopped, CoreFailed):
            return False
        except Exception as error:  # noqa: BLE001 - the edge: nothing would be looked at any more
            logger.error("health check: it failed", exception=error)
            return True
        if health.healthy:
            logger.debug("health check: healthy")
            return True
        found = [
            f"{check.name}: {check.diagnosis}" for check in health.checks if not check.succeeded
        ]
        logger.warning("health check: NOT healthy: {}", "; ".join(found))
        return True


# Slow policies: calls of policies are timed where a core runs on threads.
#
# No decision depends on the time that a call takes, and a replay does not measure it again: a
# slow policy is reported by a message from outside.

_T = TypeVar("_T")

LIMITS: Final = ((1_000_000, 20), (100_000_000, 3))
"""A method is slow once each of so many calls in a row took this long: (nanoseconds, calls).

Each of them, because other threads and processes make one call long, but not all in a row.
"""
_LEAST_NS: Final = LIMITS[0][0]
UNMEASURED: Final = 15
"""Calls between two that are measured, and up to as many more, while none is slow.

Two looks at the clock cost more than a short policy. Once a call was slow each one is measured.
"""

Say = Callable[[str, str, str], None]
"""Is given the queue, the policy and what is wrong."""


class SlowPolicies:
    def __init__(self, say: Say, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._say, self._clock = say, clock
        self._in_a_row: dict[tuple[str, str, str], list[int]] = {}
        """Of each method how many calls in a row were above each of the limits."""
        self._said: set[tuple[str, str]] = set()
        self._passing = self._drawn = 0
        """How many calls stay unmeasured. Only one is made at a time: the dispatcher sees to it."""

    def call(
        self, queue: str, policy: str, method: str, call: Callable[..., _T], /, *given: object
    ) -> tuple[_T | None, str]:
        if self._passing > 0:
            self._passing -= 1
            # As `tried`, which would be one more call for nearly each decision.
            try:
                return call(*given), ""
            except BaseException as error:
                # What ends the process or the thread is none of the policy's failures.
                if isinstance(error, OUTSIDE):
                    raise
                return None, fault_of(method, error)
        began_ns = self._clock()
        answer = tried(method, call, *given)
        took_ns = self._clock() - began_ns
        # Once a call was slow each one is measured, so that "in a row" is true.
        if took_ns >= _LEAST_NS or self._in_a_row:
            self._note((queue, policy, method), took_ns)
        else:
            # As by dice, so that of calls which take turns none is passed by for ever.
            self._drawn = (self._drawn * 1_103_515_245 + 12_345) % 2**31
            self._passing = UNMEASURED + (self._drawn >> 16) % UNMEASURED
        return answer

    def _note(self, key: tuple[str, str, str], took_ns: int) -> None:
        queue, policy, method = key
        # Reported already, or fast and without a history: nothing to count.
        if (queue, policy) in self._said or (took_ns < _LEAST_NS and key not in self._in_a_row):
            return
        counts = self._in_a_row.pop(key, [0] * len(LIMITS))
        for at, (least_ns, _) in enumerate(LIMITS):
            counts[at] = counts[at] + 1 if took_ns >= least_ns else 0
        slow = [
            f"{method} took {least_ns // 1_000_000} ms or more in each of {number} calls"
            for count, (least_ns, number) in zip(counts, LIMITS, strict=True)
            if count == number
        ]
        if slow:
            self._said.add((queue, policy))
        elif any(counts):
            self._in_a_row[key] = counts
        for what in slow:
            self._say(queue, policy, what)
