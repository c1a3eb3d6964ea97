"""What led to one item of a message: which request brought the ask, which one ended the allocation.

A message has one cause, the message that was being handled when it was sent. Where several were
handled together, that is the last of them, and it may be about something else. And a plan has many
items, of asks that came at other times. So each item is followed by what it is about. A placement
begins at the call that brought its ask, a release at the call, the timer or the change that asked
for it. What is asked back for an ask begins at that ask, for a quota at what exceeded that, and a
swap leads through the confirmation.

The driver's cause stays true: it says what set the handling off. Where it is not what the item came
of, a link names it as well.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import (
    CONTEXT,
    RM_PROXY,
    TIMER,
    Cause,
    Delivery,
    Message,
    is_manager,
    is_outside,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Beneficiary, PreemptionRule
from yunikorn_actors.state.proposals import Preempt
from yunikorn_actors.state.termination import ASKED_BACK
from yunikorn_actors.trace.origins.item_matching import Together, of_application, taken
from yunikorn_actors.trace.origins.items import Item, Part, claimant, manager_in
from yunikorn_actors.trace.origins.message_parts import facts_of
from yunikorn_actors.trace.origins.origin_queries import Recorded
from yunikorn_actors.trace.origins.slice_origins import added, came_of, is_added, is_slice


class Origin(NamedTuple):
    """From where an item came."""

    delivery: Delivery
    item: Item
    together: int = 1
    """How many messages were handled together there."""
    set_off_by: Cause | None = None
    """What the driver says, if that is another message."""


# -- where it came from


def origins(recorded: Recorded, delivery: Delivery, item: Item) -> list[Origin]:
    """Follow an item back to the outside; return the way from there."""
    at: Origin | None = Origin(delivery, item)
    way: list[Origin] = []
    recorded = within(recorded, delivery)
    met: set[Cause] = set()
    while at is not None and (step := _step(at.delivery)) not in met:
        way.append(at)
        met.add(step)
        at = before(recorded, at)
    return way[::-1]


def within(recorded: Recorded, delivery: Delivery) -> Recorded:
    """Return what concerns the resource manager that a message concerns; all if it has none."""
    manager = manager_in(delivery)
    return recorded.of_manager(manager) if manager else recorded


def _step(delivery: Delivery) -> Cause:
    return Cause(delivery.mailbox, delivery.step)


def before(recorded: Recorded, at: Origin) -> Origin | None:
    """Return the message from which an item came; None if the way begins here."""
    return before_each(recorded, at.delivery, (at.item,))[0]


def before_each(
    recorded: Recorded, delivery: Delivery, items: Sequence[Item]
) -> list[Origin | None]:
    """Return the same for several items of one message."""
    if is_outside(delivery.sender):
        return [_asked_back(recorded, delivery, it) for it in items]
    together = recorded.joined_with(delivery.cause) if delivery.cause.step else None
    if not together:
        return [None] * len(items)
    ways = [find for find, may_be in _WAYS if may_be(delivery, together)]
    found = (_before(recorded, delivery, it, together, ways) for it in items)
    if delivery.sender != TIMER:
        return list(found)
    message = delivery.message
    return [
        None if of_application(message, item) else it for item, it in zip(items, found, strict=True)
    ]


def passed_on(recorded: Recorded, delivery: Delivery) -> Delivery | None:
    """Return the message that was sent on as this one, with all its items and no others.

    Each of them came of itself there. Context may have put one thing in the place of another.
    """
    if not delivery.cause.step or delivery.cause.mailbox == CONTEXT:
        return None
    if delivery.sender == TIMER or is_outside(delivery.sender):
        return None
    together = recorded.joined_with(delivery.cause)
    if len(together) != 1:
        return None
    items_of = recorded.items_of
    return together[0] if items_of(together[0].message) == items_of(delivery.message) else None


def _before(
    recorded: Recorded, delivery: Delivery, item: Item, together: Together, ways: Iterable["_Find"]
) -> Origin:
    for find in ways:
        found = find(recorded, delivery, item, together)
        if found is not None:
            return found
    return _by_plan(recorded, delivery, item, together)


def _by_swap(recorded: Recorded, _: Delivery, item: Item, together: Together) -> Origin | None:
    """The end of its placeholder brought a member to its place."""
    placeholder = _swapped(recorded, item) if item.part is Part.ASK else None
    if placeholder is None:
        return None
    found = together.that_ends(placeholder)
    return None if found is None else Origin(found, placeholder, len(together))


def _by_name(
    recorded: Recorded, delivery: Delivery, item: Item, together: Together
) -> Origin | None:
    """Of what was handled together, one is about the item."""
    found = together.about(item)
    if found is None:
        return None
    there, count = _there(found.message, item), len(together)
    if count > 1 and item.uuid and item.part is Part.ASK and delivery.cause.mailbox == CONTEXT:
        # The same key may have been asked for twice.
        addition = added(recorded, item, delivery.cause.step)
        if addition is not None and together.has(addition.by):
            found = addition.by
    return Origin(found, there, count)


def _by_turn(recorded: Recorded, delivery: Delivery, item: Item, _: Together) -> Origin | None:
    """It waited at RmProxy for its turn or for a slice, and was sent on when that was done."""
    call = _CALLS.get(type(delivery.message), Message)
    calls = [
        it
        for it in recorded.naming(item.names | {item.application_id} - {""}, RM_PROXY.__eq__)
        if it.step <= delivery.cause.step and is_outside(it.sender) and isinstance(it.message, call)
    ]
    found = Together(calls).about(item)
    if found is None:
        return None
    return Origin(found, _there(found.message, item), 1, delivery.cause)


def _by_slice(recorded: Recorded, delivery: Delivery, item: Item, _: Together) -> Origin | None:
    """Context did it in slices, or it had to wait for what was done so."""
    if _decided(recorded, delivery.cause, item) != item or _enforced(recorded, delivery, item):
        # A plan waited, and what goes by it goes for something else.
        return None
    found = came_of(recorded, delivery, item) or _restored(recorded, item)
    return None if found is None else Origin(found, item, 1, delivery.cause)


def _by_plan(recorded: Recorded, delivery: Delivery, item: Item, together: Together) -> Origin:
    """It came earlier, and something else set off what was decided about it."""
    last = together[-1]
    item = _decided(recorded, delivery.cause, item)
    if item.part is Part.ASK:
        found = _brought(recorded, last, item) or _restored(recorded, item)
    else:
        found = _exceeded(recorded, delivery, item)
    if found is not None:
        return Origin(found, item, 1, delivery.cause)
    return Origin(last, item, len(together))


_REQUESTS = (rm.AllocationsRequested, rm.RMUpdateAllocation)
"""Here an ask has no UUID yet."""
_CALLS: dict[type[Message], type[Message]] = {
    rm.RMUpdateAllocation: rm.AllocationsRequested,
    rm.RMUpdateApplication: rm.ApplicationsRequested,
    rm.RMUpdateNode: rm.NodesRequested,
    rm.RMConfigUpdate: rm.ConfigurationRequested,
}
"""Which call RmProxy translates into which message."""

_Find = Callable[[Recorded, Delivery, Item, Together], Origin | None]
_WAYS: tuple[tuple[_Find, Callable[[Delivery, Together], bool]], ...] = (
    (_by_swap, lambda it, together: it.cause.mailbox == CONTEXT and together.ends_anything),
    (_by_name, lambda *_: True),
    (_by_turn, lambda it, _: it.cause.mailbox == RM_PROXY),
    (
        _by_slice,
        lambda it, together: it.cause.mailbox == CONTEXT and is_slice(together[-1].message),
    ),
)
"""How the message is found from which an item came, the surest first; `_by_plan` is the last.

