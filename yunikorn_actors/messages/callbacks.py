"""How a delivered call reaches a callback, and event records as they leave the core.

One row for each method. The answer to a question goes back to RmProxy as a message, and so does
what stands for an answer if the callback raises. An exception in a predicate is a no, because the
resource manager has not agreed.

A reason and the text of an exception are masked here: they become keys and are counted. The message
of an event record may quote what a program has sent, such as the queue that it asked for. Ids stay:
readers look them up. Machines hold the records as they are, so that a replay comes to the same.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.predicates import (
    PredicatesAnswered,
    PreemptionPredicatesAnswered,
)
from yunikorn_actors.messages.queries import RmDumpAnswered
from yunikorn_actors.messages.rm_events import ResponsesDelivered
from yunikorn_actors.si import (
    EventRecord,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    ResourceManagerCallback,
)
from yunikorn_actors.si.form import compiled
from yunikorn_actors.values.masking import masked, masked_repr

_fault_of_response = compiled(PreemptionPredicatesResponse, {})


def _tell_states(rm: ResourceManagerCallback, call: c.CallUpdateContainerSchedulingState) -> None:
    """Make each call by itself: an exception of one must not prevent the others."""
    errors: list[BaseException] = []
    for request in call.requests:
        try:
            rm.update_container_scheduling_state(request)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the edge: raised when all are made
            errors.append(error)
    if errors:
        raise BaseExceptionGroup("update_container_scheduling_state raised", errors)


def reason_of(rm: ResourceManagerCallback, args: PredicatesArgs) -> str:
    """Return what stands against the node, empty for nothing."""
    reason: object = rm.predicates(args)
    if reason is not None and not isinstance(reason, str):
        # A program that returns whether it fits would be understood the wrong way round.
        raise TypeError(f"predicates returned {reason!r:.100}: return None, or the reason as text")
    return masked(_encodable(reason or ""))


def preemption_of(
    rm: ResourceManagerCallback, args: PreemptionPredicatesArgs
) -> PreemptionPredicatesResponse:
    response = rm.preemption_predicates(args)
    if response is None:
        response = PreemptionPredicatesResponse(success=False)
    fault = _fault_of_response(response)
    if fault is not None:
        raise TypeError(
            f"preemption_predicates returned {response!r:.100}, and its answer{fault.path} "
            f"{fault.reason}: return a PreemptionPredicatesResponse, or None for a no"
        )
    return response


class StateText(NamedTuple):
    text: str
    error: str
    """Why there is no text."""


def state_of(rm: ResourceManagerCallback) -> StateText:
    answer: object = rm.get_state_dump()
    if isinstance(answer, str):
        return StateText(_encodable(answer), "")
    return StateText("", f"get_state_dump returned {type(answer).__name__}, not text")


def _encodable(text: str) -> str:
    """Replace the characters that neither a trace nor a message can hold."""
    # A text may hold half a character, which neither UTF-8 nor a recording can.
    return text.encode(errors="replace").decode()


def _ask_predicates(rm: ResourceManagerCallback, call: c.CallPredicates) -> Message:
    return PredicatesAnswered(call_id=call.call_id, reason=reason_of(rm, call.args))


def _no_to_predicates(call: c.CallPredicates, error: BaseException) -> Message:
    reason = f"the predicate raised {masked_repr(error)}"
    return PredicatesAnswered(call_id=call.call_id, reason=reason)


def _ask_preemption(rm: ResourceManagerCallback, call: c.CallPreemptionPredicates) -> Message:
    response = preemption_of(rm, call.args)
    return PreemptionPredicatesAnswered(call_id=call.call_id, response=response)


def _no_to_preemption(call: c.CallPreemptionPredicates, _: BaseException) -> Message:
    response = PreemptionPredicatesResponse(success=False)
    return PreemptionPredicatesAnswered(call_id=call.call_id, response=response)


def _ask_state(rm: ResourceManagerCallback, call: c.CallGetStateDump) -> Message:
    text, error = state_of(rm)
    return RmDumpAnswered(reply_to=call.reply_to, text=text, error=error)


def _no_state(call: c.CallGetStateDump, error: BaseException) -> Message:
    text = f"get_state_dump raised {masked_repr(error)}"
    return RmDumpAnswered(reply_to=call.reply_to, text="", error=text)


def _answer_mark(_: ResourceManagerCallback, call: c.CallMark) -> Message:
    return ResponsesDelivered(rm_id=call.rm_id, callback=call.callback, count=call.count)


_METHODS: dict[type, Callable[[ResourceManagerCallback, Any], Message | None]] = {
    c.CallUpdateAllocation: lambda rm, call: rm.update_allocation(call.response),
    c.CallUpdateApplication: lambda rm, call: rm.update_application(call.response),
    c.CallUpdateNode: lambda rm, call: rm.update_node(call.response),
    c.CallUpdateContainerSchedulingState: _tell_states,
    c.CallSendEvent: lambda rm, call: rm.send_event(shown_records(call.events)),
    c.CallPredicates: _ask_predicates,
    c.CallPreemptionPredicates: _ask_preemption,
    c.CallGetStateDump: _ask_state,
    c.CallMark: _answer_mark,
}


_INSTEAD: dict[type, Callable[[Any, BaseException], Message]] = {
    c.CallPredicates: _no_to_predicates,
    c.CallPreemptionPredicates: _no_to_preemption,
    c.CallGetStateDump: _no_state,
}
"""The answers to questions on which the callback raised."""


class CallOutcome(NamedTuple):
    answer: Message | None
    """For RmProxy, if the call is a question."""
    error: BaseException | None
    """What the callback raised."""


def call_back(callback: ResourceManagerCallback, call: Message) -> CallOutcome:
    """Make the call; only an interrupt of the whole program is raised."""
    try:
        answer = _METHODS[type(call)](callback, call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the edge: the drivers tell it
        instead = _INSTEAD.get(type(call))
        return CallOutcome(None if instead is None else instead(call, error), error)
    return CallOutcome(answer if isinstance(answer, Message) else None, None)


def method_of(call: type[Message]) -> str:
    """Name the method of the callback that is called by such a message."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", call.__name__.removeprefix("Call")).lower()


def shown_records(records: Iterable[EventRecord]) -> tuple[EventRecord, ...]:
    """Return them without the secrets in their messages."""
    return tuple(shown_record(it) if it.message else it for it in records)


def shown_record(record: EventRecord) -> EventRecord:
    message = masked(record.message)
    return record if message == record.message else replace(record, message=message)
