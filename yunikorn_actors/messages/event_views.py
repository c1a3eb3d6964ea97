"""Records of events as they leave the core, for resource managers, readers and routes.

The message of one may quote what a program has sent, such as the queue that it asked for. Ids stay:
readers look them up. Machines hold the records as they are, so that a replay comes to the same.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from yunikorn_actors.si import EventRecord
from yunikorn_actors.values.masking import masked


def shown_records(records: Iterable[EventRecord]) -> tuple[EventRecord, ...]:
    """Return them without the secrets in their messages."""
    return tuple(shown_record(it) if it.message else it for it in records)


def shown_record(record: EventRecord) -> EventRecord:
    message = masked(record.message)
    return record if message == record.message else replace(record, message=message)
