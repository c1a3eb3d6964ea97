"""What happens to nodes: they come with work, change, drain, leave and return."""

from typing import Any, Final

from yunikorn_actors.lab.swarm.worlds import PartitionWriter
from yunikorn_actors.values.tags import NODE_READY_ATTRIBUTE

_ATTRIBUTES: Final = (
    {NODE_READY_ATTRIBUTE: "false"},
    {NODE_READY_ATTRIBUTE: "false", "zone": "a"},
    {NODE_READY_ATTRIBUTE: "true"},
    {"zone": "a"},
    {"zone": "b"},
)


def node_with_work(writer: PartitionWriter) -> None:
    """A node comes that runs something already."""
    writer.nodes.append(f"n{len(writer.nodes) + 1}")
    create_again(
        writer, {"id": writer.nodes[-1], "capacity": writer.draw.one_of(writer.capacities)}
    )


def create_again(writer: PartitionWriter, node: dict[str, Any]) -> None:
    draw = writer.draw
    if "count" in node:
        # Each of them would run the same.
        writer.add("create_node", node)
        return
    work = [draw.one_of(writer.keys) for _ in range(draw.whole(0, 3)) if writer.keys]
    for it in work:
        writer.places.setdefault(it, node["id"])
    running = [
        {"key": key, "app": app, "resource": draw.one_of(writer.sizes[:5])}
        for app, key in dict.fromkeys(work)
    ]
    writer.add("create_node", {**node, "allocations": running} if running else node)


def drain(writer: PartitionWriter) -> None:
    _about_node(writer, "drain_node")


def open_node(writer: PartitionWriter) -> None:
    _about_node(writer, "undrain_node")


def describe_node(writer: PartitionWriter) -> None:
    """Say whether a node is ready, or something else of it."""
    if writer.nodes:
        attributes = writer.draw.one_of(_ATTRIBUTES)
        writer.add(
            "update_node", {"id": writer.draw.one_of(writer.nodes), "attributes": attributes}
        )


def lose_node(writer: PartitionWriter) -> None:
    _about_node(writer, "remove_node")


def _about_node(writer: PartitionWriter, step: str) -> None:
    if writer.nodes:
        writer.add(step, writer.draw.one_of(writer.nodes))


def return_node(writer: PartitionWriter) -> None:
    """A node comes that is there already, or was."""
    node = writer.earlier("create_node")
    if node is not None:
        writer.add("create_node", node)


def resize_node(writer: PartitionWriter) -> None:
    if writer.nodes:
        fields: dict[str, Any] = {"id": writer.draw.one_of(writer.nodes)}
        what = "occupied" if writer.draw.once_in(4) else "capacity"
        writer.add("update_node", {**fields, what: writer.draw.one_of(writer.capacities)})


def overfill(writer: PartitionWriter) -> None:
    """More is reported to run on a node than it has: the cluster as a whole may be full."""
    if writer.nodes:
        where, app = writer.draw.one_of(writer.nodes), writer.draw.one_of(list(writer.apps))
        writer.keys.append((app, f"much{len(writer.keys)}"))
        _, key = writer.keys[-1]
        work = {"key": key, "app": app, "node": where, "resource": {"vcore": 12000}}
        writer.add("bind", work)


def report_all(writer: PartitionWriter) -> None:
    """Report what there was before a registration: applications, nodes with work, asks."""
    apps = {app["id"]: app for app in writer.sent.get("add_app", ())}
    nodes = {node["id"]: node for node in writer.sent.get("create_node", ())}
    for app in apps.values():
        writer.send("add_app", app)
    for node in nodes.values():
        if not writer.draw.once_in(4):
            create_again(writer, {word: it for word, it in node.items() if word != "allocations"})
    for ask in writer.sent.get("ask", ())[-4:]:
        writer.send("ask", ask)
