"""What facts about gangs and swaps change in the planner's view."""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.preempting import FREES
from yunikorn_actors.domain.resource import discharge
from yunikorn_actors.planning.amounts import Amounts
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AppView, AskView


class GangView(Amounts):
    def on_gang_admitted(self, fact: f.GangAdmitted) -> None:
        self.gangs.settle_admission(fact.proposal_id)
        self.follow_gang(self.apps[fact.serial])

    def on_gang_lapsed(self, fact: f.GangLapsed) -> None:
        """Others may use its room, and its place where a leaf starts one application at a time."""
        app = self.apps[fact.serial]
        self.follow_gang(app)
        self.wake_applications(app)

    def on_release_requested(self, fact: f.ReleaseRequested) -> None:
        self.gangs.settle_swap(fact.proposal_id)
        app = self.app_of(fact.application_id)
        self.gangs.withdraw(app, fact.uuid)
        if fact.type in FREES:
            # The queue will use less and the node have more room: an ask may be entitled by that.
            self.unsettle(self.nodes.views[app.app.allocations[fact.uuid].node_id])

    def on_ask_parked(self, fact: f.AskParked) -> None:
        """The room on another node is the only amount that a swap takes."""
        held = self.gangs.settle_swap(fact.proposal_id)
        app = self.app_of(fact.application_id)
        ask = app.asks[fact.key]
        if held is not None:
            ask.inflight -= 1
            if held.node is not None:
                self.free_node(held.node, held.resource)
        if fact.crosses:
            self.nodes.take(self.nodes.views[fact.node_id], fact.resource)
        self._after_ask(app, ask)

    def on_ask_unparked(self, fact: f.AskUnparked) -> None:
        app = self.app_of(fact.application_id)
        ask = app.asks.get(fact.key)
        if ask is None:
            ask = self.watch(app, app.app.asks[fact.key])
        else:
            self.resync(ask)
            self.stale_leaves[app.leaf] = None
        if fact.crosses:
            node = self.nodes.views[fact.node_id]
            self.free_node(node, fact.resource)
            self.unsettle(node)
            self.gangs.owe(fact.placeholder, app, fact.key)

    def on_swap_completed(self, fact: f.SwapCompleted) -> None:
        """The real one is charged before the placeholder is given back: no room opens between."""
        app = self.app_of(fact.application_id)
        self._use(app, app.leaf, fact.resource, is_placeholder=False)
        self._give_back(app, app.leaf, fact.placeholder_resource, is_placeholder=True)
        node = self.nodes.views[fact.placeholder_node]
        if fact.node_id == fact.placeholder_node:
            self.nodes.take(node, fact.resource)
        self.free_node(node, fact.placeholder_resource)
        self.unsettle(node)
        self.follow_gang(app)
        self.rekey_app(app)
        self.stale_leaves[app.leaf] = None

    def refresh_targets(self, app: AppView, ask: Ask) -> None:
        """A parked ask has another size, and so has what it holds on other nodes."""
        for swap in app.app.swaps.values():
            if swap.key == ask.spec.key and swap.crosses:
                self.refresh_node(self.nodes.views[swap.node_id])

    def refresh_node(self, view: NodeView) -> None:
        """The node itself changed: its size, its schedule state or its reservations."""
        free = dict(view.node.available)
        for amount in self.coming_to(view):
            discharge(free, amount)
        self.nodes.refresh(view, free)
        self.wake_for_node(view)
        self.node_changes += 1
        self.reserving_is_stale = True
        self.unsettle(view)

    def placeholder_came(self, app: AppView, uuid: str) -> None:
        self.gangs.offer(app, app.app.allocations[uuid])
        self.gangs.room_has_changed = True
        self.follow_gang(app)

    def placeholder_went(self, app: AppView, uuid: str) -> None:
        self.gangs.withdraw(app, uuid)
        self.follow_gang(app)
        self.gangs.repay(uuid)

    def app_of(self, application_id: str) -> AppView:
        return self.apps[self.state.applications[application_id].serial]

    def _after_ask(self, app: AppView, ask: AskView) -> None:
        """Fewer repeats of it wait."""
        self.resync(ask)
        if not ask.ask.remaining and not ask.inflight:
            self.unwatch(ask)
        self.wake_applications(app)
        self.stale_leaves[app.leaf] = None
