"""Applications: requests to add and remove them, and the answers."""

from msgspec import field

from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Int64, Name, SiMessage, Text


class UserGroupInformation(SiMessage, frozen=True, kw_only=True):
    user: Name = ""
    groups: tuple[Name, ...] = ()


class AddApplicationRequest(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    queue_name: Name = ""
    partition_name: Name = ""
    ugi: UserGroupInformation | None = None
    tags: dict[Name, Text] = field(default_factory=dict)
    execution_timeout_milli_seconds: Int64 = 0
    placeholder_ask: Resource | None = None
    gang_scheduling_style: Name = ""


class RemoveApplicationRequest(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    partition_name: Name = ""


class ApplicationRequest(SiMessage, frozen=True, kw_only=True):
    new: tuple[AddApplicationRequest, ...] = ()
    remove: tuple[RemoveApplicationRequest, ...] = ()
    rm_id: Name = ""


class RejectedApplication(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    reason: Text = ""


class AcceptedApplication(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""


class UpdatedApplication(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    state: Name = ""
    state_transition_timestamp: Int64 = 0
    message: Text = ""


class ApplicationResponse(SiMessage, frozen=True, kw_only=True):
    rejected: tuple[RejectedApplication, ...] = ()
    accepted: tuple[AcceptedApplication, ...] = ()
    updated: tuple[UpdatedApplication, ...] = ()
