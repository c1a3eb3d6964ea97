"""Reservations: made by proposal, dropped by every event that ends their reason.

A node is kept for one ask that waits, for several that can run nowhere else, or for several to
which room on its way there was promised. An ask that can run nowhere else displaces those that
could. What is dropped is dropped in the handler of what ended it, so no reservation outlives its
ask, its node or its application, and no earmark the room that it is about (G18). An ask that has a
node kept takes a place among the running applications (G20), so a reservation has to pass the same
gates as an allocation.
"""

from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, report_state
from yunikorn_actors.machines.slices import Steps
from yunikorn_actors.policies.folds import has_gate, is_gated
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, AskSpec, Reservation, WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.device_fit import could_hold, has_devices
from yunikorn_actors.state.eligibility import (
    check_application,
    check_limits,
    check_open,
    check_quotas,
    check_use,
)
from yunikorn_actors.state.gangs import waits_for_gang
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import (
    claimants,
    is_overdrawn,
    is_overpromised,
    is_short_of_victims,
)
from yunikorn_actors.state.proposals import Refusal, Reserve, Unreserve
from yunikorn_actors.state.reserved_nodes import (
    WAIT_NS,
    kept_count,
    kept_for,
    ordinary,
    reservations_max,
    used_up,
)
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, fits_in

NO_HEADROOM = "no headroom for too long"
NO_START = "its application could not start for too long"
_NO_START = frozenset({Refusal.APP_LIMIT, Refusal.STATEAWARE_BUSY})


def check_reserve(
    state: PartitionState, proposal: Reserve, now_ns: int, delay_ns: int
) -> Refusal | None:
    """Say why the node cannot be kept for this ask."""
    if state.suspended:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None or not _is_wanted(ask, proposal):
        return Refusal.ASK_GONE
    # The gates of an allocation, all but the room on the node.
    refusal = (
        check_application(state, app, ask)
        or check_quotas(state, app, ask.spec)
        or check_limits(app, ask.spec.resource)
    )
    if refusal is not None:
        return refusal
    node = state.nodes.get(proposal.node_id)
    if node is None:
        return Refusal.NODE_GONE
    # The empty node has to be large enough: a node does not grow by waiting.
    if not ask.spec.may_run_on(node.id) or not could_hold(node, ask.spec):
        return Refusal.NODE_FULL
    # Neither the delay nor the bound: it can run nowhere else, so nothing is lost by keeping it.
    if ask.spec.required_node:
        return check_open(node, ask.spec)
    # Too young: it may be placed on another node before it needs this one. With a gate on its leaf
    # nobody knows when it may start.
    if ask.created_ns + delay_ns >= now_ns or is_gated(state, app, ask):
        return Refusal.RESERVATION_LIMIT
    # Only a share of the nodes, or the cluster freezes.
    kept = kept_count(state.nodes.values())
    is_too_many = kept >= reservations_max(state)
    return check_open(node, ask.spec) or (Refusal.RESERVATION_LIMIT if is_too_many else None)


def _is_wanted(ask: Ask, proposal: Reserve) -> bool:
    """Whether a repeat waits without a node, and this node is not kept for the ask yet."""
    if ask.sequence != proposal.sequence or proposal.node_id in ask.reserved:
        return False
    return len(ask.reserved) < ask.remaining


def reserve(unit: UnitOfWork, proposal: Reserve) -> Refusal | None:
    refusal = check_reserve(unit.state, proposal, unit.now_ns, unit.settings.reservation_delay_ns)
    if refusal is not None:
        return refusal
    app = unit.state.applications[proposal.application_id]
    ask = app.asks[proposal.key]
    required = bool(ask.spec.required_node)
    # The others go first: no node is ever kept for one that must have it and one that could run
    # elsewhere.
    if required:
        displace(unit, unit.state.nodes[proposal.node_id])
    report_state(unit, ask, WaitingState.RESERVED, f"reserved on node {proposal.node_id}")
    unit.record(
        f.ReservationMade(
            application_id=app.id,
            key=proposal.key,
            node_id=proposal.node_id,
            required=required,
            resource=ask.spec.resource,
            at_ns=unit.now_ns,
            proposal_id=proposal.proposal_id,
        )
    )
    return None


