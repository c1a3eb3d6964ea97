"""What is missing, by arithmetic: where a search for the least change begins.

It knows sums alone, and nothing of what the core would do meanwhile. So each amount and each set of
work that it proposes is tried before anything is said of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from yunikorn_actors.state.snapshot import Image
from yunikorn_actors.values.quantity import amounts
from yunikorn_actors.values.resource import Resource, charge, discharge
from yunikorn_actors.what_if.bounds import APPS, Bound
from yunikorn_actors.what_if.changes import Request

_PROPOSED_MAX = 20


class Held(NamedTuple):
    """What an allocation takes, or an application that has nothing."""

    node: tuple[str, str]
    """Its partition and its id."""
    queue: str
    user: str
    group: str
    size: Resource
    uuid: str


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """Something that may be done to what is there: work to release, a node to open."""

    kind: str
    what: str
    make: Callable[[], Request]
    """There may be very many, of which few are made."""
    held: tuple[Held, ...] = ()
    """What ends with it."""
    withdrawn: int = 0
    gang: str = ""
    """The application whose gang it is a part of."""

    @property
    def text(self) -> str:
        return f"{self.what} ({amounts(_size([self]))})" if self.held else self.what


def _size(acts: Iterable[Act]) -> Resource:
    total: Resource = {}
    for it in acts:
        for held in it.held:
            charge(total, held.size)
    return total


def held_by(
    partition: str, app: Mapping[str, Any], allocation: Mapping[str, Any] | None = None
) -> Held:
    """Read it in an image."""
    it = allocation or {"node_id": "", "resource": {}, "uuid": ""}
    user, group = app["spec"].get("user", ""), app["group"] or ""
    return Held((partition, it["node_id"]), app["queue"], user, group, it["resource"], it["uuid"])


class MissingRoom:
    def __init__(self, images: Mapping[str, Image], bounds: Iterable[Bound], user: str) -> None:
        """`user` asks: a limit that is for every other user counts what is of this one."""
        self._user = user
        self.used: dict[Bound, int] = dict.fromkeys(bounds, 0)
        self._free: dict[tuple[str, str], Resource] = {}
        """Of nodes that take work."""
        self._whole: Resource = {}
        """What all nodes have together."""
        for name, image in images.items():
            for node in image["nodes"]:
                charge(self._whole, node["capacity"])
                if node["ready"] and not node["drained"]:
                    room = self._free[name, node["node_id"]] = dict(node["capacity"])
                    discharge(room, node["occupied"])
            for app in image["applications"]:
                mine = [it for it in self.used if self._concerns(it, held_by(name, app))]
                for bound in mine:
                    self.used[bound] += bound.kind == APPS and bool(app["counts"])
                for it in app["allocations"].values():
                    for bound in mine:
                        self.used[bound] += it["resource"].get(bound.kind, 0)
                    discharge(self._free.get((name, it["node_id"]), {}), it["resource"])

    def cost_of(self, acts: Collection[Act]) -> tuple[float, int, int, int]:
        """Say what share of the cluster ends, how many gangs that hurts, and what is withdrawn.

        Without a member the rest of a gang is of no use. Of what is equal in that, the fewest
        allocations are the least.
        """
        share = sum(amount / max(1, self._whole.get(it, 0)) for it, amount in _size(acts).items())
        gangs = {it.gang for it in acts} - {""}
        withdrawn = sum(it.withdrawn for it in acts)
        # Sums of the same amounts in another order are no difference.
        return round(share, 9), len(gangs), withdrawn, sum(len(it.held) for it in acts)

    def _concerns(self, bound: Bound, held: Held) -> bool:
        user = self._user if bound.user == "*" else bound.user
        return (
            held.node[0] == bound.partition
            and f"{held.queue}.".startswith(f"{bound.queue}.")
            and user in {"", held.user}
            and bound.group in {"", held.group}
        )

    def likely(
        self, acts: Sequence[Act], sizes: Sequence[Resource], lifted: Container[object]
    ) -> list[list[Act]]:
        """Return sets after which all sizes have room, the least cost first.

        `acts` are in the order of their cost. The bounds that are lifted are in nobody's way.
        """
        missing = {
            it: used + sum(size.get(it.kind, 0) for size in sizes) - it.present
            for it, used in self.used.items()
        }
        missing = {it: most for it, most in missing.items() if most > 0 and it not in lifted}
        by_node: defaultdict[tuple[str, str], list[Act]] = defaultdict(list)
        for it in acts:
            if len(it.held) == 1:
                by_node[it.held[0].node].append(it)
        for some in by_node.values():
            # First what is in the way twice.
            some.sort(key=lambda it: -sum(self._concerns(bound, it.held[0]) for bound in missing))
        free, chosen, found = dict(self._free), list[Act](), list[list[Act]]([[]])
        for size in sizes:
            ways = [
                (some, left, name)
                for name, room in free.items()
                for some, left in _emptied(size, room, by_node[name])
            ]
            ways.sort(key=lambda it: self.cost_of(it[0]))
            found = [[*chosen, *some] for some, _, _ in ways[:_PROPOSED_MAX]]
            for some, left, name in ways[:1]:
                chosen, free[name] = [*chosen, *some], left
                by_node[name] = by_node[name][len(some) :]
        for some in found:
            for bound, most in missing.items():
                self._fill(some, acts, bound, most)
        return sorted(found, key=self.cost_of)

    def _fill(self, some: list[Act], acts: Iterable[Act], bound: Bound, missing: int) -> None:
        """Add what is still missing under a bound, wherever it is."""
        known: set[int] = set()
        for it in chain(tuple(some), acts):
            if missing <= 0:
                return
            gives = sum(
                held.size.get(bound.kind, 0) for held in it.held if self._concerns(bound, held)
            )
            if gives and id(it) not in known:
                missing -= gives
                known.add(id(it))
                if not any(it is one for one in some):
                    some.append(it)


def _emptied(
    size: Resource, room: Resource, acts: Iterable[Act]
) -> Iterable[tuple[list[Act], Resource]]:
    """Return what has to go from a node for this size, and what is left then; or nothing."""
    left, some = dict(room), list[Act]()
    waiting = iter(acts)
    while any(left.get(kind, 0) < amount for kind, amount in size.items()):
        one = next(waiting, None)
        if one is None:
            return
        some.append(one)
        charge(left, one.held[0].size)
    discharge(left, size)
    yield some, left
