"""Futures of the front: those of the standard library, with two differences.

Done callbacks run on threads of their own and not on the one that sets the result: that one is the
core's. And in a forked process, where no result can come, waiting for one raises.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Generic, TypeVar

from yunikorn_actors.errors import CoreStopped
from yunikorn_actors.front.callers import Callers

T = TypeVar("T")


class FrontFuture(Future[T]):
    """A future of `concurrent.futures`, for what the core answers.

    `result(timeout)` waits; `cancel()` withdraws the ask. Done callbacks run on threads of their
    own, so one may block or call the scheduler, and harms no other.
    """

    def __init__(self, callers: Callers) -> None:
        super().__init__()
        self._callers = callers
        self._process = os.getpid()

    def add_done_callback(self, fn: "Callable[[Future[T]], object]") -> None:
        """Have it called with the future, on a thread of its own, once the future is done."""
        super().add_done_callback(lambda _: self._callers.call(lambda: fn(self)))

    def when_cancelled(self, withdraw: Callable[[], None]) -> None:
        """Call it, on the thread that cancels, if the future is cancelled before it is done."""

        def look(_: Future[T]) -> None:
            if self.cancelled():
                # Whoever waits for several futures at once hears of it only so.
                self.set_running_or_notify_cancel()
                withdraw()

        super().add_done_callback(look)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, or raise what was set instead."""
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end; return what went wrong, or None."""
        self._check_process()
        return super().exception(timeout)

    def _check_process(self) -> None:
        if not self.done():
            check_process(self._process)


class FuturePromise(Generic[T]):
    """The other side of such a future."""

    def __init__(self, callers: Callers) -> None:
        self.future: FrontFuture[T] = FrontFuture(callers)

    def keep(self, value: T) -> None:
        with suppress(InvalidStateError):
            self.future.set_result(value)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def check_process(process: int) -> None:
    """Raise in the fork of a process: what it waits for has stayed with the parent."""
    if os.getpid() != process:
        raise CoreStopped(
            "the core is the parent's, whose threads a forked process does not have: wait for this "
            "there, or make another scheduler in this process"
        )
