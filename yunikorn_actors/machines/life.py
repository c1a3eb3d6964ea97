"""Who plans for a partition."""

from msgspec import Struct

from yunikorn_actors.messages.rm_events import Capabilities


class Life(Struct, frozen=True, kw_only=True):
    """One life of a planner, in one life of a partition, for one resource manager."""

    partition: str
    epoch: int
    number: int = 0
    """How many were started before it in this life of the partition."""
    place: int = 0
    """Its place among those that plan for the partition at the same time; successors keep it."""
    planners: int = 1
    """How many these are."""
    speaks: bool = True
    """Whether it tells what it finds out; of several schedulers only the first one does."""
    rm_id: str
    capabilities: Capabilities
