"""Which request from outside led to an item, also where several requests were handled together.

What several messages led to has the stimulus of the last of them, and hands it on. So behind them a
stimulus says nothing about an item. There the request is taken that was about the item: of those
handled together, or, further on, the one that brought the ask or the application.

A recording has messages in the order in which they were handled, and a mailbox may be far behind
another. So what a later request brought does not count where an earlier step of Context led to it.
"""

from bisect import bisect_right
from collections.abc import Callable

from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Cause, Delivery, is_outside
from yunikorn_actors.trace.origins.batch_origins import BatchOrigins, Name, names_in, names_of
from yunikorn_actors.trace.origins.items import Item, items_in, manager_in

_Brought = tuple[list[int], list[str]]
"""In which steps of Context something was brought or ended, and by which requests."""


class Stimuli(BatchOrigins):
    """Takes the messages of a recording in their order, and tells of the latest."""

    def __init__(self, behind: Callable[[Cause], int | None] | None = None) -> None:
        """Where not all messages are taken, `behind` says which came of several together.

        It returns the step of Context that led to a message, and None if that handled one alone.
        """
        super().__init__()
        self._mixed: dict[Cause, int] = {}
        """Steps behind these, with that of Context: their stimulus is that of the last one."""
        self._behind = behind or self._mixed.get
        self._brought: dict[Name, _Brought] = {}

    def note(self, delivery: Delivery) -> None:
        super().note(delivery)
        if delivery.mailbox == CONTEXT and delivery.sender == RM_PROXY:
            self._bring(delivery)
        if not is_outside(delivery.sender):
            cause = delivery.cause
            behind = 0 if self.are_together(cause) else self._mixed.get(cause)
            if behind is not None:
                step = Cause(delivery.mailbox, delivery.step)
                self._mixed[step] = cause.step if cause.mailbox == CONTEXT else behind

    def _bring(self, delivery: Delivery) -> None:
        for name in dict.fromkeys(names_in(delivery)):
            steps, requests = self._brought.setdefault(name, ([], []))
            steps.append(delivery.step)
            requests.append(delivery.stimulus)

    def of(self, delivery: Delivery, item: Item, manager: str = "") -> str:
        """Return the request that led to an item of a message, which was noted."""
        manager = manager or manager_in(delivery)
        if self.are_together(delivery.cause):
            found = self.request(delivery, item, manager)
            return delivery.stimulus if found is None else found.stimulus
        behind = self._behind(Cause(delivery.mailbox, delivery.step))
        if behind is None:
            return delivery.stimulus
        brought = (self._last_about(name, behind) for name in self.names(manager, item))
        return next((it for it in brought if it is not None), delivery.stimulus)

    def _last_about(self, name: Name, until: int) -> str | None:
        """Return the last request about it by a step of Context: a later one led to nothing yet."""
        steps, requests = self._brought.get(name, ([], []))
        at = bisect_right(steps, until)
        return requests[at - 1] if at else None

    def that_brought(self, manager: str, item: Item, otherwise: str) -> str:
        """Return the request that brought an item of a manager into the core last."""
        names = names_of(manager, item)
        found = (self._brought[it][1][-1] for it in names if it in self._brought)
        return next(found, otherwise)

    def of_all(self, delivery: Delivery) -> set[str]:
        """Return the requests that led to the items of a message."""
        items = items_in(delivery.message)
        return {self.of(delivery, it) for it in items} or {delivery.stimulus}
