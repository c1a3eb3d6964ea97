"""Translation between the scheduler interface and the core, field by field.

Towards the core partition names become full names and amounts plain resources. Towards the resource
manager names are its own again, and every value is a copy, so that nobody can reach into the core
(R-117). Items of one message that share an object share the copy, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from yunikorn_actors import si
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.state.allocations import TAGGED, AskSpec
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.values.devices import Devices, with_devices
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.values.resource import Resource, shared
from yunikorn_actors.values.tag_lookup import tag_of

_SECONDS_DIGITS_MAX = 10
"""More digits than this are no time in seconds that anybody means."""

_Given = TypeVar("_Given")
_Copy = TypeVar("_Copy")


class _Copies(Generic[_Given, _Copy]):
    """Copies of what the items of one message hold; neighbours that share an object share a copy.

    Most items of a message are of one size and say so with one object: a hundred asks then have one
    dictionary of amounts instead of a hundred.
    """

    def __init__(self, copied: Callable[[_Given], _Copy]) -> None:
        self._copied = copied
        self._last: tuple[_Given, _Copy] | None = None

    def of(self, given: _Given) -> _Copy:
        last = self._last
        # By identity, and only against the neighbour: comparing amounts would cost what the copy
        # does.
        if last is None or last[0] is not given:
            last = self._last = (given, self._copied(given))
        return last[1]


# -- from the interface to the core


def _amounts(resource: si.Resource | None) -> Resource:
    if resource is None:
        return {}
    # `shared` gives equal amounts of any message one object, which later comparisons find by
    # identity.
    return shared({kind: quantity.value for kind, quantity in resource.resources.items()})


def _by_tags(policy: si.PreemptionPolicy | None, tags: dict[str, str]) -> dict[str, Any]:
    """Return the fields of an ask that tags decide, or that they decide if there is no policy.

    Without a policy an ask may be a victim and may not preempt; the tag can protect it.
    """
    fields: dict[str, Any] = {"tags": dict(tags)}
    if policy is not None:
        fields["allow_preempt_self"] = policy.allow_preempt_self
        fields["allow_preempt_other"] = policy.allow_preempt_other
    if not tags:
        return fields
    # A policy decides for itself; a tag only where there is none.
    if policy is None:
        protected = tags.get(si.constants.TAG_ALLOW_PREEMPTION, "").lower() == "false"
        fields["allow_preempt_self"] = not protected
    # From the table in the state, so that a field by tag needs no line here.
    for field, tag in TAGGED:
        if tag in tags:
            fields[field] = tags[tag]
    if si.constants.TAG_CREATION_TIME in tags:
        # Tags come from users: a time that cannot be read is none (and the ask is as old as its
        # arrival).
        fields["created_ns"] = _creation_ns(tags[si.constants.TAG_CREATION_TIME])
    return fields


def _creation_ns(text: str) -> int | None:
    if text.isascii() and text.isdecimal() and len(text) <= _SECONDS_DIGITS_MAX:
        return int(text) * SECOND
    return None


def ask_items(rm_id: str, asks: Sequence[si.AllocationAsk]) -> tuple[rm.AskItem, ...]:
    if len(asks) == 1:
        return (_ask_item(rm_id, asks[0], _amounts(asks[0].resource_ask)),)
    amounts = _Copies(_amounts)
    return tuple([_ask_item(rm_id, ask, amounts.of(ask.resource_ask)) for ask in asks])


def _ask_item(rm_id: str, ask: si.AllocationAsk, resource: Resource) -> rm.AskItem:
    is_placeholder = ask.placeholder and bool(ask.task_group_name)
    spec = AskSpec(
        application_id=ask.application_id,
        key=ask.allocation_key,
        resource=resource,
        max_allocations=ask.max_allocations,
        priority=ask.priority,
        task_group=ask.task_group_name,
        # Without a task group there is nothing to hold a place for.
        placeholder=is_placeholder,
        # An originator is the first real task of its application: a placeholder never is one
        #
        originator=ask.originator and not is_placeholder,
        timeout_ms=ask.execution_timeout_milli_seconds,
        **_by_tags(ask.preemption_policy, ask.tags),
    )
    return rm.AskItem(partition=partition_name(rm_id, ask.partition_name), spec=spec)


def reported_items(rm_id: str, items: Sequence[si.Allocation]) -> list[rm.AskItem]:
    """Items of the later form: with a node a report, without one an ask."""
    amounts = _Copies(_amounts)
    return [
        _reported_item(
            partition_name(rm_id, item.partition_name),
            item,
            amounts.of(item.resource_per_alloc),
            later_form=True,
        )
        for item in items
    ]


def _reported_item(
    partition: str, item: si.Allocation, resource: Resource, *, later_form: bool
) -> rm.AskItem:
    tags = item.allocation_tags
    is_placeholder = item.placeholder and bool(item.task_group_name)
    spec = AskSpec(
        application_id=item.application_id,
        key=item.allocation_key,
        resource=resource,
        priority=item.priority,
        task_group=item.task_group_name,
        placeholder=is_placeholder,
        originator=item.originator and not is_placeholder,
        later_form=later_form,
        **_by_tags(item.preemption_policy, tags),
    )
    return rm.AskItem(
        partition=partition,
        spec=spec,
        node_id=item.node_id,
        uuid=item.uuid,
        # Marked by its tag alone, whatever the value.
        foreign=si.constants.TAG_FOREIGN in tags,
    )


def ask_release(rm_id: str, item: si.AllocationAskRelease) -> rm.AskReleaseItem:
    return rm.AskReleaseItem(
        partition=partition_name(rm_id, item.partition_name),
        application_id=item.application_id,
        key=item.allocation_key,
        type=item.termination_type,
    )


def new_application(
    rm_id: str, item: si.AddApplicationRequest, unresolved: str
) -> rm.NewApplication:
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
        # Without a creation time an application is as old as its submission.
        created_ns=_creation_ns(tag_of(item.tags, si.constants.APP_TAG_CREATION_TIME)),
        unresolved=unresolved,
    )
    return rm.NewApplication(partition=partition_name(rm_id, item.partition_name), spec=spec)


def node_items(rm_id: str, infos: Iterable[si.NodeInfo]) -> Iterator[rm.NodeItem]:
    amounts = _Copies(_amounts)
    return (_node_item(rm_id, info, amounts) for info in infos)


def _node_item(
    rm_id: str, info: si.NodeInfo, amounts: _Copies[si.Resource | None, Resource]
) -> rm.NodeItem:
    """Existing allocations belong to the partition of their node, whatever they say."""
    partition = partition_name(rm_id, info.attributes.get(si.constants.NODE_PARTITION, ""))
    return rm.NodeItem(
        partition=partition,
        node_id=info.node_id,
        action=info.action,
        # None and not empty: `None` leaves attributes as they are.
        attributes=dict(info.attributes) or None,
        capacity=_optional(info.schedulable_resource),
        occupied=_optional(info.occupied_resource),
        allocations=tuple(
            _reported_item(partition, item, amounts.of(item.resource_per_alloc), later_form=False)
            for item in info.existing_allocations
        ),
    )


def _optional(resource: si.Resource | None) -> Resource | None:
    return None if resource is None else _amounts(resource)


# -- from the core to the interface


_POLICIES = {
    # Four values for all allocations: most of a burst share one.
    (may_be_victim, may_preempt): si.PreemptionPolicy(
        allow_preempt_self=may_be_victim, allow_preempt_other=may_preempt
    )
    for may_be_victim in (False, True)
    for may_preempt in (False, True)
}


def allocations(message: rm.RMNewAllocations) -> Iterator[si.Allocation]:
    items = message.allocations
    # With one item there is no neighbour to share with.
    resource_of = si.Resource.of if len(items) == 1 else _Copies(si.Resource.of).of
    for item in items:
        partition, resource = short_partition_name(item.partition), resource_of(item.spec.resource)
        yield _allocation(partition, item.uuid, item.spec, item.node_id, resource, item.devices)
    if message.runs:
        yield from _allocations_in(message.runs)


def _allocations_in(runs: Sequence[rm.AnnouncedRun]) -> Iterator[si.Allocation]:
    resources = _Copies(si.Resource.of)
    for run in runs:
        partition = short_partition_name(run.partition)
        for uuid, spec, node_id in zip(run.uuids, run.specs, run.node_ids, strict=True):
            yield _allocation(
                partition, uuid, spec, node_id, resources.of(spec.resource), run.devices
            )


def _allocation(
    partition: str,
    uuid: str,
    spec: AskSpec,
    node_id: str,
    resource: si.Resource,
    devices: Devices,
) -> si.Allocation:
    return si.Allocation(
        allocation_key=spec.key,
        # Devices of former allocations stand in the tags that come back with a report; they are
        # replaced by those it has now.
        allocation_tags=(
            with_devices(spec.tags, devices)
            if devices or si.constants.GPU_DEVICES in spec.tags
            else dict(spec.tags)
        ),
        uuid=uuid,
        resource_per_alloc=resource,
        priority=spec.priority,
        node_id=node_id,
        application_id=spec.application_id,
        partition_name=partition,
        task_group_name=spec.task_group,
        placeholder=spec.placeholder,
        originator=spec.originator,
        preemption_policy=_POLICIES[spec.allow_preempt_self, spec.allow_preempt_other],
    )


def release_out(item: rm.AnnouncedRelease | rm.AskedBack) -> si.AllocationRelease:
    return _release(item, item.uuid, item.grace_ms if type(item) is rm.AskedBack else 0)


def withdrawn_release(item: rm.AnnouncedWithdrawal) -> si.AllocationRelease:
    """The later form knows one list of releases for asks and allocations."""
    return _release(item, "")


def _release(
    item: rm.AnnouncedRelease | rm.AskedBack | rm.AnnouncedWithdrawal, uuid: str, grace_ms: int = 0
) -> si.AllocationRelease:
    return si.AllocationRelease(
        partition_name=short_partition_name(item.partition),
        application_id=item.application_id,
        uuid=uuid,
        termination_type=item.type,
        message=item.message,
        allocation_key=item.key,
        grace_ms=grace_ms,
    )


def withdrawal(item: rm.AnnouncedWithdrawal) -> si.AllocationAskRelease:
    return si.AllocationAskRelease(
        partition_name=short_partition_name(item.partition),
        application_id=item.application_id,
        allocation_key=item.key,
        termination_type=item.type,
        message=item.message,
    )


def rejected_application(item: rm.Rejected) -> si.RejectedApplication:
    return si.RejectedApplication(application_id=item.id, reason=item.reason, queues=item.queues)


def accepted_application(item: rm.Accepted) -> si.AcceptedApplication:
    return si.AcceptedApplication(
        application_id=item.id, queue=item.queue, by_last_resort=item.by_last_resort
    )


def updated_application(item: rm.ApplicationUpdate) -> si.UpdatedApplication:
    return si.UpdatedApplication(
        application_id=item.application_id,
        state=item.state.value,
        state_transition_timestamp=item.at_ns,
        message=item.message,
    )


def container_state(item: rm.ContainerState) -> si.UpdateContainerSchedulingStateRequest:
    return si.UpdateContainerSchedulingStateRequest(
        application_id=item.application_id,
        allocation_key=item.key,
        state=si.SchedulingState[item.state.value],
        reason=item.reason,
    )


_ItemT = TypeVar("_ItemT")


def items_of(request: si.AllocationRequest) -> int:
    items, releases = len(request.asks) + len(request.allocations), request.releases
    if releases is not None:
        items += len(releases.allocation_asks_to_release) + len(releases.allocations_to_release)
    return items


def allocation_update(
    request: si.AllocationRequest, requested_back: RequestedBack
) -> rm.RMUpdateAllocation:
    rm_id, releases = request.rm_id, request.releases
    # Most requests bring asks or releases: nothing is made of what they do not bring.
    asks = ask_items(rm_id, request.asks) if request.asks else ()
    if request.allocations:
        asks = (*asks, *reported_items(rm_id, request.allocations))
    if releases is None:
        return rm.RMUpdateAllocation(rm_id=rm_id, asks=asks)
    withdrawn, released = releases.allocation_asks_to_release, releases.allocations_to_release
    return rm.RMUpdateAllocation(
        rm_id=rm_id,
        asks=asks,
        ask_releases=tuple([ask_release(rm_id, item) for item in withdrawn]) if withdrawn else (),
        releases=(
            tuple([requested_back.release_in(rm_id, item) for item in released]) if released else ()
        ),
    )


def pieces_of(request: si.AllocationRequest, size: int) -> Iterator[si.AllocationRequest]:
    """Take a request apart into pieces, in the order in which its items are handled.

    The order of the kinds is that of `allocation_update`, so that joined pieces equal the whole.
    """
    rm_id = request.rm_id
    releases = request.releases or si.AllocationReleasesRequest()
    for asks in _pieces(request.asks, size):
        yield si.AllocationRequest(rm_id=rm_id, asks=asks)
    for reported in _pieces(request.allocations, size):
        yield si.AllocationRequest(rm_id=rm_id, allocations=reported)
    for withdrawn in _pieces(releases.allocation_asks_to_release, size):
        piece = si.AllocationReleasesRequest(allocation_asks_to_release=withdrawn)
        yield si.AllocationRequest(rm_id=rm_id, releases=piece)
    for released in _pieces(releases.allocations_to_release, size):
        piece = si.AllocationReleasesRequest(allocations_to_release=released)
        yield si.AllocationRequest(rm_id=rm_id, releases=piece)


def _pieces(items: Sequence[_ItemT], size: int) -> Iterator[tuple[_ItemT, ...]]:
    return (tuple(items[start : start + size]) for start in range(0, len(items), size))


def joined(rm_id: str, pieces: Sequence[rm.RMUpdateAllocation]) -> rm.RMUpdateAllocation:
    return rm.RMUpdateAllocation(
        rm_id=rm_id,
        asks=tuple(chain.from_iterable(piece.asks for piece in pieces)),
        ask_releases=tuple(chain.from_iterable(piece.ask_releases for piece in pieces)),
        releases=tuple(chain.from_iterable(piece.releases for piece in pieces)),
    )
