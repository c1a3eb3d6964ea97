"""An oracle of policies: those that are shipped never fail, and their folds know what is there.

What a fold has received is compared with the single asks and allocations of its partition, after
each message. Which jobs a gang makes depends on how its leaf admits gangs, so of gangs only those
are looked at that a fold knows and the partition does not.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from yunikorn_actors.config import GangAdmission
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.swarm.failing_policies import NAMES
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import (
    CONTEXT,
    SCHEDULER,
    Delivery,
)
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.conservative import Conservative
from yunikorn_actors.policies.fair_decay import FairDecay
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import SHIPPED
from yunikorn_actors.state.partition import PartitionState


class ShippedPolicies(Oracle):
    receivers: Final = frozenset({CONTEXT, SCHEDULER})

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
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


def _fail(delivery: Delivery, faults: Iterable[str]) -> None:
    found = tuple(faults)
    if found:
        where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
        raise InvariantViolation(f"{where}: " + "; ".join(found))


def _failed(planner: Planner) -> Iterator[str]:
    for path, (name, what) in planner.model.deciders.failed.items():
        if name in SHIPPED:
            yield f"the policy of {path or 'nodes'} has failed: {what}"


def _folds(state: PartitionState) -> Iterator[str]:
    folds = state.folds
    assert isinstance(folds, Folds)
    for path, (name, what) in folds.failed.items():
        if name not in NAMES:
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
