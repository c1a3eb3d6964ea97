"""Notifications that the facts of the truth owe to a resource manager.

Each fact is followed by itself, whatever else the core made of it. What is owed and does not arrive
shows as soon as something arrives that was decided later, because all answers go one way and in
order; the last of them show at rest. What arrives and is not owed shows at once.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from yunikorn_actors.checks.notices import (
    ApplicationAccepted,
    ApplicationIs,
    ApplicationRefused,
    AskIs,
    Ended,
    NodeAccepted,
    Notice,
    Thing,
    Withdrawn,
    difference,
    placed_by,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec, WaitingState
from yunikorn_actors.state.applications import FINISHED, ApplicationEvent, ApplicationState
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.ids import NO_PROPOSAL, short_partition_name
from yunikorn_actors.values.resource import Resource

_T = TerminationType
_NO_PARTITION = "Failed to add application"
_USED_UP = "allocated"
"""So begins the reason of a reservation that ends because its ask is placed."""
_ENDS_UNASKED = frozenset({_T.UNKNOWN_TERMINATION_TYPE, _T.STOPPED_BY_RM})
"""In a fact: a node or an application is gone, or the resource manager ended it by its wish."""


class Record(Protocol):
    """What has to be known of the resource manager, and of the others."""

    def is_announced(self, partition: str, application_id: str, key: str) -> bool | None:
        """Whether it is announced: not if it came with its node; None if it came both ways."""
        ...

    def owner_of(self, thing: Thing) -> str:
        """Name another resource manager to which this is owed; empty if none is."""
        ...


class _Ask:
    """An ask for as long as something of it waits, is parked or runs."""

    __slots__ = (
        "is_used_up", "parked", "remaining", "reported", "reservations", "running", "spec", "taken",
    )  # fmt: skip

    def __init__(self, spec: AskSpec, remaining: int) -> None:
        self.spec = spec
        self.remaining = remaining
        self.parked = self.running = self.taken = 0
        self.reported = WaitingState.UNREPORTED
        self.reservations: list[str] = []
        self.is_used_up = False
        """Its last reservation ends because the next fact places it."""


def _names_no_partition(notice: Notice) -> bool:
    """Whether it rejects an application of a partition that is not there, and so has no facts."""
    return isinstance(notice, ApplicationRefused) and notice.reason.startswith(_NO_PARTITION)


def _place_of(notice: Notice, queue: deque[tuple[int, Notice]]) -> int:
    """Find the first of this kind behind what is owed first; 0 if there is none."""
    kind = type(notice)
    return next((place for place, (_, it) in enumerate(queue) if type(it) is kind), 0)


class Owed:
    """What one registration is to be notified of, and was not yet."""

    def __init__(self, rm_id: str, record: Record, *, takes_states: bool) -> None:
        self._rm_id = rm_id
        self._record = record
        self._takes_states = takes_states
        self._queues: dict[Thing, deque[tuple[int, Notice]]] = {}
        self._left: dict[int, int] = {}
        """How many of each turn of Context are left, oldest first."""
        self._maybe: dict[Thing, list[Notice]] = {}
        """What may be notified, or not: nobody outside can know. One thing may come twice."""
        self._turn = 0
        self._asks: dict[tuple[str, str, str], _Ask] = {}
        self._states: dict[tuple[str, str], ApplicationState] = {}
        """Of the applications that have not ended, by partition and id."""
        self._serials: dict[tuple[str, str], int] = {}
        self.removed: dict[tuple[str, str], None] = {}
        """Applications that were removed at some time, with their partition or by themselves."""
        self.placed: list[str] = []
        """UUIDs of what was placed since the record was compared last."""

    def follow(self, partition: str, facts: Iterable[Fact], turn: int) -> None:
        """Take in facts that Context recorded in this turn."""
        self._turn = turn
        for fact in facts:
            owe = _OWES.get(type(fact))
            if owe is not None:
                owe(self, partition, fact)

    def take(self, notice: Notice) -> list[str]:
        """Strike off what the resource manager is notified of now; return what is wrong with it."""
        thing = notice.thing
        queue = self._queues.get(thing)
        if queue is None or _names_no_partition(notice):
            return self._unowed(notice)
        turn, expected = queue[0]
        if type(expected) is type(notice):
            queue.popleft()
        else:
            place = _place_of(notice, queue)
            # Something else was owed first, and this is not behind it in the same turn.
            if thing in self._maybe or not place:
                return self._unowed(notice)
            if queue[place][0] != turn:
                return [f"G27: {self._rm_id} was notified of {notice.what} before {expected.what}"]
            # What one request brings and ends is answered in the order of the interface.
            _, expected = queue[place]
            del queue[place]
        if not queue:
            del self._queues[thing]
        faults: list[str] = []
        # In the order of the turns: what is owed by an older one should have come before.
        left = self._left
        oldest = next(iter(left))
        if turn != oldest:
            late = "; ".join(self._missing_of(oldest))
            faults.append(f"G27: {self._rm_id} was notified of {notice.what} before {late}")
        if left[turn] == 1:
            del left[turn]
        else:
            left[turn] -= 1
        if notice != expected:
            wrong = difference(notice, expected)
            if wrong:
                faults.append(
                    f"{expected.invariant}: {self._rm_id} was notified of {notice.what}: {wrong}"
                )
        return faults

    def _unowed(self, notice: Notice) -> list[str]:
        expected = self._maybe.pop(notice.thing, [])
        if expected:
            wrongs = [difference(notice, it) for it in expected]
            # Any of those that may have come: nobody outside can know which.
            if "" not in wrongs:
                wrong = f"{self._rm_id} was notified of {notice.what}: {wrongs[-1]}"
                return [f"{notice.invariant}: {wrong}"]
            # Those before it were not announced, and may not come any more.
            if left := expected[wrongs.index("") + 1 :]:
                self._maybe[notice.thing] = left
            return []
        if _names_no_partition(notice):
            return []
        owner = self._record.owner_of(notice.thing)
        wrong = f"is owed to {owner}" if owner else "it is not owed"
        return [f"{notice.invariant}: {self._rm_id} was notified of {notice.what}, which {wrong}"]

    def missing(self) -> list[str]:
        """Name what has not arrived, although nothing is on its way any more."""
        if not self._queues:
            return []
        return [
            f"{notice.invariant}: {self._rm_id} was never notified of {notice.what}"
            for queue in self._queues.values()
            for _, notice in queue
        ]

    def owes(self, thing: Thing) -> bool:
        return thing in self._queues

    def _missing_of(self, turn: int) -> Iterator[str]:
        for queue in self._queues.values():
            yield from (notice.what for its, notice in queue if its == turn)

    def _add(self, notice: Notice) -> None:
        thing, turn = notice.thing, self._turn
        queue = self._queues.get(thing)
        if queue is None:
            queue = self._queues[thing] = deque()
        queue.append((turn, notice))
        self._left[turn] = self._left.get(turn, 0) + 1

    # -- asks

    def _ask_added(self, partition: str, fact: f.AskAdded) -> None:
        spec = fact.spec
        self._asks[partition, spec.application_id, spec.key] = _Ask(spec, spec.max_allocations)

    def _asks_added(self, partition: str, fact: f.AsksAdded) -> None:
        for spec in fact.specs:
            self._asks[partition, fact.application_id, spec.key] = _Ask(spec, spec.max_allocations)

    def _ask_replaced(self, partition: str, fact: f.AskReplaced) -> None:
        ask = self._asks[partition, fact.spec.application_id, fact.spec.key]
        # What was placed before counts: the ask is the same, with another size.
        ask.spec = fact.spec
        ask.remaining = fact.spec.max_allocations - ask.taken - ask.parked

    def _ask_removed(self, partition: str, fact: f.AskRemoved) -> None:
        """The core withdraws asks when their time is up, and never else."""
        name = (partition, fact.application_id, fact.key)
        ask = self._asks[name]
        ask.remaining = 0
        self._forget_if_over(name, ask)
        if fact.type is not _T.TIMEOUT:
            return
        spec = ask.spec
        short = short_partition_name(partition)
        notice = Withdrawn(fact.key, fact.application_id, short, fact.type, "", spec.later_form)
        self._add(notice)

    def _ask_parked(self, partition: str, fact: f.AskParked) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.remaining -= 1
        ask.parked += 1

    def _ask_unparked(self, partition: str, fact: f.AskUnparked) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.remaining += 1
        ask.parked -= 1

    def _forget_if_over(self, name: tuple[str, str, str], ask: _Ask) -> None:
        # A part of it may still run or wait: then its key means this ask.
        if not (ask.remaining or ask.parked or ask.running):
            del self._asks[name]

    def _ask_reported(self, partition: str, fact: f.AskReported) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        self._ask_is(ask, fact.state, fact.reason)

    def _reservation_made(self, partition: str, fact: f.ReservationMade) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.reservations.append(fact.node_id)
        self._ask_is(ask, WaitingState.RESERVED, fact.node_id)

    def _reservation_dropped(self, partition: str, fact: f.ReservationDropped) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.reservations.remove(fact.node_id)
        # With the last of them the state that it was in ends.
        if ask.reported is WaitingState.RESERVED and not ask.reservations:
            ask.reported = WaitingState.UNREPORTED
            ask.is_used_up = fact.reason.startswith(_USED_UP)

    def _ask_is(self, ask: _Ask, state: WaitingState, reason: str = "") -> None:
        """Container states are sent on change only."""
        if ask.reported is not state:
            ask.reported = state
            if self._takes_states:
                spec = ask.spec
                self._add(AskIs(spec.application_id, spec.key, state.value, reason))

    # -- allocations

    def _committed(self, partition: str, fact: f.AllocationCommitted) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.remaining -= 1
        if fact.proposal_id == NO_PROPOSAL:
            self._reported(partition, ask, fact)
        else:
            self._place(partition, ask, fact.uuid, fact.node_id, fact.resource, fact.devices)

    def _run_committed(self, partition: str, fact: f.AllocationsCommitted) -> None:
        columns = (fact.members, fact.keys, fact.uuids, fact.node_ids)
        for member, key, uuid, node_id in zip(*columns, strict=True):
            ask = self._asks[partition, fact.charged[member].application_id, key]
            ask.remaining -= 1
            self._place(partition, ask, uuid, node_id, fact.resource)

    def _recovered(self, partition: str, fact: f.AllocationRecovered) -> None:
        spec = fact.spec
        name = (partition, spec.application_id, spec.key)
        # The ask of a recovered allocation was never made: it is known by that.
        if name not in self._asks:
            self._asks[name] = _Ask(spec, 0)
        self._reported(partition, self._asks[name], fact, spec)

    def _reported(
        self,
        partition: str,
        ask: _Ask,
        fact: f.AllocationCommitted | f.AllocationRecovered,
        spec: AskSpec | None = None,
    ) -> None:
        """What came with its node is not announced, nor a placeholder that comes too late."""
        self._runs(ask, fact.uuid)
        is_recovered = spec is not None
        spec = spec or ask.spec
        is_announced = self._record.is_announced(partition, spec.application_id, spec.key)
        state = self._states.get((partition, spec.application_id))
        # Its gang is over: it is asked back without having been announced.
        if spec.placeholder and state is ApplicationState.RESUMING:
            is_announced = False
        notice = placed_by(partition, fact.uuid, spec, fact.node_id, spec.resource, fact.devices)
        if is_announced is None:
            self._maybe.setdefault(notice.thing, []).append(notice)
        elif is_announced:
            self._add(notice)
        if is_recovered or ask.reported is WaitingState.SCHEDULED:
            return
        if is_announced or ask.reported is not WaitingState.UNREPORTED or ask.is_used_up:
            self._ask_is(ask, WaitingState.SCHEDULED)
        elif is_announced is None and self._takes_states:
            state_notice = AskIs(spec.application_id, spec.key, WaitingState.SCHEDULED.value, "")
            self._maybe.setdefault(state_notice.thing, []).append(state_notice)
        ask.reported, ask.is_used_up = WaitingState.SCHEDULED, False

    def _place(
        self,
        partition: str,
        ask: _Ask,
        uuid: str,
        node_id: str,
        resource: Resource,
        devices: Devices = (),
    ) -> None:
        self._runs(ask, uuid)
        self._add(placed_by(partition, uuid, ask.spec, node_id, resource, devices))
        self._ask_is(ask, WaitingState.SCHEDULED)
        ask.is_used_up = False

    def _runs(self, ask: _Ask, uuid: str) -> None:
        ask.taken += 1
        ask.running += 1
        self.placed.append(uuid)

    def _swap_completed(self, partition: str, fact: f.SwapCompleted) -> None:
        ask = self._asks[partition, fact.application_id, fact.key]
        ask.parked -= 1
        self._place(partition, ask, fact.uuid, fact.node_id, fact.resource, fact.devices)
        self._end(
            partition, fact.application_id, fact.placeholder, fact.placeholder_key,
            fact.placeholder_node, fact.type,
        )  # fmt: skip

    def _released(self, partition: str, fact: f.AllocationReleased) -> None:
        self._end(partition, fact.application_id, fact.uuid, fact.key, fact.node_id, fact.type)

    def _end(
        self, partition: str, app_id: str, uuid: str, key: str, node_id: str, type_: _T
    ) -> None:
        """What a resource manager gives back because it was asked to needs no answer."""
        name = (partition, app_id, key)
        ask = self._asks[name]
        ask.running -= 1
        self._forget_if_over(name, ask)
        # Only what nobody asked for is announced, and always as stopped.
        if type_ in _ENDS_UNASKED:
            message = "" if type_ is _T.STOPPED_BY_RM else node_id
            short = short_partition_name(partition)
            self._add(Ended(uuid, key, app_id, short, _T.STOPPED_BY_RM, message))

    def _asked_back(self, partition: str, fact: f.ReleaseRequested) -> None:
        short = short_partition_name(partition)
        notice = Ended(fact.uuid, fact.key, fact.application_id, short, fact.type, fact.message)
        self._add(notice)

    # -- applications and nodes

    def _application_added(self, partition: str, fact: f.ApplicationAdded) -> None:
        id_ = fact.spec.application_id
        self._states[partition, id_] = ApplicationState.NEW
        self._serials[partition, id_] = fact.serial
        self._add(ApplicationAccepted(id_, fact.queue, fact.by_last_resort))

    def _application_rejected(self, _: str, fact: f.ApplicationRejected) -> None:
        self._add(ApplicationRefused(fact.spec.application_id, fact.reason))

    def _application_changed(self, partition: str, fact: f.ApplicationStateChanged) -> None:
        """Nothing is reported of the history of a former life, when the id names another."""
        name = (partition, fact.application_id)
        # A former life has expired, and the id is of another one by now.
        if fact.event is ApplicationEvent.EXPIRE and name in self._states:
            return
        if self._serials.get(name) == fact.serial:
            if fact.state in FINISHED:
                self._forget_application(name)
            else:
                self._states[name] = fact.state
        message = fact.message or fact.event.value
        self._add(ApplicationIs(fact.application_id, fact.state.value, fact.at_ns, message))

    def _application_removed(self, partition: str, fact: f.ApplicationRemoved) -> None:
        self._forget_application((partition, fact.application_id))
        self.removed[partition, fact.application_id] = None

    def _forget_application(self, name: tuple[str, str]) -> None:
        del self._states[name], self._serials[name]

    def _node_added(self, _: str, fact: f.NodeAdded) -> None:
        self._add(NodeAccepted(fact.node_id))


_OWES: dict[type, Callable[[Owed, str, Any], None]] = {
    f.AskAdded: Owed._ask_added,
    f.AsksAdded: Owed._asks_added,
    f.AskReplaced: Owed._ask_replaced,
    f.AskRemoved: Owed._ask_removed,
    f.AskParked: Owed._ask_parked,
    f.AskUnparked: Owed._ask_unparked,
    f.AskReported: Owed._ask_reported,
    f.ReservationMade: Owed._reservation_made,
    f.ReservationDropped: Owed._reservation_dropped,
    f.AllocationCommitted: Owed._committed,
    f.AllocationsCommitted: Owed._run_committed,
    f.AllocationRecovered: Owed._recovered,
    f.SwapCompleted: Owed._swap_completed,
    f.ReleaseRequested: Owed._asked_back,
    f.AllocationReleased: Owed._released,
    f.ApplicationAdded: Owed._application_added,
    f.ApplicationRejected: Owed._application_rejected,
    f.ApplicationStateChanged: Owed._application_changed,
    f.ApplicationRemoved: Owed._application_removed,
    f.NodeAdded: Owed._node_added,
}
