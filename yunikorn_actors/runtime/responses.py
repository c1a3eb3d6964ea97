"""Responses to a resource manager, from its delivery thread to an event loop.

Answers are taken through asynchronous iterators, in the order in which the core gave them, and each
is given out once. What has not been taken yet is kept in the inbox and not in an iterator, so an
iterator that is abandoned or cancelled loses nothing and leaves nothing behind. When too much of
one kind is waiting, the delivery thread of that resource manager waits as well: nothing is lost,
and nobody else is held up. What then waits behind it is bounded by the core.

A kind that nobody takes must not silence the others. So the delivery thread waits no longer than
its patience while the program waits for another kind: it drops what has no room, and leaves a gap
that an iterator of that kind comes to.
"""

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from operator import attrgetter
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import StandIn
from yunikorn_actors.errors import CoreError, InvalidRequest, ResponsesLost, anew
from yunikorn_actors.recording.logs import alarm, logger
from yunikorn_actors.runtime.async_callback import Answerer, AnyCallback, check_callback

ROOM: Final = 1_000
"""Responses of each kind that may wait to be taken, for each registration."""
PATIENCE_S: Final = 5.0
"""A kind that is full may hold up the others that long, if nothing of it is taken."""

_Given = TypeVar("_Given")

Kind = Literal["allocation", "application", "node", "events"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Value = (
    si.AllocationResponse | si.ApplicationResponse | si.NodeResponse | tuple[si.EventRecord, ...]
)


class AllocationSaid(NamedTuple):
    """News of asks and allocations."""

    kind: Literal["allocation"]
    """Its kind."""
    value: si.AllocationResponse
    """The answer."""


class ApplicationSaid(NamedTuple):
    """News of applications."""

    kind: Literal["application"]
    """Its kind."""
    value: si.ApplicationResponse
    """The answer."""


class NodeSaid(NamedTuple):
    """Answers to new nodes."""

    kind: Literal["node"]
    """Its kind."""
    value: si.NodeResponse
    """The answer."""


class EventsSaid(NamedTuple):
    """Event records."""

    kind: Literal["events"]
    """Its kind."""
    value: tuple[si.EventRecord, ...]
    """The records, in order."""


Response: TypeAlias = AllocationSaid | ApplicationSaid | NodeSaid | EventsSaid
"""One thing that the core sent: its kind tells type checkers, too, of which type its value is."""
_RESPONSES: Final[dict[Kind, Callable[[Any, Any], Response]]] = {
    "allocation": AllocationSaid,
    "application": ApplicationSaid,
    "node": NodeSaid,
    "events": EventsSaid,
}


class Responses:
    """The responses to one registration.

    Answers wait for the reader of their kind, from the registration on: a program takes every
    kind that it wants, by an iterator for each or by `responses`. Events are a feed, and are heard
    from the moment on at which they are asked for. With the last reference to the handle and its
    iterators the program has stopped listening, and nothing waits any more.
    """

    def __init__(self, inbox: "Inbox") -> None:
        self._inbox = inbox
        # Not at the exit of the interpreter: the loop may be gone by then.
        weakref.finalize(self, inbox.abandon).atexit = False

    def allocations(self) -> AsyncIterator[si.AllocationResponse]:
        """What was placed, what is to be released, and which asks were rejected."""
        return self._stream("allocation")

    def applications(self) -> AsyncIterator[si.ApplicationResponse]:
        """Which applications were accepted or rejected, and their new states."""
        return self._stream("application")

    def nodes(self) -> AsyncIterator[si.NodeResponse]:
        """Which nodes were accepted or rejected."""
        return self._stream("node")

    def events(self) -> AsyncIterator[tuple[si.EventRecord, ...]]:
        """Event records from now on, some at a time."""
        stream = self._stream("events")
        # From here on and not from the registration: records of before would fill the room of a
        # program that never asked for them.
        self._inbox.takes_events = True
        return stream

    def responses(self) -> AsyncIterator[Response]:
        """Everything that is wanted, in the order in which the core made it."""
        self._inbox.takes_events = True
        return _Stream(self, self._inbox, self._inbox.wants, _itself)

    def _stream(self, kind: Kind) -> "_Stream[Any]":
        if kind not in self._inbox.wants:
            raise InvalidRequest(
                f"wants: the registration does not want {kind!r}, so it is not kept; name it in "
                "register_resource_manager(wants=...)"
            )
        return _Stream(self, self._inbox, (kind,), _value)


_value: Callable[[Response], Any] = attrgetter("value")


def _itself(response: Response) -> Response:
    return response


class _Stream(AsyncIterator[_Given], Generic[_Given]):
    """A view of the inbox; it keeps the handle alive, because a view is a reader."""

    def __init__(
        self,
        responses: Responses,
        inbox: "Inbox",
        kinds: tuple[Kind, ...],
        given: Callable[[Response], _Given],
    ) -> None:
        self._responses = responses
        self._inbox = inbox
        self._kinds = kinds
        self._given = given

    async def __anext__(self) -> _Given:
        return self._given(await self._inbox.take(self._kinds))


class _Gap:
    """Stands where responses were dropped."""

    def __init__(self) -> None:
        self.count = 1


class Inbox(StandIn):
    """The way from a delivery thread to the loop: filled on the one, emptied on the other."""

    def __init__(
        self,
        rm_id: str,
        loop: asyncio.AbstractEventLoop,
        wants: Collection[Kind] = KINDS,
        callback: AnyCallback | None = None,
    ) -> None:
        if callback is not None:
            check_callback(callback)
        self._answerer = Answerer(callback, loop)
        strange = [it for it in wants if it not in KINDS]
        if strange:
            raise InvalidRequest(
                f"wants: {strange[0]!r:.100} is none of {', '.join(KINDS)}; use these"
            )
        self.wants = tuple(kind for kind in KINDS if kind in wants)
        self.takes_events = False
        self._rm_id = rm_id
        self._loop = loop
        self._is_closed = False
        """Once set, nothing more is handed over, and the delivery thread does not wait."""
        self._has_waited = False
        self._given_up: set[Kind] = set()
        """Kinds of which something was dropped; each is reported once."""
        self._changed = threading.Condition()
        """Guards these three, by which the delivery thread finds whether it may go on."""
        self._untaken = dict.fromkeys(KINDS, 0)
        self._full_s = dict.fromkeys(KINDS, 0.0)
        """When each kind became full last."""
        self._waited_for: list[tuple[Kind, ...]] = []
        """What the iterators wait for that have found nothing."""
        # From here on everything belongs to the loop.
        self._kept: dict[Kind, deque[tuple[int, Value | _Gap]]] = {kind: deque() for kind in KINDS}
        """What has not been taken yet, each with its place in the order of all."""
        self._arrived = 0
        self._changed_on_loop = asyncio.Event()
        """Set, and then replaced, for each change: all iterators that wait for it look again."""
        self._has_ended = False
        self._failure: CoreError | None = None

    def answers(self, method: str) -> bool:
        return self._answerer.answers(method)

    # -- on the delivery thread

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hand_over("allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hand_over("application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._hand_over("node", response)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        # Events are a feed: without a reader they are not kept at all.
        if self.takes_events:
            self._hand_over("events", events)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        over = "the registration is over"
        answer: str | None = self._answerer.ask("predicates", args, otherwise=over)
        return answer

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        answer: si.PreemptionPredicatesResponse | None = self._answerer.ask(
            "preemption_predicates", args, otherwise=None
        )
        return answer

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._answerer.ask("update_container_scheduling_state", request, otherwise=None)

    def get_state_dump(self) -> str:
        answer: str = self._answerer.ask("get_state_dump", otherwise="{}")
        return answer

    def _hand_over(self, kind: Kind, value: Value) -> None:
        if self._is_closed or kind not in self.wants:
            return
        if self._await_room(kind):
            self._on_loop(self._arrive, kind, value)
        elif not self._is_closed:
            # Closed meanwhile: there is no reader to leave a gap for.
            self._give_up(kind)
            self._on_loop(self._miss, kind)

    def _await_room(self, kind: Kind) -> bool:
        """Wait until there is room, the end, or no longer any use in waiting."""
        with self._changed:
            # A loop, as the patience grows shorter and readers come and go while this thread waits.
            while self._untaken[kind] >= ROOM:
                seconds = self._patience(kind)
                if self._is_closed or (seconds is not None and seconds <= 0):
                    return False
                self._tell_of_waiting(kind)
                self._changed.wait(seconds)
            self._untaken[kind] += 1
            # When it became full: the patience runs from there, not from the last response.
            if self._untaken[kind] == ROOM:
                self._full_s[kind] = time.monotonic()
        return True

    def _patience(self, kind: Kind) -> float | None:
        """Seconds that this kind may hold up the others; None while nobody waits for these."""
        # No iterator waits, or each that waits takes this kind too and will come to it: then
        # waiting is right.
        if all(kind in kinds for kinds in self._waited_for):
            return None
        return self._full_s[kind] + PATIENCE_S - time.monotonic()

    def _tell_of_waiting(self, kind: Kind) -> None:
        if not self._has_waited:
            self._has_waited = True
            logger.warning(
                "{} {} responses wait to be taken, so no more are delivered to {}: iterate over "
                "every kind of them, or over responses()",
                ROOM,
                kind,
                self._rm_id,
            )

    def _give_up(self, kind: Kind) -> None:
        if kind not in self._given_up:
            self._given_up.add(kind)
            alarm(
                f"{kind} responses for {self._rm_id} are dropped, because {ROOM} of them were not "
                "taken: iterate over them, or leave them out of "
                "register_resource_manager(wants=...)"
            )

    # -- on any thread

    def end(self, failure: CoreError | None = None) -> None:
        """Nothing more comes; what has been handed over can still be taken."""
        # First: a question that waits for the loop would keep the delivery thread here.
        self._answerer.end()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._on_loop(self._finish, failure)

    def abandon(self) -> None:
        """Close the inbox: its last listener is gone.

        The garbage collector may call this anywhere, even inside the condition. Therefore the loop
        does the rest, and wakes the tasks that wait.
        """
        self._is_closed = True
        self._on_loop(self._forget)

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """A closed loop takes nothing; that is no fault of the thread that calls."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            self._is_closed = True

    # -- on the loop

    async def take(self, kinds: tuple[Kind, ...]) -> Response:
        """Give out the oldest, or raise what ends an iteration.

        Between finding and giving nothing can be cancelled, so nothing is lost.
        """
        # On the loop alone: between the look and the wait nothing can arrive unseen.
        while (response := self._oldest(kinds)) is None:
            if self._failure is not None:
                raise anew(self._failure)
            if self._has_ended:
                raise StopAsyncIteration
            with self._changed:
                # So that the delivery thread sees that a full kind has to give way.
                self._waited_for.append(kinds)
                self._changed.notify_all()
            try:
                await self._changed_on_loop.wait()
            finally:
                with self._changed:
                    self._waited_for.remove(kinds)
        return response

    def _oldest(self, kinds: tuple[Kind, ...]) -> Response | None:
        # The oldest of all its kinds: `responses()` gives out what came first.
        heads = [(self._kept[kind][0][0], kind) for kind in kinds if self._kept[kind]]
        if not heads:
            return None
        _, kind = min(heads)
        _, value = self._kept[kind].popleft()
        if isinstance(value, _Gap):
            raise ResponsesLost(
                f"{value.count} {kind} responses for {self._rm_id} were dropped here, because "
                f"{ROOM} before them were not taken while the program waited for other kinds; "
                "iterate over every kind that is wanted, and see state_dump() for what there is"
            )
        with self._changed:
            # Room again: the delivery thread may go on.
            self._untaken[kind] -= 1
            self._changed.notify_all()
        return _RESPONSES[kind](kind, value)

    def _arrive(self, kind: Kind, value: Value) -> None:
        self._arrived += 1
        self._kept[kind].append((self._arrived, value))
        self._wake()

    def _miss(self, kind: Kind) -> None:
        kept = self._kept[kind]
        # A gap behind a gap is one gap with a larger count.
        last = kept[-1][1] if kept else None
        if isinstance(last, _Gap):
            last.count += 1
            return
        self._arrived += 1
        kept.append((self._arrived, _Gap()))
        self._wake()

    def _finish(self, failure: CoreError | None) -> None:
        if not self._has_ended:
            self._has_ended, self._failure = True, failure
            self._wake()

    def _forget(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for kept in self._kept.values():
            kept.clear()

    def _wake(self) -> None:
        self._changed_on_loop.set()
        # Replaced, so that an iterator which looks later waits for the next change.
        self._changed_on_loop = asyncio.Event()
