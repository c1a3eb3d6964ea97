"""The single work that costs least, of all that serves as many asks of one claimant.

`SingleChoice` finds how many asks can be served; this compares the sets that serve that many.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from yunikorn_actors.planning.preemption.claimant import (
    NO_IMPORTANCE,
    Claimant,
    Lack,
    Victim,
    ranks_of,
)
from yunikorn_actors.planning.preemption.single_choice import Candidate, SingleChoice, are_alike
from yunikorn_actors.planning.preemption.victim_units import Part
from yunikorn_actors.policies.places import Key
from yunikorn_actors.values.resource import Resource

WorkOf = Callable[[Victim], int]


class Lost(NamedTuple):
    """Of one kind of work; less is better."""

    number: int
    ranks: tuple[Key, ...]
    """What the policy of the asking leaf says of it."""
    importance: int
    """Of the most important."""
    work: int


class Loss(NamedTuple):
    """Compare sets of single work that go: less is better."""

    opted_out: int
    originators: int
    alone: Lost
    surplus: Lost
    of_broken: Lost


def loss_of(victims: Sequence[Victim], work_of: WorkOf) -> Loss:
    opted_out = originators = 0
    parts: tuple[list[Victim], ...] = ([], [], [])
    for victim in victims:
        opted_out += victim.order[0]
        originators += victim.order[1]
        parts[victim.part].append(victim)
    of_broken, surplus, alone = (_lost_by(its, work_of) for its in parts)
    return Loss(opted_out, originators, alone, surplus, of_broken)


def _lost_by(victims: Sequence[Victim], work_of: WorkOf) -> Lost:
    importance = max([victim.importance for victim in victims], default=NO_IMPORTANCE)
    return Lost(len(victims), ranks_of(victims), importance, sum(map(work_of, victims)))


def cheapest_first(victims: Iterable[Victim], work_of: WorkOf) -> list[Victim]:
    """Put the cheapest first, and keep those that are alike together."""
    alike: list[list[Victim]] = []
    for victim in sorted(victims, key=lambda it: (loss_of((it,), work_of), it.order)):
        its = next((its for its in alike if are_alike(its[0], victim)), None)
        if its is None:
            alike.append([victim])
        else:
            its.append(victim)
    return [victim for its in alike for victim in its]


class _Ahead(NamedTuple):
    """What one candidate and all after it could do at best, by how many of them go.

    Only work of no gang counts in these numbers: what else there is may go as well.
    """

    here: list[Resource]
    """By a number of victims, the most that they free on its node: the largest of each type."""
    beyond: list[int]
    """By a number of places, how many have to go for them on the nodes after it."""
    importances: list[int]
    """Of all of them, the least important first."""
    works: list[int]
    """Of all of them, the smallest first."""
    reliefs: list["_Relief"]
    """Of each quota that lets too few asks in."""


class _Relief(NamedTuple):
    """How much less a queue would use without all of them."""

    lack: Lack
    sizes: list[int]
    """Of the work that counts, the smallest first."""
    rest: int
    """Of the other."""

    def with_one(self, victim: Victim) -> "_Relief":
        queue, kind = self.lack
        size = victim.resource.get(kind, 0) if queue in victim.leaf.lineage else 0
        if victim.part is Part.ALONE:
            return self._replace(sizes=sorted([*self.sizes, size]))
        return self._replace(rest=self.rest + size)

    def fewest(self, amount: int) -> int:
        """Say how many have to go for this amount; one more than all if they are too few."""
        amount -= self.rest
        number = 0
        while amount > 0 and number < len(self.sizes):
            number += 1
            amount -= self.sizes[-number]
        return number + (amount > 0)


class LeastChoice(SingleChoice):
    def __init__(
        self,
        claimant: Claimant,
        places_in: Callable[[Resource], int],
        rooms: dict[str, Resource],
        singles: dict[str, list[Victim]],
        places: int,
        steps: int,
        work_of: WorkOf,
    ) -> None:
        its = {node_id: cheapest_first(found, work_of) for node_id, found in singles.items()}
        self._work_of = work_of
        super().__init__(claimant, places_in, rooms, its, places, steps)
        self._least = loss_of((), work_of)
        """Of the best so far."""
        self._ahead: list[_Ahead] = []

    def least_for(self, served: int, known: Sequence[Victim]) -> tuple[Victim, ...]:
        """Return the work that costs least and serves `served` asks, as the known work does."""
        self._most = served - 1
        self._least, self.best = loss_of(known, self._work_of), tuple(known)
        self._ahead = self._look_ahead(served)
        self._search(served)
        return self.best

    def _goes_before(self, first: Victim, other: Victim) -> bool:
        if not super()._goes_before(first, other):
            return False
        costs = (self._cost_of(first), self._cost_of(other))
        return all(one <= another for one, another in zip(*costs, strict=True))

    def _cost_of(self, victim: Victim) -> tuple[bool, bool, int, Key, int, int]:
        opted_out, originator, part = victim.order[:3]
        return opted_out, originator, part, victim.rank, victim.importance, self._work_of(victim)

    def _look_ahead(self, served: int) -> list[_Ahead]:
        found: list[_Ahead] = []
        beyond = [0, *[len(self._candidates) + 1] * served]
        importances: list[int] = []
        works: list[int] = []
        after: Candidate | None = None
        largest: dict[str, list[int]] = {}
        rest: Resource = {}
        reliefs = [_Relief(lack, [], 0) for lack in self._claimant.lacks_quota(served)]
        for it in reversed(self._candidates):
            if after is None or after.node_id != it.node_id:
                if after is not None:
                    beyond = self._with_node(after.node_id, found[-1])
                largest, rest = {}, {}
            if it.victim.part is Part.ALONE:
                insort(importances, it.victim.importance)
                insort(works, self._work_of(it.victim))
            for kind, size in it.freed.items():
                if it.victim.part is Part.ALONE:
                    insort(largest.setdefault(kind, []), size)
                else:
                    rest[kind] = rest.get(kind, 0) + size
            reliefs = [relief.with_one(it.victim) for relief in reliefs]
            found.append(_Ahead(_sums(largest, rest), beyond, [*importances], [*works], reliefs))
            after = it
        found.reverse()
        return found

    def _with_node(self, node_id: str, first: _Ahead) -> list[int]:
        room = self._rooms.get(node_id)
        if room is None:
            return first.beyond
        return [self._fewest(room, number, first) for number in range(len(first.beyond))]

    def _fewest(self, room: Resource, places: int, ahead: _Ahead) -> int:
        """Say how many have to go at least for these places, on its node and after it."""
        fewest = ahead.beyond[max(0, places)]
        for number, freed in enumerate(ahead.here):
            if number >= fewest:
                break
            left = max(0, places - self._gain(room, freed))
            fewest = min(fewest, number + ahead.beyond[left])
        return fewest

    def _keep(self, _: int) -> None:
        loss = loss_of(self._taken, self._work_of)
        if loss < self._least:
            self._least, self.best = loss, tuple(self._taken)

    def _is_in_vain(self, at: int, room: Resource, places: int) -> bool:
        if super()._is_in_vain(at, room, places):
            return True
        ahead, now = self._ahead[at], loss_of(self._taken, self._work_of)
        more = self._fewest(room, self._target - places, ahead)
        for relief in ahead.reliefs:
            more = max(more, relief.fewest(self._claimant.lacking(relief.lack, self._target)))
        if more > len(ahead.works):
            return True
        importance = ahead.importances[more - 1] if more else NO_IMPORTANCE
        alone = now.alone._replace(
            number=now.alone.number + more,
            importance=max(now.alone.importance, importance),
            work=now.alone.work + sum(ahead.works[:more]),
        )
        return now._replace(alone=alone) >= self._least


def _sums(largest: dict[str, list[int]], rest: Resource) -> list[Resource]:
    """Add up the largest of each type, by how many there are."""
    most = max(map(len, largest.values()), default=0)
    return [
        rest | {kind: rest.get(kind, 0) + sum(sizes[-n:]) for kind, sizes in largest.items() if n}
        for n in range(most + 1)
    ]
