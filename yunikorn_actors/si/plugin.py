"""Messages of the core to a resource manager other than answers: questions and states."""

from msgspec import field

from yunikorn_actors.si.enums import ChangeDetail, ChangeType, EventType, SchedulingState
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import Int32, Int64, Name, SiMessage, Text


class PredicatesArgs(SiMessage, frozen=True, kw_only=True):
    """A question: whether an ask may have a node."""

    allocation_key: Name = ""
    """Key of the ask."""
    node_id: Name = ""
    """The node that it would get."""
    allocate: bool = False
    """True before it is placed there; false if the node is only to be reserved for it."""


class PreemptionPredicatesArgs(SiMessage, frozen=True, kw_only=True):
    """A question: whether the ask would fit a node, were these allocations preempted."""

    allocation_key: Name = ""
    """Key of the ask."""
    node_id: Name = ""
    """The node that it would get."""
    preempt_allocation_keys: tuple[Name, ...] = ()
    """Keys of the candidates, in the order in which they would be preempted."""
    start_index: Int32 = 0
    """All candidates up to this place (from 0) are needed in any case."""


class PreemptionPredicatesResponse(SiMessage, frozen=True, kw_only=True):
    """The answer to `preemption_predicates`."""

    success: bool = False
    """Whether the ask may have the node."""
    index: Int32 = 0
    """Place (from 0) of the last candidate to preempt, not before `start_index`."""


class UpdateContainerSchedulingStateRequest(SiMessage, frozen=True, kw_only=True):
    """What an ask waits for, sent when it changes."""

    application_id: Name = field(default="", name="applicartionID")
    """This is the spelling of the interface, which clients rely on."""
    allocation_key: Name = ""
    """Key of the ask."""
    state: SchedulingState = SchedulingState.UNKNOWN_SCHEDULING_STATE
    """What it waits for."""
    reason: Text = ""
    """Why, in a few words."""


# One event: what changed on which object, and the second object that was involved.


class EventRecord(SiMessage, frozen=True, kw_only=True):
    """One event: what changed on which object, and the second object that was involved."""

    type: EventType = EventType.UNKNOWN_EVENTRECORD_TYPE
    """The kind of the object."""
    object_id: Name = ""
    """The object: id of an application or node, key of an ask, path of a queue, name of a user."""
    message: Text = ""
    """What has happened, in words; often empty."""
    timestamp_nano: Int64 = 0
    """When, in nanoseconds since 1970."""
    event_change_type: ChangeType = ChangeType.NONE
    """Whether something was added, removed or set."""
    event_change_detail: ChangeDetail = ChangeDetail.DETAILS_NONE
    """What exactly has changed."""
    reference_id: Name = ""
    """The second object, such as the key of the ask for an event about its application."""
    resource: Resource | None = None
    """The amount that came, went, or was set."""
