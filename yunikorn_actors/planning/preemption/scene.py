"""The scene: a partition as one plan sees it, with what is on its way and what was decided.

It is made when a plan first looks for victims and forgotten with the plan.
"""

from collections.abc import Callable, Container, Iterable

from msgspec import Struct

from yunikorn_actors.planning.model.in_flight import Place
from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.preemption.claimant import (
    earmarks_of,
    is_limited_by_promises,
    room_on,
)
from yunikorn_actors.planning.preemption.device_room import freed, keep, with_parts
from yunikorn_actors.planning.preemption.required_node import Claims, is_refused_beside
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.state.allocations import (
    Allocation,
    AskSpec,
    Beneficiary,
    PreemptionRule,
    ReservationKey,
)
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import expected, staying
from yunikorn_actors.state.proposals import VictimRef
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.reserved_nodes import kept_for, used_up
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge


class Flight(Struct):
    """A decision on its way to Context, with the room that it counts on."""

    beneficiary: Beneficiary
    victims: tuple[VictimRef, ...]
    ask: AskView | None
    node: NodeView | None
    resource: Resource
    place: Place | None = None
    """Its application keeps its place while victims are on their way out for it."""


def _is_never_asked_about(_: AskSpec) -> bool:
    return False


class Scene:
    def __init__(
        self,
        model: Model,
        in_flight: Iterable[Flight],
        now_ns: int,
        is_asked_about: Callable[[AskSpec], bool] = _is_never_asked_about,
    ) -> None:
        self._model = model
        self.now_ns = now_ns
        self._is_asked_about = is_asked_about
        """Whether the resource manager is asked first about decisions for an ask: until it answers,
        the node is closed to others."""
        self.is_trial = False
        """What is found here is not decided, so no node closes behind it."""
        self.state: PartitionState = model.state
        self.usage = ExpectedUsage(self._expected)
        self.staying = ExpectedUsage(staying)
        """Without promised room: a quota does not preempt for work that has not come."""
        self.throttle = Throttle(self.state, now_ns)
        self.spare: dict[int, Resource] = {}
        """What gangs have left beyond their need, by the serial of their application."""
        self._rooms: dict[str, Resource | None] = {}
        self.taken: dict[str, None] = {}
        """UUIDs of victims that are decided already."""
        self._giving: dict[str, None] = {}
        """The nodes on which they are."""
        self.changed: list[str] = []
        """Nodes on which a victim was taken or room was promised, one after the other."""
        self._owing: dict[str, Resource] = {}
        """What decisions in flight promise of a node, less the promises that placements use up."""
        self._owing_devices: dict[str, list[int]] = {}
        """How much of devices each of these decisions promises."""
        self._served: dict[str, list[ReservationKey]] = {}
        """Asks that placements on their way serve, by the node that was promised to them."""
        self._deciding: dict[str, int] = {}
        """For each node: how many decisions in flight are about it."""
        self._cleared: dict[str, None] = {}
        self._promised_to: dict[AppView, Resource] = {}
        # What the replica has promised already; what is in flight comes next.
        for node_id in model.reserved_nodes:
            for kept in self.state.nodes[node_id].reservations.values():
                if kept.earmark is not None:
                    self._owe(model.app_of(kept.application_id), kept.promised)
        # What is on its way counts as if it had happened: two decisions never count on the same
        # room.
        for flight in in_flight:
            self._decided(flight)
        for swap in model.flights.swaps.values():
            # A placeholder that leaves frees its room, wherever its member goes.
            if swap.is_leaving:
                self.take(swap.placeholder)
            # Only where it is cancelled: in a swap the member keeps the usage.
            if swap.is_leaving and not swap.is_swap:
                self.usage.take(swap.ask.app.leaf.queue, swap.placeholder.resource)
                self.staying.take(swap.ask.app.leaf.queue, swap.placeholder.resource)
        for (ask, node_id), repeats in model.flights.serving.items():
            for _ in range(repeats):
                self._serve(ask, node_id)

    def _expected(self, queue: Queue) -> Resource:
        """As in the replica, with what proposals in flight will use."""
        # As planned: the tree has what is in flight, the replica only what was committed.
        used = expected(queue)
        view = self._model.tree.queues[queue.path]
        charge(used, view.used)
        discharge(used, queue.allocated)
        return used

    @property
    def has_promises(self) -> bool:
        """Whether anything is promised that may yet be given up."""
        return bool(self._promised_to)

    def _owe(self, app: AppView, amount: Resource) -> None:
        charge(self._promised_to.setdefault(app, {}), amount)

    def _decided(self, flight: Flight) -> None:
        """Count a decision of a former plan that is not resolved yet."""
        if flight.ask is not None and flight.beneficiary.rule is PreemptionRule.GUARANTEE:
            self.usage.add(flight.ask.app.leaf.queue, flight.resource)
            self._owe(flight.ask.app, flight.resource)
            if flight.node is not None and not self._is_asked_about(flight.ask.ask.spec):
                id_ = flight.node.id
                self._cleared[id_] = None
                self._deciding[id_] = self._deciding.get(id_, 0) + 1
                charge(self._owing.setdefault(id_, {}), flight.resource)
                self._owing_devices.setdefault(id_, []).append(amount_of(flight.resource))
        for ref in flight.victims:
            app = self.state.applications.get(ref.application_id)
            # A victim may have ended meanwhile: then nothing of it is left to count.
            victim = None if app is None else app.allocations.get(ref.uuid)
            # Context may have asked it back meanwhile: then the replica counts it as gone already.
            if app is not None and victim is not None and victim.releasing is None:
                self.usage.take(app.queue, victim.resource)
                self.staying.take(app.queue, victim.resource)
                self.throttle.take(app.queue, 1)
                self.take(victim)

    def _serve(self, ask: AskView, node_id: str) -> None:
        """An ask about to be placed uses room and gives its promise up, here or elsewhere."""
        # At most one promise of an ask is used up by each placement.
        kept = used_up(self.state, ask.ask, node_id) if ask.ask.reserved else None
        earmark = None if kept is None else kept_for(self.state, ask.ask, kept).earmark
        if kept is not None and earmark is not None:
            self.usage.take(ask.app.leaf.queue, earmark)
            discharge(self._owing.setdefault(kept, {}), earmark)
            discharge(self._promised_to[ask.app], earmark)
            self._served.setdefault(kept, []).append((ask.app.app.id, ask.ask.spec.key))

    def room_on(self, node: Node) -> Resource | None:
        """Return the room that is free or comes free and is not promised; None if it is closed."""
        if node.id not in self._rooms:
            view = self._model.nodes.views[node.id]
            room = None
            # Another ask is about to have the node kept, or given up: what is free there is not
            # known.
            if view.keeping <= self._deciding.get(node.id, 0):
                # Each search looks at all nodes, and hardly any tells its devices apart.
                free = view.free if node.parts is None else with_parts(view.free, view.parts)
                taken = self.taken if node.id in self._giving else ()
                room = room_on(node, free, taken, self._served.get(node.id, ()))
                discharge(room, self._owing.get(node.id, {}))
                for amount in self._owing_devices.get(node.id, ()):
                    keep(room, amount)
            self._rooms[node.id] = room
        return self._rooms[node.id]

    def free_on(self, node: Node) -> Resource:
        view = self._model.nodes.views[node.id]
        # All types of devices apart, as victims free them by device.
        return view.free if node.parts is None else with_parts(view.free, view.parts)

    def is_opening(self, node: Node) -> bool:
        """Whether all asks with a reservation here are about to be placed: then the node opens."""
        serving, ask_of = self._model.flights.serving, self._model.ask_of
        kept = node.reservations.values()
        asks = ((ask_of(item.application_id, item.key), item.repeats) for item in kept)
        return bool(kept) and all(
            ask is not None and serving.get((ask, node.id), 0) >= repeats for ask, repeats in asks
        )

    def is_cleared(self, node: Node) -> bool:
        """Whether the reservations that only waited there have given way already."""
        return node.id in self._cleared

    def promise(self, node: Node, app: AppView, spec: AskSpec, *, waits: bool = False) -> None:
        """Promise room on the node to an ask of this application.

        `waits`: the ask only waits for the room, so no question goes out and the rest stays known.
        """
        amount = spec.resource
        self._owe(app, amount)
        self._cleared[node.id] = None
        room = self.room_on(node)
        # From here on the node belongs to that question: nothing else counts on its room.
        if self._is_asked_about(spec) and not (waits or self.is_trial):
            self._rooms[node.id] = None
        elif room is not None:
            discharge(room, amount)
            keep(room, amount_of(amount))
        self.changed.append(node.id)

    def take(self, victim: Allocation) -> None:
        self.taken[victim.uuid] = None
        self._giving[victim.node_id] = None
        room = self._rooms.get(victim.node_id)
        if room is not None:
            charge(room, freed(victim))
        self.changed.append(victim.node_id)

    def would_exceed_limit(self, app: AppView, wanted: Resource) -> bool:
        """Whether a limit has no room for it once all promised room is used."""
        # A limit counts all of its applications, and so do the promises to them.
        for limit in app.limits:
            coming = dict(wanted)
            for other, amount in self._promised_to.items():
                if limit in other.limits:
                    charge(coming, amount)
            if not limit.room_for(
                tuple((kind, coming[kind]) for kind, n in wanted.items() if n > 0)
            ):
                return True
        return False


