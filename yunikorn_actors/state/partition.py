"""The state of one partition: the truth in Context, a replica in a Scheduler.

Only facts change it (`facts.apply`). The dictionaries of amounts are changed in place and never
replaced, so an application can keep the tuple of all books that one of its allocations is written
into.

Pending counts the repeats that still wait; allocated counts what is charged, placeholders too (an
application counts those apart).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.applications import Application, FinishedApplication, Usage
from yunikorn_actors.state.limits import Limit
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource

# Long work: what Context does in a partition in several slices, as far as it must be finished.
#
# Between two slices the state is whole, but what goes is half gone: an application has lost some
# of its asks, a reload has reached some of the queues. Nothing is decided for the partition
# meanwhile, and a core that starts again in between goes on with it.


class LongWorkKind(StrEnum):
    REQUEST = "request"
    """The items of a request, of which each is whole by itself."""
    APPLICATION = "application"
    """The removal of an application, by its id."""
    NODE = "node"
    """The removal of a node, by its id."""
    TIMER = "timer"
    """The time of an application is up: its id, and in `detail` the kind of its timer."""
    RELOAD = "reload"
    """Another configuration."""
    MANAGER = "manager"
    """The removal of the whole partition, as its resource manager leaves."""


class LongWork(Struct, frozen=True):
    kind: LongWorkKind
    id: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.kind.value, self.id, self.detail)))


class Followed(Protocol):
    """What policies keep of their own: facts alone change it, so it belongs to the state."""

    @property
    def by_queue(self) -> Mapping[str, Any]:
        """What there is; without any only facts of the kinds that make some are observed."""

    @property
    def makes(self) -> frozenset[type]: ...

    def observe(self, state: "PartitionState", fact: Any) -> None:  # noqa: ANN401 - any fact
        """A fact was applied."""

    def takes_gangs(self, policy: str) -> bool:
        """Whether leaves under it do."""

    def has_gate(self, policy: str) -> bool:
        """Whether it says who of a leaf may start."""

    def image(self) -> dict[str, Any]:
        """Return the whole state as plain values, for a successor to begin with."""

    def kept(self) -> dict[str, Any]:
        """Give what is kept, without what has failed."""

    def restore(self, state: "PartitionState", image: dict[str, Any] | None) -> None:
        """Begin with what an image has; with none as if all were new."""


class PartitionState:
    """Truth in Context, a replica in Scheduler: a record, which facts alone write."""

    def __init__(self, name: str, folds: Followed | None = None) -> None:
        self.name = name
        self.folds = folds
        """None where nothing is planned by it."""
        self.revision = 0
        self.config: PartitionConfig | None = None
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self.capacity: Resource = {}
        """Sum over the nodes: the max of the root queue. A type no node has is absent."""
        self.applications: dict[str, Application] = {}
        self.finished: dict[int, FinishedApplication] = {}
        """By serial, in the order in which they ended."""
        self.last_ends: dict[str, int] = {}
        """Serial of the newest among them, by id."""
        self.rejected: dict[int, None] = {}
        """Serials of those among them that were never accepted, the oldest first."""
        self.users: dict[str, dict[str, Usage]] = {}
        self.groups: dict[str, dict[str, Usage]] = {}
        self.foreign: dict[str, ForeignAllocation] = {}
        self.quotas: dict[str, int] = {}
        """Queues whose maximum is to be enforced, and when."""
        self.schedulable_count = 0
        """Nodes that take work."""
        self.admitted: dict[int, str] = {}
        """Serial to id of the admitted gangs of which something is still to come."""
        self.unconfirmed: dict[str, str] = {}
        """UUID to application of what was asked back, the oldest first, until it is reported."""
        self.owners: dict[str, str] = {}
        """UUID of each allocation to its application."""
        self.reservation_count = 0
        self.refused_node_actions = 0
        self.suspended = False
        """Nothing is decided: its resource manager is lost or backpressured."""
        self.is_backpressured = False
        """The second of these."""

        self.long_work: LongWork | None = None
        """What is being done in slices, while that is under way."""

    @property
    def decides_nothing(self) -> bool:
        """Whether nothing may be decided for it now."""
        return self.suspended or self.long_work is not None

    @property
    def root(self) -> Queue:
        return self.queues["root"]

    @property
    def allocation_count(self) -> int:
        return len(self.owners)

    def owner_of(self, uuid: str) -> Application | None:
        """Return the application that has this allocation, if any does."""
        id_ = self.owners.get(uuid)
        return None if id_ is None else self.applications[id_]

    def remember(self, ended: FinishedApplication) -> None:
        """Remember an application that ended.

        Several lives of one id may be remembered; the last of them says why it is gone.
        """
        self.finished[ended.serial] = ended
        self.last_ends[ended.spec.application_id] = ended.serial

    def forget(self, serial: int) -> None:
        """The history of one that has ended expired."""
        id_ = self.finished.pop(serial).spec.application_id
        # A newer life may have ended since: then the id still leads there.
        if self.last_ends.get(id_) == serial:
            del self.last_ends[id_]
        self.rejected.pop(serial, None)

    def queue(self, path: str) -> Queue | None:
        """Look a queue up by its path; names of queues ignore case."""
        return self.queues.get(path.lower())

    def usage_of(self, limit: Limit) -> Usage:
        """What counts against the limit of a user or group."""
        return (self.groups if limit.of_group else self.users)[limit.owner][limit.path]
