"""One event record, as every builder makes it."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.si import Resource as SiResource

MESSAGE_MAX = 1024

Builder = Callable[[Any], EventRecord]


def event_record(
    type_: EventType,
    object_id: str,
    fact: Any,  # noqa: ANN401 - any fact with a time
    change: ChangeType,
    detail: ChangeDetail,
    *,
    reference: str = "",
    message: str = "",
    resource: Resource | None = None,
) -> EventRecord:
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX - 3] + "..."
    return EventRecord(
        type=type_,
        object_id=object_id,
        message=message,
        timestamp_nano=fact.at_ns,
        event_change_type=change,
        event_change_detail=detail,
        reference_id=reference,
        resource=SiResource.of(resource or {}),
    )
