"""What everything else relies on: sizes, shares and the order of queues."""

from yunikorn_actors.domain.proposals import Proposal
from yunikorn_actors.planning.model.model import Model
from yunikorn_actors.planning.model.order import rekey
from yunikorn_actors.planning.parts.part import NEVER_NS


class Measurer:
    due_ns = NEVER_NS

    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.wakes.measures

    @property
    def has_work(self) -> bool:
        return self._marks.is_stale

    def plan(self, _now_ns: int, _room: int) -> list[Proposal]:
        marks = self._marks
        if marks.is_stale:
            self._measure()
        for leaf in marks.leaves:
            rekey(leaf)
        marks.leaves.clear()
        return []

    def _measure(self) -> None:
        """The cluster or the configuration changed: limits and shares have new measures."""
        model = self._model
        # Sizes before places: a gate that allows more now wakes what it blocked.
        model.tree.measure(model.state.capacity)
        queues = model.tree.queues.values()
        for queue in queues:
            model.participants.wake_blocked(queue)
        model.wakes.measured(leaf for leaf in queues if leaf.lanes and leaf.is_entitled)
