"""EventPublisher: facts become event records, kept in a ring and pushed to the resource manager.

The ring numbers records from 0 on and for ever, and holds the newest ones. What waits for a push is
bounded too: beyond the bound records are counted and not pushed. Nobody ever waits for a reader.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain.facts import Fact
from yunikorn_actors.machines.event_record import Builder
from yunikorn_actors.machines.event_records import builders_of
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send, SetTimer
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import RM_PROXY, Message
from yunikorn_actors.messages.events import EventPushDue
from yunikorn_actors.messages.queries import EventsFound, EventsRequested
from yunikorn_actors.messages.rm_events import SendEvents
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed
from yunikorn_actors.si import EventRecord

Entry = tuple[int, tuple[Builder, ...], Fact]
"""The number of the first record of a fact, the builders of its records, and the fact."""
COMPACTION = 10_000


class Ring:
    """The newest records, by number; each is built when it is read."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.next_id = 0
        self._entries: list[Entry] = []
        self._head = 0
        """Entries before this one are overwritten; they are dropped in bulk."""

    @property
    def lowest_id(self) -> int:
        return max(0, self.next_id - self.capacity)

    @property
    def highest_id(self) -> int:
        """The last number used; 0 while there is none."""
        return max(0, self.next_id - 1)

    def append(self, builders: tuple[Builder, ...], fact: Fact) -> None:
        self._entries.append((self.next_id, builders, fact))
        self.next_id += len(builders)

    def trim(self) -> None:
        """Forget what has been overwritten."""
        lowest, entries, head = self.lowest_id, self._entries, self._head
        while head + 1 < len(entries) and entries[head + 1][0] <= lowest:
            head += 1
        if head > COMPACTION:
            del entries[:head]
            head = 0
        self._head = head

    def read(self, first_id: int, count: int) -> list[EventRecord]:
        """Return consecutive records from `first_id` on; none where that one is not stored."""
        if not self.lowest_id <= first_id < self.next_id:
            return []
        last = min(self.next_id, first_id + count)
        records: list[EventRecord] = []
        place = bisect_right(self._entries, first_id, key=_first_id) - 1
        while place < len(self._entries) and self._entries[place][0] < last:
            number, builders, fact = self._entries[place]
            wanted = builders[max(0, first_id - number) : last - number]
            records.extend(builder(fact) for builder in wanted)
            place += 1
        return records


def _first_id(entry: Entry) -> int:
    return entry[0]


class Unpushed:
    """Records that wait for the next push to one resource manager."""

    __slots__ = ("count", "overflow", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.overflow = 0
        self.waiting: list[tuple[tuple[Builder, ...], Fact]] = []

    def add(self, builders: tuple[Builder, ...], fact: Fact, capacity: int) -> None:
        taken = builders[: capacity - self.count]
        self.overflow += len(builders) - len(taken)
        if taken:
            self.count += len(taken)
            self.waiting.append((taken, fact))

    def records(self) -> tuple[EventRecord, ...]:
        return tuple(builder(fact) for builders, fact in self.waiting for builder in builders)


class EventPublisher:
    def __init__(self, *, settings: Settings) -> None:
        self._settings = settings
        self.ring = Ring(settings.event_ring_capacity)
        self._revisions: dict[tuple[str, int], int] = {}
        self._unpushed: dict[str, Unpushed] = {}
        self._push_is_coming = False
        self.overflow = 0
        """Records that were never pushed, because too many waited."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        return HANDLERS[type(message)](self, message, now_ns)

    def canonical_state(self) -> dict[str, Any]:
        return {"next_id": self.ring.next_id, "overflow": self.overflow}

    def _on_facts_appended(self, message: FactsAppended, now_ns: int) -> list[Effect]:
        life = (message.partition, message.epoch)
        if message.first_revision != self._revisions.get(life, 0) + 1:
            raise InvariantViolation(
                f"event publisher missed facts of {message.partition}: expected revision "
                f"{self._revisions.get(life, 0) + 1}, was sent {message.first_revision}"
            )
        self._revisions[life] = message.first_revision + len(message.facts) - 1
        ring = self.ring
        unpushed = self._unpushed.setdefault(message.rm_id, Unpushed())
        for fact in message.facts:
            builders = builders_of(fact)
            if builders:
                ring.append(builders, fact)
                unpushed.add(builders, fact, self._settings.event_push_capacity)
        ring.trim()
        return self._next_push(now_ns)

    def _next_push(self, now_ns: int) -> list[Effect]:
        if self._push_is_coming or not any(waits.count for waits in self._unpushed.values()):
            return []
        self._push_is_coming = True
        due_ns = now_ns + self._settings.event_push_ns
        return [SetTimer(name="push", due_ns=due_ns, message=EventPushDue())]

    def _on_event_push_due(self, _: EventPushDue, __: int) -> list[Effect]:
        self._push_is_coming = False
        unpushed, self._unpushed = self._unpushed, {}
        self.overflow += sum(waits.overflow for waits in unpushed.values())
        return [
            Send(to=RM_PROXY, message=SendEvents(rm_id=rm_id, events=waits.records()))
            for rm_id, waits in unpushed.items()
            if waits.count
        ]

    def _on_partition_closed(self, message: PartitionClosed, _: int) -> list[Effect]:
        self._revisions.pop((message.partition, message.epoch), None)
        self._unpushed.pop(message.rm_id, None)
        return []

    def _on_events_requested(self, message: EventsRequested, _: int) -> list[Effect]:
        ring = self.ring
        found = EventsFound(
            records=tuple(ring.read(message.first_id, min(message.count, ring.capacity))),
            lowest_id=ring.lowest_id,
            highest_id=ring.highest_id,
        )
        return [Send(to=message.reply_to, message=found)]


EventPublisherInbox = FactsAppended | PartitionClosed | EventPushDue | EventsRequested

HANDLERS: dict[type, Callable[[EventPublisher, Any, int], list[Effect]]] = {
    FactsAppended: EventPublisher._on_facts_appended,
    PartitionClosed: EventPublisher._on_partition_closed,
    EventPushDue: EventPublisher._on_event_push_due,
    EventsRequested: EventPublisher._on_events_requested,
}
