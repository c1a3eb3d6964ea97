"""Resource managers take turns at Context, so that none has to wait until another is done.

Context has one mailbox. If all that a resource manager sends were in it at once, the others would
wait until the last of it is handled. So each has a part of it there; the rest waits here, in its
order. Behind each part goes a mark that Context sends back, and then the next part follows.
"""

from collections import deque
from typing import Any

from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.rm_events import RMUpdateAllocation, RMUpdateNode, TurnMarked


class Turns:
    def __init__(self, turn_max: int) -> None:
        """A part has so many items, the last request of it perhaps more."""
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

        One that is alone holds nobody up, and parts would only make bursts cost more.
        """
        waiting = self._waiting.get(rm_id)
        if waiting is not None:
            waiting.append(message)
            return []
        effects: list[Effect] = [Send(to=CONTEXT, message=message)]
        if alone:
            return effects
        sent = self._sent.get(rm_id, 0) + _items(message)
        if sent < self._max:
            self._sent[rm_id] = sent
        else:
            self._sent.pop(rm_id, None)
            self._waiting[rm_id] = deque()
            effects.append(Send(to=CONTEXT, message=TurnMarked(rm_id=rm_id)))
        return effects

    def handled(self, rm_id: str) -> list[Effect]:
        """Context has handled a part; the next one follows."""
        waiting = self._waiting.pop(rm_id)
        effects: list[Effect] = []
        while waiting and rm_id not in self._waiting:
            effects.extend(self.send(rm_id, waiting.popleft()))
        if waiting:
            self._waiting[rm_id] = waiting
        return effects

    def forget(self, rm_id: str) -> None:
        """It has gone; what waits still goes out."""
        self._sent.pop(rm_id, None)


def _items(message: Message) -> int:
    """Say how much work it is, about."""
    if isinstance(message, RMUpdateAllocation):
        return 1 + len(message.asks) + len(message.ask_releases) + len(message.releases)
    return 1 + len(message.nodes) if isinstance(message, RMUpdateNode) else 1
