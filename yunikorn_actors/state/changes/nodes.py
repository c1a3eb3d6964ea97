"""How facts about nodes change a partition."""

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource, charge, discharge


def node_added(state: PartitionState, fact: f.NodeAdded) -> None:
    node = Node.reported(
        fact.node_id,
        capacity=fact.capacity,
        occupied=fact.occupied,
        attributes=fact.attributes,
        drained=fact.drained,
        ready=fact.ready,
    )
    state.nodes[fact.node_id] = node
    state.schedulable_count += node.is_schedulable
    charge(state.capacity, node.capacity)


def node_resized(state: PartitionState, fact: f.NodeResized) -> None:
    node = state.nodes[fact.node_id]
    _drop_capacity(state, node.capacity)
    node.set_sizes(fact.capacity, fact.occupied)
    charge(state.capacity, node.capacity)


def node_attributes_replaced(state: PartitionState, fact: f.NodeAttributesReplaced) -> None:
    state.nodes[fact.node_id].describe(fact.attributes)


def node_schedule_changed(state: PartitionState, fact: f.NodeScheduleChanged) -> None:
    node = state.nodes[fact.node_id]
    state.schedulable_count -= node.is_schedulable
    node.drained = fact.drained
    node.ready = fact.ready
    state.schedulable_count += node.is_schedulable


def node_removed(state: PartitionState, fact: f.NodeRemoved) -> None:
    node = state.nodes.pop(fact.node_id)
    state.schedulable_count -= node.is_schedulable
    for key in node.foreign:
        del state.foreign[key]
    _drop_capacity(state, node.capacity)


def _drop_capacity(state: PartitionState, capacity: Resource) -> None:
    """A type that no node offers any more is unknown again, which is not a max of zero."""
    discharge(state.capacity, capacity)
    for kind in capacity:
        if not state.capacity[kind]:
            del state.capacity[kind]


def cluster_resized(_: PartitionState, __: f.ClusterResized) -> None:
    """The sum has followed from the nodes already; this says it to those who keep no sums."""


def node_action_refused(state: PartitionState, _: f.NodeActionRefused) -> None:
    state.refused_node_actions += 1


def foreign_put(state: PartitionState, fact: f.ForeignAllocationPut) -> None:
    _drop_foreign(state, fact.key)
    foreign = ForeignAllocation(
        key=fact.key,
        node_id=fact.node_id,
        resource=fact.resource,
        tags=fact.tags,
        priority=fact.priority,
        created_ns=fact.created_ns,
    )
    state.foreign[fact.key] = foreign
    node = state.nodes[fact.node_id]
    node.foreign[fact.key] = foreign
    node.set_sizes(node.capacity, node.occupied_reported)


def foreign_removed(state: PartitionState, fact: f.ForeignAllocationRemoved) -> None:
    _drop_foreign(state, fact.key)


def _drop_foreign(state: PartitionState, key: str) -> None:
    known = state.foreign.pop(key, None)
    if known is not None:
        node = state.nodes[known.node_id]
        del node.foreign[key]
        node.set_sizes(node.capacity, node.occupied_reported)
