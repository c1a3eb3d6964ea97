"""Functions that run under leases, for programs on an event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.aio_futures import AsyncLease, CoreLoopFuture, LoopPromise
from yunikorn_actors.front.executor import LeasedCalls, called

T = TypeVar("T")

NOT_STARTED: Final = (
    "the executor was not started: use it in an `async with` block, or await s.executor(...)"
)


class AsyncLeasedExecutor(Executor):
    """Runs each function as soon as the scheduler has room for it, and gives the room back.

    Made by `executor` of an `AsyncScheduler`. Enter its `async with` block, or await it and `close`
    it. The functions run on threads, in processes or on Dask, and the loop goes on meanwhile:
    `await pool.submit(fn, ...)`, or `await loop.run_in_executor(pool, fn, ...)`.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[LeasedCalls[AsyncLease]]],
        promise: Callable[[type[CoreLoopFuture[Any]]], LoopPromise[Any]],
    ) -> None:
        """Made by `executor` of a scheduler."""
        self._start = start
        self._promise = promise
        self._calls: LeasedCalls[AsyncLease] | None = None

    async def start(self) -> Self:
        """Submit its application."""
        # Once: a program may await it and enter its block.
        if self._calls is None:
            self._calls = await self._start()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    def submit(  # type: ignore[override]
        self,
        fn: Callable[..., T],
        /,
        *args: Any,  # noqa: ANN401 - of the function
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        priority: int = 0,
        **kwargs: Any,  # noqa: ANN401
    ) -> "asyncio.Future[T]":
        """Call `fn(*args, **kwargs)` when there is room; await the future of what it returns.

        The arguments and what the future raises are those of `LeasedExecutor.submit`.
        """
        if self._calls is None:
            raise RuntimeError(NOT_STARTED)
        promise: LoopPromise[T] = self._promise(CoreLoopFuture)
        size = {"vcore": vcore, "memory": memory, **(resources or {})}
        call = self._calls.submit(called(fn, *args, **kwargs), size, priority)
        # Cancelled on the loop, the call is cancelled where it is.
        promise.on_cancel(call.cancel)
        call.add_done_callback(partial(_settle, promise))
        return promise.future

    async def map(  # type: ignore[override]
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
    ) -> AsyncIterator[T]:
        """Yield the results in order, as `async for result in pool.map(fn, items)`."""
        # All of them at once, so that they run beside each other.
        futures = [self.submit(fn, *some) for some in zip(*iterables, strict=False)]
        try:
            for future in futures:
                yield await future
        finally:
            for future in futures:
                future.cancel()

    async def close(self, *, cancel_futures: bool = False) -> None:
        """Take no more functions, and wait until those that were taken have ended.

        With `cancel_futures` those that wait for room are withdrawn.
        """
        if self._calls is not None:
            self._calls.check_may_wait("close")
            self._calls.shut(cancel_futures=cancel_futures)
            # Shielded: a program that gives up the wait does not end the executor.
            await asyncio.shield(asyncio.wrap_future(self._calls.over))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more functions, without waiting: with `wait` await `close`."""
        if wait:
            raise InvalidRequest("shutdown would hold up the loop: write `await pool.close()`")
        if self._calls is not None:
            self._calls.shut(cancel_futures=cancel_futures)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close(cancel_futures=error is not None)

    def __enter__(self) -> NoReturn:
        raise TypeError("an executor of an AsyncScheduler: write `async with s.executor(...)`")


def _settle(promise: LoopPromise[Any], call: "Future[Any]") -> None:
    """Have the future on the loop end as the function has."""
    try:
        promise.keep(call.result())
    except CancelledError:
        promise.cancel()
    except StopIteration as error:
        # No future can raise it: it would look like the end of a coroutine.
        promise.fail(RuntimeError(f"the function raised {error!r}, which no future can raise"))
    except BaseException as error:  # noqa: BLE001 - whatever the function raises
        promise.fail(error)
