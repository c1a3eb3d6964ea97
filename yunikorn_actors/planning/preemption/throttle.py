"""The throttle: what a queue asks of those who take work from it for a guarantee.

A leaf may name a budget and a cooldown: at most that many of its allocations go within a time, and
none that has just begun. Whatever was preempted counts, for a required node or a quota too, but
those rules are not held back: a number is to be met there. Both end by themselves, so each refusal
says when to look again.
"""

from collections.abc import Sequence

from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import NEVER_NS


def cooled_ns(leaf: Queue, allocation: Allocation) -> int:
    """Return from when on an allocation may be a victim."""
    return allocation.allocated_ns + leaf.properties.preemption_cooldown_ns


class Throttle:
    """Budgets and cooldowns as they stand at one time, with the victims of one plan counted."""

    def __init__(self, state: PartitionState, now_ns: int) -> None:
        self._state = state
        self._now_ns = now_ns
        self._going: dict[str, int] = {}
        """By the path of the leaf, how many were taken that its log does not have yet."""
        self._running: dict[str, int] = {}
        self.again_ns = NEVER_NS
        """When the first of all that was refused would be allowed."""

    def take(self, leaf: Queue, count: int) -> None:
        # Without a budget there is nothing to count: most queues have none.
        if leaf.properties.preemption_budget.window_ns:
            self._going[leaf.path] = self._going.get(leaf.path, 0) + count

    def give_back(self, leaf: Queue, count: int) -> None:
        self.take(leaf, -count)

    def are_cooled(self, leaf: Queue, allocations: Sequence[Allocation]) -> bool:
        if not leaf.properties.preemption_cooldown_ns:
            return True
        # The youngest of them decides: a unit goes as a whole or not at all.
        due_ns = max(cooled_ns(leaf, allocation) for allocation in allocations)
        return self._is_due(due_ns)

    def may_lose(self, leaf: Queue, count: int) -> bool:
        """Whether the budget of a leaf has room for `count` more."""
        budget = leaf.properties.preemption_budget
        if not budget.window_ns:
            return True
        going = self._going.get(leaf.path, 0)
        spent = [
            (at_ns + budget.window_ns, number)
            for at_ns, number in leaf.preempted.items()
            if at_ns + budget.window_ns > self._now_ns
        ]
        used = sum(number for _, number in spent)
        # Also what ran until now counts for the share, or a budget would shrink with each
        # preemption.
        excess = going + used + count - budget.of(self._runs_in(leaf) + used)
        due_ns = self._now_ns
        # Oldest first: the log frees its numbers in that order.
        for free_ns, number in spent:
            if excess <= 0:
                break
            excess -= number
            due_ns = free_ns
        return self._is_due(due_ns if excess <= 0 else NEVER_NS)

    def _is_due(self, due_ns: int) -> bool:
        if due_ns <= self._now_ns:
            return True
        # Kept over all refusals: the first of them is when to look again (G30).
        self.again_ns = min(self.again_ns, due_ns)
        return False

    def _runs_in(self, leaf: Queue) -> int:
        """Count what stays in a leaf; the share of a budget is of this and of what went."""
        running = self._running.get(leaf.path)
        if running is None:
            apps: list[Application] = [
                self._state.applications[id_] for id_ in leaf.applications.values()
            ]
            # What is asked back is gone for the budget, although it still runs.
            running = sum(not it.comes_free for app in apps for it in app.allocations.values())
            self._running[leaf.path] = running
        return running
