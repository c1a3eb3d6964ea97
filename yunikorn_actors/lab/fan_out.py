"""Spreads work over processes or machines; what comes of it is the same as of one process.

Work comes in shares, and each result depends on its share alone. So a share whose worker was lost
is done again, and results are handed over in the order of the shares, whichever was first.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import lru_cache
from itertools import islice
from types import TracebackType
from typing import Final, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.explore import Options, Run, Runs
from yunikorn_actors.lab.workers.process_pool import Workers, interrupts_held
from yunikorn_actors.machines.topology import TopologyName

AHEAD: Final = 4
"""So many shares are given out for each worker, so that none has to wait."""
PROCESSES_MAX: Final = 256
"""Each takes some 50 MB, and far more of them than processors make a machine stand still."""
RUNS_IN_SHARE: Final = 20
"""Many enough that their way to a worker costs little, few enough that little is done in vain."""

_Share = TypeVar("_Share")
_Result = TypeVar("_Result")


class WorkerLost(CoreError, RuntimeError):
    """A share of the work ends every worker that does it."""


class StaysHere(CoreError, ValueError):
    """The work can't be given to another process."""


class TooMany(CoreError, ValueError):
    """No machine has room for so many processes."""


class WorkerPool(Protocol):
    """Those who work."""

    lost: tuple[type[BaseException], ...]
    """What a future raises when its worker is gone."""
    losses_max: int
    """A share that was lost so often is what ends its workers."""

    @property
    def size(self) -> int: ...

    def gather(self) -> Executor:
        """Make an executor; again, when workers of the last one were lost."""

    def dismiss(self, executor: Executor) -> None:
        """End it at once: what it still does is in vain."""


class Processes:
    """Processes on this machine."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    losses_max = 3

    def __init__(self, size: int) -> None:
        if size > PROCESSES_MAX:
            raise TooMany(f"{size} processes are not allowed: take at most {PROCESSES_MAX}")
        self.size = size

    def gather(self) -> Executor:
        return Workers(self.size)

    def dismiss(self, executor: Executor) -> None:
        assert isinstance(executor, Workers)
        executor.end()


class _Task(Generic[_Share, _Result]):
    def __init__(self, share: _Share) -> None:
        self.share = share
        self.future: Future[_Result] | None = None
        """None before it is given out, and after its worker was lost."""
        self.losses = 0

    @property
    def is_done(self) -> bool:
        future = self.future
        if future is None or not future.done() or future.cancelled():
            return False
        return future.exception() is None

    def lose(self) -> None:
        if self.future is not None and not self.is_done:
            self.future = None
            self.losses += 1


class FanOut:
    """Has a pool of workers do shares of work, while it is entered."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        self._executor = self._pool.gather()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dismiss()

    def each(
        self, work: Callable[[_Share], _Result], shares: Iterable[_Share]
    ) -> Generator[_Result]:
        """Yield what comes of each share, in their order; take them as they are needed."""
        tasks = (_Task[_Share, _Result](share) for share in shares)
        ahead: deque[_Task[_Share, _Result]] = deque()
        try:
            while True:
                # A share that is done again is alone, so that no other is blamed for the next loss.
                if all(task.future is not None for task in ahead):
                    for task in islice(tasks, max(0, AHEAD * self._pool.size - len(ahead))):
                        ahead.append(task)
                        task.future = self._give(work, task.share)
                if not ahead:
                    return
                yield self._first_of(ahead, work)
        finally:
            for task in ahead:
                if task.future is not None:
                    task.future.cancel()

    def _first_of(
        self, ahead: deque[_Task[_Share, _Result]], work: Callable[[_Share], _Result]
    ) -> _Result:
        """Wait for the first task; while its worker is lost, have it done again."""
        first = ahead[0]
        while True:
            if first.future is None:
                first.future = self._give(work, first.share)
            try:
                result = first.future.result()
            except self._pool.lost as error:
                for task in ahead:
                    task.lose()
                if first.losses >= self._pool.losses_max:
                    raise WorkerLost(
                        f"{first.share}: lost {first.losses} times together with the worker, the "
                        f"last time by {error!r}: see what ends it, by doing this in one process"
                    ) from error
                self._dismiss()
                self._executor = self._pool.gather()
            else:
                ahead.popleft()
                return result

    def _give(self, work: Callable[[_Share], _Result], share: _Share) -> Future[_Result]:
        assert self._executor is not None, "give work to a pool of workers inside of `with`"
        try:
            with interrupts_held():
                return self._executor.submit(work, share)
        except self._pool.lost as error:
            # Found out when its turn comes, like any other loss.
            future = Future[_Result]()
            future.set_exception(error)
            return future

    def _dismiss(self) -> None:
        if self._executor is not None:
            self._pool.dismiss(self._executor)
            self._executor = None


# -- runs of a case as shares


class RunSource(Struct, frozen=True, kw_only=True):
    """What a worker makes the runs of a case from; it goes as text, and can go to any machine."""

    text: str
    file: str
    topology: TopologyName
    schedulers: int
    policies: str
    options: Options
    length: int


class Share(Struct, frozen=True):
    source: RunSource
    numbers: range

    def __str__(self) -> str:
        return f"runs {self.numbers[0]} to {self.numbers[-1]} of {self.source.file}"


class FannedOut:
    """A player that has a pool of workers play."""

    def __init__(self, fan_out: FanOut) -> None:
        self._fan_out = fan_out

    def __call__(self, runs: Runs, numbers: range) -> Iterator[Run]:
        for played in self._fan_out.each(play_share, _shares(runs, numbers)):
            yield from played


def _shares(runs: Runs, numbers: range) -> Iterator[Share]:
    case = runs.case
    if not case.text:
        raise StaysHere(
            f"{case.scenario.file} is no scenario file, and a function of a test stays in its "
            "process: explore it in one, or run several tests at once, as with `pytest -n`"
        )
    source = RunSource(
        text=case.text,
        file=case.scenario.file,
        topology=case.topology,
        schedulers=case.schedulers,
        policies=case.policies,
        options=runs.options,
        length=runs.length,
    )
    for first in range(0, len(numbers), RUNS_IN_SHARE):
        yield Share(source, numbers[first : first + RUNS_IN_SHARE])


def play_share(share: Share) -> list[Run]:
    """Play in a worker."""
    runs = _runs(share.source)
    return [runs.play(number) for number in share.numbers]


@lru_cache(maxsize=1)
def _runs(source: RunSource) -> Runs:
    case = parse_case(source.text, source.file)
    case = case.on(source.topology, source.schedulers, source.policies)
    return Runs(case=case, options=source.options, length=source.length)