Beside each stands of which messages it may be so.
"""


def _there(message: Message, item: Item) -> Item:
    """Return what the item is in the message that led to it: a plan takes one thing for another."""
    if item.part is Part.ASK and item.uuid and isinstance(message, _REQUESTS):
        return item._replace(uuid="")
    if not isinstance(message, s.ProposeAllocations):
        return item
    if item.part is Part.END:
        for it in message.proposals:
            if item.uuid in taken(it):
                return claimant(it) or item
    if item.part is Part.APPLICATION:
        own = map(claimant, reversed(message.proposals))
        return next((it for it in own if it and it.application_id == item.application_id), item)
    return item


def _swapped(recorded: Recorded, item: Item) -> Item | None:
    """Return the placeholder whose end brought the member to its place; None if it is no swap."""
    if not item.uuid:
        return None
    for _, fact in recorded.written({item.uuid}):
        if isinstance(fact, f.SwapCompleted) and fact.uuid == item.uuid:
            return Item(Part.END, fact.application_id, fact.placeholder_key, fact.placeholder)
    return None


def _decided(recorded: Recorded, cause: Cause, item: Item) -> Item:
    """Return for which ask it was decided that the item goes, or its application moves on.

    Where Context plans by itself there is no proposal, and only the facts tell.
    """
    if item.part is Part.ASK or cause.mailbox != CONTEXT:
        return item
    for it, fact in recorded.written(item.names):
        found = _for_whom(fact, item) if it.cause == cause else None
        if found is not None:
            return found
    return item


def _for_whom(fact: f.Fact, item: Item) -> Item | None:
    match fact:
        case f.VictimMarked(uuid=uuid) if uuid == item.uuid:
            return claimant(fact.beneficiary)
        case f.AskParked(placeholder=uuid) | f.PlaceholderCancelled(placeholder=uuid) if (
            uuid == item.uuid
        ):
            return Item(Part.ASK, fact.application_id, fact.key)
        case f.AllocationCommitted(application_id=id_, key=key) if (
            item.part is Part.APPLICATION and id_ == item.application_id
        ):
            return Item(Part.ASK, id_, key)
    return None


def _exceeded(recorded: Recorded, delivery: Delivery, item: Item) -> Delivery | None:
    """Return what exceeded the quota for which an allocation is asked back; None if it is for none.

    That was earlier: the queue had its time to come down by itself.
    """
    enforced = _enforced(recorded, delivery, item)
    if enforced is None:
        return None
    partition, path = enforced
    last = delivery.step if delivery.mailbox == CONTEXT else delivery.cause.step
    for it, fact in reversed(recorded.written({path})):
        is_it = isinstance(fact, f.QuotaPreemptionArmed) and fact.path == path
        if is_it and _partition_of(it) == partition and it.cause.step < last:
            return recorded.joined_with(it.cause)[-1]
    return _restored(recorded, item)


def _enforced(recorded: Recorded, delivery: Delivery, item: Item) -> tuple[str, str] | None:
    """Return the partition and the path of the queue whose quota is enforced by this end."""
    if item.part is not Part.END:
        return None
    if isinstance(delivery.message, s.ProposeAllocations):
        for proposed in delivery.message.proposals:
            if isinstance(proposed, Preempt) and item.uuid in taken(proposed):
                path = _quota_of(proposed.beneficiary)
                return (delivery.message.partition, path) if path else None
        return None
    for it, fact in recorded.written({item.uuid}):
        if isinstance(fact, f.VictimMarked) and it.cause == delivery.cause:
            path = _quota_of(fact.beneficiary) if fact.uuid == item.uuid else ""
            return (_partition_of(it), path) if path else None
    return None


def _quota_of(whom: Beneficiary) -> str:
    return whom.queue if whom.rule is PreemptionRule.QUOTA else ""


def _partition_of(delivery: Delivery) -> str:
    assert isinstance(delivery.message, s.FactsAppended)
    return delivery.message.partition


def _brought(recorded: Recorded, before: Delivery, item: Item) -> Delivery | None:
    """Return the message that brought an ask to the machine that decided about it later."""
    last = before.step if before.mailbox == CONTEXT else sys.maxsize
    addition = added(recorded, item, last) if item.uuid else None
    written = recorded.written({item.key})
    additions = {it.cause for it, fact in written if is_added(fact, item)}
    for mailbox in dict.fromkeys((before.mailbox, CONTEXT)):
        if addition is not None and mailbox == CONTEXT:
            return addition.by
        for it in reversed(recorded.naming({item.key}, mailbox.__eq__)):
            if addition is not None and it.cause != Cause(CONTEXT, addition.step):
                continue
            if _is_before(it, before) and (it.cause in additions or _brings(recorded, it, item)):
                return it
    return None


def _restored(recorded: Recorded, item: Item) -> Delivery | None:
    """Return the start of a core that went on with an earlier one's truth, if that has the item."""
    first = recorded.joined_with(Cause(CONTEXT, 1))
    is_it = first and isinstance(first[0].message, CoreRestored)
    return first[0] if is_it and first.speaks_of(item.key or item.application_id) else None


