"""One life of a planner: which partition it plans for, and as which of several."""

from msgspec import Struct

from yunikorn_actors.messages.rm_events import Capabilities


class Life(Struct, frozen=True, kw_only=True):
    """One life of a planner, in one life of a partition, for one resource manager."""

    partition: str
    epoch: int
    number: int = 0
    """How many were started before it in this life of the partition."""
    place: int = 0
    """Its place among those of the partition; successors keep it."""
    planners: int = 1
    """How many there are for the partition: if several, the one that has the token plans."""
    rm_id: str
    capabilities: Capabilities