def keep_for(unit: UnitOfWork, app: Application, ask: Ask, node: Node) -> None:
    """Promise coming room to an ask, beside other promises; reservations that wait give way."""
    # Copied: dropping takes entries out.
    for item in tuple(node.reservations.values()):
        if item.is_ordinary:
            waiting = unit.state.applications[item.application_id]
            reason = "its room is promised to another ask"
            # An ordinary reservation closes the node, and a promise has to be usable by its ask.
            _drop(unit, waiting.asks[item.key], node.id, reason)
    if len(ask.reserved) >= ask.remaining:
        # One of them only waits, or each repeat would have an earmark: then it gets no other.
        given_up = next(ordinary(unit.state, ask))
        _drop(unit, ask, given_up, "room on another node is promised to it")
    reason = f"room that comes free on node {node.id} is promised to it"
    report_state(unit, ask, WaitingState.RESERVED, reason)
    unit.record(
        f.ReservationMade(
            application_id=app.id,
            key=ask.spec.key,
            node_id=node.id,
            required=False,
            resource=ask.spec.resource,
            by_preemption=True,
            at_ns=unit.now_ns,
        )
    )


def check_unreserve(state: PartitionState, proposal: Unreserve, now_ns: int) -> Refusal | None:
    """Say why the reservation stays: only one that is old and of no use now is given up."""
    if state.suspended:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None or ask.sequence != proposal.sequence:
        return Refusal.RESERVATION_GONE
    if proposal.node_id not in ask.reserved:
        return Refusal.RESERVATION_GONE
    kept = kept_for(state, ask, proposal.node_id)
    # Younger than its wait, or of use by now: what the planner saw has changed.
    if now_ns < kept.made_ns + WAIT_NS or check_use(state, app, ask, kept) is None:
        return Refusal.RESERVATION_GONE
    return None


def unreserve(unit: UnitOfWork, proposal: Unreserve) -> Refusal | None:
    state = unit.state
    refusal = check_unreserve(state, proposal, unit.now_ns)
    if refusal is not None:
        return refusal
    app = state.applications[proposal.application_id]
    ask = app.asks[proposal.key]
    # Read before the drop, by which the reason goes.
    useless = check_use(state, app, ask, kept_for(state, ask, proposal.node_id))
    reason = NO_START if useless in _NO_START else NO_HEADROOM
    for left in reversed(range(ask.reserved.count(proposal.node_id))):
        # The last one resolves the proposal: until then the planner counts all of them as on their
        # way.
        resolves = 0 if left else proposal.proposal_id
        _drop(unit, ask, proposal.node_id, reason, resolves)
    return None


def displace(unit: UnitOfWork, node: Node) -> None:
    """An ask that requires this node comes before those that could run elsewhere (R-072)."""
    drop_of_node(unit, node, "a required-node ask needs the node")


def drop_of_node(
    unit: UnitOfWork, node: Node, reason: str, *, spares_promises: bool = False
) -> None:
    """Drop reservations of asks that could run elsewhere; or only those without victims."""
    for item in tuple(node.reservations.values()):
        # Asks that require the node keep their reservations. Earmarks go with the ordinary ones,
        # unless promises are spared.
        if item.is_ordinary or not (item.required or spares_promises):
            drop_all(unit, item, reason)


def drop_of_size(unit: UnitOfWork, node: Node, capacity: Resource) -> None:
    """A node does not grow by releases: an ask larger than the node would wait in vain."""
    for item in tuple(node.reservations.values()):
        ask = unit.state.applications[item.application_id].asks[item.key]
        if not fits_in(ask.spec.resource, capacity) or not has_devices(node, ask.spec):
            drop_all(unit, item, "the node is too small")


def drop_overpromised(unit: UnitOfWork, node: Node) -> None:
    """Room was taken here by force: end the earmarks that do not fit any more, the last first."""
    # From the end: those that were promised first keep their room.
    while node.reservations and is_overpromised(node):
        item = tuple(node.reservations.values())[-1]
        app = unit.state.applications[item.application_id]
        _drop(unit, app.asks[item.key], node.id, "its room was taken")
    # Of asks that require the node only one that has something to lose; it makes another at once.
    # A loop, as each drop frees what may be enough for the rest.
    while is_overdrawn(node) or is_short_of_victims(unit.state, node):
        application_id, key = claimants(node)[-1]
        ask = unit.state.applications[application_id].asks[key]
        _drop(unit, ask, node.id, "its room was taken")


