"""Worlds about who goes before whom: across fences of priorities, and where one starts at a time.

Elsewhere most work has the priority 0 and few queues change it, so it hardly matters how one is
carried up and down the tree. And a gang that is held seldom stands before others of a stateaware
leaf.
"""

from typing import Any, Final

from yunikorn_actors.lab.swarm.scenes_of_one import Moves, PartitionWriter
from yunikorn_actors.lab.swarm.scripts import USERS

_PRIORITIES: Final = (-1, 0, 0, 1, 2)
_SIZES: Final = ({"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000})
_CLAIM_PAUSES: Final = ("1s", "5s", "6s", "20s", "21s", "35s")
_START_PAUSES: Final = ("1s", "3s", "10s", "31s", "5m", "15m")


# -- fences


def begin_with_fences(writer: PartitionWriter) -> None:
    """Work of every priority has all room, in all leaves, before somebody claims some of it."""
    writer.everybody()
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


def of_fences(writer: PartitionWriter) -> Moves:
    """Return what happens where priorities say who may go for whom."""
    manager, confirm = writer.manager, writer.confirm

    def fill() -> None:
        _fill(writer)

    def claim() -> None:
        _claim(writer)

    return {
        "": (fill, fill, claim, claim, claim, writer.release),
        "required-nodes": (writer.daemon,),
        "manual-confirmations": (confirm, confirm),
        "withdrawals": (writer.cancel,),
        "lost-nodes": (writer.lose_node,),
        "resized-nodes": (writer.resize_node,),
        "reported-work": (writer.bind,),
        "changed-asks": (writer.change_ask,),
        "reloads": (manager.reload, manager.change_queue),
    }


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


def of_leaf(writer: PartitionWriter) -> Moves:
    """Return what lets applications of a leaf start, and what ends them."""
    manager, confirm = writer.manager, writer.confirm

    def comes() -> None:
        _comes(writer)

    return {
        "": (comes, comes, writer.ask, writer.gang_work, writer.release, writer.release),
        "removals": (writer.remove, writer.remove),
        "withdrawals": (writer.cancel, writer.cancel),
        "manual-confirmations": (confirm, confirm),
        "reloads": (manager.reload, manager.change_queue),
        "reported-work": (writer.bind, writer.gang_returns),
        "late-placeholders": (writer.late_placeholder,),
        "lost-nodes": (writer.lose_node, writer.return_node),
        "resized-nodes": (writer.resize_node,),
    }
