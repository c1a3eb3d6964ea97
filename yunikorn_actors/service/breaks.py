"""Breaks: what a connection that breaks leaves behind, and when the next attempt is due."""

import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from yunikorn_actors import si
from yunikorn_actors.errors import Replaced, UnknownResourceManager
from yunikorn_actors.front.outbox import Ending

FIRST_DELAY_S: Final = 0.1
LONGEST_DELAY_S: Final = 5.0
KEPT_S: Final = 120.0
"""A connection that has broken is noticed before this, whichever way it broke."""
FOR_GOOD: Final = (Replaced, UnknownResourceManager)
"""What the service says of a resource manager that it will not have back."""


def backoff() -> Iterator[float]:
    """Yield how long to wait before each next attempt."""
    delay = FIRST_DELAY_S
    while True:
        # Spread, as many clients come back at the same moment.
        yield delay * random.uniform(0.5, 1.0)  # noqa: S311 - to spread clients, not to hide anything
        delay = min(2 * delay, LONGEST_DELAY_S)


class SentEndings:
    """What was given back, withdrawn or removed lately.

    When a connection has broken it is not known what of that has arrived. A service that resumes
    from its journal would keep the room of what it has not received, so all of it is sent again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[float, tuple[Ending, ...]]] = deque()

    def note(self, request: si.AllocationRequest | si.ApplicationRequest | si.NodeRequest) -> None:
        endings = _endings(request)
        now = time.monotonic()
        # Old ones are forgotten here, so no timer is needed.
        with self._lock:
            # Older ones have arrived: a break would have been noticed since.
            while self._kept and self._kept[0][0] < now - KEPT_S:
                self._kept.popleft()
            if endings:
                self._kept.append((now, endings))

    def take(self) -> list[Ending]:
        # Taken once: the report that goes out next has all of them.
        with self._lock:
            taken = [it for _, endings in self._kept for it in endings]
            self._kept.clear()
        return taken


def _endings(
    request: si.AllocationRequest | si.ApplicationRequest | si.NodeRequest,
) -> tuple[Ending, ...]:
    if isinstance(request, si.NodeRequest):
        return tuple(it for it in request.nodes if it.action is si.ActionFromRM.DECOMISSION)
    if isinstance(request, si.ApplicationRequest):
        return request.remove
    releases = request.releases
    if releases is None:
        return ()
    return (*releases.allocation_asks_to_release, *releases.allocations_to_release)
