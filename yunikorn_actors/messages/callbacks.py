"""How a delivered call reaches a callback: one row for each method."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import ResourceManagerCallback


def _tell_states(rm: ResourceManagerCallback, call: c.CallUpdateContainerSchedulingState) -> None:
    for request in call.requests:
        rm.update_container_scheduling_state(request)


_METHODS: dict[type, Callable[[ResourceManagerCallback, Any], None]] = {
    c.CallUpdateAllocation: lambda rm, call: rm.update_allocation(call.response),
    c.CallUpdateApplication: lambda rm, call: rm.update_application(call.response),
    c.CallUpdateNode: lambda rm, call: rm.update_node(call.response),
    c.CallUpdateContainerSchedulingState: _tell_states,
    c.CallSendEvent: lambda rm, call: rm.send_event(call.events),
}


def call_back(callback: ResourceManagerCallback, call: Message) -> None:
    _METHODS[type(call)](callback, call)
