"""The outbox: requests to the core, sent in the order in which they were written.

The records of a front and the order of its requests have to agree, so a request is put here under
the lock of the records. It is sent after that lock was left, by the thread that has put it, unless
that would have to wait: for the core, which may be behind, or for a directory of users. What has to
wait is sent by a thread of the outbox, as few requests; so is what a program writes without waiting
for answers. There is no bound: the program keeps a future or a lease for each item, and these weigh
more.

One thread at a time sends, so the order is kept. A thread that finds another one sending leaves its
items: the one that sends looks again after it has finished, so nothing is forgotten.

The thread of the outbox also waits for what falls due, such as the end of a grace time.
"""

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple, TypeGuard

from yunikorn_actors import si
from yunikorn_actors.core.entry import Update
from yunikorn_actors.drivers.live.dispatcher import DeferredInterrupt
from yunikorn_actors.errors import ConnectionLost
from yunikorn_actors.runtime.core_api import Core

ITEMS_MAX: Final = 1_000
"""In one request: the core answers each as a whole."""
AHEAD_MAX: Final = 2
"""So many requests callers send before the core has answered, as where a release and an ask follow
each other. Behind them a program does not wait for answers: what it writes is gathered, and left to
the outbox's thread, because many items in one request cost a third of as many requests."""


class AskAgain(NamedTuple):
    """A request without content: no earlier no to a question of the core holds any longer."""


ASK_AGAIN: Final = AskAgain()
Item = (
    AskAgain
    | si.NodeInfo
    | si.AddApplicationRequest
    | si.RemoveApplicationRequest
    | si.AllocationAsk
    | si.AllocationAskRelease
    | si.AllocationRelease
)

Ending = si.NodeInfo | si.RemoveApplicationRequest | si.AllocationAskRelease | si.AllocationRelease
"""What ends something; a node that is to go is one as well."""


class _Place(NamedTuple):
    """The request that an item belongs to, and its rank there: the core takes lower ranks first."""

    request: str
    rank: int


_PLACES: Final[dict[type, _Place]] = {
    si.NodeInfo: _Place("node", 0),
    si.AddApplicationRequest: _Place("application", 0),
    si.RemoveApplicationRequest: _Place("application", 1),
    si.AllocationAsk: _Place("allocation", 0),
    si.AllocationAskRelease: _Place("allocation", 1),
    si.AllocationRelease: _Place("allocation", 2),
    AskAgain: _Place("allocation", 3),
}


