"""Futures of the front: those of the standard library, with some differences.

Done callbacks run on threads of their own, not on the thread that sets the result: that one is the
core's. Inside the core, and in a forked process, no result can come, so waiting for one raises. A
future that is used as if it were its lease raises an error that names the right code.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar
from weakref import ref

from yunikorn_actors.errors import CoreError
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.records import nothing
from yunikorn_actors.front.session import Session
from yunikorn_actors.recording.logs import alarm
from yunikorn_actors.runtime.core_arguments import read_timeout

T = TypeVar("T")

IDLE_S: Final = 5.0

Call = Callable[[], object]


class CallbackThreads:
    """Calls into the program that no thread waits for: each has a thread as soon as it comes.

    A done callback may block or raise. So none runs on a thread of the core, and none waits for
    another one: there is always one thread that is ready for the next call, and it appoints its
    successor before it makes a call. Threads that have had nothing to do for a while end.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: deque[Call] = deque()
        self._ready = 0
        """Threads that are about to take a call."""
        self._is_closed = False

    def call(self, call: Call) -> None:
        """Have the call made; callable from anywhere, under any lock."""
        with self._changed:
            self._calls.append(call)
            self._changed.notify()
            needed = self._appoint()
        if needed:
            self._start()

    def close(self) -> None:
        """Let threads end that have nothing to do; calls that come later are made all the same."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _appoint(self) -> bool:
        """Have what waits taken by a thread; return whether one must be started."""
        # One ready thread is enough: it appoints the next before it makes its call.
        if self._ready or not self._calls:
            return False
        self._ready = 1
        return True

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="yunikorn-actors-done", daemon=True).start()
        except RuntimeError:
            # Threads are at their limit. What waits is taken by one that has made its call, or by
            # one that the next call can start.
            with self._changed:
                self._ready -= 1

    def _work(self) -> None:
        while (call := self._take()) is not None:
            _make(call)
            with self._changed:
                self._ready += 1

    def _take(self) -> Call | None:
        with self._changed:
            while not self._calls:
                # One that is ready beside this one is enough.
                is_spare = self._ready > 1 or self._is_closed
                has_news = not is_spare and self._changed.wait(IDLE_S)
                if not has_news and not self._calls:
                    self._ready -= 1
                    return None
            call = self._calls.popleft()
            self._ready -= 1
            # The next call is for the next thread, which is started before this one is made.
            needed = self._appoint()
        if needed:
            self._start()
        return call


def _make(call: Call) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - the edge: it is the program's, and it is reported
        trace = "".join(traceback.format_exception(error)).rstrip()
        alarm(f"a done callback raised\n{trace}")


class Pending(Protocol):
    """What a future of an ask is about, as long as the ask waits."""

    def withdraw(self) -> None: ...

    def still_waits(self, after_s: float) -> CoreError: ...


OF_A_LEASE = frozenset(it for it in dir(BaseLease) if not it.startswith("_")) | {
    "running",
    "state",
    "reason",
    "wanted_back",
}


class NoLease:
    """A future that helps when a program takes it for its lease: it says what to write instead."""

    _with_remedy: str
    """What to write in place of a `with` block of the future itself."""
    _lease_remedy: str
    """An expression for the lease."""

    def __enter__(self) -> NoReturn:
        raise TypeError(f"an ask is a future of its lease: {self._with_remedy}")

    def __aenter__(self) -> NoReturn:
        raise TypeError(f"an ask is a future of its lease: {self._with_remedy}")

    def __exit__(self, *_: object) -> None:
        """Never called; `with` wants it to be there."""

    def __aexit__(self, *_: object) -> None:
        """As `__exit__`."""

    def __getattr__(self, name: str) -> NoReturn:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in OF_A_LEASE:
            text += f"; it is one of the lease: write {self._lease_remedy}.{name}"
        raise AttributeError(text, name=name, obj=self)


class _Waiters(list[Any]):
    """Where `wait` and `as_completed` of the standard library enter what waits for a future."""

    future: "ref[CoreFuture[Any]]"
    """Weakly: a future in a circle would keep its lease from being dropped."""

    def append(self, waiter: object) -> None:
        future = self.future()
        if future is not None and not future.done():
            future._session.check_may_wait("a wait for futures")
        super().append(waiter)


class CoreFuture(Future[T]):
    """What the core decides about: a wait for it raises where no answer can come."""

    def __init__(self, session: Session[Any]) -> None:
        super().__init__()
        self._session = session
        # A future of this kind is entered where `wait` of the library looks.
        self._waiters = _Waiters()
        self._waiters.future = ref(self)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, or raise what was set instead."""
        if not self.done():
            self._session.check_may_wait("result")
        try:
            return super().result(timeout)
        except TypeError:
            # A timeout that is none: named as such, unlike an error of the function.
            if not self.done():
                read_timeout("result", timeout)
            raise
        except TimeoutError:
            if not self.done():
                raise self._still_waits(timeout) from None
            # Done in that very moment, or the function itself raised a `TimeoutError`.
            return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end; return what went wrong, or None."""
        if not self.done():
            self._session.check_may_wait("exception")
        try:
            return super().exception(timeout)
        except TypeError:
            if not self.done():
                read_timeout("exception", timeout)
            raise
        except TimeoutError:
            if not self.done():
                raise self._still_waits(timeout) from None
            return super().exception()

    def _still_waits(self, timeout: float | None) -> Exception:  # noqa: ARG002 - of a subclass
        return TimeoutError()


class FrontFuture(NoLease, CoreFuture[T]):
    """A future of `concurrent.futures`, for what the core answers.

    `result(timeout)` waits; `cancel()` withdraws the ask. Done callbacks run on threads of their
    own, so one may block or call the scheduler, and harms no other.
    """

    _lease_remedy = "app.ask(...).result(timeout=10)"
    _with_remedy = f"write `with {_lease_remedy} as lease:`"

    _threads: CallbackThreads
    """Set when it is made."""
    _pending: Pending | None = None

    def add_done_callback(self, fn: "Callable[[Future[T]], object]") -> None:
        """Have it called with the future, on a thread of its own, once the future is done."""
        call = self._threads.call
        # A callback that held its own future would keep it, and its lease, from being dropped.
        super().add_done_callback(lambda done: call(partial(fn, done)))

    def attach(self, pending: Pending) -> None:
        """Withdraw it, on the thread that cancels, if the future is cancelled before it is done."""
        self._pending = pending

        def look(done: Future[T]) -> None:
            if done.cancelled():
                # A program that waits for several futures at once notices it only so.
                done.set_running_or_notify_cancel()
                pending.withdraw()

        super().add_done_callback(look)

    def _still_waits(self, timeout: float | None) -> Exception:
        return TimeoutError() if self._pending is None else self._pending.still_waits(timeout or 0)

    def __await__(self) -> NoReturn:
        raise self._of_threads()

    def __aenter__(self) -> NoReturn:
        raise self._of_threads()

    def _of_threads(self) -> TypeError:
        return TypeError(
            "this ask is of a Scheduler, whose futures are for threads: write "
            f"{self._lease_remedy}; on an event loop use AsyncScheduler"
        )


class FuturePromise(Generic[T]):
    """The other side of such a future."""

    def __init__(self, threads: CallbackThreads, session: Session[Any]) -> None:
        self.future: FrontFuture[T] = FrontFuture(session)
        self.future._threads = threads

    def keep(self, value: T, otherwise: Callable[[], None] = nothing) -> None:
        try:
            self.future.set_result(value)
        except InvalidStateError:
            # Cancelled in this moment: what it was given goes back.
            otherwise()

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)
