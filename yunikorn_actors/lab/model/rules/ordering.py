"""Who comes first: queues, then applications, then asks."""

from typing import Any

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster, Queue
from yunikorn_actors.lab.model.rules import gangs
from yunikorn_actors.lab.model.sums import once
from yunikorn_actors.values.resource import Resource, sub

NOTHING_WAITS = -(2**31)
LENDING = ("all", "turns", "free")
"""Which asks lend their priority: all, those that may have their turn, those no gang holds back."""


def before(cluster: Cluster, one: Ask, two: Ask) -> bool:
    """Whether the first surely comes before the second, whichever asks lend their priority."""
    lending = LENDING if some_are_held_back(cluster) else LENDING[:1]
    return all(_before(cluster, one, two, lends) for lends in lending)


@once
def some_are_held_back(cluster: Cluster) -> bool:
    return any(gangs.is_held_back(cluster, ask) for ask in sums.waiting(cluster))


@once
def urgent(cluster: Cluster, lends: str) -> list[Ask]:
    """Return the asks that lend their priority."""
    if lends == "all":
        return sums.waiting(cluster)
    bars = gangs.blocked if lends == "turns" else gangs.is_held_back
    return [ask for ask in sums.waiting(cluster) if not bars(cluster, ask)]


def _before(cluster: Cluster, one: Ask, two: Ask, lends: str) -> bool:
    if one.app is two.app:
        return rank_of_ask(one) < rank_of_ask(two)
    for x, y in zip(one.app.leaf.up[::-1], two.app.leaf.up[::-1], strict=False):
        if x is not y:
            a, b = rank_of_queue(cluster, x, lends), rank_of_queue(cluster, y, lends)
            return a < b if a != b else _exceeds(sums.pending(cluster, x), sums.pending(cluster, y))
    return rank_of_app(cluster, one.app, lends) < rank_of_app(cluster, two.app, lends)


@once
def rank_of_queue(cluster: Cluster, queue: Queue, lends: str) -> tuple[Any, ...]:
    assert queue.parent is not None
    says = queue.parent.says
    rank = queue.spec.position if says.queue_sort_policy == "fifo" else share(cluster, queue)
    here = [ask for ask in urgent(cluster, lends) if queue in ask.app.leaf.up]
    shown = [shown_priority(ask.spec.priority, ask.app.leaf, queue.parent) for ask in here]
    urgency = -max(shown, default=NOTHING_WAITS)
    return (urgency, rank) if says.application_sort_priority else (rank, urgency)


def share(cluster: Cluster, queue: Queue) -> float:
    due = dict(sums.total_capacity(cluster))
    for level in reversed(queue.up):
        due = due | (level.spec.max or {}) if due else {}
    due |= queue.spec.guaranteed or {}
    used = sums.usage(cluster, queue).items()
    parts = [n / due[kind] if due[kind] > 0 else 1.0 for kind, n in used if n > 0 and kind in due]
    return max(parts, default=0.0)


@once
def rank_of_app(cluster: Cluster, app: App, lends: str) -> tuple[Any, ...]:
    says = app.leaf.says
    mine = [ask.spec.priority for ask in urgent(cluster, lends) if ask.app is app]
    urgency = -max(mine, default=NOTHING_WAITS)
    rank: tuple[Any, ...] = (app.age,)
    arrival = app.serial
    if says.application_sort_policy == "fair":
        due = app.leaf.spec.guaranteed or {}
        used = total(placed.size for placed in sums.reals_of(cluster, app)).items()
        rank = tuple(sorted((n / (due.get(kind) or 1) for kind, n in used if n), reverse=True))
        arrival = 0
    ranks = (urgency, rank) if says.application_sort_priority else (rank, urgency)
    return (*ranks, arrival)


def rank_of_ask(ask: Ask) -> tuple[int, ...]:
    return (-ask.spec.priority, ask.created, ask.sequence)


def _exceeds(left: Resource, right: Resource) -> bool:
    rest = sub(left, right).values()
    return any(rest) and all(n >= 0 for n in rest)


def shown_priority(priority: int, leaf: Queue, top: Queue | None) -> int:
    """Carry a priority up to a queue: each on the way adds its offset, or fences."""
    for queue in leaf.up:
        if queue is top:
            break
        offset = queue.says.priority_offset
        priority = offset if queue.says.priority_fence else priority + offset
    return priority
