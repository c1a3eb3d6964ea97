"""Acts of an administrator: draining a node by hand, recorded with the name of who did it.

An act takes effect as if the resource manager had asked for it. It leaves a fact with the name of
the administrator, beside the facts that follow from it, and a line in the log. The node still
belongs to its resource manager, which may open it again.
"""

from yunikorn_actors.machines.context.nodes import set_drained
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import Log
from yunikorn_actors.messages.rm_events import AdminNodeUpdate
from yunikorn_actors.state import facts as f


def act_on_drained(unit: UnitOfWork, message: AdminNodeUpdate) -> str:
    """Drain a node or end that; return why nothing changes, or the empty text."""
    node = unit.state.nodes.get(message.node_id)
    if node is None:
        return f"no node {message.node_id} is in partition {unit.partition.name}"
    reason = set_drained(unit, node, drained=message.drained)
    if not reason:
        what = f"Node {node.id} {'drained' if message.drained else 'undrained'}"
        record_act(unit, what, message.by, node.id)
        # The fact goes to events and recordings, the line to whoever reads the log of the process
        # alone.
        unit.want(line_of(what, message.by))
    return reason


def record_act(unit: UnitOfWork, what: str, by: str, node_id: str = "") -> None:
    fact = f.AdministratorActed(what=what, by=by, node_id=node_id, at_ns=unit.now_ns)
    unit.record(fact)


def line_of(what: str, by: str) -> Log:
    return Log(text=f"{what} by {by}")
