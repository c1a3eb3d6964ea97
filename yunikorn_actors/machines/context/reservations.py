"""Reservations: made by proposal, dropped by every event that ends their reason.

A node is kept for one ask, for several that can run nowhere else, or for several to which room on
its way there was promised; an ask that can run nowhere else displaces those that could. What is
dropped is dropped in the handler of what ended it, so no reservation outlives its ask, its node or
its application, and no earmark the room that it is about (G18). Whoever has a node kept takes a
place among the running applications (G20), so a reservation is held to the same gates as an
allocation.
"""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Ask, Reservation, WaitingState
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.eligibility import (
    check_application,
    check_limits,
    check_quotas,
    check_use,
)
from yunikorn_actors.domain.gang import is_held_back
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.preempting import is_overpromised
from yunikorn_actors.domain.proposals import Refusal, Reserve, Unreserve
from yunikorn_actors.domain.reserving import WAIT_NS, last_choice, reservations_max, used_up
from yunikorn_actors.domain.resource import Resource, fits_in
from yunikorn_actors.machines.context.work import Partition, Work

NO_HEADROOM = "no headroom for too long"
NO_START = "its application may not start for too long"
_NO_START = frozenset({Refusal.APP_LIMIT, Refusal.STATEAWARE_BUSY})


def check_reserve(
    state: PartitionState, proposal: Reserve, now_ns: int, delay_ns: int
) -> Refusal | None:
    """Say why the node cannot be kept for this ask."""
    if state.held:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None or not _is_wanted(ask, proposal):
        return Refusal.ASK_GONE
    refusal = (
        check_application(state, app, ask)
        or check_quotas(state, app, ask.spec)
        or check_limits(state, app, ask.spec.resource)
    )
    if refusal is not None:
        return refusal
    node = state.nodes.get(proposal.node_id)
    if node is None:
        return Refusal.NODE_GONE
    if ask.spec.required_node not in {"", node.id} or not fits_in(ask.spec.resource, node.capacity):
        return Refusal.NODE_FULL
    if ask.spec.required_node:
        return None
    if ask.created_ns + delay_ns >= now_ns:
        return Refusal.RESERVATION_LIMIT
    return _check_ordinary(state, node)


def _is_wanted(ask: Ask, proposal: Reserve) -> bool:
    """One node for each repeat that waits, and none twice."""
    if ask.sequence != proposal.sequence or proposal.node_id in ask.reserved:
        return False
    return len(ask.reserved) < ask.remaining


def _check_ordinary(state: PartitionState, node: Node) -> Refusal | None:
    if not node.is_schedulable:
        return Refusal.NODE_DRAINING
    if node.reservations:
        return Refusal.NODE_RESERVED
    kept = sum(
        1
        for other in state.nodes.values()
        if any(item.is_ordinary for item in other.reservations.values())
    )
    return Refusal.RESERVATION_LIMIT if kept >= reservations_max(state) else None


def reserve(work: Work, partition: Partition, proposal: Reserve) -> Refusal | None:
    refusal = check_reserve(
        partition.state, proposal, work.now_ns, work.settings.reservation_delay_ns
    )
    if refusal is not None:
        return refusal
    app = partition.state.applications[proposal.application_id]
    ask = app.asks[proposal.key]
    required = bool(ask.spec.required_node)
    if required:
        displace(work, partition, partition.state.nodes[proposal.node_id])
    if partition.reports and ask.told is not WaitingState.RESERVED:
        work.tell_state(ask.spec, WaitingState.RESERVED, f"reserved on node {proposal.node_id}")
    work.record(
        partition,
        f.ReservationMade(
            application_id=app.id,
            key=proposal.key,
            node_id=proposal.node_id,
            required=required,
            resource=ask.spec.resource,
            at_ns=work.now_ns,
            proposal_id=proposal.proposal_id,
        ),
    )
    return None


def keep_for(work: Work, partition: Partition, app: Application, ask: Ask, node: Node) -> None:
    """Promise coming room to an ask, beside other promises; reservations that wait give way."""
    for item in tuple(node.reservations.values()):
        if item.is_ordinary:
            waiting = partition.state.applications[item.application_id]
            reason = "others have to go for another ask"
            _drop(work, partition, waiting, waiting.asks[item.key], node.id, reason)
    if len(ask.reserved) >= ask.remaining:
        given_up = last_choice(partition.state, ask)
        _drop(work, partition, app, ask, given_up, "room is made elsewhere")
    if partition.reports and ask.told is not WaitingState.RESERVED:
        work.tell_state(ask.spec, WaitingState.RESERVED, f"room is made on node {node.id}")
    work.record(
        partition,
        f.ReservationMade(
            application_id=app.id,
            key=ask.spec.key,
            node_id=node.id,
            required=False,
            resource=ask.spec.resource,
            by_preemption=True,
            at_ns=work.now_ns,
        ),
    )


