"""Functions that run under leases, as futures of `concurrent.futures`."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import CoreError, LeaseLost, ResponsesLost
from yunikorn_actors.front.application import Application
from yunikorn_actors.front.events import Event, Events, LeaseOver, WantedBack
from yunikorn_actors.front.lease import Lease
from yunikorn_actors.front.records import Fits
from yunikorn_actors.front.workers import Workers

T = TypeVar("T")


class CallFuture(Future[T]):
    """The future of a function; cancelled before the function begins it withdraws the ask."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.RLock()
        """A cancellation and the beginning exclude each other."""
        self.ask: Future[Lease] | None = None
        """Of its room."""
        self.withdraw: Callable[[], None] = lambda: None
        """Called once, on the thread that cancels."""

    def cancel(self) -> bool:
        """Withdraw it; false if it runs already, or has ended."""
        with self._turn:
            if self.cancelled():
                return True
            if not super().cancel():
                return False
            # What waits for several futures at once notices it only so.
            self.set_running_or_notify_cancel()
        self.withdraw()
        return True

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result; if there is no room in time, `StillWaiting` says what it lacks."""
        try:
            return super().result(timeout)
        except TimeoutError:
            if not self.done() and not self.running() and self.ask is not None:
                self.ask.result(0)
            raise

    def begin(self) -> bool:
        """Say whether the function is to run."""
        with self._turn:
            return not self.cancelled() and self.set_running_or_notify_cancel()

    def end(self, result: Any, *, raised: bool) -> None:  # noqa: ANN401 - of the function
        """Set the outcome, unless the lease was lost before."""
        with suppress(InvalidStateError):
            (self.set_exception if raised else self.set_result)(result)


class LeasedExecutor(Executor):
    """Runs each function as soon as the scheduler has room for it, and gives the room back.

    Made by `executor` of a `Scheduler`. It is an executor as those of `concurrent.futures`, with
    the calls of these; `submit` also takes how much room the function needs.
    """

    def __init__(
        self,
        app: Application,
        events: Events[Event],
        workers: Workers,
        size: Mapping[str, si.Amount],
        fits: Fits | None,
    ) -> None:
        """Made by `executor` of a scheduler."""
        self.application: Final = app
        """Its application: each function is an ask of that."""
        self._events = events
        self._workers = workers
        self._size = dict(size)
        self._fits = fits
        self._numbers = count(1)
        self._changed = threading.Condition()
        self._open: dict[str, CallFuture[Any]] = {}
        """By the key of the ask, until the function has ended."""
        self._running: dict[str, Lease] = {}
        self._is_shut = False
        self._watcher = threading.Thread(
            target=self._watch, name="yunikorn-actors-executor", daemon=True
        )
        self._watcher.start()

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
        given = {"vcore": vcore, "memory": memory, **(resources or {})}
        size = {**self._size, **{kind: it for kind, it in given.items() if it is not None}}
        future: CallFuture[T] = CallFuture()
        call = partial(fn, *args, **kwargs)
        with self._changed:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown: make another one")
            key = f"call-{next(self._numbers)}"
            self._open[key] = future
        try:
            ask = self.application.ask(key, resources=size, priority=priority, fits=self._fits)
        except BaseException:
            self._close(key)
            raise
        future.ask, future.withdraw = ask, partial(self._withdraw, key, ask)
        ask.add_done_callback(partial(self._run, key, call, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more functions; with `cancel_futures` those that wait for room are withdrawn.

        The application is closed when the last function has ended; `wait` waits for that.
        """
        with self._changed:
            self._is_shut = True
            left = list(self._open.values())
            is_idle = not left
        if is_idle:
            self._end()
        if cancel_futures:
            for future in left:
                future.cancel()
        if wait:
            with self._changed:
                while self._open:
                    self._changed.wait()
            self._watcher.join()

    # -- on threads of the front

    def _withdraw(self, key: str, ask: Future[Lease]) -> None:
        ask.cancel()
        self._close(key)

    def _run(
        self, key: str, call: Callable[[], T], future: CallFuture[T], ask: Future[Lease]
    ) -> None:
        """Called on a thread of its own, which runs the function or waits for it."""
        try:
            lease = ask.result()
        except CancelledError:
            return
        except Exception as error:  # noqa: BLE001 - whatever the ask raises is the function's end
            future.end(error, raised=True)
            self._close(key)
            return
        raised = False
        result: Any = None
        with lease:
            if not future.begin():
                return
            with self._changed:
                self._running[key] = lease
            # What came before this was not noticed.
            self._look(lease)
            try:
                result = self._workers.run(lease, call)
            except BaseException as error:  # noqa: BLE001 - also sys.exit() of the function is its own
                result, raised = error, True
        was_ended = isinstance(result, BrokenExecutor) and lease.wanted_back.is_set()
        if lease.lost or was_ended:
            result, raised = _lost(lease), True
        future.end(result, raised=raised)
        self._close(key)

    def _close(self, key: str) -> None:
        with self._changed:
            self._open.pop(key, None)
            self._running.pop(key, None)
            is_over = self._is_shut and not self._open
            self._changed.notify_all()
        if is_over:
            self._end()

    def _end(self) -> None:
        self.application.close()
        self._events.close()
        self._workers.close()

    # -- on the watcher's thread

    def _watch(self) -> None:
        # If the core fails, leases are lost first, and each is an event.
        with suppress(CoreError):
            while not self._has_seen_all():
                for lease in list(self._running.values()):
                    self._look(lease)

    def _has_seen_all(self) -> bool:
        """Look at the lease of each event; false where some were dropped."""
        try:
            for event in self._events:
                if isinstance(event, WantedBack | LeaseOver):
                    self._look(event.lease)
        except ResponsesLost:
            return False
        return True

    def _look(self, lease: Lease) -> None:
        """End what runs under a lease that is wanted back or lost, as far as it can be ended."""
        if lease.application != self.application.id or lease.state not in {"wanted back", "lost"}:
            return
        with self._changed:
            future = self._open.get(lease.key)
            is_running = self._running.get(lease.key) is lease
        if future is None or not is_running:
            return
        self._workers.stop(lease)
        if lease.lost:
            future.end(_lost(lease), raised=True)


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"the function had no room any more: {lease.key} of {lease.application} on "
        f"{lease.node_id}: {lease.reason}; submit it again"
    )
