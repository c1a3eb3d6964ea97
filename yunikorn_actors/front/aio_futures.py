"""Futures, leases and events of a front on an event loop: set on the loop, from any thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextvars import Context
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Literal, NoReturn, Self, TypeVar

from yunikorn_actors.errors import SchedulerClosed
from yunikorn_actors.front.futures import NoLease, Pending
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.records import nothing
from yunikorn_actors.front.subscriptions import AnyEvent, Subscription

T = TypeVar("T")
E = TypeVar("E")

OnLoop = Callable[..., None]
"""Has a function called on the loop; nothing is called on one that was closed."""


class _Sent:
    """What a call returns that does not wait: a program may await it as others, and need not."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


SENT: Final[Awaitable[None]] = _Sent()


class _WantedBack(asyncio.Event):
    """Set by the core, so a wait for it inside the core would never end."""

    def __init__(self, check_may_wait: Callable[[str], None]) -> None:
        super().__init__()
        self._check_may_wait = check_may_wait

    async def wait(self) -> Literal[True]:
        """Wait until the lease is wanted back; raise where that cannot be noticed."""
        if not self.is_set():
            self._check_may_wait("wanted_back.wait")
        return await super().wait()


class AsyncLease(BaseLease):
    """As `Lease`, with an `asyncio.Event` that is set on the loop, and an `async with` block."""

    def __init__(
        self,
        on_loop: OnLoop,
        running: Running,
        release: Callable[[], None],
        check_may_wait: Callable[[str], None],
    ) -> None:
        """Make a lease, for a placed ask or for work that runs already."""
        super().__init__(running, release)
        self.wanted_back: Final[asyncio.Event] = _WantedBack(check_may_wait)
        """Set when the work is to end; wait for it, or look at it now and then."""
        self._on_loop = on_loop

    def release(self) -> Awaitable[None]:  # type: ignore[override]
        """Give the room back: the work has ended, or has not begun. Again, it does nothing."""
        self._release()
        return SENT

    def _want_back(self) -> None:
        self._on_loop(self.wanted_back.set)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


AsyncEvent = AnyEvent[AsyncLease]
"""What an iterator of `AsyncScheduler.events` gives out."""


class AsyncEvents(Subscription[E], AsyncIterator[E]):
    """As `Events`, with `async for` and `async with`."""

    def __init__(
        self,
        kinds: tuple[str, ...],
        leave: Callable[[Subscription[E]], None],
        check_may_wait: Callable[[str], None],
        on_loop: OnLoop,
    ) -> None:
        super().__init__(kinds, leave)
        self._check_may_wait = check_may_wait
        self._on_loop = on_loop
        self._changed = asyncio.Event()

    def _wake(self) -> None:
        self._on_loop(self._changed.set)

    async def __anext__(self) -> E:
        while True:
            # Cleared before the look: what comes after it sets it again.
            self._changed.clear()
            # Read before the event is taken: one that comes just before the end would otherwise be
            # lost.
            is_over = self._is_over
            event = self._take()
            if event is not None:
                return event
            if is_over:
                raise StopAsyncIteration
            self._check_may_wait("an iterator of events")
            await self._changed.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class CoreLoopFuture(asyncio.Future[T]):
    """A future of `asyncio`; awaiting it inside the core raises, as no result can come there."""

    _await_remedy = "write `await` before it, in asyncio.timeout(10)"
    """What to write in place of a call of `result`."""
    _check_may_wait: Callable[[], None]
    """Set when it is made."""

    def result(self, *timeout: object) -> T:
        """Return the result; a future of a loop does not wait for it."""
        if timeout or not self.done():
            raise asyncio.InvalidStateError(
                f"a future of a loop is awaited: {self._await_remedy} if it is not to wait for ever"
            )
        return super().result()

    # Read by `wait` and `as_completed` of the threads: raising there names the right call.
    @property
    def _condition(self) -> NoReturn:
        raise TypeError(
            "concurrent.futures waits for futures of threads; these are of a loop: "
            "`await asyncio.wait([...])`, or asyncio.gather"
        )

    def add_done_callback(
        self, fn: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Have it called on the loop; what `gather`, `wait` or `wait_for` add is a wait."""
        added = fn.func if isinstance(fn, partial) else fn
        # By its module, because the library adds its own callbacks for a wait.
        if not self.done() and getattr(added, "__module__", None) == asyncio.wait.__module__:
            self._check_may_wait()
        super().add_done_callback(fn, context=context)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done():
            self._check_may_wait()
        return super().__await__()


class LoopFuture(NoLease, CoreLoopFuture[T]):
    """The future of a lease, which goes back where nobody can get it any more."""

    _is_taken = False
    """The program has the result."""
    _lease_remedy = "(await app.ask(...))"
    _with_remedy = "write `async with await app.ask(...) as lease:`"
    _await_remedy = "write `await app.ask(...)`, in asyncio.timeout(10) or with deadline=10"

    def result(self, *timeout: object) -> T:
        """Return the lease, or raise why there is none."""
        lease = super().result(*timeout)
        self._is_taken = True
        return lease

    def __await__(self) -> Generator[Any, None, T]:
        lease = yield from super().__await__()
        self._is_taken = True
        return lease

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ANN401 - of asyncio
        """Withdraw the ask; a lease that came at that very moment is given back.

        A timeout cancels what is awaited: the task, `gather` and `wait_for` do so by this call. The
        future may be done by then while the task that awaits it was not resumed. That task gets
        `CancelledError` and never the lease.
        """
        if self.done() and not self._is_taken and not self.cancelled():
            # Not by `exception()`: after that asyncio would not warn that nobody looked at it.
            lease = super().result() if self._exception is None else None
            if isinstance(lease, AsyncLease):
                lease.release()
        return super().cancel(msg)


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class LoopPromise(Generic[T]):
    """The other side of an `asyncio` future; kept from any thread."""

    def __init__(
        self,
        on_loop: OnLoop,
        check_may_wait: Callable[[], None],
        kind: type[CoreLoopFuture[Any]] = LoopFuture,
    ) -> None:
        self.future: CoreLoopFuture[T] = kind(loop=asyncio.get_running_loop())
        self.future._check_may_wait = check_may_wait
        self._on_loop = on_loop

    def keep(self, value: T, otherwise: Callable[[], None] = nothing) -> None:
        self._on_loop(self._keep, value, otherwise)

    def fail(self, error: BaseException) -> None:
        self._on_loop(self._fail, error)

    def cancel(self) -> None:
        self._on_loop(self.future.cancel)

    def attach(self, pending: Pending) -> None:
        self.on_cancel(pending.withdraw)

    def on_cancel(self, call: Callable[[], object]) -> None:
        def look(future: "asyncio.Future[T]") -> None:
            if future.cancelled():
                call()

        self.future.add_done_callback(look)

    def _keep(self, value: T, otherwise: Callable[[], None]) -> None:
        # Cancelled in the moment in which the core placed it: its lease goes back at once.
        if self.future.done():
            otherwise()
        else:
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if self.future.done():
            return
        self.future.set_exception(error)
        if isinstance(error, SchedulerClosed):
            # The program did that itself: it need not hear of each future that it left.
            self.future.exception()
