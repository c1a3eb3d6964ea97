"""Scripts of drawn worlds: what may happen in them, and the scenes, which are about one thing.

The tables hold functions over the writer of a partition; a move that stands there twice is drawn
twice as often. Their order is a part of each world, as a draw is a place in them: what is added at
the end of an entry moves fewer worlds than what is added before others.
"""

from typing import Final, NamedTuple

from yunikorn_actors.lab.scenario_documents import Document
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm import (
    changed_returns,
    gang_moves,
    request_moves,
    scenes_of_full_nodes,
    scenes_of_limits,
    scenes_of_one,
    scenes_of_placement,
    scenes_of_precedence,
    scenes_of_swaps,
    scenes_of_victims,
)
from yunikorn_actors.lab.swarm.gang_moves import (
    claiming_gang,
    gang,
    gang_returns,
    gang_work,
    late_node,
    late_placeholder,
)
from yunikorn_actors.lab.swarm.joined_requests import join
from yunikorn_actors.lab.swarm.manager_moves import (
    change_queue,
    come_back,
    confirm,
    leave,
    leave_partition_out,
    leave_queue_out,
    lower_quota,
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
    resize_node,
    return_node,
)
from yunikorn_actors.lab.swarm.request_moves import (
    ask_again,
    break_request,
    cancel_all,
    change_ask,
    come_again,
    daemon,
    refuse_for,
    reject_app,
    reject_ask,
    release_all,
    release_by_name,
    release_otherwise,
    replace,
    run,
    wait_until_due,
)
from yunikorn_actors.lab.swarm.running_work_moves import (
    bind_again,
    bind_by_name,
    foreign,
    foreign_ends,
    report_by_key,
)
from yunikorn_actors.lab.swarm.scenes_of_full_nodes import let_run
from yunikorn_actors.lab.swarm.scenes_of_victims import (
    bring_down,
    claim_and_wait,
    claim_by_sizes,
    wait_for_window,
)
from yunikorn_actors.lab.swarm.scripts import (
    AWARE,
    CONTEST,
    EVICTIONS,
    FENCED,
    LIMITED,
    LOWERED,
    PACKED,
    Writer,
)
from yunikorn_actors.lab.swarm.world_parts import OF_ONE
from yunikorn_actors.lab.swarm.worlds import (
    Manager,
    Move,
    Moves,
    PartitionWriter,
    Scene,
    World,
    allowed,
)

AT_ONCE: Final[Moves] = {
    "": (Writer.ask, Writer.ask, Writer.ask, Writer.newcomer, Writer.app, Writer.node),
    "runs": (run, run),
    "gangs": (gang, gang_work),
    "rejections": (reject_app, reject_ask),
    "required-nodes": (daemon,),
    "re-sent-asks": (ask_again,),
    "changed-asks": (change_ask,),
    "withdrawals": (Writer.cancel, cancel_all),
    "releases": (
        Writer.release,
        Writer.release,
        release_otherwise,
        release_all,
        release_by_name,
    ),
    "removals": (Writer.remove, replace),
    "reported-work": (
        Writer.bind,
        bind_again,
        report_by_key,
        node_with_work,
        gang_returns,
    ),
    "named-work": (bind_by_name,),
    "late-placeholders": (late_placeholder,),
    "foreign-work": (foreign, foreign_ends),
    "drained-nodes": (drain, open_node, describe_node),
    "lost-nodes": (lose_node, return_node),
    "resized-nodes": (resize_node,),
    "broken-requests": (break_request,) * 9,
}
"""What happens in no time."""
IN_TIME: Final[Moves] = {
    "waits": (Writer.wait,) * 4,
    "due-times": (wait_until_due,) * 3,
    "contests": (Writer.contest, Writer.contest),
    "reservations": (Writer.large,),
    "one-contest": (claim_and_wait,) * 4,
    "one-gang": (late_node, late_node),
    "one-reservation": (Writer.large, Writer.large, wait_until_due),
    "one-gate": (let_run, let_run, let_run, Writer.wait),
    "one-eviction": (
        *(claim_and_wait,) * 3,
        claiming_gang,
        *(wait_for_window,) * 3,
    ),
    "one-quota": (bring_down,) * 2 + (wait_for_window,) * 2,
    "timeouts": (come_again,),
    "one-node": (*(scenes_of_one.pause,) * 3, Writer.large),
    "one-ask": (scenes_of_one.pause,) * 4,
    "one-manager": (scenes_of_one.pause,) * 3,
    "one-swap": (scenes_of_one.pause,) * 4,
    "one-user": (scenes_of_limits.pause,) * 4,
    "one-placement": (scenes_of_placement.pause,) * 3,
    "one-priority": (scenes_of_precedence.claim_and_wait,) * 4,
    "one-leaf": (scenes_of_precedence.pause,) * 4,
    "one-packing": (claim_by_sizes,) * 3 + (wait_for_window,) * 2,
    "changed-returns": (
        *(changed_returns.node_returns,) * 4,
        *(changed_returns.member_returns,) * 4,
        *(changed_returns.running_member_returns,) * 2,
        *(changed_returns.queue_returns,) * 3,
        *(changed_returns.limits_change,) * 3,
    ),
}
"""What needs time to pass."""


