"""Long work: what Context does in a partition in several slices, as far as it must be finished.

Between two slices the state is whole, but what goes is half gone: an application has lost some of
its asks, a reload has reached some of the queues. Nothing is decided for the partition meanwhile,
and a core that starts again in between goes on with it.
"""

from enum import StrEnum

from msgspec import Struct


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