class Outbox:
    """The form of each item was checked before it was put here."""

    loop_thread: int | None = None
    """The thread of the program's event loop, which leaves everything to the outbox's thread: with
    the driver `direct` it would run the machines."""

    def __init__(self, core: Core, rm_id: str, failed: Callable[[BaseException], None]) -> None:
        """`failed` is called with what the core raised; nothing is sent after that."""
        self._core = core
        self._rm_id = rm_id
        self._failed = failed
        self._items: deque[Item] = deque()
        self.put: Final = self._items.append
        """Called under the lock of the records: the order is that of the records."""
        self._sending = threading.Lock()
        """Held by the thread that sends, and takes items out; callers try it and never wait."""
        self._changed = threading.Condition()
        """Guards what the outbox's thread waits for."""
        self._ahead = 0
        """Requests that callers have sent since the core has answered."""
        self._is_left = False
        """The outbox's thread sends what is here, and callers leave theirs to it."""
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._is_closed = False
        self._is_held = False
        """The core is away: what is put here stays here."""
        self._thread = threading.Thread(target=self._run, name="yunikorn-actors-out", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self) -> None:
        """Send what was put here if that makes nobody wait; called outside of every lock."""
        # Looked at again after each turn: what came meanwhile was put by a thread that found this
        # one sending.
        while self._items and not self._is_left:
            # The loop never sends: a program on it would stand still meanwhile.
            if threading.get_ident() == self.loop_thread:
                self._leave_the_rest()
            elif not self._sending.acquire(blocking=False):
                # Somebody sends: who sends looks again, so these items are not forgotten.
                return
            else:
                try:
                    # It may have taken out what others have put, which must not be lost.
                    with DeferredInterrupt() as interrupt:
                        self._send_at_once(interrupt)
                finally:
                    self._sending.release()

    def answered(self) -> None:
        """The core has called back; send what was put here meanwhile."""
        # Without a lock: a number that is off by one only sends a little later.
        self._ahead = 0
        if self._items:
            self.send()

    def _send_at_once(self, interrupt: DeferredInterrupt) -> None:
        try:
            for _ in range(AHEAD_MAX):
                if not self._items:
                    return
                # A signal of the program comes between two requests, never within one.
                if interrupt.has_come or self._must_wait(self._items[0]):
                    break
                self._ahead += 1
                self._send_next()
        except BaseException as error:
            self._failed(error)
            if not isinstance(error, Exception):
                # A signal of the program's own, which wants to end it.
                raise
        else:
            self._leave_the_rest()

    def _must_wait(self, item: Item) -> bool:
        """Whether it is to be gathered, or the core or a directory of users may keep it waiting."""
        return (
            # In the order of their cost: a number, a type, a question to the core.
            self._ahead >= AHEAD_MAX
            or type(item) is si.AddApplicationRequest
            or not self._core.has_room(self._rm_id)
        )

    def _leave_the_rest(self) -> None:
        with self._changed:
            self._is_left = True
            self._changed.notify()

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Make a call that neither blocks nor raises, after this time."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), call))
            self._changed.notify()

    # -- while the core is away

    def hold(self) -> None:
        """Send nothing until `resume`; what falls due is still done."""
        with self._changed:
            self._is_held = True

    def settle(self) -> None:
        """Wait until nothing is being sent any more."""
        # Taken and given back: who holds it has finished its request by then.
        with self._sending:
            pass

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits here and nothing is being sent; waits for what is."""
        with self._sending, self._changed:
            return not self._items and not self._is_left

    def unsent_endings(self) -> list[Ending]:
        """Called, as `resume` is, under the lock of the records."""
        return [it for it in self._items if _is_ending(it)]

    def resume(self, items: list[Item]) -> None:
        """Send these in place of what has gathered."""
        # All of it at once: what gathered was for a core that has forgotten it.
        with self._changed:
            self._items.clear()
            self._items.extend(items)
            self._is_held, self._is_left = False, True
            self._changed.notify()

    # -- the end

    def close(self) -> None:
        """Send nothing more; callable from any thread."""
        with self._changed:
            self._is_closed = self._is_left = True
            self._changed.notify()

    def join(self, timeout: float) -> None:
        # Called from the thread itself it would wait for ever.
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    # -- on the thread

    def _run(self) -> None:
        try:
            while self._await_work():
                while due := self._next_due():
                    due()
                with self._sending:
                    while self._is_left_any():
                        self._send_or_hold()
                # The callers send again from here on; what they left in this moment goes first.
                self.send()
        except BaseException as error:  # noqa: BLE001 - the edge: it ends the front
            self._failed(error)

    def _await_work(self) -> bool:
        with self._changed:
            # Also while it is held: what falls due has to be done in time.
            while not self._is_left or (self._is_held and not self._is_closed):
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

    def _is_left_any(self) -> bool:
        """Whether the thread has more to send; if not, callers send again from here on."""
        with self._changed:
            if self._is_closed or self._is_held:
                return False
            # Only here it becomes false: a caller then sends by itself.
            self._is_left = self._is_left and bool(self._items)
            if not self._is_left:
                self._ahead = 0
            return self._is_left

    # -- with `_sending` held

    def _send_or_hold(self) -> None:
        try:
            self._send_next()
        except ConnectionLost:
            # All of it is in the records, and is reported when the core is back.
            if self._core.failure is not None:
                raise
            self.hold()

    def _send_next(self) -> None:
        """Send as many as one request may hold without changing their order."""
        taken = [self._items.popleft()]
        while self._items and len(taken) < ITEMS_MAX and _may_follow(taken[-1], self._items[0]):
            taken.append(self._items.popleft())
        self._core.submit_checked(_request_of(self._rm_id, taken))


def _is_ending(item: Item) -> TypeGuard[Ending]:
    if isinstance(item, si.NodeInfo):
        return item.action is si.ActionFromRM.DECOMISSION
    return not isinstance(item, si.AddApplicationRequest | si.AllocationAsk | AskAgain)


def _may_follow(last: Item, item: Item) -> bool:
    # A rank that falls would change the order: the core takes one kind after the other.
    before, place = _PLACES[type(last)], _PLACES[type(item)]
    return before.request == place.request and before.rank <= place.rank


def _request_of(rm_id: str, items: list[Item]) -> Update:
    parts: dict[type, list[Any]] = {}
    for item in items:
        parts.setdefault(type(item), []).append(item)
    match _PLACES[type(items[0])].request:
        case "node":
            return si.NodeRequest(rm_id=rm_id, nodes=tuple(parts[si.NodeInfo]))
        case "application":
            return si.ApplicationRequest(
                rm_id=rm_id,
                new=tuple(parts.get(si.AddApplicationRequest, ())),
                remove=tuple(parts.get(si.RemoveApplicationRequest, ())),
            )
        case _:
            releases = si.AllocationReleasesRequest(
                allocation_asks_to_release=tuple(parts.get(si.AllocationAskRelease, ())),
                allocations_to_release=tuple(parts.get(si.AllocationRelease, ())),
            )
            return si.AllocationRequest(
                rm_id=rm_id, asks=tuple(parts.get(si.AllocationAsk, ())), releases=releases
            )
