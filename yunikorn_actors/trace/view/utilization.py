"""How full each queue and the whole cluster are, as a recording goes on."""

from collections.abc import Iterator
from typing import NamedTuple

from yunikorn_actors.messages.base import Message
from yunikorn_actors.state.gangs import tightest_max
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.trace.states.replicas import Replicas
from yunikorn_actors.values.resource import Resource, component_wise_min


class Level(NamedTuple):
    name: str
    """The partition and the queue; the root of the queues is the cluster."""
    permille: int
    """Of the resource of which it has the largest part of what it may have."""


class Fullness:
    def __init__(self) -> None:
        self._replicas = Replicas()
        self._last: dict[str, int] = {}

    def take(self, message: Message) -> Iterator[Level]:
        """Yield what a message has changed."""
        state = self._replicas.take(message)
        if state is None:
            return
        for queue in state.queues.values():
            name, permille = f"{state.name} {queue.path}", _permille(queue, state)
            if self._last.get(name, 0) != permille:
                self._last[name] = permille
                yield Level(name, permille)


def _permille(queue: Queue, state: PartitionState) -> int:
    """A queue may have what is configured, and never more than the cluster has."""
    limit: Resource = component_wise_min(state.capacity, tightest_max(queue) or {})
    held = queue.allocated
    return max(
        (1000 * held.get(kind, 0) // most for kind, most in limit.items() if most), default=0
    )
