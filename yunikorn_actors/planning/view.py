"""The planner's view of a partition: the replica plus what is in flight.

`observe` is called after each fact was applied and keeps the view up to date. When a proposal is
committed the amounts move from in-flight to the replica, so the view does not change at all: that
is what makes committing cheap.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.application import FINISHED, ApplicationState
from yunikorn_actors.domain.limits import limits_of
from yunikorn_actors.domain.resource import Resource, discharge
from yunikorn_actors.planning.amounts import Amounts
from yunikorn_actors.planning.nodes import NodeView
from yunikorn_actors.planning.shape import Shape
from yunikorn_actors.planning.views import AppView, AskView, InFlight, used_by


class View(Amounts):
    def observe(self, fact: f.Fact) -> None:
        """Bring the view up to date with a fact that the state has just applied."""
        handler = _OBSERVE.get(type(fact))
        if handler is not None:
            handler(self, fact)

    def _on_configured(self, fact: f.PartitionConfigured) -> None:
        sort = fact.config.node_sort
        self.nodes.set_policy(sort.policy, sort.weights)
        if self.apps:
            self.order_is_stale = True

    def _on_queue_added(self, fact: f.QueueAdded) -> None:
        self.tree.add_queue(self.state.queues[fact.path])
        self.order_is_stale = True

    def _on_queue_reconfigured(self, fact: f.QueueReconfigured) -> None:
        """Another sort policy gives keys that do not compare with the old ones: all leave first."""
        queue = self.tree.queues[fact.path]
        apps = [app for app in self.apps.values() if queue in app.leaf.lineage]
        for app in apps:
            self.tree.leave(app)
        queue.read_properties()
        for app in apps:
            app.used = used_by(app, self.in_flight)
            self._assign_limits(app)
        self.order_is_stale = True
        self.reserving_is_stale = True

    def _on_queue_removed(self, fact: f.QueueRemoved) -> None:
        self.tree.remove_queue(fact.path)
        self.order_is_stale = True

    def _on_node_added(self, fact: f.NodeAdded) -> None:
        node = self.state.nodes[fact.node_id]
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

    def refresh_node(self, view: NodeView) -> None:
        """The node itself changed: its size, whether it takes work, or whom it is kept for."""
        free = dict(view.node.available)
        for held in self.in_flight.values():
            if held.node is view:
                discharge(free, held.resource)
        self.nodes.refresh(view, free)
        self.tree.wake_shapes(view)
        self.node_changes += 1
        self.reserving_is_stale = True
        self._unsettle(view)

    def _unsettle(self, view: NodeView) -> None:
        """What is on the node changed: whoever waits for it alone looks again."""
        self.preempting_is_stale = True
        if view.node.reservations:
            self.unsettled_nodes[view.id] = None

    def _resize_node(self, view: NodeView) -> None:
        self.refresh_node(view)
        self.order_is_stale = True

    def _on_application_added(self, fact: f.ApplicationAdded) -> None:
        app = self.state.applications[fact.spec.application_id]
        leaf = self.tree.queues[fact.queue]
        view = AppView(app, leaf)
        self.apps[fact.serial] = leaf.members[fact.serial] = view
        self._assign_limits(view)

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
        self.tree.enter(view)

    def _on_application_linked(self, fact: f.ApplicationLinked) -> None:
        self._assign_limits(self.apps[fact.serial])

    def _forget(self, view: AppView) -> None:
        del self.apps[view.app.serial], view.leaf.members[view.app.serial]
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
            self.tree.enter(view)
        else:
            self.tree.leave(view)
        if fact.state in FINISHED:
            self._forget(view)
        self._wake_applications(view)

    def _on_application_removed(self, fact: f.ApplicationRemoved) -> None:
        view = self.apps[fact.serial]
        self.tree.let_go(view)
        self.tree.leave(view)
        self._forget(view)
        self._wake_applications(view)

    def _rekey(self, view: AppView) -> None:
        """Its age or what it runs has changed, and so may who is next to start."""
        self.tree.rekey_app(view)
        if view.held_by is not None:
            self.tree.let_go(view)
            self.tree.enter(view)
        self._wake_applications(view)

    def _wake_applications(self, view: AppView) -> None:
        for level in view.leaf.application_limits:
            self.tree.wake_held(level)
        for limit in view.limits:
            if limit.members:
                self._wake(limit)

    def _on_ask_added(self, fact: f.AskAdded) -> None:
        app = self.state.applications[fact.spec.application_id]
        view = self.apps[app.serial]
        if view.submitted_ns != app.submitted_ns:
            view.submitted_ns = app.submitted_ns
            self._rekey(view)
        ask = app.asks[fact.spec.key]
        self._watch(view, ask)

    def _watch(self, app: AppView, ask: Ask) -> None:
        shape = self.tree.shape_of(ask.spec)
        watched = AskView(app, ask, shape, ask.spec.resource, ask.order())
        app.asks[ask.spec.key] = watched
        self._resync(watched)
        self.stale_leaves[app.leaf] = None

    def _unwatch(self, view: AskView) -> None:
        if view.open:
            self._shut(view, view.open)
        view.gone = True
        del view.app.asks[view.ask.spec.key]

    def _on_ask_replaced(self, fact: f.AskReplaced) -> None:
        """What is in flight of the old size keeps its amounts until it is settled."""
        app = self._app(fact.spec.application_id)
        view = app.asks.get(fact.spec.key)
        if view is None:
            self._watch(app, app.app.asks[fact.spec.key])
            return
        self.reshape(view, self.tree.shape_of(fact.spec))

    def reshape(self, view: AskView, shape: Shape) -> None:
        """Let the ask take part as one of another shape."""
        if view.open:
            self._shut(view, view.open)
        view.resize(shape)
        self._resync(view)
        self.stale_leaves[view.app.leaf] = None

    def _on_ask_removed(self, fact: f.AskRemoved) -> None:
        view = self._app(fact.application_id).asks.get(fact.key)
        if view is not None:
            self._unwatch(view)
            self.stale_leaves[view.app.leaf] = None
            if not view.app.piles:
                self._wake_applications(view.app)

    def _app(self, application_id: str) -> AppView:
        return self.apps[self.state.applications[application_id].serial]

    def _on_allocation_committed(self, fact: f.AllocationCommitted) -> None:
        self.preempting_is_stale = True
        held = self.in_flight.pop(fact.proposal_id, None)
        if held is not None and self._is_as_held(held, fact):
            ask = held.ask
            ask.inflight -= 1
            self._settle_reserved(held)
            self._settle_limits(held)
            if ask.app.starting:
                self._started(ask.app)
        else:
            ask = self._commit_of_another(fact, held)
        if not ask.ask.remaining and not ask.inflight:
            self._unwatch(ask)

    def _is_as_held(self, held: InFlight, fact: f.AllocationCommitted) -> bool:
        """The ask may have been resized, and its node replaced by another of the same id."""
        return held.resource == fact.resource and self.nodes.views.get(fact.node_id) is held.node

    def _commit_of_another(self, fact: f.AllocationCommitted, held: InFlight | None) -> AskView:
        """Placed by the resource manager, or with a size that the proposal did not know."""
        if held is not None:
            self._let_go(held)
        app = self._app(fact.application_id)
        ask = app.asks[fact.key]
        self._charge_view(app, fact.node_id, fact.resource)
        self._resync(ask)
        self._rekey(app)
        self.stale_leaves[app.leaf] = None
        return ask

    def _on_allocation_recovered(self, fact: f.AllocationRecovered) -> None:
        app = self._app(fact.spec.application_id)
        self._charge_view(app, fact.node_id, fact.spec.resource)
        self._rekey(app)
        self.stale_leaves[app.leaf] = None
        self._unsettle(self.nodes.views[fact.node_id])

    def _charge_view(self, app: AppView, node_id: str, amount: Resource) -> None:
        self.nodes.take(self.nodes.views[node_id], amount)
        self._use(app, app.leaf, amount)

    def _on_allocation_resized(self, fact: f.AllocationResized) -> None:
        app = self._app(fact.application_id)
        node = self.nodes.views[fact.node_id]
        self.nodes.give_back(node, fact.old_resource)
        self._give_back(app, app.leaf, fact.old_resource)
        self._charge_view(app, fact.node_id, fact.resource)
        self.tree.wake_shapes(node)
        self.stale_leaves[app.leaf] = None
        self._unsettle(node)

    def _on_allocation_released(self, fact: f.AllocationReleased) -> None:
        node = self.nodes.views[fact.node_id]
        app = self._app(fact.application_id)
        self.nodes.give_back(node, fact.resource)
        self._give_back(app, app.leaf, fact.resource)
        self.tree.wake_shapes(node)
        self.stale_leaves[app.leaf] = None
        self._wake_applications(app)
        self.reserving_is_stale = self.reserving_is_stale or bool(self.reserved_nodes)
        self._unsettle(node)

    def _on_reservation_made(self, fact: f.ReservationMade) -> None:
        self.reserved_nodes[fact.node_id] = None
        self.reserving_is_stale = True
        self._settle_reservation(fact.proposal_id)
        self._measure_claims(fact.application_id)
        self.refresh_node(self.nodes.views[fact.node_id])

    def _on_reservation_dropped(self, fact: f.ReservationDropped) -> None:
        node = self.nodes.views[fact.node_id]
        if not node.node.reservations:
            del self.reserved_nodes[fact.node_id]
        self.reserving_is_stale = True
        self._settle_reservation(fact.proposal_id)
        self._measure_claims(fact.application_id)
        ask = self.ask_of(fact.application_id, fact.key)
        if ask is not None and ask.open and ask.app.leaf.is_entitled:
            self._notice(ask)
        self.refresh_node(node)

    def _measure_claims(self, application_id: str) -> None:
        """What is promised to an ask bounds what the quotas leave to others."""
        for level in self._app(application_id).leaf.limits[:-1]:
            former = level.limit
            level.read_limit()
            if level.limit != former:
                self._wake(level)

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
    f.ApplicationRemoved: View._on_application_removed,
    f.AskAdded: View._on_ask_added,
    f.AskReplaced: View._on_ask_replaced,
    f.AskRemoved: View._on_ask_removed,
    f.AllocationCommitted: View._on_allocation_committed,
    f.AllocationRecovered: View._on_allocation_recovered,
    f.ReservationMade: View._on_reservation_made,
    f.ReservationDropped: View._on_reservation_dropped,
    f.AllocationResized: View._on_allocation_resized,
    f.AllocationReleased: View._on_allocation_released,
    f.PreemptionFailed: View._on_preemption_decided,
    f.PreemptionDecided: View._on_preemption_decided,
    f.QuotaPreemptionArmed: View._on_quota_preemption_armed,
}
