"""Nodes: what a resource manager does to a node, as a table of actions.

Only a create is answered. An action that makes no sense (on an unknown node, a second drain)
changes nothing and leaves a fact that says so (R-065). A node that leaves goes in this order: out
of scheduling, then its work, then its capacity (R-061).
"""

from collections.abc import Callable

from msgspec.structs import replace

from yunikorn_actors.machines.context.asks import recover, take_wanted
from yunikorn_actors.machines.context.endings import announce_end
from yunikorn_actors.machines.context.gangs import end_allocation, unpark
from yunikorn_actors.machines.context.lifecycle import work_gone
from yunikorn_actors.machines.context.recovery_reports import is_node_back
from yunikorn_actors.machines.context.reservations import (
    drop_all,
    drop_of_node,
    drop_of_size,
    drop_overpromised,
)
from yunikorn_actors.machines.context.unit_of_work import NodeVerdict, UnitOfWork, Work
from yunikorn_actors.machines.machine import Log
from yunikorn_actors.machines.slices import Steps, drawn_off, ends_piece
from yunikorn_actors.messages.rm_events import AdminNodeUpdate, NodeItem
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import flaw_of_devices
from yunikorn_actors.values.resource import has_negative, pruned
from yunikorn_actors.values.tags import NODE_PARTITION, NODE_READY_ATTRIBUTE

_REFUSED = "failure while adding new node, node rejected with error: \n"


def act_on_node(unit: UnitOfWork, item: NodeItem) -> Steps:
    create = item.action in {ActionFromRM.CREATE, ActionFromRM.CREATE_DRAIN}
    if create:
        yield from _create(unit, item)
        return
    yield 1
    node = unit.state.nodes.get(item.node_id)
    if node is None:
        _refuse(unit, item, "unknown node")
        return
    if item.action is ActionFromRM.DECOMISSION:
        yield from remove_node(unit, node)
        return
    action = _ACTIONS.get(item.action)
    if action is None:
        _refuse(unit, item, "unknown action")
        return
    action(unit, item, node)


def _create(unit: UnitOfWork, item: NodeItem) -> Steps:
    yield 1
    # A node may be registered without amounts: it has nothing until an update says more.
    capacity, occupied = item.capacity or {}, item.occupied or {}
    reason = None
    is_back = is_node_back(unit, item.node_id)
    # An awaited node is registered again after a restart: for it a create is the report.
    if item.node_id in unit.state.nodes and not is_back:
        reason = f"node {item.node_id} is registered already: a node id must be unique"
    elif has_negative(capacity) or has_negative(occupied):
        reason = f"node {item.node_id} has a negative amount: report what it has, at least 0"
    elif flaw := flaw_of_devices(item.attributes or {}, capacity):
        # Devices are counted by an attribute, the amount by the capacity: both have to agree before
        # any device is given away.
        reason = f"node {item.node_id}: {flaw}"
    if reason is not None:
        unit.announce(NodeVerdict(item.node_id, _REFUSED + reason))
        return
    attributes = item.attributes or {}
    drained = item.action is ActionFromRM.CREATE_DRAIN
    ready = _readiness(attributes, otherwise=True)
    if is_back:
        node = unit.state.nodes[item.node_id]
        # `_update` leaves alone what is None. A report is complete: what it does not name is none.
        whole = replace(item, capacity=capacity, occupied=occupied, attributes=attributes)
        _update(unit, whole, node)
        _schedule(unit, node, drained=drained, ready=ready, awaited=False)
    else:
        fact = f.NodeAdded(
            node_id=item.node_id,
            capacity=pruned(capacity),
            occupied=pruned(occupied),
            attributes=attributes,
            drained=drained,
            ready=ready,
            at_ns=unit.now_ns,
        )
        _record_size(unit, fact)
    unit.announce(NodeVerdict(item.node_id))
    # The node and its answer before its work, which stands on it.
    for allocation in item.allocations:
        recover(unit, item.node_id, allocation)
        yield 1
    if is_back and item.node_id in unit.state.nodes:
        take_wanted(unit, unit.state.nodes[item.node_id])


def await_node(unit: UnitOfWork, node: Node) -> None:
    """Keep an awaited node out of scheduling until its resource manager reports it."""
    if not node.awaited:
        _schedule(unit, node, drained=node.drained, ready=node.ready, awaited=True)


