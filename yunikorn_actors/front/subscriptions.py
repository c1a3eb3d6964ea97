"""Events of a front: a union of classes, each with a `kind` of its own.

Compare `event.kind`, or match the class: a type checker then knows which fields there are.
"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar, get_args

from yunikorn_actors.errors import CoreError, InvalidRequest, ResponsesLost, anew
from yunikorn_actors.front.arguments import shown
from yunikorn_actors.front.lease import BaseLease, Lease
from yunikorn_actors.runtime.event_streams import ClosedAtEnd

E = TypeVar("E")
L = TypeVar("L", bound=BaseLease)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Whether the core can be reached; a core in this process always can, while it is open."""

    state: Literal["connected", "away", "closed"]
    """`away`: the front tries to come back, and what is asked meanwhile waits."""
    address: str = ""
    """Of the service; empty where the core is in this process."""
    reason: str = ""
    """Why it is away or closed: what the last attempt has come to."""
    attempts: int = 0
    """While it is away: how often the front has tried to come back."""
    since: float = field(default_factory=time.monotonic)
    """Since when it is so, as `time.monotonic()` has it."""

    def __str__(self) -> str:
        where = f" with the service at {self.address}" if self.address else ""
        tried = f" after {self.attempts} attempts" if self.attempts else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.state}{where}{tried}{why}"


ROOM: Final = 10_000
"""Events that may wait to be taken from one iterator."""


@dataclass(frozen=True, kw_only=True)
class Placed(Generic[L]):
    """An ask got a lease; its future has it too."""

    lease: L
    """The lease that it got."""
    kind: Literal["placed"] = "placed"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class NotPlaced:
    """The core rejected an ask, or took it back; its future raises the same error."""

    application: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    error: CoreError
    """What its future raises."""
    kind: Literal["not_placed"] = "not_placed"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class WantedBack(Generic[L]):
    """A lease is to be given back: `lease.reason` says why."""

    lease: L
    """The lease."""
    kind: Literal["wanted_back"] = "wanted_back"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class ApplicationWantedBack(Generic[L]):
    """Several leases of an application are preempted at once, such as all of its gang.

    One event for all of them; a `WantedBack` of each lease comes before it.
    """

    application: str
    """Id of the application."""
    leases: tuple[L, ...]
    """All of its leases that are to be given back now."""
    kind: Literal["application_wanted_back"] = "application_wanted_back"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class LeaseOver(Generic[L]):
    """A lease was released or lost: `lease.state` says which, and `lease.reason` why."""

    lease: L
    """The lease."""
    kind: Literal["lease_over"] = "lease_over"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class ApplicationChanged:
    """An application has a new state; with Rejected, Completed, Failed and Removed it ends."""

    application: str
    """Id of the application."""
    state: str
    """The new state, such as `Running`."""
    message: str
    """Why, in a few words."""
    kind: Literal["application"] = "application"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class NodeChanged:
    """A node was accepted, rejected, or is draining, resumed, resized or removed."""

    node_id: str
    """Id of the node."""
    state: Literal["accepted", "rejected", "draining", "resumed", "resized", "removed"]
    """What it is now."""
    message: str = ""
    """Why, if it was rejected."""
    kind: Literal["node"] = "node"
    """Its kind, to compare with."""


@dataclass(frozen=True, kw_only=True)
class ConnectionChanged:
    """The service is away or is there again, or the front is closed; see `Scheduler.connection`."""

    connection: Connection
    """How it is now."""
    kind: Literal["connection"] = "connection"
    """Its kind, to compare with."""


