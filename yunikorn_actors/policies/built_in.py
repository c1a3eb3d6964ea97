"""The orders of applications and of queues that every core has, by their names."""

from typing import Final

from yunikorn_actors.config import ApplicationSortPolicy, QueueSortPolicy
from yunikorn_actors.policies.places import ApplicationSeen, Key, QueueSeen
from yunikorn_actors.state.share import fair_share, usage_key


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
