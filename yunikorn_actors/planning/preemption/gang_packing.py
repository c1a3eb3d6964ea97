"""Where the placeholders of several sizes find room together when a set of gangs is gone.

Each size may find room by itself and yet not all of them together, and what is best for one size is
not always best for all. So all ways to put them on nodes are tried, the largest first, and for each
way which single work goes beside the gangs, as far as the bound allows.
"""

from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple

from yunikorn_actors.planning.preemption.claimant import Claimant, Victim
from yunikorn_actors.planning.preemption.device_room import fits, keep
from yunikorn_actors.planning.preemption.single_choice import SINGLES_MAX, are_alike, in_turn
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge

LOOKS_MAX: Final = 50_000
"""Looks at nodes and candidates, at most, for all sets of gangs of one claim."""
FEWER_LOOKS_MAX: Final = 10_000
"""Further looks for one set, at most, to find less single work beside it."""
PACKED_MAX: Final = 64
"""Placeholders that are packed, at most; of more it is not known what a set does."""


class Size(NamedTuple):
    """Placeholders that are alike."""

    wanted: Resource
    number: int
    nodes: Container[str]
    """On which they may run."""


class Packing(NamedTuple):
    nodes: list[list[str]]
    """Of each size, in the given order: a node for each placeholder."""
    singles: frozenset[str]
    """The single work that goes for them, by UUID."""


