"""Who plans for a partition."""

from msgspec import Struct

from yunikorn_actors.messages.rm_events import Capabilities


class Life(Struct, frozen=True, kw_only=True):
    """One life of a planner, in one life of a partition, for one resource manager."""

    partition: str
    epoch: int
    number: int = 0
    """How many there were before it in this life of the partition."""
    rm_id: str
    capabilities: Capabilities
