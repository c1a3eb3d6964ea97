"""Gangs: they come, return, are late for their nodes, or hard so that all goes or nothing."""

from typing import Any, Final

from yunikorn_actors.lab.swarm.manager_moves import come_back, confirm, leave, refuse_nodes
from yunikorn_actors.lab.swarm.node_moves import (
    describe_node,
    drain,
    lose_node,
    open_node,
    resize_node,
    return_node,
)
from yunikorn_actors.lab.swarm.request_moves import ask_again, is_entitled
from yunikorn_actors.lab.swarm.scripts import GROUPS, TASK_GROUPS, USERS, Writer
from yunikorn_actors.lab.swarm.worlds import CREATED, Moves, PartitionWriter
from yunikorn_actors.values.tags import APP_TAG_CREATION_TIME, TAG_CREATION_TIME


def gang(writer: PartitionWriter) -> None:
    """A gang comes, and asks for all of it at once."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaves = [path for path, policy in writer.leaves if policy != "fair"]
    if leaves:
        writer.apps[name] = True
        fields = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
        writer.add_gang({**fields, "groups": draw.one_of(GROUPS)})


def gang_work(writer: PartitionWriter) -> None:
    """Ask for what takes the place of placeholders."""
    draw = writer.draw
    gangs = [app for app, is_gang in writer.apps.items() if is_gang]
    if gangs:
        size, count = draw.one_of(writer.sizes[:3]), draw.whole(1, 4)
        fields: dict[str, Any] = {"key": f"g{len(writer.keys)}", "resource": size}
        fields["max_allocations" if draw.once_in(4) else "count"] = count
        writer.add_ask(draw.one_of(gangs), {**fields, "task_group": "tg"})


def late_node(writer: PartitionWriter) -> None:
    """A gang that no node can hold waits longer than it may, and then a node comes."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaves = [path for path, policy in writer.leaves if policy != "fair"]
    if not leaves:
        return
    writer.apps[name] = True
    size, count = {"vcore": 7000}, draw.whole(1, 2)
    app = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
    whole = {"vcore": 7000 * count}
    writer.add("add_app", {**app, "placeholder_ask": whole, "timeout": "10s"})
    fields = {"resource": size, "count": count, "placeholder": True, "task_group": "tg"}
    writer.add_ask(name, {"key": f"{name}-ph", **fields})
    writer.add("advance", draw.one_of(("10s", "21s", "15m", "31m")))
    writer.nodes.append(f"n{len(writer.nodes) + 1}")
    writer.add("create_node", {"id": writer.nodes[-1], "capacity": writer.capacities[3]})


def late_placeholder(writer: PartitionWriter) -> None:
    """A placeholder runs already that waits, or whose gang has been dissolved meanwhile."""
    gangs = [app for app, is_gang in writer.apps.items() if is_gang]
    if gangs and writer.nodes:
        draw, app = writer.draw, writer.draw.one_of(gangs)
        key = f"{app}-{TASK_GROUPS[0]}-ph-{draw.whole(0, 5)}"
        work = {"app": app, "key": key, "node": draw.one_of(writer.nodes)}
        held = {"placeholder": True, "task_group": TASK_GROUPS[0]}
        writer.add("bind", {**work, "resource": draw.one_of(writer.sizes[:3]), **held})