def _update(unit: UnitOfWork, item: NodeItem, node: Node) -> None:
    # None is "not named"; an empty amount is one of nothing.
    capacity = node.capacity if item.capacity is None else pruned(item.capacity)
    occupied = node.occupied_reported if item.occupied is None else pruned(item.occupied)
    if has_negative(capacity) or has_negative(occupied):
        _refuse(unit, item, "negative amount")
        return
    attributes = node.attributes if item.attributes is None else item.attributes
    if flaw := flaw_of_devices(attributes, capacity):
        _refuse(unit, item, flaw)
        return
    # Equal sizes leave no fact: an update may bring attributes alone, or repeat what is known.
    if (capacity, occupied) != (node.capacity, node.occupied_reported):
        # Reservations that are too large for the new size go while the node still has the old one;
        # what is promised beyond the room that is left shows only afterwards.
        drop_of_size(unit, node, capacity)
        _record_size(
            unit,
            f.NodeResized(
                node_id=node.id,
                old_capacity=node.capacity,
                old_occupied=node.occupied_reported,
                capacity=capacity,
                occupied=occupied,
                at_ns=unit.now_ns,
            ),
        )
        drop_overpromised(unit, node)
    if item.attributes is not None:
        _replace_attributes(unit, node, item.attributes)


def _replace_attributes(unit: UnitOfWork, node: Node, attributes: dict[str, str]) -> None:
    """A node never changes its partition; readiness changes only if the update names it."""
    if NODE_PARTITION in node.attributes:
        attributes = attributes | {NODE_PARTITION: node.attributes[NODE_PARTITION]}
    if attributes != node.attributes:
        unit.record(
            f.NodeAttributesReplaced(node_id=node.id, attributes=attributes, at_ns=unit.now_ns),
        )
        if node.reservations:
            # Other devices, or fewer: what was promised of them may be gone.
            drop_of_size(unit, node, node.capacity)
            drop_overpromised(unit, node)
    # Readiness is an attribute of the interface, and a mark of its own in the state.
    ready = _readiness(attributes, otherwise=node.ready)
    if ready is not node.ready:
        _schedule(unit, node, drained=node.drained, ready=ready)


def _drain(unit: UnitOfWork, item: NodeItem, node: Node) -> None:
    _set_drained(unit, item, node, drained=True)


def _undrain(unit: UnitOfWork, item: NodeItem, node: Node) -> None:
    _set_drained(unit, item, node, drained=False)


def _set_drained(unit: UnitOfWork, item: NodeItem, node: Node, *, drained: bool) -> None:
    reason = set_drained(unit, node, drained=drained)
    if reason:
        _refuse(unit, item, reason)


def set_drained(unit: UnitOfWork, node: Node, *, drained: bool) -> str:
    """Drain a node or end that; return why nothing changes, or the empty text.

    Only work that runs stays on a drained node.
    """
    if node.drained is drained:
        return _VAIN[drained]
    _schedule(unit, node, drained=drained, ready=node.ready)
    return ""


def remove_node(unit: UnitOfWork, node: Node) -> Steps:
    # The work of a node with thousands of allocations ends in slices: nothing new comes to it in
    # between.
    if not node.drained:
        _schedule(unit, node, drained=True, ready=node.ready)
    # Its reservations go with it, everywhere at once.
    for kept in (yield from drawn_off(node.reservations.values())):
        drop_all(unit, kept, "the node is gone")
        yield 1
    # Before the work ends: the end of a placeholder would complete a swap to a node that goes.
    yield from _call_off_swaps(unit, node)
    for allocation in (yield from drawn_off(node.allocations.values())):
        app = unit.state.applications[allocation.spec.application_id]
        # Through `end_allocation`: a placeholder that ends here completes its swap to another node
        #
        end_allocation(unit, app, allocation, TerminationType.UNKNOWN_TERMINATION_TYPE)
        announce_end(unit, allocation, f"Node {node.id} Removed")
        # After the announcement: the end of an allocation is reported before the end of its
        # application.
        work_gone(unit, app, work_ended=not allocation.spec.placeholder)
        yield 1
    # Its capacity last: what ran there is charged until its end, and a cluster smaller than what is
    # charged would be over its own maximum.
    _record_size(unit, f.NodeRemoved(node_id=node.id, at_ns=unit.now_ns))


def _call_off_swaps(unit: UnitOfWork, node: Node) -> Steps:
    """Swaps to this node are called off (R-058, R-059); others end with it (R-060)."""
    reason = f"node {node.id} is gone"
    # To this node from elsewhere, and to this node from a placeholder that stands on it.
    arriving = [(item.application_id, uuid) for uuid, item in node.incoming.items()]
    staying = [(item.spec.application_id, uuid) for uuid, item in node.allocations.items()]
    for number, (application_id, uuid) in enumerate((*arriving, *staying)):
        if ends_piece(number):
            yield 1
        app = unit.state.applications[application_id]
        swap = app.swaps.get(uuid)
        # A swap from here to another node is no business of this loop: it ends with its
        # placeholder.
        if swap is not None and swap.node_id == node.id:
            unpark(unit, app, swap, reason, frees=False)
            # What the placeholder leaves is for this ask now, whichever it was promised to.
            drop_overpromised(unit, unit.state.nodes[app.allocations[uuid].node_id])


