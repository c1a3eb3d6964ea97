"""Allocations, and the two messages that carry them with the asks.

There are two generations of the interface. The main one has separate lists of asks and allocations,
and names an allocation by its UUID. The later one has a single list, `allocations`, where an item
without a node is an ask; its rejections are `rejected_allocations`.
"""

from msgspec import field

from yunikorn_actors.si.enums import TerminationType
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import BesideNumber, Int32, Int64, Name, SiMessage, Text

# Asks for allocations, their releases and their rejections.


class PreemptionPolicy(SiMessage, frozen=True, kw_only=True):
    """Whether an ask takes part in preemption.

    Without a policy an ask may be a victim and does not preempt.
    """

    allow_preempt_self: bool = False
    """Its allocations may be preempted. Without it they are taken last."""
    allow_preempt_other: bool = False
    """Other work may be preempted for it."""


class AllocationAsk(SiMessage, frozen=True, kw_only=True):
    """Room that is wanted for one task, or for several alike."""

    allocation_key: Name = ""
    """Its key: only one ask of an application has it."""
    application_id: Name = ""
    """Id of the application."""
    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""
    resource_ask: Resource | None = None
    """How much one allocation needs, in base units: thousandths of a cpu, bytes."""
    max_allocations: Int32 = 1
    """The default is 1, not proto3's 0: a client that leaves it out means one. 0 is refused."""
    priority: Int32 = 0
    """The higher goes first within its application and, unless its queue says otherwise, between
    applications."""
    execution_timeout_milli_seconds: Int64 = 0
    """How long each allocation of it may run before it is asked back; 0 is for ever."""
    tags: dict[Name, Text] = field(default_factory=dict)
    """How it is treated (see the constants that begin with `TAG_`), and words of your own, which
    come back in `Allocation.allocation_tags`."""
    task_group_name: Name = ""
    """The part of a gang that it belongs to."""
    placeholder: bool = False
    """Whether it keeps room for a member of a gang; needs a task group."""
    originator: bool = field(default=False, name="Originator")
    """Whether it is the driver of its application, which is preempted last."""
    preemption_policy: PreemptionPolicy | None = None
    """Whether it takes part in preemption."""


class AllocationAskRelease(SiMessage, frozen=True, kw_only=True):
    """The end of an ask, or of all asks of an application."""

    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""
    application_id: Name = ""
    """Id of the application."""
    allocation_key: Name = ""
    """Key of the ask; empty means all asks of the application."""
    termination_type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE
    """Why it ends."""
    message: Text = ""
    """Words for people."""


class RejectedAllocationAsk(SiMessage, frozen=True, kw_only=True):
    """An ask that was refused."""

    allocation_key: Name = ""
    """Key of the ask."""
    application_id: Name = ""
    """Id of the application."""
    reason: Text = ""
    """Why it was refused."""


class Allocation(SiMessage, frozen=True, kw_only=True):
    """One ask placed on one node: announced by the core, or reported by a resource manager.

    In a report of running work, `resource_per_alloc`, `node_id` and `application_id` must be right;
    what is left out counts as empty.
    """

    allocation_key: Name = ""
    """Key of the ask that it answers. Repeats of one ask share it."""
    allocation_tags: dict[Name, Text] = field(default_factory=dict)
    """Tags, those of the ask in an announcement; see `AllocationAsk.tags`. In a report the tag
    `foreign` marks work that belongs to no application."""
    uuid: Name = ""
    """Its own id, never used again. In a report it may be left out: the core then makes one."""
    resource_per_alloc: Resource | None = None
    """How much it uses, in base units."""
    priority: Int32 = 0
    """As the ask's."""
    node_id: Name = ""
    """Where it runs. In `AllocationRequest.allocations` an item without a node is an ask."""
    application_id: Name = ""
    """Id of the application."""
    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""
    task_group_name: Name = ""
    """The part of a gang that it belongs to."""
    placeholder: bool = False
    """Whether it keeps room for a member of a gang; needs a task group."""
    originator: bool = False
    """Whether it is the driver of its application, which is preempted last."""
    preemption_policy: PreemptionPolicy | None = None
    """As the ask's."""


class AllocationRelease(SiMessage, frozen=True, kw_only=True):
    """The end of an allocation, or of several.

    From a resource manager it names what to release: one allocation by `uuid`, or an ask and all
    its allocations by `allocation_key`, or everything of an application by `application_id` alone.
    From the core it asks for one allocation back, or says that it has ended.
    """

    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""
    application_id: Name = ""
    """Id of the application."""
    uuid: Name = ""
    """Id of the allocation."""
    termination_type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE
    """Why it ends. A confirmation repeats the type of the request it answers."""
    message: Text = ""
    """Words for people."""
    allocation_key: Name = ""
    """Key of the ask."""
    grace_ms: BesideNumber = 0
    """How many milliseconds a victim of preemption has to end by itself, as `preemption.grace` of
    its queue says; 0 if it says nothing. The core does not wait for that time: a confirmation that
    comes earlier frees the room. Of this core alone; neither JSON nor si.v1 has it."""


class AllocationReleasesRequest(SiMessage, frozen=True, kw_only=True):
    """What a resource manager gives back or withdraws, and confirms."""

    allocations_to_release: tuple[AllocationRelease, ...] = ()
    """Allocations that have ended: by themselves, or because the core asked for them."""
    allocation_asks_to_release: tuple[AllocationAskRelease, ...] = ()
    """Asks that are no longer wanted."""


class AllocationRequest(SiMessage, frozen=True, kw_only=True):
    """Asks, releases and reports of running work, for `update_allocation`.

    The core handles the asks first, then the releases of asks, then those of allocations.
    """

    asks: tuple[AllocationAsk, ...] = ()
    """New asks, or asks that replace those of the same key that still wait."""
    releases: AllocationReleasesRequest | None = None
    """What ends."""
    rm_id: Name = ""
    """Id of the resource manager."""
    allocations: tuple[Allocation, ...] = ()
    """The later form of the interface: with a node it reports what runs, without one it is an ask.
    What is refused of it comes back in `AllocationResponse.rejected_allocations`."""


class RejectedAllocation(SiMessage, frozen=True, kw_only=True):
    """An item of `AllocationRequest.allocations` that was refused."""

    allocation_key: Name = ""
    """Key of the item."""
    application_id: Name = ""
    """Id of the application."""
    reason: Text = ""
    """Why it was refused."""


class AllocationResponse(SiMessage, frozen=True, kw_only=True):
    """What has happened to asks and allocations."""

    new: tuple[Allocation, ...] = ()
    """Allocations that the core has made: start them."""
    released: tuple[AllocationRelease, ...] = ()
    """Allocations that have ended, or that the core asks back: `termination_type` says which. Stop
    those of type `TIMEOUT`, `PREEMPTED_BY_SCHEDULER` and `PLACEHOLDER_REPLACED`, and confirm each
    with a release of the same type."""
    released_asks: tuple[AllocationAskRelease, ...] = ()
    """Asks that the core has withdrawn."""
    rejected: tuple[RejectedAllocationAsk, ...] = ()
    """Asks that were refused."""
    rejected_allocations: tuple[RejectedAllocation, ...] = ()
    """Items of `AllocationRequest.allocations` that were refused."""
