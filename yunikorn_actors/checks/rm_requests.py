"""Requests of a resource manager: noted in the moment in which they are sent."""

from collections.abc import Callable
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.checks.notices import placed_in, without_devices
from yunikorn_actors.checks.rm_knowledge import (
    Name,
    NodeKnown,
    Requested,
    RmKnowledge,
    Wanted,
    means,
)
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.values.tags import NODE_PARTITION, TAG_FOREIGN

_T = TerminationType
_CREATES: Final = frozenset({si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN})
_DRAINS: Final = {
    si.ActionFromRM.DRAIN_NODE: True,
    si.ActionFromRM.DRAIN_TO_SCHEDULABLE: False,
}
"""Other words mean nothing."""
_BY_WISH: Final = frozenset(
    {_T.UNKNOWN_TERMINATION_TYPE, _T.STOPPED_BY_RM, _T.SCHEDULING_FAILED_ON_RM}
)
"""Releases of these types are echoed; the others confirm what the core has asked back."""
_TAKES_THE_ASK: Final = _BY_WISH | {_T.PREEMPTED_BY_SCHEDULER}
"""By key, such a release means what waits of the ask as well."""


def _note_applications(rm: RmKnowledge, request: si.ApplicationRequest) -> None:
    for new in request.new:
        app = rm.application(new.application_id)
        app.request(is_added=True)
        app.partitions[partition_name(rm.rm_id, new.partition_name)] = None
    for old in request.remove:
        id_ = old.application_id
        partition = partition_name(rm.rm_id, old.partition_name)
        # Wished in any case; whether anything ends by it shows later.
        rm.wished[partition, id_, ""] = None
        rm.want_no_more(partition, id_, "")
        known = rm.applications.get(id_)
        # In another partition there is nothing to remove.
        if known is not None and partition in known.partitions:
            rm.application(id_).request(is_added=False)


def _note_nodes(rm: RmKnowledge, request: si.NodeRequest) -> None:
    for info in request.nodes:
        partition = partition_name(rm.rm_id, info.attributes.get(NODE_PARTITION, ""))
        if info.action in _CREATES:
            node = rm.node(info.node_id)
            node.requested += 1
            node.partition = partition
            # A second report of a node may be refused.
            node.is_gone = node.requested > 1
            node.describe(info, is_new=True)
            drained = info.action is si.ActionFromRM.CREATE_DRAIN
            node.now = node.now._replace(drained=drained)
            for item in info.existing_allocations:
                _report(rm, partition, item, info.node_id)
                if item.uuid:
                    node.reported.append(item.uuid)
        elif info.node_id in rm.nodes:
            _about_node(rm.node(info.node_id), partition, info)


def _about_node(node: NodeKnown, partition: str, info: si.NodeInfo) -> None:
    if info.action is si.ActionFromRM.DECOMISSION:
        node.is_gone = node.was_removed = True
    elif partition == node.partition and info.action is si.ActionFromRM.UPDATE:
        node.describe(info, is_new=False)
    elif partition == node.partition and info.action in _DRAINS:
        node.now = node.now._replace(drained=_DRAINS[info.action])


def _note_configuration(rm: RmKnowledge, _: object) -> None:
    """A partition that leaves takes its nodes with it, and nobody is notified of that."""
    if rm.owed is not None:
        # Who follows the facts says which partition has ended.
        return
    for id_, node in rm.nodes.items():
        node.is_gone = True
        rm.touched.nodes[id_] = None


def _note_allocations(rm: RmKnowledge, request: si.AllocationRequest) -> None:
    rm_id = rm.rm_id
    for ask in request.asks:
        name = (
            partition_name(rm_id, ask.partition_name), ask.application_id, ask.allocation_key,
        )  # fmt: skip
        # Without a group it is no placeholder, whatever the flag says.
        is_placeholder = ask.placeholder and bool(ask.task_group_name)
        asked = rm.requested(name)
        asked.main += 1
        way = Wanted(
            ask.priority, ask.task_group_name, is_placeholder,
            ask.originator and not is_placeholder,
            *_preemption(ask.preemption_policy, ask.tags), without_devices(ask.tags),
        )  # fmt: skip
        _ask(rm, name, asked, ask.resource_ask, ask.max_allocations, way)
    for item in request.allocations:
        partition = partition_name(rm_id, item.partition_name)
        if TAG_FOREIGN in item.allocation_tags:
            rm.requested((partition, item.application_id, item.allocation_key)).later += 1
        elif item.node_id:
            _report(rm, partition, item, "")
        else:
            name = (partition, item.application_id, item.allocation_key)
            asked = rm.requested(name)
            asked.later += 1
            _ask(rm, name, asked, item.resource_per_alloc, 1, _wanted(item))
    releases = request.releases
    if releases is not None:
        for gone in releases.allocation_asks_to_release:
            partition = partition_name(rm_id, gone.partition_name)
            app_id, key = gone.application_id, gone.allocation_key
            rm.want_no_more(partition, app_id, key)
            if key:
                rm.wished[partition, app_id, key] = None
            if app_id and key:
                rm.taken_back[partition, app_id, key] = None
                rm.touched.asks[partition, app_id, key] = None
        for end in releases.allocations_to_release:
            _release(rm, end)


