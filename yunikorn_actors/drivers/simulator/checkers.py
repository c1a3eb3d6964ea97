"""The checks after every delivered message of a simulated run.

- The state checker adds up the books that a message changed (G01 to G11, G17 to G21, G24, G28), and
  all of them at each dump.
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
from yunikorn_actors.checks.incremental import Watch
from yunikorn_actors.checks.model_audit import Audit
from yunikorn_actors.checks.touched import Touched, touched_by
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
    Message,
)
from yunikorn_actors.messages.queries import StateDump, StateDumpRequested
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
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


class StateChecker:
    """Check the truth after every message that Context handles, by the facts that it wrote.

    At rest everything is looked at, as soon as there were enough facts to pay for it.
    """

    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        # What is handled as one is judged as one: its facts come with the last message.
        if delivery.mailbox == CONTEXT and delivery is simulator.last:
            self._look(simulator, delivery)
        if simulator.is_at_rest:
            for watch in self._watches.values():
                if watch.is_due:
                    _fail(watch.look_around(), delivery)

    def _look(self, simulator: Simulator, delivery: Delivery) -> None:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        states = {name: it.state for name, it in context.partitions.items()}
        for name, watch in (*self._watches.items(),):
            if states.get(name) is not watch.state:
                del self._watches[name]
        facts, is_dump = facts_in(simulator.effects), _is_dump(delivery)
        for name, state in states.items():
            if name not in self._watches:
                self._watches[name] = Watch(state)
            watch = self._watches[name]
            if is_dump:
                _fail(watch.look_at_all(), delivery)
            elif watch.revision != state.revision:
                _fail(watch.look(facts.get(name, ())), delivery)


def facts_in(effects: list[Effect]) -> dict[str, tuple[Fact, ...]]:
    """Return what a handler of Context wrote down, by partition."""
    facts: dict[str, tuple[Fact, ...]] = {}
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
        self._audits: dict[str, Audit] = {}
        """By address of the scheduler; where Context plans, by name of the partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            audit = self._audit(delivery.mailbox, machine.planner)
            _fail(audit.look(_touched_by(delivery.message)), delivery)
        elif isinstance(machine, Context) and delivery is simulator.last:
            facts, is_dump = facts_in(simulator.effects), _is_dump(delivery)
            for name, partition in machine.partitions.items():
                if partition.planner is not None:
                    touched = None if is_dump else touched_by(facts.get(name, ()))
                    _fail(self._audit(name, partition.planner).look(touched), delivery)
        if simulator.is_at_rest:
            if _is_dump(delivery):
                self._alike.clear()
            _fail(self._at_rest(simulator), delivery)

    def _audit(self, name: str, planner: Planner) -> Audit:
        audit = self._audits.get(name)
        if audit is None or audit.planner is not planner:
            audit = self._audits[name] = Audit(planner)
        return audit

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
        audit = self._audit(name, planner)
        return [*(audit.look() if audit.is_due else ()), *_unresolved(name, planner, plans=plans)]

    def _are_alike(self, address: str, truth: PartitionState, replica: PartitionState) -> bool:
        revisions = (truth, truth.revision, replica, replica.revision)
        if self._alike.get(address) != revisions:
            if not are_alike(truth, replica) and snapshot(truth) != snapshot(replica):
                return False
            self._alike[address] = revisions
        return True


def _touched_by(message: Message) -> Touched | None:
    """Return what a message to a scheduler is about; None for anything."""
    if isinstance(message, RunCycle):
        return {}, {}
    return touched_by(message.facts) if isinstance(message, FactsAppended) else None


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
