"""Which single work goes for the asks of one claimant, beside the gangs that go.

Each ask by itself would take what is best for it, and the next one may take what serves both. In
order, work that goes first may use up what its queue gives, and make less room than other work
would. So all choices are tried for all asks, node after node, as far as the bound allows.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from yunikorn_actors.planning.preemption.claimant import Claimant, Victim
from yunikorn_actors.planning.preemption.device_room import freed
from yunikorn_actors.values.resource import Resource, charge

SINGLES_MAX: Final = 128
"""The most candidates of one choice; of more, only the first in order are looked at."""
STEPS_MAX: Final = 20_000
"""Steps of taking or leaving single work, for all sets of gangs of one choice; and as many
once more to find what costs least beside the best of these sets."""


class Candidate(NamedTuple):
    victim: Victim
    node_id: str
    freed: Resource
    left: Resource
    """What this one and all after it on the node would free."""
    beyond: int
    """How many places the nodes after this one could have."""
    next_other: int
    """The position of the first that is not like it: if it stays, its like stay, too."""


class SingleChoice:
    """The most asks that are served with single work beside one set of gangs that goes."""

    def __init__(
        self,
        claimant: Claimant,
        places_in: Callable[[Resource], int],
        rooms: dict[str, Resource],
        singles: dict[str, list[Victim]],
        places: int,
        steps: int,
    ) -> None:
        self._claimant = claimant
        self._places_in = places_in
        self._rooms = rooms
        """Of the nodes that the asks may use; work elsewhere relieves quotas alone."""
        self._places = places
        """What there is without single work."""
        self._candidates = self._prepare(singles)
        self.steps = steps
        """How many are left."""
        self._most = self._target = 0
        self._is_short = False
        """Whether guarantees or quotas let fewer asks in; what goes can only relieve them."""
        self._taken: list[Victim] = []
        self.best: tuple[Victim, ...] = ()

    def _prepare(self, singles: dict[str, list[Victim]]) -> list[Candidate]:
        """Put them together from the last to the first: each knows what comes after it."""
        # From behind: each candidate has to know what all later ones on its node would free.
        found: list[Candidate] = []
        total, beyond = sum(map(len, singles.values())), 0
        for node_id, victims in reversed(singles.items()):
            left: Resource = {}
            room = self._rooms.get(node_id)
            for victim in reversed(victims):
                its = {} if room is None else victim.on(node_id)
                left = dict(left)
                charge(left, its)
                # The position is counted from the front, because the search walks forwards.
                at = total - len(found) - 1
                after = found[-1] if found else None
                like = (
                    after is not None
                    and after.node_id == node_id
                    and self._goes_before(victim, after.victim)
                )
                next_other = after.next_other if after is not None and like else at + 1
                found.append(Candidate(victim, node_id, its, left, beyond, next_other))
            # Work that frees no node of the asks may still relieve a quota, so it stays a
            # candidate.
            beyond += 0 if room is None else self._gain(room, left)
        found.reverse()
        return found

    def _goes_before(self, first: Victim, other: Victim) -> bool:
        """Whether the other one need not go while the first stays."""
        return are_alike(first, other)

    def _gain(self, room: Resource, more: Resource) -> int:
        after = dict(room)
        charge(after, more)
        return self._places_in(after) - self._places_in(room)

    def more_than(self, served: int, target: int) -> int:
        """Say how many asks can be served, up to a target; `served` of them are known to be."""
        self._most = served
        self._search(target)
        return self._most

    def _search(self, target: int) -> None:
        self._target = target
        # With quotas to meet the number of asks may grow without another place.
        self._is_short = self._claimant.most_asks(target) < target
        self._go(0, {}, self._places)

    # Depth first: the first way found is a lower bound for all others.
    def _go(self, at: int, room: Resource, places: int) -> None:
        served = self._claimant.most_asks(places) if self._is_short else places
        if served > self._most:
            self._keep(served)
        is_enough = max(served, self._most) >= self._target
        if at == len(self._candidates) or is_enough or not self.steps:
            return
        self.steps -= 1
        it = self._candidates[at]
        # The first candidate of a node: its room begins as it is.
        if not at or self._candidates[at - 1].node_id != it.node_id:
            room = self._rooms.get(it.node_id, {})
        # Even with everything that follows no better choice could come of it.
        if self._is_in_vain(at, room, places):
            return
        if self._claimant.may_take(it.victim):
            self._claimant.take(it.victim)
            self._taken.append(it.victim)
            after = dict(room)
            charge(after, it.freed)
            self._go(at + 1, after, places + self._gain(room, it.freed))
            self._taken.pop()
            self._claimant.give_back(it.victim)
        # Not this one: those like it stay, too, as all sets of them are the same.
        self._go(it.next_other, room, places)

    def _keep(self, served: int) -> None:
        self._most, self.best = served, tuple(self._taken)

    def _is_in_vain(self, at: int, room: Resource, places: int) -> bool:
        """Whether nothing that is better than the best so far can come of what follows."""
        it = self._candidates[at]
        return places + self._gain(room, it.left) + it.beyond <= self._most


def in_turn(singles: dict[str, list[Victim]]) -> list[dict[str, list[Victim]]]:
    """Return what is tried in turn: the work that did not opt out, and then all of it."""
    # Work that opted out is tried only where the rest does not do.
    willing = {
        node_id: [victim for victim in its if not victim.order[0]]
        for node_id, its in singles.items()
    }
    return [singles] if willing == singles else [willing, singles]


def are_alike(one: Victim, other: Victim) -> bool:
    """Whether a guarantee, a gang and a node make no difference between them.

    A surplus may have to stay because its gang has lost another member.
    """
    return (
        one.leaf is other.leaf
        and one.spare is other.spare
        and len(one.allocations) == len(other.allocations) == 1
        and (freed(one.allocations[0]) == freed(other.allocations[0]))
    )