def drop_barred(unit: UnitOfWork) -> Steps:
    """The leaf may have begun to hold gangs, or has a gate: its asks cannot use a node then."""
    # Nearly always there is no reservation anywhere, and a reload is long enough.
    if unit.state.reservation_count:
        for app in tuple(unit.state.applications.values()):
            keeps_none = has_gate(unit.state, app.queue)
            # The gate of a policy may have come with the configuration: an ask that it holds back
            # cannot use a node.
            if keeps_none:
                for ask in app.asks.values():
                    if ask.reserved and is_gated(unit.state, app, ask):
                        drop_of_ask(unit, ask, "its leaf has a gate")
            if app.task_groups:
                drop_barred_of(unit, app)
            if app.task_groups or keeps_none:
                yield 1


def drop_barred_of(unit: UnitOfWork, app: Application) -> None:
    """An ask that has to wait for its gang now cannot use a reserved node (R-073)."""
    if not unit.state.reservation_count:
        return
    for ask in app.asks.values():
        if ask.reserved and waits_for_gang(app, ask.spec):
            drop_of_ask(unit, ask, "it has to wait for its gang")


def drop_of_ask(unit: UnitOfWork, ask: Ask, reason: str) -> None:
    # `reserved` is a tuple: dropping replaces it and does not change the one that is walked here.
    for node_id in ask.reserved:
        _drop(unit, ask, node_id, reason)


def drop_outdated(unit: UnitOfWork, ask: Ask, spec: AskSpec) -> None:
    """End the reservations that an ask has no use for once it is sent again as `spec`.

    A reservation that only waits was made for the former wish; any other ends if its grounds have
    changed. The room that victims made stays the ask's own: it is the same ask.
    """
    for node_id in ask.reserved:
        kept = kept_for(unit.state, ask, node_id)
        fits = could_hold(unit.state.nodes[node_id], spec)
        if kept.is_ordinary or not fits or _grounds(ask.spec) != _grounds(spec):
            _drop(unit, ask, node_id, "the ask was sent again")
    # Repeats that are no longer wanted need no node; the oldest reservations stay.
    for node_id in ask.reserved[spec.max_allocations - ask.taken - ask.parked :]:
        _drop(unit, ask, node_id, "the ask was sent again with fewer repeats")


def _grounds(spec: AskSpec) -> tuple[str, bool, str, bool]:
    """Return what of an ask decides whether, and where, victims may make room for it."""
    return spec.required_node, spec.placeholder, spec.task_group, spec.allow_preempt_other


def drop_outgrown(unit: UnitOfWork, ask: Ask) -> None:
    """An ask that has become larger gives its own earmarks up where the room does not suffice."""
    for node_id in ask.reserved:
        # Larger in the new size only: the fact has resized all of them.
        if is_overpromised(unit.state.nodes[node_id]):
            _drop(unit, ask, node_id, "the ask was sent again and the room does not suffice")


def drop_used_reservation(unit: UnitOfWork, ask: Ask, node_id: str) -> None:
    """A repeat is about to be placed: drop its reservation, on this node or another."""
    kept = used_up(unit.state, ask, node_id)
    if kept is not None:
        reason = "allocated" if kept == node_id else "allocated on another node"
        _drop(unit, ask, kept, reason)


def drop_all(unit: UnitOfWork, item: Reservation, reason: str) -> None:
    app = unit.state.applications[item.application_id]
    # One fact a repeat: each of them counts by itself in state and planner.
    for _ in range(item.repeats):
        _drop(unit, app.asks[item.key], item.node_id, reason)


def _drop(
    unit: UnitOfWork, ask: Ask, node_id: str, reason: str, proposal_id: int = NO_PROPOSAL
) -> None:
    unit.record(
        f.ReservationDropped(
            application_id=ask.spec.application_id,
            key=ask.spec.key,
            node_id=node_id,
            reason=reason,
            resource=ask.spec.resource,
            at_ns=unit.now_ns,
            proposal_id=proposal_id,
        )
    )