Kind = Literal[
    "placed",
    "not_placed",
    "wanted_back",
    "application_wanted_back",
    "lease_over",
    "application",
    "node",
    "connection",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
AnyEvent = (
    Placed[L]
    | NotPlaced
    | WantedBack[L]
    | ApplicationWantedBack[L]
    | LeaseOver[L]
    | ApplicationChanged
    | NodeChanged
    | ConnectionChanged
)
Event = AnyEvent[Lease]
"""What an iterator of `Scheduler.events` gives out."""


class Subscription(Generic[E]):
    """Keeps events for one reader, who may be late; no writer waits for a reader."""

    def __init__(self, kinds: tuple[str, ...], leave: Callable[["Subscription[E]"], None]) -> None:
        strange = [it for it in kinds if it not in KINDS]
        if strange:
            raise InvalidRequest(
                f"events: {shown(strange[0])} is none of {', '.join(KINDS)}; use these"
            )
        self.kinds = frozenset(kinds or KINDS)
        self._leave = leave
        self._lock = threading.RLock()
        self._kept: deque[E] = deque()
        self._dropped = 0
        self._is_over = False
        self._failure: CoreError | None = None

    def notify(self, event: E) -> None:
        """Keep an event until it is taken; without room only count it."""
        with self._lock:
            # Once some were dropped no more are kept: a gap in the middle would not be noticed.
            if len(self._kept) < ROOM and not self._dropped:
                self._kept.append(event)
            else:
                self._dropped += 1
        self._wake()

    def end(self, failure: CoreError | None) -> None:
        """What was received can still be taken; then the iteration ends, or raises the failure."""
        with self._lock:
            # The first reason stays, also when its reader closes itself later.
            self._failure, self._is_over = self._failure or failure, True
        self._wake()

    def close(self) -> None:
        """Hear nothing more."""
        # First out of the readers, so that nothing comes after the end.
        self._leave(self)
        self.end(None)

    def _wake(self) -> None:
        raise NotImplementedError

    def _take(self) -> E | None:
        """Hand out the oldest event, None while there is none; raise what was lost, or the end."""
        with self._lock:
            if self._kept:
                return self._kept.popleft()
            # Reported once, before what comes after the gap.
            dropped, self._dropped = self._dropped, 0
            if dropped:
                raise ResponsesLost(
                    f"{dropped} events were dropped here, because {ROOM} before them were not "
                    "taken; name the kinds that you need, or iterate again to go on behind them"
                )
            # Behind everything that was received: that can still be taken.
            if self._is_over and self._failure is not None:
                raise anew(self._failure)
            return None


class Readers(Generic[L]):
    """All present readers of events; each event goes to those who want its kind, in one order."""

    def __init__(self) -> None:
        self.refs: list[weakref.ref[Subscription[AnyEvent[L]]]] = []
        """Weakly: a reader that the program has dropped need not be kept. Most programs read no
        events, so where many happen nothing is called and no event is made for nobody."""

    def add(self, reader: Subscription[AnyEvent[L]]) -> None:
        # A new list: a reader may leave while events are being given out.
        self.refs = [weakref.ref(it) for it in (*self._present(), reader)]

    def leave(self, reader: Subscription[AnyEvent[L]]) -> None:
        self.refs = [weakref.ref(it) for it in self._present() if it is not reader]

    def notify(self, event: AnyEvent[L]) -> None:
        for reader in self._present():
            if event.kind in reader.kinds:
                reader.notify(event)

    def end(self, failure: CoreError | None) -> None:
        for reader in self._present():
            reader.end(failure)
        self.refs.clear()

    def _present(self) -> list[Subscription[AnyEvent[L]]]:
        return [reader for it in self.refs if (reader := it()) is not None]


class Events(Subscription[E], Iterator[E], ClosedAtEnd):
    """Iterate over it, in a `with` block: each step waits for the next event.

    It ends when it is closed, or its scheduler is; it raises `CoreFailed` if the core has failed,
    and `ResponsesLost` where events were dropped because ten thousand were not taken.
    """

    def __init__(
        self,
        kinds: tuple[str, ...],
        leave: Callable[[Subscription[E]], None],
        check_may_wait: Callable[[str], None],
    ) -> None:
        super().__init__(kinds, leave)
        self._check_may_wait = check_may_wait
        self._changed = threading.Condition(self._lock)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def __next__(self) -> E:
        with self._changed:
            while (event := self._take()) is None:
                if self._is_over:
                    raise StopIteration
                self._check_may_wait("an iterator of events")
                self._changed.wait()
            return event
