"""The events between the resource manager's side and Context.

RmProxy turns requests of the scheduler interface into these and these into responses; partition
names are full names in here, and amounts are plain resources.
"""

from msgspec import Struct

from yunikorn_actors.domain.allocation import AskSpec, WaitingState
from yunikorn_actors.domain.application import ApplicationSpec, ApplicationState
from yunikorn_actors.domain.config import ExtraConfig, SchedulerConfig
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import (
    ActionFromRM,
    AllocationRequest,
    ApplicationRequest,
    EventRecord,
    NodeRequest,
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
)


class Capabilities(Struct, frozen=True, kw_only=True):
    """What the callback of a resource manager can do, beyond what each one must."""

    hears_states: bool = False
    """Does it take container states? Where not, none are worked out."""
    has_predicates: bool = False
    """Does it want a say in where its asks run? Where not, every predicate passes unasked."""
    has_preemption_predicates: bool = False
    """Does it want a say in what is preempted for its asks?"""


# -- from the gateway to RmProxy


class RegistrationRequested(Message, frozen=True, kw_only=True):
    """`config` is the parsed text of the request; None where it brings none."""

    request: RegisterResourceManagerRequest
    config: SchedulerConfig | None
    callback: str
    capabilities: Capabilities
    extra: ExtraConfig
    reply_to: str


class AllocationsRequested(Message, frozen=True, kw_only=True):
    request: AllocationRequest


class UnresolvedUser(Struct, frozen=True, kw_only=True):
    """Why the user of a new application cannot be resolved; `position` is its place in `new`."""

    position: int
    reason: str


class ApplicationsRequested(Message, frozen=True, kw_only=True):
    """The users of the request come with their groups, except those that are listed beside it."""

    request: ApplicationRequest
    unresolved: tuple[UnresolvedUser, ...] = ()


class NodesRequested(Message, frozen=True, kw_only=True):
    request: NodeRequest


class ConfigurationRequested(Message, frozen=True, kw_only=True):
    request: UpdateConfigurationRequest
    config: SchedulerConfig | None
    extra: ExtraConfig
    reply_to: str


# -- from the gateway by RmProxy to Context


class RMLost(Message, frozen=True, kw_only=True):
    """Its connection is gone; it may come back and register again."""

    rm_id: str


class RMUnregistered(Message, frozen=True, kw_only=True):
    """It leaves for good."""

    rm_id: str


class RequestsMarked(Message, frozen=True, kw_only=True):
    """So many requests of a resource manager have been made before this.

    It follows them to where they are handled.
    """

    rm_id: str
    callback: str
    """Of the registration under which they were made."""
    count: int


# -- from a callback to RmProxy


class ResponsesDelivered(Message, frozen=True, kw_only=True):
    """The delivery thread has come so far."""

    rm_id: str
    callback: str
    count: int


# -- from RmProxy to Context


class RMRegistration(Message, frozen=True, kw_only=True):
    rm_id: str
    version: str
    policy_group: str
    build_info: dict[str, str]
    config: SchedulerConfig | None
    extra_config: dict[str, str]
    extra: ExtraConfig
    """What the core reads in it."""
    callback: str
    capabilities: Capabilities
    reply_to: str


class RMHeldBack(Message, frozen=True, kw_only=True):
    """It does not take what it is told, so nothing new is decided for it; or it does again."""

    rm_id: str
    callback: str
    """Of the registration that is meant."""
    held: bool


