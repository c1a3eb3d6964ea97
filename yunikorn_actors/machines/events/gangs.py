"""Event records of releases and swaps: who went, who came, who is waited for.

A swap that stays on its node is no event of that node: only the name of what runs there changed.
"""

from functools import cache, partial

from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed, event_record, of_request
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource, describe

_D = ChangeDetail
_NONE, _SET, _ADD, _REMOVE = ChangeType.NONE, ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE


def unconfirmed(fact: f.ConfirmationMissed) -> EventRecord:
    seconds = (fact.at_ns - fact.asked_back_ns) // SECOND
    message = (
        f"Release of '{fact.key}' ({fact.type.name}) was asked for {seconds} s ago and is not "
        "confirmed by the resource manager"
    )
    return of_request(fact, fact.key, message)


def lapsed(fact: f.GangLapsed) -> EventRecord:
    message = (
        f"Gang of application '{fact.application_id}' had no placeholder for "
        f"{fact.waited_ns // SECOND} s: its commitment of '{describe(fact.commitment)}' in "
        f"queue {fact.queue} lapses, and the gang awaits admission again"
    )
    return event_record(
        EventType.APP,
        fact.application_id,
        fact,
        _NONE,
        _D.DETAILS_NONE,
        reference=fact.queue,
        message=message,
        resource=fact.commitment,
    )


def too_small(fact: f.PlaceholderCancelled) -> EventRecord:
    message = (
        f"Task group '{fact.task_group}' in application '{fact.application_id}': allocation "
        f"resources '{describe(fact.resource)}' are not matching placeholder "
        f"'{describe(fact.placeholder_resource)}' allocation with ID '{fact.placeholder}'"
    )
    return of_request(fact, fact.placeholder_key, message, fact.resource)


def _application(change: ChangeType, detail: ChangeDetail, fact: f.SwapCompleted) -> EventRecord:
    key, _, amount = _part(change, fact)
    return event_record(
        EventType.APP, fact.application_id, fact, change, detail, reference=key, resource=amount
    )


def _request(fact: f.SwapCompleted) -> EventRecord:
    return event_record(
        EventType.REQUEST,
        fact.key,
        fact,
        _SET,
        _D.REQUEST_ALLOC,
        reference=fact.application_id,
        resource=fact.resource,
    )


def _node(change: ChangeType, fact: f.SwapCompleted) -> EventRecord:
    key, node_id, amount = _part(change, fact)
    return event_record(
        EventType.NODE, node_id, fact, change, _D.NODE_ALLOC, reference=key, resource=amount
    )


def _queue(change: ChangeType, fact: f.SwapCompleted) -> EventRecord:
    _, _, amount = _part(change, fact)
    return event_record(
        EventType.QUEUE,
        fact.queue,
        fact,
        change,
        _D.QUEUE_ALLOC,
        reference=fact.application_id,
        resource=amount,
    )


def _usage(
    owner: str, detail: ChangeDetail, change: ChangeType, level: int, fact: f.SwapCompleted
) -> EventRecord:
    """Tell of a user or a group in one queue of the path; level 0 is the root."""
    _, _, amount = _part(change, fact)
    path = ".".join(fact.queue.split(".")[: level + 1])
    return event_record(
        EventType.USERGROUP,
        getattr(fact, owner),
        fact,
        change,
        detail,
        reference=path,
        resource=amount,
    )


def _part(change: ChangeType, fact: f.SwapCompleted) -> tuple[str, str, Resource]:
    """Return the key, node and size of what went or what came."""
    if change is _REMOVE:
        return fact.placeholder_key, fact.placeholder_node, fact.placeholder_resource
    return fact.key, fact.node_id, fact.resource


_WENT = (partial(_application, _REMOVE, _D.ALLOC_REPLACED),)
_CAME = (partial(_application, _ADD, _D.APP_ALLOC), _request)


def of_swap(fact: f.SwapCompleted) -> tuple[Builder, ...]:
    """Record the placeholder that went, then the member that came."""
    crosses = fact.node_id != fact.placeholder_node
    return _prepared(fact.queue.count("."), crosses, bool(fact.group))


# A few dozen combinations: cached for ever.
@cache
def _prepared(depth: int, crosses: bool, grouped: bool) -> tuple[Builder, ...]:
    """Swaps of one kind share their builders: what differs is in the fact."""
    went, came = (_charges(change, depth, crosses, grouped) for change in (_REMOVE, _ADD))
    return (*_WENT, *went, *_CAME, *came)


def _charges(
    change: ChangeType,
    depth: int,
    crosses: bool,
    grouped: bool,
) -> tuple[Builder, ...]:
    levels = range(depth + 1)
    return (
        *((partial(_node, change),) if crosses else ()),
        partial(_queue, change),
        *(partial(_usage, "user", _D.UG_USER_RESOURCE, change, it) for it in levels),
        *(partial(_usage, "group", _D.UG_GROUP_RESOURCE, change, it) for it in levels if grouped),
    )


FIXED: Fixed = {
    f.GangLapsed: (lapsed,),
    f.PlaceholderCancelled: (too_small,),
    f.ConfirmationMissed: (unconfirmed,),
}
CHOSEN: Chosen = {
    f.SwapCompleted: of_swap,
}
