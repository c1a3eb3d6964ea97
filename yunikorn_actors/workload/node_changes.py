"""Nodes that come, leave and become others, as requests of a resource manager."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.values import tags
from yunikorn_actors.workload.jobs import Node


class NodeChange(NamedTuple):
    at_s: float
    id: str
    after: Node | None
    """None if it leaves."""


def node_changes(nodes: Sequence[Node]) -> list[NodeChange]:
    """Return when nodes come, leave or become others: one that follows at once is a change."""
    ordered = sorted(nodes, key=lambda it: it.from_s)
    comes = [NodeChange(it.from_s, it.id, it) for it in ordered]
    begins = {(it.at_s, it.id) for it in comes}
    leaves = [
        NodeChange(it.until_s, it.id, None)
        for it in ordered
        if it.until_s is not None and (it.until_s, it.id) not in begins
    ]
    return sorted(leaves + comes, key=lambda it: it.at_s)


def node_info(node: Node) -> si.NodeInfo:
    """Report a node that comes."""
    action = si.ActionFromRM.CREATE_DRAIN if node.drained else si.ActionFromRM.CREATE
    return si.NodeInfo(
        node_id=node.id, attributes=_attributes(node), action=action,
        schedulable_resource=si.Resource.of(node.resources),
    )  # fmt: skip


def changed_node(before: Node, after: Node) -> Iterator[si.NodeInfo]:
    yield replace(node_info(after), action=si.ActionFromRM.UPDATE)
    if before.drained != after.drained:
        ends, begins = si.ActionFromRM.DRAIN_TO_SCHEDULABLE, si.ActionFromRM.DRAIN_NODE
        yield si.NodeInfo(node_id=after.id, action=begins if after.drained else ends)


def _attributes(node: Node) -> dict[str, str]:
    attributes = {tags.GPU_MODEL: node.model} if node.model else {}
    if node.devices:
        attributes[tags.GPU_DEVICES] = str(node.devices)
    return attributes
