"""Messages of the core to a resource manager other than answers: questions and states."""

from msgspec import field

from yunikorn_actors.si.enums import SchedulingState
from yunikorn_actors.si.wire import Int32, Name, SiMessage, Text


class PredicatesArgs(SiMessage, frozen=True, kw_only=True):
    """Does this ask fit this node? `allocate` is false where it would only be reserved."""

    allocation_key: Name = ""
    node_id: Name = ""
    allocate: bool = False


class PreemptionPredicatesArgs(SiMessage, frozen=True, kw_only=True):
    """Which of these victims, from `start_index` on, must go until the ask fits the node."""

    allocation_key: Name = ""
    node_id: Name = ""
    preempt_allocation_keys: tuple[Name, ...] = ()
    start_index: Int32 = 0


class PreemptionPredicatesResponse(SiMessage, frozen=True, kw_only=True):
    """Whether it fits then, and the index of the last victim that must go."""

    success: bool = False
    index: Int32 = 0


class UpdateContainerSchedulingStateRequest(SiMessage, frozen=True, kw_only=True):
    """What has become of an ask."""

    application_id: Name = field(default="", name="applicartionID")
    """This is the spelling of the interface, which clients rely on."""
    allocation_key: Name = ""
    state: SchedulingState = SchedulingState.UNKNOWN_SCHEDULING_STATE
    reason: Text = ""
