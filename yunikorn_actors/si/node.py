"""Nodes: actions on them, the work that already runs there, and the answers."""

from msgspec import field

from yunikorn_actors.si.allocation import Allocation
from yunikorn_actors.si.enums import ActionFromRM
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import Name, SiMessage, Text


class NodeInfo(SiMessage, frozen=True, kw_only=True):
    """A node, and what is to be done with it."""

    node_id: Name = ""
    """Id of the node."""
    action: ActionFromRM = ActionFromRM.UNKNOWN_ACTION_FROM_RM
    """What is to be done. Without one nothing is: a warning in the log says so."""
    attributes: dict[Name, Text] = field(default_factory=dict)
    """Properties such as `si/instance-type` and `ready`. An update with attributes replaces them
    all; the partition (`si/node-partition`) stays."""
    schedulable_resource: Resource | None = None
    """Its capacity, in base units. In an update None leaves it as it is."""
    occupied_resource: Resource | None = None
    """What others use of it, in base units. In an update None leaves it as it is."""
    existing_allocations: tuple[Allocation, ...] = ()
    """Work that runs there already: recovered with a `CREATE`. Its applications must have been
    added before. The core does not announce it back; what it refuses of it comes as
    `RejectedAllocationAsk`, and the node is taken all the same."""


class NodeRequest(SiMessage, frozen=True, kw_only=True):
    """Nodes to add, change and remove, for `update_node`."""

    nodes: tuple[NodeInfo, ...] = ()
    """The nodes."""
    rm_id: Name = ""
    """Id of the resource manager."""


class RejectedNode(SiMessage, frozen=True, kw_only=True):
    """A new node that was refused."""

    node_id: Name = ""
    """Id of the node."""
    reason: Text = ""
    """Why it was refused."""


class AcceptedNode(SiMessage, frozen=True, kw_only=True):
    """A new node that was taken."""

    node_id: Name = ""
    """Id of the node."""


class NodeResponse(SiMessage, frozen=True, kw_only=True):
    """Answers to new nodes; other actions have none."""

    rejected: tuple[RejectedNode, ...] = ()
    """New nodes that were refused."""
    accepted: tuple[AcceptedNode, ...] = ()
    """New nodes that were taken."""
