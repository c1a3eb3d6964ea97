"""Slow policies: calls of policies are timed where a core runs on threads.

No decision depends on the time that a call takes, and a replay does not measure it again: a slow
policy is reported by a message from outside.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from yunikorn_actors.policies.guard import OUTSIDE, fault_of, tried

_T = TypeVar("_T")

LIMITS: Final = ((1_000_000, 20), (100_000_000, 3))
"""Slow is what has taken so many nanoseconds in each of so many calls in a row.

In each of them, because other threads and processes make one call long, and not all of them.
"""
_LEAST_NS: Final = LIMITS[0][0]
UNMEASURED: Final = 15
"""So many calls, and up to as many more, pass by the clock while none is slow.

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
        """So many calls are not measured. Only one is made at a time: the dispatcher sees to it."""

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
