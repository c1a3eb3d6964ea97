"""What queues will use when everything that was decided has happened.

What was asked back counts as gone and what was promised counts as used. So two asks never count on
the same room, and two decisions that are harmless alone never take a queue below its guarantee
together.
"""

from collections.abc import Callable

from yunikorn_actors.state.preemption import expected
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource, charge, discharge


class ExpectedUsage:
    """The expected usage of queues, and trial changes to it."""

    def __init__(self, of: Callable[[Queue], Resource] = expected) -> None:
        self._of = of
        self._used: dict[str, Resource] = {}

    def of(self, queue: Queue) -> Resource:
        used = self._used.get(queue.path)
        if used is None:
            used = self._used[queue.path] = self._of(queue)
        return used

    def add(self, leaf: Queue, amount: Resource) -> None:
        known = self._used
        for level in leaf.lineage:
            charge(known.get(level.path) or self.of(level), amount)

    def take(self, leaf: Queue, amount: Resource) -> None:
        known = self._used
        for level in leaf.lineage:
            discharge(known.get(level.path) or self.of(level), amount)
