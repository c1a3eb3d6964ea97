"""Asks for allocations, their releases and their rejections."""

from msgspec import field

from yunikorn_actors.si.enums import TerminationType
from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Int32, Int64, Name, SiMessage, Text


class PreemptionPolicy(SiMessage, frozen=True, kw_only=True):
    """Whether an ask may be preempted itself, and may have others preempted."""

    allow_preempt_self: bool = False
    allow_preempt_other: bool = False


class AllocationAsk(SiMessage, frozen=True, kw_only=True):
    """An ask for a place, or for several of the same size (`max_allocations`)."""

    allocation_key: Name = ""
    application_id: Name = ""
    partition_name: Name = ""
    resource_ask: Resource | None = None
    max_allocations: Int32 = 1
    """The default is 1, not proto3's 0: a client that leaves it out means one. 0 is refused."""
    priority: Int32 = 0
    execution_timeout_milli_seconds: Int64 = 0
    tags: dict[Name, Text] = field(default_factory=dict)
    task_group_name: Name = ""
    placeholder: bool = False
    originator: bool = field(default=False, name="Originator")
    preemption_policy: PreemptionPolicy | None = None


class AllocationAskRelease(SiMessage, frozen=True, kw_only=True):
    """The withdrawal of an ask, or of all asks of an application."""

    partition_name: Name = ""
    application_id: Name = ""
    allocation_key: Name = ""
    termination_type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE
    message: Text = ""


class RejectedAllocationAsk(SiMessage, frozen=True, kw_only=True):
    """An ask that was not taken, and why."""

    allocation_key: Name = ""
    application_id: Name = ""
    reason: Text = ""
