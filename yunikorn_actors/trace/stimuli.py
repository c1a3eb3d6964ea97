"""Which request from outside led to an item, also where several requests were handled together.

What several messages led to has the stimulus of the last of them, and hands it on. So behind them a
stimulus says nothing about an item. There the request is taken that was about the item: of those
handled together, or, further on, the one that brought the ask or the application.
"""

from collections.abc import Callable, Iterator

from yunikorn_actors.domain import facts as f
from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery, is_outside
from yunikorn_actors.trace.items import Item, items_in, manager_in
from yunikorn_actors.trace.parts import facts_of

_Name = tuple[str, str, str]
"""A resource manager, its application and a key, or without the key; else a UUID at the end."""


class Stimuli:
    """Takes the messages of a recording in their order, and tells of the latest."""

    def __init__(self, is_mixed: Callable[[Cause], bool] | None = None) -> None:
        """Where not all messages are taken, `is_mixed` says whether requests came together."""
        self._together: dict[str, tuple[Cause, dict[_Name, str]]] = {}
        """Of each mailbox the last step, and which request was about what up to it."""
        self._led: dict[Cause, dict[_Name, str]] = {}
        """The same of all that was handled together with others."""
        self._mixed: set[Cause] = set()
        """Steps behind these: their stimulus is that of the last one."""
        self._is_mixed = is_mixed or self._mixed.__contains__
        self._brought: dict[_Name, str] = {}
        self._parked_for: dict[_Name, list[_Name]] = {}
        """The placeholders of each member."""

    def note(self, delivery: Delivery) -> None:
        step = Cause(delivery.mailbox, delivery.step)
        about: dict[_Name, str] = {}
        if delivery.mailbox == CONTEXT or is_outside(delivery.sender):
            manager = manager_in(delivery)
            for it in items_in(delivery.message):
                names = (*_of(manager, it), (manager, it.application_id, ""))
                about |= dict.fromkeys(names, delivery.stimulus)
        if delivery.joined and delivery.mailbox in self._together:
            former, earlier = self._together[delivery.mailbox]
            self._led.pop(former, None)
            about = self._led[step] = earlier | about
        self._together[delivery.mailbox] = step, about
        if is_outside(delivery.sender):
            self._brought.update(about)
        elif delivery.cause in self._led or delivery.cause in self._mixed:
            self._mixed.add(step)
        for fact in facts_of(delivery.message):
            if isinstance(fact, f.AskParked):
                member = (manager_in(delivery), fact.application_id, fact.key)
                self._parked_for.setdefault(member, []).append(("", "", fact.placeholder))

    def of(self, delivery: Delivery, item: Item, manager: str = "") -> str:
        """Return the request that led to an item of a message, which was noted."""
        known = self._led.get(delivery.cause)
        if known is None:
            at = Cause(delivery.mailbox, delivery.step)
            known = self._brought if self._is_mixed(at) else {}
        names = self._names(manager or manager_in(delivery), item)
        return next((known[it] for it in names if it in known), delivery.stimulus)

    def that_brought(self, manager: str, item: Item, otherwise: str) -> str:
        """Return the request that brought an item of a manager into the core last."""
        names = _of(manager, item)
        return next((self._brought[it] for it in names if it in self._brought), otherwise)

    def of_all(self, delivery: Delivery) -> set[str]:
        """Return the requests that led to the items of a message."""
        items = items_in(delivery.message)
        return {self.of(delivery, it) for it in items} or {delivery.stimulus}

    def _names(self, manager: str, item: Item) -> Iterator[_Name]:
        yield from self._parked_for.get((manager, item.application_id, item.key), ())
        yield from _of(manager, item)
        yield manager, item.application_id, ""


def _of(manager: str, item: Item) -> Iterator[_Name]:
    if item.uuid:
        yield "", "", item.uuid
    if item.key or not item.uuid:
        yield manager, item.application_id, item.key