def _schedule(
    unit: UnitOfWork, node: Node, *, drained: bool, ready: bool, awaited: bool | None = None
) -> None:
    """Change whether a node takes work; only its own report takes the mark `awaited` off."""
    # Drains and reports of readiness leave the mark alone.
    awaited = node.awaited if awaited is None else awaited
    # Before the fact: a node that takes no work is never kept for an ask that could run elsewhere.
    # Only what victims went for stays until the node is reported, or is gone: else as many would go
    # again.
    takes_none = drained or not ready
    if takes_none or awaited:
        drop_of_node(unit, node, "the node takes no work", spares_promises=not takes_none)
    unit.record(
        f.NodeScheduleChanged(
            node_id=node.id,
            was_drained=node.drained,
            was_ready=node.ready,
            drained=drained,
            ready=ready,
            awaited=awaited,
            at_ns=unit.now_ns,
        )
    )


def _record_size(unit: UnitOfWork, fact: f.NodeAdded | f.NodeResized | f.NodeRemoved) -> None:
    """A change of a node may change the cluster size, which is the maximum of the root queue."""
    # Copied before the fact: books are changed in place.
    capacity = unit.state.capacity
    before = dict(capacity)
    unit.record(fact)
    # A fact of its own, for those who keep no sums: the event publisher has no nodes.
    if capacity != before:
        resized = f.ClusterResized(capacity=dict(capacity), at_ns=unit.now_ns)
        unit.record(resized)


def _readiness(attributes: dict[str, str], *, otherwise: bool) -> bool:
    """A node that is not ready stays so until the value is "true"; others mean nothing."""
    # Other values count as neither: a typing mistake must not open a node.
    words = {"false": False, "true": True}
    return words.get(attributes.get(NODE_READY_ATTRIBUTE, "").lower(), otherwise)


def refuse_stray(work: Work, item: NodeItem) -> None:
    """Refuse an action on a node of a partition that is not there, so no state records it."""
    refusal = _refusal(item, work.now_ns, f"unknown partition {item.partition}")
    work.stray.append(refusal)
    work.wanted.append(_line(item, refusal))


def _refuse(unit: UnitOfWork, item: NodeItem, reason: str) -> None:
    refusal = _refusal(item, unit.now_ns, reason)
    unit.record(refusal)
    unit.want(_line(item, refusal))


def _refusal(item: NodeItem, at_ns: int, reason: str) -> f.NodeActionRefused:
    return f.NodeActionRefused(
        node_id=item.node_id, action=int(item.action), reason=reason, at_ns=at_ns
    )


def _line(item: NodeItem, refusal: f.NodeActionRefused) -> Log:
    """Tell the log as well: the resource manager gets no answer."""
    text = f"action {item.action.name} on node {item.node_id} of {item.partition} refused"
    # Action 0 is what a client sends that has never set the field.
    remedy = "" if item.action else "; set NodeInfo.action"
    return Log(text=f"{text}: {refusal.reason}{remedy}", is_warning=True)


_VAIN = {True: "node is draining already", False: "node is not draining"}
_ACTIONS: dict[ActionFromRM, Callable[[UnitOfWork, NodeItem, Node], None]] = {
    ActionFromRM.UPDATE: _update,
    ActionFromRM.DRAIN_NODE: _drain,
    ActionFromRM.DRAIN_TO_SCHEDULABLE: _undrain,
}


# Acts of an administrator: draining a node by hand, recorded with the name of who did it.
#
# An act takes effect as if the resource manager had asked for it. It leaves a fact with the name
# of the administrator, beside the facts that follow from it, and a line in the log. The node
# still belongs to its resource manager, which may open it again.


def act_on_drained(unit: UnitOfWork, message: AdminNodeUpdate) -> str:
    """Drain a node or end that; return why nothing changes, or the empty text."""
    node = unit.state.nodes.get(message.node_id)
    if node is None:
        return f"no node {message.node_id} is in partition {unit.partition.name}"
    reason = set_drained(unit, node, drained=message.drained)
    if not reason:
        what = f"Node {node.id} {'drained' if message.drained else 'undrained'}"
        record_act(unit, what, message.by, node.id)
        # The fact goes to events and recordings, the line to whoever reads the log of the process
        # alone.
        unit.want(line_of(what, message.by))
    return reason


def record_act(unit: UnitOfWork, what: str, by: str, node_id: str = "") -> None:
    fact = f.AdministratorActed(what=what, by=by, node_id=node_id, at_ns=unit.now_ns)
    unit.record(fact)


def line_of(what: str, by: str) -> Log:
    return Log(text=f"{what} by {by}")
