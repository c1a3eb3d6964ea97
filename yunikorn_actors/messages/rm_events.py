"""The events between RmProxy and Context, and those around RmProxy.

RmProxy turns requests of the scheduler interface into these events, and events of Context into
responses. In events partition names are full names, and amounts are plain resources.
"""

from msgspec import Struct

from yunikorn_actors.config import ExtraConfig, SchedulerConfig
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
from yunikorn_actors.state.allocations import AskSpec, WaitingState
from yunikorn_actors.state.applications import ApplicationSpec, ApplicationState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.resource import Resource


class Capabilities(Struct, frozen=True, kw_only=True):
    """Which optional methods the callback of a resource manager overrides."""

    hears_states: bool = False
    """Whether it takes container states; if not, the core does not work them out."""
    has_predicates: bool = False
    """Whether it is asked before an ask is placed on a node."""
    has_preemption_predicates: bool = False
    """Whether it is asked which victims to preempt for its asks."""

    @property
    def answers_questions(self) -> bool:
        """Whether the core asks it about anything that was decided."""
        return self.has_predicates or self.has_preemption_predicates

    def has(self, method: str) -> bool:
        """Whether the callback is called by an optional method of this name."""
        return {
            "update_container_scheduling_state": self.hears_states,
            "predicates": self.has_predicates,
            "preemption_predicates": self.has_preemption_predicates,
        }.get(method, False)


# -- from the gateway to RmProxy


class RegistrationRequested(Message, frozen=True, kw_only=True):
    """`config` is the parsed text of the request; None if it brings none."""

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
    """The users in the request have their groups, except those in `unresolved`."""

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
    """The connection of a resource manager is lost; it may come back and register again."""

    rm_id: str


class RMUnregistered(Message, frozen=True, kw_only=True):
    """A resource manager leaves for good."""

    rm_id: str
    by: str = ""
    """The administrator who removed it; empty if it left by itself."""
    reply_to: str = ""
    """Where to report that nothing of it is left, if a caller waits for that."""


class RequestsMarked(Message, frozen=True, kw_only=True):
    """A mark behind `count` requests of a resource manager; Context handles it after them."""

    rm_id: str
    callback: str
    """The callback of the registration under which they were sent."""
    count: int


class TurnMarked(Message, frozen=True, kw_only=True):
    """A mark behind a part of what a resource manager sends; Context handles it after that."""

    rm_id: str


# -- from a callback to RmProxy


class ResponsesDelivered(Message, frozen=True, kw_only=True):
    """The delivery thread has made `count` calls of the callback."""

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
    """The settings that the core reads from `extra_config`."""
    callback: str
    capabilities: Capabilities
    reply_to: str


class RMHeldBack(Message, frozen=True, kw_only=True):
    """A resource manager is backpressured (it does not take its messages), or is not any more.

    While it is, nothing new is decided for its partitions.
    """

    rm_id: str
    callback: str
    """The callback of the registration that is meant."""
    held: bool


