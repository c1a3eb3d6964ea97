"""The two sides of the interface: the calls a resource manager makes, and those it receives.

The callback is a base class, not a protocol: a resource manager overrides the methods it needs, and
the core sees at registration which these are. Callbacks run on a thread of their own, in order, and
may call the scheduler.
"""

from typing import Protocol

from yunikorn_actors.si.allocation import AllocationRequest, AllocationResponse
from yunikorn_actors.si.application_messages import ApplicationRequest, ApplicationResponse
from yunikorn_actors.si.node import NodeRequest, NodeResponse
from yunikorn_actors.si.plugin import (
    EventRecord,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    UpdateContainerSchedulingStateRequest,
)
from yunikorn_actors.si.registration import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
)


class ResourceManagerCallback:
    """What the core calls to answer and to ask: subclass it, override what you care about.

    As it is it does nothing and accepts everything. The core calls the methods of one callback on a
    thread of its own, one at a time and in order; they may call the core.
    """

    def update_allocation(self, response: AllocationResponse) -> None:
        """Hear what was placed, what is to be released, and which asks were rejected."""

    def update_application(self, response: ApplicationResponse) -> None:
        """Hear which applications were accepted or rejected, and their new states."""

    def update_node(self, response: NodeResponse) -> None:
        """Hear which nodes were accepted or rejected."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Return None if the allocation fits the node, otherwise the reason why not."""

    def preemption_predicates(
        self, args: PreemptionPredicatesArgs
    ) -> PreemptionPredicatesResponse | None:
        """Return success and the index of the last victim to preempt; None is a no."""

    def send_event(self, events: tuple[EventRecord, ...]) -> None:
        """Hear of event records, some at a time."""

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """Hear what an ask waits for, when that changes."""

    def get_state_dump(self) -> str:
        """Return its own state as JSON; a state dump of the core has it (`rm_diagnostics`)."""
        return "{}"


class SchedulerAPI(Protocol):
    """The calls of a resource manager; `SchedulerCore` has them and more.

    Every call raises InvalidRequest if its request is malformed, and takes nothing of it.
    """

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register, or register again: then the former registration ends."""

    def update_allocation(self, request: AllocationRequest) -> None:
        """Make asks, report and release; `update_allocation` of the callback answers."""

    def update_application(self, request: ApplicationRequest) -> None:
        """Add and remove applications; `update_application` of the callback answers."""

    def update_node(self, request: NodeRequest) -> None:
        """Add, change, drain and remove nodes; `update_node` of the callback answers."""

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed."""
