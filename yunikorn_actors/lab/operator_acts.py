"""What operators do to a core while a run goes on, by the calls that commands and routes make.

They drain nodes, let them work again, load a configuration, unregister who has gone, and follow
event records. Each call waits for its answer, while everything else goes on.
"""

from typing import Final

from yunikorn_actors.config import ConfigError
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.harness import LabSimulator, SlowReader, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.performer import DEFAULT_RM
from yunikorn_actors.values.ids import partition_name

WHO: Final = "olga"
ROOM: Final = 5
"""So many event records wait for a reader; of the others it learns how many they were."""
_HISTORY: Final = (0, 1, 4, 30)
_BROKEN: Final = "partitions: 3"
_NO_QUEUES: Final = "no queues"


def drawn_act(world: World, draw: Draw) -> str:
    """Draw something that an operator may do now, perhaps in vain."""
    managers = dict.fromkeys(
        it.step.rm or DEFAULT_RM for it in world.steps if isinstance(it.step, w.Register)
    )
    of_manager = draw.one_of((*managers, "nobody"))
    acts = [f"load queues of {of_manager}", f"unregister {of_manager}", f"load {_NO_QUEUES}"]
    acts += [f"follow {draw.one_of(_HISTORY)} events", "read events", "read events", "leave events"]
    nodes = [it.step for it in world.done() if isinstance(it.step, w.CreateNode)]
    for created in nodes[-3:]:
        where = partition_name(created.rm or DEFAULT_RM, created.partition)
        node = draw.one_of((*created.names(), "nowhere"))
        acts += [f"drain {node} in {where}", f"open {node} in {where}"]
    return draw.one_of(acts)


def operate(world: World, what: str) -> bool:
    """Do it; return whether it was taken."""
    with world.calling(f"operate {what}"):
        return _operate(world, what)


def _operate(world: World, what: str) -> bool:
    core = world.simulator
    word, _, rest = what.partition(" ")
    try:
        match word:
            case "drain" | "open":
                node, _, partition = rest.partition(" in ")
                core.operator.set_drained(partition, node, WHO, drained=word == "drain")
            case "unregister":
                core.operator.unregister_lost(rest, WHO)
            case "load":
                queues = world.queues_of(rest.removeprefix("queues of "))
                core.administer(_BROKEN if rest == _NO_QUEUES else queues, WHO)
            case _:
                return _with_events(core, world.readers, what)
    except (CoreError, ConfigError):
        return False
    return True


def _with_events(core: LabSimulator, readers: dict[str, SlowReader], what: str) -> bool:
    word, _, rest = what.partition(" ")
    if word == "follow":
        reader = SlowReader(ROOM)
        readers[core.followers.open_stream(reader.feed, int(rest.removesuffix(" events")))] = reader
        return True
    following = {address: it for address, it in readers.items() if not it.has_left}
    if word == "leave" and following:
        address, reader = next(iter(following.items()))
        core.followers.close_stream(address)
        reader.has_left = True
    for reader in following.values():
        reader.read()
    return bool(following)
