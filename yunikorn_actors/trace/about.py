"""Whether a message is about an item: brings it, ends it, takes it for something else."""

from yunikorn_actors.domain.proposals import CancelPlaceholder, Preempt, Replace
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Message
from yunikorn_actors.trace.items import Item, Part, items_in
from yunikorn_actors.trace.parts import texts_in


def asks(message: Message, item: Item) -> bool:
    return any(
        (it.application_id, it.key) == (item.application_id, item.key)
        for it in items_in(message)
        if it.part is Part.ASK
    )


def ends(message: Message, item: Item) -> bool:
    """Whether it ends the item: by its UUID, by its key, or all of an application."""
    return any(
        it.application_id in {"", item.application_id}
        and (it.uuid == item.uuid if it.uuid and item.uuid else it.key in {"", item.key})
        for it in items_in(message)
        if it.part is Part.END
    )


def takes(message: Message, item: Item) -> bool:
    """Whether it proposes that the item goes for something else."""
    return isinstance(message, s.ProposeAllocations) and any(
        item.uuid in taken(it) for it in message.proposals
    )


def taken(proposal: object) -> set[str]:
    match proposal:
        case Preempt(victims=victims):
            return {it.uuid for it in victims}
        case Replace(placeholder=uuid) | CancelPlaceholder(placeholder=uuid):
            return {uuid}
    return set()


def of_application(message: Message, item: Item) -> bool:
    return item.application_id in texts_in(message)
