"""Makes requests of steps: one function for each step that is a request.

An allocation that is reported by itself goes out in the later form of the interface, one that comes
with its node in the node's request.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.resource_manager import Request
from yunikorn_actors.values.durations import MILLISECOND

_A: Final = si.ActionFromRM


def request_of(step: w.Step, rm_id: str) -> Request | None:
    """Return the request of a step; None if the step is no request."""
    make = _REQUESTS.get(type(step))
    return None if make is None else make(step, rm_id)


# --- nodes ----------------------------------------------------------------------------------------


def _create_node(step: w.CreateNode, rm_id: str) -> si.NodeRequest:
    nodes = tuple(
        si.NodeInfo(
            node_id=name,
            action=_A.CREATE_DRAIN if step.draining else _A.CREATE,
            attributes=_attributes(step.attributes, step.partition),
            schedulable_resource=_resource(step.capacity),
            occupied_resource=_resource(step.occupied),
            existing_allocations=tuple(
                _running(item, name, step.partition) for item in step.allocations
            ),
        )
        for name in step.names()
    )
    return si.NodeRequest(nodes=nodes, rm_id=rm_id)


def _update_node(step: w.UpdateNode, rm_id: str) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=step.id,
        action=_A.UPDATE,
        attributes=_attributes(step.attributes, step.partition),
        schedulable_resource=_resource(step.capacity),
        occupied_resource=_resource(step.occupied),
    )
    return si.NodeRequest(nodes=(info,), rm_id=rm_id)


def _act(action: si.ActionFromRM) -> Callable[[w.NamedStep, str], si.NodeRequest]:
    def request(step: w.NamedStep, rm_id: str) -> si.NodeRequest:
        attributes = _attributes({}, step.partition)
        info = si.NodeInfo(node_id=step.id, action=action, attributes=attributes)
        return si.NodeRequest(nodes=(info,), rm_id=rm_id)

    return request


def _attributes(written: Mapping[str, str], partition: str) -> dict[str, str]:
    return {**written, si.constants.NODE_PARTITION: partition} if partition else dict(written)


# --- applications ---------------------------------------------------------------------------------


def _add_app(step: w.AddApp, rm_id: str) -> si.ApplicationRequest:
    application = si.AddApplicationRequest(
        application_id=step.id,
        queue_name=step.queue,
        partition_name=step.partition,
        ugi=si.UserGroupInformation(user=step.user, groups=step.groups),
        tags=step.tags,
        execution_timeout_milli_seconds=step.timeout // MILLISECOND,
        placeholder_ask=_resource(step.placeholder_ask),
        gang_scheduling_style=step.style,
    )
    return si.ApplicationRequest(new=(application,), rm_id=rm_id)


def _remove_app(step: w.RemoveApp, rm_id: str) -> si.ApplicationRequest:
    removal = si.RemoveApplicationRequest(application_id=step.id, partition_name=step.partition)
    return si.ApplicationRequest(remove=(removal,), rm_id=rm_id)


# --- asks and allocations -------------------------------------------------------------------------


def _ask(step: w.AddAsk, rm_id: str) -> si.AllocationRequest:
    required = {si.constants.TAG_REQUIRED_NODE: step.required_node} if step.required_node else {}
    asks = tuple(
        si.AllocationAsk(
            allocation_key=key,
            application_id=step.app,
            partition_name=step.partition,
            resource_ask=_resource(step.resource),
            max_allocations=step.max_allocations,
            priority=step.priority,
            execution_timeout_milli_seconds=step.timeout // MILLISECOND,
            tags={**step.tags, **required},
            task_group_name=step.task_group,
            placeholder=step.placeholder,
            originator=step.originator,
            preemption_policy=si.PreemptionPolicy(
                allow_preempt_self=step.preemption.allow_self,
                allow_preempt_other=step.preemption.allow_other,
            ),
        )
        for key in step.all_keys()
    )
    return si.AllocationRequest(asks=asks, rm_id=rm_id)


def _bind(step: w.Bind, rm_id: str) -> si.AllocationRequest:
    return si.AllocationRequest(
        allocations=(_running(step, step.node, step.partition),), rm_id=rm_id
    )


def _running(item: w.Running | w.Bind, node_id: str, partition: str) -> si.Allocation:
    return si.Allocation(
        allocation_key=item.key,
        allocation_tags=item.tags,
        uuid=item.uuid or f"{item.key}-recovered",
        resource_per_alloc=_resource(item.resource),
        priority=item.priority,
        node_id=node_id,
        application_id=item.app,
        partition_name=partition,
        task_group_name=item.task_group,
        placeholder=item.placeholder,
    )


def _release_ask(step: w.ReleaseAsk, rm_id: str) -> si.AllocationRequest:
    release = si.AllocationAskRelease(
        partition_name=step.partition,
        application_id=step.app,
        allocation_key=step.key,
        termination_type=si.TerminationType.STOPPED_BY_RM,
    )
    releases = si.AllocationReleasesRequest(allocation_asks_to_release=(release,))
    return si.AllocationRequest(releases=releases, rm_id=rm_id)


def _release(step: w.Release, rm_id: str) -> si.AllocationRequest:
    release = si.AllocationRelease(
        partition_name=step.partition,
        application_id=step.app,
        allocation_key=step.key,
        termination_type=step.type,
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
    return si.AllocationRequest(releases=releases, rm_id=rm_id)


def _resource(amounts: Mapping[str, int] | None) -> si.Resource | None:
    return None if amounts is None else si.Resource.of(amounts)


_REQUESTS: Final[dict[type[w.Step], Callable[[Any, str], Request]]] = {
    w.CreateNode: _create_node,
    w.UpdateNode: _update_node,
    w.DrainNode: _act(_A.DRAIN_NODE),
    w.UndrainNode: _act(_A.DRAIN_TO_SCHEDULABLE),
    w.RemoveNode: _act(_A.DECOMISSION),
    w.AddApp: _add_app,
    w.RemoveApp: _remove_app,
    w.AddAsk: _ask,
    w.Bind: _bind,
    w.ReleaseAsk: _release_ask,
    w.Release: _release,
}
