"""Applying facts to the planner's model; docs/explanation/planning.md says what each one wakes.

`Planner.observe` looks up here what to do after a fact was applied to the state. A fact that
resolves a proposal goes to the owner of the proposal first: what was in flight for it becomes part
of the replica.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast, get_args

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.config.node_order import FAIR, NODE_ORDERS
from yunikorn_actors.planning.model.nodes import NodeView, reported_devices_of
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.preemption.victim_units import is_set_to_go_as_one
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving, ResolvingOne
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import FINISHED, ApplicationState
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.termination import ASKED_BACK, FREES


def resolve(model: Model, open_proposals: OpenProposals, fact: f.Fact) -> None:
    """Give a fact to the owner of each proposal that led to it; charge what nobody has charged."""
    if isinstance(fact, f.AllocationsCommitted):
        others = [
            at for at, id_ in enumerate(fact.proposal_ids) if not open_proposals.resolve(id_, fact)
        ]
        if others:
            _charge_run(model, fact, others)
        return
    resolving = cast(ResolvingOne, fact)
    is_charged = open_proposals.resolve(resolving.proposal_id, resolving)
    if isinstance(fact, f.AllocationCommitted) and not is_charged:
        # Nothing in flight has charged this: it came from the resource manager, or from another
        # planner, which may have failed since.
        _charge(model, fact)


def adopt(model: Model) -> None:
    """Begin with a whole state, from a snapshot; treat everything in it as new."""
    state, tree = model.state, model.tree
    if state.config is not None:
        _sort_nodes(model, state.config)
    # The amounts of the books are those of the truth; nothing is in flight yet.
    for queue in state.queues.values():
        tree.add_queue(queue, state.capacity)
        tree.queues[queue.path].used = dict(queue.allocated)
    # Queues, then nodes, then applications: each of these is filed under what came before it.
    for node in state.nodes.values():
        _see_node(model, node)
        if node.reservations:
            model.reserved_nodes[node.id] = None
    for app in state.applications.values():
        _adopt_application(model, model.applications.see(app))
    model.requeue.everything_is_new()


def _adopt_application(model: Model, view: AppView) -> None:
    app = view.app
    view.run_limit = app.run_limit
    if app.run_limit is not GateKind.NONE:
        model.requeue.run_limit_changed(view)
    for allocation in app.allocations.values():
        # What was asked back already is in a swap, or on its way out.
        if allocation.spec.placeholder and allocation.may_be_released:
            model.gangs.offer(view, allocation)
    for ask in app.asks.values():
        if ask.remaining:
            model.asks.watch(view, (ask,))
            model.shapes.follow_reserved(view.asks[ask.spec.key])
    # After the asks: which of them the gang holds back depends on all of them.
    model.gangs.follow(view)
    model.gangs.recall(view)


# -- configuration and queues


def _on_configured(model: Model, fact: f.PartitionConfigured) -> None:
    _sort_nodes(model, fact.config)
    if model.apps:
        model.requeue.cluster_changed()
    for node_id in model.reserved_nodes:
        # Who may go for an ask that requires it depends on what queues say of their work.
        model.requeue.work_changed(model.nodes.views[node_id])


def _sort_nodes(model: Model, config: PartitionConfig) -> None:
    name = config.node_sort.policy
    model.nodes.own, model.nodes.own_devices = model.deciders.of_nodes(name)
    model.nodes.set_order(NODE_ORDERS.get(name, FAIR), config.node_sort.weights)


def _on_queue_added(model: Model, fact: f.QueueAdded) -> None:
    model.tree.add_queue(model.state.queues[fact.path], model.state.capacity)


def _on_queue_reconfigured(model: Model, fact: f.QueueReconfigured) -> None:
    """Keys of another sort policy do not compare with the old ones, so all leave first."""
    queue = model.tree.queues[fact.path]
    # Of all leaves below: the properties of a queue are inherited.
    apps = [app for app in model.apps.values() if queue in app.leaf.lineage]
    # All leave before the policy is read: a key of the old one would be searched in vain.
    for app in apps:
        model.tree.leave(app)
    model.decide_anew(queue)
    for app in apps:
        # Usage is kept only under an order that reads it, so it is worked out for the new one.
        app.used = model.flights.used_by(app)
        model.applications.assign_limits(app)
        model.gangs.follow(app)
        # What waits for a node may be refused by a quota from now on, and says so then.
        model.requeue.look_into_app(app)
    model.requeue.cluster_changed()
    model.requeue.headroom_changed()


def _on_queue_removed(model: Model, fact: f.QueueRemoved) -> None:
    model.tree.remove_queue(fact.path)


# -- nodes


def _on_node_added(model: Model, fact: f.NodeAdded) -> None:
    _see_node(model, model.state.nodes[fact.node_id])


def _see_node(model: Model, node: Node) -> None:
    view = NodeView(node)
    model.nodes.add(view)
    _resize_node(model, view)


def _on_node_changed(
    model: Model,
    fact: f.NodeResized
    | f.NodeScheduleChanged
    | f.ForeignAllocationPut
    | f.ForeignAllocationRemoved,
) -> None:
    _resize_node(model, model.nodes.views[fact.node_id])


def _on_node_attributes_replaced(model: Model, fact: f.NodeAttributesReplaced) -> None:
    """Planning goes by its devices, and a policy of one's own by all that a node says of itself."""
    view, nodes = model.nodes.views[fact.node_id], model.nodes
    by_all = nodes.own is not None or nodes.own_devices is not None
    if by_all or view.reported != reported_devices_of(view.node):
        _resize_node(model, view)


