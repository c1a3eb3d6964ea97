"""The checks after every delivered message of a simulated run.

- The state checker adds up the books of each partition (G01 to G11, G17 to G21, G24, G28): after
  each message that changed it, or now and then where it is large.
- The view checker does the same with every planner, and at rest compares each replica with the
  truth.
- The record checker keeps what each resource manager has requested and was notified of, and
  compares it with the truth (`drivers/simulator/notice_checks.py`: G13 to G16, G25, G27, G28).
- The refusal checker sees that no proposal is made again that was refused on the same facts, the
  agreement checker that none is refused on the facts on which it was decided
  (`drivers/simulator/refusal_checks.py`).
- The decision checker follows the facts with a replica of its own, and checks each decision on the
  truth of that moment (G22, G23).

The first contradiction ends the run.

Only facts change a partition, and each raises its revision. So a state that was found correct is
checked again only at another revision, or when a test asks for it.
"""

from itertools import chain
from typing import (
    Any,
    Final,
)

from yunikorn_actors.checks.configured_queues import against_the_configuration
from yunikorn_actors.checks.decision_rules import wrongs
from yunikorn_actors.checks.equality import are_alike
from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.checks.state_invariants import misconfigured, violations
from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.drivers.simulator.refusal_checks import AgreementChecker, RefusalChecker
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.commit import check_allocate
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    SCHEDULER,
    Delivery,
)
from yunikorn_actors.messages.queries import StateDump, StateDumpRequested
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import (
    ApplicationAdded,
    ApplicationRejected,
    Fact,
    QueueAdded,
    ReservationDropped,
    apply,
    parts_of,
)
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Allocate
from yunikorn_actors.state.snapshot import restore


def default_checkers(policies: Policies | None = None) -> tuple[Checker, ...]:
    """Return all of them; what is given decides in the folds of the replica that they follow."""
    return (
        StateChecker(),
        ViewChecker(),
        RecordChecker(),
        DecisionChecker(policies),
        RefusalChecker(),
        AgreementChecker(),
    )


def _fail(faults: list[str], delivery: Delivery) -> None:
    if faults:
        where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
        raise InvariantViolation(f"{where}: " + "; ".join(faults))


def _is_dump(delivery: Delivery) -> bool:
    return isinstance(delivery.message, StateDumpRequested | StateDump)


SMALL: Final = 300
"""Parts (asks, allocations, nodes and so on): fewer are added up after every change."""
_EACH: Final = 5
_EACH_AT_REST: Final = 20
"""So many parts may be added up for each change of a larger state: that costs each change little,
and what has gone wrong shows after a fifth of the state has changed, or a twentieth at rest."""


class _Pace:
    """When something is to be looked at as a whole again."""

    def __init__(self, of: object) -> None:
        self.of = of
        self._changes = 0
        self._parts = 0

    def change(self, count: int) -> None:
        self._changes += count

    def is_due(self, *, at_rest: bool, at_once: bool) -> bool:
        """Whether enough has changed since the last look; at once also without a change."""
        if at_once or not self._changes:
            return at_once
        each = _EACH_AT_REST if at_rest else _EACH
        return self._parts < SMALL or self._changes * each >= self._parts

    def note_look(self, parts: int) -> None:
        self._changes, self._parts = 0, parts


class StateChecker:
    """Check the truth after the messages that Context handles."""

    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}
        self._revisions: dict[str, int] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        # What is handled as one is judged as one: its facts come with the last message.
        is_last = delivery.mailbox == CONTEXT and delivery is simulator.last
        if not is_last and not simulator.is_at_rest:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for name, partition in context.partitions.items():
            self._look(name, partition.state, simulator, delivery)

    def _look(
        self, name: str, state: PartitionState, simulator: Simulator, delivery: Delivery
    ) -> None:
        pace = self._paces.get(name)
        # Another life of the partition under the same name, or a restored core.
        if pace is None or pace.of is not state:
            pace = self._paces[name] = _Pace(state)
            self._revisions[name] = -1
        pace.change(state.revision - self._revisions[name])
        self._revisions[name] = state.revision
        if pace.is_due(at_rest=simulator.is_at_rest, at_once=_is_dump(delivery)):
            # The configuration is compared only where the sums are right: a wrong sum has other
            # consequences.
            _fail(violations(state) or [*misconfigured(state)], delivery)
            pace.note_look(_parts_of(state))


def _parts_of(state: PartitionState) -> int:
    asks = sum(len(app.asks) for app in state.applications.values())
    return asks + len(state.owners) + len(state.applications) + len(state.nodes) + len(state.queues)


