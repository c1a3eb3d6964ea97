"""Facts: what is true from now on, in one partition.

Context writes them down, numbers them and applies them; every replica applies the same facts in the
same order and is equal. A fact can be understood by itself, so that a reader without a replica (the
event publisher, a person) needs no other; sums are the business of `PartitionState.apply`. Times
are given, never read.
"""

from msgspec import Struct

from yunikorn_actors.domain.allocation import AskSpec, WaitingState
from yunikorn_actors.domain.application import (
    ApplicationEvent,
    ApplicationSpec,
    ApplicationState,
)
from yunikorn_actors.domain.config import PartitionConfig
from yunikorn_actors.domain.ids import NO_PROPOSAL
from yunikorn_actors.domain.queue import QueueSpec, QueueState
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.termination import TerminationType


class Base(Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """What all facts share: on the wire each says which it is."""


class PartitionConfigured(Base, frozen=True, kw_only=True):
    """The settings of the partition itself; its queues have facts of their own."""

    config: PartitionConfig


class SchedulingHeld(Base, frozen=True, kw_only=True):
    """Nothing new is decided for this partition until it is said otherwise."""

    held: bool
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
    """Drained, opened again, or told to be (not) ready."""

    node_id: str
    was_drained: bool
    was_ready: bool
    drained: bool
    ready: bool
    at_ns: int


class NodeRemoved(Base, frozen=True, kw_only=True):
    node_id: str
    at_ns: int


class NodeActionRefused(Base, frozen=True, kw_only=True):
    """An action that made no sense changed nothing; this is all that is left of it."""

    node_id: str
    action: int
    reason: str
    at_ns: int


class ApplicationAdded(Base, frozen=True, kw_only=True):
    spec: ApplicationSpec
    queue: str
    serial: int
    at_ns: int


class ApplicationRejected(Base, frozen=True, kw_only=True):
    spec: ApplicationSpec
    serial: int
    reason: str
    at_ns: int


class ApplicationStateChanged(Base, frozen=True, kw_only=True):
    application_id: str
    serial: int
    queue: str
    state: ApplicationState
    event: ApplicationEvent
    message: str
    at_ns: int


class ApplicationLinked(Base, frozen=True, kw_only=True):
    """From here on the application counts in a group; an empty one ends that."""

    application_id: str
    serial: int
    old_group: str
    group: str
    at_ns: int


class ApplicationRemoved(Base, frozen=True, kw_only=True):
    """Removed by its resource manager; its asks and allocations went before it."""

    application_id: str
    serial: int
    queue: str
    at_ns: int


class ApplicationForgotten(Base, frozen=True, kw_only=True):
    """The history of a finished application expired."""

    serial: int
    at_ns: int


class TimerArmed(Base, frozen=True, kw_only=True):
    application_id: str
    kind: str
    generation: int
    due_ns: int


class TimerCancelled(Base, frozen=True, kw_only=True):
    application_id: str
    kind: str


class AskAdded(Base, frozen=True, kw_only=True):
    spec: AskSpec
    created_ns: int
    sequence: int
    at_ns: int


class AskReplaced(Base, frozen=True, kw_only=True):
    """Sent again under its key: every field is new but the creation time."""

    spec: AskSpec
    at_ns: int


class AskRemoved(Base, frozen=True, kw_only=True):
    """What still waited of the ask is gone; its allocations live on."""

    application_id: str
    key: str
    resource: Resource
    type: TerminationType
    at_ns: int


class AskReported(Base, frozen=True, kw_only=True):
    """The resource manager is told how an ask that waits is doing."""

    application_id: str
    key: str
    state: WaitingState
    reason: str
    at_ns: int


class AllocationCommitted(Base, frozen=True, kw_only=True):
    """One repeat of an ask has its place; by a proposal, or reported by the resource manager."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    group: str = ""


class AllocationRecovered(Base, frozen=True, kw_only=True):
    """Running work that nobody asked for in this life of the core."""

    spec: AskSpec
    queue: str
    user: str
    uuid: str
    node_id: str
    created_ns: int
    sequence: int
    at_ns: int
    group: str = ""


class ReservationMade(Base, frozen=True, kw_only=True):
    application_id: str
    key: str
    node_id: str
    required: bool
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class ReservationDropped(Base, frozen=True, kw_only=True):
    application_id: str
    key: str
    node_id: str
    reason: str
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class AllocationResized(Base, frozen=True, kw_only=True):
    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    old_resource: Resource
    resource: Resource
    at_ns: int
    group: str = ""


class ReleaseRequested(Base, frozen=True, kw_only=True):
    """The core wants the allocation back; it stays charged until the resource manager confirms."""

    application_id: str
    key: str
    uuid: str
    type: TerminationType
    message: str
    at_ns: int


class AllocationReleased(Base, frozen=True, kw_only=True):
    """It is charged nowhere any more."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    type: TerminationType
    at_ns: int
    group: str = ""


class ForeignAllocationPut(Base, frozen=True, kw_only=True):
    """Work of another scheduler is on this node, with this size; it left any other before."""

    key: str
    node_id: str
    resource: Resource
    at_ns: int


class ForeignAllocationRemoved(Base, frozen=True, kw_only=True):
    key: str
    node_id: str
    resource: Resource
    at_ns: int


Fact = (
    PartitionConfigured
    | SchedulingHeld
    | QueueAdded
    | QueueReconfigured
    | QueueStateChanged
    | QueueRemoved
    | NodeAdded
    | NodeResized
    | NodeAttributesReplaced
    | NodeScheduleChanged
    | NodeRemoved
    | NodeActionRefused
    | ApplicationAdded
    | ApplicationRejected
    | ApplicationStateChanged
    | ApplicationLinked
    | ApplicationRemoved
    | ApplicationForgotten
    | TimerArmed
    | TimerCancelled
    | AskAdded
    | AskReplaced
    | AskRemoved
    | AskReported
    | AllocationCommitted
    | AllocationRecovered
    | ReservationMade
    | ReservationDropped
    | AllocationResized
    | ReleaseRequested
    | AllocationReleased
    | ForeignAllocationPut
    | ForeignAllocationRemoved
)