def _on_node_removed(model: Model, fact: f.NodeRemoved) -> None:
    model.nodes.discard(model.nodes.views[fact.node_id])
    model.requeue.cluster_changed()


def _resize_node(model: Model, view: NodeView) -> None:
    model.amounts.refresh_node(view)
    model.tree.wake_required(view.id)
    model.requeue.cluster_changed()


# -- applications


def _on_application_added(model: Model, fact: f.ApplicationAdded) -> None:
    model.applications.see(model.state.applications[fact.spec.application_id])


def _on_application_linked(model: Model, fact: f.ApplicationLinked) -> None:
    model.link(model.apps[fact.serial])


def _on_application_crowded(model: Model, fact: f.ApplicationCrowded) -> None:
    """Context also records this when an application runs all the same: note what holds now."""
    view = model.apps.get(fact.serial)
    if view is not None and view.run_limit is not fact.crowd:
        view.run_limit = fact.crowd
        model.requeue.run_limit_changed(view)


def _on_application_state_changed(model: Model, fact: f.ApplicationStateChanged) -> None:
    view = model.apps.get(fact.serial)
    if view is None:
        return
    # `recounts` is None where nobody asks for sums: the attribute is all that this costs.
    if model.requeue.recounts is not None:
        model.requeue.waits_changed(view)
    if view.leaf.changed is not None:
        view.leaf.changed[view] = None
    participants = model.participants
    # Let go of what blocked it first: by its new state it may need no place, or never one again.
    if view.blocked_by is not None:
        participants.let_go(view)
    # Running now: it counts by its state, and no longer by what is on its way.
    if view.starting and fact.state is not ApplicationState.ACCEPTED:
        participants.counts_itself(view)
    if view.is_schedulable:
        participants.come_back(view)
    else:
        model.tree.leave(view)
    if fact.state in FINISHED:
        model.applications.forget(view)
    elif view.app.task_groups:
        model.gangs.follow(view)
    # Last, with the tree as it is now: a place may have come free.
    participants.wake_others(view)


def _on_application_removed(model: Model, fact: f.ApplicationRemoved) -> None:
    view = model.apps[fact.serial]
    model.participants.let_go(view)
    model.tree.leave(view)
    model.applications.forget(view)
    model.participants.wake_others(view)


# -- asks