def gang_returns(writer: PartitionWriter) -> None:
    """A gang comes of which some placeholders, or what replaced them, run already."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaves = [path for path, policy in writer.leaves if policy != "fair"]
    if not leaves:
        return
    writer.apps[name] = True
    app = {"id": name, "queue": draw.one_of(leaves), "placeholder_ask": {"vcore": 3000}}
    fields: dict[str, Any] = {**app, "user": draw.one_of(USERS)}
    if draw.once_in(2):
        fields["timeout"] = draw.one_of(("10s", "70s", "10m"))
    if "creation-times" in writer.world.parts and draw.once_in(2):
        fields["tags"] = {APP_TAG_CREATION_TIME: writer.created_time()}
    writer.add("add_app", fields)
    running: list[dict[str, Any]] = []
    for number in range(draw.whole(1, 3)):
        key = f"{name}-ph-{number}"
        writer.keys.append((name, key))
        work = {"app": name, "key": key, "resource": {"vcore": 1000}}
        if "creation-times" in writer.world.parts and draw.once_in(2):
            work["tags"] = {TAG_CREATION_TIME: draw.one_of(CREATED[:2])}
        is_held = not draw.once_in(4)
        running.append({**work, "task_group": TASK_GROUPS[0], "placeholder": is_held})
    writer.nodes.append(f"n{len(writer.nodes) + 1}")
    node = {"id": writer.nodes[-1], "capacity": draw.one_of(writer.capacities)}
    writer.add("create_node", {**node, "allocations": running})


def whole_gang(writer: PartitionWriter) -> None:
    """A hard gang comes, with no more than its placeholders or with work for some of them."""
    _hard_gang(writer, [leaf for leaf, _ in writer.leaves if not is_entitled(writer, leaf)])


def claiming_gang(writer: PartitionWriter) -> None:
    """A gang comes that may have others go, and then all that it lacks has to come free."""
    _hard_gang(
        writer, [leaf for leaf, _ in writer.leaves if is_entitled(writer, leaf)], claims=True
    )
    writer.add("advance", writer.draw.one_of(("3s", "6s", "21s", "35s")))


def gang_of_sizes(writer: PartitionWriter) -> None:
    """A gang comes whose placeholders have several sizes, and they claim room together."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaves = [leaf for leaf, _ in writer.leaves if is_entitled(writer, leaf)]
    writer.apps[name], writer.entitled[name] = True, True
    number, whole, asks = draw.whole(2, 3), dict[str, int](), list[dict[str, Any]]()
    first = draw.number(len(writer.sizes))
    for at in range(number):
        size = writer.sizes[(first + at) % len(writer.sizes)]
        ask: dict[str, Any] = {"key": f"{name}-ph{at}", "resource": size, "count": draw.whole(1, 2)}
        if "required-nodes" in writer.world.parts and draw.once_in(5):
            ask["required_node"] = draw.one_of(writer.nodes)
        if draw.once_in(8):
            ask |= draw.one_of(({"priority": 1}, {"preemption": {"allow_other": False}}))
        asks.append({**ask, "placeholder": True, "task_group": TASK_GROUPS[at % 2]})
        for kind, n in size.items():
            whole[kind] = whole.get(kind, 0) + n * ask["count"]
    app = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
    style = "Soft" if draw.once_in(3) else "Hard"
    writer.add("add_app", {**app, "style": style, "placeholder_ask": whole})
    for ask in asks:
        writer.add_ask(name, ask)
    if draw.once_in(3):
        real = {"resource": asks[0]["resource"], "task_group": TASK_GROUPS[0]}
        writer.add_ask(name, {"key": f"{name}-real", **real})


def _hard_gang(writer: PartitionWriter, leaves: list[str], *, claims: bool = False) -> None:
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaves = leaves or [leaf for leaf, _ in writer.leaves]
    writer.apps[name] = True
    writer.entitled[name] = False
    size, count = draw.one_of(writer.sizes[:3]), draw.whole(1, 3)
    whole = {kind: n * count for kind, n in size.items()}
    fields = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
    style = "Soft" if draw.once_in(4) else "Hard"
    has_bound = claims and writer.nodes and "required-nodes" in writer.world.parts
    if has_bound := bool(has_bound and draw.once_in(2)):
        whole = {kind: n * (count + 1) for kind, n in size.items()}
    writer.add("add_app", {**fields, "style": style, "placeholder_ask": whole})
    if has_bound:
        one = {"resource": size, "placeholder": True, "task_group": TASK_GROUPS[0]}
        bound = {"required_node": draw.one_of(writer.nodes)}
        writer.add_ask(name, {"key": f"{name}-bound", **one, **bound})
    both = {"resource": size, "count": count, "task_group": TASK_GROUPS[0]}
    if priority := draw.one_of((0, 0, 0, 1)):
        both["priority"] = priority
    writer.add_ask(name, {"key": f"{name}-ph", "placeholder": True, **both})
    if draw.once_in(2):
        more = {"count": draw.whole(1, count + 1), "originator": draw.once_in(3)}
        writer.add_ask(name, {"key": f"{name}-real", **both, **more})


OF_ONE_GANG: Final[Moves] = {
    "": (gang_work, gang_work, Writer.node, gang),
    "releases": (Writer.release, Writer.release),
    "manual-confirmations": (confirm, confirm, confirm),
    "withdrawals": (Writer.cancel,),
    "lost-nodes": (lose_node, return_node),
    "drained-nodes": (drain, open_node, describe_node),
    "resized-nodes": (resize_node,),
    "reported-work": (gang_returns,),
    "late-placeholders": (late_placeholder, late_placeholder),
    "removals": (Writer.remove,),
    "re-sent-asks": (ask_again,),
    "lost-managers": (leave,),
    "new-registrations": (come_back,),
    "predicates": (refuse_nodes,),
    "contests": (Writer.newcomer,),
}
"""What happens around a gang: it has little room, and its members come and go."""
