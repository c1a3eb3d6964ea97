"""The comparison at rest: what a resource manager knows, and the truth, field by field."""

from collections.abc import Iterable, Iterator, Mapping

from yunikorn_actors.checks.notices import difference, placed_by
from yunikorn_actors.checks.rm_knowledge import (
    ENDING,
    ApplicationKnown,
    Name,
    NodeKnown,
    Requested,
    RmKnowledge,
)
from yunikorn_actors.state.allocations import Allocation, WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState

States = Mapping[str, PartitionState]
"""The partitions of the resource manager, by their full names."""


def compared(
    rm: RmKnowledge,
    states: States,
    uuids: Iterable[str],
    asks: Iterable[Name],
    apps: Iterable[str],
    nodes: Iterable[str],
) -> Iterator[str]:
    for uuid in uuids:
        yield from _compare_allocation(rm, states, uuid)
    for name in asks:
        yield from _compare_ask(rm, states, name)
    for id_ in apps:
        yield from _compare_application(rm, states, id_)
    for id_ in nodes:
        yield from _compare_node(rm, states, id_)


def _compare_allocation(rm: RmKnowledge, states: States, uuid: str) -> Iterator[str]:
    known, found = rm.running.get(uuid), _find(states, uuid)
    if found is None:
        # It may have ended it by a name that could mean another one.
        if known is not None and uuid not in rm.unsure:
            yield (
                f"G16: for {rm.rm_id} {uuid} ({known.key} of {known.application_id}) "
                f"runs on {known.node_id}, and the core does not have it"
            )
        return
    partition, allocation = found
    name = (partition, allocation.spec.application_id, allocation.spec.key)
    asked = rm.asks.get(name)
    what = f"{uuid} ({allocation.spec.key} of {allocation.spec.application_id})"
    if known is None:
        if rm.was_restored or (asked is not None and (asked.by_node or asked.by_list)):
            # It need not know the name of what it has reported.
            return
        yield (
            f"G16: the core has {what} on {allocation.node_id}, and {rm.rm_id} was not "
            "notified of it"
        )
    elif uuid in rm.placed:
        truth = placed_by(
            partition,
            uuid,
            allocation.spec,
            allocation.node_id,
            allocation.resource,
            allocation.devices,
        )
        # It reported a size that it had asked for at some time: that is no fault.
        if asked is not None and truth.resource in asked.sizes:
            # It may have reported another size since, and knows of which devices.
            devices = known.devices if len(asked.sizes) > 1 else truth.devices
            truth = truth._replace(resource=known.resource, devices=devices)
        wrong = difference(known, truth)
        if wrong and rm.lives(uuid) - rm.misnamed[uuid] == 1:
            yield f"G16: {rm.rm_id} was notified of {what}, and not as it is: {wrong}"
    elif rm.was_restored:
        # A report to a core before this one may have named another node.
        return
    elif allocation.node_id not in rm.reports.get(uuid, [known.node_id]):
        yield (
            f"G16: {rm.rm_id} has reported {what} on {known.node_id}, and the core has it on "
            f"{allocation.node_id}"
        )


def _compare_ask(rm: RmKnowledge, states: States, name: Name) -> Iterator[str]:
    partition, id_, key = name
    state = states.get(partition)
    if state is None or name in rm.unsure_asks:
        return
    app = state.applications.get(id_)
    ask = None if app is None else app.asks.get(key)
    if ask is None:
        if name in rm.wanted:
            yield (
                f"G25: {rm.rm_id} has asked for {key} of {id_}, which neither waits nor "
                "runs, and was not notified of it"
            )
        return
    asked = rm.asks.get(name)
    if asked is None:
        if not rm.was_restored:
            yield f"G16: the core has the ask {key} of {id_}, and {rm.rm_id} has not asked"
        return
    # With repeats nobody outside can know how many are left.
    if name in rm.taken_back and ask.spec.max_allocations == 1:
        yield f"G16: {rm.rm_id} has withdrawn {key} of {id_}, and it is there"
    elif ask.remaining and ask.spec.max_allocations == 1 and not _is_wanted(rm, name):
        yield f"G16: {rm.rm_id} does not want {key} of {id_} any more, and it waits"
    if rm.takes_states:
        yield from _compare_container_state(rm, name, asked, ask.reported)


