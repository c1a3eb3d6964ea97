"""An oracle of nodes: each is as its resource manager reported it last, whatever happened (G01).

What a request says is applied to what was known before it, by the words of the interface alone. So
it shows that a node takes work again because something else of it was reported.
"""

from collections.abc import Sequence
from typing import Final

from yunikorn_actors.checks.rm_knowledge import NodeReport, described, of_node
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.rm_events import NodeItem, RMUpdateNode
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state.partition import PartitionState

_Nodes = dict[str, NodeReport]


class NodesReported(Oracle):
    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Nodes] = {}
        """Of each life of a partition."""
        self._revisions: dict[tuple[str, int], int] = {}
        """At which that was so: facts alone change a node."""
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
            if self._revisions.get(life) != partition.state.revision:
                self._revisions[life] = partition.state.revision
                self._known[life] = {id_: of_node(it) for id_, it in partition.state.nodes.items()}


def _after(known: _Nodes, items: Sequence[NodeItem]) -> _Nodes:
    nodes = dict(known)
    for item in items:
        node = nodes.get(item.node_id)
        if item.action in {ActionFromRM.CREATE, ActionFromRM.CREATE_DRAIN}:
            made = described(None, item.capacity, item.occupied, item.attributes)
            if node is None and made is not None:
                drained = item.action is ActionFromRM.CREATE_DRAIN
                nodes[item.node_id] = made._replace(drained=drained)
        elif node is None:
            continue
        elif item.action is ActionFromRM.DECOMISSION:
            del nodes[item.node_id]
        elif item.action is ActionFromRM.UPDATE:
            changed = described(node, item.capacity, item.occupied, item.attributes)
            assert changed is not None
            nodes[item.node_id] = changed
        elif item.action is ActionFromRM.DRAIN_NODE:
            nodes[item.node_id] = node._replace(drained=True)
        elif item.action is ActionFromRM.DRAIN_TO_SCHEDULABLE:
            nodes[item.node_id] = node._replace(drained=False)
    return nodes


def _compare(expected: _Nodes, state: PartitionState) -> None:
    if expected.keys() != state.nodes.keys():
        found = sorted(state.nodes)
        raise InvariantViolation(f"G01: the nodes are {found}, reported are {sorted(expected)}")
    for id_, node in state.nodes.items():
        faults = expected[id_].differences(node)
        if faults:
            raise InvariantViolation(f"G01: of {id_} " + "; ".join(faults))
