"""The read side itself: it receives what followers get, and keeps it for those who ask.

A second book of events is kept by a second `EventPublisher`. It begins with the records that the
first one has, and is fed with the same facts in the same order, so its records have the same
numbers; nobody is pushed anything from here.
"""

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from yunikorn_actors.config.policy_names import SHIPPED_NAMES, PolicyNames
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.callbacks import shown_records
from yunikorn_actors.messages.followers import ManagerDescribed, ManagerLeft
from yunikorn_actors.messages.queries import Declined, EventStreamLeft, EventStreamRequested
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.rm_calls import CallSendEvent
from yunikorn_actors.messages.rm_events import EventsConfigured
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    FactsMissed,
    NodeActionsRefused,
    PartitionClosed,
    PartitionSnapshot,
)
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.service.read.load_history import Courses
from yunikorn_actors.service.read.replica import Book, EventCounts
from yunikorn_actors.si import EventRecord
from yunikorn_actors.values.durations import MINUTE

SAMPLES_MAX: Final = 1_440


class Sample(NamedTuple):
    """How many applications ran and containers stood, a sample a minute, for a day.

    Nothing wakes the read side each minute. Between two messages nothing changes, so the samples
    that fell due in between are taken when the next message comes, or the next question.
    """

    at_ns: int
    applications: int
    containers: int


class History:
    def __init__(self, start_ns: int) -> None:
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._due_ns = start_ns + MINUTE

    def catch_up(self, now_ns: int, count: Callable[[], tuple[int, int]]) -> None:
        """Take what fell due up to now; so it has to be asked before anything changes."""
        if now_ns < self._due_ns:
            return
        # Nothing changed since the last message, so one count does for all of them.
        applications, containers = count()
        missed = (now_ns - self._due_ns) // MINUTE
        # After a day of rest all samples are the same: no more of them are made than are kept.
        self._due_ns += max(0, missed - SAMPLES_MAX) * MINUTE
        while self._due_ns <= now_ns:
            self.samples.append(Sample(self._due_ns, applications, containers))
            self._due_ns += MINUTE


_NO_FAULTS: Final[Mapping[str, str]] = MappingProxyType({})
UNTIL_HISTORY_MAX: Final = 10_000
"""So many messages wait at most for the history of event records."""

RecordReader = Callable[[tuple[EventRecord, ...]], None]
"""Takes the records of one stream, and never waits."""