def facts_in(effects: list[Effect]) -> dict[str, tuple[Fact, ...]]:
    """Return what a handler of Context wrote down, by partition."""
    facts: dict[str, tuple[Fact, ...]] = {}
    # Of all subscribers one is enough: each gets the same batch.
    for effect in effects:
        if isinstance(effect, Send) and effect.to == EVENT_PUBLISHER:
            message = effect.message
            if isinstance(message, FactsAppended):
                facts[message.partition] = (*facts.get(message.partition, ()), *message.facts)
    return facts


class ViewChecker:
    """Check the view of every planner; at rest nothing is in flight, so its view is the truth."""

    receivers: Final = frozenset({CONTEXT, SCHEDULER})

    def __init__(self) -> None:
        self._alike: dict[str, tuple[PartitionState, int, PartitionState, int]] = {}
        """By scheduler, the revisions of its partition and its replica that were compared last."""
        self._paces: dict[str, _Pace] = {}
        """By address of the scheduler; where Context plans, by name of the partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            _fail(self._look(delivery.mailbox, machine.planner, delivery), delivery)
        elif isinstance(machine, Context) and delivery is simulator.last:
            for name, partition in machine.partitions.items():
                if partition.planner is not None:
                    _fail(self._look(name, partition.planner, delivery), delivery)
        if simulator.is_at_rest:
            if _is_dump(delivery):
                self._alike.clear()
            _fail(self._at_rest(simulator), delivery)

    def _look(self, name: str, planner: Planner, delivery: Delivery) -> list[str]:
        """Look at a planner that was given a message."""
        pace = self._pace(name, planner)
        message = delivery.message
        pace.change(len(message.facts) if isinstance(message, FactsAppended) else 1)
        return self._looked(name, planner, at_rest=False, at_once=_is_dump(delivery))

    def _pace(self, name: str, planner: Planner) -> _Pace:
        pace = self._paces.get(name)
        if pace is None or pace.of is not planner:
            pace = self._paces[name] = _Pace(planner)
        return pace

    def _looked(
        self, name: str, planner: Planner, *, at_rest: bool, at_once: bool = False
    ) -> list[str]:
        pace = self._pace(name, planner)
        if not pace.is_due(at_rest=at_rest, at_once=at_once):
            return []
        pace.note_look(_parts_of(planner.state))
        return audit(planner)

    def _at_rest(self, simulator: Simulator) -> list[str]:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        faults: list[str] = []
        for name, partition in context.partitions.items():
            if partition.planner is not None:
                faults.extend(self._unresolved(name, partition.planner))
                faults.extend(_resting_too_long(partition.planner, simulator))
            holders = 0
            for address in partition.schedulers.values():
                scheduler = simulator.machines[address]
                assert isinstance(scheduler, Scheduler)
                # Only a scheduler with the token plans, and only of that one something is expected.
                if not self._are_alike(address, partition.state, scheduler.replica):
                    faults.append(f"the replica of {address} is not the truth")
                holders += scheduler.loop.has_token
                if scheduler.loop.has_token:
                    faults.extend(_resting_too_long(scheduler.planner, simulator))
                faults.extend(
                    self._unresolved(address, scheduler.planner, plans=scheduler.loop.has_token)
                )
            if partition.schedulers:
                faults.extend(_faults_of_token(name, holders))
        return faults

    def _unresolved(self, name: str, planner: Planner, *, plans: bool = True) -> list[str]:
        looked = self._looked(name, planner, at_rest=True)
        return [*looked, *_unresolved(name, planner, plans=plans)]

    def _are_alike(self, address: str, truth: PartitionState, replica: PartitionState) -> bool:
        revisions = (truth, truth.revision, replica, replica.revision)
        if self._alike.get(address) != revisions:
            # Quick first: dumps are made only where something differs.
            if not are_alike(truth, replica) and snapshot(truth) != snapshot(replica):
                return False
            self._alike[address] = revisions
        return True


def _unresolved(name: str, planner: Planner, *, plans: bool) -> list[str]:
    faults: list[str] = []
    if planner.unresolved:
        faults.append(f"{name} is at rest and {len(planner.unresolved)} proposals are unresolved")
    if not plans:
        return faults
    if planner.has_work:
        faults.append(f"{name} is at rest and something could be decided")
    faults.extend(f"{name} is at rest and {key} could run" for key in could_run(planner))
    return faults


def _faults_of_token(name: str, holders: int) -> list[str]:
    if holders == 1:
        return []
    return [f"{holders} schedulers of {name} have the token at rest"]


def _resting_too_long(planner: Planner, simulator: Simulator) -> list[str]:
    """Applications whose back-off is over, and who rest all the same.

    While a timer is late, as where another was fired before its time, it may be the one that ends
    the rest.
    """
    first_ns, now_ns = simulator.timers.first_due_ns(), simulator.now_ns
    if planner.state.decides_nothing or (first_ns is not None and first_ns <= now_ns):
        return []
    resting = planner.backoff.resting.items()
    return [f"{app.app.id} rests longer than it should" for app, it in resting if it < now_ns]


def could_run(planner: Planner) -> list[str]:
    """Return the asks that wait although Context would commit a proposal for them.

    Of equal asks of one application only the first is checked. Left out are nodes that the resource
    manager refuses, applications that rest, and what the policy of its leaf holds.
    """
    found: list[str] = []
    for app in planner.model.apps.values():
        seen: dict[tuple[Any, ...], None] = {}
        for key, ask in app.asks.items():
            # Equal asks are refused alike: the first one stands for them.
            like = (ask.shape, ask.ask.spec.placeholder, ask.ask.spec.task_group, ask.ask.reserved)
            if not ask.ask.remaining or like in seen or app in planner.backoff.resting:
                continue
            if ask in app.leaf.holds or app in app.leaf.holds:
                continue
            seen[like] = None
            if could_run_somewhere(planner, ask):
                found.append(key)
    return found


def could_run_somewhere(planner: Planner, ask: AskView) -> bool:
    """Whether Context would commit a proposal for it, on some node that is not refused."""
    return any(_could_run_on(planner, ask, node_id) for node_id in planner.state.nodes)


def _could_run_on(planner: Planner, ask: AskView, node_id: str) -> bool:
    if ask.shape.is_refused(node_id, Use.PLACING):
        return False
    proposal = Allocate(
        proposal_id=1,
        application_id=ask.app.app.id,
        key=ask.ask.spec.key,
        sequence=ask.ask.sequence,
        node_id=node_id,
    )
    return check_allocate(planner.state, proposal) is None


def states_in(message: CoreRestored) -> dict[tuple[str, int], PartitionState]:
    """Make the partitions that a core begins with, by their names and epochs."""
    states: dict[tuple[str, int], PartitionState] = {}
    for known in message.registered.managers:
        for name, epoch in known.epochs.items():
            state = states[name, epoch] = PartitionState(name)
            restore(state, message.images[name])
    return states


class DecisionChecker:
    """Check that no decision is for a finished application or beyond a limit (G22, G23).

    And that applications and queues that are made go by the configuration (G28).
    """

    receivers: Final = frozenset({CONTEXT})

    def __init__(self, policies: Policies | None = None) -> None:
        """With policies the replicas have their folds, unless a core before this one began them."""
        self._policies = policies
        self._replicas: dict[tuple[str, int], PartitionState] = {}
        """A replica for each life of a partition."""

    def replica(self, partition: str, epoch: int) -> PartitionState | None:
        return self._replicas.get((partition, epoch))

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        """Take facts from the effects of Context: a failed subscriber does not get all of them."""
        if delivery.mailbox != CONTEXT:
            return
        if isinstance(delivery.message, CoreRestored):
            # An epoch that the disk has lost is given again.
            self._replicas = states_in(delivery.message)
        for effect in simulator.effects:
            if isinstance(effect, Send) and effect.to == EVENT_PUBLISHER:
                facts = effect.message
                if isinstance(facts, FactsAppended):
                    _fail(self._follow(facts), delivery)

    def _follow(self, message: FactsAppended) -> list[str]:
        life = (message.partition, message.epoch)
        replica = self._replicas.get(life)
        if replica is None:
            folds = None if self._policies is None else Folds(self._policies)
            replica = self._replicas[life] = PartitionState(message.partition, folds)
        faults: list[str] = []
        had_place: dict[str, None] = {}
        """Applications whose reservation was just dropped: it held their place until now."""
        created: dict[str, None] = {}
        """Queues that were just made for the application that comes next."""
        # A run part by part: so it is held to what holds for decisions one at a time.
        for fact in chain.from_iterable(map(parts_of, message.facts)):
            faults.extend(wrongs(replica, fact, had_place))
            faults.extend(against_the_configuration(replica, fact, created))
            apply(replica, fact)
            if isinstance(fact, ReservationDropped):
                had_place[fact.application_id] = None
            elif isinstance(fact, QueueAdded):
                created[fact.path] = None
            elif isinstance(fact, ApplicationAdded | ApplicationRejected):
                created.clear()
        return faults
