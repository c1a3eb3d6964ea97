"""EventPublisher: the event records that tell operators of each change.

The publisher knows which records a fact gives rise to; it keeps them in a ring and pushes them to
resource managers and streams. Each module beside it has the records of one subject.
"""

from yunikorn_actors.machines.events.publisher import (
    EVENT_BYTES_MAX,
    HANDLERS,
    EventPublisher,
)

__all__ = ["EVENT_BYTES_MAX", "EventPublisher", "HANDLERS"]