def _is_before(it: Delivery, other: Delivery) -> bool:
    return it.step < other.step if it.mailbox == other.mailbox else it.at_ns <= other.at_ns


def _brings(recorded: Recorded, it: Delivery, item: Item) -> bool:
    match it.message:
        case s.FactsAppended() as message:
            return any(is_added(fact, item) for fact in facts_of(message))
        case rm.RMUpdateAllocation() | rm.RMUpdateNode():
            return recorded.alone(it).asks(item)
    return False


def _asked_back(recorded: Recorded, call: Delivery, item: Item) -> Origin | None:
    """Return the request that a confirmation answers; any other call is where the way begins."""
    if item.part is not Part.END or not isinstance(call.message, rm.AllocationsRequested):
        return None
    for it in reversed(recorded.naming(item.names, is_manager)):
        if isinstance(it.message, CallUpdateAllocation) and it.at_ns <= call.at_ns:
            whole = _asked_in(it.message, item)
            if whole is not None:
                return Origin(it, whole)
    return None


def _asked_in(message: CallUpdateAllocation, item: Item) -> Item | None:
    """Return the item with all its names, if this asks it back."""
    for it in message.response.released:
        is_it = it.uuid == item.uuid if item.uuid else it.allocation_key == item.key
        if it.termination_type in ASKED_BACK and is_it:
            return Item(Part.END, it.application_id, it.allocation_key, it.uuid)
    return None
