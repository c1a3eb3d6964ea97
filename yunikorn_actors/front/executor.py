"""Functions that run under leases, as futures of `concurrent.futures`."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from inspect import iscoroutinefunction
from itertools import count
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest, LeaseLost
from yunikorn_actors.front.application import (
    Application,
    BaseApplication,
    Made,
    with_futures_of,
)
from yunikorn_actors.front.arguments import read_amounts
from yunikorn_actors.front.futures import CoreFuture, Pending
from yunikorn_actors.front.lease import BaseLease, Lease
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.front.records import Fits, nothing
from yunikorn_actors.front.session import Session
from yunikorn_actors.front.subscriptions import AnyEvent, LeaseOver, Subscription, WantedBack
from yunikorn_actors.front.workers import Workers, current_lease

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")

_NUMBERS: Final = count(1)


def executor_size(
    vcore: si.Amount | None, memory: si.Amount | None, resources: Mapping[str, si.Amount] | None
) -> dict[str, si.Amount]:
    """Return what a function needs, one vcore if nothing is given; refuse what is no amount."""
    size = read_amounts("executor", vcore, memory, resources) or {"vcore": 1}
    # Parsed for its errors alone: a wrong amount is refused here, not at each call.
    si.Resource.parse(size)
    return size


def executor_name(name: str) -> str:
    """Return the id of the application of an executor."""
    return name or f"executor-{next(_NUMBERS)}"


class CallFuture(CoreFuture[T]):
    """The future of a function; cancelled before the function begins it withdraws the ask.

    It is also the other side of itself: the core keeps it with a lease, or has it fail.
    """

    def __init__(self, session: Session[Any]) -> None:
        super().__init__(session)
        self._turn = threading.RLock()
        """A cancellation and the beginning exclude each other."""

    _pending: Pending | None = None
    _run: Callable[[BaseLease], None]
    """Called with the lease, on a thread of its own."""
    _over: Callable[[], None]
    """Called when the function has no ask any more."""
    _threads: Callable[[Callable[[], object]], None]

    def attach(self, pending: Pending) -> None:
        self._pending = pending
        if self.cancelled():
            pending.withdraw()

    # -- from the core, under its lock: whatever follows is done on another thread

    def keep(self, lease: BaseLease, otherwise: Callable[[], None] = nothing) -> None:
        self._threads(otherwise if self.cancelled() else partial(self._run, lease))

    def fail(self, error: BaseException) -> None:
        self._threads(partial(self.end, error, raised=True))

    # -- the program

    def cancel(self) -> bool:
        """Withdraw it; false if it runs already, or has ended."""
        with self._turn:
            if self.cancelled():
                return True
            if not super().cancel():
                return False
            # What waits for several futures at once notices it only so.
            self.set_running_or_notify_cancel()
        # Outside of the lock: withdrawing goes to the core.
        if self._pending is not None:
            self._pending.withdraw()
        self._over()
        return True

    def begin(self) -> bool:
        """Say whether the function is to run."""
        with self._turn:
            return not self.done() and self.set_running_or_notify_cancel()

    def end(self, result: Any, *, raised: bool) -> None:  # noqa: ANN401 - of the function
        """Set the outcome, unless the lease was lost before."""
        with suppress(InvalidStateError):
            (self.set_exception if raised else self.set_result)(result)
        self._over()

    def _still_waits(self, timeout: float | None) -> Exception:
        if self.running() or self._pending is None:
            return TimeoutError()
        return self._pending.still_waits(timeout or 0)


class _LeaseEvents(Subscription[AnyEvent[L]]):
    """Calls, on a thread of its own, with each lease that is wanted back or over."""

    def __init__(self, operations: Operations[L], call: Callable[[L], None]) -> None:
        super().__init__(("wanted_back", "lease_over"), operations.leave)
        self._threads = operations.threads
        self._call = call
        operations.subscribe(self)

    def notify(self, event: AnyEvent[L]) -> None:
        if isinstance(event, WantedBack | LeaseOver):
            # On a thread: what it calls may wait, and the core must not.
            self._threads.call(partial(self._call, event.lease))

    def _wake(self) -> None:
        """Nothing waits for an event here."""


class LeasedCalls(Generic[L]):
    """What both executors have in common: each function is an ask, and runs under its lease."""

    def __init__(
        self,
        operations: Operations[L],
        app: BaseApplication[Any, L],
        workers: Workers,
        size: Mapping[str, si.Amount],
        fits: Fits | None,
    ) -> None:
        self._operations = operations
        self._app = app
        self._workers = workers
        self._size = dict(size)
        self._fits = fits
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._open: dict[str, CallFuture[Any]] = {}
        """By the key of the ask, until the function has ended."""
        self._running: dict[L, tuple[str, Lease]] = {}
        """With the lease as its function sees it."""
        self._is_shut = self._is_over = False
        self.over: Final[CoreFuture[None]] = CoreFuture(operations.session)
        """Done when nothing runs any more, and nothing more is taken."""
        self._events = _LeaseEvents(operations, self._look)

    def submit(
        self,
        call: Callable[[], T],
        resources: Mapping[str, si.Amount | None],
        priority: int,
    ) -> CallFuture[T]:
        size = {**self._size, **{kind: it for kind, it in resources.items() if it is not None}}
        future: CallFuture[T] = CallFuture(self._operations.session)
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown: make another one")
            key = f"call-{next(self._numbers)}"
            self._open[key] = future
        # Set before the ask: the core may place it before this call returns.
        future._run = partial(self._run, key, call, future)
        future._over = partial(self._close, key)
        future._threads = self._operations.threads.call
        made: Made[CallFuture[T], L] = Made(future, future, future.attach)
        try:
            app = with_futures_of(self._app, lambda: made)
            app.ask(key, resources=size, priority=priority, fits=self._fits)
        except BaseException:
            # Refused: nothing of it may be left, or the executor would wait for it.
            self._close(key)
            raise
        return future

    def check_may_wait(self, what: str) -> None:
        self._operations.session.check_may_wait(what)

    def shut(self, *, cancel_futures: bool) -> None:
        """Take no more functions; the application is closed when the last one has ended."""
        with self._lock:
            self._is_shut = True
            left = list(self._open.values())
        if cancel_futures:
            # Outside of the lock: a future calls back into this object.
            for future in left:
                future.cancel()
        self._end_if_idle()

    # -- on threads of the front

    def _run(self, key: str, call: Callable[[], T], future: CallFuture[T], lease: L) -> None:
        """Run the function, or wait for it if it runs elsewhere."""
        try:
            if not future.begin():
                return
            seen = self._seen(lease)
            with self._lock:
                self._running[lease] = (key, seen)
            # What came before this was not noticed.
            self._look(lease)
            raised, result = False, None
            try:
                result = self._workers.run(seen, call)
            except BaseException as error:  # noqa: BLE001 - also sys.exit() of the function is its own
                result, raised = error, True
            # A process that was ended has lost its lease, whatever it raised.
            was_ended = isinstance(result, BrokenExecutor) and seen.wanted_back.is_set()
            if lease.lost or was_ended:
                result, raised = _lost(lease), True
            with self._lock:
                del self._running[lease]
        finally:
            lease.release()
        future.end(result, raised=raised)

    def _seen(self, lease: L) -> Lease:
        """Return a lease that a function on a thread can use, also if the program is on a loop."""
        if isinstance(lease, Lease):
            return lease
        return Lease(lease.running, lease.release, self._operations.session.check_may_wait)

    def _look(self, lease: L) -> None:
        """End what runs under a lease that is wanted back or lost, as far as it can be ended."""
        if lease.state not in {"wanted back", "lost"}:
            return
        with self._lock:
            key, seen = self._running.get(lease, ("", None))
            future = self._open.get(key)
        if seen is None or future is None:
            return
        seen.state, seen.reason = lease.state, lease.reason
        seen.wanted_back.set()
        # Only a process can be ended; a function on a thread sees the event alone.
        self._workers.stop(seen)
        if lease.lost:
            future.end(_lost(lease), raised=True)

    def _close(self, key: str) -> None:
        with self._lock:
            self._open.pop(key, None)
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        with self._lock:
            if not self._is_shut or self._open or self._is_over:
                return
            self._is_over = True
        self._app.close()
        self._events.close()
        self._workers.close()
        self.over.set_result(None)


class LeasedExecutor(Executor):
    """Runs each function as soon as the scheduler has room for it, and gives the room back.

    Made by `executor` of a `Scheduler`. It is an executor as those of `concurrent.futures`, with
    the calls of these; `submit` also takes how much room the function needs.
    """

    def __init__(self, app: Application, calls: LeasedCalls[Lease]) -> None:
        """Made by `executor` of a scheduler."""
        self.application: Final = app
        """Its application: each function is an ask of that."""
        self._calls = calls

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
    ) -> Future[T]:
        """Call `fn(*args, **kwargs)` when there is room; return the future of what it returns.

        `vcore`, `memory`, `resources` and `priority` are those of the ask: what is not given is as
        the executor was made. A function with a parameter of such a name needs a `partial`. The
        future raises what the function raises, what the ask raises (`AskRejected` and so on), or
        `LeaseLost` if its lease was lost before the function had returned.
        """
        size = {"vcore": vcore, "memory": memory, **(resources or {})}
        return self._calls.submit(called(fn, *args, **kwargs), size, priority)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more functions; with `cancel_futures` those that wait for room are withdrawn.

        The application is closed when the last function has ended; `wait` waits for that.
        """
        lease = current_lease()
        if wait and lease is not None and lease.application == self.application.id:
            raise RuntimeError(
                "shutdown was called by a function of this executor, for whose end it would wait: "
                "call shutdown(wait=False)"
            )
        self._calls.shut(cancel_futures=cancel_futures)
        if wait:
            self._calls.over.result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for all functions; after an error for those that run, and withdraw the others.

        Room may never come, so the error would not leave the block.
        """
        self.shutdown(cancel_futures=kind is not None)


def called(fn: Callable[..., T], *args: Any, **kwargs: Any) -> Callable[[], T]:  # noqa: ANN401
    """Return the call; refuse what is none before it waits for room."""
    if not callable(fn):
        raise InvalidRequest(f"submit: must be a function, not {type(fn).__name__}")
    if iscoroutinefunction(fn):
        raise InvalidRequest(
            "submit: a coroutine function would only make a coroutine: its work is for an event "
            "loop, under a lease of its own: `async with await app.ask(...): await fn(...)`"
        )
    return partial(fn, *args, **kwargs)


def _lost(lease: BaseLease) -> LeaseLost:
    return LeaseLost(
        f"the function had no room any more: {lease.key} of {lease.application} on "
        f"{lease.node_id}: {lease.reason}; submit it again"
    )