def _compare_container_state(
    rm: RmKnowledge, name: Name, asked: Requested, reported: WaitingState
) -> Iterator[str]:
    _, id_, key = name
    if reported is WaitingState.UNREPORTED or rm.was_restored:
        return
    if asked.by_node or asked.by_list or len(rm.partitions_of[id_, key]) > 1:
        # What it has reported as running is not always announced as scheduled.
        return
    notified = rm.states.get((id_, key), "none")
    if notified != reported.value:
        yield (
            f"G27: {rm.rm_id} was notified last of container state {notified} of {key} of "
            f"{id_}, and it is {reported.value}"
        )


def _is_wanted(rm: RmKnowledge, name: Name) -> bool:
    asked = rm.asks[name]
    # An answer does not name the partition.
    if len(rm.partitions_of[name[1:]]) > 1:
        # Which of them was rejected, nobody can know.
        return True
    return (
        name in rm.wanted
        or asked.was_placed
        or asked.by_list
        or asked.by_node
        # Asked for again, and only that was rejected.
        or asked.main + asked.later > asked.rejected_main + asked.rejected_later
    )


def _compare_application(rm: RmKnowledge, states: States, id_: str) -> Iterator[str]:
    known = rm.applications[id_]
    answered = known.accepted + known.rejected
    if answered != known.requested:
        yield (
            f"G25: {rm.rm_id} has asked for application {id_} {known.requested} times, and "
            f"was answered {answered} times"
        )
    # Of several partitions with this id nobody can tell which one is meant.
    if len(known.partitions) != 1 or known.is_unsure:
        return
    state = states.get(next(iter(known.partitions)))
    if state is None:
        return
    app = state.applications.get(id_)
    if app is None:
        if known.accepted and not known.is_gone and known.state not in ENDING:
            yield (
                f"G21: for {rm.rm_id} application {id_} is {known.state}, and the core does "
                "not have it"
            )
        return
    if not rm.was_restored:
        yield from _compare_states(rm, known, app)


def _compare_states(rm: RmKnowledge, known: ApplicationKnown, app: Application) -> Iterator[str]:
    id_ = app.id
    if known.is_gone:
        yield f"G28: {rm.rm_id} has removed application {id_}, and it is there"
    if known.state != app.state.value:
        yield (
            f"G21: {rm.rm_id} was notified last of state {known.state} of application {id_}, "
            f"and it is {app.state.value}"
        )
    elif known.at_ns and known.at_ns != (at_ns := app.state_log.entries[-1].at_ns):
        yield (
            f"G21: {rm.rm_id} was notified of state {known.state} of application {id_} at "
            f"{known.at_ns}, and it came into that at {at_ns}"
        )
    if known.queue and known.queue != app.queue.path:
        yield (
            f"G25: {rm.rm_id} was notified of queue {known.queue} of application {id_}, and "
            f"it is in {app.queue.path}"
        )


def _compare_node(rm: RmKnowledge, states: States, id_: str) -> Iterator[str]:
    known = rm.nodes.get(id_)
    if known is not None and known.accepted + known.rejected != known.requested:
        yield (
            f"G25: {rm.rm_id} has asked for node {id_} {known.requested} times, and was "
            f"answered {known.accepted + known.rejected} times"
        )
    is_there = any(id_ in state.nodes for state in states.values())
    # Without facts a report may have been refused, and nobody here would know.
    if rm.owed is not None and known is not None:
        yield from _compare_report(rm, states, id_, known)
    if is_there and not rm.was_restored and (known is None or not known.accepted):
        yield f"G25: the core has node {id_}, and {rm.rm_id} was not notified of it"
    if known is None or is_there or known.is_gone or not known.accepted:
        return
    if known.partition in states:
        yield f"G25: {rm.rm_id} was notified of node {id_}, and the core does not have it"


def _compare_report(rm: RmKnowledge, states: States, id_: str, known: NodeKnown) -> Iterator[str]:
    """Of a node that an operator has drained it is not known who was last."""
    state = states.get(known.partition)
    node = None if state is None else state.nodes.get(id_)
    if node is None or known.is_gone or not known.accepted:
        return
    now = known.now._replace(drained=node.drained) if known.is_operated else known.now
    for wrong in now.differences(node):
        yield f"G01: of {id_}, which {rm.rm_id} has reported, {wrong}"


def _find(states: States, uuid: str) -> tuple[str, Allocation] | None:
    for name, state in states.items():
        app = state.applications.get(state.owners.get(uuid, ""))
        allocation = None if app is None else app.allocations.get(uuid)
        if allocation is not None:
            return name, allocation
    return None