def free_on(model: Model, node: NodeView) -> Resource:
    """Return what is free on a node when all that moves away is gone."""
    free = dict(with_parts(node.free, node.parts))
    # A swap that is decided frees its placeholder's room for others on this node.
    for swap in model.flights.swaps.values():
        if swap.is_leaving and swap.placeholder.node_id == node.id:
            charge(free, freed(swap.placeholder))
    return free


def is_refused(
    model: Model,
    app: AppView,
    wanted: Resource,
    own: Container[str],
    in_flight: Iterable[Flight],
) -> bool:
    """A queue, a limit or a want of places refuses it: room on its node would not help it.

    That is of asks that require their nodes; `own` are those that want this together.
    """
    entries = tuple((kind, size) for kind, size in wanted.items() if size > 0)
    claims: Claims = {
        (it.beneficiary.application_id, it.beneficiary.key): it.resource
        for it in in_flight
        if it.victims
        and it.beneficiary.rule is PreemptionRule.REQUIRED_NODE
        and it.ask is not None
        and not it.ask.gone
    }
    return (
        # A quota, a limit, a place or a promise: any of them makes victims useless.
        app.leaf.refusing_quota(entries) is not None
        or refusing_limit(app.limits, entries) is not None
        or app.blocked_at() is not None
        or is_limited_by_promises(model.state, app.app, wanted)
        or is_refused_beside(model.state, app.app, wanted, own, claims)
    )


def repeats_left(state: PartitionState, ask: AskView) -> int:
    """Each repeat causes one preemption at a time: its earmark remembers (R-077)."""
    # A gang that awaits its admission claims for all of its placeholders, though none is tried.
    is_held = ask.is_placeholder and ask.app.awaiting_gang is not None
    waiting = ask.waiting if is_held else ask.open
    # What is being kept for it and what has an earmark is served already.
    return max(0, waiting - earmarks_of(state, ask.ask) - ask.keeping)
