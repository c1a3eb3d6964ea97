"""What a run reached beside orders: facts that came together, reasons, bounds, rows of tables.

All of it is seen in what was delivered, after the run. Where a table says what there is, its keys
are the universe: what no run reached can be listed. The facts of a batch have none, as nobody says
which of them may come together.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from yunikorn_actors.drivers.simulator.checkers import states_in
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import followers, restart
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Cause, Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import PreemptionRule, WaitingState
from yunikorn_actors.state.applications import (
    STATEAWARE_TRANSITIONS,
    TRANSITIONS,
    ApplicationEvent,
    ApplicationState,
)
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.partition import LongWorkKind
from yunikorn_actors.state.placement import RECOVERY_PATH
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.state.queues import QueueState
from yunikorn_actors.state.termination import ASKED_BACK, TerminationType
from yunikorn_actors.values.ids import NO_PROPOSAL


class Feature(NamedTuple):
    group: str
    key: str

    def __str__(self) -> str:
        return f"{self.group}: {self.key}"


BATCHES: Final = "facts in one batch, the first before the second"
REFUSALS: Final = "refusals of proposals"
GATES: Final = "reasons to wait"
BOUNDS: Final = "bounds"
TIMERS: Final = "timers"
LIVES: Final = "transitions of applications"
PLACEMENTS: Final = "placements"
PREEMPTION: Final = "preemption"
GANGS: Final = "gangs"
ENDS: Final = "ends of allocations"
CLUSTER: Final = "queues and nodes"
LONG: Final = "long work"


def _transition(state: ApplicationState, event: ApplicationEvent, to: ApplicationState) -> str:
    return f"{state} {event} {to}"


_APPLICATION_TIMERS: Final = ("state", "placeholder", "commitment", "execution", "allocation")
_OTHER_TIMERS: Final = (
    s.PlanningDue, s.HistoryExpiryDue, s.ConfirmationDue, s.QueueCleaningDue, p.PredicateDue,
    followers.EventPushDue, restart.ReturnDue,
)  # fmt: skip


def _waits(state: WaitingState, shortage: GateKind | None) -> str:
    return f"{state} by {shortage or 'no gate'}"


def _crowd(crowd: GateKind) -> str:
    return f"crowded by {crowd or 'nothing any more'}"


UNIVERSE: Final[dict[str, tuple[str, ...]]] = {
    LIVES: tuple(
        _transition(*row, to)
        for table in (TRANSITIONS, STATEAWARE_TRANSITIONS)
        for row, to in table.items()
    ),
    PLACEMENTS: (
        "as asked", "elsewhere by a rule", "into a queue made for it", "last resort",
        "recovery queue", "rejected",
    ),
    GANGS: (
        "admitted", "lapsed", "swap on its node", "swap to another node", "swap even",
        "swap uneven", "swap off, its place kept", "swap off, its place free",
        "placeholder cancelled",
    ),
    PREEMPTION: (
        *(f"{rule} decided" for rule in PreemptionRule),
        "required node failed", "quota armed", "quota cleared",
    ),
    REFUSALS: tuple(Refusal),
    GATES: (
        *(_waits(state, kind) for state in (WaitingState.SKIPPED, WaitingState.FAILED)
          for kind in GateKind),
        *map(_crowd, GateKind),
        "refused by a resource manager",
    ),
    ENDS: (
        *(f"asked back: {type_.name}" for type_ in sorted(ASKED_BACK)),
        *(f"ended: {type_.name}" for type_ in TerminationType),
        "confirmed as asked back", "confirmed otherwise", "confirmation missed",
    ),
    CLUSTER: (
        *(f"queue {state}" for state in QueueState), "queue removed",
        "node drained", "node opened", "node awaited", "node resized", "node removed",
        "foreign allocation",
    ),
    LONG: tuple(LongWorkKind),
    BOUNDS: (
        "cycle_max", "inflight_max", "turn_max", "undelivered_max", "slice_max", "history_max",
        "rejected_max",
    ),
    TIMERS: (*_APPLICATION_TIMERS, *(kind.__name__ for kind in _OTHER_TIMERS)),
}  # fmt: skip
"""What there is of each group that a table says all of, in the order in which it is shown."""


def features_in(deliveries: Sequence[Delivery], settings: Settings) -> tuple[Feature, ...]:
    """Return what a run reached, each once."""
    reading = _Reading(settings)
    reached = reading.reached
    for delivery in deliveries:
        message = delivery.message
        read = _OF_MESSAGE.get(type(message))
        if read is not None:
            read(reading, delivery, message)
    reading.finish()
    return tuple(reached)


class _Reading:
    """Follows one run."""

    def __init__(self, settings: Settings) -> None:
        self.reached: dict[Feature, None] = {}
        self._settings = settings
        self._states: dict[tuple[str, int, int], ApplicationState] = {}
        """By partition, epoch and the serial of the application."""
        self._expiries: set[Cause] = set()
        """Where Context handled that the time of a finished application is over."""
        self._batches: dict[tuple[type, ...], None] = {}
        """The types of the facts of each batch, in their order."""
        self._in_flight: dict[str, list[tuple[int, int]]] = {}
        """Of each scheduler in which step how many proposals were sent, or resolved (negative)."""
        self._proposed: dict[int, str] = {}

    def note(self, group: str, key: str) -> None:
        self.reached[Feature(group, key)] = None

    def finish(self) -> None:
        for kinds in self._batches:
            for place, first in enumerate(kinds):
                for second in kinds[place + 1 :]:
                    self.note(BATCHES, f"{first.__name__}, {second.__name__}")
        self._note_flights()

    def _note_flights(self) -> None:
        if any(self._is_full(steps) for steps in self._in_flight.values()):
            self.note(BOUNDS, "inflight_max")

    def _is_full(self, steps: list[tuple[int, int]]) -> bool:
        if sum(count for _, count in steps if count > 0) < self._settings.inflight_max:
            return False
        in_flight = 0
        for _, count in sorted(steps, key=lambda it: it[0]):
            in_flight += count
            if in_flight >= self._settings.inflight_max:
                return True
        return False

    # -- facts

    def restored(self, _: Delivery, message: restart.CoreRestored) -> None:
        """Another core begins with what is on the disk, which may be less than was published."""
        self._note_flights()
        for book in (self._in_flight, self._proposed, self._expiries, self._states):
            book.clear()
        for life, state in states_in(message).items():
            for app in state.applications.values():
                self._states[*life, app.serial] = app.state
            for serial, ended in state.finished.items():
                self._states[*life, serial] = ended.state

    def appended(self, delivery: Delivery, message: s.FactsAppended) -> None:
        if delivery.mailbox != EVENT_PUBLISHER:
            self._resolved(delivery, message.facts)
            return
        self._batches[tuple(dict.fromkeys(map(type, message.facts)))] = None
        for fact in message.facts:
            read = _OF_FACT.get(type(fact))
            if read is not None:
                for group, key in read(fact):
                    self.note(group, key)
            elif type(fact) in _OF_LIFE:
                self._lived(delivery, message, fact)

    def _lived(self, delivery: Delivery, message: s.FactsAppended, fact: Any) -> None:  # noqa: ANN401
        """Follow the state of an application."""
        where = (message.partition, message.epoch, fact.serial)
        state = self._states.get(where, ApplicationState.NEW)
        match fact:
            case f.ApplicationAdded():
                self.note(PLACEMENTS, _placement(fact, message.facts))
                to, event = ApplicationState.NEW, None
            case f.ApplicationRejected():
                self.note(PLACEMENTS, "rejected")
                to, event = ApplicationState.REJECTED, ApplicationEvent.REJECT
            case _:
                to, event = fact.state, fact.event
        self._states[where] = to
        if event is not None:
            self.note(LIVES, _transition(state, event, to))
        if event is ApplicationEvent.EXPIRE and delivery.cause not in self._expiries:
            is_rejected = state is ApplicationState.REJECTED
            self.note(BOUNDS, "rejected_max" if is_rejected else "history_max")

    def _resolved(self, delivery: Delivery, facts: Iterable[f.Fact]) -> None:
        """Note which of its proposals a scheduler hears of."""
        if not self._proposed:
            return
        for fact in facts:
            self._resolve(delivery, getattr(fact, "proposal_id", NO_PROPOSAL))

    def _resolve(self, delivery: Delivery, proposal_id: int) -> None:
        if self._proposed.get(proposal_id) == delivery.mailbox:
            del self._proposed[proposal_id]
            self._in_flight[delivery.mailbox].append((delivery.step, -1))

    # -- messages

    def proposed(self, delivery: Delivery, message: s.ProposeAllocations) -> None:
        if len(message.proposals) >= self._settings.cycle_max:
            self.note(BOUNDS, "cycle_max")
        scheduler = delivery.cause.mailbox
        steps = self._in_flight.setdefault(scheduler, [])
        steps.append((delivery.cause.step, len(message.proposals)))
        for proposal in message.proposals:
            self._proposed[proposal.proposal_id] = scheduler

    def rejected(self, delivery: Delivery, message: s.ProposalRejected) -> None:
        self.note(REFUSALS, message.reason)
        self._resolve(delivery, message.proposal_id)

    def waiting(self, _: Delivery, message: s.ReportWaiting) -> None:
        for found in message.observations:
            self.note(GATES, _waits(found.state, found.shortage))
            if found.refusals:
                self.note(GATES, "refused by a resource manager")
        for crowd in message.crowds:
            self.note(GATES, _crowd(crowd.crowd))

    def sliced(self, _: Delivery, __: s.RunSlice) -> None:
        self.note(BOUNDS, "slice_max")

    def held_back(self, _: Delivery, __: rm.RMHeldBack) -> None:
        self.note(BOUNDS, "undelivered_max")

    def turned(self, delivery: Delivery, _: rm.TurnMarked) -> None:
        if delivery.mailbox == CONTEXT:
            self.note(BOUNDS, "turn_max")

    def application_timer(self, _: Delivery, message: s.ApplicationTimerDue) -> None:
        self.note(TIMERS, message.kind.partition(":")[0])

    def timer(self, delivery: Delivery, message: Any) -> None:  # noqa: ANN401
        self.note(TIMERS, type(message).__name__)
        if type(message) is s.HistoryExpiryDue:
            self._expiries.add(Cause(delivery.mailbox, delivery.step))


_OF_MESSAGE: Final[dict[type, Callable[[_Reading, Delivery, Any], None]]] = {
    restart.CoreRestored: _Reading.restored,
    s.FactsAppended: _Reading.appended,
    s.ProposeAllocations: _Reading.proposed,
    s.ProposalRejected: _Reading.rejected,
    s.ReportWaiting: _Reading.waiting,
    s.RunSlice: _Reading.sliced,
    rm.RMHeldBack: _Reading.held_back,
    rm.TurnMarked: _Reading.turned,
    s.ApplicationTimerDue: _Reading.application_timer,
    **dict.fromkeys(_OTHER_TIMERS, _Reading.timer),
}

_OF_LIFE: Final = frozenset({f.ApplicationAdded, f.ApplicationRejected, f.ApplicationStateChanged})


def _placement(fact: f.ApplicationAdded, batch: Iterable[f.Fact]) -> str:
    if fact.by_last_resort:
        return "last resort"
    if fact.queue == RECOVERY_PATH:
        return "recovery queue"
    if any(isinstance(it, f.QueueAdded) and it.path == fact.queue for it in batch):
        return "into a queue made for it"
    return "elsewhere by a rule" if fact.is_elsewhere else "as asked"


def _released(fact: f.AllocationReleased) -> Iterator[tuple[str, str]]:
    yield ENDS, f"ended: {fact.type.name}"
    if fact.given_back is not None:
        alike = fact.given_back is fact.type
        yield ENDS, "confirmed as asked back" if alike else "confirmed otherwise"


def _scheduled(fact: f.NodeScheduleChanged) -> Iterator[tuple[str, str]]:
    if fact.drained != fact.was_drained:
        yield CLUSTER, "node drained" if fact.drained else "node opened"
    if fact.awaited:
        yield CLUSTER, "node awaited"


_OF_FACT: Final[dict[type, Callable[[Any], Iterable[tuple[str, str]]]]] = {
    f.GangAdmitted: lambda _: ((GANGS, "admitted"),),
    f.GangLapsed: lambda _: ((GANGS, "lapsed"),),
    f.AskParked: lambda it: (
        (GANGS, "swap to another node" if it.crosses else "swap on its node"),
    ),
    f.AskUnparked: lambda it: ((GANGS, f"swap off, its place {'free' if it.frees else 'kept'}"),),
    f.PlaceholderCancelled: lambda _: ((GANGS, "placeholder cancelled"),),
    f.SwapCompleted: lambda it: ((GANGS, f"swap {'even' if it.is_even else 'uneven'}"),),
    f.PreemptionDecided: lambda it: ((PREEMPTION, f"{it.beneficiary.rule} decided"),),
    f.PreemptionFailed: lambda _: ((PREEMPTION, "required node failed"),),
    f.QuotaPreemptionArmed: lambda _: ((PREEMPTION, "quota armed"),),
    f.QuotaPreemptionCleared: lambda _: ((PREEMPTION, "quota cleared"),),
    f.ReleaseRequested: lambda it: ((ENDS, f"asked back: {it.type.name}"),),
    f.AllocationReleased: _released,
    f.ConfirmationMissed: lambda _: ((ENDS, "confirmation missed"),),
    f.QueueStateChanged: lambda it: ((CLUSTER, f"queue {it.state}"),),
    f.QueueRemoved: lambda _: ((CLUSTER, "queue removed"),),
    f.NodeScheduleChanged: _scheduled,
    f.NodeResized: lambda _: ((CLUSTER, "node resized"),),
    f.NodeRemoved: lambda _: ((CLUSTER, "node removed"),),
    f.ForeignAllocationPut: lambda _: ((CLUSTER, "foreign allocation"),),
    f.LongWorkStarted: lambda it: ((LONG, it.work.kind),),
}
