"""The core for programs that run on an event loop.

Calls go out on threads, so the loop never waits for the core; those of one resource manager are
made one after the other, in the order in which the program made them. Not even a plain update is
made on the loop itself: it may have to ask a directory for the groups of a user, and a core may
hold back a caller who is too far ahead of it.
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from yunikorn_actors import si
from yunikorn_actors.domain.why import Why
from yunikorn_actors.errors import CoreFailed, anew
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.runtime.answering import AnyCallback
from yunikorn_actors.runtime.clock import Clock
from yunikorn_actors.runtime.hooks import OnCallbackError, OnFailure
from yunikorn_actors.runtime.ordered_calls import OrderedCalls
from yunikorn_actors.runtime.responses import KINDS, Inbox, Kind, Responses
from yunikorn_actors.runtime.streams import ROOM, AsyncEventStream, Feed
from yunikorn_actors.runtime.system import STOP_TIMEOUT_S, SchedulerCore

_Result = TypeVar("_Result")
_Told = TypeVar("_Told")


class AsyncSchedulerCore:
    """The calls of `SchedulerCore`, each to be awaited; a handle gives out what the core says.

    A call that is cancelled before its turn is not made; one that is under way goes on unheard.
    """

    def __init__(
        self,
        *,
        topology: TopologyName = "proposing",
        settings: Settings | None = None,
        instance: str = "",
        trace: str | Path | None = None,
        config: str | Path | None = None,
        clock: Clock | None = None,
        on_failure: OnFailure | None = None,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """As `SchedulerCore`; the hooks are called on the event loop."""
        self._core = SchedulerCore(
            topology=topology, settings=settings, instance=instance, trace=trace,
            config=config, clock=clock, on_failure=self._on_loop(on_failure),
            on_callback_error=self._on_loop(on_callback_error),
        )  # fmt: skip
        self._core._when_over.append(self._end_all)
        self._calls = OrderedCalls()
        self._inboxes: dict[str, Inbox] = {}
        """Of each resource manager that is registered; written on the threads of its calls."""
        self._is_over = False

    @property
    def failure(self) -> CoreFailed | None:
        return self._core.failure

    @property
    def trace_failure(self) -> OSError | None:
        """Why the trace ends early, None while it is whole; the core goes on without it."""
        return self._core.trace_failure

    @property
    def clock(self) -> Clock:
        return self._core.clock

    @property
    def handled(self) -> int:
        """How many messages have been handled since the start."""
        return self._core.handled

    @property
    def next_due_ns(self) -> int | None:
        """When the first timer fires that is armed now."""
        return self._core.next_due_ns

    def is_settled(self) -> bool:
        """Every message that was sent has been handled, and no timer is due."""
        return self._core.is_settled()

    def clock_was_moved(self) -> None:
        """Tell the timers that a standing clock shows another time."""
        self._core.clock_was_moved()

    # -- life

    async def start(self) -> Self:
        """Start the core; the wait for its configuration is over at once, but it is a wait."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._core.start)
        return self

    async def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:  # noqa: ASYNC109 - the core's
        """Stop the core and end every iterator; what has arrived can still be taken."""
        try:
            await asyncio.to_thread(self._core.stop, timeout)
        finally:
            self._calls.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
        if error is None and self._core.failure is not None:
            raise anew(self._core.failure)

    # -- the scheduler interface

    async def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: AnyCallback | None = None,
        *,
        wants: Collection[Kind] = KINDS,
    ) -> Responses:
        """Register, or register anew: then the iterators of the former registration end.

        The callback answers questions and hears of container states, on this loop. Responses of a
        kind that is not wanted are not kept.
        """
        caller = _caller_of(request)
        inbox = Inbox(caller or "", asyncio.get_running_loop(), wants, callback)
        responses = Responses(inbox)
        await self._call(caller, self._register, request, inbox)
        return responses

    async def update_allocation(self, request: si.AllocationRequest) -> None:
        await self._call(_caller_of(request), self._core.update_allocation, request)

    async def update_application(self, request: si.ApplicationRequest) -> None:
        await self._call(_caller_of(request), self._core.update_application, request)

    async def update_node(self, request: si.NodeRequest) -> None:
        await self._call(_caller_of(request), self._core.update_node, request)

    async def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        await self._call(_caller_of(request), self._core.update_configuration, request)

    # -- the life of a resource manager

    async def resource_manager_lost(self, rm_id: str) -> None:
        await self._call(rm_id, self._take_leave, self._core.resource_manager_lost, rm_id)

    async def unregister_resource_manager(self, rm_id: str) -> None:
        await self._call(rm_id, self._take_leave, self._core.unregister_resource_manager, rm_id)

    # -- questions

    async def state_dump(self) -> dict[str, Any]:
        return await self._call(None, self._core.state_dump)

    async def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        return await self._call(
            None, lambda: self._core.explain(application_id, key, partition=partition)
        )

    async def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        return await self._call(None, self._core.events, first_id, count)

    async def event_stream(self, history: int = 0) -> AsyncEventStream:
        """Hear every event record from now on, after so many of the last ones."""
        feed = Feed(max(ROOM, history))
        address = await self._call(None, self._core._open_feed, feed, history)
        return AsyncEventStream(feed, lambda: self._call(None, self._core._close_feed, address))

    # -- parts

    async def _call(
        self, caller: str | None, function: Callable[..., _Result], *arguments: object
    ) -> _Result:
        self._core._check_running()
        return await asyncio.wrap_future(self._calls.submit(caller, lambda: function(*arguments)))

    def _on_loop(self, hook: Callable[[_Told], object] | None) -> Callable[[_Told], object] | None:
        if hook is None:
            return None
        return lambda told: self._loop.call_soon_threadsafe(hook, told)

    # -- on the threads of the calls

    def _register(self, request: si.RegisterResourceManagerRequest, inbox: Inbox) -> None:
        # Where this raises, the former registration goes on, and so do its iterators.
        self._core.register_resource_manager(request, inbox)
        former = self._inboxes.get(request.rm_id)
        self._inboxes[request.rm_id] = inbox
        if former is not None:
            former.end()
        if self._is_over:
            # It may have come too late to be ended with the others.
            inbox.end(self._core.failure)

    def _take_leave(self, call: Callable[[str], None], rm_id: str) -> None:
        call(rm_id)
        inbox = self._inboxes.pop(rm_id, None)
        if inbox is not None:
            inbox.end()

    def _end_all(self) -> None:
        self._is_over = True
        for inbox in self._inboxes.copy().values():
            inbox.end(self._core.failure)


def _caller_of(request: object) -> str | None:
    """A malformed request needs no order: it is refused by itself."""
    rm_id = getattr(request, "rm_id", None)
    return rm_id if isinstance(rm_id, str) else None
