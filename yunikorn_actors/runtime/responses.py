"""What a resource manager is told, on its way from its delivery thread to an event loop.

Answers are taken through asynchronous iterators, in the order in which the core gave them, and each
is given out once. What has not been taken yet is kept in the inbox and not in an iterator, so one
that is abandoned or cancelled loses nothing and leaves nothing behind. When too much is waiting,
the delivery thread of that resource manager waits as well: nothing is lost, and nobody else is held
up. What then piles up behind it is the core's to bound.
"""

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from operator import attrgetter
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, get_args

from yunikorn_actors import si
from yunikorn_actors.errors import CoreFailed, anew
from yunikorn_actors.runtime.logs import logger

ROOM: Final = 1_000
"""Responses that may wait to be taken, for each registration."""

_Given = TypeVar("_Given")

Kind = Literal["allocation", "application", "node", "events"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Said = si.AllocationResponse | si.ApplicationResponse | si.NodeResponse | tuple[si.EventRecord, ...]


class Response(NamedTuple):
    """One thing that the core said, and of which kind it is."""

    kind: Kind
    value: Said


class Responses:
    """What one registration is told.

    Answers wait for whoever asks for their kind, from the registration on: a program takes every
    kind, by an iterator for each or by `responses`. Events are a feed, and are heard from the
    moment on at which they are asked for. With the last reference to the handle and its iterators
    the program has stopped listening, and nothing waits any more.
    """

    def __init__(self, inbox: "Inbox") -> None:
        self._inbox = inbox
        weakref.finalize(self, inbox.abandon).atexit = False

    def allocations(self) -> AsyncIterator[si.AllocationResponse]:
        return _Stream(self, self._inbox, ("allocation",), _value)

    def applications(self) -> AsyncIterator[si.ApplicationResponse]:
        return _Stream(self, self._inbox, ("application",), _value)

    def nodes(self) -> AsyncIterator[si.NodeResponse]:
        return _Stream(self, self._inbox, ("node",), _value)

    def events(self) -> AsyncIterator[tuple[si.EventRecord, ...]]:
        self._inbox.hears_events = True
        return _Stream(self, self._inbox, ("events",), _value)

    def responses(self) -> AsyncIterator[Response]:
        """Everything in the order in which the core said it."""
        self._inbox.hears_events = True
        return _Stream(self, self._inbox, KINDS, _itself)


_value: Callable[[Response], Any] = attrgetter("value")


def _itself(response: Response) -> Response:
    return response


class _Stream(AsyncIterator[_Given], Generic[_Given]):
    """A view of the inbox; it holds the handle, because as long as it exists somebody listens."""

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


class Inbox(si.ResourceManagerCallback):
    """The way from a delivery thread to the loop: filled on the one, emptied on the other."""

    def __init__(self, rm_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self.hears_events = False
        self._rm_id = rm_id
        self._loop = loop
        self._room = threading.Semaphore(ROOM)
        self._is_deaf = False
        """Once set, nothing more is handed over, and the delivery thread does not wait."""
        self._has_waited = False
        # From here on everything belongs to the loop.
        self._kept: dict[Kind, deque[tuple[int, Said]]] = {kind: deque() for kind in KINDS}
        """What has not been taken yet, each with its place in the order of all."""
        self._arrived = 0
        self._news = asyncio.Event()
        """Set, and then replaced, for each change: all iterators that wait for it look again."""
        self._has_ended = False
        self._failure: CoreFailed | None = None

    # -- on the delivery thread

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hand_over("allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hand_over("application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._hand_over("node", response)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        if self.hears_events:
            self._hand_over("events", events)

    def _hand_over(self, kind: Kind, value: Said) -> None:
        if self._is_deaf:
            return
        if not self._room.acquire(blocking=False):
            self._wait_for_room()
        # Asked again: whoever waited for room may have been let go by the end.
        if not self._is_deaf:
            self._on_loop(self._arrive, kind, value)

    def _wait_for_room(self) -> None:
        if not self._has_waited:
            self._has_waited = True
            logger.warning(
                "{} responses wait to be taken, so no more are delivered to {}: iterate over every "
                "kind of them, or over responses()",
                ROOM,
                self._rm_id,
            )
        self._room.acquire()

    # -- on any thread

    def end(self, failure: CoreFailed | None = None) -> None:
        """Nothing more comes; what has been handed over can still be taken."""
        self._is_deaf = True
        # One permit is enough: only the one delivery thread ever waits for room.
        self._room.release()
        self._on_loop(self._finish, failure)

    def abandon(self) -> None:
        """There is no listener any more.

        A collection of garbage calls this wherever it happens to run, inside the semaphore too: so
        that one is left to the loop.
        """
        self._is_deaf = True
        self._on_loop(self._forget)

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """A loop that has been closed hears nothing; that is no fault of the thread that speaks."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            self._is_deaf = True

    # -- on the loop

    async def take(self, kinds: tuple[Kind, ...]) -> Response:
        """Give out the oldest, or raise what ends an iteration.

        Between finding and giving nothing can be cancelled, so nothing is lost.
        """
        while (response := self._oldest(kinds)) is None:
            if self._failure is not None:
                raise anew(self._failure)
            if self._has_ended:
                raise StopAsyncIteration
            await self._news.wait()
        return response

    def _oldest(self, kinds: tuple[Kind, ...]) -> Response | None:
        heads = [(self._kept[kind][0][0], kind) for kind in kinds if self._kept[kind]]
        if not heads:
            return None
        _, kind = min(heads)
        _, value = self._kept[kind].popleft()
        self._room.release()
        return Response(kind, value)

    def _arrive(self, kind: Kind, value: Said) -> None:
        self._arrived += 1
        self._kept[kind].append((self._arrived, value))
        self._wake()

    def _finish(self, failure: CoreFailed | None) -> None:
        if not self._has_ended:
            self._has_ended, self._failure = True, failure
            self._wake()

    def _forget(self) -> None:
        self._room.release()
        for kept in self._kept.values():
            kept.clear()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
