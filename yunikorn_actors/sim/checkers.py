"""The checks after every delivered message of a simulated run.

- The state checker adds up the books that a message changed (G01 to G11, G17 to G21, G24, G28), and
  all of them at each dump.
- The view checker does the same with every planner, and at rest compares each replica with the
  truth.
- The ledger sees requests and callbacks, and compares what was asked with what the resource manager
  was told (G14 to G16, G25, G27).
- The refusal checker sees that no proposal is made again that was refused on the same facts
  (`sim/refusals.py`).
- The decision checker follows the facts with a replica of its own, and checks each decision on the
  truth of that moment (G22, G23).

The first contradiction ends the run.

Only facts change a partition, and each raises its revision. So a state that was found correct is
checked again only at another revision, or when somebody asks for it.
"""

from collections import Counter
from itertools import chain
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.domain.alike import are_alike
from yunikorn_actors.domain.changes import apply
from yunikorn_actors.domain.decisions import wrongs
from yunikorn_actors.domain.facts import Fact, ReservationDropped, parts_of
from yunikorn_actors.domain.image import restore
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Allocate
from yunikorn_actors.domain.snapshot import snapshot
from yunikorn_actors.domain.touched import Touched, touched_by
from yunikorn_actors.domain.watch import Watch
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.commit import check
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Delivery,
    Message,
    is_callback,
)
from yunikorn_actors.messages.queries import StateDump, StateDumpRequested
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import (
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateNode,
)
from yunikorn_actors.messages.rm_events import (
    AllocationsRequested,
    ApplicationsRequested,
    NodesRequested,
    RegistrationRequested,
    RMLost,
    RMRegistrationRejected,
    RMUnregistered,
)
from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
from yunikorn_actors.planning.audit import Audit
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.sim.refusals import RefusalChecker
from yunikorn_actors.sim.simulator import Checker, Simulator

_CREATES = frozenset({si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN})


_STOPPED = si.TerminationType.STOPPED_BY_RM
_BY_CORE = frozenset(
    {
        si.TerminationType.TIMEOUT,
        si.TerminationType.PREEMPTED_BY_SCHEDULER,
        si.TerminationType.PLACEHOLDER_REPLACED,
    }
)


def default_checkers() -> tuple[Checker, ...]:
    return (StateChecker(), ViewChecker(), Ledger(), DecisionChecker(), RefusalChecker())


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
        told, is_dump = told_by(simulator.effects), _is_dump(delivery)
        for name, state in states.items():
            if name not in self._watches:
                self._watches[name] = Watch(state)
            watch = self._watches[name]
            if is_dump:
                _fail(watch.look_at_all(), delivery)
            elif watch.revision != state.revision:
                _fail(watch.look(told.get(name, ())), delivery)


def told_by(effects: list[Effect]) -> dict[str, tuple[Fact, ...]]:
    """Return what a handler of Context wrote down, by partition."""
    told: dict[str, tuple[Fact, ...]] = {}
    for effect in effects:
        if isinstance(effect, Send) and effect.to == EVENT_PUBLISHER:
            message = effect.message
            if isinstance(message, FactsAppended):
                told[message.partition] = (*told.get(message.partition, ()), *message.facts)
    return told


class ViewChecker:
    """Check the view of every planner; at rest nothing is in flight, so its view is the truth."""

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
            if isinstance(delivery.message, FactsAppended):
                # Only what comes in the very plan would show that room is spared in vain.
                _fail([f"proposal {it} is void, and in flight" for it in machine.void()], delivery)
        elif isinstance(machine, Context) and delivery is simulator.last:
            told, is_dump = told_by(simulator.effects), _is_dump(delivery)
            for name, partition in machine.partitions.items():
                if partition.planner is not None:
                    touched = None if is_dump else touched_by(told.get(name, ()))
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
            for address in partition.schedulers.values():
                scheduler = simulator.machines[address]
                assert isinstance(scheduler, Scheduler)
                if not self._are_alike(address, partition.state, scheduler.replica):
                    faults.append(f"the replica of {address} is not the truth")
                faults.extend(self._unresolved(address, scheduler.planner))
        return faults

    def _unresolved(self, name: str, planner: Planner) -> list[str]:
        audit = self._audit(name, planner)
        return [*(audit.look() if audit.is_due else ()), *_unresolved(name, planner)]

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


