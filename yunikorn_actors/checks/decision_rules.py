"""Rules of each decision, at the moment in which it is recorded (G22, G23).

Derived from the smallest parts of the state right before, not by the checks that let the decision
pass. What a resource manager reports is no decision: it runs already, and is charged by force.
"""

from collections.abc import Callable, Container, Iterator
from typing import Any

from yunikorn_actors.checks.preemption_decisions import against_the_rules
from yunikorn_actors.checks.state_invariants import is_kept_for
from yunikorn_actors.config import GangAdmission
from yunikorn_actors.config.names import WILDCARD
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, AskSpec
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    SCHEDULABLE,
    Application,
    ApplicationState,
)
from yunikorn_actors.state.device_fit import parts_for
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.state.queues import Queue, QueueState
from yunikorn_actors.state.reserved_nodes import RESERVED_NODES_MIN
from yunikorn_actors.values.devices import WHOLE
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, add, charge, fits_in
from yunikorn_actors.values.tags import GPU


def wrongs(state: PartitionState, fact: f.Fact, had_place: Container[str]) -> list[str]:
    """Return one line for each rule that the fact breaks, which the state is about to apply.

    `had_place` names the applications that lost a reservation in the same handler.
    """
    rule = _RULES.get(type(fact))
    found = () if rule is None else rule(state, fact, had_place)
    return [f"{line} ({type(fact).__name__} {_about(fact)})" for line in found]


def _about(fact: f.Fact) -> str:
    key, id_ = getattr(fact, "key", ""), getattr(fact, "application_id", "")
    return " of ".join(filter(None, (key, id_))) or "of " + getattr(fact, "node_id", "")


Decision = f.AllocationCommitted | f.ReservationMade | f.AskParked


def _allocated(
    state: PartitionState, fact: f.AllocationCommitted, had_place: Container[str]
) -> Iterator[str]:
    app = state.applications[fact.application_id]
    if app.asks[fact.key].spec.required_node:
        yield from _beside_those_that_wait(state.nodes[fact.node_id])
    # Reported as running: it is no decision, and may break every bound.
    if fact.proposal_id == NO_PROPOSAL:
        return
    yield from _for_the_dead(state, fact)
    yield from overfills(state, app, app.asks[fact.key], had_place)
    yield from _without_room(state, fact)
    yield from _on_a_kept_node(state, fact, had_place)
    yield from before_its_gang(app, app.asks[fact.key])


def _beside_those_that_wait(node: Node) -> Iterator[str]:
    """An ask that requires its node ends the reservations of those that could run elsewhere."""
    if any(not kept.required for kept in node.reservations.values()):
        yield f"G18: node {node.id} stays kept for an ask that does not require it"


