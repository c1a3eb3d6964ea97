"""The planner's model: what it knows of a partition, the replica plus what is in flight, in order.

It decides nothing and knows no part of the planner. What it finds changed it reports to the
requeue.
"""

from collections.abc import Iterable
from typing import cast

from yunikorn_actors.planning.model.asks import Asks
from yunikorn_actors.planning.model.deciding import NODES, Deciders
from yunikorn_actors.planning.model.gangs import Gangs
from yunikorn_actors.planning.model.in_flight import Flights
from yunikorn_actors.planning.model.in_use import Amounts
from yunikorn_actors.planning.model.limits import LimitViews
from yunikorn_actors.planning.model.nodes import NodeIndex, NodeView
from yunikorn_actors.planning.model.participants import Participants
from yunikorn_actors.planning.model.policy_views import seen_node
from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.shapes import Shapes
from yunikorn_actors.planning.model.tree import ModelParts, Tree
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.device_fit import devices_on, parts_for
from yunikorn_actors.state.limits import Limit, limits_of
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.values.devices import Devices, hold
from yunikorn_actors.values.resource import Resource, fits_in


class Applications:
    """Those that are not finished: the limits that count for them, and their place in order."""

    def __init__(
        self, model_parts: ModelParts, limits: LimitViews, gangs: Gangs, participants: Participants
    ) -> None:
        _, self._tree, _, self._requeue = model_parts
        self._limits = limits
        self._gangs = gangs
        self._participants = participants
        self.views: dict[int, AppView] = {}
        """By serial."""

    def see(self, app: Application) -> AppView:
        leaf = self._tree.queues[app.queue.path]
        view = AppView(app, leaf)
        self.views[app.serial] = leaf.members[app.serial] = view
        self.assign_limits(view)
        return view

    def assign_limits(self, view: AppView) -> None:
        """Find the limits that count for an application; it may move to other lanes."""
        app = view.app
        # It may be linked to another group now, which policies see.
        view.ranked = None
        for ask in view.asks.values():
            if view.leaf.changed is not None:
                view.leaf.changed[ask] = None
        # Out of all orders before its lanes change.
        self._tree.leave(view)
        self._participants.let_go(view)
        former = view.limits
        found = limits_of(app.queue, app.spec.user, app.group)
        view.limits = tuple(self._limits.join(limit) for limit in found)
        # Without a limit it shares a lane with all others of its leaf.
        view.owner = (app.spec.user, app.group) if view.limits else None
        # The new ones are joined before the old are left: a limit that counts as before stays
        # known, with what is in flight below it.
        for limit in former:
            self._limits.part(limit)
            self._participants.wake(limit)
        # Behind the new limits: it may be blocked by one of them at once.
        self._participants.come_back(view)
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(view)
        self._requeue.gang_may_fit()

    def rekey(self, view: AppView) -> None:
        """Rank an application anew: its age or its running work has changed."""
        view.submitted_ns = view.app.submitted_ns
        view.ranked = None
        if view.leaf.changed is not None:
            view.leaf.changed[view] = None
        self._tree.rekey_app(view)
        if view.awaiting_gang is not None:
            self._gangs.follow(view)
        if view.blocked_by is not None:
            self._participants.come_back(view)
        self._participants.wake_others(view)

    def forget(self, view: AppView) -> None:
        # The turn is an entry of the tree, and goes before the application that it points to.
        self._gangs.end_turn(view)
        del self.views[view.app.serial], view.leaf.members[view.app.serial]
        if view.leaf.changed is not None:
            view.leaf.changed[view] = None
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(view)
        self._gangs.forget(view)
        for limit in view.limits:
            self._limits.part(limit)