SCENES: Final[dict[str, Scene]] = {
    "one-gang": Scene("gangs", frozenset(), gang_moves.gang, gang_moves.OF_ONE_GANG),
    "one-contest": Scene(
        CONTEST,
        frozenset({"guarantees", "waits"}),
        scenes_of_victims.contestants,
        scenes_of_victims.OF_CONTEST,
    ),
    "one-rush": Scene(
        "limits",
        frozenset({"quotas", "limits"}),
        scenes_of_full_nodes.runners,
        scenes_of_full_nodes.OF_RUSH,
    ),
    "one-reservation": Scene(
        "limits",
        frozenset({"reservations", "waits"}),
        scenes_of_full_nodes.full_nodes,
        scenes_of_full_nodes.OF_RESERVATION,
        (1, 5),
    ),
    "one-gate": Scene(
        "limits",
        frozenset({"policies", "releases", "waits"}),
        scenes_of_full_nodes.jobs_come,
        scenes_of_full_nodes.OF_GATE,
    ),
    "one-eviction": Scene(
        EVICTIONS,
        frozenset({"guarantees", "fences", "gangs", "opt-outs", "repeats", "waits"}),
        scenes_of_victims.evicted,
        scenes_of_victims.OF_EVICTION,
        (1, 3),
    ),
    "one-quota": Scene(
        LOWERED,
        frozenset(
            {"guarantees", "fences", "gangs", "opt-outs", "quota-preemption", "quotas", "waits"}
        ),
        scenes_of_victims.brought_down,
        scenes_of_victims.OF_QUOTA,
        (2, 4),
    ),
    "one-node": Scene(
        "limits",
        frozenset({"reservations", "required-nodes"}),
        scenes_of_one.begin,
        scenes_of_one.OF_NODE,
    ),
    "one-ask": Scene(
        "limits",
        frozenset({"reservations", "repeats"}),
        scenes_of_one.begin_with_ask,
        scenes_of_one.OF_ASK,
        (1, 3),
    ),
    "one-manager": Scene(
        "limits",
        frozenset({"extra-configuration", "quotas"}),
        request_moves.everybody,
        scenes_of_one.OF_MANAGER,
    ),
    "one-swap": Scene(
        "limits",
        frozenset({"gangs", "repeats", "required-nodes", "waits"}),
        scenes_of_swaps.begin,
        scenes_of_swaps.OF_SWAPS,
        (2, 3),
    ),
    "one-user": Scene(
        LIMITED,
        frozenset({"limits", "application-limits", "reloads", "waits"}),
        scenes_of_limits.begin,
        scenes_of_limits.OF_LIMITS,
    ),
    "one-placement": Scene(
        "order",
        frozenset({"placement-rules", "reloads", "quotas", "quota-preemption"}),
        scenes_of_placement.begin,
        scenes_of_placement.OF_PLACEMENT,
    ),
    "one-priority": Scene(
        FENCED,
        frozenset({"guarantees", "fences", "priorities", "waits"}),
        scenes_of_precedence.begin_with_fences,
        scenes_of_precedence.OF_FENCES,
    ),
    "one-leaf": Scene(
        AWARE,
        frozenset({"gangs", "quotas", "application-limits", "sort-policies", "waits"}),
        scenes_of_precedence.begin_in_leaf,
        scenes_of_precedence.OF_LEAF,
    ),
    "one-packing": Scene(
        PACKED,
        frozenset({"guarantees", "gangs", "opt-outs", "repeats", "waits"}),
        scenes_of_victims.packed,
        scenes_of_victims.OF_PACKING,
        (2, 4),
    ),
}
"""By the part that asks for it; a world with several of them is about the first."""
_OF_MANAGERS: Final[Moves] = {
    "reloads": (reload, change_queue, leave_queue_out),
    "quota-preemption": (lower_quota,),
    "removed-partitions": (leave_partition_out,),
    "lost-managers": (leave,),
    "new-registrations": (register, come_back),
    "predicates": (refuse_nodes,),
    "manual-confirmations": (confirm, confirm),
    "joined-requests": (join, join),
}
"""What happens in no time to all partitions of a manager at once, or to any of them."""
_BURST: Final = 6
"""So many steps come without a pause at most."""
_Drawn = tuple[tuple[Move, PartitionWriter], ...]


