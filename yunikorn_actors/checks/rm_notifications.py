"""Notifications of a resource manager: noted, and judged by what it knew before."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.checks.notices import (
    ApplicationAccepted,
    ApplicationIs,
    ApplicationRefused,
    AskIs,
    Ended,
    NodeAccepted,
    Notice,
    Placed,
    Withdrawn,
    ended_in,
    placed_in,
)
from yunikorn_actors.checks.rm_knowledge import (
    ENDING,
    Name,
    NodeKnown,
    Requested,
    RmKnowledge,
    Wanted,
)
from yunikorn_actors.state.allocations import WaitingState
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.termination import ASKED_BACK, TerminationType
from yunikorn_actors.values.ids import partition_name

_T = TerminationType


def _fault(rm: RmKnowledge, invariant: str, notice: Notice, wrong: str) -> str:
    return f"{invariant}: {rm.rm_id} was notified of {notice.what}: {wrong}"


def _unasked(rm: RmKnowledge, notice: Notice, faults: list[str]) -> None:
    """Fault an answer without a request, unless a former core may have got the request."""
    if not rm.was_restored:
        faults.append(_fault(rm, "G16", notice, "it has not asked for that"))


def _notify_allocations(rm: RmKnowledge, response: si.AllocationResponse) -> list[str]:
    faults: list[str] = []
    for refused in response.rejected:
        faults.extend(_rejected(rm, refused, later_form=False))
    for later in response.rejected_allocations:
        faults.extend(_rejected(rm, later, later_form=True))
    for gone in response.released_asks:
        notice = Withdrawn(
            gone.allocation_key, gone.application_id, gone.partition_name,
            gone.termination_type, gone.message, later_form=False,
        )  # fmt: skip
        faults.extend(_withdrawn(rm, notice))
    for release in response.released:
        if release.uuid:
            faults.extend(_ended(rm, ended_in(release)))
        else:
            notice = Withdrawn(
                release.allocation_key, release.application_id, release.partition_name,
                release.termination_type, release.message, later_form=True,
            )  # fmt: skip
            faults.extend(_withdrawn(rm, notice))
    for item in response.new:
        faults.extend(_new(rm, placed_in(item)))
    return faults


def _new(rm: RmKnowledge, notice: Placed) -> list[str]:
    faults = [] if rm.owed is None else rm.owed.take(notice)
    uuid, app_id, key = notice.uuid, notice.application_id, notice.key
    name = (partition_name(rm.rm_id, notice.partition), app_id, key)
    asked = rm.asks.get(name)
    if asked is None:
        _unasked(rm, notice, faults)
    else:
        asked.was_placed = True
        # A core before this one may have been asked in another way.
        wrong = "" if rm.was_restored else _unlike(notice, asked)
        if wrong:
            faults.append(_fault(rm, "G16", notice, wrong))
    announced = rm.placed.setdefault(uuid, [])
    before = len(announced)
    announced.append(notice.node_id)
    # Each life may be announced once.
    if before >= rm.lives(uuid):
        faults.append(_fault(rm, "G16", notice, f"it was announced {before} times before"))
    app = rm.applications.get(app_id)
    if not rm.was_restored and (app is None or not app.accepted):
        faults.append(_fault(rm, "G27", notice, f"{app_id} was not accepted before"))
    # A core that was restored knows the node and takes work that is reported there first.
    is_reported = rm.was_restored and asked is not None and notice.node_id in asked.nodes
    if notice.node_id not in rm.nodes and not is_reported and not faults:
        faults.append(_fault(rm, "G16", notice, f"node {notice.node_id} is none of its own"))
    rm.wanted.pop(name, None)
    rm.by_report.pop(uuid, None)
    rm.touched.uuids[uuid] = rm.touched.asks[name] = None
    # One request reported and ended it: its end was announced first.
    if uuid in rm.ended_first:
        del rm.ended_first[uuid]
    elif uuid not in rm.given_back:
        rm.running[uuid] = notice
        # A release by name may have meant it, and nobody is notified of that.
        was_named = any(rm.is_of(it, notice) for it in rm.ended_by_name)
        if was_named or uuid in rm.guessed:
            rm.unsure[uuid] = None
    return faults


def _ended(rm: RmKnowledge, notice: Ended) -> list[str]:
    """An allocation is asked back once at most in each of its lives, and then stopped (G13)."""
    faults = [] if rm.owed is None else rm.owed.take(notice)
    uuid, type_ = notice.uuid, notice.type
    ends = rm.ends.setdefault(uuid, [])
    ends.append(type_)
    if not notice.message:
        faults.append(_fault(rm, notice.invariant, notice, "there is no reason"))
    if not _may_follow(ends, rm.lives(uuid)):
        invariant = "G13" if type_ in ASKED_BACK else "G15"
        before = ", ".join(it.name for it in ends[:-1])
        faults.append(_fault(rm, invariant, notice, f"it was released before: {before}"))
    running = rm.running.get(uuid)
    if type_ is _T.STOPPED_BY_RM and running is not None and not rm.is_wished(notice, running):
        faults.append(_fault(rm, "G15", notice, "it has not ended that, nor removed its node"))
    if running is not None and rm.lives(uuid) == 1:
        was = (running.key, running.application_id, running.partition)
        if was != notice[1:4]:
            faults.append(_fault(rm, "G16", notice, f"it was announced as {was}"))
    if type_ is _T.STOPPED_BY_RM:
        rm.running.pop(uuid, None)
        # More ends than announcements: the announcement comes after this end.
        if ends.count(_T.STOPPED_BY_RM) > len(rm.placed.get(uuid, ())):
            rm.ended_first[uuid] = None
        partition = partition_name(rm.rm_id, notice.partition)
        rm.wanted.pop((partition, notice.application_id, notice.key), None)
    rm.touched.uuids[uuid] = None
    return faults


def _withdrawn(rm: RmKnowledge, notice: Withdrawn) -> list[str]:
    faults = [] if rm.owed is None else rm.owed.take(notice)
    name = (
        partition_name(rm.rm_id, notice.partition), notice.application_id, notice.key,
    )  # fmt: skip
    asked = rm.asks.get(name)
    if asked is None:
        _unasked(rm, notice, faults)
    elif not (asked.later if notice.later_form else asked.main):
        faults.append(_fault(rm, "G25", notice, "it was asked for in the other form"))
    if notice.type is not _T.TIMEOUT:
        faults.append(_fault(rm, "G11", notice, f"type is {notice.type.name}, not TIMEOUT"))
    rm.wanted.pop(name, None)
    return faults


def _rejected(
    rm: RmKnowledge,
    item: si.RejectedAllocationAsk | si.RejectedAllocation,
    *,
    later_form: bool,
) -> list[str]:
    """An answer does not name the partition, so it counts for all that have such an ask."""
    app_id, key = item.application_id, item.allocation_key
    what = f"G25: {rm.rm_id} was notified of the rejection of {key} of {app_id}"
    names = [(it, app_id, key) for it in rm.partitions_of.get((app_id, key), ())]
    if not names:
        return [f"{what}: it has not asked for that"]
    faults = [] if item.reason else [f"{what}: there is no reason"]
    requested = rejected = 0
    for name in names:
        asked = rm.asks[name]
        requested += asked.later if later_form else asked.main
        if later_form:
            asked.rejected_later += 1
            rejected = max(rejected, asked.rejected_later)
        else:
            asked.rejected_main += 1
            rejected = max(rejected, asked.rejected_main)
        if name in rm.wanted:
            del rm.wanted[name]
        rm.touched.asks[name] = None
    if not requested:
        faults.append(f"{what}: it was asked for in the other form")
    elif rejected > requested:
        faults.append(f"{what}: it was asked for {requested} times and rejected {rejected}")
    reported = any(_is_report(rm, name) for name in names)
    # Only what runs because of the report: the rest ran before.
    if reported:
        for uuid, placed in tuple(rm.running.items()):
            # What was refused does not run, unless it did before it was reported.
            is_it = placed.key == key and placed.application_id == app_id
            if is_it and uuid in rm.by_report:
                del rm.running[uuid]
    return faults


def _is_report(rm: RmKnowledge, name: Name) -> bool:
    asked = rm.asks[name]
    return asked.by_list or asked.by_node


def _notify_applications(rm: RmKnowledge, response: si.ApplicationResponse) -> list[str]:
    faults: list[str] = []
    for refused in response.rejected:
        faults.extend(_application_answered(rm,
            ApplicationRefused(refused.application_id, refused.reason)
        ))  # fmt: skip
    for accepted in response.accepted:
        faults.extend(_application_answered(rm,
            ApplicationAccepted(
                accepted.application_id, accepted.queue, accepted.by_last_resort
            )
        ))  # fmt: skip
    for item in response.updated:
        notice = ApplicationIs(
            item.application_id, item.state, item.state_transition_timestamp, item.message
        )
        faults.extend(_application_is(rm, notice))
    return faults


def _application_answered(
    rm: RmKnowledge, notice: ApplicationAccepted | ApplicationRefused
) -> list[str]:
    faults = [] if rm.owed is None else rm.owed.take(notice)
    app = rm.application(notice.application_id)
    app.answer(is_accepted=isinstance(notice, ApplicationAccepted))
    if isinstance(notice, ApplicationAccepted):
        app.queue, app.state, app.at_ns = notice.queue, ApplicationState.NEW.value, 0
    answered = app.accepted + app.rejected
    if answered > app.requested:
        wrong = f"it was asked for {app.requested} times and answered {answered}"
        faults.append(_fault(rm, "G25", notice, wrong))
    return faults


def _application_is(rm: RmKnowledge, notice: ApplicationIs) -> list[str]:
    faults = [] if rm.owed is None else rm.owed.take(notice)
    id_ = notice.application_id
    app = rm.application(id_)
    if not rm.was_restored and not app.accepted + app.rejected:
        faults.append(_fault(rm, "G27", notice, f"{id_} was not answered before"))
    app.state, app.at_ns = notice.state, notice.at_ns
    if notice.state in ENDING:
        # It takes no asks any more: those that wait have gone with it, or are rejected.
        for partition in app.partitions:
            rm.want_no_more(partition, id_, "")
    return faults


def _notify_nodes(rm: RmKnowledge, response: si.NodeResponse) -> list[str]:
    faults: list[str] = []
    for refused in response.rejected:
        node = rm.node(refused.node_id)
        node.rejected += 1
        # Whether what came with it was taken depends on which of several it was.
        node.is_gone = node.is_gone or node.requested > 1 or not node.accepted
        for uuid in node.reported:
            if uuid in rm.by_report:
                rm.running.pop(uuid, None)
        if not refused.reason:
            what = f"the rejection of node {refused.node_id}"
            faults.append(f"G25: {rm.rm_id} was notified of {what}: there is no reason")
        faults.extend(_node_answered(rm, refused.node_id, node))
    for accepted in response.accepted:
        if rm.owed is not None:
            faults.extend(rm.owed.take(NodeAccepted(accepted.node_id)))
        node = rm.node(accepted.node_id)
        node.accepted += 1
        faults.extend(_node_answered(rm, accepted.node_id, node))
    return faults


def _node_answered(rm: RmKnowledge, id_: str, node: NodeKnown) -> list[str]:
    answered = node.accepted + node.rejected
    if answered <= node.requested:
        return []
    what = f"it was asked for {node.requested} times and answered {answered}"
    return [f"G25: {rm.rm_id} was notified of an answer to node {id_}: {what}"]


def _notify_state(rm: RmKnowledge, request: si.UpdateContainerSchedulingStateRequest) -> list[str]:
    notice = AskIs(
        request.application_id, request.allocation_key, request.state.name, request.reason
    )
    faults = [] if rm.owed is None else rm.owed.take(notice)
    name = (notice.application_id, notice.key)
    if name not in rm.partitions_of:
        _unasked(rm, notice, faults)
    elif not notice.reason and notice.state != WaitingState.SCHEDULED.value:
        # SCHEDULED needs no reason: the announcement says everything.
        faults.append(_fault(rm, "G27", notice, "there is no reason"))
    rm.touched.asks.update(((it, *name), None) for it in rm.partitions_of.get(name, ()))
    rm.states[name] = notice.state
    return faults


def _unlike(notice: Placed, asked: Requested) -> str:
    """Say in what an announcement differs from all that was requested under its key."""
    way = Wanted(*notice[7:])
    if way not in asked.ways:
        last = asked.ways[-1]
        for name, has, wanted in zip(way._fields, way, last, strict=True):
            if has != wanted:
                return f"{name} is {has!r}, requested {wanted!r}"
    if notice.resource not in asked.sizes:
        return f"resource is {notice.resource}, requested {asked.sizes[-1]}"
    return ""


def _may_follow(ends: list[TerminationType], lives: int) -> bool:
    asked_back = sum(1 for type_ in ends if type_ in ASKED_BACK)
    stopped = len(ends) - asked_back
    # Several lives may be interleaved, so their order says nothing.
    in_order = lives > 1 or not stopped or ends[-1] is _T.STOPPED_BY_RM
    return max(asked_back, stopped) <= lives and in_order


JUDGES: dict[type, Callable[[RmKnowledge, Any], list[str]]] = {
    si.AllocationResponse: _notify_allocations,
    si.ApplicationResponse: _notify_applications,
    si.NodeResponse: _notify_nodes,
    si.UpdateContainerSchedulingStateRequest: _notify_state,
}
"""What is wrong with each kind of notification, which is noted at the same time."""