def _on_ask_added(model: Model, fact: f.AskAdded) -> None:
    app = model.state.applications[fact.spec.application_id]
    view = model.apps[app.serial]
    # An older ask makes its application older.
    if view.submitted_ns != app.submitted_ns:
        model.applications.rekey(view)
    model.asks.watch(view, (app.asks[fact.spec.key],))
    if fact.spec.placeholder:
        _placeholders_wait(model, view)


def _on_asks_added(model: Model, fact: f.AsksAdded) -> None:
    app = model.state.applications[fact.application_id]
    view = model.apps[app.serial]
    if view.submitted_ns != app.submitted_ns:
        model.applications.rekey(view)
    model.asks.watch(view, [app.asks[spec.key] for spec in fact.specs])
    if fact.specs[0].placeholder:
        _placeholders_wait(model, view)


def _placeholders_wait(model: Model, view: AppView) -> None:
    model.gangs.follow(view)
    if view.awaiting_gang is not None:
        # It is to be reported that its gang awaits admission.
        model.requeue.gang_may_fit()


def _on_ask_replaced(model: Model, fact: f.AskReplaced) -> None:
    """What is in flight of the old size keeps its amounts until it is resolved."""
    app = model.app_of(fact.spec.application_id)
    view, ask = app.asks.get(fact.spec.key), app.app.asks[fact.spec.key]
    # Known and waiting already: the same view goes on, with another shape.
    if view is not None:
        model.reshape(view, model.shapes.of(fact.spec))
    elif ask.remaining:
        model.asks.watch(app, (ask,))
        model.gangs.follow(app)
    # With fewer repeats the last placeholder may have come.
    model.gangs.waits_for_fewer(app)
    if ask.parked:
        # It has another size, and so has what it holds on other nodes.
        for swap in app.app.swaps.values():
            if swap.key == ask.spec.key and swap.crosses:
                model.amounts.refresh_node(model.nodes.views[swap.node_id])
    if ask.reserved:
        # More or less is kept from others, on the nodes and in the queues.
        for node_id in dict.fromkeys(ask.reserved):
            model.amounts.refresh_node(model.nodes.views[node_id])
        model.amounts.measure_earmarks(app, ask.spec.key)
        model.requeue.resolved()


def _on_ask_removed(model: Model, fact: f.AskRemoved) -> None:
    app = model.app_of(fact.application_id)
    view = app.asks.get(fact.key)
    # Parked or placed repeats live on; the view counts only what waits.
    if view is not None:
        model.asks.unwatch(view)
        model.requeue.amounts_changed(app.leaf)
        if not app.piles:
            model.participants.wake_others(app)
    if app.app.task_groups:
        model.gangs.follow(app)
        model.gangs.waits_for_fewer(app)
        model.requeue.gang_may_fit()


def _on_ask_shortage_changed(model: Model, fact: f.AskShortageChanged) -> None:
    """The rest of the ask may be short again: a plan found that before this fact came."""
    ask = model.ask_of(fact.application_id, fact.key)
    if fact.shortage is GateKind.NONE and ask is not None and ask.open:
        model.requeue.look_into(ask)


# -- allocations


def _charge(model: Model, fact: f.AllocationCommitted) -> None:
    """Placed by the resource manager, or with a size that the proposal did not know."""
    app = model.app_of(fact.application_id)
    is_placeholder = app.app.allocations[fact.uuid].spec.placeholder
    model.amounts.charge(app, fact.node_id, fact.resource, is_placeholder=is_placeholder)
    # Of several repeats in one run the first has settled the ask: it may be forgotten by now.
    ask = app.asks.get(fact.key)
    if ask is not None:
        _resync(model, ask)
    model.applications.rekey(app)
    model.requeue.amounts_changed(app.leaf)


def _resync(model: Model, ask: AskView) -> None:
    """A repeat was placed that nothing here had in flight.

    With fewer repeats to come, what is in flight uses other promises of the ask.
    """
    # The number of repeats decides which promise a decision in flight uses.
    if ask.ask.reserved:
        model.amounts.measure_earmarks(ask.app, ask.ask.spec.key)
    model.asks.resync_or_forget(ask)