def check_unreserve(state: PartitionState, proposal: Unreserve, now_ns: int) -> Refusal | None:
    """Say why the node stays kept: only what is old and of no use now is given up."""
    if state.held:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None or ask.sequence != proposal.sequence:
        return Refusal.RESERVATION_GONE
    if proposal.node_id not in ask.reserved:
        return Refusal.RESERVATION_GONE
    kept = _kept_for(state, ask, proposal.node_id)
    if now_ns < kept.made_ns + WAIT_NS or check_use(state, app, ask, kept) is None:
        return Refusal.RESERVATION_GONE
    return None


def unreserve(work: Work, partition: Partition, proposal: Unreserve) -> Refusal | None:
    state = partition.state
    refusal = check_unreserve(state, proposal, work.now_ns)
    if refusal is not None:
        return refusal
    app = state.applications[proposal.application_id]
    ask = app.asks[proposal.key]
    useless = check_use(state, app, ask, _kept_for(state, ask, proposal.node_id))
    reason = NO_START if useless in _NO_START else NO_HEADROOM
    for left in reversed(range(ask.reserved.count(proposal.node_id))):
        settles = 0 if left else proposal.proposal_id
        _drop(work, partition, app, ask, proposal.node_id, reason, settles)
    return None


def displace(work: Work, partition: Partition, node: Node) -> None:
    """An ask that can run here alone goes before those that could run elsewhere (R-072)."""
    drop_of_node(work, partition, node, "a required-node ask needs the node", required_too=False)


def drop_of_node(
    work: Work, partition: Partition, node: Node, reason: str, *, required_too: bool
) -> None:
    for item in tuple(node.reservations.values()):
        if required_too or not item.required:
            _drop_all(work, partition, item, reason)


def drop_of_size(work: Work, partition: Partition, node: Node, capacity: Resource) -> None:
    """A node does not grow by releases: an ask larger than the node would wait in vain."""
    for item in tuple(node.reservations.values()):
        ask = partition.state.applications[item.application_id].asks[item.key]
        if not fits_in(ask.spec.resource, capacity):
            _drop_all(work, partition, item, "the node is too small")


def drop_overpromised(work: Work, partition: Partition, node: Node) -> None:
    """Room was taken here by force: earmarks for which too little is left go, the last first."""
    while node.reservations and is_overpromised(node):
        item = tuple(node.reservations.values())[-1]
        app = partition.state.applications[item.application_id]
        _drop(work, partition, app, app.asks[item.key], node.id, "its room was taken")


def drop_barred(work: Work, partition: Partition) -> None:
    """A leaf may hold gangs from now on, and they have no use for a node until admitted."""
    if partition.state.reservation_count:
        for app in partition.state.applications.values():
            if app.task_groups:
                drop_barred_of(work, partition, app)


def drop_barred_of(work: Work, partition: Partition, app: Application) -> None:
    """An ask that its gang holds back since has no use for a node (R-073)."""
    if not partition.state.reservation_count:
        return
    for ask in app.asks.values():
        if ask.reserved and is_held_back(app, ask.spec):
            drop_of_ask(work, partition, app, ask, "its gang comes first")


def drop_of_ask(work: Work, partition: Partition, app: Application, ask: Ask, reason: str) -> None:
    for node_id in ask.reserved:
        _drop(work, partition, app, ask, node_id, reason)


def own_claim(state: PartitionState, ask: Ask, node_id: str) -> Resource | None:
    """Return what was promised to the repeat that would be placed on this node."""
    if not ask.reserved:
        return None
    kept = used_up(state, ask, node_id)
    if kept is None:
        return None
    return _kept_for(state, ask, kept).claim


def _kept_for(state: PartitionState, ask: Ask, node_id: str) -> Reservation:
    return state.nodes[node_id].reservations[ask.spec.application_id, ask.spec.key]


def settle_reservations(
    work: Work, partition: Partition, app: Application, ask: Ask, node_id: str
) -> None:
    """A repeat is about to be placed: its reservation, here or elsewhere, has served."""
    kept = used_up(partition.state, ask, node_id)
    if kept is not None:
        reason = "allocated" if kept == node_id else "allocated on another node"
        _drop(work, partition, app, ask, kept, reason)


def _drop_all(work: Work, partition: Partition, item: Reservation, reason: str) -> None:
    app = partition.state.applications[item.application_id]
    for _ in range(item.repeats):
        _drop(work, partition, app, app.asks[item.key], item.node_id, reason)


def _drop(
    work: Work,
    partition: Partition,
    app: Application,
    ask: Ask,
    node_id: str,
    reason: str,
    proposal_id: int = 0,
) -> None:
    work.record(
        partition,
        f.ReservationDropped(
            application_id=app.id,
            key=ask.spec.key,
            node_id=node_id,
            reason=reason,
            resource=ask.spec.resource,
            at_ns=work.now_ns,
            proposal_id=proposal_id,
        ),
    )
