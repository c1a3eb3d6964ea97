"""What is said to the core goes out here, in the order in which it was said, on one thread.

The books of a front and the order of its requests have to agree, so a request is put here under the
lock of the books. But a call to the core may have to wait (for a directory of users, or because the
core is behind), and nobody may wait who holds that lock. What has gathered meanwhile goes out as
few requests. There is no bound: whoever says something keeps a future or a lease for it, and these
weigh more.

The same thread waits for what falls due, such as the end of a grace time.
"""

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.runtime.core_api import Core

ITEMS_MAX: Final = 1_000
"""In one request: the core answers each as a whole."""

Item = (
    si.NodeInfo
    | si.AddApplicationRequest
    | si.RemoveApplicationRequest
    | si.AllocationAsk
    | si.AllocationAskRelease
    | si.AllocationRelease
)


class _Place(NamedTuple):
    """Which request an item belongs to, and its rank there: the core takes lower ranks first."""

    request: str
    rank: int


_PLACES: Final[dict[type, _Place]] = {
    si.NodeInfo: _Place("node", 0),
    si.AddApplicationRequest: _Place("application", 0),
    si.RemoveApplicationRequest: _Place("application", 1),
    si.AllocationAsk: _Place("allocation", 0),
    si.AllocationAskRelease: _Place("allocation", 1),
    si.AllocationRelease: _Place("allocation", 2),
}


class Outbox:
    def __init__(self, core: Core, rm_id: str, failed: Callable[[BaseException], None]) -> None:
        """`failed` is told once what the core raised; nothing is sent after that."""
        self._core = core
        self._rm_id = rm_id
        self._failed = failed
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="yunikorn-actors-out", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, item: Item) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Make a call that neither blocks nor raises, after this time."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), call))
            self._changed.notify()

    def close(self) -> None:
        """Send nothing more; callable from any thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def join(self, timeout: float) -> None:
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    # -- on the thread

    def _run(self) -> None:
        try:
            while self._await_work():
                while due := self._next_due():
                    due()
                if items := self._next_items():
                    self._send(items)
        except BaseException as error:  # noqa: BLE001 - the edge: whatever it is, it is told
            self._failed(error)

    def _await_work(self) -> bool:
        with self._changed:
            while not self._is_closed and not self._items:
                seconds = self._due[0][0] - time.monotonic() if self._due else None
                if seconds is not None and seconds <= 0:
                    break
                self._changed.wait(seconds)
            return not self._is_closed

    def _next_due(self) -> Callable[[], None] | None:
        with self._changed:
            if self._due and self._due[0][0] <= time.monotonic():
                return heapq.heappop(self._due)[2]
            return None

    def _next_items(self) -> list[Item]:
        """Take as many as one request may hold without changing their order."""
        taken: list[Item] = []
        with self._changed:
            while self._items and len(taken) < ITEMS_MAX:
                if taken and not _may_follow(taken[-1], self._items[0]):
                    break
                taken.append(self._items.popleft())
        return taken

    def _send(self, items: list[Item]) -> None:
        parts: dict[type, list[Any]] = {kind: [] for kind in _PLACES}
        for item in items:
            parts[type(item)].append(item)
        some = {kind: tuple(part) for kind, part in parts.items()}
        match _PLACES[type(items[0])].request:
            case "node":
                request = si.NodeRequest(rm_id=self._rm_id, nodes=some[si.NodeInfo])
                self._core.update_node(request)
            case "application":
                self._core.update_application(
                    si.ApplicationRequest(
                        rm_id=self._rm_id,
                        new=some[si.AddApplicationRequest],
                        remove=some[si.RemoveApplicationRequest],
                    )
                )
            case "allocation":
                releases = si.AllocationReleasesRequest(
                    allocation_asks_to_release=some[si.AllocationAskRelease],
                    allocations_to_release=some[si.AllocationRelease],
                )
                self._core.update_allocation(
                    si.AllocationRequest(
                        rm_id=self._rm_id, asks=some[si.AllocationAsk], releases=releases
                    )
                )


def _may_follow(last: Item, item: Item) -> bool:
    before, place = _PLACES[type(last)], _PLACES[type(item)]
    return before.request == place.request and before.rank <= place.rank
