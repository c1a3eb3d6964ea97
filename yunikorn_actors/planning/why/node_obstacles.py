"""Nodes as obstacles: those kept for an ask, those without room, those that were refused."""

from collections.abc import Iterator
from typing import Final

from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.reasons import Cause, NearMiss, NodeCheck, Obstacle
from yunikorn_actors.planning.why.inquiry import (
    Case,
    Words,
    amounts_of,
    in_devices,
    named,
    no_device,
)
from yunikorn_actors.planning.why.survey import Survey, survey
from yunikorn_actors.state.gates import shortfall
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.values.durations import duration_of
from yunikorn_actors.values.resource import sub


def reserved_node_obstacles(case: Case) -> Iterator[Obstacle]:
    """Nodes are reserved for it and have no room yet; one that is refused is none of these."""
    shape = case.ask.shape
    # Several of its repeats may have one node: it is named once.
    for node_id in dict.fromkeys(case.ask.ask.reserved):
        node = case.planner.model.nodes.views[node_id]
        free = room_for(node.node, case.ask.ask.spec, node.free)
        # With what victims of others left for them: that is not for this ask.
        lacks = shortfall(free, {}, shape.wanted, True)
        short = f"{case.words.amounts(lacks)} short"
        if any(free.get(kind, 0) < node.free.get(kind, 0) for kind in lacks):
            short += ", beside the room that victims of other asks made"
        if lacks:
            sizes = amounts_of(shape.wanted, node.node.capacity)
            yield Obstacle(
                cause=Cause.NODE_KEPT,
                where=node_id,
                wanted=dict(shape.wanted),
                used=sub(sizes, amounts_of(shape.wanted, free)),
                maximum=sizes,
                lacks=lacks,
                text=f"{node_id} is reserved for it and is {short}",
                remedy="release that much on the node",
            )
        elif shape.devices and case.planner.model.devices_for(case.ask, node) is None:
            # Amounts suffice, but no device has that much left.
            yield Obstacle(
                cause=Cause.NODE_KEPT,
                where=node_id,
                wanted=dict(shape.wanted),
                text=f"{node_id} is reserved for it and has {no_device(shape.devices)}",
                remedy="release work on its devices",
            )


def node_obstacles(case: Case) -> Iterator[Obstacle]:
    found, ask = case.inquiry.survey_of(case), case.ask
    if found is None:
        # Not looked at again: the planner keeps which shapes found no node, and which were refused.
        if refused := _refused_with_room(case):
            yield _refused(case, refused)
        elif ask.shape.waits_for_node:
            yield Obstacle(cause=Cause.NO_NODE, text="no node has room for it")
    elif found.fitting:
        # A node that would take it now is none of its obstacles.
        return
    elif found.refusals:
        yield _refused(case, found)
    elif not ask.shape.required_node or ask.shape.required_node not in ask.ask.reserved:
        # What the one node lacks that is reserved for it is in the answer already.
        yield _no_node(case, found)


def _refused_with_room(case: Case) -> Survey | None:
    """Look whether one of the nodes that its resource manager has refused has room for the ask."""
    denial, views = case.ask.shape.denial, case.planner.model.nodes.views
    refused = {} if denial is None else denial.refused[Use.PLACING]
    case.inquiry.cost += len(refused)
    found = survey(case.ask, [views[node] for node in refused if node in views])
    return found if found.refusals else None


def _no_node(case: Case, found: Survey) -> Obstacle:
    required, near = case.ask.shape.required_node, found.near_miss
    if required and not found.total:
        text, remedy = f"node {required} is not registered", "add this node"
    elif not found.total:
        # None at all: the cluster is empty, whatever the ask wants.
        text, remedy = "there is no node", "add a node"
    elif found.is_hopeless:
        # Too small or without such devices: waiting does not help.
        text, remedy = _hopeless(case.words, found, required), _larger(found, required)
        if case.ask.shape.names_models:
            text += f"; it wants devices of model {case.ask.shape.models.replace('|', ' or ')}"
    elif required:
        text, remedy = _of_required(case.words, found, required), _node_remedy(found, required)
    else:
        text, remedy = _counted(case.words, found), _node_remedy(found, required)
        if near is not None:
            text += f"; {near.node_id} is nearest, {_short_of(case.words, near)}"
    # Beside the amounts: enough is free, but not on one device.
    if found.split:
        where = "that node has" if required else "there is"
        text += f"; {in_devices(found.split)} GPUs are free, but {where} "
        text += no_device(case.ask.shape.devices)
    return Obstacle(
        cause=Cause.NO_NODE,
        where=required,
        never=found.is_hopeless,
        wanted=dict(case.ask.shape.wanted),
        nodes=found.first,
        without=found.without,
        exhausted=found.exhausted,
        near_miss=near,
        kept_for=found.kept_for,
        text=text,
        remedy=remedy,
    )


