"""Applications: requests to add and remove them, and the answers."""

from msgspec import field

from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import (
    BesideFlag,
    BesideNames,
    BesideText,
    Int64,
    Name,
    SiMessage,
    Text,
)


class UserGroupInformation(SiMessage, frozen=True, kw_only=True):
    """Who submits an application: quotas and access lists go by these names."""

    user: Name = ""
    """Name of the user."""
    groups: tuple[Name, ...] = ()
    """Names of the groups. Without any the resolver of the partition is asked; where there is none,
    the user is in one group of the same name."""


class AddApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """A new application."""

    application_id: Name = ""
    """Id of the application; nothing else in the partition may have it."""
    queue_name: Name = ""
    """Where it wants to go, such as `root.batch`; the placement rules of the partition decide."""
    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""
    ugi: UserGroupInformation | None = None
    """Its user, with groups."""
    tags: dict[Name, Text] = field(default_factory=dict)
    """How it is treated, and what placement rules look at; see the constants that begin with
    `APP_TAG_`. The names ignore case."""
    execution_timeout_milli_seconds: Int64 = 0
    """With a `placeholder_ask`: the time that the gang has to come together (default: 15 minutes).
    Without one: how long the application may run before it fails; 0 is for ever."""
    placeholder_ask: Resource | None = None
    """Of a gang: what all its placeholders need together, in base units."""
    gang_scheduling_style: Name = ""
    """What follows when the gang does not come together in time: `Soft`, the default, goes on
    without placeholders; `Hard` fails the application."""


class RemoveApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """The end of an application: its asks are withdrawn, its allocations end."""

    application_id: Name = ""
    """Id of the application."""
    partition_name: Name = ""
    """Name of the partition, as the resource manager calls it; empty is `default`."""


class ApplicationRequest(SiMessage, frozen=True, kw_only=True):
    """Applications to add and to remove, for `update_application`; the former come first."""

    new: tuple[AddApplicationRequest, ...] = ()
    """New applications."""
    remove: tuple[RemoveApplicationRequest, ...] = ()
    """Applications that have ended."""
    rm_id: Name = ""
    """Id of the resource manager."""


class RejectedApplication(SiMessage, frozen=True, kw_only=True):
    """A new application that was refused."""

    application_id: Name = ""
    """Id of the application."""
    reason: Text = ""
    """Why: no queue will do, say, or the id is taken."""
    queues: BesideNames = ()
    """Where no placement rule matched: the queues that would take it, at most 100. Of this core
    alone; neither JSON nor si.v1 has it."""


class AcceptedApplication(SiMessage, frozen=True, kw_only=True):
    """A new application that was taken."""

    application_id: Name = ""
    """Id of the application."""
    queue: BesideText = ""
    """Where it is. Of this core alone; neither JSON nor si.v1 has it."""
    by_last_resort: BesideFlag = False
    """No placement rule matched, so `root.default` took it. Of this core alone, too."""


class UpdatedApplication(SiMessage, frozen=True, kw_only=True):
    """An application that has changed its state."""

    application_id: Name = ""
    """Id of the application."""
    state: Name = ""
    """The new state, such as `Running`."""
    state_transition_timestamp: Int64 = 0
    """When, in nanoseconds since 1970."""
    message: Text = ""
    """Why, in a few words."""


class ApplicationResponse(SiMessage, frozen=True, kw_only=True):
    """What has happened to applications."""

    rejected: tuple[RejectedApplication, ...] = ()
    """New applications that were refused."""
    accepted: tuple[AcceptedApplication, ...] = ()
    """New applications that were taken."""
    updated: tuple[UpdatedApplication, ...] = ()
    """Applications that have changed their state."""
