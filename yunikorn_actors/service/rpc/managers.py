"""The resource managers that are registered here, and their streams; all of it on the loop.

A registration lives until its manager registers again or leaves, or until the last of its streams
has ended, however that came about: then the manager is reported lost to the core. One that has
not opened any stream yet has some minutes to do so.

What belongs to one manager happens in turn: its requests are posted in the order in which they are
taken, and a registration finds none of the former one under way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from yunikorn_actors import si
from yunikorn_actors.errors import CoreError, CoreStopped, UnknownResourceManager, anew
from yunikorn_actors.service.rpc.admission import Intake
from yunikorn_actors.service.rpc.messages import Kind
from yunikorn_actors.service.rpc.outgoing import Outlet
from yunikorn_actors.service.rpc.protobuf import LARGE
from yunikorn_actors.service.rpc.statuses import StreamOver, TooMany
from yunikorn_actors.service.served import ServedCore

T = TypeVar("T")
CALLS_MAX: Final = 32
"""Calls that wait for the core at one time; each ends by itself."""
ASIDE_MAX: Final = 4
"""Calls that wait for another process at one time."""
MANAGERS_MAX: Final = 1_000
"""That are registered at one time: each has threads of its own."""
UNOPENED_S: Final = 300.0
"""How long a registration may be without any stream."""


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Await work that is done to its end even if its caller is cancelled.

    After that nobody is left to ask for its error, so the callback does: the loop would report it.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


class Stream:
    """One open stream of a resource manager."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self.kinds: Final = frozenset(kinds)
        self.ended: Final[asyncio.Future[Exception | None]] = asyncio.Future()
        """Why it is to end, None if all is well."""

    def end(self, error: Exception | None = None) -> None:
        if not self.ended.done():
            self.ended.set_result(error)


class Manager:
    """One registration."""

    def __init__(self, rm_id: str, outlet: Outlet) -> None:
        self.rm_id: Final = rm_id
        self.outlet: Final = outlet
        self.streams: list[Stream] = []
        self.over: CoreError | None = None
        """Why it takes no more requests."""
        self.was_open = False
        """Whether it has had a stream: without one it cannot have lost the last."""
        self.patience: asyncio.TimerHandle | None = None
        """How long its first stream is waited for."""

    @property
    def has_lost_all(self) -> bool:
        return self.was_open and not self.streams

    def open(self, kinds: Collection[Kind]) -> Stream:
        """Open a stream; one that takes some of the same kinds ends."""
        self.check()
        stream = Stream(kinds)
        for former in [it for it in self.streams if it.kinds & stream.kinds]:
            self.streams.remove(former)
            former.end(StreamOver(f"{self.rm_id} has opened this stream again"))
        self.streams.append(stream)
        self.was_open = True
        self._wait_no_longer()
        return stream

    def check(self) -> None:
        if self.over is not None:
            raise anew(self.over)

    def end(self, error: CoreError, reason: CoreError | None) -> None:
        """End all streams with this error, None if that is as it should be."""
        if self.over is None:
            self.over = error
            self._wait_no_longer()
            self.outlet.close()
            for stream in self.streams:
                stream.end(reason)
            self.streams.clear()

    def _wait_no_longer(self) -> None:
        """The loop would keep all of this until then."""
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None


