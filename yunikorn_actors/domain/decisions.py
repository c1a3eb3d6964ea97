"""What must hold of each decision at the moment in which it is recorded (G22, G23).

Derived from the smallest parts of the state right before, not by the checks that let the decision
pass. What a resource manager reports is no decision: it runs already, and is charged by force.
"""

from collections.abc import Container, Iterator

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import AskSpec
from yunikorn_actors.domain.application import (
    COUNTS_AS_RUNNING,
    SCHEDULABLE,
    Application,
    ApplicationState,
)
from yunikorn_actors.domain.ids import NO_PROPOSAL
from yunikorn_actors.domain.limits import limits_of
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource


def wrongs(state: PartitionState, fact: f.Fact, had_place: Container[str]) -> list[str]:
    """Return one line for each rule that the fact breaks, which the state is about to apply.

    `had_place` names the applications that lost a reservation in the same handler.
    """
    match fact:
        case f.AllocationCommitted(proposal_id=number) if number != NO_PROPOSAL:
            found = (*_for_the_dead(state, fact), *_beyond(state, fact, had_place))
        case f.ReservationMade():
            found = (*_for_the_dead(state, fact), *_too_many(state, fact, had_place))
        case f.AskParked():
            found = (*_for_the_dead(state, fact),)
        case _:
            return []
    return [f"{line} ({type(fact).__name__} {fact.key} of {fact.application_id})" for line in found]


Decision = f.AllocationCommitted | f.ReservationMade | f.AskParked


def _for_the_dead(state: PartitionState, fact: Decision) -> Iterator[str]:
    app = state.applications[fact.application_id]
    spec = app.asks[fact.key].spec
    node = state.nodes.get(fact.node_id)
    if state.suspended:
        yield "G22: nothing is decided while the resource manager is away"
    if app.state not in SCHEDULABLE:
        yield f"G22: its application is {app.state.value}"
    if node is None:
        yield f"G22: node {fact.node_id} is not registered"
    elif not (node.is_schedulable or _may_be_drained(fact, spec)):
        yield f"G22: node {fact.node_id} takes no work"
    if spec.required_node not in {"", fact.node_id}:
        yield f"G22: the ask requires node {spec.required_node}"


def _may_be_drained(fact: Decision, spec: AskSpec) -> bool:
    """A required node is meant; a swap in place takes no more room."""
    return spec.required_node == fact.node_id or (
        isinstance(fact, f.AskParked) and not fact.crosses
    )


def _beyond(
    state: PartitionState, fact: f.AllocationCommitted, had_place: Container[str]
) -> Iterator[str]:
    app = state.applications[fact.application_id]
    required = bool(app.asks[fact.key].spec.required_node)
    for queue in app.queue.lineage:
        most = queue.spec.max or {} if queue.parent is not None else state.capacity
        if queue.parent is not None or not required:
            yield from _above(queue.path, most, queue.allocated, fact.resource)
    for limit in limits_of(app.queue, app.spec.user, app.group):
        owners = state.groups if limit.of_group else state.users
        used = owners[limit.owner][limit.path].amounts
        name = f"{limit.owner} in {limit.path}"
        yield from _above(name, limit.max_resources or {}, used, fact.resource)
    yield from _too_many(state, fact, had_place)


def _above(name: str, most: Resource, used: Resource, more: Resource) -> Iterator[str]:
    for kind, quantity in more.items():
        if quantity > 0 and kind in most and used.get(kind, 0) + quantity > most[kind]:
            yield f"G23: {name} gets above {most[kind]} of {kind}"


# -- places


def _too_many(
    state: PartitionState,
    fact: f.AllocationCommitted | f.ReservationMade,
    had_place: Container[str],
) -> Iterator[str]:
    """An application that holds something, or just had a reservation, needs no other place."""
    app = state.applications[fact.application_id]
    if app.state is not ApplicationState.ACCEPTED or app.id in had_place or _is_kept_for(app):
        return
    if not app.allocations:
        for queue in app.queue.lineage:
            most = queue.spec.max_applications
            if most and sum(_counts(other) for other in _below(state, queue, app)) >= most:
                yield f"G23: {queue.path} gets above {most} applications"
    for limit in limits_of(app.queue, app.spec.user, app.group):
        owners = state.groups if limit.of_group else state.users
        running = owners[limit.owner][limit.path].running
        others = [
            other
            for other in _below(state, state.queues[limit.path], app)
            if (other.group if limit.of_group else other.spec.user) == limit.owner
        ]
        count = sum(other.serial in running or _is_kept_for(other) for other in others)
        if 0 < limit.max_applications <= count and app.serial not in running:
            most = limit.max_applications
            yield f"G23: {limit.owner} in {limit.path} gets above {most} applications"


def _below(state: PartitionState, queue: Queue, but: Application) -> Iterator[Application]:
    for app in state.applications.values():
        if app is not but and queue in app.queue.lineage:
            yield app


def _counts(app: Application) -> bool:
    if app.state in COUNTS_AS_RUNNING:
        return True
    by_holding = app.state in {ApplicationState.ACCEPTED, ApplicationState.RESUMING}
    return by_holding and (bool(app.allocations) or _is_kept_for(app))


def _is_kept_for(app: Application) -> bool:
    return any(ask.reserved for ask in app.asks.values())
