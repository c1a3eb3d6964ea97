"""Several things that a resource manager says in one request."""

from typing import Final

from yunikorn_actors.lab.swarm.gang_moves import gang_work
from yunikorn_actors.lab.swarm.node_moves import lose_node, node_with_work
from yunikorn_actors.lab.swarm.request_forms import joined
from yunikorn_actors.lab.swarm.request_moves import (
    ask_again,
    change_ask,
    reject_app,
    reject_ask,
    release_otherwise,
)
from yunikorn_actors.lab.swarm.scripts import Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter, allowed

_JOINED: Final = 5
"""So many moves make one request at most."""
_MOVES: Final[Moves] = {
    "": (Writer.ask, Writer.ask, Writer.app, Writer.newcomer, Writer.node),
    "gangs": (gang_work,),
    "rejections": (reject_app, reject_ask),
    "re-sent-asks": (ask_again,),
    "changed-asks": (change_ask,),
    "withdrawals": (Writer.cancel,),
    "releases": (Writer.release, release_otherwise),
    "removals": (Writer.remove,),
    "reported-work": (Writer.bind, node_with_work),
    "lost-nodes": (lose_node,),
}
"""What may stand in one request."""


def join(writer: PartitionWriter) -> None:
    """Request several things at once, in one list of each kind."""
    draw, world, manager = writer.draw, writer.world, writer.manager
    partition = draw.one_of(manager.partitions)
    steps, world.steps, manager.is_joining = world.steps, [], True
    for _ in range(draw.whole(2, _JOINED)):
        draw.one_of(allowed(_MOVES, world.parts))(partition)
    world.steps = [*steps, *joined(manager.rm_id, world.steps)]
    manager.is_joining = False
