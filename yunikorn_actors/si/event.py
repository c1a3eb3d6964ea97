"""One event: what changed on which object, and the second object that was involved."""

from yunikorn_actors.si.enums import ChangeDetail, ChangeType, EventType
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import Int64, Name, SiMessage, Text


class EventRecord(SiMessage, frozen=True, kw_only=True):
    """One event: what changed on which object, and the second object that was involved."""

    type: EventType = EventType.UNKNOWN_EVENTRECORD_TYPE
    """The kind of the object."""
    object_id: Name = ""
    """The object: id of an application or node, key of an ask, path of a queue, name of a user."""
    message: Text = ""
    """What has happened, in words; often empty."""
    timestamp_nano: Int64 = 0
    """When, in nanoseconds since 1970."""
    event_change_type: ChangeType = ChangeType.NONE
    """Whether something was added, removed or set."""
    event_change_detail: ChangeDetail = ChangeDetail.DETAILS_NONE
    """What exactly has changed."""
    reference_id: Name = ""
    """The second object, such as the key of the ask for an event about its application."""
    resource: Resource | None = None
    """The amount that came, went, or was set."""
