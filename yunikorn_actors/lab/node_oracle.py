"""An oracle of nodes: each is as its resource manager reported it last, whatever happened (G01).

What a request says is applied to what was known before it, by the words of the interface alone. So
it shows that a node takes work again because something else of it was reported.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.rm_events import NodeItem, RMUpdateNode
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.devices import DEVICES_MAX, WHOLE
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, NODE_PARTITION, NODE_READY_ATTRIBUTE

_READY: Final = {"true": True, "false": False}


class _Said(NamedTuple):
    capacity: Resource
    occupied: Resource
    attributes: dict[str, str]
    drained: bool
    ready: bool


_Nodes = dict[str, _Said]


class NodesReported(Oracle):
    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Nodes] = {}
        """Of each life of a partition."""
        self._was_at_rest = True

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        # What is handled as one is judged as one.
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        is_whole = self._was_at_rest and context.is_at_rest
        self._was_at_rest = context.is_at_rest
        reports = [it for it in simulator.taken if isinstance(it, RMUpdateNode)]
        for name, partition in context.partitions.items():
            life = (name, partition.epoch)
            known = self._known.get(life)
            if reports and is_whole and known is not None and partition.awaited is None:
                items = [it for report in reports for it in report.nodes if it.partition == name]
                _compare(_after(known, items), partition.state)
            self._known[life] = {id_: _said(it) for id_, it in partition.state.nodes.items()}


def _said(node: Node) -> _Said:
    return _Said(node.capacity, node.occupied_reported, node.attributes, node.drained, node.ready)


def _after(known: _Nodes, items: Sequence[NodeItem]) -> _Nodes:
    nodes = dict(known)
    for item in items:
        node = nodes.get(item.node_id)
        if item.action in {ActionFromRM.CREATE, ActionFromRM.CREATE_DRAIN}:
            if node is None and _is_sound(item) and _agrees(_created(item)):
                nodes[item.node_id] = _created(item)
        elif node is None:
            continue
        elif item.action is ActionFromRM.DECOMISSION:
            del nodes[item.node_id]
        elif item.action is ActionFromRM.UPDATE:
            updated = _updated(node, item)
            nodes[item.node_id] = updated if _agrees(updated) else node
        elif item.action is ActionFromRM.DRAIN_NODE:
            nodes[item.node_id] = node._replace(drained=True)
        elif item.action is ActionFromRM.DRAIN_TO_SCHEDULABLE:
            nodes[item.node_id] = node._replace(drained=False)
    return nodes


def _is_sound(item: NodeItem) -> bool:
    amounts = (*(item.capacity or {}).values(), *(item.occupied or {}).values())
    return min(amounts, default=0) >= 0


def _agrees(said: _Said) -> bool:
    """Whether it has a thousand of its devices for each that it tells of, if it tells of any."""
    text = said.attributes.get(GPU_DEVICES)
    if text is None:
        return True
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(DEVICES_MAX))
    return is_number and said.capacity.get(GPU, 0) == int(text) * WHOLE


def _amounts(resource: Resource | None) -> Resource:
    return {kind: quantity for kind, quantity in (resource or {}).items() if quantity}


def _ready(attributes: dict[str, str], *, otherwise: bool) -> bool:
    return _READY.get(attributes.get(NODE_READY_ATTRIBUTE, "").lower(), otherwise)


def _created(item: NodeItem) -> _Said:
    attributes = item.attributes or {}
    return _Said(
        _amounts(item.capacity), _amounts(item.occupied), attributes,
        item.action is ActionFromRM.CREATE_DRAIN, _ready(attributes, otherwise=True),
    )  # fmt: skip


def _updated(node: _Said, item: NodeItem) -> _Said:
    """What an update does not name stays as it is; a node never changes its partition."""
    if not _is_sound(item):
        return node
    if item.capacity is not None:
        node = node._replace(capacity=_amounts(item.capacity))
    if item.occupied is not None:
        node = node._replace(occupied=_amounts(item.occupied))
    if item.attributes is not None:
        own = {it: text for it, text in node.attributes.items() if it == NODE_PARTITION}
        attributes = {**item.attributes, **own}
        ready = _ready(attributes, otherwise=node.ready)
        node = node._replace(attributes=attributes, ready=ready)
    return node


def _compare(expected: _Nodes, state: PartitionState) -> None:
    if expected.keys() != state.nodes.keys():
        found = sorted(state.nodes)
        raise InvariantViolation(f"G01: the nodes are {found}, reported are {sorted(expected)}")
    for id_, node in state.nodes.items():
        if _said(node) != expected[id_]:
            raise InvariantViolation(f"G01: {id_} is {_said(node)}, reported as {expected[id_]}")
