"""The planner: which ask runs where, on one view of a partition.

The view is the replica plus what is in flight. `observe` is called after each fact was applied and
keeps the view up to date; `plan` makes decisions and puts each in flight; a fact that carries a
proposal's id, or `reject`, takes it out again. When a proposal is committed the amounts move from
in-flight to the replica, so the view does not change at all: that is what makes committing cheap.

Nothing else holds amounts. `in_flight` is empty when everything has been settled.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Ask, WaitingState
from yunikorn_actors.domain.application import FINISHED, ApplicationState
from yunikorn_actors.domain.ids import first_proposal_id
from yunikorn_actors.domain.limits import limits_of
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Allocate
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.planning.limits import LimitView, LimitViews
from yunikorn_actors.planning.nodes import NodeIndex, NodeView
from yunikorn_actors.planning.shape import ShapeKey
from yunikorn_actors.planning.tree import Tree
from yunikorn_actors.planning.views import AppView, AskView, Gate, InFlight, Lane, QueueView

Finding = tuple[Ask, WaitingState, str]
NO_NODE = "request is waiting for cluster resources become available"


class Planner:
    def __init__(
        self, state: PartitionState, scheduler_number: int = 0, *, reports: bool = False
    ) -> None:
        self.state = state
        self.findings: list[Finding] = []
        """Asks that were refused since the findings were taken, where anybody wants to know."""
        self._reports = reports
        self.nodes = NodeIndex()
        self.tree = Tree()
        self._limits = LimitViews(state)
        self.apps: dict[int, AppView] = {}
        self.in_flight: dict[int, InFlight] = {}
        self._last_id = first_proposal_id(scheduler_number)
        self.order_is_stale = False
        """The cluster or the configuration changed since the last plan."""
        self.stale_leaves: dict[QueueView, None] = {}
        """Leaves whose amounts changed since: their rank is worked out once, before planning."""

    @property
    def has_work(self) -> bool:
        """Whether anything might be decided now."""
        root = self.tree.root
        if self.state.held:
            return False
        return self.order_is_stale or (root is not None and root.has_work)

    def plan(self, limit: int) -> list[Allocate]:
        """Decide, one allocation at a time, until nothing can be placed or the limit is reached."""
        if self.state.held:
            return []
        if self.order_is_stale:
            self.tree.measure(self.state.capacity)
            self.order_is_stale = False
        for leaf in self.stale_leaves:
            self.tree.rekey(leaf)
        self.stale_leaves.clear()
        proposals: list[Allocate] = []
        while len(proposals) < limit:
            proposal = self._next()
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def _next(self) -> Allocate | None:
        root = self.tree.root
        while root is not None and root.children:
            leaf = root
            while not leaf.open_lanes:
                leaf = leaf.children[0][1]
            ask = leaf.first()
            shape = ask.shape
            app = ask.app
            if (app.limits or app.app.state is ApplicationState.ACCEPTED) and self._is_held(app):
                continue
            refusing = leaf.refusing(shape.wanted) or _refusing(app.limits, shape.wanted)
            if refusing is not None:
                lane = leaf.lanes[shape, app.owner]
                self.tree.refuse(lane, refusing)
                self._report_lane(lane)
                continue
            node = self.nodes.first_fit(shape)
            if node is None:
                self.tree.wait_for_node(shape)
                for lane in shape.lanes:
                    self._report_lane(lane)
                continue
            return self._decide(ask, leaf, node)
        return None

    def _is_held(self, app: AppView) -> bool:
        """Hold an application back where as many run as may."""
        gates: tuple[Gate, ...] = app.limits
        if app.app.state is ApplicationState.ACCEPTED:
            gates = (*app.leaf.application_limits, *gates)
        for gate in gates:
            if not gate.may_start(app):
                self.tree.hold(app, gate)
                return True
        return False

    def _start(self, app: AppView) -> None:
        """A decision for an application that does not run yet is in flight."""
        app.starting += 1
        for level in app.leaf.application_limits:
            level.starting[app.app.serial] = None

    def _started(self, app: AppView) -> None:
        app.starting -= 1
        if not app.starting:
            for level in app.leaf.lineage:
                level.starting.pop(app.app.serial, None)
                self.tree.wake_held(level)

    def _decide(self, ask: AskView, leaf: QueueView, node: NodeView) -> Allocate:
        resource, record = ask.resource, ask.ask
        self._last_id = proposal_id = self._last_id + 1
        self.in_flight[proposal_id] = InFlight(ask, leaf, node, resource, ask.app.limits)
        ask.inflight += 1
        if ask.app.app.state is ApplicationState.ACCEPTED:
            self._start(ask.app)
        for limit in ask.app.limits:
            limit.take(ask.app, resource)
        self.nodes.take(node, resource)
        self._use(ask.app, leaf, resource)
        self._shut(ask, 1)
        self.tree.rekey(leaf)
        spec = record.spec
        return Allocate(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=record.sequence,
            node_id=node.id,
        )

    # -- what asks wait for

    def take_findings(self) -> list[Finding]:
        findings, self.findings = self.findings, []
        return findings

    def _report_lane(self, lane: Lane) -> None:
        if self._reports:
            for _, app in lane.apps:
                for _, ask in app.piles[lane.shape]:
                    self._report(ask, lane)

    def _report(self, ask: AskView, lane: Lane) -> None:
        """Free size of the cluster is no quota: an ask that only this holds back has failed."""
        gate = lane.refused_by
        if gate is not None and gate.is_quota:
            state, reason = WaitingState.SKIPPED, f"{gate.name} has no room for it"
        else:
            state, reason = WaitingState.FAILED, NO_NODE
        if ask.ask.told is not state:
            self.findings.append((ask.ask, state, reason))

    def reject(self, proposal_id: int) -> None:
        """Context refused: what the proposal held is free again, and the ask waits again."""
        held = self._let_go(self.in_flight.pop(proposal_id))
        if not held.ask.gone:
            self._resync(held.ask)
        self.stale_leaves[held.leaf] = None

    def _let_go(self, held: InFlight) -> InFlight:
        held.ask.inflight -= 1
        self._settle_limits(held)
        if held.ask.app.starting:
            self._started(held.ask.app)
        self._give_back(held.ask.app, held.leaf, held.resource)
        if self.nodes.views.get(held.node.id) is held.node:
            self.nodes.give_back(held.node, held.resource)
            self.tree.wake_shapes(held.node)
        return held

    def _settle_limits(self, held: InFlight) -> None:
        for limit in held.limits:
            limit.settle(held.ask.app, held.resource)
            self._wake(limit)

    def _wake(self, gate: Gate) -> None:
        if gate.waiters:
            self.tree.wake_waiters(gate)
        if gate.held:
            self.tree.wake_held(gate)

    # -- amounts of the view

    def _use(self, app: AppView, leaf: QueueView, amount: Resource) -> None:
        entries = amount.items()
        for level in leaf.lineage:
            used = level.used
            for kind, quantity in entries:
                used[kind] = used.get(kind, 0) + quantity
        if leaf.sorts_by_usage:
            self._charge_app(app, amount, charge)

    def _give_back(self, app: AppView, leaf: QueueView, amount: Resource) -> None:
        for level in leaf.lineage:
            discharge(level.used, amount)
        if leaf.sorts_by_usage:
            self._charge_app(app, amount, discharge)
        for level in leaf.limits:
            if level.waiters:
                self.tree.wake_waiters(level)
        for limit in app.limits:
            self._wake(limit)

    def _charge_app(
        self, app: AppView, amount: Resource, write: Callable[[Resource, Resource], None]
    ) -> None:
        """Fair order goes by what an application uses."""
        was_in = app.entry is not None
        self.tree.leave(app)
        write(app.used, amount)
        if was_in:
            self.tree.enter(app)

    def _resync(self, ask: AskView) -> None:
        """Let as many repeats take part as wait and are not in flight."""
        repeats = max(0, ask.ask.remaining - ask.inflight) - ask.open
        if repeats > 0:
            self._open(ask, repeats)
        elif repeats < 0:
            self._shut(ask, -repeats)

    def _open(self, ask: AskView, repeats: int) -> None:
        was_open = ask.open > 0
        ask.open += repeats
        total = repeats * ask.shape.total
        for level in ask.app.leaf.lineage:
            level.waiting += total
        if not was_open:
            self.tree.add_ask(ask)
            lane = ask.app.leaf.lanes.get((ask.shape, ask.app.owner))
            if self._reports and lane is not None and not lane.is_open:
                self._report(ask, lane)

    def _shut(self, ask: AskView, repeats: int) -> None:
        ask.open -= repeats
        total = repeats * ask.shape.total
        for level in ask.app.leaf.lineage:
            level.waiting -= total
        if not ask.open:
            self.tree.drop_ask(ask)

    # -- facts

    def observe(self, fact: f.Fact) -> None:
        """Bring the view up to date with a fact that the state has just applied."""
        handler = _OBSERVE.get(type(fact))
        if handler is not None:
            handler(self, fact)

    def _on_configured(self, fact: f.PartitionConfigured) -> None:
        sort = fact.config.node_sort
        self.nodes.set_policy(sort.policy, sort.weights)

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
            app.used = dict(app.app.allocated)
            self._assign_limits(app)
        self.order_is_stale = True

    def _on_queue_removed(self, fact: f.QueueRemoved) -> None:
        self.tree.remove_queue(fact.path)
        self.order_is_stale = True

    def _on_node_added(self, fact: f.NodeAdded) -> None:
        node = self.state.nodes[fact.node_id]
        view = NodeView(node)
        self.nodes.add(view)
        self._refresh_node(view, node)

    def _on_node_changed(self, fact: f.NodeResized | f.NodeScheduleChanged) -> None:
        self._refresh_node(self.nodes.views[fact.node_id], self.state.nodes[fact.node_id])

    def _on_node_removed(self, fact: f.NodeRemoved) -> None:
        self.nodes.discard(self.nodes.views[fact.node_id])
        self.order_is_stale = True

    def _refresh_node(self, view: NodeView, node: Node) -> None:
        free = dict(node.available)
        for held in self.in_flight.values():
            if held.node is view:
                discharge(free, held.resource)
        self.nodes.refresh(view, free)
        self.tree.wake_shapes(view)
        self.order_is_stale = True

    def _on_foreign_changed(self, _: f.ForeignAllocationPut | f.ForeignAllocationRemoved) -> None:
        for view in self.nodes.views.values():
            self._refresh_node(view, view.node)

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
            self.tree.rekey_app(view)
        ask = app.asks[fact.spec.key]
        shape = self.tree.shape_of(ask.spec.resource)
        watched = AskView(view, ask, shape, ask.spec.resource, ask.order())
        view.asks[ask.spec.key] = watched
        self._resync(watched)
        self.stale_leaves[view.leaf] = None

    def _unwatch(self, view: AskView) -> None:
        if view.open:
            self._shut(view, view.open)
        view.gone = True
        del view.app.asks[view.ask.spec.key]

    def _on_ask_replaced(self, fact: f.AskReplaced) -> None:
        """What is in flight of the old size keeps its amounts until it is settled."""
        view = self._app(fact.spec.application_id).asks.get(fact.spec.key)
        if view is None:
            return
        if view.open:
            self._shut(view, view.open)
        view.resize(self.tree.shape_of(fact.spec.resource))
        self._resync(view)
        self.stale_leaves[view.app.leaf] = None

    def _on_ask_removed(self, fact: f.AskRemoved) -> None:
        view = self._app(fact.application_id).asks.get(fact.key)
        if view is not None:
            self._unwatch(view)
            self.stale_leaves[view.app.leaf] = None

    def _app(self, application_id: str) -> AppView:
        return self.apps[self.state.applications[application_id].serial]

    def _on_allocation_committed(self, fact: f.AllocationCommitted) -> None:
        held = self.in_flight.pop(fact.proposal_id, None)
        if held is not None and held.resource == fact.resource:
            ask = held.ask
            ask.inflight -= 1
            self._settle_limits(held)
            if ask.app.starting:
                self._started(ask.app)
        else:
            ask = self._commit_of_another(fact, held)
        if not ask.ask.remaining and not ask.inflight:
            self._unwatch(ask)

    def _commit_of_another(self, fact: f.AllocationCommitted, held: InFlight | None) -> AskView:
        """Placed by the resource manager, or with a size that the proposal did not know."""
        if held is not None:
            self._let_go(held)
        app = self._app(fact.application_id)
        ask = app.asks[fact.key]
        self._charge_view(app, fact.node_id, fact.resource)
        self._resync(ask)
        self.stale_leaves[app.leaf] = None
        return ask

    def _on_allocation_recovered(self, fact: f.AllocationRecovered) -> None:
        app = self._app(fact.spec.application_id)
        self._charge_view(app, fact.node_id, fact.spec.resource)
        self.tree.rekey_app(app)
        self.stale_leaves[app.leaf] = None

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

    def _on_allocation_released(self, fact: f.AllocationReleased) -> None:
        node = self.nodes.views[fact.node_id]
        app = self._app(fact.application_id)
        self.nodes.give_back(node, fact.resource)
        self._give_back(app, app.leaf, fact.resource)
        self.tree.wake_shapes(node)
        self.stale_leaves[app.leaf] = None
        self._wake_applications(app)


def _refusing(limits: tuple[LimitView, ...], wanted: ShapeKey) -> LimitView | None:
    for limit in limits:
        if not limit.room_for(wanted):
            return limit
    return None


_OBSERVE: dict[type, Callable[[Planner, Any], None]] = {
    f.PartitionConfigured: Planner._on_configured,
    f.QueueAdded: Planner._on_queue_added,
    f.QueueReconfigured: Planner._on_queue_reconfigured,
    f.QueueRemoved: Planner._on_queue_removed,
    f.NodeAdded: Planner._on_node_added,
    f.NodeResized: Planner._on_node_changed,
    f.NodeScheduleChanged: Planner._on_node_changed,
    f.NodeRemoved: Planner._on_node_removed,
    f.ForeignAllocationPut: Planner._on_foreign_changed,
    f.ForeignAllocationRemoved: Planner._on_foreign_changed,
    f.ApplicationAdded: Planner._on_application_added,
    f.ApplicationStateChanged: Planner._on_application_state_changed,
    f.ApplicationLinked: Planner._on_application_linked,
    f.ApplicationRemoved: Planner._on_application_removed,
    f.AskAdded: Planner._on_ask_added,
    f.AskReplaced: Planner._on_ask_replaced,
    f.AskRemoved: Planner._on_ask_removed,
    f.AllocationCommitted: Planner._on_allocation_committed,
    f.AllocationRecovered: Planner._on_allocation_recovered,
    f.AllocationResized: Planner._on_allocation_resized,
    f.AllocationReleased: Planner._on_allocation_released,
}