class Model:
    def __init__(self, state: PartitionState, requeue: Requeue, policies: Policies) -> None:
        self.state = state
        self.requeue = requeue
        self.reserved_nodes: dict[str, None] = {}
        self.nodes = NodeIndex()
        self.flights = Flights()
        self.shapes = Shapes(requeue)
        self.deciders = Deciders(policies, cast(Folds | None, state.folds))
        self.tree = Tree(self.shapes, requeue, self.deciders)
        self._limits = LimitViews(state)
        model_parts = ModelParts(self.shapes, self.tree, self.reserved_nodes, requeue)
        self.participants = Participants(model_parts)
        self.amounts = Amounts(state, self.nodes, model_parts, self.participants, self.flights)
        self.asks = Asks(model_parts)
        self.gangs = Gangs(model_parts, self.asks, self.participants)
        self.applications = Applications(model_parts, self._limits, self.gangs, self.participants)
        self.apps = self.applications.views
        self.set_aside = self.asks.set_aside
        """Asks, gangs and paths of queues for which nothing is proposed on these facts."""

    def app_of(self, application_id: str) -> AppView:
        # By serial: an id names one life at a time in `state.applications`.
        return self.apps[self.state.applications[application_id].serial]

    def ask_of(self, application_id: str, key: str) -> AskView | None:
        app = self.state.applications.get(application_id)
        return None if app is None else self.apps[app.serial].asks.get(key)

    def may_use(self, ask: AskView, node: NodeView) -> bool:
        """Whether the node has room for the ask beside what is secured there for others.

        Those about to be placed there have taken their room already. A node that is awaited after a
        restart has none.
        """
        if node.node.awaited or not node.fits(ask.shape.wanted):
            return False
        if not node.node.reservations:
            return not ask.shape.devices or node.devices_for(ask.shape) is not None
        # Those that use a reservation there have taken its room already.
        served = self.flights.serving_on.get(node.id, ())
        room = room_for(node.node, ask.ask.spec, node.free, served)
        if room is not node.free and not fits_in(ask.resource, room):
            return False
        return not ask.shape.devices or self.devices_for(ask, node) is not None

    def devices_for(self, ask: AskView, node: NodeView) -> Devices | None:
        """Choose devices for the ask there, beside those that are kept for others."""
        free = node.parts
        if free is not None and node.node.reservations:
            served = self.flights.serving_on.get(node.id, ())
            free = parts_for(node.node, ask.ask.spec, free, served)
        # A policy may choose the devices; the rule of the core checks them.
        choose = self.nodes.own_devices
        if choose is not None and free is not None:
            chosen = choose(seen_node(node), dict(ask.shape.wanted), tuple(free))
            # A policy may be wrong: then the rule of the core decides.
            if chosen is not None and hold(free, chosen, ask.shape.devices):
                return chosen
        return devices_on(node.node, ask.ask.spec, free)

    def take_devices(self, ask: AskView, node: NodeView) -> Devices:
        """Choose devices for the ask, and let no other decision have them."""
        devices = self.devices_for(ask, node) or ()
        if devices:
            self.nodes.take_devices(node, devices, ask.resource)
        return devices

    def used_of(self, limit: Limit) -> Resource:
        """What counts against the limit of a user or group, with what is in flight."""
        view = self._limits.get(limit)
        return self.state.usage_of(limit).amounts if view is None else view.used()

    def replace_failed(self) -> dict[str, tuple[str, str]]:
        """Let what is built in decide in the queues whose policy has failed.

        Return the name of each, and how it has failed.
        """
        # Both kinds: failed when asked for a key, and failed when given a fact.
        self.deciders.look_at_folds(self.state.queues)
        news, self.deciders.news = self.deciders.news, {}
        for path in news:
            if path == NODES:
                self.nodes.own = self.nodes.own_devices = None
            queue = self.tree.queues.get(path)
            if queue is None:
                continue
            # All below: a queue's policy orders them on each level.
            apps = [app for app in self.apps.values() if queue in app.leaf.lineage]
            for app in apps:
                self.tree.leave(app)
            self.decide_anew(queue)
            for app in apps:
                app.used = self.flights.used_by(app)
                self.tree.enter(app)
            self.requeue.amounts_changed(queue)
        return news

    def decide_anew(self, queue: QueueView) -> None:
        """Its policy may be another now; no application of it takes part at the moment.

        Orders of two policies do not compare, so all asks leave their piles before.
        """
        had_one = queue.decider.policy is not None
        # The name may stand for nothing: then nothing but what is built in orders them, and they
        # are put back all the same.
        may_differ = had_one or self.deciders.has_policy(queue.queue)
        moved = tuple(queue.members.values()) if may_differ else ()
        self._take_asks_out(moved)
        queue.read_properties()
        self.tree.blocked.sort_anew(queue)
        self._order_asks_anew(moved)

    def link(self, app: AppView) -> None:
        """Another group may count for it, and a policy may order its asks by that."""
        moved = (app,) if app.leaf.decider.orders_asks else ()
        self._take_asks_out(moved)
        self.applications.assign_limits(app)
        self._order_asks_anew(moved)

    def _take_asks_out(self, apps: Iterable[AppView]) -> None:
        # Turns too: they are entries in the same order.
        for app in apps:
            self.gangs.end_turn(app)
            for ask in app.asks.values():
                if ask.open:
                    self.asks.shut(ask, ask.open)

    def _order_asks_anew(self, apps: Iterable[AppView]) -> None:
        """Put back what was taken out, in its new order."""
        asks = [ask for app in apps for ask in app.asks.values()]
        for ask in asks:
            # A pass of the gate lets them in again.
            ask.is_let_in = False
            ask.order = ask.app.leaf.decider.order_of(ask.app.app, ask.ask)
        for ask in asks:
            self.asks.resync(ask)
        if asks:
            self.requeue.gang_may_fit()

    def reshape(self, view: AskView, shape: Shape) -> None:
        """Let the ask take part as one of another shape, or of another kind."""
        self.asks.withdraw(view)
        self.shapes.forget_reserved(view)
        was_placeholder = view.is_placeholder
        view.resize(shape)
        # What was in flight of the ask counts as the other kind from here on.
        if view.is_placeholder is not was_placeholder:
            on_their_way = self.flights.count_of(view)
            view.app.placing += on_their_way if view.is_placeholder else -on_their_way
        self.shapes.follow_reserved(view)
        self.asks.resync(view)
        if view.app.app.task_groups:
            self.gangs.follow(view.app)
        self.requeue.amounts_changed(view.app.leaf)
