"""An oracle of what no world comes to: a walk beside it, in another core and its service.

Which walk it is, and what it does, is drawn. Each has expectations of its own: a program sees at
every door what it sees in the process of its core (`door_oracle`), a request over HTTP has the
status that the rules give it (`http_walk`), and so has a call by gRPC (`rpc_walk`). At the
portal of a cluster a resource manager sees what it sees at one core (`cluster_walk`). A walk whose
packages are not installed is left out. In small partitions of their own the victims are those that
cost least (`guarantee_walk`), or for a node or a quota no more than needed
(`forced_preemption_walk`): these are short, so there are several of them, and beside more runs.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final

from yunikorn_actors.errors import NoReply
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.oracles.door_oracle import differences
from yunikorn_actors.lab.run_schedule import NamedViolation
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.cluster_walk import walk_cluster
from yunikorn_actors.lab.surfaces.forced_preemption_walk import walk_forced
from yunikorn_actors.lab.surfaces.guarantee_walk import walk_contest

_SEEDS: Final = 1 << 30
_FAULTS_MAX: Final = 3


def _http(draw: Draw) -> Iterator[str]:
    # It needs a package that not everybody has, as the next one does.
    from yunikorn_actors.lab.surfaces.http_walk import walk_http  # noqa: PLC0415

    return (f"HTTP: {fault}" for _, _, faults in walk_http(draw) for fault in faults)


def _rpc(draw: Draw) -> Iterator[str]:
    from yunikorn_actors.lab.surfaces.rpc_walk import walk_rpc  # noqa: PLC0415

    return (f"gRPC: {fault}" for _, _, faults in walk_rpc(draw) for fault in faults)


def _cluster(draw: Draw) -> Iterator[str]:
    return (f"a cluster: {fault}" for _, _, faults in walk_cluster(draw) for fault in faults)


def _victims(draw: Draw) -> Iterator[str]:
    walk = walk_forced if draw.once_in(3) else walk_contest
    return (f"victims: {fault}" for _, _, faults in walk(draw) for fault in faults)


WALKS: Final[dict[str, tuple[str, Callable[[Draw], Iterator[str]]]]] = {
    "doors": ("", differences),
    "HTTP": ("aiohttp", _http),
    "gRPC": ("grpc", _rpc),
    "cluster": ("", _cluster),
}
"""By name: the package that a walk needs, and what yields its faults."""


CONTEST: Final = "victims"
"""The walk that is short."""
_CONTESTS: Final = 6
OF_A_WALK: Final = "walk"
"""The kind of each violation by one begins so: no change of the world makes it smaller."""


class ContestsBeside(Oracle):
    """Several of the short ones."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def at_rest(self, world: World) -> None:  # noqa: ARG002 - they stand beside the world
        for _ in range(_CONTESTS):
            _raise_of(CONTEST, self._draw.number(_SEEDS))


def _raise_of(name: str, seed: int) -> None:
    if faults := walked(name, seed):
        raise NamedViolation(f"{OF_A_WALK}, {name}", f"beside the world: {'; '.join(faults)}")


class WalkBeside(Oracle):
    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def at_rest(self, world: World) -> None:  # noqa: ARG002 - it stands beside the world
        names = [it for it, (package, _) in WALKS.items() if not package or find_spec(package)]
        name, seed = self._draw.one_of(names), self._draw.number(_SEEDS)
        _raise_of(name, seed)


def walked(name: str, seed: int) -> list[str]:
    """Return what is wrong first in the walk of this name; it goes to the end, so that all closes.

    One that does not come to rest is walked again: the computer may have been that busy.
    """
    walk = _victims if name == CONTEST else WALKS[name][1]
    try:
        try:
            found = [*walk(Draw(seed))]
        except NoReply:
            found = [*walk(Draw(seed))]
    except Exception as error:  # noqa: BLE001 - of whatever kind: it comes of what is walked through
        found = [f"{name}: it ends with {error!r:.500}"]
    return found[:_FAULTS_MAX]
