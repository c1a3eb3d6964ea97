"""Allocations, and the two messages that carry them with the asks.

There are two generations of the interface. The main one has separate lists of asks and allocations,
and names an allocation by its UUID. The later one has a single list, `allocations`, where an item
without a node is an ask; its rejections are `rejected_allocations`.
"""

from msgspec import field

from yunikorn_actors.si.ask import (
    AllocationAsk,
    AllocationAskRelease,
    PreemptionPolicy,
    RejectedAllocationAsk,
)
from yunikorn_actors.si.enums import TerminationType
from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Int32, Name, SiMessage, Text


class Allocation(SiMessage, frozen=True, kw_only=True):
    """Work that has its place on a node; in a request work that runs already, or an ask."""

    allocation_key: Name = ""
    allocation_tags: dict[Name, Text] = field(default_factory=dict)
    uuid: Name = ""
    resource_per_alloc: Resource | None = None
    priority: Int32 = 0
    node_id: Name = ""
    application_id: Name = ""
    partition_name: Name = ""
    task_group_name: Name = ""
    placeholder: bool = False
    originator: bool = False
    preemption_policy: PreemptionPolicy | None = None


class AllocationRelease(SiMessage, frozen=True, kw_only=True):
    """The release of an allocation, or of all of an application, and why."""

    partition_name: Name = ""
    application_id: Name = ""
    uuid: Name = ""
    termination_type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE
    message: Text = ""
    allocation_key: Name = ""


class AllocationReleasesRequest(SiMessage, frozen=True, kw_only=True):
    """What a resource manager gives back: allocations, and asks that wait."""

    allocations_to_release: tuple[AllocationRelease, ...] = ()
    allocation_asks_to_release: tuple[AllocationAskRelease, ...] = ()


class AllocationRequest(SiMessage, frozen=True, kw_only=True):
    """Asks to place, work to take over, and what is released or confirmed as released."""

    asks: tuple[AllocationAsk, ...] = ()
    releases: AllocationReleasesRequest | None = None
    rm_id: Name = ""
    allocations: tuple[Allocation, ...] = ()


class RejectedAllocation(SiMessage, frozen=True, kw_only=True):
    """An item of `allocations` that was not taken, and why."""

    allocation_key: Name = ""
    application_id: Name = ""
    reason: Text = ""


class AllocationResponse(SiMessage, frozen=True, kw_only=True):
    """What the core has placed, wants released, or has rejected."""

    new: tuple[Allocation, ...] = ()
    released: tuple[AllocationRelease, ...] = ()
    released_asks: tuple[AllocationAskRelease, ...] = ()
    rejected: tuple[RejectedAllocationAsk, ...] = ()
    rejected_allocations: tuple[RejectedAllocation, ...] = ()
