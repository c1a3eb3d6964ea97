"""Worlds about one gang whose placeholders run, and about what comes to take their places.

Elsewhere a gang and its members come in one go and mostly fit. What may not stay on the node of a
placeholder, is larger than all of them, or changes while its swap is under way, is rare there.
"""

from typing import Any, Final

from yunikorn_actors.lab.swarm.manager_moves import come_back, confirm, leave
from yunikorn_actors.lab.swarm.node_moves import (
    drain,
    lose_node,
    open_node,
    resize_node,
    return_node,
)
from yunikorn_actors.lab.swarm.request_moves import refuse_for, release_otherwise
from yunikorn_actors.lab.swarm.scripts import USERS, Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter

_GROUP = "tg"
_MEMBERS = "g"
"""The keys of members begin with it, and no other does."""
_LIVES: tuple[dict[str, Any], ...] = ({}, {}, {"timeout": "10s"}, {"timeout": "40s"})


def begin(writer: PartitionWriter) -> None:
    """A gang comes, and its placeholders have their nodes before anything else happens."""
    draw = writer.draw
    refuse_for(writer, _MEMBERS, nodes=0)
    count, size = draw.whole(1, 4), draw.one_of(writer.sizes[:3])
    leaf, _ = draw.one_of(writer.leaves)
    app = {"id": f"{writer.prefix}-1", "queue": leaf, "user": draw.one_of(USERS)}
    app |= {"style": draw.one_of(("Soft", "Soft", "Hard")), **draw.one_of(_LIVES)}
    writer.apps[app["id"]] = True
    whole = {kind: n * count for kind, n in size.items()}
    writer.add("add_app", {**app, "placeholder_ask": whole})
    fields = {"resource": size, "count": count, "placeholder": True, "task_group": _GROUP}
    writer.add("ask", {"app": app["id"], "key": f"{app['id']}-ph", **fields})
    writer.keys.append((app["id"], f"{app['id']}-ph-0" if count > 1 else f"{app['id']}-ph"))
    writer.asked[app["id"]] = {"resource": size}
    writer.add("advance", "1s")
    _refused(writer)
    for _ in range(draw.whole(1, 2)):
        _member(writer)


def _member(writer: PartitionWriter) -> None:
    """Ask for what takes the place of placeholders, and may have to do so elsewhere."""
    draw, (app, gang) = writer.draw, draw_gang(writer)
    sizes = (*(gang["resource"],) * 4, {"vcore": 500}, {"vcore": 3000}, draw.one_of(writer.sizes))
    fields = {"resource": draw.one_of(sizes), "task_group": _GROUP}
    if draw.once_in(3) and writer.nodes:
        fields["required_node"] = draw.one_of(writer.nodes)
    if draw.once_in(3):
        fields["max_allocations"] = draw.whole(1, 3)
    key = f"{_MEMBERS}{len(writer.keys)}"
    writer.keys.append((app, key))
    gang.setdefault("members", {})[key] = fields
    writer.add("ask", {"app": app, "key": key, **fields})


def draw_gang(writer: PartitionWriter) -> tuple[str, dict[str, Any]]:
    app = writer.draw.one_of(list(writer.asked))
    return app, writer.asked[app]


def _changed_member(writer: PartitionWriter) -> None:
    """A member comes again while its swap may be under way: smaller, larger, or fewer of it."""
    draw, (app, gang) = writer.draw, draw_gang(writer)
    if "members" not in gang:
        _member(writer)
        return
    key = draw.one_of(list(gang["members"]))
    less = {"vcore": draw.one_of((500, 1000, 1500, 2000, 2500))}
    change = draw.one_of(({"resource": less}, {"max_allocations": draw.whole(1, 3)},
                          {"resource": {**less, "memory": 1}}, {"required_node": ""}))  # fmt: skip
    gang["members"][key] = gang["members"][key] | change
    writer.add("ask", {"app": app, "key": key, **gang["members"][key]})


def _smaller_placeholder(writer: PartitionWriter) -> None:
    """A placeholder is reported with another size."""
    draw, (app, gang) = writer.draw, draw_gang(writer)
    if writer.nodes:
        size = draw.one_of((gang["resource"], {"vcore": 500}, {"vcore": 1500}))
        fields = {"resource": size, "placeholder": True, "task_group": _GROUP}
        where = {"node": draw.one_of(writer.nodes)}
        writer.add("bind", {"app": app, "key": f"{app}-ph-{draw.whole(0, 3)}", **where, **fields})


def _refused(writer: PartitionWriter) -> None:
    refuse_for(writer, _MEMBERS, nodes=writer.draw.whole(0, 2))


OF_SWAPS: Final[Moves] = {
    "": (
        _member,
        _member,
        _member,
        _refused,
        _refused,
        _changed_member,
        _changed_member,
        Writer.node,
    ),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release, release_otherwise),
    "withdrawals": (Writer.cancel,),
    "reported-work": (_smaller_placeholder, Writer.bind),
    "resized-nodes": (resize_node,),
    "drained-nodes": (drain, open_node),
    "lost-nodes": (lose_node, return_node),
    "removals": (Writer.remove,),
    "quotas": (Writer.newcomer,),
    "lost-managers": (leave, come_back),
}
"""What may happen to swaps, from before they are decided until they are over."""