class Packer:
    def __init__(
        self,
        claimant: Claimant,
        rooms: dict[str, Resource],
        singles: dict[str, list[Victim]],
        sizes: Sequence[Size],
    ) -> None:
        self._claimant = claimant
        self._rooms = rooms
        self._singles = singles
        self._turns = in_turn(singles)
        self._sizes = sizes
        # The largest first: it has the fewest places.
        self._order = sorted(range(len(sizes)), key=lambda at: self._places(sizes[at], rooms))
        self._placed: dict[str, list[Resource]] = {}
        """What was put on each node so far, in order."""
        self._nodes: list[list[str]] = []
        self._base: dict[str, Resource] = {}
        """The rooms when the set of gangs that is looked at is gone."""
        self._full: dict[str, Resource] = {}
        """What is left of each when all single work is gone as well."""
        self._usable: dict[str, list[Victim]] = {}
        self._singles_max = 0
        """No more single work may go."""
        is_small = sum(size.number for size in sizes) <= PACKED_MAX
        self.is_small = is_small and sum(map(len, singles.values())) <= SINGLES_MAX
        """Whether all ways are tried; otherwise it is not known of any set what it does."""
        self._looks = LOOKS_MAX if self.is_small else 0
        self.is_unknown = False
        """Whether the bound was reached for the last set: there may be a packing."""
        self._missing: Resource = {}
        """How much more all need together than there is without any gang gone."""
        for size in sizes:
            charge(self._missing, {kind: n * size.number for kind, n in size.wanted.items()})
        for node_id, room in rooms.items():
            # A node that is overfull takes nothing from the others.
            discharge(self._missing, {kind: n for kind, n in room.items() if n > 0})
            for victim in singles[node_id]:
                discharge(self._missing, victim.resource)

    def could_fit(self, gone: Sequence[Victim]) -> bool:
        """Whether there is enough room when these and all single work are gone."""
        return self._may_fit(self._with_singles(self._without(gone), self._singles))

    def pack(self, gone: Sequence[Victim]) -> Packing | None:
        """Find room for all when these are gone."""
        claimant, taken, found = self._claimant, list[Victim](), None
        self.is_unknown = False
        if not self._is_large_enough(gone):
            return None
        for victim in gone:
            if not claimant.may_take(victim):
                break
            claimant.take(victim)
            taken.append(victim)
        else:
            for singles in self._turns:
                found = self._pack_beside(gone, singles) if self._looks > 0 else None
                if found is not None:
                    break
            self.is_unknown = found is None and self._looks <= 0
        for victim in taken:
            claimant.give_back(victim)
        return found

    def _is_large_enough(self, gone: Sequence[Victim]) -> bool:
        return all(
            sum(victim.resource.get(kind, 0) for victim in gone) >= n
            for kind, n in self._missing.items()
        )

    def _pack_beside(
        self, gone: Sequence[Victim], singles_on: dict[str, list[Victim]]
    ) -> Packing | None:
        absorbed = {victim.allocations[0].spec.application_id for victim in gone}
        self._looks -= len(self._rooms)
        self._base = self._without(gone)
        self._usable = {
            node_id: usable
            for node_id, singles in singles_on.items()
            if (
                usable := [
                    victim
                    for victim in singles
                    if victim.allocations[0].spec.application_id not in absorbed
                    and self._claimant.may_take(victim)
                ]
            )
        }
        self._full = self._with_singles(self._base, self._usable)
        return self._with_fewest_singles() if self._may_fit(self._full) else None

    def _with_fewest_singles(self) -> Packing | None:
        """Search for a packing, and then for one with less single work.

        The second search has its own bound: other sets of gangs have to be looked at as well.
        """
        self._singles_max = len(self._usable) * SINGLES_MAX
        best = self._search()
        looks, self._looks = self._looks, FEWER_LOOKS_MAX
        fewer = best
        while fewer is not None and fewer.singles:
            best, self._singles_max = fewer, len(fewer.singles) - 1
            fewer = self._search()
        self._looks = looks
        return best if fewer is None else fewer

    def _search(self) -> Packing | None:
        full = {node_id: dict(room) for node_id, room in self._full.items()}
        self._placed = {node_id: [] for node_id in self._full}
        self._nodes = [[] for _ in self._sizes]
        going = self._place(0, 0)
        self._full = full
        if going is None:
            return None
        return Packing(self._nodes, frozenset(it.allocations[0].uuid for it in going))

    def _without(self, gone: Sequence[Victim]) -> dict[str, Resource]:
        rooms = dict(self._rooms)
        changed = dict.fromkeys(it.node_id for victim in gone for it in victim.allocations)
        for node_id in changed:
            if node_id in rooms:
                rooms[node_id] = dict(rooms[node_id])
                for victim in gone:
                    charge(rooms[node_id], victim.on(node_id))
        return rooms

    def _with_singles(
        self, rooms: dict[str, Resource], singles: dict[str, list[Victim]]
    ) -> dict[str, Resource]:
        full = dict(rooms)
        for node_id, victims in singles.items():
            full[node_id] = dict(rooms[node_id])
            for victim in victims:
                charge(full[node_id], victim.on(node_id))
        return full

    def _may_fit(self, rooms: dict[str, Resource]) -> bool:
        """Whether each size has places for all that are as large: without them nothing is tried."""
        for size in self._sizes:
            as_large = sum(it.number for it in self._sizes if _is_as_large(it.wanted, size.wanted))
            if self._places(size._replace(nodes=rooms), rooms) < as_large:
                return False
            if self._places(size, rooms) < size.number:
                return False
        return True

    def _places(self, size: Size, rooms: dict[str, Resource]) -> int:
        wanted = [(kind, n) for kind, n in size.wanted.items() if n > 0]
        return sum(
            max(0, min(room.get(kind, 0) // n for kind, n in wanted))
            for node_id, room in rooms.items()
            if node_id in size.nodes
        )

    # -- which node for each

    def _place(self, at: int, first: int) -> list[Victim] | None:
        """Place the next, from this node on; return the single work that goes for all."""
        while at < len(self._order) and self._is_through(at):
            at, first = at + 1, 0
        if at == len(self._order):
            return self._take_singles([*self._placed], [])
        size, nodes = self._sizes[self._order[at]], self._nodes[self._order[at]]
        seen: list[tuple[list[bool], Resource]] = []
        for number, (node_id, room) in enumerate([*self._full.items()][first:], first):
            if self._looks <= 0:
                return None
            self._looks -= 1
            if node_id not in size.nodes or not fits(size.wanted, room):
                continue
            # Of nodes that are alike one does for all, where nothing else goes.
            if node_id not in self._usable:
                like = [node_id in it.nodes for it in self._sizes], room
                if like in seen:
                    continue
                seen.append(like)
            left = dict(room)
            discharge(left, size.wanted)
            keep(left, amount_of(size.wanted))
            nodes.append(node_id)
            self._full[node_id] = left
            self._placed[node_id].append(size.wanted)
            going = self._place(at, number)
            if going is not None:
                return going
            self._placed[node_id].pop()
            self._full[node_id] = room
            nodes.pop()
        return None

    def _is_through(self, at: int) -> bool:
        number = self._order[at]
        return len(self._nodes[number]) == self._sizes[number].number

    # -- which single work for that

    def _take_singles(self, left: list[str], going: list[Victim]) -> list[Victim] | None:
        """Take what the nodes still need, one after the other."""
        if not left:
            return list(going)
        node_id, *others = left
        return self._take_on(
            node_id, self._base[node_id], 0, lambda: self._take_singles(others, going), going
        )

    def _take_on(
        self,
        node_id: str,
        room: Resource,
        at: int,
        go_on: Callable[[], list[Victim] | None],
        going: list[Victim],
    ) -> list[Victim] | None:
        if self._holds(node_id, room):
            return go_on()
        singles = self._usable.get(node_id, [])
        claimant = self._claimant
        for number in range(at, len(singles)):
            victim = singles[number]
            if self._looks <= 0 or len(going) >= self._singles_max:
                return None
            if number > at and are_alike(singles[number - 1], victim):
                # What was of no use before is of none now.
                continue
            self._looks -= 1
            if not claimant.may_take(victim):
                continue
            claimant.take(victim)
            going.append(victim)
            after = dict(room)
            charge(after, victim.on(node_id))
            found = self._take_on(node_id, after, number + 1, go_on, going)
            going.pop()
            claimant.give_back(victim)
            if found is not None:
                return found
        return None

    def _holds(self, node_id: str, room: Resource) -> bool:
        """Whether all that was placed on the node fits, in its order."""
        if not self._placed[node_id]:
            return True
        room = dict(room)
        for wanted in self._placed[node_id]:
            if not fits(wanted, room):
                return False
            discharge(room, wanted)
            keep(room, amount_of(wanted))
        return True


def _is_as_large(one: Resource, other: Resource) -> bool:
    return all(one.get(kind, 0) >= n for kind, n in other.items())