class _Choice(NamedTuple):
    """What a resource manager may do next, each as often as it is to be drawn."""

    manager: Manager
    at_once: _Drawn
    all: _Drawn


def script_of(draw: Draw, parts: frozenset[str], policies: str, name: str) -> Document:
    """Draw a world of these parts, and what happens in it."""
    world = World(draw, parts, policies, SCENES)
    choices = [_choice(world, manager) for manager in world.managers]
    for manager in world.managers:
        register(manager.partitions[0])
        for partition in manager.partitions:
            _begin(partition)
    for _ in range(_length(world)):
        if "bursts" in world.parts and draw.once_in(5):
            _burst(world, choices)
        else:
            _move(draw.one_of(choices))
    script: Document = {"name": name, "queues": world.queues}
    if policies:
        script["policies"] = policies
    if world.settings:
        script["settings"] = world.settings
    if "manual-confirmations" in world.parts:
        script["rm"] = {"confirm": "manual"}
    return {**script, "steps": world.steps}


def _choice(world: World, manager: Manager) -> _Choice:
    def of_each(moves: Moves, partitions: list[PartitionWriter]) -> _Drawn:
        return tuple((it, each) for each in partitions for it in allowed(moves, world.parts))

    # Where nearly nothing but one thing happens, its scene says how often its manager moves.
    own = () if world.about else of_each(_OF_MANAGERS, manager.partitions[:1])
    moves = world.about.moves if world.about else AT_ONCE
    at_once = (*own, *of_each(moves, manager.partitions))
    in_time = of_each(IN_TIME, manager.partitions)
    return _Choice(manager, at_once, (*at_once, *at_once, *in_time))


def _move(choice: _Choice, *, at_once: bool = False) -> None:
    manager = choice.manager
    if manager.is_lost and manager.draw.once_in(2):
        come_back(manager.partitions[0])
    else:
        move, partition = manager.draw.one_of(choice.at_once if at_once else choice.all)
        move(partition)


def _length(world: World) -> int:
    if world.is_large:
        return world.draw.whole(25, 50)
    if world.scene == "one-gate" or world.scene in OF_ONE:
        # A job has to come, to wait, and to be passed; and so with all that comes to one thing.
        return world.draw.whole(6, 16)
    return world.draw.whole(3, 10 if world.scene else 18)


def _burst(world: World, choices: list[_Choice]) -> None:
    """Several at once, of any resource managers, so that they meet in the mailboxes."""
    with world.together():
        for _ in range(world.draw.whole(2, _BURST)):
            _move(world.draw.one_of(choices), at_once=True)


def _begin(writer: PartitionWriter) -> None:
    """Have nodes and applications come, or what the scene begins with."""
    draw, world = writer.draw, writer.world
    if "asked-victims" in world.parts:
        refuse_for(writer, "k", nodes=0)
    if world.about:
        for _ in range(draw.whole(*world.about.nodes)):
            writer.node()
        world.about.begin(writer)
        return
    for _ in range(draw.whole(1, 3)):
        writer.node()
    if world.is_large:
        several = {"id": "m", "count": draw.whole(2, 6), "capacity": writer.capacities[3]}
        writer.add("create_node", several)
    for _ in range(draw.whole(1, 3)):
        writer.app()
