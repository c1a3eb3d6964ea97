"""Worlds about who goes before whom: across fences of priorities, and where one starts at a time.

Elsewhere most work has the priority 0 and few queues change it, so it hardly matters how one is
carried up and down the tree. And a gang that is held seldom stands before others of a stateaware
leaf.
"""

from typing import Any, Final

from yunikorn_actors.lab.swarm.gang_moves import gang_returns, gang_work, late_placeholder
from yunikorn_actors.lab.swarm.manager_moves import change_queue, confirm, reload
from yunikorn_actors.lab.swarm.node_moves import lose_node, resize_node, return_node
from yunikorn_actors.lab.swarm.request_moves import change_ask, daemon, everybody
from yunikorn_actors.lab.swarm.scripts import USERS, Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter

_PRIORITIES: Final = (-1, 0, 0, 1, 2)
_SIZES: Final = ({"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000})
_CLAIM_PAUSES: Final = ("1s", "5s", "6s", "20s", "21s", "35s")
_START_PAUSES: Final = ("1s", "3s", "10s", "31s", "5m", "15m")


# -- fences


def begin_with_fences(writer: PartitionWriter) -> None:
    """Work of every priority has all room, in all leaves, before somebody claims some of it."""
    everybody(writer)
    for _ in range(writer.draw.whole(2, 4)):
        _fill(writer)
    writer.add("advance", "1s")
    _claim(writer)


def _ranked(writer: PartitionWriter, what: str, most: int) -> None:
    draw = writer.draw
    fields: dict[str, Any] = {"resource": draw.one_of(_SIZES), "count": draw.whole(1, most)}
    fields["priority"] = draw.one_of(_PRIORITIES)
    app = draw.one_of(list(writer.apps))
    writer.add_ask(app, {"key": f"{what}{len(writer.keys)}", **fields})


def _fill(writer: PartitionWriter) -> None:
    _ranked(writer, "fill", 6)


def _claim(writer: PartitionWriter) -> None:
    _ranked(writer, "claim", 2)


def claim_and_wait(writer: PartitionWriter) -> None:
    _claim(writer)
    writer.add("advance", writer.draw.one_of(_CLAIM_PAUSES))


OF_FENCES: Final[Moves] = {
    "": (_fill, _fill, _claim, _claim, _claim, Writer.release),
    "required-nodes": (daemon,),
    "manual-confirmations": (confirm, confirm),
    "withdrawals": (Writer.cancel,),
    "lost-nodes": (lose_node,),
    "resized-nodes": (resize_node,),
    "reported-work": (Writer.bind,),
    "changed-asks": (change_ask,),
    "reloads": (reload, change_queue),
}
"""What happens where priorities say who may go for whom."""


# -- one after the other


def begin_in_leaf(writer: PartitionWriter) -> None:
    for _ in range(writer.draw.whole(2, 4)):
        _comes(writer)


def _comes(writer: PartitionWriter) -> None:
    """A gang comes, whose maximum may leave no room for all of it; or single work does."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaf, _ = draw.one_of(writer.leaves)
    app: dict[str, Any] = {"id": name, "queue": leaf, "user": draw.one_of(USERS)}
    is_gang = writer.apps[name] = draw.once_in(2)
    count, size = draw.whole(1, 3), draw.one_of(_SIZES)
    if is_gang:
        whole = {kind: n * count for kind, n in size.items()}
        if draw.once_in(4):
            app["timeout"] = draw.one_of(("10s", "30s"))
        style = draw.one_of(("Soft", "Soft", "Hard"))
        writer.add("add_app", {**app, "style": style, "placeholder_ask": whole})
        fields = {"resource": size, "count": count, "placeholder": True, "task_group": "tg"}
        writer.add_ask(name, {"key": f"{name}-ph", **fields})
        return
    writer.add("add_app", app)
    if not draw.once_in(5):
        writer.add_ask(name, {"key": f"k{len(writer.keys)}", "resource": size, "count": count})


def pause(writer: PartitionWriter) -> None:
    writer.add("advance", writer.draw.one_of(_START_PAUSES))


OF_LEAF: Final[Moves] = {
    "": (_comes, _comes, Writer.ask, gang_work, Writer.release, Writer.release),
    "removals": (Writer.remove, Writer.remove),
    "withdrawals": (Writer.cancel, Writer.cancel),
    "manual-confirmations": (confirm, confirm),
    "reloads": (reload, change_queue),
    "reported-work": (Writer.bind, gang_returns),
    "late-placeholders": (late_placeholder,),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node,),
}
"""What lets applications of a leaf start, and what ends them."""
