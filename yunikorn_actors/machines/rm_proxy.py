"""RmProxy: the resource managers' side of the core.

On the way in it turns requests of the scheduler interface into RM events with full partition names;
on the way out it turns RM events into responses with the resource manager's own names. It refuses
nothing on substance: that is Context's business. A request that overtook the end of its resource
manager is dropped here, as the gateway could not know.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.domain.allocation import AskSpec
from yunikorn_actors.domain.application import ApplicationSpec
from yunikorn_actors.domain.ids import partition_name, short_partition_name
from yunikorn_actors.machines.machine import CallRm, Effect, Send, StopMachine
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.queries import Accepted, Declined
from yunikorn_actors.messages.rm_calls import (
    CallSendEvent,
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateNode,
)

_NS_PER_S = 1_000_000_000
_SECONDS_DIGITS_MAX = 10
"""More digits than this are no time in seconds that anybody means."""


class RmProxy:
    def __init__(self) -> None:
        self._callbacks: dict[str, str] = {}
        """Registered resource managers, each with the mailbox of its callback."""
        self.dropped = 0

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        return HANDLERS[type(message)](self, message)

    def canonical_state(self) -> dict[str, Any]:
        return {"callbacks": dict(self._callbacks), "dropped": self.dropped}

    # -- registration

    def _on_registration_requested(self, message: rm.RegistrationRequested) -> list[Effect]:
        request = message.request
        registration = rm.RMRegistration(
            rm_id=request.rm_id,
            version=request.version,
            policy_group=request.policy_group,
            build_info=dict(request.build_info),
            config=message.config,
            extra_config=dict(request.extra_config),
            callback=message.callback,
            reply_to=message.reply_to,
        )
        return [Send(to=CONTEXT, message=registration)]

    def _on_rm_registered(self, message: rm.RMRegistered) -> list[Effect]:
        before = self._callbacks.get(message.rm_id)
        self._callbacks[message.rm_id] = message.callback
        effects: list[Effect] = [] if before is None else [StopMachine(address=before)]
        return [*effects, Send(to=message.reply_to, message=Accepted())]

    def _on_rm_registration_rejected(self, message: rm.RMRegistrationRejected) -> list[Effect]:
        """Context removed the former life before it refused the new one, or never had one."""
        return [
            StopMachine(address=message.callback),
            Send(to=message.reply_to, message=Declined(reason=message.reason)),
        ]

    # -- requests

    def _on_allocations_requested(self, message: rm.AllocationsRequested) -> list[Effect]:
        request = message.request
        rm_id = request.rm_id
        releases = request.releases or si.AllocationReleasesRequest()
        event = rm.RMUpdateAllocation(
            rm_id=rm_id,
            asks=(
                *(_ask_item(rm_id, ask) for ask in request.asks),
                *(_reported_item(rm_id, item, later_form=True) for item in request.allocations),
            ),
            ask_releases=tuple(
                _ask_release(rm_id, item) for item in releases.allocation_asks_to_release
            ),
            releases=tuple(_release(rm_id, item) for item in releases.allocations_to_release),
        )
        return self._forward(rm_id, event)

    def _on_applications_requested(self, message: rm.ApplicationsRequested) -> list[Effect]:
        request = message.request
        event = rm.RMUpdateApplication(
            rm_id=request.rm_id,
            added=tuple(_new_application(request.rm_id, item) for item in request.new),
            removed=tuple(
                rm.OldApplication(
                    partition=partition_name(request.rm_id, item.partition_name),
                    application_id=item.application_id,
                )
                for item in request.remove
            ),
        )
        return self._forward(request.rm_id, event)

    def _on_nodes_requested(self, message: rm.NodesRequested) -> list[Effect]:
        request = message.request
        event = rm.RMUpdateNode(
            rm_id=request.rm_id,
            nodes=tuple(_node_item(request.rm_id, info) for info in request.nodes),
        )
        return self._forward(request.rm_id, event)

    def _on_configuration_requested(self, message: rm.ConfigurationRequested) -> list[Effect]:
        request = message.request
        event = rm.RMConfigUpdate(
            rm_id=request.rm_id,
            policy_group=request.policy_group,
            config=message.config,
            extra_config=dict(request.extra_config),
            reply_to=message.reply_to,
        )
        return [Send(to=CONTEXT, message=event)]

    def _forward(self, rm_id: str, event: Message) -> list[Effect]:
        if rm_id not in self._callbacks:
            self.dropped += 1
            return []
        return [Send(to=CONTEXT, message=event)]

    # -- answers

    def _on_rm_config_updated(self, message: rm.RMConfigUpdated) -> list[Effect]:
        return [Send(to=message.reply_to, message=Accepted())]

    def _on_rm_config_rejected(self, message: rm.RMConfigRejected) -> list[Effect]:
        return [Send(to=message.reply_to, message=Declined(reason=message.reason))]

    def _on_rm_new_allocations(self, message: rm.RMNewAllocations) -> list[Effect]:
        announced = tuple([_allocation(item) for item in message.allocations])
        return self._call(
            message.rm_id, CallUpdateAllocation(response=si.AllocationResponse(new=announced))
        )

    def _on_rm_release_allocation(self, message: rm.RMReleaseAllocation) -> list[Effect]:
        released = tuple(
            si.AllocationRelease(
                partition_name=short_partition_name(item.partition),
                application_id=item.application_id,
                uuid=item.uuid,
                termination_type=item.type,
                message=item.message,
                allocation_key=item.key,
            )
            for item in message.released
        )
        return self._call(
            message.rm_id, CallUpdateAllocation(response=si.AllocationResponse(released=released))
        )

    def _on_rm_rejected_allocation_ask(self, message: rm.RMRejectedAllocationAsk) -> list[Effect]:
        """Each is answered in the form in which it was asked."""
        response = si.AllocationResponse(
            rejected=tuple(
                si.RejectedAllocationAsk(
                    allocation_key=item.key, application_id=item.application_id, reason=item.reason
                )
                for item in message.rejected
                if not item.later_form
            ),
            rejected_allocations=tuple(
                si.RejectedAllocation(
                    allocation_key=item.key, application_id=item.application_id, reason=item.reason
                )
                for item in message.rejected
                if item.later_form
            ),
        )
        return self._call(message.rm_id, CallUpdateAllocation(response=response))

    def _on_rm_application_update(self, message: rm.RMApplicationUpdate) -> list[Effect]:
        response = si.ApplicationResponse(
            rejected=tuple(
                si.RejectedApplication(application_id=item.id, reason=item.reason)
                for item in message.rejected
            ),
            accepted=tuple(si.AcceptedApplication(application_id=id_) for id_ in message.accepted),
            updated=tuple(
                si.UpdatedApplication(
                    application_id=item.application_id,
                    state=item.state.value,
                    state_transition_timestamp=item.at_ns,
                    message=item.message,
                )
                for item in message.updated
            ),
        )
        return self._call(message.rm_id, CallUpdateApplication(response=response))

    def _on_rm_node_update(self, message: rm.RMNodeUpdate) -> list[Effect]:
        response = si.NodeResponse(
            rejected=tuple(
                si.RejectedNode(node_id=item.id, reason=item.reason) for item in message.rejected
            ),
            accepted=tuple(si.AcceptedNode(node_id=id_) for id_ in message.accepted),
        )
        return self._call(message.rm_id, CallUpdateNode(response=response))

    def _on_send_events(self, message: rm.SendEvents) -> list[Effect]:
        return self._call(message.rm_id, CallSendEvent(events=message.events))

    def _call(self, rm_id: str, call: Message) -> list[Effect]:
        callback = self._callbacks.get(rm_id)
        return [] if callback is None else [CallRm(callback=callback, call=call)]


RmProxyInbox = (
    rm.RegistrationRequested
    | rm.AllocationsRequested
    | rm.ApplicationsRequested
    | rm.NodesRequested
    | rm.ConfigurationRequested
    | rm.RMRegistered
    | rm.RMRegistrationRejected
    | rm.RMConfigUpdated
    | rm.RMConfigRejected
    | rm.RMNewAllocations
    | rm.RMReleaseAllocation
    | rm.RMRejectedAllocationAsk
    | rm.RMApplicationUpdate
    | rm.RMNodeUpdate
    | rm.SendEvents
)

HANDLERS: dict[type, Callable[[RmProxy, Any], list[Effect]]] = {
    rm.RegistrationRequested: RmProxy._on_registration_requested,
    rm.AllocationsRequested: RmProxy._on_allocations_requested,
    rm.ApplicationsRequested: RmProxy._on_applications_requested,
    rm.NodesRequested: RmProxy._on_nodes_requested,
    rm.ConfigurationRequested: RmProxy._on_configuration_requested,
    rm.RMRegistered: RmProxy._on_rm_registered,
    rm.RMRegistrationRejected: RmProxy._on_rm_registration_rejected,
    rm.RMConfigUpdated: RmProxy._on_rm_config_updated,
    rm.RMConfigRejected: RmProxy._on_rm_config_rejected,
    rm.RMNewAllocations: RmProxy._on_rm_new_allocations,
    rm.RMReleaseAllocation: RmProxy._on_rm_release_allocation,
    rm.RMRejectedAllocationAsk: RmProxy._on_rm_rejected_allocation_ask,
    rm.RMApplicationUpdate: RmProxy._on_rm_application_update,
    rm.RMNodeUpdate: RmProxy._on_rm_node_update,
    rm.SendEvents: RmProxy._on_send_events,
}


# -- from the interface to the core


def _amounts(resource: si.Resource | None) -> dict[str, int]:
    if resource is None:
        return {}
    return {kind: quantity.value for kind, quantity in resource.resources.items()}


def _preemption(policy: si.PreemptionPolicy | None, tags: dict[str, str]) -> tuple[bool, bool]:
    """Without a policy an ask may be a victim and may not preempt; the tag can protect it."""
    if policy is not None:
        return policy.allow_preempt_self, policy.allow_preempt_other
    return tags.get(si.TAG_ALLOW_PREEMPTION, "").lower() != "false", False


def _creation_ns(tags: dict[str, str]) -> int | None:
    text = tags.get(si.TAG_CREATION_TIME, "")
    if text.isascii() and text.isdecimal() and len(text) <= _SECONDS_DIGITS_MAX:
        return int(text) * _NS_PER_S
    return None


def _ask_item(rm_id: str, ask: si.AllocationAsk) -> rm.AskItem:
    tags = ask.tags
    may_be_victim, may_preempt = _preemption(ask.preemption_policy, tags)
    spec = AskSpec(
        application_id=ask.application_id,
        key=ask.allocation_key,
        resource=_amounts(ask.resource_ask),
        max_allocations=ask.max_allocations,
        priority=ask.priority,
        task_group=ask.task_group_name,
        # Without a task group there is nothing to hold a place for.
        placeholder=ask.placeholder and bool(ask.task_group_name),
        originator=ask.originator,
        required_node=tags.get(si.TAG_REQUIRED_NODE, "") if tags else "",
        allow_preempt_self=may_be_victim,
        allow_preempt_other=may_preempt,
        timeout_ms=ask.execution_timeout_milli_seconds,
        created_ns=_creation_ns(tags) if tags else None,
        tags=dict(tags),
    )
    return rm.AskItem(partition=partition_name(rm_id, ask.partition_name), spec=spec)


def _reported_item(
    rm_id: str, item: si.Allocation, *, later_form: bool, partition: str | None = None
) -> rm.AskItem:
    tags = item.allocation_tags
    may_be_victim, may_preempt = _preemption(item.preemption_policy, tags)
    spec = AskSpec(
        application_id=item.application_id,
        key=item.allocation_key,
        resource=_amounts(item.resource_per_alloc),
        priority=item.priority,
        task_group=item.task_group_name,
        placeholder=item.placeholder and bool(item.task_group_name),
        originator=item.originator,
        required_node=tags.get(si.TAG_REQUIRED_NODE, ""),
        allow_preempt_self=may_be_victim,
        allow_preempt_other=may_preempt,
        created_ns=_creation_ns(tags),
        tags=dict(tags),
        later_form=later_form,
    )
    return rm.AskItem(
        partition=partition or partition_name(rm_id, item.partition_name),
        spec=spec,
        node_id=item.node_id,
        uuid=item.uuid,
        foreign=si.TAG_FOREIGN in tags,
    )


def _ask_release(rm_id: str, item: si.AllocationAskRelease) -> rm.AskReleaseItem:
    return rm.AskReleaseItem(
        partition=partition_name(rm_id, item.partition_name),
        application_id=item.application_id,
        key=item.allocation_key,
        type=item.termination_type,
    )


def _release(rm_id: str, item: si.AllocationRelease) -> rm.ReleaseItem:
    return rm.ReleaseItem(
        partition=partition_name(rm_id, item.partition_name),
        application_id=item.application_id,
        uuid=item.uuid,
        key=item.allocation_key,
        type=item.termination_type,
    )


def _new_application(rm_id: str, item: si.AddApplicationRequest) -> rm.NewApplication:
    ugi = item.ugi or si.UserGroupInformation()
    spec = ApplicationSpec(
        application_id=item.application_id,
        queue_name=item.queue_name,
        user=ugi.user,
        groups=ugi.groups,
        tags=dict(item.tags),
        timeout_ms=item.execution_timeout_milli_seconds,
        placeholder_ask=_amounts(item.placeholder_ask),
        gang_style=item.gang_scheduling_style,
    )
    return rm.NewApplication(partition=partition_name(rm_id, item.partition_name), spec=spec)


def _node_item(rm_id: str, info: si.NodeInfo) -> rm.NodeItem:
    """Existing allocations belong to the partition of their node, whatever they say."""
    partition = partition_name(rm_id, info.attributes.get(si.NODE_PARTITION, ""))
    return rm.NodeItem(
        partition=partition,
        node_id=info.node_id,
        action=info.action,
        attributes=dict(info.attributes) or None,
        capacity=_optional(info.schedulable_resource),
        occupied=_optional(info.occupied_resource),
        allocations=tuple(
            _reported_item(rm_id, item, later_form=False, partition=partition)
            for item in info.existing_allocations
        ),
    )


def _optional(resource: si.Resource | None) -> dict[str, int] | None:
    return None if resource is None else _amounts(resource)


# -- from the core to the interface


def _allocation(item: rm.AnnouncedAllocation) -> si.Allocation:
    spec = item.spec
    return si.Allocation(
        allocation_key=spec.key,
        allocation_tags=spec.tags,
        uuid=item.uuid,
        resource_per_alloc=si.Resource.of(spec.resource),
        priority=spec.priority,
        node_id=item.node_id,
        application_id=spec.application_id,
        partition_name=short_partition_name(item.partition),
        task_group_name=spec.task_group,
        placeholder=spec.placeholder,
        originator=spec.originator,
        preemption_policy=si.PreemptionPolicy(
            allow_preempt_self=spec.allow_preempt_self, allow_preempt_other=spec.allow_preempt_other
        ),
    )
