"""Nodes: actions on them, the work that already runs there, and the answers."""

from msgspec import field

from yunikorn_actors.si.allocation import Allocation
from yunikorn_actors.si.enums import ActionFromRM
from yunikorn_actors.si.resource import Resource
from yunikorn_actors.si.wire import Name, SiMessage, Text


class NodeInfo(SiMessage, frozen=True, kw_only=True):
    """A node and what to do with it (`action`)."""

    node_id: Name = ""
    action: ActionFromRM = ActionFromRM.UNKNOWN_ACTION_FROM_RM
    attributes: dict[Name, Text] = field(default_factory=dict)
    schedulable_resource: Resource | None = None
    occupied_resource: Resource | None = None
    existing_allocations: tuple[Allocation, ...] = ()


class NodeRequest(SiMessage, frozen=True, kw_only=True):
    """Nodes to add, change, drain or remove."""

    nodes: tuple[NodeInfo, ...] = ()
    rm_id: Name = ""


class RejectedNode(SiMessage, frozen=True, kw_only=True):
    """A node that was not taken, and why."""

    node_id: Name = ""
    reason: Text = ""


class AcceptedNode(SiMessage, frozen=True, kw_only=True):
    """A node that was taken."""

    node_id: Name = ""


class NodeResponse(SiMessage, frozen=True, kw_only=True):
    """Which nodes were taken or not."""

    rejected: tuple[RejectedNode, ...] = ()
    accepted: tuple[AcceptedNode, ...] = ()
