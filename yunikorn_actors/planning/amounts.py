"""What the planner's view holds: the amounts in flight, and which asks take part.

Nothing else holds amounts, and `in_flight` is empty when everything has been settled.
"""

from collections.abc import Callable, Iterator

from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.gang import is_held_back
from yunikorn_actors.domain.ids import first_proposal_id
from yunikorn_actors.domain.limits import Limit
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.reserving import own_claim
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.planning.findings import Findings
from yunikorn_actors.planning.model.flights import InFlight, Place
from yunikorn_actors.planning.model.limits import LimitViews
from yunikorn_actors.planning.model.nodes import NodeIndex, NodeView
from yunikorn_actors.planning.model.tree import Tree
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, QueueView
from yunikorn_actors.planning.parts.gangs import Gangs


class Amounts:
    def __init__(
        self, state: PartitionState, scheduler_number: int = 0, *, reports: bool = False
    ) -> None:
        self.state = state
        self.findings = Findings(heard=reports)
        self.nodes = NodeIndex()
        self.tree = Tree(self.findings)
        self.gangs = Gangs()
        self._limits = LimitViews(state)
        self.apps: dict[int, AppView] = {}
        self.in_flight: dict[int, InFlight] = {}
        self._last_id = first_proposal_id(scheduler_number)
        self.order_is_stale = False
        """The cluster or the configuration changed since the last plan."""
        self.stale_leaves: dict[QueueView, None] = {}
        """Leaves whose amounts have changed: their rank is worked out once, before planning."""

        self.reserved_nodes: dict[str, None] = {}
        self.node_changes = 0
        """How often a node changed its size, or the asks that it is open for."""
        self.serving: dict[tuple[AskView, str], int] = {}
        """How many decisions in flight use a reservation, by ask and node."""
        self.reserving_is_stale = False
        """A change that may let a reservation be made, used or given up."""
        self.giving_up_waits = False
        """A reservation may have to be given up when what is on its way is settled."""
        self.preempting_is_stale = False
        """A change that may let an ask preempt, or a quota be enforced."""
        self.was_freed = False
        """A node is not kept any more, a decision about it has come out, or a victim has gone."""
        self.newly_waiting: dict[QueueView, int] = {}
        """Entitled leaves with new asks, and when the oldest of these asks was made."""
        self.roomy_nodes: dict[str, None] = {}
        """Reserved nodes that may have room now for the ask that they are reserved for."""
        self.unsettled_nodes: dict[str, None] = {}
        """Nodes kept for asks that can run nowhere else, that have changed."""
        self.unsettled_apps: dict[AppView, None] = {}
        """In leaves with a back-off: the pass over their asks may end in another way now."""

    def coming_to(self, node: NodeView) -> Iterator[Resource]:
        """Yield what decisions in flight take of a node."""
        for held in self.in_flight.values():
            if held.node is node:
                yield held.resource
        for swap in self.gangs.swaps.values():
            if swap.node is node:
                yield swap.resource

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def used_of(self, limit: Limit) -> Resource:
        """What counts against the limit of a user or group, with what is in flight."""
        view = self._limits.get(limit)
        return self.state.usage_of(limit).amounts if view is None else view.used()

    def ask_of(self, application_id: str, key: str) -> AskView | None:
        app = self.state.applications.get(application_id)
        return None if app is None else self.apps[app.serial].asks.get(key)

    def start(self, app: AppView) -> None:
        """A decision in flight makes the application count as running, if it does not yet."""
        if app.app.state is ApplicationState.ACCEPTED:
            app.starting += 1
            for level in app.leaf.application_limits:
                level.starting[app.app.serial] = None

    def take_place(self, app: AppView) -> Place:
        """A node is to be reserved for the application, or victims are to be preempted for it."""
        self.start(app)
        for limit in app.limits:
            limit.take(app, {})
        return Place(app, app.limits)

    def settle_place(self, place: Place) -> None:
        """From now on the application counts by its reservation, or not at all."""
        for limit in place.limits:
            limit.settle(place.app, {})
            self._wake(limit)
        if place.app.starting:
            self._started(place.app)

    def _started(self, app: AppView) -> None:
        app.starting -= 1
        self.gangs.room_has_changed = True
        if not app.starting:
            self._counts_itself(app)

    def _counts_itself(self, app: AppView) -> None:
        """It runs, or has nothing in flight any more: it counts by its state alone."""
        app.starting = 0
        for level in app.leaf.lineage:
            level.starting.pop(app.app.serial, None)
            self.tree.wake_held(level)

    def _settle(self, held: InFlight) -> None:
        """The decision is in flight no longer."""
        ask, app = held.ask, held.ask.app
        ask.inflight -= 1
        if ask.is_placeholder:
            app.placing -= 1
        self._settle_reserved(held)
        self._settle_limits(held)
        if app.starting:
            self._started(app)

    def _let_go(self, held: InFlight) -> InFlight:
        self._settle(held)
        app, is_placeholder = held.ask.app, held.is_placeholder
        self._give_back(app, held.leaf, held.resource, is_placeholder=is_placeholder)
        self.free_node(held.node, held.resource)
        if is_placeholder:
            self.follow_gang(app)
        return held

    def _settle_reserved(self, held: InFlight) -> None:
        key = (held.ask, held.node.id)
        if key in self.serving:
            self.serving[key] -= 1
            if not self.serving[key]:
                del self.serving[key]
            self.measure_claims(held.leaf)

    def measure_claims(self, leaf: QueueView) -> None:
        """Room promised to an ask reduces what the quotas leave to others, until it is used.

        A decision in flight that uses a promise counts as used already.
        """
        used = list(self._claims_in_use())
        for level in leaf.lineage[:-1]:
            level.redeemed = {}
            for user, claim in used:
                if level in user.lineage:
                    charge(level.redeemed, claim)
            former = level.limit
            level.read_limit()
            if level.limit != former:
                self._wake(level)

    def _claims_in_use(self) -> Iterator[tuple[QueueView, Resource]]:
        for (ask, node_id), repeats in self.serving.items():
            claim = own_claim(self.state, ask.ask, node_id)
            if claim is not None:
                yield from ((ask.app.leaf, claim) for _ in range(repeats))

    def free_node(self, node: NodeView, amount: Resource) -> None:
        """Give room back, unless the node was removed, or replaced by another of the same id."""
        if self.nodes.knows(node):
            self.nodes.give_back(node, amount)
            self.wake_for_node(node)

    def wake_for_node(self, node: NodeView) -> None:
        """The node may have more room than before."""
        self.tree.wake_shapes(node)
        self.gangs.wake()
        if node.node.reservations:
            self.roomy_nodes[node.id] = None

    def unsettle(self, view: NodeView) -> None:
        """The work on the node changed: asks that can run there alone look for victims again."""
        self.preempting_is_stale = True
        reservations = view.node.reservations
        if reservations and any(held.required for held in reservations.values()):
            self.unsettled_nodes[view.id] = None

    def keep_required(self, ask: AskView) -> None:
        """If its one node is not reserved for the repeats that wait, try these again."""
        node_id = ask.shape.required_node
        if node_id and ask.open and not ask.keeping and node_id not in ask.ask.reserved:
            self.tree.wake_required(node_id)

    def _settle_limits(self, held: InFlight) -> None:
        for limit in held.limits:
            limit.settle(held.ask.app, held.resource)
            self._wake(limit)

    def _wake(self, gate: Gate) -> None:
        if gate in self.tree.waiters:
            self.tree.wake_waiters(gate)
        self.tree.wake_held(gate)

    def _use(
        self, app: AppView, leaf: QueueView, amount: Resource, *, is_placeholder: bool
    ) -> None:
        if self.reserved_nodes:
            # An ask with a reservation may have lost its headroom: the reservation ends in time.
            self.reserving_is_stale = True
        entries = amount.items()
        for level in leaf.lineage:
            used = level.used
            for kind, quantity in entries:
                used[kind] = used.get(kind, 0) + quantity
        if leaf.sorts_by_usage and not is_placeholder:
            self._charge_app(app, amount, charge)

    def _give_back(
        self, app: AppView, leaf: QueueView, amount: Resource, *, is_placeholder: bool
    ) -> None:
        self.gangs.room_has_changed = True
        for level in leaf.lineage:
            discharge(level.used, amount)
        if leaf.sorts_by_usage and not is_placeholder:
            self._charge_app(app, amount, discharge)
        if self.tree.waiting_shapes:
            # An ask that waits for a node may have headroom again, and may reserve one.
            self.reserving_is_stale = True
        gates: tuple[Gate, ...] = (*leaf.limits, *app.limits)
        for gate in gates:
            self._wake(gate)

    def _charge_app(
        self, app: AppView, amount: Resource, write: Callable[[Resource, Resource], None]
    ) -> None:
        """Fair order goes by what an application uses."""
        self.tree.leave(app)
        write(app.used, amount)
        self.tree.enter(app)

    def resync(self, ask: AskView) -> None:
        """Let the repeats take part that wait, are not in flight, and no gang holds back."""
        waiting = wanted = max(0, ask.ask.remaining - ask.inflight)
        if waiting != ask.waiting:
            self.wait(ask, waiting - ask.waiting)
        if wanted and ask.app.app.task_groups and self._is_barred(ask):
            wanted = 0
        repeats = wanted - ask.open
        if repeats > 0:
            self._open(ask, repeats)
        elif repeats < 0:
            self._shut(ask, -repeats)

    def _is_barred(self, ask: AskView) -> bool:
        spec, app = ask.ask.spec, ask.app
        barred = is_held_back(app.app, spec, app.placing, is_admitting=app.is_admitting)
        if barred and not spec.placeholder:
            self.gangs.look(app)
        return barred

    def follow_gang(self, app: AppView) -> None:
        """What a gang holds back may have changed: its asks take part as they should."""
        was_held = app.bars[0]
        if self.gangs.follow(app):
            for ask in tuple(app.asks.values()):
                self.resync(ask)
            self.stale_leaves[app.leaf] = None
            if app.bars[0] and not was_held:
                # It no longer wants to start, so others may.
                self.wake_applications(app)
        if app.turn is not None:
            self.end_turn(app)
            if app.held_gang is not None:
                self.give_turn(app)

    def give_turn(self, app: AppView) -> None:
        """Let a held gang stand where the first of its placeholders would."""
        waiting = [ask for ask in app.asks.values() if ask.is_placeholder and ask.waiting]
        if app.turn is None and waiting:
            first = min(waiting, key=lambda ask: ask.order)
            app.turn = AskView(app, first.ask, self.tree.turns, {}, first.order, open=1)
            self.tree.add_ask(app.turn)
            self.tree.rekey(app.leaf)

    def end_turn(self, app: AppView) -> None:
        if app.turn is not None:
            self.tree.drop_ask(app.turn)
            app.turn = None
            self.tree.rekey(app.leaf)

    def wait(self, ask: AskView, repeats: int) -> None:
        """Count so many more (or fewer) waiting repeats, whether their gang holds them or not."""
        ask.waiting += repeats
        total = repeats * ask.shape.total
        for level in ask.app.leaf.lineage:
            level.waiting += total

    def _open(self, ask: AskView, repeats: int) -> None:
        was_open = ask.open > 0
        ask.open += repeats
        if not was_open:
            ask.shape.oldest_ns = min(ask.shape.oldest_ns, ask.ask.created_ns)
            self.tree.add_ask(ask)
            if ask.app.leaf.queue.properties.backoff_count:
                self.unsettled_apps[ask.app] = None
            if ask.app.leaf.is_entitled:
                self._notice(ask)
            if ask.shape.waits_for_node or (self.reserved_nodes and ask.app.leaf.is_stateaware):
                # It may get a reservation, or go before an application that has one.
                self.reserving_is_stale = True
            self.findings.look_into(ask)

    def _notice(self, ask: AskView) -> None:
        """The ask may preempt once it has waited long enough."""
        leaf, created_ns = ask.app.leaf, ask.ask.created_ns
        if created_ns < self.newly_waiting.get(leaf, created_ns + 1):
            self.newly_waiting[leaf] = created_ns
            self.preempting_is_stale = True

    def _shut(self, ask: AskView, repeats: int) -> None:
        ask.open -= repeats
        if not ask.open:
            self.tree.drop_ask(ask)

    # -- asks and applications

    def watch(self, app: AppView, ask: Ask) -> AskView:
        shape = self.tree.shape_of(ask.spec)
        spec = ask.spec
        watched = AskView(app, ask, shape, spec.resource, ask.order(), spec.placeholder)
        app.asks[ask.spec.key] = watched
        self.resync(watched)
        self.stale_leaves[app.leaf] = None
        return watched

    def _withdraw(self, view: AskView) -> None:
        """Nothing of the ask as it is takes part, or waits."""
        if view.open:
            self._shut(view, view.open)
        self.wait(view, -view.waiting)

    def unwatch(self, view: AskView) -> None:
        self._withdraw(view)
        view.gone = True
        self.tree.forget_reserved(view)
        del view.app.asks[view.ask.spec.key]

    def rekey_app(self, view: AppView) -> None:
        """Its age or what it runs has changed: another application may be the next to start."""
        self.tree.rekey_app(view)
        if view.held_gang is not None:
            self.follow_gang(view)
        if view.held_by is not None:
            self.tree.come_back(view)
        self.wake_applications(view)

    def wake_applications(self, view: AppView) -> None:
        self.gangs.room_has_changed = True
        if self.reserved_nodes:
            # An application with one may not start any more: its reservation ends in time.
            self.reserving_is_stale = True
        for level in view.leaf.application_limits:
            self.tree.wake_held(level)
        for limit in view.limits:
            if limit.members:
                self._wake(limit)
