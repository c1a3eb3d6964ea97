"""Worlds in which work has to go: for a guarantee, within bounds, or for a lower maximum."""

from typing import Any, Final

from yunikorn_actors.lab.swarm.gang_moves import (
    claiming_gang,
    gang,
    gang_of_sizes,
    gang_work,
    whole_gang,
)
from yunikorn_actors.lab.swarm.manager_moves import (
    bring_queue_down,
    change_queue,
    confirm,
    lower_quota,
    refuse_nodes,
    reload,
)
from yunikorn_actors.lab.swarm.node_moves import (
    describe_node,
    drain,
    lose_node,
    open_node,
    resize_node,
)
from yunikorn_actors.lab.swarm.request_moves import ask_again, change_ask, daemon, everybody
from yunikorn_actors.lab.swarm.running_work_moves import foreign
from yunikorn_actors.lab.swarm.scripts import Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter

_MANNERS_OF_WORK: Final[tuple[dict[str, Any], ...]] = (
    {}, {"priority": 1}, {"priority": -1}, {"preemption": {"allow_self": False}},
    {"originator": True},
)  # fmt: skip
_WINDOWS: Final = ("2s", "5s", "10s", "15s", "20s")
"""Times that leaves name for their budgets and cooldowns, and the pause of a search."""


def contestants(writer: PartitionWriter) -> None:
    """One takes all room before the others ask for theirs."""
    everybody(writer)
    fill(writer)
    writer.add("advance", "1s")
    claim_and_wait(writer)


def fill(writer: PartitionWriter) -> None:
    draw = writer.draw
    fields = {"resource": draw.one_of(writer.sizes[:4]), "count": draw.whole(4, 12)}
    writer.greedy = _one_of_apps(writer, has_guarantee=False)
    writer.add_ask(writer.greedy, {"key": f"fill{len(writer.keys)}", **fields})


def claim(writer: PartitionWriter) -> None:
    """Ask for room that others have."""
    draw = writer.draw
    fields: dict[str, Any] = {
        "resource": draw.one_of(writer.sizes[:5]),
        "count": draw.whole(1, 3),
    }
    if draw.once_in(3):
        fields["priority"] = draw.one_of((1, 2, -1))
    if draw.once_in(4):
        fields["preemption"] = draw.one_of(({"allow_self": False}, {"allow_other": False}))
    if draw.once_in(4):
        fields["max_allocations"] = fields.pop("count")
    app = _one_of_apps(writer, has_guarantee=True)
    writer.add_ask(app, {"key": f"claim{len(writer.keys)}", **fields})


def _one_of_apps(writer: PartitionWriter, *, has_guarantee: bool) -> str:
    """Draw an application; more often one in a leaf with a guarantee, or without."""
    wanted = [
        app
        for app in writer.apps
        if (writer.entitled.get(app, False) is has_guarantee) and app != writer.greedy
    ]
    return writer.draw.one_of(
        wanted if wanted and not writer.draw.once_in(4) else list(writer.apps)
    )


def residents(writer: PartitionWriter) -> None:
    """What runs has all room: gangs that go as one, and single work of every kind."""
    everybody(writer)
    for _ in range(writer.draw.whole(0, 3)):
        whole_gang(writer)
    for _ in range(writer.draw.whole(1, 3)):
        varied_work(writer)
    writer.add("advance", writer.draw.one_of(("1s", "3s", "11s")))


def evicted(writer: PartitionWriter) -> None:
    residents(writer)
    fill(writer)
    writer.draw.one_of((claim_and_wait, claim_and_wait, claiming_gang))(writer)


def brought_down(writer: PartitionWriter) -> None:
    residents(writer)
    for _ in range(writer.draw.whole(1, 4)):
        varied_work(writer)
    bring_down(writer)


def bring_down(writer: PartitionWriter) -> None:
    """A queue comes down, and its time is up."""
    lower_busy(writer)
    wait_for_window(writer)


def lower_busy(writer: PartitionWriter) -> None:
    """A queue in which something was asked for may have less."""
    busy = {app for app, _ in writer.keys}
    leaves = [it["queue"] for it in writer.sent["add_app"] if it["id"] in busy]
    path = writer.draw.one_of(leaves or [leaf for leaf, _ in writer.leaves])
    if path.count(".") > 1 and writer.draw.once_in(2):
        path = path.rpartition(".")[0]
    bring_queue_down(writer, path)


