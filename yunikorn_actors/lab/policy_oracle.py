"""An oracle of policies: those that are shipped never fail, and their folds know what is there.

What a fold has received is compared with the single asks and allocations of its partition, after
each message. Which jobs a gang makes depends on how its leaf admits gangs, so of gangs only those
are looked at that a fold knows and the partition does not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from yunikorn_actors.config import GangAdmission
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.rm_calls import CallPredicates
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations, RunCycle
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.conservative import Conservative
from yunikorn_actors.policies.fair_decay import FairDecay
from yunikorn_actors.policies.folds import Folds, is_part_of_gang
from yunikorn_actors.policies.registry import SHIPPED
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import SCHEDULABLE, Application
from yunikorn_actors.state.facts import (
    AllocationCommitted,
    AskUnparked,
    Fact,
    ReservationDropped,
    parts_of,
)
from yunikorn_actors.state.partition import PartitionState


class ShippedPolicies(Oracle):
    def __init__(self) -> None:
        self._revisions: dict[tuple[str, int], int] = {}
        """Of each life of a partition, when Context had handled the last message."""
        self._is_refused = False
        """Whether a resource manager has been asked, who may have refused what came first."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        self._is_refused |= isinstance(delivery.message, CallPredicates)
        if delivery is not simulator.last:
            return
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            _fail(delivery, _failed(machine.planner))
        elif delivery.mailbox == CONTEXT:
            assert isinstance(machine, Context)
            for partition in machine.partitions.values():
                if partition.planner is not None:
                    _fail(delivery, _failed(partition.planner))
                _fail(delivery, _folds(partition.state))
                self._look_at_turns(simulator, delivery, partition)

    def _look_at_turns(
        self, simulator: Simulator, delivery: Delivery, partition: PartitionContext
    ) -> None:
        """Judge what was placed by a plan that knew all, and is the only one under way."""
        state, message = partition.state, delivery.message
        life = (partition.name, partition.epoch)
        before, self._revisions[life] = self._revisions.get(life), state.revision
        knows_all = isinstance(message, ProposeAllocations) and message.as_of == before
        if isinstance(message, RunCycle):
            # Planned and carried out in one, on the truth.
            knows_all = message.partition == partition.name and partition.loop is not None
        if not knows_all or self._is_refused or len(partition.schedulers) > 1:
            return
        for effect in simulator.effects:
            if not isinstance(effect, Send) or effect.to != EVENT_PUBLISHER:
                continue
            told = effect.message
            if isinstance(told, FactsAppended) and told.partition == partition.name:
                _fail(delivery, _passed(state, told.facts))


def _fail(delivery: Delivery, faults: Iterable[str]) -> None:
    found = tuple(faults)
    if found:
        where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
        raise InvariantViolation(f"{where}: " + "; ".join(found))


def _failed(planner: Planner) -> Iterator[str]:
    for path, (name, what) in planner.model.deciders.failed.items():
        if name in SHIPPED:
            yield f"the policy of {path or 'nodes'} has failed: {what}"


def _passed(state: PartitionState, facts: Sequence[Fact]) -> Iterator[str]:
    """Where the first without room holds all others, nothing is placed while one before it waits.

    What has a reservation or takes a placeholder's room was decided before, and asks no gate.
    """
    parts = [part for fact in facts for part in parts_of(fact)]
    aside = {
        (it.application_id, it.key)
        for it in parts
        if isinstance(it, ReservationDropped | AskUnparked)
    }
    placed = [it for it in parts if isinstance(it, AllocationCommitted) and it.proposal_id]
    urgent: dict[str, int] = {}
    for it in placed:
        ask = state.applications[it.application_id].asks[it.key]
        most = max(urgent.get(it.application_id, ask.spec.priority), ask.spec.priority)
        urgent[it.application_id] = most
    for it in placed:
        app = state.applications[it.application_id]
        ask = app.asks[it.key]
        if app.queue.properties.application_policy != "fcfs" or is_part_of_gang(app, ask.spec):
            continue
        if (app.id, it.key) in aside:
            continue
        mine = _turn(app, ask, urgent)
        for other in state.applications.values():
            if other.queue is not app.queue or other.state not in SCHEDULABLE:
                continue
            for first in other.asks.values():
                waits = first.remaining and not is_part_of_gang(other, first.spec)
                if waits and first is not ask and _turn(other, first, urgent) < mine:
                    yield f"{it.key} of {app.id} passes {first.spec.key} of {other.id}"


def _turn(app: Application, ask: Ask, urgent: Mapping[str, int]) -> tuple[int, ...]:
    waiting = [
        it.spec.priority
        for it in app.asks.values()
        if it.remaining and not (it.spec.placeholder and it.parked)
    ]
    most = max([*waiting, *([urgent[app.id]] if app.id in urgent else [])])
    whose = (-most, app.submitted_ns)
    if not app.queue.properties.application_sort_priority:
        whose = (app.submitted_ns, -most)
    return (*whose, app.submitted_ns, app.serial, -ask.spec.priority, ask.created_ns, ask.sequence)


def _folds(state: PartitionState) -> Iterator[str]:
    folds = state.folds
    assert isinstance(folds, Folds)
    for path, (_, what) in folds.failed.items():
        yield f"the fold of {path} has failed: {what}"
    for path, fold in folds.by_queue.items():
        if isinstance(fold, Conservative):
            yield from _differ(state, f"for the fold of {path} waits", _waiting(state, path),
                               [*fold.waiting, *(job.id for job in fold.new)])  # fmt: skip
            yield from _differ(state, f"for the fold of {path} runs", _running(state), fold.running)
        elif isinstance(fold, FairDecay):
            yield from _differ(state, f"for the fold of {path} runs", _running(state), fold.shares)
        if isinstance(fold, Conservative | FairDecay) and fold.capacity != state.capacity:
            yield f"the fold of {path} knows a capacity of {fold.capacity}"


def _waiting(state: PartitionState, path: str) -> set[str]:
    return {
        f"{app.id}/{key}"
        for app in state.applications.values()
        if app.queue.path == path
        for key, ask in app.asks.items()
        if (ask.remaining or ask.parked) and not ask.uuids
    }


def _running(state: PartitionState) -> set[str]:
    return {
        f"{app.id}/{item.spec.key}"
        for app in state.applications.values()
        for item in app.allocations.values()
    }


def _differ(
    state: PartitionState, what: str, expected: set[str], known: Iterable[str]
) -> Iterator[str]:
    # A gang is a job of its own where its leaf holds it, and may be both while leaves change.
    gangs = {
        app.id
        for app in state.applications.values()
        if app.spec.is_gang and app.queue.properties.gang_admission is GangAdmission.HOLD
    }
    known = tuple(known)
    gangs |= state.applications.keys() & {*known}
    found = {it for it in known if it.partition("/")[0] not in gangs}
    wanted = {it for it in expected if it.partition("/")[0] not in gangs}
    if found != wanted:
        yield f"{what} {sorted(found)}, expected {sorted(wanted)}"
