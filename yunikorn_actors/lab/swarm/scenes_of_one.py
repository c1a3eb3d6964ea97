"""Worlds about one thing: all that can happen to a node, an ask or a resource manager.

Where each step draws what it is about, two steps seldom meet: a node that is not ready and then
says something else of itself, or an ask that had nodes kept for it and comes again with fewer
repeats. Here nearly every step is about the same one.
"""

from collections.abc import Callable
from typing import Any, Final

from yunikorn_actors.lab.swarm.gang_moves import gang, gang_work
from yunikorn_actors.lab.swarm.joined_requests import join
from yunikorn_actors.lab.swarm.manager_moves import (
    change_queue,
    come_back,
    confirm,
    leave,
    refuse_nodes,
    register,
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
from yunikorn_actors.lab.swarm.request_moves import daemon, everybody, large_daemon, replace
from yunikorn_actors.lab.swarm.running_work_moves import foreign, foreign_ends
from yunikorn_actors.lab.swarm.scenes_of_full_nodes import rush
from yunikorn_actors.lab.swarm.scenes_of_victims import claim, fill
from yunikorn_actors.lab.swarm.scripts import Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter

_KEY: Final = "it"
_PAUSES: Final = ("1s", "3s", "3s", "16s", "31s")
_CHANGES: Final[tuple[Callable[[PartitionWriter], dict[str, Any]], ...]] = (
    lambda it: {"resource": it.draw.one_of(it.sizes)},
    lambda it: {"max_allocations": it.draw.whole(1, 4)},
    lambda it: {"max_allocations": it.draw.whole(1, 2)},
    lambda it: {"priority": it.draw.one_of((-1, 0, 1))},
    lambda it: {"required_node": it.draw.one_of(it.nodes)} if it.nodes else {},
    lambda it: {"preemption": {"allow_other": it.draw.once_in(2)}},
    lambda it: {"timeout": it.draw.one_of(("5s", "20s"))},
)
"""What may be different of an ask that comes again."""


def begin(writer: PartitionWriter) -> None:
    """Take nearly all room, and have somebody want more of it than there is."""
    everybody(writer)
    fill(writer)
    writer.add("advance", "1s")


def begin_with_ask(writer: PartitionWriter) -> None:
    begin(writer)
    sizes = ({"vcore": 3000}, {"vcore": 4000}, writer.draw.one_of(writer.sizes))
    fields = {"resource": writer.draw.one_of(sizes), "max_allocations": writer.draw.whole(1, 4)}
    _ask(writer, writer.draw.one_of(list(writer.apps)), fields)


def _ask(writer: PartitionWriter, app: str, fields: dict[str, Any]) -> None:
    writer.keys.append((app, _KEY))
    writer.asked[app] = {"app": app, "key": _KEY, **fields}
    writer.add("ask", writer.asked[app])


def _ask_again(writer: PartitionWriter) -> None:
    """Have it come again, with something that is different."""
    if writer.asked:
        app = writer.draw.one_of(list(writer.asked))
        fields = {word: it for word, it in writer.asked[app].items() if word not in {"app", "key"}}
        _ask(writer, app, fields | writer.draw.one_of(_CHANGES)(writer))


def _end_it(writer: PartitionWriter) -> None:
    """Withdraw it, or end what of it runs."""
    if writer.asked:
        app = writer.draw.one_of(list(writer.asked))
        step = "release" if writer.draw.once_in(2) else "release_ask"
        writer.add(step, {"app": app, "key": _KEY})


def _report_it(writer: PartitionWriter) -> None:
    """Report that it runs somewhere."""
    if writer.asked and writer.nodes:
        draw, app = writer.draw, writer.draw.one_of(list(writer.asked))
        size = writer.asked[app].get("resource") if draw.once_in(2) else draw.one_of(writer.sizes)
        where = draw.one_of(writer.nodes)
        writer.add("bind", {"app": app, "key": _KEY, "node": where, "resource": size})


def pause(writer: PartitionWriter) -> None:
    """Let a node be kept, or a resource manager be missed."""
    writer.add("advance", writer.draw.one_of(_PAUSES))


OF_NODE: Final[Moves] = {
    "": (
        *(describe_node,) * 3, drain, open_node, resize_node,
        Writer.ask, Writer.newcomer, Writer.release,
    ),
    "required-nodes": (daemon, daemon, large_daemon),
    "lost-nodes": (lose_node, return_node, return_node),
    "reported-work": (Writer.bind, node_with_work, overfill),
    "foreign-work": (foreign, foreign_ends),
    "manual-confirmations": (confirm, confirm),
    "gangs": (gang, gang_work),
    "guarantees": (claim,),
    "predicates": (refuse_nodes,),
}  # fmt: skip
"""What may happen to a node, and what asks for it."""


OF_ASK: Final[Moves] = {
    "": (_ask_again, _ask_again, _ask_again, Writer.release, fill, _end_it),
    "required-nodes": (daemon,),
    "reported-work": (_report_it, Writer.bind),
    "resized-nodes": (resize_node,),
    "drained-nodes": (drain, open_node),
    "lost-nodes": (lose_node, return_node),
    "manual-confirmations": (confirm, confirm),
    "removals": (replace,),
    "guarantees": (claim,),
    "predicates": (refuse_nodes,),
    "reloads": (change_queue,),
}
"""What may happen to an ask, and what makes room for it."""


OF_MANAGER: Final[Moves] = {
    "": (
        register, come_back, come_back, leave, join,
        Writer.ask, Writer.newcomer, rush,
    ),
    "manual-confirmations": (confirm, confirm),
    "reloads": (reload, change_queue),
    "releases": (Writer.release,),
    "reported-work": (Writer.bind, node_with_work),
    "gangs": (gang, gang_work),
    "lost-nodes": (lose_node,),
    "predicates": (refuse_nodes,),
}  # fmt: skip
"""What a resource manager does that comes and goes, while its work is under way."""