def _hopeless(words: Words, found: Survey, required: str) -> str:
    near = found.near_miss
    if required:
        text = f"node {required} could not hold it even when empty"
    else:
        text = f"none of {found.total} nodes could hold it even when empty"
    if near is None:
        return text
    who = "it" if required else f"{near.node_id} is nearest,"
    return f"{text}; {who} {'is ' if required else ''}{words.amounts(near.lacks)} short"


def _larger(found: Survey, required: str) -> str:
    """Name what would help where no node could ever hold it."""
    if NodeCheck.TOO_SMALL not in found.first:
        # Each is large enough, and another size of the ask would change nothing.
        return "give it such devices" if required else "add a node with such devices"
    larger = "make it larger" if required else "add a node that is large enough"
    return f"{larger}, or ask for less"


def _node_remedy(found: Survey, required: str) -> str:
    """List the changes of which one would do."""
    # Only what would help this ask by itself; several changes together are not named.
    options = [
        words.format(count=found.without[check])
        for check, words in _REMEDIES.items()
        if check in found.without
    ]
    return ", or ".join(options if required else [*options, "add a node that has room"])


_REMEDIES: Final[dict[str, str]] = {
    NodeCheck.NO_WORK: "let nodes take work that are drained or not ready ({count} would do)",
    NodeCheck.AWAITED: "report the nodes that were known before the restart ({count} would do)",
    NodeCheck.KEPT: "withdraw what nodes are reserved for ({count} would do)",
    NodeCheck.FULL: "release that much on the node",
    NodeCheck.SPLIT: "release work on the devices of a node ({count} would do)",
}


def _refused(case: Case, found: Survey) -> Obstacle:
    denial = case.ask.shape.denial
    assert denial is not None
    reasons = "; ".join(f"{reason} ({n}x)" for reason, n in found.refusals.items())
    # Denials are lifted at that time even if the resource manager says nothing.
    left_ns = max(0, denial.due_ns - case.inquiry.now_ns)
    other = "make room on another node" if found.near_miss else "add a node that it accepts"
    return Obstacle(
        cause=Cause.PREDICATES,
        wanted=dict(case.ask.shape.wanted),
        nodes=found.first,
        without=found.without,
        exhausted=found.exhausted,
        near_miss=found.near_miss,
        kept_for=found.kept_for,
        refusals=found.refusals,
        until_ns=denial.due_ns,
        left_ns=left_ns,
        text=f"its resource manager refuses every node that has room: {reasons}",
        remedy=f"{other}; all are asked about again after its next request, "
        f"or in {duration_of(left_ns)}",
    )


_WORDS: Final[dict[str, str]] = {
    NodeCheck.NO_WORK: "taking no work",
    NodeCheck.AWAITED: "not reported since the restart",
    NodeCheck.KEPT: "reserved for others",
    NodeCheck.DEVICES: "without such devices",
    NodeCheck.TOO_SMALL: "too small",
    NodeCheck.FULL: "too full",
    NodeCheck.SPLIT: "with too little left of each device",
}


def _short_of(words: Words, near: NearMiss) -> str:
    text = f"{words.amounts(near.lacks)} short"
    if near.foreign and not words.is_brief:
        text += f" (others use {words.amounts(near.foreign)} there)"
    return text


def _of_required(words: Words, found: Survey, required: str) -> str:
    """No other node counts, so there is nothing to be counted."""
    text = f"node {required}, which it requires, is {_WORDS[next(iter(found.first))]}"
    for whom in found.kept_for.values():
        text += f" ({whom})"
    return text if found.near_miss is None else f"{text}, {_short_of(words, found.near_miss)}"


def _counted(words: Words, found: Survey) -> str:
    checks = dict(_WORDS)
    if found.kept_for and not words.is_brief:
        kept = (f"{node} for {whom}" for node, whom in found.kept_for.items())
        checks[NodeCheck.KEPT] += f" ({named(kept)})"
    counts = ", ".join(f"{found.first[it]} {checks[it]}" for it in checks if it in found.first)
    short = ", ".join(f"{kind} on {count}" for kind, count in found.exhausted.items())
    nodes = "1 node" if found.total == 1 else f"{found.total} nodes"
    tail = f" (short of {short})" if short and not words.is_brief else ""
    return f"of {nodes}: {counts}{tail}"
