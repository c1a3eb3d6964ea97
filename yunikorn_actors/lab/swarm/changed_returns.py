"""What comes back otherwise than it was: nodes, queues and their limits, members of gangs."""

from typing import Any, Final

from yunikorn_actors.lab.swarm.manager_moves import (
    leave_queue_out,
    limit_otherwise,
    reload,
)
from yunikorn_actors.lab.swarm.node_moves import create_again
from yunikorn_actors.lab.swarm.scripts import TASK_GROUPS, Writer
from yunikorn_actors.lab.swarm.worlds import PartitionWriter
from yunikorn_actors.values.tags import NODE_READY_ATTRIBUTE

_PAUSES: Final = ("1s", "3s", "20s", "35s")


def _pause(writer: PartitionWriter) -> None:
    if not writer.draw.once_in(3):
        writer.add("advance", writer.draw.one_of(_PAUSES))


def node_returns(writer: PartitionWriter) -> None:
    """A node goes and comes with another size, not ready or drained, or with work of before."""
    draw = writer.draw
    if not writer.nodes:
        return
    node: dict[str, Any] = {"id": draw.one_of(writer.nodes)}
    writer.add("remove_node", node["id"])
    _pause(writer)
    node["capacity"] = draw.one_of(writer.capacities)
    match draw.number(4):
        case 0:
            node["draining"] = True
        case 1:
            node["attributes"] = {NODE_READY_ATTRIBUTE: "false"}
    create_again(writer, node)
    _pause(writer)
    if "attributes" in node:
        ready = {NODE_READY_ATTRIBUTE: "true"}
        writer.add("update_node", {"id": node["id"], "attributes": ready})
    elif "draining" in node:
        writer.add("undrain_node", node["id"])


def member_returns(writer: PartitionWriter) -> None:
    """An ask of a gang is sent again for another task group, or as a placeholder or none."""
    draw = writer.draw
    of_gangs = [ask for ask in writer.sent.get("ask", ()) if ask.get("task_group")]
    if not of_gangs:
        return
    ask = dict(draw.one_of(of_gangs))
    if draw.once_in(3):
        ask["placeholder"] = not ask.get("placeholder", False)
    else:
        ask["task_group"] = draw.one_of([it for it in TASK_GROUPS if it != ask["task_group"]])
    writer.add("ask", ask)


def running_member_returns(writer: PartitionWriter) -> None:
    """What runs of a gang is reported, of another task group than it was asked for."""
    draw = writer.draw
    of_gangs = [ask for ask in writer.sent.get("ask", ()) if ask.get("task_group")]
    if not of_gangs or not writer.nodes:
        return
    ask = draw.one_of(of_gangs)
    work = {"app": ask["app"], "key": ask["key"], "node": draw.one_of(writer.nodes)}
    group = {"task_group": draw.one_of(TASK_GROUPS), "placeholder": draw.once_in(2)}
    writer.add("bind", {**work, "resource": ask["resource"], **group})


def queue_returns(writer: PartitionWriter) -> None:
    """A queue is left out while something may run in it, and is there again later."""
    before = writer.config
    leave_queue_out(writer)
    _pause(writer)
    if writer.draw.once_in(2):
        Writer.newcomer(writer)
    if writer.config is not before:
        reload(writer)
        _pause(writer)


def limits_change(writer: PartitionWriter) -> None:
    """Users and groups may have more or less from now on, also those who have something."""
    limit_otherwise(writer)
    _pause(writer)
