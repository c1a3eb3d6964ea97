"""Long work in slices, so that the messages of others do not wait until it is done.

What grows with the state (the end of an application with 100,000 asks, a reload of 10,000 queues)
is a *job*: a generator that yields after each small piece. A slice is a number of pieces, bounded
by a count and never by time, so that a replay makes the same slices. After a slice the machine
sends itself `RunSlice`, at most one at a time, so what is in its mailbox by then comes first.
Several jobs take turns (ADR 39).

Each job has an *order key*, the resource manager for which it works. While a job is under way,
everything with its key waits in order behind it, as it would wait for a long handler. Other keys do
not wait. Work that fits in one slice leaves no trace of all this.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages.scheduling import RunSlice

ItemT = TypeVar("ItemT")
Steps = Iterator[int]
"""The pieces of a job: how many items each has handled."""

LOOKED_AT_IN_ONE: Final = 20
"""How many looks are as much work as one item."""


def ends_piece(number: int) -> bool:
    """Whether a job yields at the thing of this number, counted from 0, that it only looks at."""
    # At 0 as well: a job with nothing to do but looking has its first piece at once.
    return number % LOOKED_AT_IN_ONE == 0


FRESH: Final = -1
"""A piece that begins something new: the count of pieces starts again at 0."""


def gathered(
    items: Iterable[ItemT], in_one: int = LOOKED_AT_IN_ONE
) -> Generator[int, None, deque[ItemT]]:
    """Collect the items, in pieces of `in_one`; their source must not change meanwhile."""
    found: deque[ItemT] = deque()
    source, before = iter(items), 0
    while True:
        found.extend(islice(source, in_one))
        # Fewer than asked for: the source is at its end. Exactly as many: one more look finds
        # nothing, and returns.
        if len(found) < before + in_one:
            return found
        before = len(found)
        yield 1


def drained(left: deque[ItemT]) -> Iterator[ItemT]:
    """Yield each and let go of it: whatever goes is not freed all at the end."""
    while left:
        yield left.popleft()


COPIED_IN_ONE: Final = 1_000
"""How many copies are as much work as one item."""


def drawn_off(items: Iterable[ItemT]) -> Generator[int, None, Iterator[ItemT]]:
    """Copy items as they are now, to be drained: what they come from may change from then on."""
    return drained((yield from gathered(items, COPIED_IN_ONE)))


class Job(Protocol):
    """Work that may need several slices."""

    @property
    def steps(self) -> Steps: ...

    def begin_slice(self, now_ns: int) -> None:
        """Go on at this moment, after other messages have been handled."""
        ...

    def end_slice(self) -> list[Effect]:
        """Return what follows from the pieces of this slice."""
        ...

    def pause(self) -> None:
        """Prepare for other messages: the job goes on in another slice."""
        ...


class Computation:
    """A job that changes nothing before its end; its generator returns the effects."""

    def __init__(self, work: Generator[int, None, list[Effect]]) -> None:
        self._out: list[Effect] = []
        self.steps = self._run(work)

    def _run(self, work: Generator[int, None, list[Effect]]) -> Steps:
        # Set when the generator returns; `end_slice` hands it out.
        self._out = yield from work

    def begin_slice(self, now_ns: int) -> None:
        """Time is nothing to it."""

    def end_slice(self) -> list[Effect]:
        out, self._out = self._out, []
        return out

    def pause(self) -> None:
        """Nothing has happened yet."""


Task = Callable[[int], "list[Effect] | Job"]
"""What a message asks for, at a moment: it is done at once, or it is a job."""


class Slices:
    """The jobs of one machine, and what waits behind each."""

    def __init__(self, address: str, slice_max: int) -> None:
        """`RunSlice` comes to `address`."""
        self._address, self._max = address, slice_max
        self.jobs: dict[str, Job | None] = {}
        """By order key, the next one first; None where a key only has tasks that wait.

        Read before each message: nearly always it is empty, and nothing waits.
        """
        # Only keys with a job have an entry.
        self._waiting: dict[str, deque[Task]] = {}
        self._is_coming = False
        """`RunSlice` is on its way."""

    def canonical_state(self) -> dict[str, int]:
        """How many tasks wait for each key that has a job; nothing where none is under way."""
        return {order_key: len(waiting) for order_key, waiting in sorted(self._waiting.items())}

    def __getstate__(self) -> dict[str, Any]:
        """A copy in the middle of long work can be looked at, and does not go on."""
        # Tasks are closures, which cannot be copied; how many wait can be shown.
        nobody = {
            order_key: deque([None] * len(tasks)) for order_key, tasks in self._waiting.items()
        }
        return self.__dict__ | {"jobs": dict.fromkeys(self.jobs), "_waiting": nobody}

    def do(self, order_key: str, task: Task, now_ns: int) -> list[Effect]:
        """Do it at once, as far as one slice goes, or when all before it with its key is done."""
        # Behind those that wait already: one that overtook would break the order of its manager
        #
        if order_key in self.jobs:
            self._waiting[order_key].append(task)
            return []
        begun = task(now_ns)
        return begun if isinstance(begun, list) else self.begin(order_key, begun)

    def begin(self, order_key: str, job: Job) -> list[Effect]:
        """Do the first slice of a job, with a key that has none under way."""
        # Nearly every job ends here, and then nothing was ever registered.
        if self._is_done(job):
            return job.end_slice()
        self.jobs[order_key] = job
        self._waiting[order_key] = deque()
        return [*job.end_slice(), *self._continuation()]

    def go_on(self, now_ns: int) -> list[Effect]:
        """Do one slice of the job whose turn it is, or the next of the tasks behind it."""
        self._is_coming = False
        order_key, job = next(iter(self.jobs.items()))
        # Behind the others, and busy all the time.
        del self.jobs[order_key]
        self.jobs[order_key] = job
        # A task that waited is done here, or becomes the next job of its key.
        effects, job = self._slice_of(order_key, job, now_ns)
        # Something waits behind it: the key stays, without a job, until its turn comes again.
        if job is not None or self._waiting[order_key]:
            self.jobs[order_key] = job
        else:
            del self.jobs[order_key], self._waiting[order_key]
        return [*effects, *self._continuation()]

    def _slice_of(
        self, order_key: str, job: Job | None, now_ns: int
    ) -> tuple[list[Effect], Job | None]:
        """Return what follows from a slice, and the job if it is not done."""
        if job is not None:
            job.begin_slice(now_ns)
        else:
            begun = self._waiting[order_key].popleft()(now_ns)
            if isinstance(begun, list):
                return begun, None
            job = begun
        is_done = self._is_done(job)
        return job.end_slice(), None if is_done else job

    def _is_done(self, job: Job) -> bool:
        """Do the pieces of one slice."""
        handled = 0
        for items in job.steps:
            # More than the bound: pieces of several items may exceed it a little.
            handled = 0 if items == FRESH else handled + items
            if handled > self._max:
                job.pause()
                return False
        return True

    # One at a time: with one for each job the mailbox would fill with them.
    def _continuation(self) -> list[Effect]:
        if self._is_coming or not self.jobs:
            return []
        self._is_coming = True
        return [Send(to=self._address, message=RunSlice())]