def _charge_run(model: Model, fact: f.AllocationsCommitted, places: Sequence[int]) -> None:
    """What `_charge` does, for each of these in a run; shared amounts are written once."""
    apps = [model.app_of(charged.application_id) for charged in fact.charged]
    counts = [0] * len(apps)
    is_placeholder = apps[0].app.allocations[fact.uuids[0]].spec.placeholder
    nodes, resource = model.nodes, fact.resource
    for at in places:
        member = fact.members[at]
        counts[member] += 1
        nodes.take(nodes.views[fact.node_ids[at]], resource)
        ask = apps[member].asks.get(fact.keys[at])
        if ask is not None:
            _resync(model, ask)
    for app, count in zip(apps, counts, strict=True):
        if count:
            together = {kind: count * quantity for kind, quantity in resource.items()}
            model.amounts.use(app, together, is_placeholder=is_placeholder)
            model.applications.rekey(app)
            model.requeue.amounts_changed(app.leaf)


def _on_allocations_committed(model: Model, fact: f.AllocationsCommitted) -> None:
    # An ask of another queue may be entitled to what this one has now.
    model.requeue.allocated()
    if model.reserved_nodes:
        _reserved_room_used(model, fact.node_ids)
    apps = [model.state.applications[charged.application_id] for charged in fact.charged]
    if apps[0].allocations[fact.uuids[0]].spec.placeholder:
        for place, app in enumerate(apps):
            # By application, as the books of a gang are read once for each.
            mine = [uuid for uuid, at in zip(fact.uuids, fact.members, strict=True) if at == place]
            model.gangs.placeholders_came(model.apps[app.serial], mine)


def _reserved_room_used(model: Model, node_ids: Iterable[str]) -> None:
    """An ask that requires a reserved node may have counted on the room that another one has."""
    for node_id in dict.fromkeys(node_ids):
        if node_id in model.reserved_nodes:
            model.requeue.work_changed(model.nodes.views[node_id])


def _on_allocation_committed(model: Model, fact: f.AllocationCommitted) -> None:
    model.requeue.allocated()
    if model.reserved_nodes:
        _reserved_room_used(model, (fact.node_id,))
    app = model.state.applications[fact.application_id]
    if app.allocations[fact.uuid].spec.placeholder:
        model.gangs.placeholders_came(model.apps[app.serial], (fact.uuid,))


def _on_allocation_recovered(model: Model, fact: f.AllocationRecovered) -> None:
    app = model.app_of(fact.spec.application_id)
    spec = fact.spec
    model.amounts.charge(app, fact.node_id, spec.resource, is_placeholder=spec.placeholder)
    model.applications.rekey(app)
    model.requeue.amounts_changed(app.leaf)
    model.requeue.work_changed(model.nodes.views[fact.node_id])
    # Units matter to nobody but asks that require a reserved node.
    if model.reserved_nodes:
        _unit_changed(model, app)
    if fact.spec.placeholder:
        model.gangs.placeholders_came(app, (fact.uuid,))
    elif app.app.reported:
        # Its gang needs less than before.
        model.gangs.follow(app)
        model.requeue.gang_may_fit()


def _on_allocation_resized(model: Model, fact: f.AllocationResized) -> None:
    amounts, app = model.amounts, model.app_of(fact.application_id)
    node = model.nodes.views[fact.node_id]
    # Given back and charged anew, so that it goes through the same marks as an end and a start.
    model.nodes.give_back(node, fact.old_resource)
    is_placeholder = app.app.allocations[fact.uuid].spec.placeholder
    amounts.give_back(app, fact.old_resource, is_placeholder=is_placeholder)
    amounts.charge(app, fact.node_id, fact.resource, is_placeholder=is_placeholder)
    if is_placeholder:
        model.requeue.member_came(app)
    amounts.room_came(node)
    model.requeue.amounts_changed(app.leaf)
    model.requeue.work_changed(node)
    if model.reserved_nodes:
        _unit_changed(model, app)


