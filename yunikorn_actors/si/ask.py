"""Asks for allocations, their releases and their rejections."""

from msgspec import field

from yunikorn_actors.si.enums import TerminationType
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import Int32, Int64, Name, SiMessage, Text


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
