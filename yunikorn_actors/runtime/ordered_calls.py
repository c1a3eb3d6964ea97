"""Threads that make calls for a caller that must not wait.

Calls for one caller are made one after the other in the order of `submit`; calls without a caller
are made at once. A caller is known as long as one of its calls waits, so names that come and go
leave nothing behind, and a long call delays those of its own caller alone.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias, TypeVar

THREADS_MAX: Final = 64
"""Calls under way at one time; they wait far more than they work."""

_Result = TypeVar("_Result")


class OrderedCalls:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS_MAX, "yunikorn-actors-call")
        self._lock = threading.Lock()
        """Guards who has calls waiting: exactly one thread works off those of a caller."""
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def submit(self, caller: str | None, call: Callable[[], _Result]) -> Future[_Result]:
        future: Future[_Result] = Future()
        work = _answering(future, call)
        if caller is None:
            self._threads.submit(work)
            return future
        with self._lock:
            is_new = caller not in self._waiting
            self._waiting.setdefault(caller, deque()).append(work)
        # A caller that is known has a thread at work, which finds this call before it ends.
        if is_new:
            self._threads.submit(self._work_off, caller)
        return future

    def close(self) -> None:
        """Take no more; what has been submitted is still done, and then the threads end."""
        self._threads.shutdown(wait=False)

    def _work_off(self, caller: str) -> None:
        while (work := self._next(caller)) is not None:
            work()

    def _next(self, caller: str) -> Callable[[], None] | None:
        with self._lock:
            waiting = self._waiting[caller]
            if waiting:
                return waiting.popleft()
            # Under the same lock: a call that came in between would wait where nobody
            # works it off.
            del self._waiting[caller]
            return None


def _answering(future: Future[_Result], call: Callable[[], _Result]) -> Callable[[], None]:
    def work() -> None:
        # Cancelled before its turn: the call is not made.
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            future.set_exception(error)
        else:
            future.set_result(result)

    return work


Close: TypeAlias = Callable[[], None]
"""Ends a feed."""


async def opened(opening: Future[Close], close_later: Callable[[Close], object]) -> Close:
    """Wait for a feed that another thread opens.

    Its reader may be cancelled meanwhile. The feed is opened all the same and would stay open for
    ever, so it is closed then, by a function that waits for nothing.
    """

    def close(opening: Future[Close]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            close_later(opening.result())

    try:
        return await asyncio.wrap_future(opening)
    except BaseException:
        # Also for a cancellation, which is no Exception.
        opening.add_done_callback(close)
        raise