def _unresolved(name: str, planner: Planner) -> list[str]:
    faults: list[str] = []
    if planner.unresolved:
        faults.append(f"{name} is at rest and {len(planner.unresolved)} proposals are unresolved")
    if planner.has_work:
        faults.append(f"{name} is at rest and something could be decided")
    faults.extend(f"{name} is at rest and {key} could run" for key in could_run(planner))
    return faults


def could_run(planner: Planner) -> list[str]:
    """Return the asks that wait although Context would commit a proposal for them.

    Of equal asks of one application only the first is checked. Left out are nodes that the resource
    manager refuses and applications that rest.
    """
    found: list[str] = []
    for app in planner.model.apps.values():
        seen: dict[tuple[Any, ...], None] = {}
        for key, ask in app.asks.items():
            like = (ask.shape, ask.ask.spec.placeholder, ask.ask.spec.task_group, ask.ask.reserved)
            if not ask.ask.remaining or like in seen or app in planner.backoff.resting:
                continue
            seen[like] = None
            if any(_could_run_on(planner, ask, node_id) for node_id in planner.state.nodes):
                found.append(key)
    return found


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
    return check(planner.state, proposal) is None


class DecisionChecker:
    """Check that no decision is for a finished application or beyond a limit (G22, G23)."""

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, int], PartitionState] = {}
        """A replica for each life of a partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        """Take facts from the effects of Context: a failed subscriber does not get all of them."""
        if delivery.mailbox != CONTEXT:
            return
        if isinstance(delivery.message, CoreRestored):
            self._begin_with(delivery.message)
        for effect in simulator.effects:
            if isinstance(effect, Send) and effect.to == EVENT_PUBLISHER:
                told = effect.message
                if isinstance(told, FactsAppended):
                    _fail(self._follow(told), delivery)

    def _begin_with(self, message: CoreRestored) -> None:
        for known in message.registered.managers:
            for name, epoch in known.epochs.items():
                replica = self._replicas[name, epoch] = PartitionState(name)
                restore(replica, message.images[name])

    def _follow(self, message: FactsAppended) -> list[str]:
        life = (message.partition, message.epoch)
        replica = self._replicas.setdefault(life, PartitionState(message.partition))
        faults: list[str] = []
        had_place: dict[str, None] = {}
        """Applications whose reservation was just dropped: it held their place until now."""
        # A run part by part: so it is held to what holds for decisions one at a time.
        for fact in chain.from_iterable(map(parts_of, message.facts)):
            faults.extend(wrongs(replica, fact, had_place))
            apply(replica, fact)
            if isinstance(fact, ReservationDropped):
                had_place[fact.application_id] = None
        return faults


class Ledger:
    """Compare requests with answers, for each registration by itself.

    A registration ends when the resource manager registers again, is lost or leaves; its last
    requests may stay unanswered.
    """

    def __init__(self) -> None:
        self._books: dict[str, _Book] = {}
        self._lives: dict[str, list[str]] = {}
        """The callbacks of each resource manager; requests belong to the last one."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        if delivery.mailbox == RM_PROXY:
            self._note_request(message)
        elif is_callback(delivery.mailbox):
            book = self._books.get(delivery.mailbox)
            _fail([] if book is None else book.note(message), delivery)
        if simulator.is_at_rest:
            _fail(self._unanswered(), delivery)

    def _note_request(self, message: Any) -> None:  # noqa: ANN401 - any message of the mailbox
        match message:
            case RegistrationRequested(request=request, callback=address):
                self._lives.setdefault(request.rm_id, []).append(address)
                self._books[address] = _Book()
            case RMRegistrationRejected(rm_id=rm_id, callback=address):
                self._resume(rm_id, address)
            case RMLost(rm_id=rm_id) | RMUnregistered(rm_id=rm_id):
                self._lives.pop(rm_id, None)
            case AllocationsRequested() | ApplicationsRequested() | NodesRequested():
                for address in self._lives.get(message.request.rm_id, [])[-1:]:
                    self._books[address].ask(message)

    def _resume(self, rm_id: str, refused: str) -> None:
        """The former registration goes on; the requests sent in the meantime belong to it."""
        self._lives[rm_id].remove(refused)
        for address in self._lives[rm_id][-1:]:
            self._books[address].asked.update(self._books[refused].asked)

    def _unanswered(self) -> list[str]:
        """Each new application and each created node has exactly one answer (G25)."""
        books = [self._books[lives[-1]] for lives in self._lives.values() if lives]
        return [
            f"G25: {kind} {id_} was asked {book.asked[kind, id_]} times and answered "
            f"{book.answers[kind, id_]} times"
            for book in books
            for kind, id_ in sorted(book.asked.keys() | book.answers.keys())
            if book.asked[kind, id_] != book.answers[kind, id_]
        ]


