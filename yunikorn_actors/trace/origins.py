"""What led to one item of a message: which request brought the ask, which one ended the allocation.

A message has one cause, the message that was being handled when it was sent. Where several were
handled together, that is the last of them, and it may be about something else. And a plan has many
items, of asks that came at other times. So each item is followed by what it is about. A placement
begins at the call that brought its ask, a release at the call, the timer or the change that asked
for it. What is asked back for an ask begins at that ask, and a swap leads through the confirmation.

The driver's cause stays true: it says what set the handling off. Where it is not what the item came
of, a link names it as well.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.termination import ASKED_BACK
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    TIMER,
    Cause,
    Delivery,
    Message,
    is_outside,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.trace.about import asks, ends, of_application, taken, takes
from yunikorn_actors.trace.items import Item, Part, claimant, items_in, manager_in
from yunikorn_actors.trace.parts import facts_of, texts_in
from yunikorn_actors.trace.sliced import added, came_of, is_slice


class Recorded(Protocol):
    """What is asked of a recording."""

    def joined_with(self, step: Cause) -> list[Delivery]:
        """Return the messages that were handled together with this one, up to it."""

    def naming(self, names: Iterable[str], mailbox: str) -> list[Delivery]:
        """Return the messages to mailboxes that begin so, in which one of the names stands."""


class _OfManager:
    """What concerns one resource manager: another may use the same ids."""

    def __init__(self, recorded: Recorded, manager: str) -> None:
        self._recorded = recorded
        self._allowed = {"", manager}

    def joined_with(self, step: Cause) -> list[Delivery]:
        together = self._recorded.joined_with(step)
        return self._own(together) or together

    def naming(self, names: Iterable[str], mailbox: str) -> list[Delivery]:
        return self._own(self._recorded.naming(names, mailbox))

    def _own(self, deliveries: list[Delivery]) -> list[Delivery]:
        return [it for it in deliveries if manager_in(it) in self._allowed]


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
    manager = manager_in(delivery)
    if manager:
        recorded = _OfManager(recorded, manager)
    met: set[Cause] = set()
    while at is not None and (step := _step(at.delivery)) not in met:
        way.append(at)
        met.add(step)
        at = _before(recorded, at)
    return way[::-1]


def _step(delivery: Delivery) -> Cause:
    return Cause(delivery.mailbox, delivery.step)


def _before(recorded: Recorded, at: Origin) -> Origin | None:
    """Return the message from which an item came; None if the way begins here."""
    delivery, item = at.delivery, at.item
    if delivery.sender == TIMER and of_application(delivery.message, item):
        return None
    if is_outside(delivery.sender):
        return _asked_back(recorded, delivery, item)
    together = recorded.joined_with(delivery.cause) if delivery.cause.step else []
    if not together:
        return None
    found = (find(recorded, delivery, item, together) for find in _WAYS)
    return next(it for it in found if it is not None)


def _by_swap(
    recorded: Recorded, delivery: Delivery, item: Item, together: list[Delivery]
) -> Origin | None:
    """The end of its placeholder brought a member to its place."""
    if delivery.cause.mailbox != CONTEXT or item.part is not Part.ASK:
        return None
    placeholder = _swapped(recorded, together, item)
    if placeholder is None:
        return None
    enders = (it for it in reversed(together) if ends(it.message, placeholder))
    found = next(enders, None)
    return None if found is None else Origin(found, placeholder, len(together))


def _by_name(
    recorded: Recorded, delivery: Delivery, item: Item, together: list[Delivery]
) -> Origin | None:
    """Of what was handled together, one is about the item."""
    found, there = named_in_any(together, item)
    if found is None:
        return None
    if item.uuid and item.part is Part.ASK and delivery.cause.mailbox == CONTEXT:
        # The same key may have been asked for twice.
        addition = added(recorded, item, delivery.cause.step)
        if addition is not None and addition.by in together:
            found = addition.by
    return Origin(found, there, len(together))


def _by_turn(
    recorded: Recorded, delivery: Delivery, item: Item, _: list[Delivery]
) -> Origin | None:
    """It waited at RmProxy for its turn or for a slice, and was sent on when that was done."""
    if delivery.cause.mailbox != RM_PROXY:
        return None
    call = _CALLS.get(type(delivery.message), Message)
    calls = [
        it
        for it in recorded.naming(item.names | {item.application_id} - {""}, RM_PROXY)
        if it.step <= delivery.cause.step and is_outside(it.sender) and isinstance(it.message, call)
    ]
    found, there = named_in_any(calls, item)
    return None if found is None else Origin(found, there, 1, delivery.cause)


def _by_slice(
    recorded: Recorded, delivery: Delivery, item: Item, together: list[Delivery]
) -> Origin | None:
    """Context did it in slices, or it had to wait for what was done so."""
    if delivery.cause.mailbox != CONTEXT or not is_slice(together[-1].message):
        return None
    found = came_of(recorded, delivery, item) or _restored(recorded, item)
    return None if found is None else Origin(found, item, 1, delivery.cause)


def _by_plan(
    recorded: Recorded, delivery: Delivery, item: Item, together: list[Delivery]
) -> Origin:
    """It came earlier, and something else set off what was decided about it."""
    last = together[-1]
    item = _decided(recorded, delivery.cause, item)
    if item.part is Part.ASK:
        found = _brought(recorded, last, item) or _restored(recorded, item)
        if found is not None:
            return Origin(found, item, 1, delivery.cause)
    return Origin(last, item, len(together))


_CALLS: dict[type[Message], type[Message]] = {
    rm.RMUpdateAllocation: rm.AllocationsRequested,
    rm.RMUpdateApplication: rm.ApplicationsRequested,
    rm.RMUpdateNode: rm.NodesRequested,
}
"""Which call RmProxy translates into which message."""

_WAYS = (_by_swap, _by_name, _by_turn, _by_slice, _by_plan)
"""How the message is found from which an item came, the surest first."""


def named_in_any(together: Sequence[Delivery], item: Item) -> tuple[Delivery | None, Item]:
    """Return the last one that is about an item, and what that is there."""
    for is_meant in _LEVELS[item.part]:
        for delivery in reversed(together):
            if is_meant(delivery.message, item):
                return delivery, _there(delivery.message, item)
    return None, item


_LEVELS: dict[Part, tuple[Callable[[Message, Item], bool], ...]] = {
    Part.ASK: (asks,),
    Part.END: (takes, ends, asks, of_application),
    Part.APPLICATION: (of_application,),
}
"""How it may be about the item, the surest first."""


def _there(message: Message, item: Item) -> Item:
    """Return what the item is in the message that led to it: a plan takes one thing for another."""
    if not isinstance(message, s.ProposeAllocations):
        return item
    if item.part is Part.END:
        for it in message.proposals:
            if item.uuid in taken(it):
                return claimant(it) or item
    if item.part is Part.APPLICATION:
        own = (claimant(it) for it in message.proposals)
        found = [it for it in own if it and it.application_id == item.application_id]
        return found[-1] if found else item
    return item


def _swapped(recorded: Recorded, together: list[Delivery], item: Item) -> Item | None:
    """Return the placeholder whose end brought the member to its place; None if it is no swap."""
    are_ends = (it.part is Part.END for one in together for it in items_in(one.message))
    if not item.uuid or not any(are_ends):
        return None
    for it in recorded.naming({item.uuid}, EVENT_PUBLISHER):
        for fact in facts_of(it.message):
            if isinstance(fact, f.SwapCompleted) and fact.uuid == item.uuid:
                return Item(Part.END, fact.application_id, fact.placeholder_key, fact.placeholder)
    return None


def _decided(recorded: Recorded, cause: Cause, item: Item) -> Item:
    """Return for which ask it was decided that the item goes, or its application moves on.

    Where Context plans by itself there is no proposal, and only the facts tell.
    """
    if item.part is Part.ASK or cause.mailbox != CONTEXT:
        return item
    for it in recorded.naming(item.names, EVENT_PUBLISHER):
        if it.cause == cause:
            for fact in facts_of(it.message):
                found = _for_whom(fact, item)
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


def _brought(recorded: Recorded, before: Delivery, item: Item) -> Delivery | None:
    """Return the message that brought an ask to whoever decided about it later."""
    last = before.step if before.mailbox == CONTEXT else sys.maxsize
    addition = added(recorded, item, last) if item.uuid else None
    for mailbox in dict.fromkeys((before.mailbox, CONTEXT)):
        if addition is not None and mailbox == CONTEXT:
            return addition.by
        found = [
            it
            for it in recorded.naming({item.key}, mailbox)
            if _is_before(it, before) and _brings(it.message, item)
        ]
        if addition is not None:
            found = [it for it in found if it.cause == Cause(CONTEXT, addition.step)]
        if found:
            return found[-1]
    return None


def _restored(recorded: Recorded, item: Item) -> Delivery | None:
    """Return the start of a core that went on with an earlier one's truth, if that has the item."""
    first = recorded.joined_with(Cause(CONTEXT, 1))
    is_it = first and isinstance(first[0].message, CoreRestored)
    if not is_it or (item.key or item.application_id) not in texts_in(first[0].message):
        return None
    return first[0]


def _is_before(it: Delivery, other: Delivery) -> bool:
    return it.step < other.step if it.mailbox == other.mailbox else it.at_ns <= other.at_ns


def _brings(message: Message, item: Item) -> bool:
    whose = (item.application_id, item.key)
    match message:
        case s.FactsAppended():
            return any(
                (fact.spec.application_id, fact.spec.key) == whose
                for fact in facts_of(message)
                if isinstance(fact, f.AskAdded | f.AskReplaced | f.AllocationRecovered)
            )
        case rm.RMUpdateAllocation() | rm.RMUpdateNode():
            return asks(message, item)
    return False


def _asked_back(recorded: Recorded, call: Delivery, item: Item) -> Origin | None:
    """Return the request that a confirmation answers; any other call is where the way begins."""
    if item.part is not Part.END or not isinstance(call.message, rm.AllocationsRequested):
        return None
    for it in reversed(recorded.naming(item.names, "rm:")):
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
