"""How far a resource manager is behind with its responses.

Between its responses a callback is handed marks, and its delivery thread answers each when it comes
to it. So what has been sent and not marked as taken is known without asking, a little too high by
what came since the last mark. Above its bound the resource manager is backpressured, and Context is
notified; it continues below half of the bound. Nothing is dropped meanwhile.

Requests are answered while it is backpressured, so what waits is bounded by them: the gateway hears
that requests have been handled only when everything that was sent before has been taken, and a
caller with too many unhandled requests waits there.
"""

from collections import deque
from typing import Any

from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.messages.base import CONTEXT, GATEWAY, Message
from yunikorn_actors.messages.rm_calls import CallMark
from yunikorn_actors.messages.rm_events import RequestsHandled, RMHeldBack

MARKS = 64
"""Marks in one bound: their share of the work is small, and so is what they overlook."""


class Deliveries:
    """What is delivered to the callback of one registration."""

    def __init__(self, rm_id: str, callback: str, undelivered_max: int) -> None:
        self.callback = callback
        self.requested_back = RequestedBack()
        """No part of the canonical state: each of its answers stands in a message."""
        self._rm_id = rm_id
        self._max = undelivered_max
        self._marked_each = max(1, undelivered_max // MARKS)
        self._sent = 0
        self._marked = 0
        """What the last mark says; one more that says the same would tell nothing."""
        self.taken_count = 0
        self._handled: deque[tuple[int, int]] = deque()
        """How many requests have been handled when so much had been sent, while that waits."""
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
        if not self._is_backpressured and self._sent - self.taken_count > self._max:
            effects.append(self._backpressure(on=True))
        return effects

    def handled(self, requests: int) -> list[Effect]:
        """So many requests have been handled, and all that they led to has been sent."""
        if self._sent == self.taken_count:
            return [self._requests_handled(requests)]
        self._handled.append((self._sent, requests))
        return self._mark()

    def taken(self, count: int) -> list[Effect]:
        """The callback has come so far."""
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
        self._max, self._marked_each = undelivered_max, max(1, undelivered_max // MARKS)
        return self._mark()

    def cut(self) -> list[Effect]:
        """Nothing more is delivered, so there is nothing left to wait for."""
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
