"""What is true of a partition, its queues and its nodes."""

from msgspec import field

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.state.long_work import LongWork
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.values.resource import Resource


class PartitionConfigured(Base, frozen=True, kw_only=True):
    """The settings of the partition itself; its queues have facts of their own."""

    config: PartitionConfig


class SchedulingHeld(Base, frozen=True, kw_only=True):
    """The partition is suspended, so nothing new is decided for it; or that ends."""

    held: bool
    behind: bool = False
    """Because its resource manager does not take its messages; else that one is away."""
    at_ns: int


class LongWorkStarted(Base, frozen=True, kw_only=True):
    """Context handles something in slices: nothing is decided before it has ended."""

    work: LongWork
    at_ns: int


class LongWorkEnded(Base, frozen=True, kw_only=True):
    at_ns: int


class MachineReplaced(Base, frozen=True, kw_only=True):
    """A machine that serves this partition has failed, and another has taken its place."""

    machine: str
    failure: str
    at_ns: int
    lost_records: int = 0
    """Event records that can no longer be read."""
    missed_facts: int = 0
    """Of this partition, of which no record was made."""


class ConfigurationRefused(Base, frozen=True, kw_only=True):
    """The administrator's configuration was refused, and the former one stays; for operators."""

    reason: str
    at_ns: int


class PolicyFailed(Base, frozen=True, kw_only=True):
    """A policy has failed, and the built-in order decides in its place; for operators.

    Without a queue it is that of the nodes.
    """

    queue: str
    policy: str
    failure: str
    at_ns: int

    @property
    def text(self) -> str:
        whose = f"of queue {self.queue}" if self.queue else "of the nodes"
        return f"the policy {self.policy} {whose} has failed and decides no more: {self.failure}"


class AdministratorActed(Base, frozen=True, kw_only=True):
    """An administrator has changed something by hand; what followed has facts of its own."""

    what: str
    by: str
    """Who, as far as the edge knows."""
    node_id: str = ""
    """If it was a node."""
    at_ns: int


class QueueAdded(Base, frozen=True, kw_only=True):
    path: str
    spec: QueueSpec
    at_ns: int


class QueueReconfigured(Base, frozen=True, kw_only=True):
    path: str
    old_spec: QueueSpec
    spec: QueueSpec
    at_ns: int


class QueueStateChanged(Base, frozen=True, kw_only=True):
    path: str
    state: QueueState
    at_ns: int


class QueueRemoved(Base, frozen=True, kw_only=True):
    path: str
    managed: bool
    at_ns: int


class NodeAdded(Base, frozen=True, kw_only=True):
    node_id: str
    capacity: Resource
    occupied: Resource
    attributes: dict[str, str]
    drained: bool
    ready: bool
    at_ns: int


class NodeResized(Base, frozen=True, kw_only=True):
    """New amounts of a node: capacity, and what its resource manager reports as occupied."""

    node_id: str
    old_capacity: Resource
    old_occupied: Resource
    capacity: Resource
    occupied: Resource
    at_ns: int


class NodeAttributesReplaced(Base, frozen=True, kw_only=True):
    node_id: str
    attributes: dict[str, str]
    at_ns: int


class NodeScheduleChanged(Base, frozen=True, kw_only=True):
    """Drained, opened again, or reported (not) ready."""

    node_id: str
    was_drained: bool
    was_ready: bool
    drained: bool
    ready: bool
    at_ns: int


class NodeRemoved(Base, frozen=True, kw_only=True):
    node_id: str
    at_ns: int


class ClusterResized(Base, frozen=True, kw_only=True):
    """What all nodes have together is another amount: the maximum of the root queue."""

    capacity: Resource
    at_ns: int


class NodeActionRefused(Base, frozen=True, kw_only=True):
    """An action that made no sense changed nothing; this is all that is left of it."""

    node_id: str
    action: int
    reason: str
    at_ns: int


class ForeignAllocationPut(Base, frozen=True, kw_only=True):
    """Work of another scheduler is on this node, with this size; it left any other before."""

    key: str
    node_id: str
    resource: Resource
    at_ns: int
    tags: dict[str, str] = field(default_factory=dict)
    priority: int = 0
    created_ns: int = 0


class ForeignAllocationRemoved(Base, frozen=True, kw_only=True):
    key: str
    node_id: str
    resource: Resource
    at_ns: int
