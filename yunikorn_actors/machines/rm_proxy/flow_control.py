"""Flow control: how far a resource manager may be ahead with requests and behind with responses.

Requests: resource managers take turns at Context, so that none has to wait until another is done
(ADR 22). Context has one mailbox. If all that a resource manager sends were in it at once, the
others would wait until the last of it is handled. So each has a part of it there; the rest waits
here, in its order. Behind each part goes a mark that Context sends back, and then the next part
follows.

Responses: between them a callback is handed marks, and its delivery thread answers each when it
comes to it. So what has been sent and not marked as taken is known without asking, a little too
high by what came since the last mark. Above its bound the resource manager is backpressured and
Context is notified; below half of the bound it continues. Nothing is dropped meanwhile (R-139).

Requests are answered while it is backpressured, so what waits is bounded by them: the gateway
learns that requests have been handled only when everything that was sent before has been taken, and
a caller with too many unhandled requests waits there.
"""

from collections import deque
from typing import Any, Final

from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.messages.base import CONTEXT, GATEWAY, Message
from yunikorn_actors.messages.rm_calls import CallMark
from yunikorn_actors.messages.rm_events import (
    RequestsHandled,
    RMHeldBack,
    RMLost,
    RMUnregistered,
    RMUpdateAllocation,
    RMUpdateNode,
    TurnMarked,
)

MARKS = 64
"""Marks in one bound: their share of the work is small, and so is what they overlook."""