def _on_allocation_released(model: Model, fact: f.AllocationReleased) -> None:
    node = model.nodes.views[fact.node_id]
    app = model.app_of(fact.application_id)
    model.nodes.give_back(node, fact.resource)
    model.amounts.give_back(app, fact.resource, is_placeholder=fact.placeholder)
    model.amounts.room_came(node)
    model.requeue.amounts_changed(app.leaf)
    # It may have been what kept another one from starting.
    model.participants.wake_others(app)
    if fact.placeholder:
        model.gangs.placeholder_went(app, fact.uuid)
    # A reservation without headroom for an hour is given up: it may have headroom again now.
    if model.reserved_nodes:
        model.requeue.headroom_changed()
        _unit_changed(model, app)
    # The victims of somebody may be gone: an ask that waited for that looks again.
    if fact.type in ASKED_BACK:
        model.requeue.resolved()
    model.requeue.work_changed(node)


def _on_release_requested(model: Model, fact: f.ReleaseRequested) -> None:
    app = model.app_of(fact.application_id)
    model.gangs.withdraw(app, fact.uuid)
    # A swap frees no room until it is over.
    if fact.type in FREES:
        _will_be_free(model, app, fact.uuid)


def _will_be_free(model: Model, app: AppView, uuid: str) -> None:
    """The queue will use less and the node have more room: an ask may be entitled by that."""
    model.requeue.work_changed(model.nodes.views[app.app.allocations[uuid].node_id])
    if model.reserved_nodes:
        _unit_changed(model, app)


def _unit_changed(model: Model, app: AppView) -> None:
    """Look again at the other nodes of an application that goes as one."""
    if is_set_to_go_as_one(app.app):
        for node_id in dict.fromkeys(it.node_id for it in app.app.allocations.values()):
            model.requeue.work_changed(model.nodes.views[node_id])


# -- gangs and swaps


def _on_gang_admitted(model: Model, fact: f.GangAdmitted) -> None:
    model.gangs.follow(model.apps[fact.serial])


def _on_gang_lapsed(model: Model, fact: f.GangLapsed) -> None:
    """Others may use its room, and its place where a leaf starts one application at a time."""
    app = model.apps[fact.serial]
    model.gangs.follow(app)
    model.participants.wake_others(app)


def _on_ask_parked(model: Model, fact: f.AskParked) -> None:
    """The room on another node is the only amount that a swap takes; it leaves its own node."""
    app = model.app_of(fact.application_id)
    if fact.crosses:
        model.nodes.take(model.nodes.views[fact.node_id], fact.resource)
        _will_be_free(model, app, fact.placeholder)
    ask = app.asks[fact.key]
    model.asks.resync(ask)
    # Parked repeats wait no more; nothing else may be left of the ask.
    model.asks.forget_if_done(ask)
    model.participants.wake_others(app)
    model.requeue.amounts_changed(app.leaf)


def _on_ask_unparked(model: Model, fact: f.AskUnparked) -> None:
    app = model.app_of(fact.application_id)
    ask = app.asks.get(fact.key)
    if ask is None:
        model.asks.watch(app, (app.app.asks[fact.key],))
    else:
        model.asks.resync(ask)
        model.requeue.amounts_changed(app.leaf)
    if fact.crosses:
        node = model.nodes.views[fact.node_id]
        model.amounts.free_node(node, fact.resource)
        model.requeue.work_changed(node)
    if fact.frees:
        _will_be_free(model, app, fact.placeholder)


def _on_swap_completed(model: Model, fact: f.SwapCompleted) -> None:
    """The real one is charged before the placeholder is given back: no room opens between."""
    amounts, app = model.amounts, model.app_of(fact.application_id)
    node = model.nodes.views[fact.placeholder_node]
    if fact.is_even:
        # Nobody has more room than before, so nobody is woken for that.
        # Only the fair order sees that a placeholder has become work.
        amounts.use_placeholder(app, fact.resource)
    else:
        # The queue is never below what runs, so no gang and no ask is let in for a moment.
        amounts.use(app, fact.resource, is_placeholder=False)
        amounts.give_back(app, fact.placeholder_resource, is_placeholder=True)
        # To another node the room was taken when the swap began.
        if fact.node_id == fact.placeholder_node:
            model.nodes.take(node, fact.resource)
        amounts.free_node(node, fact.placeholder_resource)
    model.requeue.work_changed(node)
    if model.reserved_nodes:
        _unit_changed(model, app)
    model.gangs.follow(app)
    model.applications.rekey(app)
    model.requeue.amounts_changed(app.leaf)


