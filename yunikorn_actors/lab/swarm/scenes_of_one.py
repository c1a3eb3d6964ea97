"""Worlds about one thing: all that can happen to a node, an ask or a resource manager.

Where each step draws what it is about, two steps seldom meet: a node that is not ready and then
says something else of itself, or an ask that had nodes kept for it and comes again with fewer
repeats. Here nearly every step is about the same one.
"""

from collections.abc import Callable
from typing import Any, Final

Moves = dict[str, tuple[Callable[[], None], ...]]
PartitionWriter = Any
"""That of `swarm.worlds`, which has these scenes."""
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
    writer.everybody()
    writer.fill()
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


def of_node(writer: PartitionWriter) -> Moves:
    """Return what may happen to a node, and what asks for it."""
    manager, confirm = writer.manager, writer.confirm
    return {
        "": (
            *(writer.describe_node,) * 3, writer.drain, writer.open, writer.resize_node,
            writer.ask, writer.newcomer, writer.release,
        ),
        "required-nodes": (writer.daemon, writer.daemon, writer.large_daemon),
        "lost-nodes": (writer.lose_node, writer.return_node, writer.return_node),
        "reported-work": (writer.bind, writer.node_with_work, writer.overfill),
        "foreign-work": (writer.foreign, writer.foreign_ends),
        "manual-confirmations": (confirm, confirm),
        "gangs": (writer.gang, writer.gang_work),
        "guarantees": (writer.claim,),
        "predicates": (manager.refuse_nodes,),
    }  # fmt: skip


def of_ask(writer: PartitionWriter) -> Moves:
    """Return what may happen to an ask, and what makes room for it."""
    manager, confirm = writer.manager, writer.confirm

    def again() -> None:
        _ask_again(writer)

    return {
        "": (again, again, again, writer.release, writer.fill, lambda: _end_it(writer)),
        "required-nodes": (writer.daemon,),
        "reported-work": (lambda: _report_it(writer), writer.bind),
        "resized-nodes": (writer.resize_node,),
        "drained-nodes": (writer.drain, writer.open),
        "lost-nodes": (writer.lose_node, writer.return_node),
        "manual-confirmations": (confirm, confirm),
        "removals": (writer.replace,),
        "guarantees": (writer.claim,),
        "predicates": (manager.refuse_nodes,),
        "reloads": (manager.change_queue,),
    }


def of_manager(writer: PartitionWriter) -> Moves:
    """Return what a resource manager does that comes and goes, while its work is under way."""
    manager, confirm = writer.manager, writer.confirm
    return {
        "": (
            manager.register, manager.come_back, manager.come_back, manager.leave, manager.join,
            writer.ask, writer.newcomer, writer.rush,
        ),
        "manual-confirmations": (confirm, confirm),
        "reloads": (manager.reload, manager.change_queue),
        "releases": (writer.release,),
        "reported-work": (writer.bind, writer.node_with_work),
        "gangs": (writer.gang, writer.gang_work),
        "lost-nodes": (writer.lose_node,),
        "predicates": (manager.refuse_nodes,),
    }  # fmt: skip
