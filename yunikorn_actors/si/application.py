"""Applications: requests to add and remove them, and the answers."""

from msgspec import field

from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Int64, Name, SiMessage, Text


class UserGroupInformation(SiMessage, frozen=True, kw_only=True):
    """Who submits an application; without groups the resolver looks them up."""

    user: Name = ""
    groups: tuple[Name, ...] = ()


class AddApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """A new application: its queue, its user, and its gang if it is one."""

    application_id: Name = ""
    queue_name: Name = ""
    partition_name: Name = ""
    ugi: UserGroupInformation | None = None
    tags: dict[Name, Text] = field(default_factory=dict)
    execution_timeout_milli_seconds: Int64 = 0
    placeholder_ask: Resource | None = None
    gang_scheduling_style: Name = ""


class RemoveApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """The end of an application, with all that it has and asks for."""

    application_id: Name = ""
    partition_name: Name = ""


class ApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """Applications to add and to remove."""

    new: tuple[AddApplicationRequest, ...] = ()
    remove: tuple[RemoveApplicationRequest, ...] = ()
    rm_id: Name = ""


class RejectedApplication(SiMessage, frozen=True, kw_only=True):
    """An application that was not taken, and why."""

    application_id: Name = ""
    reason: Text = ""


class AcceptedApplication(SiMessage, frozen=True, kw_only=True):
    """An application that was taken."""

    application_id: Name = ""


class UpdatedApplication(SiMessage, frozen=True, kw_only=True):
    """A new state of an application."""

    application_id: Name = ""
    state: Name = ""
    state_transition_timestamp: Int64 = 0
    message: Text = ""


class ApplicationResponse(SiMessage, frozen=True, kw_only=True):
    """Which applications were taken or not, and what has become of them."""

    rejected: tuple[RejectedApplication, ...] = ()
    accepted: tuple[AcceptedApplication, ...] = ()
    updated: tuple[UpdatedApplication, ...] = ()
