"""The messages to a resource manager's callback, one for each of its methods."""

from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    UpdateContainerSchedulingStateRequest,
)


class CallUpdateAllocation(Message, frozen=True, kw_only=True):
    response: AllocationResponse


class CallUpdateApplication(Message, frozen=True, kw_only=True):
    response: ApplicationResponse


class CallUpdateNode(Message, frozen=True, kw_only=True):
    response: NodeResponse


class CallSendEvent(Message, frozen=True, kw_only=True):
    events: tuple[EventRecord, ...]


class CallUpdateContainerSchedulingState(Message, frozen=True, kw_only=True):
    """One call of the callback for each request, in their order."""

    requests: tuple[UpdateContainerSchedulingStateRequest, ...]


class CallPredicates(Message, frozen=True, kw_only=True):
    call_id: int
    args: PredicatesArgs


class CallPreemptionPredicates(Message, frozen=True, kw_only=True):
    call_id: int
    args: PreemptionPredicatesArgs


class CallGetStateDump(Message, frozen=True, kw_only=True):
    reply_to: str


class CallMark(Message, frozen=True, kw_only=True):
    """Not a call: the delivery thread answers it with `ResponsesDelivered`."""

    rm_id: str
    callback: str
    count: int
