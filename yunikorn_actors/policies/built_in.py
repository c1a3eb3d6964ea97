"""The orders of applications and of queues that every core has, by their names.

How much of its share a queue or application uses: dominant resource fairness.

A share is one quantity divided by one total. Two usages are compared by their largest share, then
by the next one, and so on. No share is ever the outcome of adding floats, so the order in which
types were inserted has no say in a decision and every machine reaches the same one.
"""

from typing import Final

from yunikorn_actors.config import ApplicationSortPolicy, QueueSortPolicy
from yunikorn_actors.policies.places import ApplicationSeen, Key, QueueSeen
from yunikorn_actors.values.resource import Resource


def shares(resource: Resource | None, total: Resource | None) -> list[float]:
    """Divide each quantity by its total, ascending; without a total the quantity speaks for itself.

    The raw quantities let bytes of memory outweigh everything else, which is what resource managers
    have come to expect of a queue without guarantees.
    """
    if not resource:
        return []
    if total is None:
        total = {}
    out: list[float] = []
    for kind, quantity in resource.items():
        whole = total.get(kind, 0)
        out.append(quantity / whole if whole and quantity else float(quantity))
    out.sort()
    return out


def usage_key(resource: Resource | None, total: Resource | None) -> tuple[float, ...]:
    """Turn a usage into a key that sorts by the largest share, then the next, absent as 0.

    Nothing may be negative.
    """
    # Tuples compare from their first element on, here the largest share. Where one tuple ends,
    # Python calls it smaller, while the rest of the other is to be held against 0. Without zeros
    # at the end the rest is above 0, as no share is negative: so longer is larger in both.
    ranked = shares(resource, total)
    ranked.reverse()
    while ranked and ranked[-1] == 0.0:
        ranked.pop()
    return tuple(ranked)


def fair_share(
    allocated: Resource | None, guaranteed: Resource | None, fair_max: Resource | None
) -> float:
    """Find the largest share a queue has of what it is due: the queue with the least comes first.

    What is due is the guarantee where there is one for the type, else the fair maximum; a type that
    has neither does not count. One that uses something of which nothing is due has all of it: 1.0.
    """
    if not allocated:
        return 0.0
    dues = guaranteed or {}
    if fair_max:
        dues = fair_max | dues
    largest = 0.0
    for kind, quantity in allocated.items():
        due = dues.get(kind)
        if due is None or quantity <= 0:
            continue
        share = quantity / due if due > 0 else 1.0
        if share > largest:  # noqa: PLR1730 - max() would cost a call for each type of each queue
            largest = share
    return largest


class Fifo:
    """Who came first."""

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.submitted_ns


class Fair:
    """Who uses the smallest share of what is guaranteed to the queue.

    Several gangs could each hold a useless part, so it takes none.
    """

    reads = ("used",)
    takes_gangs = False

    def application_key(self, app: ApplicationSeen) -> Key:
        return usage_key(app.used, app.guaranteed)


class FairQueues:
    """Which uses the smallest share of what is due to it."""

    def queue_key(self, queue: QueueSeen) -> Key:
        return fair_share(queue.used, queue.due, None)


class ConfiguredQueues:
    """Which stands first in the configuration."""

    def queue_key(self, queue: QueueSeen) -> Key:
        return queue.position


APPLICATION_ORDERS: Final = {
    ApplicationSortPolicy.FIFO: Fifo,
    ApplicationSortPolicy.STATEAWARE: Fifo,
    ApplicationSortPolicy.FAIR: Fair,
}
QUEUE_ORDERS: Final = {
    QueueSortPolicy.FAIR: FairQueues,
    QueueSortPolicy.FIFO: ConfiguredQueues,
}
