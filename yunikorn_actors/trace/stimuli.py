"""Which request from outside led to an item, also where several requests were handled together.

What several messages led to has the stimulus of the last of them, and hands it on. So behind them a
stimulus says nothing about an item. There the request is taken that was about the item: of those
handled together, or, further on, the one that brought the ask or the application.

A recording has messages in the order in which they were handled, and a mailbox may be far behind
another. So what a later request brought does not count where an earlier step of Context led to it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from yunikorn_actors.domain import facts as f
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Cause, Delivery, is_outside
from yunikorn_actors.trace.items import Item, Part, items_in, manager_in
from yunikorn_actors.trace.parts import facts_of

_Name = tuple[str, str, str, bool]
"""A resource manager, its application, a key, and whether it is an end; or a UUID alone."""
_Brought = tuple[list[int], list[str]]
"""In which steps of Context something was brought or ended, and by which requests."""


class Stimuli:
    """Takes the messages of a recording in their order, and tells of the latest."""

    def __init__(self, behind: Callable[[Cause], int | None] | None = None) -> None:
        """Where not all messages are taken, `behind` says which came of several together.

        It returns the step of Context that led to a message, and None if that handled one alone.
        """
        self._together: dict[str, tuple[Cause, dict[_Name, str]]] = {}
        """Of each mailbox the last step, and which request was about what up to it."""
        self._led: dict[Cause, dict[_Name, str]] = {}
        """The same of all that was handled together with others."""
        self._mixed: dict[Cause, int] = {}
        """Steps behind these, with that of Context: their stimulus is that of the last one."""
        self._behind = behind or self._mixed.get
        self._brought: dict[_Name, _Brought] = {}
        self._parked_for: dict[_Name, list[_Name]] = {}
        """The placeholders of each member."""

    def note(self, delivery: Delivery) -> None:
        step = Cause(delivery.mailbox, delivery.step)
        about: dict[_Name, str] = {}
        if delivery.mailbox == CONTEXT or is_outside(delivery.sender):
            manager = manager_in(delivery)
            for it in items_in(delivery.message):
                names = (*_of(manager, it), (manager, it.application_id, "", False))
                about |= dict.fromkeys(names, delivery.stimulus)
        if delivery.mailbox == CONTEXT and delivery.sender == RM_PROXY:
            self._bring(about, delivery.step)
        if delivery.joined and delivery.mailbox in self._together:
            former, earlier = self._together[delivery.mailbox]
            self._led.pop(former, None)
            about = self._led[step] = earlier | about
        self._together[delivery.mailbox] = step, about
        if not is_outside(delivery.sender):
            cause = delivery.cause
            if cause in self._led:
                self._mixed[step] = cause.step if cause.mailbox == CONTEXT else 0
            elif cause in self._mixed:
                self._mixed[step] = cause.step if cause.mailbox == CONTEXT else self._mixed[cause]
        for fact in facts_of(delivery.message):
            if isinstance(fact, f.AskParked):
                member = (manager_in(delivery), fact.application_id, fact.key, False)
                self._parked_for.setdefault(member, []).append(("", "", fact.placeholder, True))

    def _bring(self, about: dict[_Name, str], step: int) -> None:
        for name, stimulus in about.items():
            steps, requests = self._brought.setdefault(name, ([], []))
            steps.append(step)
            requests.append(stimulus)

    def of(self, delivery: Delivery, item: Item, manager: str = "") -> str:
        """Return the request that led to an item of a message, which was noted."""
        manager = manager or manager_in(delivery)
        known = self._led.get(delivery.cause)
        if known is not None:
            found = (known.get(name) for name in self._names(manager, item))
        else:
            behind = self._behind(Cause(delivery.mailbox, delivery.step))
            if behind is None:
                return delivery.stimulus
            found = (self._last(name, behind) for name in self._names(manager, item))
        return next((it for it in found if it is not None), delivery.stimulus)

    def _last(self, name: _Name, until: int) -> str | None:
        """Return the last request about it by a step of Context: a later one led to nothing yet."""
        steps, requests = self._brought.get(name, ([], []))
        at = bisect_right(steps, until)
        return requests[at - 1] if at else None

    def that_brought(self, manager: str, item: Item, otherwise: str) -> str:
        """Return the request that brought an item of a manager into the core last."""
        found = (self._brought[it][1][-1] for it in _of(manager, item) if it in self._brought)
        return next(found, otherwise)

    def of_all(self, delivery: Delivery) -> set[str]:
        """Return the requests that led to the items of a message."""
        items = items_in(delivery.message)
        return {self.of(delivery, it) for it in items} or {delivery.stimulus}

    def _names(self, manager: str, item: Item) -> Iterator[_Name]:
        yield from self._parked_for.get((manager, item.application_id, item.key, False), ())
        yield from _of(manager, item)
        if item.part is Part.END:
            yield from _of(manager, Item(Part.ASK, item.application_id, item.key, item.uuid))
        yield manager, item.application_id, "", False


def _of(manager: str, item: Item) -> Iterator[_Name]:
    is_end = item.part is Part.END
    if item.uuid:
        yield "", "", item.uuid, is_end
    if item.key or not item.uuid:
        yield manager, item.application_id, item.key, is_end
