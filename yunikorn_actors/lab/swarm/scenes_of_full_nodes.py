"""Worlds in which room is short: many ask at once, a node is kept, or jobs wait in their order."""

from typing import Any, Final

from yunikorn_actors.lab.swarm.gang_moves import gang, gang_work
from yunikorn_actors.lab.swarm.joined_requests import join
from yunikorn_actors.lab.swarm.manager_moves import (
    change_queue,
    come_back,
    confirm,
    leave,
    lower_quota,
    refuse_nodes,
    reload,
)
from yunikorn_actors.lab.swarm.node_moves import (
    describe_node,
    drain,
    lose_node,
    node_with_work,
    open_node,
    overfill,
    resize_node,
    return_node,
)
from yunikorn_actors.lab.swarm.request_moves import (
    ask_again,
    change_ask,
    daemon,
    everybody,
    large_daemon,
    replace,
)
from yunikorn_actors.lab.swarm.running_work_moves import foreign, foreign_ends
from yunikorn_actors.lab.swarm.scenes_of_victims import claim, fill
from yunikorn_actors.lab.swarm.scripts import Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter
from yunikorn_actors.values.tags import TAG_RUNTIME

_JOBS: Final = (
    {"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000}, {"vcore": 4000},
    {"vcore": 6000}, {"vcore": 2000, "memory": 10}, {"vcore": 1000, "memory": 20},
)  # fmt: skip
_RUNTIMES: Final = ("1", "3", "5", "8", "20", "60")
"""Seconds."""


def runners(writer: PartitionWriter) -> None:
    """Each runs something already: what it gets from then on changes amounts alone."""
    for _ in range(writer.draw.whole(1, 3)):
        writer.nodes.append(f"n{len(writer.nodes) + 1}")
        writer.add("create_node", {"id": writer.nodes[-1], "capacity": writer.capacities[3]})
    everybody(writer, 2)
    for app in list(writer.apps):
        writer.add_ask(app, {"key": f"first{len(writer.keys)}", "resource": writer.sizes[0]})


def rush(writer: PartitionWriter) -> None:
    """Several applications ask for the same, some for several, all at once."""
    draw, size = writer.draw, writer.draw.one_of(writer.sizes[:4])
    with writer.world.together():
        for _ in range(draw.whole(2, 4)):
            app, key = draw.one_of(list(writer.apps)), f"rush{len(writer.keys)}"
            count = draw.one_of((2, 3, 5, 8))
            writer.add_ask(app, {"key": key, "resource": size, "count": count})
        if draw.once_in(4):
            lower_quota(writer)


def full_nodes(writer: PartitionWriter) -> None:
    """All room is taken, and an ask wants more than is left of any node."""
    everybody(writer)
    fill(writer)
    writer.large()


def jobs_come(writer: PartitionWriter) -> None:
    """More come than there is room for, most of them into one leaf."""
    everybody(writer)
    leaf = writer.draw.one_of(writer.leaves)
    for _ in range(writer.draw.whole(1, 3)):
        writer.app(leaf)
        writer.busy.append(list(writer.apps)[-1])
    for _ in range(writer.draw.whole(4, 9)):
        job(writer)


def job(writer: PartitionWriter) -> None:
    """Ask for a part of a node or for all of it; most say how long they run."""
    draw = writer.draw
    fields: dict[str, Any] = {"key": f"job{len(writer.keys)}", "resource": draw.one_of(_JOBS)}
    if not draw.once_in(6):
        fields["tags"] = {TAG_RUNTIME: draw.one_of(_RUNTIMES)}
    if draw.once_in(5):
        fields["count"] = draw.whole(2, 3)
    elif draw.once_in(8):
        fields["max_allocations"] = 2
    if draw.once_in(6):
        fields["priority"] = draw.one_of((1, -1))
    others = draw.once_in(4) or not writer.busy
    writer.add_ask(draw.one_of(list(writer.apps) if others else writer.busy), fields)


def job_ends(writer: PartitionWriter) -> None:
    """End one that came early, and so perhaps runs."""
    if writer.keys:
        app, key = writer.keys[writer.draw.number(len(writer.keys) // 2 + 1)]
        writer.add("release", {"app": app, "key": key})


def let_run(writer: PartitionWriter) -> None:
    """Let so much time pass as jobs say that they run."""
    writer.add("advance", f"{writer.draw.one_of(_RUNTIMES)}s")


OF_RUSH: Final[Moves] = {
    "": (rush, rush, rush, Writer.release, Writer.newcomer),
    "releases": (Writer.release, Writer.release),
    "joined-requests": (join,),
    "re-sent-asks": (ask_again,),
    "removals": (Writer.remove, replace),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node,),
    "reloads": (reload, change_queue),
    "reported-work": (Writer.bind, node_with_work),
    "manual-confirmations": (confirm,),
    "predicates": (refuse_nodes,),
    "lost-managers": (leave,),
    "new-registrations": (come_back,),
}
"""What happens where many ask for the same at once, and little is left for them."""
OF_RESERVATION: Final[Moves] = {
    "": (fill, Writer.newcomer, Writer.newcomer, Writer.release, Writer.ask),
    "required-nodes": (daemon, daemon, large_daemon),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release, Writer.release),
    "withdrawals": (Writer.cancel,),
    "removals": (Writer.remove,),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node, resize_node),
    "drained-nodes": (drain, open_node, describe_node),
    "reported-work": (Writer.bind, overfill),
    "foreign-work": (foreign, foreign_ends),
    "re-sent-asks": (ask_again,),
    "changed-asks": (change_ask,),
    "reloads": (reload, change_queue),
    "guarantees": (claim,),
    "gangs": (gang_work,),
}
"""What happens where all nodes are full, and one is kept for who wants much."""
OF_GATE: Final[Moves] = {
    "": (job, job, job, job_ends, job_ends, Writer.newcomer),
    "required-nodes": (daemon,),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release,),
    "withdrawals": (Writer.cancel,),
    "removals": (Writer.remove,),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node, Writer.node),
    "drained-nodes": (drain, open_node),
    "reported-work": (Writer.bind,),
    "foreign-work": (foreign, foreign_ends),
    "re-sent-asks": (ask_again,),
    "changed-asks": (change_ask,),
    "reloads": (reload, change_queue),
    "gangs": (gang, gang_work),
}
"""What happens where more jobs wait than there is room for, in their order."""
