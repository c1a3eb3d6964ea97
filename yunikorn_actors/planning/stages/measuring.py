"""What everything else relies on: sizes, shares and the order of queues."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.tree import rekey
from yunikorn_actors.planning.model.views import QueueView
from yunikorn_actors.state.proposals import Proposal

STEPS_IN_ONE: Final = 2_000
"""So many steps of measuring, of which there are four for each queue, are one plan."""


class Measurer:
    """Where there are many queues, it needs several plans, and nothing else is planned till then.

    If something changes again before the end, the next plan measures everything at once: a cluster
    that never stands still is planned for, too.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.requeue.measures
        self._left: Iterator[None] | None = None
        """The steps that are left."""
        self._newest: QueueView | None = None
        """The last queue when it began: one that came since then is not among those measured."""

    def plan(self, _now_ns: int, _room: int) -> list[Proposal]:
        marks = self._marks
        # A plan that measures decides nothing: an order that is half done misleads.
        if marks.is_stale and not self._is_measured():
            return []
        # Marked by everything that changes a leaf: one walk puts all of them right.
        for leaf in marks.leaves:
            rekey(leaf)
        marks.leaves.clear()
        return []

    def _is_measured(self) -> bool:
        """The cluster or the configuration changed: limits and shares have new measures."""
        model, marks = self._model, self._marks
        queues = model.tree.queues.values()
        newest = next(reversed(queues), None)
        # The rest of the last round, unless something has changed since.
        steps: int | None = STEPS_IN_ONE
        if self._left is None or not marks.is_under_way or newest is not self._newest:
            # Interrupted by a change: all at once, or a busy cluster would never be measured to its
            # end.
            steps = STEPS_IN_ONE if self._left is None else None
            self._left = model.tree.measure(model.state.capacity)
            self._newest, marks.is_under_way = newest, True
        done = sum(1 for _ in islice(self._left, steps))
        # The bound was reached, so more is left: the next plan goes on here.
        if done == steps:
            return False
        self._left = None
        # Sizes before places: a gate that allows more now wakes what it blocked.
        for queue in queues:
            model.participants.wake_blocked(queue)
        # Only these can be due to preempt: nothing else has a guarantee and something waiting.
        model.requeue.measured(
            leaf for leaf in queues if leaf.is_entitled and (leaf.lanes or leaf.held)
        )
        return True
