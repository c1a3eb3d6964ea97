"""The core for programs that run on an event loop.

Calls go out on threads, so the loop never waits for the core; those of one resource manager are
made one after the other, in the order in which the program made them. Even a plain update is not
made on the loop: it may have to ask a directory for the groups of a user, and a core may hold back
a caller that is too far ahead of it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from yunikorn_actors import si
from yunikorn_actors.drivers.live.clock import Clock
from yunikorn_actors.errors import CoreError, CoreFailed
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.recording.recorder import TraceSettings
from yunikorn_actors.runtime.async_callback import AnyCallback
from yunikorn_actors.runtime.core_api import Core
from yunikorn_actors.runtime.core_arguments import CoreDriver, check_forms
from yunikorn_actors.runtime.event_streams import ROOM, Feed
from yunikorn_actors.runtime.failure_hooks import OnCallbackError, OnFailure
from yunikorn_actors.runtime.ordered_calls import Close, OrderedCalls, opened
from yunikorn_actors.runtime.responses import KINDS, Inbox, Kind, Responses
from yunikorn_actors.runtime.scheduler_core import STOP_TIMEOUT_S, SchedulerCore
from yunikorn_actors.si.form import check_counts
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.what_if.answer import Answer
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request
from yunikorn_actors.what_if.run import Fits

_Result = TypeVar("_Result")
_Report = TypeVar("_Report")
_Core = TypeVar("_Core", bound=Core)


class AsyncCore(Generic[_Core]):
    """The calls of a core, each to be awaited.

    A call that is cancelled before its turn is not made; a call that is under way is finished, and
    its outcome is dropped.
    """

    def __init__(self, core: _Core) -> None:
        self._core: Final = core
        self._core.when_over.append(self._end_all)
        self._calls = OrderedCalls()
        self._inboxes: dict[str, Inbox] = {}
        """Of each resource manager that is registered; written on the threads of its calls."""
        self._is_over = False

    @property
    def failure(self) -> CoreError | None:
        """Why the core takes nothing more, None while it does."""
        return self._core.failure

    # -- life

    async def start(self) -> Self:
        """Start the core, or connect to it."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._core.start)
        return self

    async def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:  # noqa: ASYNC109 - the core's
        """Stop the core or leave it, and end every iterator; what has come can still be taken."""
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
        if error is None:
            self._core.check_sound()

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
        # Made on the loop, because it has an event of the loop; filled on a delivery thread.
        inbox = Inbox(caller or "", asyncio.get_running_loop(), wants, callback)
        responses = Responses(inbox)
        await self._call(caller, self._register, request, inbox)
        return responses

    async def update_allocation(self, request: si.AllocationRequest) -> None:
        """Make asks, report and release; the answers come through the handle."""
        await self._call(_caller_of(request), self._core.update_allocation, request)

    async def update_application(self, request: si.ApplicationRequest) -> None:
        """Add and remove applications; the answers come through the handle."""
        await self._call(_caller_of(request), self._core.update_application, request)

    async def update_node(self, request: si.NodeRequest) -> None:
        """Add, change, drain and remove nodes; the answers come through the handle."""
        await self._call(_caller_of(request), self._core.update_node, request)

    async def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed."""
        await self._call(_caller_of(request), self._core.update_configuration, request)

    # -- the life of a resource manager

    async def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions until it registers again; its iterators end."""
        await self._call(rm_id, self._take_leave, self._core.resource_manager_lost, rm_id)

    async def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager; its iterators end."""
        await self._call(rm_id, self._take_leave, self._core.unregister_resource_manager, rm_id)

    # -- questions

    async def state_dump(self) -> dict[str, Any]:
        """Return everything that the core knows, as plain values; see `SchedulerCore`."""
        return await self._call(None, self._core.state_dump)

    async def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits; see `SchedulerCore`."""
        return await self._call(
            None, lambda: self._core.explain(application_id, key, partition=partition)
        )

    async def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size; see `SchedulerCore`."""
        return await self._call(None, lambda: self._core.waiting(partition=partition))

    async def expected(
        self, application_id: str = "", *, partition: str = ""
    ) -> tuple[Expected, ...]:
        """Return when what waits will start; see `SchedulerCore`."""
        return await self._call(
            None, lambda: self._core.expected(application_id, partition=partition)
        )

    async def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        return await self._call(None, self._core.events, first_id, count)

    async def event_stream(self, history: int = 0) -> "AsyncEventStream":
        """Hear every event record from now on, after the last `history` ones."""
        check_counts("event_stream", least=-INT64_MAX, history=history)
        feed = Feed(max(ROOM, history))
        self._core.check_running()
        opening = self._calls.submit(None, lambda: self._core.open_feed(feed, history))
        close = await opened(opening, self._close_soon)
        return AsyncEventStream(feed, lambda: self._close(close))

    # -- parts

    async def _close(self, close: Close) -> None:
        """Close a feed; who is cancelled meanwhile has closed it all the same."""
        closing = self._close_soon(close)
        if closing is not None:
            # Shielded: a reader that is cancelled must not leave a feed open.
            await asyncio.shield(asyncio.wrap_future(closing))

    def _close_soon(self, close: Close) -> Future[None] | None:
        """Callable on any thread; None once the core is stopped, which has ended all feeds."""
        # A core that was stopped has shut its threads down: submitting raises.
        try:
            return self._calls.submit(None, close)
        except RuntimeError:
            return None

    async def _call(
        self, caller: str | None, function: Callable[..., _Result], *arguments: object
    ) -> _Result:
        self._core.check_running()
        return await asyncio.wrap_future(self._calls.submit(caller, lambda: function(*arguments)))

    def _on_loop(
        self, hook: Callable[[_Report], object] | None
    ) -> Callable[[_Report], object] | None:
        if hook is None:
            return None
        # Hooks are called on threads of the core, and a program on a loop expects them on the loop.
        return lambda report: self._loop.call_soon_threadsafe(hook, report)

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
        # The call first: one that raises leaves the manager registered, with its iterators.
        call(rm_id)
        inbox = self._inboxes.pop(rm_id, None)
        if inbox is not None:
            inbox.end()

    def _end_all(self) -> None:
        # Set before the walk: a registration that comes later looks at it (see `_register`).
        self._is_over = True
        for inbox in self._inboxes.copy().values():
            inbox.end(self._core.failure)


class AsyncSchedulerCore(AsyncCore[SchedulerCore]):
    """The calls of `SchedulerCore`, each to be awaited."""

    def __init__(
        self,
        *,
        driver: CoreDriver = "threads",
        topology: TopologyName = "proposing",
        schedulers: int = 1,
        settings: Settings | None = None,
        instance: str = "",
        trace: str | Path | TraceSettings | None = None,
        journal: str | Path | None = None,
        config: str | Path | None = None,
        policies: Mapping[str, Policy] | None = None,
        clock: Clock | None = None,
        on_failure: OnFailure | None = None,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """As `SchedulerCore`; the hooks are called on the event loop."""
        check_forms(on_failure=on_failure, on_callback_error=on_callback_error)
        core = SchedulerCore(
            driver=driver, topology=topology, schedulers=schedulers, settings=settings,
            instance=instance, trace=trace, journal=journal, config=config, policies=policies,
            clock=clock, on_failure=self._on_loop(on_failure),
            on_callback_error=self._on_loop(on_callback_error),
        )  # fmt: skip
        super().__init__(core)

    @property
    def failure(self) -> CoreFailed | None:
        """Why the core takes nothing more, None while it does."""
        return self._core.failure

    @property
    def trace_failure(self) -> OSError | None:
        """Why the trace ends early, None while it is whole; the core goes on without it."""
        return self._core.trace_failure

    def save_trace(self, path: str | Path) -> None:
        """Write what the flight recorder has kept (`TraceSettings.flight_recorder_bytes`)."""
        self._core.save_trace(path)

    async def simulate(
        self,
        *changes: Change | Request | Reconfigure,
        until: float | None = None,
        compare: bool = True,
        fits: Fits | None = None,
    ) -> Answer:
        """Say what would happen from here with these changes; see `SchedulerCore`."""
        return await self._call(
            None,
            lambda: self._core.simulate(*changes, until=until, compare=compare, fits=fits),
        )

    @property
    def clock(self) -> Clock:
        """The clock that it was given, or that of the world."""
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


class AsyncEventStream(AsyncIterator[si.EventRecord]):
    """As `EventStream`, with `async with` and `async for`."""

    def __init__(self, feed: Feed, leave: Callable[[], Awaitable[None]]) -> None:
        self._feed = feed
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        feed.on_change = self._notify

    @property
    def overflow(self) -> int:
        """How many records were not kept, because too many waited to be taken."""
        return self._feed.overflow

    async def close(self) -> None:
        """Hear no more; what has come can still be taken."""
        try:
            await self._leave()
        finally:
            self._feed.end()

    async def __anext__(self) -> si.EventRecord:
        while True:
            # As in EventStream: the end is read before the records.
            is_over = self._feed.has_ended
            record = self._feed.take()
            if record is not None:
                return record
            if is_over:
                raise StopAsyncIteration
            # Cleared before the last look: what comes after the look sets it again.
            self._changed.clear()
            if not self._feed.kept and not self._feed.has_ended:
                await self._changed.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _notify(self) -> None:
        """A loop that has been closed takes nothing, and nobody waits on it."""
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:
            self._feed.has_ended = True


def _caller_of(request: object) -> str | None:
    """A malformed request needs no order: it is refused by itself."""
    rm_id = getattr(request, "rm_id", None)
    return rm_id if isinstance(rm_id, str) else None
