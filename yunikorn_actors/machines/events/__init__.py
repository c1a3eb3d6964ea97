"""EventPublisher: the event records that tell operators of each change.

`event_table` says which records a fact gives rise to, the modules beside it say what stands in
each. The publisher keeps them in a ring, pushes them to resource managers and to streams.
"""

from yunikorn_actors.machines.events.publisher import (
    EVENT_BYTES_MAX,
    HANDLERS,
    EventPublisher,
    EventPublisherInbox,
)

__all__ = ["EVENT_BYTES_MAX", "EventPublisher", "EventPublisherInbox", "HANDLERS"]
