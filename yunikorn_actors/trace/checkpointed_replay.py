"""A recording run again: from the last checkpoint that will do, and as far as is needed.

Where a replay of a recording has been, so that the next one need not begin at the beginning.

A checkpoint holds the machines, packed, in the memory of this process. It is written to no file,
and nothing is ever unpacked that was not packed here: what lies beside a recording comes from
anywhere. Checkpoints count only for the very files that were read; for others, and for those that
have grown, the replay begins anew.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from yunikorn_actors.machines.context import Context
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.rm_events import AskItem, RMUpdateAllocation, RMUpdateNode
from yunikorn_actors.recording.packed import packed, unpacked
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.records.source import FileId
from yunikorn_actors.trace.replay import Rerun, Step

EVERY: Final = 25_000
"""So many messages are between two checkpoints: to handle them again takes about a second."""
BYTES_MAX: Final = 64 * 2**20
"""So much is kept; behind the last checkpoint that has room a replay takes as long as it takes."""


class Checkpoint(NamedTuple):
    """After the record of some message, before the next."""

    record: int
    segment: int
    """Of the recording, in which that record stands."""
    steps: dict[str, int]
    """How many messages each mailbox had received."""
    latest_ns: int
    """The latest time of any message up to here."""
    packed: bytes


class Checkpoints:
    """All checkpoints of one recording."""

    def __init__(self, every: int = EVERY) -> None:
        self.every = every
        self._of: tuple[tuple[FileId, ...], dict[int, Checkpoint]] = (), {}

    def of(self, files: tuple[FileId, ...]) -> dict[int, Checkpoint]:
        """Return the checkpoints in these files, by their records; forget those in others."""
        if self._of[0] != files:
            self._of = files, {}
        return self._of[1]


def newest(
    checkpoints: dict[int, Checkpoint], is_before: Callable[[Checkpoint], bool]
) -> Checkpoint | None:
    # A copy: another thread may ask the same recording.
    found = filter(is_before, tuple(checkpoints.values()))
    return max(found, key=lambda checkpoint: checkpoint.record, default=None)


def has_room(checkpoints: dict[int, Checkpoint]) -> bool:
    return sum(len(checkpoint.packed) for checkpoint in tuple(checkpoints.values())) < BYTES_MAX


class Moment(NamedTuple):
    at_ns: int
    record: int


class Course:
    """What a replay has met on its way; a checkpoint keeps it for the answers behind it."""

    def __init__(self) -> None:
        self.known: dict[str, None] = {}
        """The keys of all asks that came."""
        self.has_times = False
        """Whether the clock went on."""
        self.last = Moment(0, 0)
        """The latest step."""
        self.latest_ns = 0
        """The latest time of a message, also of one that is not handled yet."""
        self.stimuli = Stimuli()
        """Of what comes behind a checkpoint, much was brought before it."""

    def follow(self, step: Step) -> None:
        last = step.deliveries[-1]
        for delivery in step.deliveries:
            self.stimuli.note(delivery)
        self.has_times = self.has_times or last.at_ns > self.last.at_ns > 0
        self.last = max(self.last, Moment(last.at_ns, step.record))
        if isinstance(step.machine, Context):
            self.known.update((item.spec.key, None) for item in asks_in(step.deliveries))


def asks_in(deliveries: Iterable[Delivery]) -> Iterator[AskItem]:
    """Yield what came as an ask, or as work that runs already."""
    for delivery in deliveries:
        match delivery.message:
            case RMUpdateAllocation(asks=asks):
                yield from asks
            case RMUpdateNode(nodes=nodes):
                for node in nodes:
                    yield from node.allocations


class CheckpointedReplay:
    """Goes on from the newest checkpoint before what is asked about, and leaves others behind."""

    def __init__(
        self,
        trace: TraceReader,
        checkpoints: Checkpoints | None = None,
        is_before: Callable[[Checkpoint], bool] = lambda _: False,
    ) -> None:
        self._trace = trace
        self._every = 0 if checkpoints is None else checkpoints.every
        self._checkpoints = {} if checkpoints is None else checkpoints.of(trace.files)
        self._until_checkpoint = self._every
        checkpoint = newest(self._checkpoints, is_before)
        self.rerun: Rerun
        self.course: Course
        if checkpoint is None:
            self.rerun, self.course = Rerun.of(trace), Course()
        else:
            self.rerun, self.course = unpacked(checkpoint.packed)
            trace.go_behind(checkpoint.record, checkpoint.segment)

    def run(self) -> Iterator[Step]:
        """Yield each step; raise DifferentError where the replay is not what was recorded."""
        for _, steps in self.follow():
            yield from steps
        for step in self.rerun.settle():
            self.course.follow(step)
            yield step
        self.rerun.compare(self._trace)

    def follow(self) -> Iterator[tuple[Delivery, list[Step]]]:
        """Yield each message that was taken, and the steps that could be done then."""
        for delivery, steps in self.rerun.follow(self._trace):
            self.course.latest_ns = max(self.course.latest_ns, delivery.at_ns)
            for step in steps:
                self.course.follow(step)
            yield delivery, steps
            self._until_checkpoint -= 1
            # Long work under way is no plain value: a checkpoint waits for its end.
            if self._every and self._until_checkpoint <= 0 and self.rerun.is_at_rest:
                self._until_checkpoint = self._every
                self._leave_a_checkpoint()

    def _leave_a_checkpoint(self) -> None:
        record = self._trace.number
        if record not in self._checkpoints and has_room(self._checkpoints):
            self._checkpoints[record] = Checkpoint(
                record,
                self._trace.segment,
                dict(self.rerun.steps),
                self.course.latest_ns,
                packed((self.rerun, self.course)),
            )
