"""Event counts: what has happened since the read side began, for the metrics."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationEvent, ApplicationState

_S = ApplicationState
ENDS: Final = {_S.COMPLETED: "completed", _S.FAILED: "failed", _S.REJECTED: "rejected"}


class EventCounts:
    """Of all partitions together; a queue keeps its numbers when it goes and comes back."""

    def __init__(self) -> None:
        self.allocated: Counter[str] = Counter()
        """By queue."""
        self.released: Counter[str] = Counter()
        """By queue."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Applications by queue and how they ended."""
        self.submitted: Counter[str] = Counter()
        """Applications that were new, were accepted, were rejected."""
        self.nodes_removed = 0

    def note(self, fact: f.Fact) -> None:
        count = _COUNTED.get(type(fact))
        if count is not None:
            count(self, fact)

    def _placed(self, fact: f.AllocationCommitted | f.AllocationRecovered) -> None:
        self.allocated[fact.queue] += 1

    def _all_placed(self, fact: f.AllocationsCommitted) -> None:
        # A run has few different charges, and each counts as often as it was made.
        for member, count in Counter(fact.members).items():
            self.allocated[fact.charged[member].queue] += count

    def _swapped(self, fact: f.SwapCompleted) -> None:
        self.allocated[fact.queue] += 1
        self.released[fact.queue] += 1

    def _released(self, fact: f.AllocationReleased) -> None:
        self.released[fact.queue] += 1

    def _added(self, _: f.ApplicationAdded) -> None:
        self.submitted["new"] += 1

    def _rejected(self, _: f.ApplicationRejected) -> None:
        self.submitted["rejected"] += 1
        self.ended["", "rejected"] += 1

    def _state(self, fact: f.ApplicationStateChanged) -> None:
        if fact.state is _S.ACCEPTED and fact.event is ApplicationEvent.RUN:
            self.submitted["accepted"] += 1
        end = ENDS.get(fact.state)
        if end is not None:
            self.ended[fact.queue, end] += 1
        if end == "rejected":
            self.submitted["rejected"] += 1

    def _node_removed(self, _: f.NodeRemoved) -> None:
        self.nodes_removed += 1


_COUNTED: Final[dict[type, Callable[[EventCounts, Any], None]]] = {
    f.AllocationCommitted: EventCounts._placed,
    f.AllocationRecovered: EventCounts._placed,
    f.AllocationsCommitted: EventCounts._all_placed,
    f.SwapCompleted: EventCounts._swapped,
    f.AllocationReleased: EventCounts._released,
    f.ApplicationAdded: EventCounts._added,
    f.ApplicationRejected: EventCounts._rejected,
    f.ApplicationStateChanged: EventCounts._state,
    f.NodeRemoved: EventCounts._node_removed,
}
