"""One event: what changed on which object, and the second object that was involved."""

from yunikorn_actors.si.enums import ChangeDetail, ChangeType, EventType
from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Int64, Name, SiMessage, Text


class EventRecord(SiMessage, frozen=True, kw_only=True):
    """What has happened to an object of the core, and when."""

    type: EventType = EventType.UNKNOWN_EVENTRECORD_TYPE
    object_id: Name = ""
    message: Text = ""
    timestamp_nano: Int64 = 0
    event_change_type: ChangeType = ChangeType.NONE
    event_change_detail: ChangeDetail = ChangeDetail.DETAILS_NONE
    reference_id: Name = ""
    resource: Resource | None = None
