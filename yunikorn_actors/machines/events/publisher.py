"""EventPublisher: facts become event records, kept in a ring and pushed to the resource manager.

The ring numbers records from 0 for ever, and holds the newest. What waits for a push is bounded
too: records beyond the bound are counted and not pushed. No machine ever waits for a reader.

A record is built only when it is read. A fact is turned into builders, one for each record, and the
ring keeps the fact. How many records there are is known at once, so they can be numbered; their
content is worked out from the fact alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, get_args

from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.machines.events import (
    applications,
    asks,
    gangs,
    nodes,
    preemption,
    queues,
)
from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed
from yunikorn_actors.machines.machine import CallRm, Effect, InvariantViolation, Send, SetTimer
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import RM_PROXY, Message
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.followers import EventPushDue, HistoryRequested
from yunikorn_actors.messages.queries import (
    Accepted,
    Declined,
    EventsFound,
    EventsRequested,
    EventStreamLeft,
    EventStreamRequested,
)
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.rm_calls import CallSendEvent
from yunikorn_actors.messages.rm_events import EventsConfigured, SendEvents
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    FactsMissed,
    NodeActionsRefused,
    PartitionClosed,
)
from yunikorn_actors.si import EventRecord
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts import Fact, parts_of, revisions_of

# Facts between two trims: a trim moves two lists, so it is done in bulk.
COMPACTION = 10_000
EVENT_BYTES_MAX = 8 * 2**20
"""Bytes of event records, the newest, that outlive a restart or go to a follower."""
DEFAULTS = ExtraConfig()
STREAMS_KEY = "event.maxStreams"


class Ring:
    """The newest records, by number; each is built when it is read.

    What is kept for a record is its fact, and the builders are looked up anew. Two lists hold it
    all: an object for each entry would be one more that every full collection of garbage visits,
    tens of thousands of them.
    """

    def __init__(self, capacity: int, next_id: int = 0) -> None:
        self.capacity = capacity
        self.next_id = next_id
        self._floor = next_id
        """What was overwritten before the last change of capacity stays so."""
        self._facts: list[Fact] = []
        self._first_ids: list[int] = []
        """Of each fact the number of its first record."""
        self._trim_at = next_id + COMPACTION
        """At this number facts that are overwritten are dropped: in bulk, as it takes a while."""

    @property
    def lowest_id(self) -> int:
        # By numbers: nothing is moved when a record is overwritten.
        return max(self._floor, self.next_id - self.capacity)

    @property
    def highest_id(self) -> int:
        """The last number used; 0 while there is none."""
        return max(0, self.next_id - 1)

    def take(self, facts: Iterable[Fact]) -> int:
        """Keep the facts that have records, and return how many records these are."""
        next_id, kept, first_ids = self.next_id, self._facts, self._first_ids
        # A look in a table for nearly all kinds; only some facts have to be asked.
        for fact in facts:
            count = COUNTS.get(type(fact))
            if count is None:
                count = count_of(fact)
            if count:
                kept.append(fact)
                first_ids.append(next_id)
                next_id += count
        # Records are numbered by facts and counts: nothing is built here.
        taken, self.next_id = next_id - self.next_id, next_id
        if next_id >= self._trim_at:
            self._trim()
        return taken

    def resize(self, capacity: int) -> None:
        """Keep the newest; numbers stay."""
        # Overwritten stays overwritten, even if the ring grows again.
        self._floor = self.lowest_id
        self.capacity = capacity
        self._trim()

    def _trim(self) -> None:
        """Forget what has been overwritten."""
        self._trim_at = self.next_id + COMPACTION
        # The fact that holds the lowest record is kept whole: some of its records are readable.
        overwritten = max(0, bisect_right(self._first_ids, self.lowest_id) - 1)
        del self._facts[:overwritten], self._first_ids[:overwritten]

    def newest(self, bytes_max: int) -> tuple[Fact, ...]:
        """Return the facts of the last records, as many as fit in `bytes_max`."""
        size, kept = 0, len(self._facts)
        # Encoded to be measured: this happens at a restart or when a follower comes, never for an
        # event.
        while kept and (size := size + len(encode(self._facts[kept - 1]))) <= bytes_max:
            kept -= 1
        return tuple(self._facts[kept:])

    def read(self, first_id: int, count: int) -> list[EventRecord]:
        """Return consecutive records from `first_id` on; none where that one is not stored."""
        if not self.lowest_id <= first_id < self.next_id:
            return []
        # The last fact whose first record is not behind the one asked for.
        place = bisect_right(self._first_ids, first_id) - 1
        skipped = first_id - self._first_ids[place]
        return _built(islice(self._facts, place, None), skipped, skipped + count)


class Unpushed:
    """Records for the next push to one resource manager, kept as their facts."""

    __slots__ = ("_counted", "_facts", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._counted = 0
        """How many records there were, whether or not they had room."""
        self._facts: list[Fact] = []

    @property
    def count(self) -> int:
        return min(self._counted, self.capacity)

    @property
    def overflow(self) -> int:
        return self._counted - self.count

    def add(self, facts: Iterable[Fact], count: int) -> None:
        """Take the records of some facts; of the last that are taken some may have no room."""
        # A fact more than has room does no harm: `records` cuts at the bound.
        if self._counted < self.capacity:
            self._facts.extend(facts)
        self._counted += count

    def records(self) -> tuple[EventRecord, ...]:
        return tuple(_built(self._facts, 0, self.count))


def _built(facts: Iterable[Fact], start: int, stop: int) -> list[EventRecord]:
    """Build the records of these facts from one place to another, and no others."""
    return [builder(fact) for builder, fact in islice(_recipes(facts), start, stop)]


def _recipes(facts: Iterable[Fact]) -> Iterator[tuple[Builder, Fact]]:
    return (
        (builder, part)
        for fact in facts
        for part in parts_of(fact)
        for builder in builders_of(part)
    )


class EventPublisher:
    def __init__(
        self,
        *,
        settings: Settings,
        life: int = 0,
        next_id: int = 0,
        overflow: int = 0,
        hearers: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self.life = life
        self.ring = Ring(settings.event_ring_capacity, next_id)
        # By life of a partition: a gap means that the publisher has missed facts, and its numbers
        # would lie.
        self._revisions: dict[tuple[str, int], int] = {}
        self.unpushed: dict[str, Unpushed] = {}
        self.wishes: dict[str, ExtraConfig] = {}
        """Of each registered resource manager."""
        self._hearers: dict[str, None] = dict.fromkeys(hearers)
        self._push_is_coming = False
        self.overflow = overflow
        """Records that were never pushed, because too many waited."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        return HANDLERS[type(message)](self, message, now_ns)

    def canonical_state(self) -> dict[str, Any]:
        return {
            "next_id": self.ring.next_id,
            "lowest_id": self.ring.lowest_id,
            "overflow": self.overflow,
            "hearers": list(self._hearers),
        }

    def legacy(self) -> dict[str, Any]:
        """Numbers go on and readers keep reading; the records are lost."""
        return {
            "next_id": self.ring.next_id,
            "overflow": self.overflow,
            "hearers": list(self._hearers),
            "stored": self.ring.next_id - self.ring.lowest_id,
            "revisions": [[*life, revision] for life, revision in self._revisions.items()],
        }

    def _on_facts_missed(self, message: FactsMissed, _: int) -> list[Effect]:
        self._revisions[message.partition, message.epoch] = message.revision
        return []

    def _on_events_restored(self, message: EventsRestored, _: int) -> list[Effect]:
        """Go on with the records of another book: readers find their numbers again.

        Where several are brought, as to a read side of several cores, the first one numbers.
        """
        for known in message.known:
            # A reader may have heard more by then.
            life = (known.partition, known.epoch)
            self._revisions[life] = max(known.revision, self._revisions.get(life, 0))
        # Still empty, so the numbers of the other begin here; with several only the first can
        # decide.
        if not self.ring.next_id:
            count = sum(count_of(fact) for fact in message.facts)
            self.ring = Ring(self.ring.capacity, message.next_id - count)
        self.ring.take(message.facts)
        return []

    def _on_history_requested(self, message: HistoryRequested, _: int) -> list[Effect]:
        return [Send(to=message.follower, message=self.remembered())]

    def remembered(self, bytes_max: int = EVENT_BYTES_MAX) -> EventsRestored:
        """Give the newest records, as facts of at most `bytes_max`, for another to go on with."""
        known = tuple(
            FactsMissed(partition=name, epoch=epoch, revision=revision)
            for (name, epoch), revision in self._revisions.items()
        )
        facts = self.ring.newest(bytes_max)
        return EventsRestored(next_id=self.ring.next_id, facts=facts, known=known)

    def _on_facts_appended(self, message: FactsAppended, now_ns: int) -> list[Effect]:
        # Each life of a partition begins at 1.
        life = (message.partition, message.epoch)
        if message.first_revision != self._revisions.get(life, 0) + 1:
            raise InvariantViolation(
                f"event publisher missed facts of {message.partition}: expected revision "
                f"{self._revisions.get(life, 0) + 1}, was sent {message.first_revision}"
            )
        self._revisions[life] = message.first_revision + revisions_of(message.facts) - 1
        return self._publish(message.rm_id, message.facts, now_ns)

    def _on_node_actions_refused(self, message: NodeActionsRefused, now_ns: int) -> list[Effect]:
        return self._publish(message.rm_id, message.refused, now_ns)

    def _publish(self, rm_id: str, facts: tuple[Fact, ...], now_ns: int) -> list[Effect]:
        # A manager that has left may still have facts on their way.
        wishes = self.wishes.get(rm_id, DEFAULTS)
        if not wishes.events_tracked:
            return []
        # Facts are kept, not their records: most are never read, so they are built when they are.
        count = self.ring.take(facts)
        if not count:
            return []
        unpushed = self.unpushed.get(rm_id)
        if unpushed is None:
            # The bound is that of the moment when the first record comes to wait.
            capacity = wishes.event_push_capacity or self._settings.event_push_capacity
            unpushed = self.unpushed[rm_id] = Unpushed(capacity)
        unpushed.add(facts, count)
        # The timer runs and nobody reads along: nothing else to do.
        if self._push_is_coming and not self._hearers:
            return []
        return [*self._stream(facts), *self._next_push(now_ns)]

    # -- streams

    def _stream(self, facts: tuple[Fact, ...]) -> list[Effect]:
        """Records are built here for those who read along; without any nothing is built."""
        if not self._hearers:
            return []
        # Built once for all streams.
        records = tuple(builder(fact) for builder, fact in _recipes(facts))
        return self._call(tuple(self._hearers), records)

    def _call(self, hearers: tuple[str, ...], records: tuple[EventRecord, ...]) -> list[Effect]:
        call = CallSendEvent(events=records)
        # A batch of facts without records calls nobody.
        return [CallRm(callback=hearer, call=call) for hearer in hearers if records]

    def _on_event_stream_requested(self, message: EventStreamRequested, _: int) -> list[Effect]:
        """History first, then what is new: between the two nothing is missed or sent twice."""
        most = max(
            (wishes.event_streams_max for wishes in self.wishes.values()),
            default=DEFAULTS.event_streams_max,
        )
        if len(self._hearers) >= most:
            reason = f"too many event streams: {most} are open; close one, or raise {STREAMS_KEY}"
            return [Send(to=message.reply_to, message=Declined(reason=reason))]
        # From here on it gets what is new; the history below ends where that begins.
        self._hearers[message.hearer] = None
        ring = self.ring
        # No more than the ring has, and none of what came after this message.
        first = max(ring.lowest_id, ring.next_id - max(0, message.history))
        history = tuple(ring.read(first, ring.capacity))
        return [
            *self._call((message.hearer,), history),
            Send(to=message.reply_to, message=Accepted()),
        ]

    def _on_event_stream_left(self, message: EventStreamLeft, _: int) -> list[Effect]:
        self._hearers.pop(message.hearer, None)
        return []

    # -- settings

    def _on_events_configured(self, message: EventsConfigured, _: int) -> list[Effect]:
        """One ring serves all resource managers, so it has the largest size that any wishes."""
        if message.extra is None:
            self.wishes.pop(message.rm_id, None)
            # Unread records of a manager that has gone are dropped with it.
            self.unpushed.pop(message.rm_id, None)
        else:
            self.wishes[message.rm_id] = message.extra
        default = self._settings.event_ring_capacity
        capacity = max(
            # 0 where a manager names none.
            (wishes.event_ring_capacity or default for wishes in self.wishes.values()),
            default=default,
        )
        if capacity != self.ring.capacity:
            self.ring.resize(capacity)
        return []

    # -- pushes

    def _next_push(self, now_ns: int) -> list[Effect]:
        # One push for all managers, so one timer.
        if self._push_is_coming or not any(waits.count for waits in self.unpushed.values()):
            return []
        self._push_is_coming = True
        due_ns = now_ns + self._settings.event_push_ns
        return [SetTimer(name="push", due_ns=due_ns, message=EventPushDue(life=self.life))]

    def _on_event_push_due(self, message: EventPushDue, _: int) -> list[Effect]:
        # A timer of the publisher before this one.
        if message.life != self.life:
            return []
        self._push_is_coming = False
        # Taken out at once: what comes from here on waits for the next push, under the bound that
        # holds then.
        unpushed, self.unpushed = self.unpushed, {}
        self.overflow += sum(waits.overflow for waits in unpushed.values())
        return [
            Send(to=RM_PROXY, message=SendEvents(rm_id=rm_id, events=waits.records()))
            for rm_id, waits in unpushed.items()
            if waits.count
        ]

    def _on_partition_closed(self, message: PartitionClosed, _: int) -> list[Effect]:
        self._revisions.pop((message.partition, message.epoch), None)
        return []

    def _on_events_requested(self, message: EventsRequested, _: int) -> list[Effect]:
        ring = self.ring
        found = EventsFound(
            # A client may ask for more than the ring holds.
            records=tuple(ring.read(message.first_id, min(message.count, ring.capacity))),
            lowest_id=ring.lowest_id,
            highest_id=ring.highest_id,
        )
        return [Send(to=message.reply_to, message=found)]


