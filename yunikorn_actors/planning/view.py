"""The planner's view of a partition: the replica plus what is in flight.

`observe` is called after each fact was applied and keeps the view up to date. When a proposal is
committed the amounts move from in-flight to the replica, so the view does not change at all: that
is what makes committing cheap.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import FINISHED, Application, ApplicationState
from yunikorn_actors.domain.config import PartitionConfig
from yunikorn_actors.domain.gates import GateKind
from yunikorn_actors.domain.limits import limits_of
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.node_order import NODE_ORDERS
from yunikorn_actors.domain.preempting import FREES
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.planning.gang_view import GangView
from yunikorn_actors.planning.model.flights import InFlight, used_by
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.views import AppView, AskView


class View(GangView):
    def observe(self, fact: f.Fact) -> None:
        """Bring the view up to date with a fact that the state has just applied."""
        handler = _OBSERVE.get(type(fact))
        if handler is not None:
            handler(self, fact)
        if self.giving_up_waits:
            self.reserving_is_stale = True

    def adopt(self) -> None:
        """Begin with a whole state, from a snapshot; treat everything in it as new."""
        state = self.state
        if state.config is not None:
            self._sort_nodes(state.config)
        for queue in state.queues.values():
            self.tree.add_queue(queue, state.capacity)
            self.tree.queues[queue.path].used = dict(queue.allocated)
        for node in state.nodes.values():
            self._see_node(node)
            if node.reservations:
                self.reserved_nodes[node.id] = None
        for app in state.applications.values():
            self._adopt_application(self._see_application(app))
        self.order_is_stale = self.reserving_is_stale = self.preempting_is_stale = True

    def _adopt_application(self, view: AppView) -> None:
        app = view.app
        view.crowd = app.crowd
        if app.crowd is not GateKind.NONE:
            self.findings.moved[view] = None
        for allocation in app.allocations.values():
            if allocation.spec.placeholder and allocation.may_be_released:
                self.gangs.offer(view, allocation)
        for ask in app.asks.values():
            if ask.remaining:
                self.tree.follow_reserved(self.watch(view, ask))
        self.follow_gang(view)

    def _on_configured(self, fact: f.PartitionConfigured) -> None:
        self._sort_nodes(fact.config)
        if self.apps:
            self.order_is_stale = True

    def _sort_nodes(self, config: PartitionConfig) -> None:
        self.nodes.set_order(NODE_ORDERS[config.node_sort.policy], config.node_sort.weights)

    def _on_queue_added(self, fact: f.QueueAdded) -> None:
        self.tree.add_queue(self.state.queues[fact.path], self.state.capacity)

    def _on_queue_reconfigured(self, fact: f.QueueReconfigured) -> None:
        """Keys of another sort policy do not compare with the old ones, so all leave first."""
        queue = self.tree.queues[fact.path]
        apps = [app for app in self.apps.values() if queue in app.leaf.lineage]
        for app in apps:
            self.tree.leave(app)
        queue.read_properties()
        for app in apps:
            app.used = used_by(app, self.in_flight)
            self._assign_limits(app)
            self.follow_gang(app)
            # What waits for a node may be refused by a quota from now on, and says so then.
            self.findings.look_into_app(app)
        self.order_is_stale = True
        self.reserving_is_stale = True

    def _on_queue_removed(self, fact: f.QueueRemoved) -> None:
        self.tree.remove_queue(fact.path)

    def _on_node_added(self, fact: f.NodeAdded) -> None:
        self._see_node(self.state.nodes[fact.node_id])

    def _see_node(self, node: Node) -> None:
        view = NodeView(node)
        self.nodes.add(view)
        self._resize_node(view)

    def _on_node_changed(
        self,
        fact: f.NodeResized
        | f.NodeScheduleChanged
        | f.ForeignAllocationPut
        | f.ForeignAllocationRemoved,
    ) -> None:
        self._resize_node(self.nodes.views[fact.node_id])

    def _on_node_removed(self, fact: f.NodeRemoved) -> None:
        self.nodes.discard(self.nodes.views[fact.node_id])
        self.order_is_stale = True

    def _resize_node(self, view: NodeView) -> None:
        self.refresh_node(view)
        self.tree.wake_required(view.id)
        self.order_is_stale = True

    def _on_application_added(self, fact: f.ApplicationAdded) -> None:
        self._see_application(self.state.applications[fact.spec.application_id])

    def _see_application(self, app: Application) -> AppView:
        leaf = self.tree.queues[app.queue.path]
        view = AppView(app, leaf)
        self.apps[app.serial] = leaf.members[app.serial] = view
        self._assign_limits(view)
        return view

    def _assign_limits(self, view: AppView) -> None:
        """Find the limits that count for an application; it may move to other lanes."""
        app = view.app
        self.tree.leave(view)
        self.tree.let_go(view)
        former = view.limits
        found = limits_of(app.queue, app.spec.user, app.group)
        view.limits = tuple(self._limits.join(limit) for limit in found)
        view.owner = (app.spec.user, app.group) if view.limits else None
        for limit in former:
            self._limits.part(limit)
            self._wake(limit)
        self.tree.come_back(view)
        self.gangs.room_has_changed = True

    def _on_application_linked(self, fact: f.ApplicationLinked) -> None:
        self._assign_limits(self.apps[fact.serial])

    def _on_application_crowded(self, fact: f.ApplicationCrowded) -> None:
        """Context also records this when an application runs all the same: note what holds now."""
        view = self.apps.get(fact.serial)
        if view is not None and view.crowd is not fact.crowd:
            view.crowd = fact.crowd
            self.findings.moved[view] = None

    def _forget(self, view: AppView) -> None:
        self.end_turn(view)
        del self.apps[view.app.serial], view.leaf.members[view.app.serial]
        self.gangs.forget(view)
        for limit in view.limits:
            self._limits.part(limit)

    def _on_application_state_changed(self, fact: f.ApplicationStateChanged) -> None:
        view = self.apps.get(fact.serial)
        if view is None:
            return
        self.tree.let_go(view)
        if view.starting and fact.state is not ApplicationState.ACCEPTED:
            self._counts_itself(view)
        if view.is_schedulable:
            self.tree.come_back(view)
        else:
            self.tree.leave(view)
        if fact.state in FINISHED:
            self._forget(view)
        elif view.app.task_groups:
            self.follow_gang(view)
        self.wake_applications(view)

    def _on_application_removed(self, fact: f.ApplicationRemoved) -> None:
        view = self.apps[fact.serial]
        self.tree.let_go(view)
        self.tree.leave(view)
        self._forget(view)
        self.wake_applications(view)

    def _on_ask_added(self, fact: f.AskAdded) -> None:
        app = self.state.applications[fact.spec.application_id]
        view = self.apps[app.serial]
        if view.submitted_ns != app.submitted_ns:
            view.submitted_ns = app.submitted_ns
            self.rekey_app(view)
        ask = app.asks[fact.spec.key]
        self.watch(view, ask)
        if fact.spec.placeholder:
            self.follow_gang(view)
            self.gangs.look_again(view)

    def _on_ask_replaced(self, fact: f.AskReplaced) -> None:
        """What is in flight of the old size keeps its amounts until it is settled."""
        app = self.app_of(fact.spec.application_id)
        view, ask = app.asks.get(fact.spec.key), app.app.asks[fact.spec.key]
        if view is not None:
            self.reshape(view, self.tree.shape_of(fact.spec))
        elif ask.remaining:
            self.watch(app, ask)
            self.follow_gang(app)
        if ask.parked:
            self.refresh_targets(app, ask)

    def reshape(self, view: AskView, shape: Shape) -> None:
        """Let the ask take part as one of another shape, or of another kind."""
        self._withdraw(view)
        self.tree.forget_reserved(view)
        was_placeholder = view.is_placeholder
        view.resize(shape)
        if view.is_placeholder is not was_placeholder:
            on_their_way = sum(1 for held in self.in_flight.values() if held.ask is view)
            view.app.placing += on_their_way if view.is_placeholder else -on_their_way
        self.tree.follow_reserved(view)
        self.resync(view)
        if view.app.app.task_groups:
            self.follow_gang(view.app)
        self.stale_leaves[view.app.leaf] = None

    def _on_ask_removed(self, fact: f.AskRemoved) -> None:
        app = self.app_of(fact.application_id)
        view = app.asks.get(fact.key)
        if view is not None:
            self.unwatch(view)
            self.stale_leaves[app.leaf] = None
            if not app.piles:
                self.wake_applications(app)
        if app.app.task_groups:
            self.follow_gang(app)
            self.gangs.room_has_changed = True

    def _on_allocation_committed(self, fact: f.AllocationCommitted) -> None:
        self.preempting_is_stale = True
        held = self.in_flight.pop(fact.proposal_id, None)
        if held is not None and self._is_as_held(held, fact):
            ask = held.ask
            self._settle(held)
        else:
            ask = self._commit_of_another(fact, held)
        if not ask.ask.remaining and not ask.inflight:
            self.unwatch(ask)
        if ask.ask.spec.placeholder:
            self.placeholder_came(ask.app, fact.uuid)

    def _on_ask_shortage_changed(self, fact: f.AskShortageChanged) -> None:
        """The rest of the ask may be short again: a plan found that before this fact came."""
        ask = self.ask_of(fact.application_id, fact.key)
        if fact.shortage is GateKind.NONE and ask is not None and ask.open:
            self.findings.look_into(ask)

    def _is_as_held(self, held: InFlight, fact: f.AllocationCommitted) -> bool:
        """The ask may be another by now, and its node replaced by another of the same id."""
        is_same = held.resource == fact.resource and held.is_placeholder is held.ask.is_placeholder
        return is_same and self.nodes.knows(held.node)

    def _commit_of_another(self, fact: f.AllocationCommitted, held: InFlight | None) -> AskView:
        """Placed by the resource manager, or with a size that the proposal did not know."""
        if held is not None:
            self._let_go(held)
        app = self.app_of(fact.application_id)
        ask = app.asks[fact.key]
        is_placeholder = ask.ask.spec.placeholder
        self._charge_view(app, fact.node_id, fact.resource, is_placeholder=is_placeholder)
        self.resync(ask)
        self.rekey_app(app)
        self.stale_leaves[app.leaf] = None
        return ask

    def _on_allocation_recovered(self, fact: f.AllocationRecovered) -> None:
        app = self.app_of(fact.spec.application_id)
        spec = fact.spec
        self._charge_view(app, fact.node_id, spec.resource, is_placeholder=spec.placeholder)
        self.rekey_app(app)
        self.stale_leaves[app.leaf] = None
        self.unsettle(self.nodes.views[fact.node_id])
        if fact.spec.placeholder:
            self.placeholder_came(app, fact.uuid)

    def _charge_view(
        self, app: AppView, node_id: str, amount: Resource, *, is_placeholder: bool
    ) -> None:
        self.nodes.take(self.nodes.views[node_id], amount)
        self._use(app, app.leaf, amount, is_placeholder=is_placeholder)

    def _on_allocation_resized(self, fact: f.AllocationResized) -> None:
        app = self.app_of(fact.application_id)
        node = self.nodes.views[fact.node_id]
        self.nodes.give_back(node, fact.old_resource)
        is_placeholder = app.app.allocations[fact.uuid].spec.placeholder
        self._give_back(app, app.leaf, fact.old_resource, is_placeholder=is_placeholder)
        self._charge_view(app, fact.node_id, fact.resource, is_placeholder=is_placeholder)
        if is_placeholder:
            self.gangs.look(app)
        self.wake_for_node(node)
        self.stale_leaves[app.leaf] = None
        self.unsettle(node)

    def _on_allocation_released(self, fact: f.AllocationReleased) -> None:
        node = self.nodes.views[fact.node_id]
        app = self.app_of(fact.application_id)
        self.nodes.give_back(node, fact.resource)
        self._give_back(app, app.leaf, fact.resource, is_placeholder=fact.placeholder)
        self.wake_for_node(node)
        self.stale_leaves[app.leaf] = None
        self.wake_applications(app)
        if fact.placeholder:
            self.placeholder_went(app, fact.uuid)
        self.reserving_is_stale = self.reserving_is_stale or bool(self.reserved_nodes)
        self.was_freed = self.was_freed or fact.type in FREES
        self.unsettle(node)

    def _on_reservation_made(self, fact: f.ReservationMade) -> None:
        self.reserved_nodes[fact.node_id] = None
        self.reserving_is_stale = True
        self._settle_reservation(fact.proposal_id)
        self.measure_claims(self.app_of(fact.application_id).leaf)
        ask = self.ask_of(fact.application_id, fact.key)
        if ask is not None:
            self.tree.follow_reserved(ask)
        self.refresh_node(self.nodes.views[fact.node_id])

    def _on_reservation_dropped(self, fact: f.ReservationDropped) -> None:
        node = self.nodes.views[fact.node_id]
        if not node.node.reservations:
            del self.reserved_nodes[fact.node_id]
        self.reserving_is_stale = True
        self._settle_reservation(fact.proposal_id)
        self.measure_claims(self.app_of(fact.application_id).leaf)
        self.wake_applications(self.app_of(fact.application_id))
        self.was_freed = True
        ask = self.ask_of(fact.application_id, fact.key)
        if ask is not None:
            self.keep_required(ask)
            self.tree.follow_reserved(ask)
        if ask is not None and ask.open:
            self.findings.look_into(ask)
            if ask.app.leaf.is_entitled:
                self._notice(ask)
        self.refresh_node(node)

    def _settle_reservation(self, proposal_id: int) -> None:
        """Overridden by who makes such proposals."""

    def _on_preemption_decided(self, fact: f.PreemptionDecided | f.PreemptionFailed) -> None:
        self._settle_preemption(fact.proposal_id)

    def _settle_preemption(self, proposal_id: int) -> None:
        """Overridden by who makes such proposals."""

    def _on_quota_preemption_armed(self, _: f.QuotaPreemptionArmed) -> None:
        self.preempting_is_stale = True


_OBSERVE: dict[type, Callable[[View, Any], None]] = {
    f.PartitionConfigured: View._on_configured,
    f.QueueAdded: View._on_queue_added,
    f.QueueReconfigured: View._on_queue_reconfigured,
    f.QueueRemoved: View._on_queue_removed,
    f.NodeAdded: View._on_node_added,
    f.NodeResized: View._on_node_changed,
    f.NodeScheduleChanged: View._on_node_changed,
    f.NodeRemoved: View._on_node_removed,
    f.ForeignAllocationPut: View._on_node_changed,
    f.ForeignAllocationRemoved: View._on_node_changed,
    f.ApplicationAdded: View._on_application_added,
    f.ApplicationStateChanged: View._on_application_state_changed,
    f.ApplicationLinked: View._on_application_linked,
    f.ApplicationCrowded: View._on_application_crowded,
    f.ApplicationRemoved: View._on_application_removed,
    f.AskAdded: View._on_ask_added,
    f.AskReplaced: View._on_ask_replaced,
    f.AskRemoved: View._on_ask_removed,
    f.AskShortageChanged: View._on_ask_shortage_changed,
    f.AllocationCommitted: View._on_allocation_committed,
    f.AllocationRecovered: View._on_allocation_recovered,
    f.GangAdmitted: View.on_gang_admitted,
    f.GangLapsed: View.on_gang_lapsed,
    f.ReleaseRequested: View.on_release_requested,
    f.AskParked: View.on_ask_parked,
    f.AskUnparked: View.on_ask_unparked,
    f.SwapCompleted: View.on_swap_completed,
    f.ReservationMade: View._on_reservation_made,
    f.ReservationDropped: View._on_reservation_dropped,
    f.AllocationResized: View._on_allocation_resized,
    f.AllocationReleased: View._on_allocation_released,
    f.PreemptionFailed: View._on_preemption_decided,
    f.PreemptionDecided: View._on_preemption_decided,
    f.QuotaPreemptionArmed: View._on_quota_preemption_armed,
}
