"""The node as its resource manager has reported it, in the words of the interface (G01).

The rule is written once more than in the core, in the plainest way: what a report does not name
stays, one that is not sound changes nothing, and a node never changes its partition.
"""

from typing import Final, NamedTuple

from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.devices import DEVICES_MAX, WHOLE
from yunikorn_actors.values.resource import pruned
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, NODE_PARTITION, NODE_READY_ATTRIBUTE

_READY: Final = {"true": True, "false": False}
_Amounts = dict[str, int]


class NodeReport(NamedTuple):
    capacity: _Amounts
    occupied: _Amounts
    attributes: dict[str, str]
    drained: bool
    ready: bool

    def differences(self, node: Node) -> list[str]:
        """Say in which words the node is otherwise."""
        truth = of_node(node)
        pairs = zip(self._fields, self, truth, strict=True)
        return [f"{word} is {is_}, reported {said}" for word, said, is_ in pairs if said != is_]


NEW: Final = NodeReport({}, {}, {}, drained=False, ready=True)


def of_node(node: Node) -> NodeReport:
    return NodeReport(
        pruned(node.capacity), pruned(node.occupied_reported), node.attributes, node.drained,
        node.ready,
    )  # fmt: skip


def described(
    before: NodeReport | None,
    capacity: _Amounts | None,
    occupied: _Amounts | None,
    attributes: dict[str, str] | None,
) -> NodeReport | None:
    """Take in what a report says; without anything before it the node comes with it."""
    known = before or NEW
    # Not sound: the report counts for nothing, so the node stays as it was.
    if min([0, *(capacity or {}).values(), *(occupied or {}).values()]) < 0:
        return before
    size = known.capacity if capacity is None else pruned(capacity)
    # The partition is an attribute that no later report changes.
    own = {it: text for it, text in known.attributes.items() if it == NODE_PARTITION}
    now = known.attributes if attributes is None else {**attributes, **own}
    if not _agree(now, size):
        return before
    return known._replace(
        capacity=size,
        occupied=known.occupied if occupied is None else pruned(occupied),
        attributes=now,
        # Another word than true or false says nothing.
        ready=_READY.get((attributes or {}).get(NODE_READY_ATTRIBUTE, "").lower(), known.ready),
    )


def _agree(attributes: dict[str, str], capacity: _Amounts) -> bool:
    """Whether a node has a thousand of its devices for each that it tells of, if of any."""
    text = attributes.get(GPU_DEVICES)
    if text is None:
        return True
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(DEVICES_MAX))
    return is_number and capacity.get(GPU, 0) == int(text) * WHOLE