class _Book:
    """The requests and reports of one registration, and what its callback was told."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.answers: Counter[tuple[str, str]] = Counter()
        self._reported: Counter[str] = Counter()
        """UUIDs that the resource manager reported; it may report one that has ended again."""
        self._announced: dict[str, list[str]] = {}
        self._ended: dict[str, list[si.TerminationType]] = {}
        self._accepted: dict[str, None] = {}

    def ask(self, message: Any) -> None:  # noqa: ANN401 - any request
        if isinstance(message, ApplicationsRequested):
            self.asked.update(("application", item.application_id) for item in message.request.new)
        if isinstance(message, NodesRequested):
            for info in message.request.nodes:
                self._report(info.existing_allocations)
                if info.action in _CREATES:
                    self.asked["node", info.node_id] += 1
        if isinstance(message, AllocationsRequested):
            self._report(message.request.allocations)

    def _report(self, items: tuple[si.Allocation, ...]) -> None:
        self._reported.update(item.uuid for item in items if item.uuid)

    def note(self, message: Any) -> list[str]:  # noqa: ANN401 - any call of a callback
        if isinstance(message, CallUpdateAllocation):
            return [*self._new(message.response), *self._released(message.response)]
        if isinstance(message, CallUpdateApplication):
            for accepted in message.response.accepted:
                self.answers["application", accepted.application_id] += 1
                self._accepted[accepted.application_id] = None
            for rejected in message.response.rejected:
                self.answers["application", rejected.application_id] += 1
        if isinstance(message, CallUpdateNode):
            for node in message.response.accepted:
                self.answers["node", node.node_id] += 1
            for refused in message.response.rejected:
                self.answers["node", refused.node_id] += 1
        return []

    def _new(self, response: si.AllocationResponse) -> list[str]:
        faults: list[str] = []
        for item in response.new:
            keys = self._announced.setdefault(item.uuid, [])
            keys.append(item.allocation_key)
            if len(keys) > self._lives(item.uuid):
                faults.append(f"G16: {item.uuid} was announced twice")
            if item.application_id not in self._accepted:
                faults.append(f"G27: {item.uuid} announced before {item.application_id} accepted")
        return faults

    def _released(self, response: si.AllocationResponse) -> list[str]:
        """In each of its lives a UUID is asked back by the core at most once, then stopped (G13).

        An allocation that was never announced came with its node; a release without UUID is of an
        ask. A UUID that the resource manager chose may come back under another key.
        """
        faults: list[str] = []
        for item in response.released:
            if not item.uuid:
                continue
            told = self._ended.setdefault(item.uuid, [])
            told.append(item.termination_type)
            if not _may_be_told(told, self._lives(item.uuid)):
                faults.append(f"G15: {item.uuid} was released twice")
            key = self._announced.get(item.uuid, [item.allocation_key])[-1]
            if key != item.allocation_key and self._lives(item.uuid) == 1:
                faults.append(f"G16: {item.uuid} was announced as {key}, released as another")
        return faults

    def _lives(self, uuid: str) -> int:
        return 1 + self._reported[uuid]


def _may_be_told(told: list[si.TerminationType], lives: int) -> bool:
    asked_back = sum(1 for type_ in told if type_ in _BY_CORE)
    stopped = len(told) - asked_back
    in_order = lives > 1 or not stopped or told[-1] is _STOPPED
    return max(asked_back, stopped) <= lives and in_order
