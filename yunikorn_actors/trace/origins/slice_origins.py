"""Which message an item came of, where Context did its work in slices.

While the lane of a resource manager is busy with long work, all that comes for it waits. A slice
says only that some of it was done. But a lane is in order: an ask came of the first message that
brought it and that no earlier addition came of, and the first message that could end something
did. The facts tell in which slice it was, and so what had come by then.
"""

import sys
from collections.abc import Iterator

from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery, Message
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.origins.item_matching import of_application
from yunikorn_actors.trace.origins.items import Item, Part, manager_in
from yunikorn_actors.trace.origins.origin_queries import Addition, Recorded

_ADDED = (f.AskAdded, f.AskReplaced, f.AllocationRecovered)
_BRINGING = (rm.RMUpdateAllocation, rm.RMUpdateNode)
_ENDED = (f.AllocationReleased, f.ReleaseRequested, f.AskRemoved)
_OF_ALL = (rm.RMUnregistered, rm.RMPartitionsRemove, rm.RMRegistration, rm.RMLost)
"""Messages that end all of a resource manager."""


def is_slice(message: Message) -> bool:
    return isinstance(message, s.RunSlice)


def came_of(recorded: Recorded, delivery: Delivery, item: Item) -> Delivery | None:
    """Return the message that Context was doing in the slice that led to an item."""
    last = delivery.cause.step
    if item.part is Part.ASK:
        return _bringing(recorded, item, last)
    if item.part is Part.END:
        return _ending(recorded, delivery, item, last)
    return _naming(recorded, delivery, item, last)


def _facts_naming(recorded: Recorded, names: set[str], last: int) -> Iterator[tuple[int, f.Fact]]:
    """Yield the facts that name one of these, each with the step of Context that it is of."""
    for it, fact in recorded.written(names):
        if it.cause.mailbox == CONTEXT and it.cause.step <= last:
            yield it.cause.step, fact


def _arrived(recorded: Recorded, names: set[str], last: int) -> list[Delivery]:
    """Return what came to Context by then, what came first before the rest."""
    found = recorded.speaking(names, CONTEXT.__eq__)
    return [it for it in found if it.step <= last and not is_slice(it.message)]


def _bringing(recorded: Recorded, item: Item, last: int) -> Delivery | None:
    found = added(recorded, item, last)
    if found is not None:
        return found.by
    # What was never added was refused.
    brought = _brought(recorded, item, last)
    return brought[-1] if brought else None


def _brought(recorded: Recorded, item: Item, last: int) -> list[Delivery]:
    """Return all that brought an ask of this key."""
    return [
        it
        for it in recorded.naming({item.key}, CONTEXT.__eq__)
        if it.step <= last and isinstance(it.message, _BRINGING) and recorded.alone(it).asks(item)
    ]


def added(recorded: Recorded, item: Item, last: int) -> Addition | None:
    """Return the last addition of an ask up to a step, and not behind its placement.

    None if the recording does not have its addition.
    """
    if item not in recorded.additions:
        recorded.additions[item] = _additions(recorded, item)
    return next((it for it in reversed(recorded.additions[item]) if it.step <= last), None)


def _additions(recorded: Recorded, item: Item) -> list[Addition]:
    """Go through the additions of the key, up to the placement, beside what brought it."""
    brought = _brought(recorded, item, sys.maxsize)
    additions, found = list[Addition](), -1
    for step, fact in _facts_naming(recorded, {item.key, item.uuid} - {""}, sys.maxsize):
        if is_added(fact, item):
            come = sum(it.step <= step for it in brought) - 1
            before = sum(it.step < _begin(recorded, step) for it in brought)
            found = min(max(found + 1, before), come)
            if found >= 0:
                additions.append(Addition(step, brought[found]))
        elif item.uuid and getattr(fact, "uuid", "") == item.uuid:
            break
    return additions


def _begin(recorded: Recorded, step: int) -> int:
    """Return the step from which on lanes may have been busy: all that came before it was done."""
    at = Cause(CONTEXT, step)
    while (handled := recorded.joined_with(at)) and is_slice(handled[-1].message):
        at = handled[-1].cause
    return handled[0].step if handled else at.step


def _is_in_slice(recorded: Recorded, step: int) -> bool:
    handled = recorded.joined_with(Cause(CONTEXT, step))
    return bool(handled) and is_slice(handled[-1].message)


def is_added(fact: f.Fact, item: Item) -> bool:
    if not isinstance(fact, _ADDED):
        return False
    return (fact.spec.application_id, fact.spec.key) == (item.application_id, item.key)


def _ending(recorded: Recorded, delivery: Delivery, item: Item, last: int) -> Delivery | None:
    at, node_id = _end(recorded, item, last)
    if not _is_in_slice(recorded, at):
        handled = recorded.joined_with(Cause(CONTEXT, at))
        return handled.that_ends(item) or (handled[-1] if handled else None)
    addition = added(recorded, item, at)
    begin = 0 if addition is None else addition.by.step
    names = {item.key, item.uuid, item.application_id, node_id} - {""}
    come = [it for it in _arrived(recorded, names, at) if it.step > begin]
    sure = (it for it in come if _must_end(recorded, it, item, node_id))
    found = next(sure, None)
    if found is not None:
        return found
    perhaps = [it for it in come if _may_end(recorded, it, item)]
    perhaps = perhaps or [
        it
        for it in _arrived(recorded, {manager_in(delivery)} - {""}, at)
        if isinstance(it.message, _OF_ALL)
    ]
    return perhaps[-1] if perhaps else None


def _end(recorded: Recorded, item: Item, last: int) -> tuple[int, str]:
    """Return in which step the end became true, and the node on which it was."""
    at, node_id = last, ""
    for step, fact in _facts_naming(recorded, item.names, last):
        key = (getattr(fact, "application_id", ""), getattr(fact, "key", ""))
        is_it = (
            fact.uuid == item.uuid
            if isinstance(fact, f.AllocationReleased | f.ReleaseRequested)
            else key == (item.application_id, item.key)
        )
        if isinstance(fact, _ENDED) and is_it:
            at, node_id = step, getattr(fact, "node_id", "")
    return at, node_id


def _must_end(recorded: Recorded, come: Delivery, item: Item, node_id: str) -> bool:
    match come.message:
        case rm.RMUpdateApplication(removed=removed):
            return any(it.application_id == item.application_id for it in removed)
        case rm.RMUpdateNode(nodes=nodes):
            return any(
                it.node_id == node_id and it.action is ActionFromRM.DECOMISSION for it in nodes
            )
        case rm.RMUpdateAllocation():
            return recorded.alone(come).ends(item)
    return False


def _may_end(recorded: Recorded, come: Delivery, item: Item) -> bool:
    is_timer = isinstance(come.message, s.ApplicationTimerDue)
    return recorded.alone(come).takes(item) or (is_timer and of_application(come.message, item))


def _naming(recorded: Recorded, delivery: Delivery, item: Item, last: int) -> Delivery | None:
    """What becomes of an application came of the latest message that names it."""
    come = _arrived(recorded, {item.application_id}, last)
    if isinstance(delivery.message, rm.RMApplicationUpdate) and not _is_update(
        delivery.message, item
    ):
        come = [it for it in come if isinstance(it.message, rm.RMUpdateApplication)]
    return come[-1] if come else None


def _is_update(message: rm.RMApplicationUpdate, item: Item) -> bool:
    return any(it.application_id == item.application_id for it in message.updated)
