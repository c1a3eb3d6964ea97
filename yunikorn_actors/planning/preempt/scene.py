"""A partition as one plan sees it: the replica, what is on its way, and what the plan has decided.

It is made when a plan first looks for victims and forgotten with the plan.
"""

from collections.abc import Iterable

from msgspec import Struct

from yunikorn_actors.domain.allocation import Allocation
from yunikorn_actors.domain.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.preempting import expected, staying
from yunikorn_actors.domain.proposals import VictimRef
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.planning.flights import Place
from yunikorn_actors.planning.nodes import NodeView
from yunikorn_actors.planning.preempt.asking import room_on
from yunikorn_actors.planning.preempt.usage import Usage
from yunikorn_actors.planning.view import View
from yunikorn_actors.planning.views import AskView


class Flight(Struct):
    """A decision on its way, with what it counts on."""

    beneficiary: Beneficiary
    victims: tuple[VictimRef, ...]
    ask: AskView | None
    node: NodeView | None
    resource: Resource
    place: Place | None = None
    """Its application is not to lose its place while others go for it."""


class Scene:
    def __init__(self, view: View, in_flight: Iterable[Flight]) -> None:
        self._view = view
        self.state: PartitionState = view.state
        self.usage = Usage(self._expected)
        self.staying = Usage(staying)
        """Without what is promised: a quota does not take for work that has not come."""
        self._rooms: dict[str, Resource | None] = {}
        self.taken: dict[str, None] = {}
        """UUIDs of those that have to go already."""
        for held in in_flight:
            self._promised(held)
        for ask, node_id in view.serving:
            self._serve(ask, node_id)

    def _expected(self, queue: Queue) -> Resource:
        """As in the replica, with what proposals in flight will use."""
        used = expected(queue)
        view = self._view.tree.queues[queue.path]
        charge(used, view.used)
        discharge(used, queue.allocated)
        return used

    def _promised(self, held: Flight) -> None:
        """Count a decision of a former plan that is not settled yet."""
        if held.ask is not None and held.beneficiary.rule is PreemptionRule.GUARANTEE:
            self.usage.add(held.ask.app.leaf.queue, held.resource)
        for ref in held.victims:
            app = self.state.applications.get(ref.application_id)
            victim = None if app is None else app.allocations.get(ref.uuid)
            if app is not None and victim is not None and victim.releasing is None:
                self.usage.take(app.queue, victim.resource)
                self.staying.take(app.queue, victim.resource)
                self.take(victim)

    def _serve(self, ask: AskView, node_id: str) -> None:
        """An ask on its way to the room that was made for it is used, not promised as well."""
        node, spec = self.state.nodes.get(node_id), ask.ask.spec
        held = node and node.reservations.get((spec.application_id, spec.key))
        if held and held.claim is not None:
            self.usage.take(ask.app.leaf.queue, held.claim)

    def room_on(self, node: Node) -> Resource | None:
        """Return what the node has and will have; None where it is not to be had."""
        if node.id not in self._rooms:
            view = self._view.nodes.views[node.id]
            self._rooms[node.id] = None if view.keeping else room_on(node, view.free, self.taken)
        return self._rooms[node.id]

    def keep(self, node: Node) -> None:
        """Nobody else may look at this node within the plan."""
        self._rooms[node.id] = None

    def promise(self, node: Node, amount: Resource) -> None:
        """What comes free there by itself is for somebody already."""
        room = self.room_on(node)
        if room is not None:
            discharge(room, amount)

    def take(self, victim: Allocation) -> None:
        self.taken[victim.uuid] = None
        room = self._rooms.get(victim.node_id)
        if room is not None:
            charge(room, victim.resource)