class AskItem(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An ask; with a node, a report of work that runs there already."""

    partition: str
    spec: AskSpec
    node_id: str = ""
    uuid: str = ""
    foreign: bool = False


class AskReleaseItem(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    partition: str
    application_id: str = ""
    key: str = ""
    type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE


class ReleaseItem(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    partition: str
    application_id: str = ""
    uuid: str = ""
    key: str = ""
    type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE


class RMUpdateAllocation(Message, frozen=True, kw_only=True):
    """Worked in this order: asks, ask releases, allocation releases."""

    rm_id: str
    asks: tuple[AskItem, ...] = ()
    ask_releases: tuple[AskReleaseItem, ...] = ()
    releases: tuple[ReleaseItem, ...] = ()


class NewApplication(Struct, frozen=True, kw_only=True):
    partition: str
    spec: ApplicationSpec


class OldApplication(Struct, frozen=True, kw_only=True):
    partition: str
    application_id: str


class RMUpdateApplication(Message, frozen=True, kw_only=True):
    rm_id: str
    added: tuple[NewApplication, ...] = ()
    removed: tuple[OldApplication, ...] = ()


class NodeItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action on one node; None means that the request said nothing of it."""

    partition: str
    node_id: str
    action: ActionFromRM
    attributes: dict[str, str] | None = None
    capacity: Resource | None = None
    occupied: Resource | None = None
    allocations: tuple[AskItem, ...] = ()


class RMUpdateNode(Message, frozen=True, kw_only=True):
    rm_id: str
    nodes: tuple[NodeItem, ...]


class RMConfigUpdate(Message, frozen=True, kw_only=True):
    rm_id: str
    policy_group: str
    config: SchedulerConfig | None
    extra_config: dict[str, str]
    extra: ExtraConfig
    reply_to: str


class AdminConfigUpdate(Message, frozen=True, kw_only=True):
    """The administrator's configuration: for every policy group that brings none."""

    config: SchedulerConfig
    reply_to: str


# -- from Context to itself


class RMPartitionsRemove(Message, frozen=True, kw_only=True):
    """A resource manager has been away for too long."""

    rm_id: str
    generation: int


# -- from Context to RmProxy


class RMRegistered(Message, frozen=True, kw_only=True):
    rm_id: str
    callback: str
    extra: ExtraConfig
    reply_to: str


class RMRegistrationRejected(Message, frozen=True, kw_only=True):
    rm_id: str
    callback: str
    reason: str
    reply_to: str


class RMConfigUpdated(Message, frozen=True, kw_only=True):
    """Of a resource manager, or without one of the administrator."""

    rm_id: str = ""
    extra: ExtraConfig | None = None
    reply_to: str


class RMConfigRejected(Message, frozen=True, kw_only=True):
    reason: str
    reply_to: str


class AnnouncedAllocation(Struct, frozen=True, kw_only=True, gc=False):
    partition: str
    uuid: str
    spec: AskSpec
    node_id: str


class RMNewAllocations(Message, frozen=True, kw_only=True):
    rm_id: str
    allocations: tuple[AnnouncedAllocation, ...]


class AnnouncedRelease(Struct, frozen=True, kw_only=True, gc=False):
    partition: str
    application_id: str
    uuid: str
    key: str
    type: TerminationType
    message: str


class AnnouncedWithdrawal(Struct, frozen=True, kw_only=True, gc=False):
    """An ask that the core gave up; told in the form in which it was asked."""

    partition: str
    application_id: str
    key: str
    type: TerminationType
    message: str
    later_form: bool


class RMReleaseAllocation(Message, frozen=True, kw_only=True):
    """One response for both: withdrawn asks stand before released allocations."""

    rm_id: str
    withdrawn: tuple[AnnouncedWithdrawal, ...] = ()
    released: tuple[AnnouncedRelease, ...] = ()


class RejectedAsk(Struct, frozen=True, kw_only=True):
    application_id: str
    key: str
    reason: str
    later_form: bool


class RMRejectedAllocationAsk(Message, frozen=True, kw_only=True):
    rm_id: str
    rejected: tuple[RejectedAsk, ...]


class ApplicationUpdate(Struct, frozen=True, kw_only=True):
    application_id: str
    state: ApplicationState
    at_ns: int
    message: str


class ContainerState(Struct, frozen=True, kw_only=True, gc=False):
    application_id: str
    key: str
    state: WaitingState
    reason: str


class RMContainerSchedulingState(Message, frozen=True, kw_only=True):
    rm_id: str
    states: tuple[ContainerState, ...]


class Rejected(Struct, frozen=True, kw_only=True):
    id: str
    reason: str


class RMApplicationUpdate(Message, frozen=True, kw_only=True):
    rm_id: str
    accepted: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    updated: tuple[ApplicationUpdate, ...] = ()


class RMNodeUpdate(Message, frozen=True, kw_only=True):
    rm_id: str
    accepted: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


# -- from Context to EventPublisher


class EventsConfigured(Message, frozen=True, kw_only=True):
    """What a resource manager wishes of its events; None when it is gone."""

    rm_id: str
    extra: ExtraConfig | None


# -- from Context by RmProxy to the gateway


class RequestsHandled(Message, frozen=True, kw_only=True):
    """So many requests have been handled, and all that they led to was said before this.

    RmProxy hands it on to the gateway when those answers have been delivered.
    """

    rm_id: str
    callback: str
    count: int


# -- from EventPublisher to RmProxy


class SendEvents(Message, frozen=True, kw_only=True):
    rm_id: str
    events: tuple[EventRecord, ...]
