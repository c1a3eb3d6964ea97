"""What can be counted while a recording is read: what is in mailboxes, and what queues hold.

A counter is true only of all messages, so these are worked out from the whole run, whatever a
filter leaves out.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.states.replicas import Replicas
from yunikorn_actors.values.resource import Resource


class Length(NamedTuple):
    at_ns: int
    messages: int


class MailboxLength:
    """How many messages wait in a mailbox, from when each was sent and when it was handled.

    What is sent is known when it is handled. A mailbox keeps its order, so nothing that is handled
    later was put in before this one.
    """

    def __init__(self) -> None:
        self._handled: deque[int] = deque()
        """When messages were taken out; what came in before that is not known yet."""
        self._waiting = 0
        self._last_ns = 0

    def take(self, sent_ns: int, begin_ns: int) -> Iterator[Length]:
        """Yield the changes up to when this message was sent."""
        # Stamped before it is put in: another one may have been faster.
        sent_ns = min(max(sent_ns, self._last_ns), begin_ns)
        while self._handled and self._handled[0] <= sent_ns:
            yield self._change(self._handled.popleft(), -1)
        yield self._change(sent_ns, 1)
        self._handled.append(begin_ns)

    def end(self) -> Iterator[Length]:
        while self._handled:
            yield self._change(self._handled.popleft(), -1)

    def _change(self, at_ns: int, by: int) -> Length:
        self._last_ns = at_ns
        self._waiting += by
        return Length(at_ns, self._waiting)


class Usage(NamedTuple):
    partition: str
    queue: str
    allocated: Resource


class QueueUsage:
    """Follows the facts as a scheduler does, and tells which queues hold something else now."""

    def __init__(self) -> None:
        self._replicas = Replicas()
        self._last: dict[tuple[str, int, str], Resource] = {}

    def take(self, message: Message) -> Iterator[Usage]:
        state = self._replicas.take(message)
        if state is None:
            return
        assert isinstance(message, FactsAppended)
        for path, queue in state.queues.items():
            name = (message.partition, message.epoch, path)
            if self._last.get(name, {}) != queue.allocated:
                self._last[name] = dict(queue.allocated)
                yield Usage(message.partition, queue.path, self._last[name])