def _reserved(
    state: PartitionState, fact: f.ReservationMade, had_place: Container[str]
) -> Iterator[str]:
    yield from _for_the_dead(state, fact)
    yield from _too_many(state, state.applications[fact.application_id], had_place)
    if not fact.required and not fact.by_preemption:
        percent = state.root.properties.reservation_max_nodes_percent
        schedulable = [node for node in state.nodes.values() if node.is_schedulable]
        kept = [node for node in state.nodes.values() if _only_waits(node)]
        if len(kept) >= max(RESERVED_NODES_MIN, len(schedulable) * percent // 100):
            yield f"G18: {len(kept)} nodes are kept for asks that only wait"


def _only_waits(node: Node) -> bool:
    return any(not it.required and it.earmark is None for it in node.reservations.values())


def _parked(state: PartitionState, fact: f.AskParked, _: Container[str]) -> Iterator[str]:
    yield from _for_the_dead(state, fact)
    if fact.crosses:
        yield from _without_room(state, fact)
    yield from of_a_part_of_a_gang(state.applications[fact.application_id])


def _admitted(state: PartitionState, fact: f.GangAdmitted, _: Container[str]) -> Iterator[str]:
    app = state.applications[fact.application_id]
    if fact.claims:
        guaranteed = app.queue.spec.guaranteed or {}
        used, wanted = _will_use(state, app.queue), _still_claimed(app)
        yield from _above(f"the guarantee of {app.queue.path}", guaranteed, used, wanted)
        return
    for name, most, used in committed(state, app):
        yield from _above(name, most, used, unplaced(app))


def _for_the_dead(state: PartitionState, fact: Decision) -> Iterator[str]:
    app = state.applications[fact.application_id]
    spec = app.asks[fact.key].spec
    node = state.nodes.get(fact.node_id)
    if state.suspended:
        yield "G22: nothing is decided while the resource manager is away"
    if state.long_work is not None:
        yield f"G22: nothing is decided while this is being done: {state.long_work.text}"
    if app.state not in SCHEDULABLE:
        yield f"G22: its application is {app.state.value}"
    if node is None:
        yield f"G22: node {fact.node_id} is not registered"
    elif node.awaited and not _swaps_in_place(fact):
        yield f"G22: node {fact.node_id} is used, and nobody has reported it since the restart"
    elif not (node.is_schedulable or _may_be_drained(fact, spec)):
        yield f"G22: node {fact.node_id} takes no work"
    if spec.required_node not in {"", fact.node_id}:
        yield f"G22: the ask requires node {spec.required_node}"


def _may_be_drained(fact: Decision, spec: AskSpec) -> bool:
    """A required node is meant; a swap in place takes no more room."""
    return spec.required_node == fact.node_id or _swaps_in_place(fact)


def _swaps_in_place(fact: Decision) -> bool:
    return isinstance(fact, f.AskParked) and not fact.crosses


def overfills(
    state: PartitionState, app: Application, ask: Ask, had_place: Container[str] = ()
) -> Iterator[str]:
    """Yield the bounds of queues, users and groups that one more repeat of the ask would break."""
    for queue in app.queue.lineage:
        most = queue.spec.max or {} if queue.parent is not None else state.capacity
        # The size of the cluster is no bound for an ask that requires its node.
        if queue.parent is not None or not ask.spec.required_node:
            yield from _above(queue.path, most, queue.allocated, ask.spec.resource)
    for limit in limits_of(app.queue, app.spec.user, app.group):
        used = state.usage_of(limit).amounts
        name = f"{limit.owner} in {limit.path}"
        yield from _above(name, limit.max_resources or {}, used, ask.spec.resource)
    yield from _too_many(state, app, had_place)


def _above(name: str, most: Resource, used: Resource, more: Resource) -> Iterator[str]:
    for kind, quantity in more.items():
        if quantity > 0 and kind in most and used.get(kind, 0) + quantity > most[kind]:
            yield f"G23: {name} gets above {most[kind]} of {kind}"


def _without_room(
    state: PartitionState, fact: f.AllocationCommitted | f.AskParked
) -> Iterator[str]:
    node = state.nodes.get(fact.node_id)
    if node is None:
        return
    spec = state.applications[fact.application_id].asks[fact.key].spec
    if not fits_in(fact.resource, node.available):
        yield f"G23: node {node.id} has no room for it"
    elif not fits_in(fact.resource, room_for(node, spec, node.available)):
        yield f"G18: it takes room of node {node.id} that victims of another ask made"
    if fact.resource.get(GPU, 0) > 0 and (node.parts is not None or spec.models):
        yield from _without_devices(node, spec, fact)


def is_wanted_model(node: Node, spec: AskSpec) -> bool:
    return not spec.models or node.model in spec.models


def _without_devices(
    node: Node, spec: AskSpec, fact: f.AllocationCommitted | f.AskParked
) -> Iterator[str]:
    """A share comes from one device, whole ones are idle, and the model is one that will do."""
    if not is_wanted_model(node, spec):
        yield f"G23: devices of node {node.id} are of model {node.model!r}, not of {spec.models}"
    if node.parts is None:
        return
    # A share has one device; whole ones have as many as there are.
    amount, devices = fact.resource[GPU], fact.devices
    number, each = max(1, amount // WHOLE), amount // max(1, len(devices))
    if len(set(devices)) != number or each > WHOLE or each * len(devices) != amount:
        yield f"G23: {amount} of {GPU} is not on devices {devices}"
    elif any(device >= len(node.parts) or node.parts[device] < each for device in devices):
        yield f"G23: devices {devices} of node {node.id} have not so much free: {node.parts}"
    else:
        kept = parts_for(node, spec, node.parts)
        if any(kept[device] < each for device in devices):
            yield f"G18: it takes devices of node {node.id} that victims of another ask left"


def _on_a_kept_node(
    state: PartitionState, fact: f.AllocationCommitted, had_place: Container[str]
) -> Iterator[str]:
    """Its own reservation ends right before it is placed."""
    node = state.nodes.get(fact.node_id)
    spec = state.applications[fact.application_id].asks[fact.key].spec
    if node is None or not node.reservations or spec.required_node:
        return
    its_own = (fact.application_id, fact.key) in node.reservations
    if not its_own and fact.application_id not in had_place:
        yield f"G18: node {node.id} is kept for another"


# -- what comes and what ends


def _asked_back(
    state: PartitionState, fact: f.ReleaseRequested, _: Container[str]
) -> Iterator[str]:
    allocation = state.applications[fact.application_id].allocations[fact.uuid]
    if allocation.releasing is not None:
        yield f"G13: it was asked back before, as {allocation.releasing.name}"


def _moved(
    state: PartitionState, fact: f.ApplicationStateChanged, _: Container[str]
) -> Iterator[str]:
    """Only the end of work completes an application that holds placeholders (R-029)."""
    app = state.applications.get(fact.application_id)
    if app is None or fact.state is not ApplicationState.COMPLETING:
        return
    if not app.started_ns and any(it.releasing is None for it in app.allocations.values()):
        yield "G21: it completes with placeholders, and has never run"


def _asked(state: PartitionState, fact: f.AskAdded, _: Container[str]) -> Iterator[str]:
    app = state.applications[fact.spec.application_id]
    if app.state is ApplicationState.FAILING:
        yield f"G21: {app.id} is Failing, and asks for {fact.spec.key}"


def _added(state: PartitionState, fact: f.ApplicationAdded, _: Container[str]) -> Iterator[str]:
    queue = state.queues[fact.queue]
    if queue.state is QueueState.DRAINING or not queue.is_leaf:
        yield f"G28: queue {queue.path} takes no applications"


def _linked(state: PartitionState, fact: f.ApplicationLinked, _: Container[str]) -> Iterator[str]:
    """The group must be the first, from its queue upwards, that is named and has its user."""
    app = state.applications[fact.application_id]
    for level in app.queue.lineage:
        named = [group for limit in level.spec.limits for group in limit.groups]
        mine = [group for group in named if group in app.spec.groups]
        if mine or WILDCARD in named:
            right = [*mine, WILDCARD][0]
            break
    else:
        # No group named there is his: he counts in none.
        right = ""
    if fact.group not in {"", right}:
        yield f"G24: {app.id} counts in group {fact.group}, expected {right!r}"


# -- places


def _too_many(state: PartitionState, app: Application, had_place: Container[str]) -> Iterator[str]:
    """An application that holds something, or just had a reservation, needs no other place."""
    # It has a place already, or had one a moment ago.
    if app.state is not ApplicationState.ACCEPTED or app.id in had_place or is_kept_for(app):
        return
    if not app.allocations:
        for queue in app.queue.lineage:
            most = queue.spec.max_applications
            if most and sum(_counts(other) for other in _below(state, queue, app)) >= most:
                yield f"G23: {queue.path} gets above {most} applications"
    for limit in limits_of(app.queue, app.spec.user, app.group):
        running = state.usage_of(limit).running
        others = [
            other
            for other in _below(state, state.queues[limit.path], app)
            if (other.group if limit.of_group else other.spec.user) == limit.owner
        ]
        count = sum(other.serial in running or is_kept_for(other) for other in others)
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
    # Accepted and Resuming count only by what they hold.
    by_holding = app.state in {ApplicationState.ACCEPTED, ApplicationState.RESUMING}
    return by_holding and (bool(app.allocations) or is_kept_for(app))


_RULES: dict[type, Callable[[PartitionState, Any, Container[str]], Iterator[str]]] = {
    f.AllocationCommitted: _allocated,
    f.ReservationMade: _reserved,
    f.AskParked: _parked,
    f.GangAdmitted: _admitted,
    f.ReleaseRequested: _asked_back,
    f.PreemptionDecided: against_the_rules,
    f.ApplicationAdded: _added,
    f.ApplicationLinked: _linked,
    f.ApplicationStateChanged: _moved,
    f.AskAdded: _asked,
}


def before_its_gang(app: Application, ask: Ask) -> Iterator[str]:
    """Yield why an ask of this application may not be placed plainly."""
    spec = ask.spec
    if spec.placeholder:
        holds = app.queue.properties.gang_admission is GangAdmission.HOLD
        if holds and not app.is_admitted and any(unplaced(app).values()):
            yield "G23: its gang is not admitted"
        return
    yield from of_a_part_of_a_gang(app)
    for item in app.allocations.values():
        if item.spec.placeholder and item.spec.task_group == spec.task_group:
            yield f"G11: placeholder {item.spec.key} stands, and is to be replaced by it"


def of_a_part_of_a_gang(app: Application) -> Iterator[str]:
    """Yield the placeholders that still wait: no member comes before them."""
    for ask in app.asks.values():
        if ask.spec.placeholder and ask.remaining:
            yield f"G11: placeholder {ask.spec.key} of its gang still waits"


def _will_use(state: PartitionState, leaf: Queue) -> Resource:
    """Return the usage of a leaf without what leaves it, and with what is promised to it."""
    used = dict(leaf.earmarked)
    for id_ in leaf.applications.values():
        for item in state.applications[id_].allocations.values():
            if not item.comes_free:
                charge(used, item.resource)
    return used


def _still_claimed(app: Application) -> Resource:
    """What the placeholders want that wait, and have no earmark yet."""
    wanted: Resource = {}
    for ask in app.asks.values():
        if ask.spec.placeholder and not ask.spec.required_node:
            size = ask.spec.resource
            charge(wanted, {kind: n * ask.remaining for kind, n in size.items()})
    return wanted


def unplaced(app: Application) -> Resource:
    here, wanted = add(app.placed, app.reported), app.spec.placeholder_ask.items()
    return {kind: max(0, quantity - here.get(kind, 0)) for kind, quantity in wanted}


def _to_come(app: Application) -> Resource:
    waits = any(ask.spec.placeholder and ask.remaining for ask in app.asks.values())
    return unplaced(app) if waits or app.state is ApplicationState.ACCEPTED else {}


def committed(state: PartitionState, app: Application) -> Iterator[tuple[str, Resource, Resource]]:
    """Yield each bound of a gang with what is used there, and is to come of admitted gangs."""
    others = [state.applications[id_] for id_ in state.admitted.values()]
    for queue in app.queue.lineage[:-1]:
        used = dict(queue.allocated)
        for other in others:
            if queue in other.queue.lineage:
                charge(used, _to_come(other))
        yield queue.path, queue.spec.max or {}, used
    for limit in limits_of(app.queue, app.spec.user, app.group):
        used = dict(state.usage_of(limit).amounts)
        for other in others:
            owner = other.group if limit.of_group else other.spec.user
            if owner == limit.owner and state.queues[limit.path] in other.queue.lineage:
                charge(used, _to_come(other))
        yield f"{limit.owner} in {limit.path}", limit.max_resources or {}, used