def marked_each(bound: int) -> int:
    """Return after how many things another mark is due, of callers and of callbacks alike."""
    return max(1, bound // MARKS)


class Deliveries:
    """What is delivered to the callback of one registration."""

    def __init__(self, rm_id: str, callback: str, undelivered_max: int) -> None:
        self.callback = callback
        self.requested_back = RequestedBack()
        """No part of the canonical state: each of its answers stands in a message."""
        self._rm_id = rm_id
        self._max = undelivered_max
        self._marked_each = marked_each(undelivered_max)
        self._sent = 0
        self._marked = 0
        """What the last mark says; one more that says the same would tell nothing."""
        self.taken_count = 0
        self._handled: deque[tuple[int, int]] = deque()
        """How many requests were handled when that much had been sent, while the number waits."""
        self._is_backpressured = False

    def canonical_state(self) -> dict[str, Any]:
        return {
            "callback": self.callback,
            "sent": self._sent,
            "taken": self.taken_count,
            "handled": list(self._handled),
            "held_back": self._is_backpressured,
        }

    def deliver(self, call: Message) -> list[Effect]:
        self._sent += 1
        effects: list[Effect] = [CallRm(callback=self.callback, call=call)]
        # A mark comes back when the callback has taken all before it: that is how far it has come.
        if self._sent % self._marked_each == 0:
            effects.extend(self._mark())
        # Once: between here and the other edge nothing is sent about it.
        if not self._is_backpressured and self._sent - self.taken_count > self._max:
            effects.append(self._backpressure(on=True))
        return effects

    def handled(self, requests: int) -> list[Effect]:
        """Note that `requests` more were handled, and all that they led to has been sent."""
        # The number goes out behind the answers: a caller that has it finds all that its requests
        # led to.
        if self._sent == self.taken_count:
            return [self._requests_handled(requests)]
        self._handled.append((self._sent, requests))
        # Even between the regular marks, or the number would wait for many more responses.
        return self._mark()

    def taken(self, count: int) -> list[Effect]:
        """The callback has come so far."""
        # Marks come in order, so this only grows.
        self.taken_count = count
        effects: list[Effect] = []
        while self._handled and self._handled[0][0] <= count:
            _, requests = self._handled.popleft()
            effects.append(self._requests_handled(requests))
        # Well below the bound, so that it does not begin and end with every response.
        if self._is_backpressured and 2 * (self._sent - count) < self._max:
            effects.append(self._backpressure(on=False))
        return effects

    def bound(self, undelivered_max: int) -> list[Effect]:
        """Set another bound; the last mark may be too long ago for it."""
        # With a smaller bound the present number may be above it: the mark brings the news.
        self._max, self._marked_each = undelivered_max, marked_each(undelivered_max)
        return self._mark()

    def cut(self) -> list[Effect]:
        """Nothing more is delivered, so there is nothing left to wait for."""
        # Callers wait for room by these numbers: without them those of a manager that is gone would
        # wait for ever.
        return [self._requests_handled(requests) for _, requests in self._handled]

    def _mark(self) -> list[Effect]:
        if self._marked == self._sent:
            return []
        self._marked = self._sent
        mark = CallMark(rm_id=self._rm_id, callback=self.callback, count=self._sent)
        return [CallRm(callback=self.callback, call=mark)]

    def _backpressure(self, *, on: bool) -> Effect:
        self._is_backpressured = on
        message = RMHeldBack(rm_id=self._rm_id, callback=self.callback, held=on)
        return Send(to=CONTEXT, message=message)

    def _requests_handled(self, count: int) -> Effect:
        message = RequestsHandled(rm_id=self._rm_id, callback=self.callback, count=count)
        return Send(to=GATEWAY, message=message)


_LAST: Final = (RMLost, RMUnregistered)
"""What is said of a resource manager last: who has its name afterwards begins anew."""


class ManagerTurns:
    def __init__(self, turn_max: int) -> None:
        """`turn_max`: how many items a turn has; its last request may exceed that."""
        self._max = turn_max
        self._sent: dict[str, int] = {}
        """How many items of the present part are at Context, by resource manager."""
        self._waiting: dict[str, deque[Message]] = {}
        """What follows the part that is there, as long as its mark has not come back."""

    def canonical_state(self) -> dict[str, Any]:
        """Nothing where nobody has to wait, so it is the state that it was without turns."""
        waiting = {rm_id: len(messages) for rm_id, messages in sorted(self._waiting.items())}
        books = {"at_context": dict(sorted(self._sent.items())), "to_context": waiting}
        return {name: book for name, book in books.items() if book}

    def send(self, rm_id: str, message: Message, *, alone: bool = False) -> list[Effect]:
        """Send something of a resource manager to Context, behind all that it has sent before.

        A manager that is alone holds up no other, and parts would only make bursts cost more.
        """
        waiting = self._waiting.get(rm_id)
        if waiting is not None:
            waiting.append(message)
            return []
        effects: list[Effect] = [Send(to=CONTEXT, message=message)]
        # Alone, nobody waits, so nothing is counted.
        if not alone:
            # Counted after sending: a request is never cut.
            sent = self._sent.get(rm_id, 0) + _items(message)
            if sent < self._max:
                self._sent[rm_id] = sent
            else:
                # Full. The mark goes behind it, and everything else waits until it is back.
                self._sent.pop(rm_id, None)
                self._waiting[rm_id] = deque()
                effects.append(Send(to=CONTEXT, message=TurnMarked(rm_id=rm_id)))
        if type(message) in _LAST:
            # Now, and not when it was said: until then what was in front of it was counted.
            self.forget(rm_id)
        return effects

    def handled(self, rm_id: str) -> list[Effect]:
        """Context has handled a part; the next one follows."""
        # Taken out while its messages go, so that `send` lets them through; it makes a new entry
        # where another part is full.
        waiting = self._waiting.pop(rm_id)
        effects: list[Effect] = []
        # One of these may fill the next part: then `send` has made a new entry, and the rest waits
        # again.
        while waiting and rm_id not in self._waiting:
            effects.extend(self.send(rm_id, waiting.popleft()))
        if waiting:
            self._waiting[rm_id] = waiting
        return effects

    def forget(self, rm_id: str) -> None:
        """It was not let in."""
        self._sent.pop(rm_id, None)


def _items(message: Message) -> int:
    """Say how much work it is, about."""
    # Only what grows with a request counts; a registration is one item.
    if isinstance(message, RMUpdateAllocation):
        return 1 + len(message.asks) + len(message.ask_releases) + len(message.releases)
    return 1 + len(message.nodes) if isinstance(message, RMUpdateNode) else 1