def _ask(
    rm: RmKnowledge,
    name: Name,
    asked: Requested,
    size: si.Resource | None,
    repeats: int,
    way: Wanted,
) -> None:
    asked.note(way, {} if size is None else size.amounts())
    asked.is_repeated |= repeats > 1
    # With repeats a resource manager cannot know how many are left to place.
    if not (asked.is_repeated and asked.was_placed):
        rm.wanted[name] = None
        rm.touched.asks[name] = None


def _report(rm: RmKnowledge, partition: str, item: si.Allocation, node_id: str) -> None:
    """Note work that runs; with its node it is in the main form, and is not announced."""
    name = (partition, item.application_id, item.allocation_key)
    asked = rm.requested(name)
    resource = item.resource_per_alloc
    asked.note(_wanted(item), {} if resource is None else resource.amounts())
    if node_id:
        asked.main += 1
        asked.by_node = True
    else:
        asked.later += 1
        asked.by_list = True
        asked.nodes[item.node_id] = None
    rm.touched.asks[name] = None
    if item.uuid:
        uuid = item.uuid
        placed = placed_in(item)._replace(
            node_id=node_id or item.node_id, partition=short_partition_name(partition)
        )
        running = rm.running.get(uuid)
        rm.reports.setdefault(uuid, []).append(placed.node_id)
        rm.given_back.pop(uuid, None)
        if running is None:
            rm.by_report[uuid] = None
        if running is None or running[1:4] == placed[1:4]:
            rm.running[uuid] = placed
        elif running.partition == placed.partition and not rm.is_wished(running, running):
            # A UUID that runs under another name is refused; each partition knows its own.
            rm.misnamed[uuid] += 1
        rm.touched.uuids[uuid] = None


def _release(rm: RmKnowledge, end: si.AllocationRelease) -> None:
    partition, key = partition_name(rm.rm_id, end.partition_name), end.allocation_key
    by_wish = end.termination_type in _BY_WISH
    rm.wished[end.uuid or (partition, end.application_id, key)] = None
    # By its key, and not by UUID, it means what waits as well.
    if key and not end.uuid and end.termination_type in _TAKES_THE_ASK:
        rm.want_no_more(partition, end.application_id, key)
    if not end.uuid:
        name = (partition, end.application_id, key)
        rm.ended_by_name[name] = None
        # A confirmation has no answer, so nobody hears what it ended.
        if not by_wish:
            mine = (it for it, item in rm.running.items() if rm.is_of(name, item))
            rm.unsure.update(dict.fromkeys(mine))
            _ended_unanswered(rm, partition, end.application_id, key)
        return
    running = rm.running.get(end.uuid)
    # Of another application: the release means nothing.
    if running is not None and not rm.is_of((partition, end.application_id, ""), running):
        return
    if running is None and end.uuid not in rm.placed and end.uuid not in rm.reports:
        # It cannot know that name: what has it, if anything has, is given back or not.
        rm.guessed[end.uuid] = None
        return
    rm.given_back[end.uuid] = None
    rm.touched.uuids[end.uuid] = None
    if not by_wish:
        rm.running.pop(end.uuid, None)
        # If it was asked for again while it ran, that changed nothing.
        named = end if running is None else running
        app_id, key = named.application_id, key if running is None else running.key
        rm.wanted.pop((partition, app_id, key), None)


def _ended_unanswered(rm: RmKnowledge, partition: str, application_id: str, key: str) -> None:
    """What is known to have run may have ended: nothing is heard of that.

    To have asked for it again while it ran, or to have reported it, changes nothing. A core
    that was restored may have placed it before it was asked again, and announced it to nobody.
    """
    for name in tuple(rm.wanted):
        asked = rm.asks[name]
        has_run = asked.was_placed or asked.by_node or asked.by_list or rm.was_restored
        if has_run and means((partition, application_id, key), name):
            del rm.wanted[name]


def _wanted(item: si.Allocation) -> Wanted:
    is_placeholder = item.placeholder and bool(item.task_group_name)
    return Wanted(
        item.priority, item.task_group_name, is_placeholder,
        item.originator and not is_placeholder,
        *_preemption(item.preemption_policy, item.allocation_tags),
        without_devices(item.allocation_tags),
    )  # fmt: skip


def _preemption(policy: si.PreemptionPolicy | None, tags: dict[str, str]) -> tuple[bool, bool]:
    """Without a policy work may be preempted unless its tag forbids that, and preempts nothing."""
    if policy is not None:
        return policy.allow_preempt_self, policy.allow_preempt_other
    return tags.get(si.constants.TAG_ALLOW_PREEMPTION, "").lower() != "false", False


NOTES: dict[type, Callable[[RmKnowledge, Any], None]] = {
    si.AllocationRequest: _note_allocations,
    si.ApplicationRequest: _note_applications,
    si.NodeRequest: _note_nodes,
    si.UpdateConfigurationRequest: _note_configuration,
}
"""What is noted of each request."""