def varied_work(writer: PartitionWriter) -> None:
    """Work that is as good as any other, but for one thing that says who goes first."""
    draw = writer.draw
    fields: dict[str, Any] = {"resource": draw.one_of(writer.sizes), "count": draw.whole(1, 3)}
    fields |= draw.one_of(_MANNERS_OF_WORK)
    writer.add_ask(draw.one_of(list(writer.apps)), {"key": f"v{len(writer.keys)}", **fields})


def packed(writer: PartitionWriter) -> None:
    """Gangs and single work have all room, and a gang of several sizes claims some of it."""
    residents(writer)
    for _ in range(writer.draw.whole(1, 4)):
        varied_work(writer)
    writer.add("advance", "1s")
    claim_by_sizes(writer)


def claim_by_sizes(writer: PartitionWriter) -> None:
    gang_of_sizes(writer)
    wait_for_window(writer)


def drop_claim(writer: PartitionWriter) -> None:
    """What was asked for last is withdrawn, often while others go for it."""
    if writer.keys:
        app, key = writer.draw.one_of(writer.keys[-4:])
        writer.add("release_ask", {"app": app, "key": key})


def wait_for_window(writer: PartitionWriter) -> None:
    writer.add("advance", writer.draw.one_of(_WINDOWS))


def claim_and_wait(writer: PartitionWriter) -> None:
    """Wait until the others have to give it."""
    claim(writer)
    writer.add("advance", writer.draw.one_of(("3s", "6s", "21s", "35s")))


OF_CONTEST: Final[Moves] = {
    "": (fill, claim, claim, claim, Writer.ask),
    "required-nodes": (daemon, daemon),
    "quota-preemption": (lower_quota,),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release,),
    "withdrawals": (Writer.cancel,),
    "lost-nodes": (lose_node,),
    "resized-nodes": (resize_node,),
    "drained-nodes": (drain, open_node, describe_node),
    "reported-work": (Writer.bind,),
    "foreign-work": (foreign,),
    "re-sent-asks": (ask_again,),
    "changed-asks": (change_ask,),
    "reloads": (reload, change_queue),
    "gangs": (gang_work,),
    "asked-victims": (refuse_nodes, daemon, claim),
}
"""What happens where all room is taken, and some have more right to it."""
OF_EVICTION: Final[Moves] = {
    "": (fill, claim, claim, whole_gang, drop_claim),
    "opt-outs": (varied_work,),
    "required-nodes": (daemon,),
    "predicates": (refuse_nodes,),
    "quota-preemption": (lower_quota,),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release,),
    "removals": (Writer.remove,),
    "withdrawals": (drop_claim,),
    "lost-nodes": (lose_node,),
    "resized-nodes": (resize_node,),
    "drained-nodes": (drain, open_node),
    "reported-work": (Writer.bind,),
    "changed-asks": (change_ask,),
    "reloads": (change_queue,),
    "gangs": (gang, gang_work),
}
"""What happens where some have to go, whole gangs among them, within bounds."""
OF_PACKING: Final[Moves] = {
    "": (gang_of_sizes, varied_work, whole_gang, drop_claim),
    "contests": (fill, claim),
    "required-nodes": (daemon,),
    "predicates": (refuse_nodes,),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release,),
    "removals": (Writer.remove,),
    "lost-nodes": (lose_node,),
    "resized-nodes": (resize_node,),
    "drained-nodes": (drain, open_node),
    "changed-asks": (change_ask,),
}
"""What happens where the placeholders of a gang find room together, or not at all."""
OF_QUOTA: Final[Moves] = {
    "": (lower_busy, lower_quota, varied_work, whole_gang),
    "manual-confirmations": (confirm, confirm),
    "releases": (Writer.release,),
    "removals": (Writer.remove,),
    "lost-nodes": (lose_node,),
    "reported-work": (Writer.bind,),
    "required-nodes": (daemon,),
    "reloads": (change_queue, reload),
    "contests": (claim,),
}
"""What happens where queues may have less from now on than they use."""
