"""Which message an item came of, where several were handled together, as a recording goes on.

What they led to has the last of them as its cause, whichever of them was about it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery, is_outside
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.origins.items import Item, Part, items_in, manager_in

Name = tuple[str, str, str, bool]
"""A resource manager, its application, a key, and whether it is an end; or a UUID alone."""


class Request(NamedTuple):
    """A message that was about something."""

    step: Cause
    stimulus: str


class BatchOrigins:
    """Takes the messages of a recording in their order, and tells of the latest."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Delivery, dict[Name, Request] | None]] = {}
        """Of each mailbox the last message, and what it was handled together with, if it was."""
        self._together: dict[Cause, dict[Name, Request]] = {}
        """By the last step of each group, which of its messages was the last about what."""
        self._parked_for: dict[Name, list[Name]] = {}
        """The placeholders of each member."""

    def note(self, delivery: Delivery) -> None:
        group = self._group(delivery) if delivery.joined else None
        if group is not None:
            group.update(_requests(delivery))
            self._together[Cause(delivery.mailbox, delivery.step)] = group
        self._last[delivery.mailbox] = delivery, group
        message = delivery.message
        if isinstance(message, FactsAppended):
            for fact in message.facts:
                if isinstance(fact, f.AskParked):
                    member = manager_in(delivery), fact.application_id, fact.key, False
                    self._parked_for.setdefault(member, []).append(("", "", fact.placeholder, True))

    def _group(self, delivery: Delivery) -> dict[Name, Request] | None:
        """Return that of the message right before; None if that was not taken."""
        former, group = self._last.get(delivery.mailbox, (None, None))
        if former is None or former.step != delivery.step - 1:
            return None
        if group is None:
            return dict(_requests(former))
        del self._together[Cause(former.mailbox, former.step)]
        return group

    def are_together(self, step: Cause) -> bool:
        """Whether a step is the last of several that were handled together."""
        return step in self._together

    def of(self, delivery: Delivery, item: Item) -> str:  # noqa: ARG002 - for those who know more
        """Return the request that led to an item of a message: here that of all of it."""
        return delivery.stimulus

    def request(
        self, delivery: Delivery, item: Item, manager: str = "", *, is_own: bool = False
    ) -> Request | None:
        """Return which of those that were handled together led to an item of a message.

        None if there was one alone, or none of them was about the item. What was about another ask
        of its application is good enough where the message names no ask.
        """
        together = self._together.get(delivery.cause)
        if together is None:
            return None
        names = self.names(manager or manager_in(delivery), item, is_own=is_own)
        return next((together[name] for name in names if name in together), None)

    def step_of(self, delivery: Delivery, item: Item | None) -> Cause:
        """Return the step in which it came to an item of a message: the one that was about it."""
        found = None if item is None else self.request(delivery, item, is_own=True)
        return delivery.cause if found is None else found.step

    def names(self, manager: str, item: Item, *, is_own: bool = False) -> Iterator[Name]:
        """Yield by which names an item is looked for, the surest first."""
        yield from self._parked_for.get((manager, item.application_id, item.key, False), ())
        yield from names_of(manager, item)
        if item.part is Part.END:
            yield from names_of(manager, Item(Part.ASK, item.application_id, item.key, item.uuid))
        if not (is_own and item.part is Part.ASK):
            yield manager, item.application_id, "", False


def _requests(delivery: Delivery) -> Iterator[tuple[Name, Request]]:
    if delivery.mailbox == CONTEXT or is_outside(delivery.sender):
        request = Request(Cause(delivery.mailbox, delivery.step), delivery.stimulus)
        yield from ((name, request) for name in names_in(delivery))


def names_in(delivery: Delivery) -> Iterator[Name]:
    """Yield by which names a message is found: those of its items, and of their applications."""
    manager = manager_in(delivery)
    for it in items_in(delivery.message):
        yield from names_of(manager, it)
        yield manager, it.application_id, "", False


def names_of(manager: str, item: Item) -> Iterator[Name]:
    is_end = item.part is Part.END
    if item.uuid:
        yield "", "", item.uuid, is_end
    if item.key or not item.uuid:
        yield manager, item.application_id, item.key, is_end
