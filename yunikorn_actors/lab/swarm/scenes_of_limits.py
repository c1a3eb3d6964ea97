"""Worlds about two users and their groups, which have limits on every level.

Elsewhere a limit is one bound of many, and few applications are of the user that it is about. Here
nearly every application is of one of two users, in several leaves, so the limits of leaves, parents
and the root are met exactly, by what runs, what is kept and what was charged by force.
"""

from typing import Any, Final

from yunikorn_actors.lab.swarm.gang_moves import gang_work
from yunikorn_actors.lab.swarm.manager_moves import change_queue, confirm, reload
from yunikorn_actors.lab.swarm.node_moves import lose_node, node_with_work, resize_node, return_node
from yunikorn_actors.lab.swarm.request_moves import change_ask, daemon
from yunikorn_actors.lab.swarm.scripts import USERS, Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter

_USERS: Final = (USERS[0], USERS[0], USERS[1])
_GROUPS: Final = (["dev"], ["dev"], ["ops", "dev"], ["none"])
_SIZES: Final[tuple[dict[str, int], ...]] = (
    {"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 1000, "memory": 1},
)  # fmt: skip
_CAPACITY: Final = {"vcore": 8000, "memory": 20}
_SMALL_CAPACITY: Final = {"vcore": 2000, "memory": 20}
_PAUSES: Final = ("1s", "3s", "31s", "31s", "61m", "61m")
"""Until a node is kept, until an application is over, until a kept node is given up."""


def begin(writer: PartitionWriter) -> None:
    """There is room on the nodes: limits are what is short."""
    for capacity in (_CAPACITY, writer.draw.one_of((_CAPACITY, _SMALL_CAPACITY))):
        writer.nodes.append(f"n{len(writer.nodes) + 1}")
        writer.add("create_node", {"id": writer.nodes[-1], "capacity": capacity})
    for _ in range(writer.draw.whole(2, 4)):
        _comes(writer)


def _comes(writer: PartitionWriter) -> None:
    """An application of one of the two comes, and mostly asks for something at once."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaf, policy = draw.one_of(writer.leaves)
    app: dict[str, Any] = {"id": name, "queue": leaf, "user": draw.one_of(_USERS)}
    app["groups"] = draw.one_of(_GROUPS)
    is_gang = policy != "fair" and "gangs" in writer.world.parts and draw.once_in(3)
    writer.apps[name] = is_gang
    if is_gang:
        count = draw.whole(1, 3)
        writer.add("add_app", {**app, "placeholder_ask": {"vcore": 1000 * count}})
        gang = {"placeholder": True, "task_group": "tg", "count": count}
        writer.add_ask(name, {"key": f"{name}-ph", "resource": {"vcore": 1000}, **gang})
        return
    writer.add("add_app", app)
    if not draw.once_in(5):
        _asks(writer, name)


def _asks(writer: PartitionWriter, app: str = "") -> None:
    draw = writer.draw
    fields: dict[str, Any] = {"key": f"k{len(writer.keys)}", "resource": draw.one_of(_SIZES)}
    fields["max_allocations" if draw.once_in(4) else "count"] = draw.whole(1, 3)
    writer.add_ask(app or draw.one_of(list(writer.apps)), fields)


def _asks_for_much(writer: PartitionWriter) -> None:
    """What is free is on no node alone: one is kept."""
    draw, size = writer.draw, {"vcore": writer.draw.one_of((6000, 7000, 8000))}
    writer.add_ask(
        draw.one_of(list(writer.apps)), {"key": f"k{len(writer.keys)}", "resource": size}
    )


def _ends(writer: PartitionWriter) -> None:
    """All work of an application ends, or it goes: a place may come free."""
    app = writer.draw.one_of(list(writer.apps))
    writer.add(*writer.draw.one_of((("release", {"app": app}), ("remove_app", app))))


def pause(writer: PartitionWriter) -> None:
    writer.add("advance", writer.draw.one_of(_PAUSES))


OF_LIMITS: Final[Moves] = {
    "": (_comes, _comes, _comes, _asks, _asks, Writer.release, _ends, _ends),
    "reloads": (reload, reload, change_queue),
    "reservations": (_asks_for_much, _asks_for_much),
    "required-nodes": (daemon,),
    "reported-work": (Writer.bind, node_with_work),
    "withdrawals": (Writer.cancel,),
    "changed-asks": (change_ask,),
    "gangs": (gang_work,),
    "manual-confirmations": (confirm, confirm),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node,),
}
"""What makes use of limits, frees what they bound, or changes them."""