class ReadSide:
    def __init__(
        self, *, settings: Settings, instance: str, start_ns: int,
        names: PolicyNames = SHIPPED_NAMES, topology: TopologyName = "proposing",
        schedulers: int = 1, policies: Policies = NO_POLICIES,
        policy_faults: Mapping[str, str] = _NO_FAULTS,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.topology: Final[TopologyName] = topology
        """Of the core: a copy of its state decides as it does."""
        self.schedulers = schedulers
        self.names = names
        """Of policies: which ones stand for something."""
        self.policies = policies
        """Those that were given to the service, as far as this process could load them."""
        self.policy_faults = policy_faults
        """By name why it could not load others."""
        self.instance = instance
        self.start_ns = start_ns
        self.now_ns = start_ns
        self.managers: dict[str, ManagerDescribed] = {}
        self.books: dict[str, Book] = {}
        """By full name."""
        self.event_counts = EventCounts()
        self.history = History(start_ns)
        self.courses = Courses()
        self.events = EventPublisher(settings=settings)
        self._until_history: list[tuple[Message, int]] | None = []
        """What has records and came before the history did, with its time; None once that is here.

        Context and the event publisher have mailboxes of their own, so either may be first.
        """
        self._record_readers: dict[str, RecordReader] = {}
        self._since: dict[str, int] = {}

    def handle(self, message: Message, now_ns: int) -> None:
        """Take a message to followers."""
        # Before the message: what fell due in between saw the state before it.
        self.catch_up(now_ns)
        HANDLERS[type(message)](self, message)

    def catch_up(self, now_ns: int) -> None:
        """It is so late now; asked before a question is answered as well."""
        self.now_ns = now_ns
        self.history.catch_up(now_ns, self._count)

    def _count(self) -> tuple[int, int]:
        books = self.books.values()
        return sum(it.running for it in books), sum(it.state.allocation_count for it in books)

    def partition(self, name: str) -> Book | None:
        """Find a partition by its full name, or by the name that its resource manager uses.

        If several have that name, the one whose resource manager came first.
        """
        if name in self.books:
            return self.books[name]
        return next((it for it in self.books.values() if it.short_name == name), None)

    # -- streams of events

    def listen(self, name: str, history: int, reader: RecordReader) -> bool:
        """Give it the last records, and all that come; False where too many listen."""
        self._record_readers[name] = reader
        asked = EventStreamRequested(hearer=name, history=history, reply_to="")
        effects = self.events.handle(asked, self.now_ns)
        if any(isinstance(it, Send) and isinstance(it.message, Declined) for it in effects):
            del self._record_readers[name]
            return False
        self._since[name] = self.now_ns
        self._tell(effects)
        return True

    def records(self, first: int, count: int) -> tuple[EventRecord, ...]:
        """Read consecutive records; none where the first is not stored."""
        return shown_records(self.events.ring.read(first, count))

    def streams(self) -> list[dict[str, Any]]:
        """Name those who listen, and since when."""
        return [{"Name": name, "CreatedAt": at_ns} for name, at_ns in self._since.items()]

    def leave(self, name: str) -> None:
        self._record_readers.pop(name, None)
        self._since.pop(name, None)
        self.events.handle(EventStreamLeft(hearer=name), self.now_ns)

    def _tell(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, CallRm) and isinstance(effect.call, CallSendEvent):
                reader = self._record_readers.get(effect.callback)
                if reader is not None:
                    reader(shown_records(effect.call.events))

    # -- what is heard

    def _on_facts_appended(self, message: FactsAppended) -> None:
        book = self.books.get(message.partition)
        # A new life of the partition, or one that was not known: it begins empty.
        if book is None or book.epoch != message.epoch:
            book = self._open(message.partition, message.epoch)
        book.take(message.first_revision, message.facts)
        # The book first: records are shown to readers at once.
        self._note_records(message)

    def _note_records(self, message: Message) -> None:
        """Have it in the book of events, behind the history; what has no records may be first."""
        waits = self._until_history is not None and (
            self._until_history or isinstance(message, FactsAppended | NodeActionsRefused)
        )
        if self._until_history is None or not waits:
            self._tell(self.events.handle(message, self.now_ns))
            return
        self._until_history.append((message, self.now_ns))
        if len(self._until_history) > UNTIL_HISTORY_MAX:
            # An event publisher that has failed does not answer any more.
            self._catch_up_records()

    def _catch_up_records(self) -> None:
        """What came before the history follows it: its records have the numbers behind that."""
        waiting, self._until_history = self._until_history or [], None
        # With the times at which they came, not the time of now.
        for message, at_ns in waiting:
            self._tell(self.events.handle(message, at_ns))

    def _open(self, name: str, epoch: int) -> Book:
        book = self.books[name] = Book(name, epoch, self.event_counts, self.now_ns, self.policies)
        return book

    def _on_partition_snapshot(self, message: PartitionSnapshot) -> None:
        # The facts before this image were not seen, so their records are missing.
        self._open(message.partition, message.epoch).restore(message.image)
        missed = FactsMissed(
            partition=message.partition,
            epoch=message.epoch,
            revision=self.books[message.partition].state.revision,
        )
        self._note_records(missed)

    def _on_events_restored(self, message: EventsRestored) -> None:
        self.events.handle(message, self.now_ns)
        self._catch_up_records()

    def _on_partition_closed(self, message: PartitionClosed) -> None:
        book = self.books.get(message.partition)
        # Of a former life: another one has been opened since.
        if book is not None and book.epoch == message.epoch:
            del self.books[message.partition]
        self._note_records(message)

    def _on_node_actions_refused(self, message: NodeActionsRefused) -> None:
        self._note_records(message)

    def _on_manager_described(self, message: ManagerDescribed) -> None:
        self.managers[message.rm_id] = message
        configured = EventsConfigured(rm_id=message.rm_id, extra=message.extra)
        self._note_records(configured)

    def _on_manager_left(self, message: ManagerLeft) -> None:
        self.managers.pop(message.rm_id, None)
        self._note_records(EventsConfigured(rm_id=message.rm_id, extra=None))


HANDLERS: Final[dict[type, Callable[[ReadSide, Any], None]]] = {
    FactsAppended: ReadSide._on_facts_appended,
    PartitionSnapshot: ReadSide._on_partition_snapshot,
    EventsRestored: ReadSide._on_events_restored,
    PartitionClosed: ReadSide._on_partition_closed,
    NodeActionsRefused: ReadSide._on_node_actions_refused,
    ManagerDescribed: ReadSide._on_manager_described,
    ManagerLeft: ReadSide._on_manager_left,
}
