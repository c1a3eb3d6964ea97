"""Crews that lose workers, and what workers do in tests; processes import it by this name."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from called import KILLED

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.machines.context import commit

RUNS_BEFORE = 5

_judged = count()


def unchecked() -> tuple[Checker, ...]:
    """Make the oracles of a run in which proposals are committed on nodes that have left."""
    commit.check_node = lambda *_: None
    return oracles()


def deadly() -> tuple[Checker, ...]:
    """Make the oracles of a run, unless this is the first worker that has made a few."""
    if next(_judged) == RUNS_BEFORE and parent_process() is not None:
        with suppress(FileExistsError):
            Path(os.environ[KILLED]).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return oracles()


class Threads:
    """A pool of workers of threads: any executor can be given."""

    lost = (BrokenExecutor,)
    losses_max = 3

    def __init__(self, size: int) -> None:
        self.size = size

    def gather(self) -> Executor:
        return ThreadPoolExecutor(self.size)

    def dismiss(self, executor: Executor) -> None:
        executor.shutdown(wait=True, cancel_futures=True)


class Frail:
    """A pool of workers that works at once; some shares end it, each so often."""

    lost = (BrokenExecutor,)
    losses_max = 3

    def __init__(self, *sizes: int, **deadly: int) -> None:
        """`sizes` are those after each loss; the last one stays."""
        self.deadly = Counter(deadly)
        self.given: list[Any] = []
        self.gathered = 0
        self.loses_all = True
        """Whether what comes after a loss is lost as well, as with processes."""
        self._sizes = sizes or (1,)

    @property
    def size(self) -> int:
        return self._sizes[min(self.gathered, len(self._sizes)) - 1]

    def gather(self) -> Executor:
        self.gathered += 1
        return _FrailExecutor(self)

    def dismiss(self, executor: Executor) -> None:
        executor.shutdown()


class _FrailExecutor(Executor):
    def __init__(self, pool: Frail) -> None:
        self._pool = pool
        self._is_broken = False

    def submit(self, work: Callable[[Any], Any], share: Any, /) -> Future[Any]:
        if self._is_broken:
            raise BrokenExecutor("gone")
        self._pool.given.append(share)
        future: Future[Any] = Future()
        if self._pool.deadly[share]:
            self._pool.deadly[share] -= 1
            self._is_broken = self._pool.loses_all
            future.set_exception(BrokenExecutor("killed"))
        else:
            future.set_result(work(share))
        return future
