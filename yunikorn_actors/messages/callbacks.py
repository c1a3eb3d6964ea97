"""How a delivered call reaches a callback: one row for each method.

The answer to a question goes back to RmProxy as a message. An exception in a predicate is a no,
because the resource manager has not agreed.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.predicates import (
    PredicatesAnswered,
    PreemptionPredicatesAnswered,
)
from yunikorn_actors.messages.queries import RmDumpAnswered
from yunikorn_actors.messages.rm_events import ResponsesDelivered
from yunikorn_actors.si import PreemptionPredicatesResponse, ResourceManagerCallback
from yunikorn_actors.si.checks import compiled

_fault_of_response = compiled(PreemptionPredicatesResponse, {})


def _tell_states(rm: ResourceManagerCallback, call: c.CallUpdateContainerSchedulingState) -> None:
    """Make each call by itself: an exception of one must not prevent the others."""
    errors: list[Exception] = []
    for request in call.requests:
        try:
            rm.update_container_scheduling_state(request)
        except Exception as error:  # noqa: BLE001 - the edge: told when all are made
            errors.append(error)
    if errors:
        raise ExceptionGroup("update_container_scheduling_state raised", errors)


def _ask_predicates(rm: ResourceManagerCallback, call: c.CallPredicates) -> Message:
    try:
        reason = rm.predicates(call.args) or ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the edge: what cannot be told is a no
        reason = f"the predicate raised {error!r}"
    return PredicatesAnswered(call_id=call.call_id, reason=str(reason))


def _ask_preemption(rm: ResourceManagerCallback, call: c.CallPreemptionPredicates) -> Message:
    try:
        response = rm.preemption_predicates(call.args)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the edge: what cannot be told is a no
        response = None
    if response is None or _fault_of_response(response) is not None:
        response = PreemptionPredicatesResponse(success=False)
    return PreemptionPredicatesAnswered(call_id=call.call_id, response=response)


def _ask_state(rm: ResourceManagerCallback, call: c.CallGetStateDump) -> Message:
    """Replace the characters of a text that a trace cannot hold."""
    text, error = "", ""
    try:
        said: object = rm.get_state_dump()
    except Exception as raised:  # noqa: BLE001 - the edge: the caller of the dump is told
        error = f"get_state_dump raised {raised!r}"
    else:
        if isinstance(said, str):
            text = said.encode(errors="replace").decode()
        else:
            error = f"get_state_dump returned {type(said).__name__}, not text"
    return RmDumpAnswered(reply_to=call.reply_to, text=text, error=error)


def _answer_mark(_: ResourceManagerCallback, call: c.CallMark) -> Message:
    return ResponsesDelivered(rm_id=call.rm_id, callback=call.callback, count=call.count)


_METHODS: dict[type, Callable[[ResourceManagerCallback, Any], Message | None]] = {
    c.CallUpdateAllocation: lambda rm, call: rm.update_allocation(call.response),
    c.CallUpdateApplication: lambda rm, call: rm.update_application(call.response),
    c.CallUpdateNode: lambda rm, call: rm.update_node(call.response),
    c.CallUpdateContainerSchedulingState: _tell_states,
    c.CallSendEvent: lambda rm, call: rm.send_event(call.events),
    c.CallPredicates: _ask_predicates,
    c.CallPreemptionPredicates: _ask_preemption,
    c.CallGetStateDump: _ask_state,
    c.CallMark: _answer_mark,
}


def call_back(callback: ResourceManagerCallback, call: Message) -> Message | None:
    """Make the call; return the answer for RmProxy if the call is a question."""
    answer = _METHODS[type(call)](callback, call)
    return answer if isinstance(answer, Message) else None
