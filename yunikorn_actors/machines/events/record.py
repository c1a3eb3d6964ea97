"""One event record, as every builder makes it."""

from collections.abc import Callable, Mapping
from typing import Any

from yunikorn_actors.policies.folds import runtime_fault
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.si import Resource as SiResource
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import TAG_RUNTIME

MESSAGE_MAX = 1024
"""In bytes, as it is written; a longer one ends with three dots."""

Builder = Callable[[Any], EventRecord]
Fixed = dict[type, tuple[Builder, ...]]
"""By fact the records that it always has, in their order."""
Chosen = dict[type, Callable[[Any], tuple[Builder, ...]]]
"""By fact what chooses the records of this one."""


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
    """Make a record: a parameter for each of its fields, and the fact for its time."""
    return EventRecord(
        type=type_,
        object_id=object_id,
        message=_cut(message),
        timestamp_nano=fact.at_ns,
        event_change_type=change,
        event_change_detail=detail,
        reference_id=reference,
        resource=SiResource.of(resource or {}),
    )


def without_runtime(whose: str, tags: Mapping[str, str]) -> str:
    """Say why a declared run time counts as none; empty if it counts, or there is none."""
    fault = runtime_fault(tags.get(TAG_RUNTIME, ""))
    return f"the run time of {whose} counts as none: {fault}" if fault else ""


def of_request(
    fact: Any,  # noqa: ANN401 - any fact about an ask of an application
    key: str,
    message: str,
    resource: Resource | None = None,
) -> EventRecord:
    """Tell something of an ask that no detail of the interface stands for."""
    return event_record(
        EventType.REQUEST,
        key,
        fact,
        ChangeType.NONE,
        ChangeDetail.DETAILS_NONE,
        reference=fact.application_id,
        message=message,
        resource=resource,
    )


def _cut(message: str) -> str:
    """A character of which not all bytes have room goes whole."""
    # In bytes, as the interface bounds them; a character that is cut in half is dropped.
    written = message.encode(errors="replace")
    if len(written) <= MESSAGE_MAX:
        return message
    return written[: MESSAGE_MAX - 3].decode(errors="ignore") + "..."