HANDLERS: dict[type, Callable[[EventPublisher, Any, int], list[Effect]]] = {
    FactsAppended: EventPublisher._on_facts_appended,
    NodeActionsRefused: EventPublisher._on_node_actions_refused,
    FactsMissed: EventPublisher._on_facts_missed,
    EventsRestored: EventPublisher._on_events_restored,
    HistoryRequested: EventPublisher._on_history_requested,
    PartitionClosed: EventPublisher._on_partition_closed,
    EventPushDue: EventPublisher._on_event_push_due,
    EventsConfigured: EventPublisher._on_events_configured,
    EventsRequested: EventPublisher._on_events_requested,
    EventStreamRequested: EventPublisher._on_event_stream_requested,
    EventStreamLeft: EventPublisher._on_event_stream_left,
}


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    kind = type(fact)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    chosen = _CHOSEN.get(kind)
    return () if chosen is None else chosen(fact)


def count_of(fact: f.Fact) -> int:
    """Say how many records this fact has."""
    kind = type(fact)
    count = COUNTS.get(kind)
    if count is not None:
        return count
    # Runs: counted and never built as a whole.
    count_of = _RUNS.get(kind)
    return len(_CHOSEN[kind](fact)) if count_of is None else count_of(fact)


_FIXED: Fixed = {
    **applications.FIXED, **asks.FIXED, **gangs.FIXED,
    **nodes.FIXED, **preemption.FIXED, **queues.FIXED,
}  # fmt: skip
_CHOSEN: Chosen = {
    **applications.CHOSEN, **asks.CHOSEN, **gangs.CHOSEN,
    **nodes.CHOSEN, **preemption.CHOSEN, **queues.CHOSEN,
}  # fmt: skip
_RUNS: dict[type, Callable[[Any], int]] = {
    f.AllocationsCommitted: asks.count_of_run,
    f.AsksAdded: lambda fact: len(fact.specs) * len(_FIXED[f.AskAdded]),
}
"""How many records the parts have together: those are built from the parts."""
COUNTS: dict[type, int] = {
    kind: len(_FIXED.get(kind, ()))
    for kind in get_args(f.Fact)
    if kind not in _CHOSEN and kind not in _RUNS
}
"""Of the facts that always have the same number of records, most of them none."""
