"""Event records as their readers use them: what they tell adds up to the truth, and all get them.

- `Told`: a reader who adds up all records believes what is true: nodes and their sizes, queues and
  their limits, states of applications, who has how many allocations, and what users have in use.
- `Published`: the book of the event publisher, kept a second time. Which records are stored under
  which numbers, what is pushed to whom, and what streams get that are opened and closed at drawn
  moments. Each record is pushed once, up to the bound, and no stream misses one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.drivers.simulator.checkers import states_in
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.first_difference import differing, without_zeros
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.events.publisher import builders_of
from yunikorn_actors.machines.machine import CallRm, InvariantViolation, Send
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    Delivery,
    Message,
    reply_address,
    stream_address,
)
from yunikorn_actors.messages.followers import EventPushDue
from yunikorn_actors.messages.queries import (
    Accepted,
    EventsFound,
    EventsRequested,
    EventStreamLeft,
    EventStreamRequested,
)
from yunikorn_actors.messages.restart import CoreRestored, EventsRestored
from yunikorn_actors.messages.rm_calls import CallSendEvent
from yunikorn_actors.messages.rm_events import EventsConfigured, SendEvents
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused
from yunikorn_actors.si import ChangeDetail as D
from yunikorn_actors.si import ChangeType, EventRecord, EventType
from yunikorn_actors.state.facts import (
    Fact,
    ForeignAllocationPut,
    ForeignAllocationRemoved,
    NodeAdded,
    QueueAdded,
    parts_of,
)
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import ROOT

_FOREIGN: Final = (ForeignAllocationPut, ForeignAllocationRemoved)
"""Put again, it is reported as if it were another one, so it cannot be counted."""
_ENDS: Final = frozenset(
    {D.ALLOC_CANCEL, D.ALLOC_PREEMPT, D.ALLOC_TIMEOUT, D.ALLOC_REPLACED, D.ALLOC_NODEREMOVED}
)
_STATES: Final = {
    D.APP_ACCEPTED: "Accepted",
    D.APP_STARTING: "Starting",
    D.APP_RUNNING: "Running",
    D.APP_COMPLETING: "Completing",
    D.APP_FAILING: "Failing",
    D.APP_RESUMING: "Resuming",
}
_LIMITS: Final = (D.UG_USER_LIMIT, D.UG_GROUP_LIMIT)
_SET: Final = ChangeType.SET
_SIGNS: Final = {ChangeType.ADD: 1, ChangeType.REMOVE: -1}


def _records(facts: Iterable[Fact]) -> Iterator[tuple[Fact, EventRecord]]:
    for part in chain.from_iterable(map(parts_of, facts)):
        for builder in builders_of(part):
            yield part, builder(part)


def records_of(facts: Iterable[Fact]) -> Iterator[EventRecord]:
    return (record for _, record in _records(facts))


def _amounts(record: EventRecord) -> dict[str, int]:
    return {} if record.resource is None else record.resource.amounts()


# -- what they tell


class _Reader:
    """The belief about one life of a partition of a reader that has nothing but its records."""

    def __init__(self) -> None:
        self.values: dict[tuple[EventType, str, str], Any] = {}
        """Of an object, by the word for it."""
        self.counts: Counter[tuple[str, str]] = Counter()
        """Allocations of an application, a node or a queue."""
        self.usage: dict[tuple[str, str], Counter[str]] = {}
        """Of a user in a queue."""
        self.limits: dict[tuple[D, str, str], None] = {}
        self.links: dict[tuple[str, str], None] = {}
        self._former: str | None = None
        """The state of the application of the same id before the one that has come last."""

    def begin_with(self, state: PartitionState) -> None:
        """Believe what is true, as one who has read all that an earlier core sent."""
        for (kind, id_), known in _truth(state).items():
            self.values.update({(kind, id_, word): value for word, value in known.items()})
        self.counts, self.usage = _counts(state), _usage(state)
        self.limits, self.links = dict.fromkeys(_limits(state)), dict.fromkeys(_links(state))

    def read(self, fact: Fact, it: EventRecord) -> None:
        id_, detail = it.object_id, it.event_change_detail
        sign = _SIGNS.get(it.event_change_type, 0)
        self._begin(fact)
        match it.type:
            case EventType.NODE:
                self._of_node(it, sign, foreign=isinstance(fact, _FOREIGN))
            case EventType.QUEUE if detail is D.QUEUE_ALLOC:
                self.counts["queue", id_] += sign
            case EventType.QUEUE if detail is D.QUEUE_APP:
                self._set(it, f"application {it.reference_id}", sign > 0 or None)
            case EventType.QUEUE:
                self._of_queue(it, sign)
            case EventType.APP:
                self._of_application(it, sign)
            case EventType.USERGROUP:
                self._of_owner(it, sign)

    def _begin(self, fact: Fact) -> None:
        """What is reported only on change was so from the beginning."""
        match fact:
            case NodeAdded(node_id=id_, occupied=occupied):
                self.values[EventType.NODE, id_, "occupied"] = occupied
            case QueueAdded(path=path, spec=spec) if path != ROOT:
                self.values[EventType.QUEUE, path, "max"] = spec.max or {}
                self.values[EventType.QUEUE, path, "guaranteed"] = spec.guaranteed or {}

    def _set(self, it: EventRecord, word: str, value: Any) -> None:  # noqa: ANN401
        self.values[it.type, it.object_id, word] = value

    def _forget(self, it: EventRecord) -> None:
        for key in [key for key in self.values if key[:2] == (it.type, it.object_id)]:
            del self.values[key]

    def _of_node(self, it: EventRecord, sign: int, *, foreign: bool) -> None:
        match it.event_change_detail:
            case D.DETAILS_NONE if sign > 0:
                self._set(it, "capacity", _amounts(it))
            case D.NODE_DECOMISSION:
                self._forget(it)
            case D.NODE_CAPACITY:
                self._set(it, "capacity", _amounts(it))
            case D.NODE_OCCUPIED:
                self._set(it, "occupied", _amounts(it))
            case D.NODE_SCHEDULABLE:
                self._set(it, "schedulable", it.message.endswith("true"))
            case D.NODE_ALLOC if not foreign:
                self.counts["node", it.object_id] += sign
            case D.NODE_RESERVATION:
                self.counts["reserved", it.object_id] += sign

    def _of_application(self, it: EventRecord, sign: int) -> None:
        match it.event_change_detail:
            case detail if detail is D.APP_ALLOC or detail in _ENDS:
                self.counts["application", it.object_id] += sign
            case detail if detail in _STATES:
                self._set(it, "state", _STATES[detail])
            case D.DETAILS_NONE if sign < 0:
                self._set(it, "state", None)
            case D.APP_NEW:
                self._former = self.values.get((it.type, it.object_id, "state"))
                self._set(it, "state", "New")
            case D.APP_REJECT:
                self._set(it, "state", self._former)

    def _of_queue(self, it: EventRecord, sign: int) -> None:
        match it.event_change_detail:
            case D.QUEUE_MAX:
                self._set(it, "max", _amounts(it))
            case D.QUEUE_GUARANTEED:
                self._set(it, "guaranteed", _amounts(it))
            case _ if sign < 0:
                self._forget(it)
                self.limits = {key: None for key in self.limits if key[2] != it.object_id}
            case _ if sign > 0:
                self._set(it, "is there", value=True)

    def _of_owner(self, it: EventRecord, sign: int) -> None:
        match it.event_change_detail:
            case D.UG_USER_RESOURCE:
                used = self.usage.setdefault((it.object_id, it.reference_id), Counter())
                for kind, amount in _amounts(it).items():
                    used[kind] += sign * amount
            case D.UG_APP_LINK:
                self._put(self.links, (it.object_id, it.reference_id), it)
            case detail if detail in _LIMITS:
                self._put(self.limits, (detail, it.object_id, it.reference_id), it)

    def _put(self, book: dict[Any, None], key: Any, it: EventRecord) -> None:  # noqa: ANN401
        if it.event_change_type is _SET:
            book[key] = None
        else:
            book.pop(key, None)

    # -- comparing

    def differences(self, state: PartitionState) -> Iterator[str]:
        for key, (told, true) in self._pairs(state):
            if told != true:
                yield f"of {key} the records tell {told}, and it is {true}"

    def _pairs(self, state: PartitionState) -> Iterator[tuple[str, tuple[Any, Any]]]:
        truth = _truth(state)
        for (kind, id_, word), told in self.values.items():
            known = truth.get((kind, id_))
            true = None if known is None else known.get(word)
            if known is not None or told is not None:
                yield (
                    f"{word} of {kind.name.lower()} {id_}",
                    (without_zeros(told), without_zeros(true)),
                )
        for kind in (EventType.NODE, EventType.QUEUE, EventType.APP):
            heard = (id_ for it, id_, _ in self.values if it is kind)
            ids = sorted({id_ for id_ in heard if self._is_there(kind, id_)})
            true = sorted(id_ for it, id_ in truth if it is kind)
            yield f"the {kind.name.lower()}s there are", (ids, true)
        yield "what applications, nodes and queues have", (+self.counts, +_counts(state))
        used = {key: +amounts for key, amounts in self.usage.items() if +amounts}
        yield "what users have", (used, _usage(state))
        yield "limits", (sorted(self.limits), sorted(_limits(state)))
        yield "who counts in which group", (sorted(self.links), sorted(_links(state)))

    def _is_there(self, kind: EventType, id_: str) -> bool:
        if kind is EventType.APP:
            return self.values.get((kind, id_, "state")) is not None
        return True


def _truth(state: PartitionState) -> dict[tuple[EventType, str], dict[str, Any]]:
    truth: dict[tuple[EventType, str], dict[str, Any]] = {}
    for id_, node in state.nodes.items():
        truth[EventType.NODE, id_] = {
            "capacity": node.capacity,
            "occupied": node.occupied_reported,
            "schedulable": node.is_schedulable,
        }
    for path, queue in state.queues.items():
        most = queue.spec.max if queue.parent is not None else state.capacity
        truth[EventType.QUEUE, path] = {
            "is there": True,
            "max": most or {},
            "guaranteed": queue.spec.guaranteed or {},
            **{f"application {id_}": True for id_ in queue.applications.values()},
        }
    for id_, app in state.applications.items():
        truth[EventType.APP, id_] = {"state": app.state.value}
    return truth


def _counts(state: PartitionState) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for id_, node in state.nodes.items():
        counts["node", id_] = len(node.allocations)
        counts["reserved", id_] = sum(it.repeats for it in node.reservations.values())
    for id_, app in state.applications.items():
        counts["application", id_] = len(app.allocations)
        counts["queue", app.queue.path] += len(app.allocations)
    return counts


def _usage(state: PartitionState) -> dict[tuple[str, str], Counter[str]]:
    return {
        (user, path): +Counter(usage.amounts)
        for user, by_path in state.users.items()
        for path, usage in by_path.items()
        if any(usage.amounts.values())
    }


def _limits(state: PartitionState) -> Iterator[tuple[D, str, str]]:
    for path, queue in state.queues.items():
        for limit in queue.spec.limits:
            yield from ((D.UG_USER_LIMIT, user, path) for user in limit.users)
            yield from ((D.UG_GROUP_LIMIT, group, path) for group in limit.groups)


def _links(state: PartitionState) -> Iterator[tuple[str, str]]:
    return ((it.counted_in, it.id) for it in state.applications.values() if it.counted_in)


class Told(Oracle):
    def __init__(self) -> None:
        self._readers: dict[tuple[str, int], _Reader] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        if isinstance(delivery.message, CoreRestored):
            self._begin(delivery.message)
        for effect in simulator.effects:
            if isinstance(effect, Send) and effect.to == EVENT_PUBLISHER:
                message = effect.message
                if isinstance(message, FactsAppended):
                    life = (message.partition, message.epoch)
                    reader = self._readers.get(life)
                    if reader is None and message.first_revision == 1:
                        reader = self._readers[life] = _Reader()
                    if reader is not None:
                        for fact, record in _records(message.facts):
                            reader.read(fact, record)

    def _begin(self, message: CoreRestored) -> None:
        """Take up what is true then: of what another core sent last, the disk may not have all."""
        self._readers.clear()
        for life, state in states_in(message).items():
            reader = self._readers[life] = _Reader()
            reader.begin_with(state)

    def at_rest(self, world: World) -> None:
        self._look(world, "at rest")

    def drained(self, world: World) -> None:
        self._look(world, "in the end")

    def _look(self, world: World, when: str) -> None:
        for name, partition in world.context.partitions.items():
            reader = self._readers.get((name, partition.epoch))
            faults = [] if reader is None else [*reader.differences(partition.state)]
            if faults:
                raise InvariantViolation(f"G28: event records {when}, {name}: " + "; ".join(faults))


# -- who gets them

_LOOKS: Final = (3, 10, 30)
"""One message in so many is a moment at which the stored records are read."""
_TURNS: Final = 4
"""One look in so many opens a stream, or closes the one that is open."""
_STREAM: Final = stream_address(0)
"""No stream of a core has this."""
_ASKS: Final = reply_address(0)


class Published(Oracle):
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._often = draw.one_of(_LOOKS)
        self._publisher: EventPublisher | None = None
        self._wishes: dict[str, ExtraConfig] = {}
        self._stored: list[EventRecord] = []
        """All records of this publisher; the last one has the number before the next."""
        self._lowest = 0
        self._waiting: dict[str, tuple[int, list[EventRecord]]] = {}
        """For the next push, by resource manager, with how many may wait."""
        self._is_open = False
        self._others: dict[str, None] = {}
        """Streams of the run itself."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != EVENT_PUBLISHER:
            return
        publisher = simulator.machines.get(EVENT_PUBLISHER)
        if not isinstance(publisher, EventPublisher):
            return  # it has failed and is not replaced yet
        if isinstance(delivery.message, EventsRestored):
            # Of another core: nobody reads along yet.
            self._publisher, self._is_open = None, False
        if publisher is not self._publisher:
            self._begin(publisher)
            return
        faults = [*self._take(simulator, delivery.message)]
        if not self._draw.number(self._often):
            faults.extend(self._look(simulator.now_ns))
            if not self._draw.number(_TURNS):
                faults.extend(self._turn(simulator.now_ns))
        waits = simulator.is_at_rest and bool(self._waiting)
        if waits and "push" not in simulator.timers.dues(EVENT_PUBLISHER):
            faults.append("records wait, and no push comes")
        if faults:
            kind = type(delivery.message).__name__
            raise InvariantViolation(f"G30: event publisher after {kind}: " + "; ".join(faults))

    def _begin(self, publisher: EventPublisher) -> None:
        """Go on from what it has by now: of one that failed the records are lost."""
        self._publisher = publisher
        self._others.clear()
        self._wishes = dict(publisher.wishes)
        self._lowest = publisher.ring.lowest_id
        count = publisher.ring.next_id - self._lowest
        self._stored = publisher.ring.read(self._lowest, count) if count else []
        self._waiting = {
            rm_id: (it.capacity, [*it.records()]) for rm_id, it in publisher.unpushed.items()
        }

    @property
    def _next(self) -> int:
        return self._lowest + len(self._stored)

    def _take(self, simulator: Simulator, message: Message) -> Iterator[str]:
        told: list[EventRecord] = []
        match message:
            case (
                FactsAppended(rm_id=rm_id, facts=facts)
                | NodeActionsRefused(rm_id=rm_id, refused=facts)
            ):
                told = [record for _, record in _records(facts)]
                told = told if self._wish(rm_id).events_tracked else []
                self._keep(rm_id, told, simulator)
            case EventsConfigured(rm_id=rm_id, extra=None):
                self._wishes.pop(rm_id, None)
                self._waiting.pop(rm_id, None)
            case EventsConfigured(rm_id=rm_id, extra=extra):
                assert extra is not None
                self._wishes[rm_id] = extra
            case EventPushDue():
                yield from self._pushed(simulator)
            case EventStreamRequested(hearer=hearer):
                sent = [it.message for it in simulator.effects if isinstance(it, Send)]
                if any(isinstance(it, Accepted) for it in sent):
                    self._others[hearer] = None
            case EventStreamLeft(hearer=hearer):
                self._others.pop(hearer, None)
        streamed = [
            it.call.events
            for it in simulator.effects
            if isinstance(it, CallRm)
            and isinstance(it.call, CallSendEvent)
            and it.callback == _STREAM
        ]
        wanted = [tuple(told)] if told and self._is_open else []
        if streamed != wanted:
            yield f"a stream gets {sum(map(len, streamed))} records of {len(told)}"
        self._trim(simulator)

    def _wish(self, rm_id: str) -> ExtraConfig:
        return self._wishes.get(rm_id, ExtraConfig())

    def _keep(self, rm_id: str, told: list[EventRecord], simulator: Simulator) -> None:
        self._stored.extend(told)
        if told:
            usual = simulator.topology.settings.event_push_capacity
            capacity = self._wish(rm_id).event_push_capacity or usual
            most, waiting = self._waiting.setdefault(rm_id, (capacity, []))
            waiting.extend(told[: most - len(waiting)])

    def _trim(self, simulator: Simulator) -> None:
        """One ring serves all: it has the largest size that anybody wishes."""
        usual = simulator.topology.settings.event_ring_capacity
        wishes = [it.event_ring_capacity or usual for it in self._wishes.values()]
        lost = len(self._stored) - max(wishes, default=usual)
        if lost > 0:
            del self._stored[:lost]
            self._lowest += lost

    def _pushed(self, simulator: Simulator) -> Iterator[str]:
        sends = [it.message for it in simulator.effects if isinstance(it, Send)]
        pushed = [(it.rm_id, it.events) for it in sends if isinstance(it, SendEvents)]
        wanted = {rm_id: tuple(records) for rm_id, (_, records) in self._waiting.items()}
        if not pushed and self._is_of_former(simulator):
            return
        self._waiting.clear()
        if sorted(rm_id for rm_id, _ in pushed) != sorted(wanted) or dict(pushed) != wanted:
            found = [(rm_id, len(records)) for rm_id, records in pushed]
            expected = [(rm_id, len(records)) for rm_id, records in wanted.items()]
            yield f"it pushes {found}, expected {expected}"

    def _is_of_former(self, simulator: Simulator) -> bool:
        """Whether the timer was that of a publisher that failed; its own is still to come."""
        message = simulator.last.message
        assert isinstance(message, EventPushDue)
        assert self._publisher is not None
        return message.life != self._publisher.life

    # -- readers

    def _ask(self, message: Message, now_ns: int) -> list[Any]:
        assert self._publisher is not None
        return [
            it.message if isinstance(it, Send) else it.call
            for it in self._publisher.handle(message, now_ns)
            if isinstance(it, Send | CallRm)
        ]

    def _look(self, now_ns: int) -> Iterator[str]:
        first = max(0, self._lowest + self._draw.whole(-2, max(0, len(self._stored) - 1)))
        asked = EventsRequested(first_id=first, count=self._draw.whole(1, 50), reply_to=_ASKS)
        (found,) = self._ask(asked, now_ns)
        assert isinstance(found, EventsFound)
        bounds, wanted = (found.lowest_id, found.highest_id), (self._lowest, max(0, self._next - 1))
        if bounds != wanted:
            yield f"it says that it has the records {bounds}, and has {wanted}"
        place = first - self._lowest
        stored = self._stored[place : place + asked.count] if place >= 0 else []
        if [*found.records] != stored:
            yield f"from {first} on {differing(found.records, tuple(stored))}"

    def _turn(self, now_ns: int) -> Iterator[str]:
        if self._is_open:
            self._ask(EventStreamLeft(hearer=_STREAM), now_ns)
            self._is_open = False
            return
        history = self._draw.whole(0, 20)
        asked = EventStreamRequested(hearer=_STREAM, history=history, reply_to=_ASKS)
        *calls, answer = self._ask(asked, now_ns)
        usual = ExtraConfig().event_streams_max
        most = max((it.event_streams_max for it in self._wishes.values()), default=usual)
        self._is_open = most > len(self._others)
        if isinstance(answer, Accepted) is not self._is_open:
            yield f"a stream is answered by {answer}, and {most} may be open"
        told = [record for call in calls for record in call.events]
        wanted = self._stored[-history:] if history and self._is_open else []
        if told != wanted:
            yield f"a stream begins with {len(told)} records, expected {len(wanted)}"
