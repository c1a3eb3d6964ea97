"""Amounts in use on nodes, in queues and under limits: those of the replica and those in flight.

When a proposal is committed its amounts move from in flight to the replica, so nothing changes here
at all: that makes committing cheap.
"""

from collections.abc import Callable, Iterator
from itertools import repeat

from yunikorn_actors.planning.model.in_flight import Flights
from yunikorn_actors.planning.model.nodes import NodeIndex, NodeView
from yunikorn_actors.planning.model.participants import Participants
from yunikorn_actors.planning.model.tree import ModelParts
from yunikorn_actors.planning.model.views import AppView, Gate
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.reserved_nodes import own_earmark
from yunikorn_actors.values.resource import Resource, charge, discharge


class Amounts:
    def __init__(
        self,
        state: PartitionState,
        nodes: NodeIndex,
        model_parts: ModelParts,
        participants: Participants,
        flights: Flights,
    ) -> None:
        self._state = state
        self._nodes = nodes
        self._shapes, self._tree, self._reserved_nodes, self._requeue = model_parts
        self._participants = participants
        self._flights = flights
        self._redeemed: dict[tuple[AppView, str], tuple[Resource, ...]] = {}
        """Promises that decisions in flight use, by the application and the key of their ask."""
        self.node_changes = 0
        """How often a node changed its size, or the asks that it is open for."""

    # -- queues

    def use(self, app: AppView, amount: Resource, *, is_placeholder: bool, waited: int = 0) -> None:
        """Charge the queues; `waited` is the total of what waits no longer for it."""
        if self._reserved_nodes:
            self._requeue.headroom_changed()
        # Not `charge`: this runs for each level at each placement, and the call would cost more.
        entries = amount.items()
        leaf = app.leaf
        for level in leaf.lineage:
            used = level.used
            level.waiting -= waited
            for kind, quantity in entries:
                used[kind] = used.get(kind, 0) + quantity
        # Placeholders do not count in the fair order (see `use_placeholder`).
        if leaf.sorts_by_usage and not is_placeholder:
            self._charge_app(app, amount, charge)

    def give_back(self, app: AppView, amount: Resource, *, is_placeholder: bool) -> None:
        leaf, entries = app.leaf, amount.items()
        for level in leaf.lineage:
            used = level.used
            for kind, quantity in entries:
                used[kind] = used.get(kind, 0) - quantity
        if leaf.sorts_by_usage and not is_placeholder:
            self._charge_app(app, amount, discharge)
        self._requeue.headroom_rose(some_wait_for_node=bool(self._shapes.waiting))
        # After the amounts: a shape that is woken is asked at once whether there is room now.
        gates: tuple[Gate, ...] = (*leaf.limits, *app.limits)
        for gate in gates:
            self._participants.wake(gate)

    def use_placeholder(self, app: AppView, amount: Resource) -> None:
        """Work of its size took its place: only the fair order counts that otherwise."""
        if app.leaf.sorts_by_usage:
            self._charge_app(app, amount, charge)

    def _charge_app(
        self, app: AppView, amount: Resource, write: Callable[[Resource, Resource], None]
    ) -> None:
        """In the fair order what an application uses decides its place."""
        self._tree.leave(app)
        write(app.used, amount)
        if app.leaf.changed is not None:
            app.leaf.changed[app] = None
        self._tree.enter(app)

    def measure_earmarks(self, app: AppView, key: str) -> None:
        """Work out what is promised to one ask and used by decisions in flight.

        Promised room reduces what the quotas leave to others, until it is used. A decision in
        flight that uses a promise counts as used already. Only the promises to this ask have
        changed: adding up those of all others each time would be quadratic.
        """
        before = self._redeemed.pop((app, key), ())
        now = tuple(self.earmarks_in_use(app, key))
        if now:
            self._redeemed[app, key] = now
        # The root has no quota, so it keeps nothing for promises.
        for level in app.leaf.lineage[:-1]:
            for earmark in before:
                discharge(level.redeemed, earmark)
            for earmark in now:
                charge(level.redeemed, earmark)
            former = level.limit
            level.read_limit()
            # Less is kept from others than before: somebody may have room now.
            if level.limit != former:
                self._participants.wake(level)

    def earmarks_in_use(self, app: AppView, key: str) -> Iterator[Resource]:
        """Yield what was promised to the ask and is used by decisions in flight."""
        flights = self._flights
        for served in flights.serving_for.get((app.app.id, key), ()):
            ask, node_id = served
            # A former application of this name may have decisions in flight, too.
            if ask.app is app:
                earmark = own_earmark(self._state, ask.ask, node_id)
                if earmark is not None:
                    yield from repeat(earmark, flights.serving[served])

    # -- nodes

    def charge(self, app: AppView, node_id: str, amount: Resource, *, is_placeholder: bool) -> None:
        """Charge work that no decision in flight has charged."""
        self._nodes.take(self._nodes.views[node_id], amount)
        self.use(app, amount, is_placeholder=is_placeholder)

    def free_node(self, node: NodeView, amount: Resource) -> None:
        """Give room back, unless the node was removed, or replaced by another of the same id."""
        # After a removal its room is nobody's, and a node of the same name has its own.
        if self._nodes.knows(node):
            self._nodes.give_back(node, amount)
            self.room_came(node)

    def room_came(self, node: NodeView) -> None:
        """The node may have more room than before."""
        self._tree.wake_shapes(node)
        self._requeue.room_came(node)

    def refresh_node(self, view: NodeView) -> None:
        """Work the free room out anew: the node itself or its reservations changed."""
        # Worked out anew and not adjusted: the node may have changed in any way, and it is rare.
        free = dict(view.node.available)
        for amount in self._flights.coming_to(view):
            discharge(free, amount)
        self._nodes.refresh(view, free)
        self.room_came(view)
        self.node_changes += 1
        self._requeue.node_changed()
        self._requeue.work_changed(view)