class Managers:
    def __init__(self, core: ServedCore, answer_s: float) -> None:
        """`answer_s`: how long a manager may take to answer a question of the core."""
        self.core: Final = core
        self.intake: Final = Intake()
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(CALLS_MAX, "yunikorn-actors-rpc")
        self._long = ThreadPoolExecutor(1, "yunikorn-actors-rpc-long")
        self._aside = ThreadPoolExecutor(ASIDE_MAX, "yunikorn-actors-rpc-aside")
        self._by_id: dict[str, Manager] = {}
        # Weak: a lock that nobody holds or waits for is made anew when it is needed.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By manager, for as long as it is in use: ids come and go."""
        self._registering: set[str] = set()
        self.is_closing = False

    # -- calls

    async def call(self, function: Callable[[], T]) -> T:
        """Make a call that waits for the core."""
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Make the call on a thread of the pool, even if its caller goes away."""
        return self._threads.submit(function)

    async def call_long(self, function: Callable[[], T]) -> T:
        """Make a call that takes long: one after the other, or together they would starve the core.

        Nor do many of them need memory at one time.
        """
        return await self._loop.run_in_executor(self._long, function)

    async def call_aside(self, function: Callable[[], T]) -> T:
        """Make a call that another process answers: for minutes, and it costs nothing here."""
        return await self._loop.run_in_executor(self._aside, function)

    async def call_about(self, config: str, function: Callable[[], T]) -> T:
        """Make a call that brings a configuration, which may take long to read."""
        return await (self.call_long if len(config) > LARGE else self.call)(function)

    def find(self, rm_id: str) -> Manager:
        self.check()
        manager = self._by_id.get(rm_id)
        if manager is None:
            raise UnknownResourceManager(
                f'RmID="{rm_id}" is not registered: call RegisterResourceManager first'
            )
        return manager

    def check(self) -> None:
        """Raise if the service takes nothing more."""
        if self.is_closing:
            raise CoreStopped("the service is being stopped: connect again later")
        self.core.check_running()

    async def say(self, manager: Manager, take: Callable[[], None], *, may_block: bool) -> None:
        """Post a request when it is its turn and the core has room for it.

        So it is the stream of a manager that is too fast that is not read meanwhile, and nothing
        blocks: neither the loop nor a thread.
        """
        # Again after each wait: others may have taken the room.
        while not self.is_closing:
            if await _finish(self._post(manager, take, may_block=may_block)):
                return
            await self._room(manager.rm_id)
        # It is not taken, and its stream stays until what was sent before is delivered.
        await self._loop.create_future()

    async def _post(self, manager: Manager, take: Callable[[], None], *, may_block: bool) -> bool:
        """Return whether there was room. Shielded: the next caller must find the call made."""
        async with self._turn(manager.rm_id):
            manager.check()
            self.core.check_running()
            if not self.core.has_room(manager.rm_id):
                return False
            await self.call(take) if may_block else take()
            return True

    def _turn(self, rm_id: str) -> asyncio.Lock:
        return self._turns.setdefault(rm_id, asyncio.Lock())

    async def _room(self, rm_id: str) -> None:
        room = asyncio.Event()
        # The core calls once there is room, on a thread of its own.
        self.core.when_room(rm_id, partial(self.on_loop, room.set))
        await room.wait()

    def on_loop(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            self._loop.call_soon_threadsafe(function)

    # -- the life of a registration

    async def register(
        self, request: si.RegisterResourceManagerRequest, hears: Collection[Kind] = ()
    ) -> Manager:
        """Register; the streams of a former registration end once this one is accepted.

        Shielded: a registration that the core has accepted is known here, even if its caller has
        gone.
        """
        return await _finish(self._register(request, hears))

    async def _register(
        self, request: si.RegisterResourceManagerRequest, hears: Collection[Kind]
    ) -> Manager:
        self.check()
        rm_id = request.rm_id
        if rm_id not in self._by_id and len(self._by_id) >= MANAGERS_MAX:
            raise TooMany(
                f"{MANAGERS_MAX} resource managers are registered: unregister those that have gone"
            )
        outlet = Outlet(hears, self._loop, self._answer_s)
        async with self._turn(rm_id):
            with self._replacing(rm_id) as former:
                register = partial(self.core.register_resource_manager, request, outlet)
                await self.call_about(request.config, register)
                again = StreamOver(f"{rm_id} has registered again")
                if former is not None:
                    former.end(again, again)
                manager = self._by_id[rm_id] = Manager(rm_id, outlet)
                # A manager that never opens a stream is lost like one whose streams have ended.
                manager.patience = self._loop.call_later(UNOPENED_S, self._lose, manager)
        return manager

    @contextmanager
    def _replacing(self, rm_id: str) -> Iterator[Manager | None]:
        """Have a former registration hold nothing up, and go on if the next one is refused."""
        former = self._by_id.get(rm_id)
        self._registering.add(rm_id)
        # It must not hold up the delivery thread, which the registration waits for.
        if former is not None:
            former.outlet.lift()
        try:
            yield former
        finally:
            self._registering.discard(rm_id)
            if former is not None and former.over is None:
                former.outlet.bound()
                self._look_whether_lost(former)

    async def unregister(self, rm_id: str) -> None:
        self.check()
        async with self._turn(rm_id):
            self.core.unregister_resource_manager(rm_id)
            self._forget(rm_id, None)

    def _forget(self, rm_id: str, reason: CoreError | None) -> None:
        manager = self._by_id.pop(rm_id, None)
        if manager is not None:
            over = f"{rm_id} is no longer registered: call register_resource_manager again"
            manager.end(UnknownResourceManager(over), reason)

    def leave(self, manager: Manager, stream: Stream) -> None:
        """A stream has ended, however."""
        stream.end()
        if stream in manager.streams:
            manager.streams.remove(stream)
            self._look_whether_lost(manager)

    def _look_whether_lost(self, manager: Manager) -> None:
        # While it registers again it is not lost: the core would forget that registration.
        if manager.has_lost_all and manager.over is None and manager.rm_id not in self._registering:
            self._lose(manager)

    def _lose(self, manager: Manager) -> None:
        self._forget(manager.rm_id, None)
        with suppress(CoreError):
            self.core.resource_manager_lost(manager.rm_id)

    # -- the end

    def core_is_over(self) -> None:
        """Called on any thread."""
        self.on_loop(self._end_all)

    def _end_all(self) -> None:
        over = self.core.failure or CoreStopped("the core was stopped")
        for manager in self._by_id.values():
            manager.end(over, over)
        self._by_id.clear()

    async def close(self, deliver: Callable[[], Awaitable[None]]) -> None:
        """Take nothing new, deliver what there is, and end every stream."""
        self.is_closing = True
        await deliver()
        stopped = CoreStopped("the service was stopped")
        for manager in self._by_id.values():
            manager.end(stopped, stopped)
        self._by_id.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)
        self._aside.shutdown(wait=False, cancel_futures=True)

    def is_delivered(self) -> bool:
        """Whether everything that the core has sent has gone out, where a client listens."""
        return self.core.is_settled() and all(
            manager.outlet.is_empty(stream.kinds)
            for manager in self._by_id.values()
            for stream in manager.streams
        )
