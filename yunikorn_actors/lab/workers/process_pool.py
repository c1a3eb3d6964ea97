"""Processes as an executor: each has a pipe of its own, and its end is the end of that.

Python's `ProcessPoolExecutor` has one pipe for all results. A worker that is killed while it writes
one leaves half of it there and keeps the lock, and the pool waits for the other half for ever. Here
nobody but the worker has the far end of its pipe, so half a result is followed by an end of file.

Seldom collections of garbage, for a process in which worlds are played one after the other.

Each world is a cycle of a thousand objects that ends as a whole, and beside it little comes to
stay. The usual collector walks the living world again and again, and all modules now and then:
that was a seventh of the time of a run.
"""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, ParamSpec, TypeVar

_NEW_MAX: Final = 10_000
"""So many objects are made before those that are new are looked at."""


class _Others:
    """What the program around the laboratory does with its collector."""

    have_frozen = False
    """Once seen it is not asked again: to count what is frozen walks through all of it."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Pass over what there is already; afterwards the collector is as it was."""
    was_frozen = _Others.have_frozen = _Others.have_frozen or gc.get_freeze_count() > 0
    newest, *older = gc.get_threshold()
    if not was_frozen:
        gc.freeze()
    gc.set_threshold(max(newest, _NEW_MAX), *older)
    try:
        yield
    finally:
        gc.set_threshold(newest, *older)
        if not was_frozen:
            gc.unfreeze()


_P = ParamSpec("_P")
_T = TypeVar("_T")

_SPAWN: Final = get_context("spawn")


class Workers(Executor):
    """New processes: nothing is forked, nothing inherited. A thread waits for what each does."""

    def __init__(self, size: int) -> None:
        self._workers = tuple(_Worker() for _ in range(size))
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(size)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        return self._threads.submit(self._have_done, fn, args, kwargs)

    def _have_done(self, *work: Any) -> Any:  # noqa: ANN401 - whatever is submitted
        worker = self._idle.get()
        try:
            return worker.do(work)
        finally:
            # One that is gone as well: it fails at once, and so does all that waits for a worker.
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self.end()

    def end(self) -> None:
        """End the processes, whatever they do; what is submitted fails."""
        for worker in self._workers:
            worker.end()
        self._threads.shutdown(cancel_futures=True)


class _Worker:
    def __init__(self) -> None:
        self._pipe, far_end = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_work, args=(far_end,), daemon=True)
        # Python's tracker of shared resources has to be there: its start lets ctrl-C through again.
        resource_tracker.ensure_running()
        with interrupts_held():
            self._process.start()
        far_end.close()

    def do(self, work: tuple[Any, ...]) -> Any:  # noqa: ANN401 - whatever it returns
        try:
            self._pipe.send(work)
            returned, error = self._pipe.recv()
        except (EOFError, OSError) as ended:
            raise BrokenExecutor(f"process {self._process.pid} has ended") from ended
        if error is not None:
            raise error
        return returned

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _work(pipe: Connection) -> None:
    """Do what comes through the pipe, until it closes or the parent process ends."""
    end_with_parent()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        # The first work brings the modules.
        work = pipe.recv()
        with seldom_collecting():
            while True:
                pipe.send(_done(*work))
                work = pipe.recv()


def _done(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Exception | None]:
    try:
        return fn(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001 - it is raised where the result is waited for
        return None, error


def end_with_parent() -> None:
    """End this worker when its parent process has ended, and so could not end it."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_outlive, args=(parent,), name="yunikorn-actors-parent", daemon=True).start()


def _outlive(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Keep ctrl-C waiting; processes that start meanwhile inherit that, and never hear of it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