class AskItem(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An ask; with a node it is a report of work that runs there already."""

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


class ReleaseItem(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="part", tag=True
):
    """The resource manager ends allocations by its own wish."""

    partition: str
    application_id: str = ""
    uuid: str = ""
    key: str = ""
    type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE


class GivenBack(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="part", tag=True
):
    """The resource manager gives back what the core has asked back: it confirms that release."""

    partition: str
    application_id: str = ""
    uuid: str = ""
    key: str = ""
    type: TerminationType = TerminationType.UNKNOWN_TERMINATION_TYPE
    """As the resource manager wrote it; it may be another than that of the request."""
    asked: TerminationType | None = None
    """Why the core asked it back; None if RmProxy knows of no such request.

    Then it confirms a second time, by mistake, or what was asked before it registered anew.
    """


Released = ReleaseItem | GivenBack
"""RmProxy separates the two for those who read the messages. What either of them ends, Context
finds in its own state: a confirmation that is taken for a wish does the same, and so does a wish
that is taken for a confirmation."""


class RMUpdateAllocation(Message, frozen=True, kw_only=True):
    """Context handles asks first, then ask releases, then allocation releases.

    Releases by the wish of the resource manager and confirmations stay in the order of its request.
    """

    rm_id: str
    asks: tuple[AskItem, ...] = ()
    ask_releases: tuple[AskReleaseItem, ...] = ()
    releases: tuple[ReleaseItem | GivenBack, ...] = ()


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
    """One action on one node; None means that the request does not set this field."""

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
    """The administrator's configuration, for every policy group that brings none of its own."""

    config: SchedulerConfig
    by: str = ""
    """Who brought it; empty if the program that has the core did."""
    reply_to: str


class AdminConfigRefused(Message, frozen=True, kw_only=True):
    """The administrator has brought a configuration with faults: all that is left of it."""

    reason: str


class AdminNodeUpdate(Message, frozen=True, kw_only=True):
    """An administrator lets a node take no new work, or take work again."""

    partition: str
    node_id: str
    drained: bool
    by: str
    reply_to: str


# -- from Context to itself


class RMPartitionsRemove(Message, frozen=True, kw_only=True):
    """A lost resource manager did not register again in time: remove its partitions."""

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
    """The configuration of a resource manager was updated, or without one the administrator's."""

    rm_id: str = ""
    extra: ExtraConfig | None = None
    reply_to: str


class RMConfigRejected(Message, frozen=True, kw_only=True):
    reason: str
    reply_to: str


class RMPartAhead(Message, frozen=True, kw_only=True):
    """The next answer to this resource manager is a part of one.

    RmProxy keeps it, and delivers it with the first answer that comes without this before it.
    """

    rm_id: str


class AnnouncedAllocation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    partition: str
    uuid: str
    spec: AskSpec
    node_id: str
    devices: Devices = ()


class AnnouncedRun(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Allocations of one partition, one after the other."""

    partition: str
    uuids: tuple[str, ...]
    specs: tuple[AskSpec, ...]
    node_ids: tuple[str, ...]
    devices: Devices = ()
    """Of one that is alone: those with devices make no run with others."""


class RMNewAllocations(Message, frozen=True, kw_only=True):
    """In the order of the decisions: each by itself, or all of them in runs."""

    rm_id: str
    allocations: tuple[AnnouncedAllocation, ...] = ()
    runs: tuple[AnnouncedRun, ...] = ()


class AnnouncedRelease(Struct, frozen=True, kw_only=True, gc=False, tag_field="part", tag=True):
    """An allocation has ended: it is charged nowhere any more."""

    partition: str
    application_id: str
    uuid: str
    key: str
    type: TerminationType
    message: str


class AskedBack(Struct, frozen=True, kw_only=True, gc=False, tag_field="part", tag=True):
    """The core asks the resource manager to give an allocation back; it is charged until then."""

    partition: str
    application_id: str
    uuid: str
    key: str
    type: TerminationType
    """Why: a timeout, a preemption, or a member that takes over the placeholder."""
    message: str
    grace_ms: int = 0
    """How long it has to end by itself; 0 if its queue says nothing of it."""


class AnnouncedWithdrawal(Struct, frozen=True, kw_only=True, gc=False):
    """An ask that the core withdrew; reported in the generation of the interface of the ask."""

    partition: str
    application_id: str
    key: str
    type: TerminationType
    message: str
    later_form: bool


class RMReleaseAllocation(Message, frozen=True, kw_only=True):
    """Both go out in one response, withdrawn asks before released allocations."""

    rm_id: str
    withdrawn: tuple[AnnouncedWithdrawal, ...] = ()
    released: tuple[AnnouncedRelease | AskedBack, ...] = ()


class RMGivenBackUnasked(Message, frozen=True, kw_only=True):
    """What was given back before RmProxy had sent the request for it: nothing is asked back here.

    The request was on its way to RmProxy when the resource manager ended the same by itself, with
    a type that is not echoed. It gets no answer, so only this tells RmProxy that the end has come.
    """

    rm_id: str
    uuids: tuple[str, ...]


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


class Rejected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    reason: str
    queues: tuple[str, ...] = ()
    """Of an application for which no placement rule matched: those that would take it."""


class Accepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An accepted application and its queue."""

    id: str
    queue: str = ""
    """Empty in recordings of versions before this."""
    by_last_resort: bool = False
    """No placement rule matched, so `root.default` took it."""


class RMApplicationUpdate(Message, frozen=True, kw_only=True):
    rm_id: str
    accepted: tuple[Accepted, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    updated: tuple[ApplicationUpdate, ...] = ()


class RMNodeUpdate(Message, frozen=True, kw_only=True):
    rm_id: str
    accepted: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


# -- from Context to EventPublisher


class EventsConfigured(Message, frozen=True, kw_only=True):
    """The event settings of a resource manager; None when it is gone."""

    rm_id: str
    extra: ExtraConfig | None


# -- from Context by RmProxy to the gateway


class TurnHandled(Message, frozen=True, kw_only=True):
    """Context has handled all before the mark: the next part may follow."""

    rm_id: str


class RequestsHandled(Message, frozen=True, kw_only=True):
    """So many requests have been handled, and all that they led to was sent before this.

    RmProxy hands it on to the gateway when those answers have been delivered.
    """

    rm_id: str
    callback: str
    count: int


# -- from EventPublisher to RmProxy


class SendEvents(Message, frozen=True, kw_only=True):
    rm_id: str
    events: tuple[EventRecord, ...]