# -- reservations and preemption


def _on_reservation_made(model: Model, fact: f.ReservationMade) -> None:
    model.reserved_nodes[fact.node_id] = None
    model.amounts.measure_earmarks(model.app_of(fact.application_id), fact.key)
    ask = model.ask_of(fact.application_id, fact.key)
    if ask is not None:
        model.shapes.follow_reserved(ask)
    model.amounts.refresh_node(model.nodes.views[fact.node_id])


def _on_reservation_dropped(model: Model, fact: f.ReservationDropped) -> None:
    node = model.nodes.views[fact.node_id]
    if not node.node.reservations:
        # The node is reserved for nobody any more.
        del model.reserved_nodes[fact.node_id]
    model.amounts.measure_earmarks(model.app_of(fact.application_id), fact.key)
    model.participants.wake_others(model.app_of(fact.application_id))
    model.requeue.resolved()
    ask = model.ask_of(fact.application_id, fact.key)
    if ask is not None:
        _lose_reservation(model, ask)
    model.amounts.refresh_node(node)


def _lose_reservation(model: Model, ask: AskView) -> None:
    model.asks.keep_required(ask)
    model.shapes.follow_reserved(ask)
    if ask.open:
        model.requeue.look_into(ask)
        # It has lost its node, and may be entitled to victims again.
        if ask.app.leaf.is_entitled:
            model.requeue.may_preempt(ask.app.leaf, ask.ask.created_ns)


def _on_quota_preemption_armed(model: Model, _: f.QuotaPreemptionArmed) -> None:
    model.requeue.quota_armed()


RESOLVING: Final = frozenset(get_args(Resolving))

CHANGES: Final[dict[type, Callable[[Model, Any], None]]] = {
    f.PartitionConfigured: _on_configured,
    f.QueueAdded: _on_queue_added,
    f.QueueReconfigured: _on_queue_reconfigured,
    f.QueueRemoved: _on_queue_removed,
    f.NodeAdded: _on_node_added,
    f.NodeResized: _on_node_changed,
    f.NodeScheduleChanged: _on_node_changed,
    f.NodeAttributesReplaced: _on_node_attributes_replaced,
    f.NodeRemoved: _on_node_removed,
    f.ForeignAllocationPut: _on_node_changed,
    f.ForeignAllocationRemoved: _on_node_changed,
    f.ApplicationAdded: _on_application_added,
    f.ApplicationStateChanged: _on_application_state_changed,
    f.ApplicationLinked: _on_application_linked,
    f.ApplicationCrowded: _on_application_crowded,
    f.ApplicationRemoved: _on_application_removed,
    f.AskAdded: _on_ask_added,
    f.AsksAdded: _on_asks_added,
    f.AskReplaced: _on_ask_replaced,
    f.AskRemoved: _on_ask_removed,
    f.AskShortageChanged: _on_ask_shortage_changed,
    f.AllocationCommitted: _on_allocation_committed,
    f.AllocationsCommitted: _on_allocations_committed,
    f.AllocationRecovered: _on_allocation_recovered,
    f.GangAdmitted: _on_gang_admitted,
    f.GangLapsed: _on_gang_lapsed,
    f.ReleaseRequested: _on_release_requested,
    f.AskParked: _on_ask_parked,
    f.AskUnparked: _on_ask_unparked,
    f.SwapCompleted: _on_swap_completed,
    f.ReservationMade: _on_reservation_made,
    f.ReservationDropped: _on_reservation_dropped,
    f.AllocationResized: _on_allocation_resized,
    f.AllocationReleased: _on_allocation_released,
    f.QuotaPreemptionArmed: _on_quota_preemption_armed,
}
