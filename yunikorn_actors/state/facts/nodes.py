"""Facts about nodes, and about the work of other schedulers on them."""

from collections.abc import Iterable
from typing import ClassVar

from msgspec import field

from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.facts.fact import Base, Incident, IncidentKind, in_amounts, placed_on
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource, charge, discharge

__all__ = [
    "ClusterResized",
    "ForeignAllocationPut",
    "ForeignAllocationRemoved",
    "NodeActionRefused",
    "NodeAdded",
    "NodeAttributesReplaced",
    "NodeFact",
    "NodeRemoved",
    "NodeResized",
    "NodeScheduleChanged",
]


class NodeAdded(Base, frozen=True, kw_only=True):
    node_id: str
    capacity: Resource
    occupied: Resource
    attributes: dict[str, str]
    drained: bool
    ready: bool
    at_ns: int

    def change(self, state: PartitionState) -> None:
        node = Node.reported(
            self.node_id,
            capacity=self.capacity,
            occupied=self.occupied,
            attributes=self.attributes,
            drained=self.drained,
            ready=self.ready,
        )
        state.nodes[self.node_id] = node
        # Kept as a number: how many nodes may be reserved depends on it.
        state.schedulable_count += node.is_schedulable
        charge(state.capacity, node.capacity)

    def in_words(self) -> str:
        openness = _openness(drained=self.drained, ready=self.ready)
        return f"{self.node_id} {in_amounts(self.capacity)} {openness}"


class NodeResized(Base, frozen=True, kw_only=True):
    """New amounts of a node: capacity, and what its resource manager reports as occupied."""

    node_id: str
    old_capacity: Resource
    old_occupied: Resource
    capacity: Resource
    occupied: Resource
    at_ns: int

    def change(self, state: PartitionState) -> None:
        node = state.nodes[self.node_id]
        # Taken off and added again: types may come and go with a new size.
        _drop_capacity(state, node.capacity)
        node.set_sizes(self.capacity, self.occupied)
        charge(state.capacity, node.capacity)

    def in_words(self) -> str:
        before = f"{in_amounts(self.old_capacity)} occupied {in_amounts(self.old_occupied)}"
        after = f"{in_amounts(self.capacity)} occupied {in_amounts(self.occupied)}"
        return f"{self.node_id} {before} -> {after}"


class NodeAttributesReplaced(Base, frozen=True, kw_only=True):
    node_id: str
    attributes: dict[str, str]
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.nodes[self.node_id].describe(self.attributes)


class NodeScheduleChanged(Base, frozen=True, kw_only=True):
    """Drained, opened again, reported (not) ready, or awaited after a restart."""

    node_id: str
    was_drained: bool
    was_ready: bool
    drained: bool
    ready: bool
    at_ns: int
    awaited: bool = False

    def change(self, state: PartitionState) -> None:
        node = state.nodes[self.node_id]
        state.schedulable_count -= node.is_schedulable
        node.drained = self.drained
        node.ready = self.ready
        node.awaited = self.awaited
        state.schedulable_count += node.is_schedulable

    def in_words(self) -> str:
        awaited = ", awaited" if self.awaited else ""
        return f"{self.node_id} {_openness(drained=self.drained, ready=self.ready)}{awaited}"


class NodeRemoved(Base, frozen=True, kw_only=True):
    node_id: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        node = state.nodes.pop(self.node_id)
        state.schedulable_count -= node.is_schedulable
        for key in node.foreign:
            del state.foreign[key]
        _drop_capacity(state, node.capacity)

    def incidents(self) -> Iterable[Incident]:
        yield Incident(IncidentKind.LOST, self.node_id, "the node was removed")


class ClusterResized(Base, frozen=True, kw_only=True):
    """What all nodes have together is another amount: the maximum of the root queue."""

    capacity: Resource
    at_ns: int

    def change(self, _: PartitionState) -> None:
        """The sum has followed from the nodes already; this says it to those who keep no sums."""

    def in_words(self) -> str:
        return in_amounts(self.capacity)


class NodeActionRefused(Base, frozen=True, kw_only=True):
    """An action that made no sense changed nothing; this is all that is left of it."""

    is_record: ClassVar[bool] = True
    node_id: str
    action: int
    reason: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.refused_node_actions += 1

    def in_words(self) -> str:
        return f"{self.node_id} action {self.action}: {self.reason}"

    def incidents(self) -> Iterable[Incident]:
        yield Incident(IncidentKind.REFUSED, self.node_id, self.reason)


class ForeignAllocationPut(Base, frozen=True, kw_only=True):
    """Work of another scheduler is on this node, with this size; it left any other before."""

    key: str
    node_id: str
    resource: Resource
    at_ns: int
    tags: dict[str, str] = field(default_factory=dict)
    priority: int = 0
    created_ns: int = 0

    def change(self, state: PartitionState) -> None:
        # Moved by its key, so it never counts on two nodes.
        _drop_foreign(state, self.key)
        foreign = ForeignAllocation(
            key=self.key,
            node_id=self.node_id,
            resource=self.resource,
            tags=self.tags,
            priority=self.priority,
            created_ns=self.created_ns,
        )
        state.foreign[self.key] = foreign
        node = state.nodes[self.node_id]
        node.foreign[self.key] = foreign
        node.set_sizes(node.capacity, node.occupied_reported)

    def in_words(self) -> str:
        return f"{placed_on(self.key, self.node_id)} {in_amounts(self.resource)}"


class ForeignAllocationRemoved(Base, frozen=True, kw_only=True):
    key: str
    node_id: str
    resource: Resource
    at_ns: int

    def change(self, state: PartitionState) -> None:
        _drop_foreign(state, self.key)


NodeFact = (
    NodeAdded
    | NodeResized
    | NodeAttributesReplaced
    | NodeScheduleChanged
    | NodeRemoved
    | ClusterResized
    | NodeActionRefused
    | ForeignAllocationPut
    | ForeignAllocationRemoved
)


# Absent and 0 differ: a maximum of the root that is absent does not bound.
def _drop_capacity(state: PartitionState, capacity: Resource) -> None:
    """A type that no node offers any more is unknown again, which is not a max of zero."""
    discharge(state.capacity, capacity)
    for kind in capacity:
        if not state.capacity[kind]:
            del state.capacity[kind]


def _drop_foreign(state: PartitionState, key: str) -> None:
    known = state.foreign.pop(key, None)
    if known is not None:
        node = state.nodes[known.node_id]
        del node.foreign[key]
        node.set_sizes(node.capacity, node.occupied_reported)


def _openness(drained: bool, ready: bool) -> str:
    word = "drained" if drained else "open"
    return word if ready else f"{word}, not ready"
