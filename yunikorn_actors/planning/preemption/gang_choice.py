"""Which whole applications go for the asks of one claimant, where single work is not enough.

Of all sets that serve the most of its asks: no work that opted out, then the fewest applications,
then those of which the policy of the asking leaf says the least, if it has one, the greatest of
them first, then the least important, then the least work lost, then today's order. All sets are
tried as far as the bound allows, the small ones first. Beyond it the applications are added one by
one, each time the one that opens most room, and those that turn out to be unnecessary are left out.

What a set is worth depends on the single work that goes beside it. That is taken in order, as
later for each ask; where a guarantee binds it and other work serves more, that is `planned`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import comb
from operator import itemgetter
from typing import NamedTuple

from yunikorn_actors.planning.preemption.device_room import fitting, freed
from yunikorn_actors.planning.preemption.preemptor_ask import (
    Claimant,
    Order,
    Victim,
    in_order,
    ranks_of,
)
from yunikorn_actors.planning.preemption.single_choice import (
    SINGLES_MAX,
    STEPS_MAX,
    SingleChoice,
    served_in_order,
)
from yunikorn_actors.policies.folds import runtime_of
from yunikorn_actors.policies.inputs import NEVER_NS
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource, charge
from yunikorn_actors.values.tags import GPU

SETS_MAX = 4096
"""So many sets are tried: all of them with up to twelve applications."""
WHOLE_MAX = SETS_MAX.bit_length() - 1
"""Of so many applications all sets may be looked at."""
_PARTS_PER_MILLION = 1_000_000

Loss = tuple[int, tuple[Key, ...], int, int, bool, int, tuple[Order, ...]]
"""How many applications go, and what they are."""
Cost = tuple[bool, *Loss]
"""Whether any of it opted out comes first."""


class Gang(NamedTuple):
    victim: Victim
    priority: int
    """Of the most important of its allocations."""
    work: int
    """Run time times size, in parts per million of the partition."""


class Worth(NamedTuple):
    served: int
    rest: float
    """How much of one more place there is on the nodes, added up; it breaks ties alone."""


def gang_of(state: PartitionState, victim: Victim, now_ns: int) -> Gang:
    app = state.applications[victim.allocations[0].spec.application_id]
    priority = max([allocation.spec.priority for allocation in victim.allocations])
    work, size, sized = 0, 0, None
    for allocation in victim.allocations:
        # Members of one gang are alike for the most part.
        if allocation.resource != sized:
            sized = allocation.resource
            size = size_of(state, sized)
        work += run_time_ns(app, allocation, now_ns) // 1_000_000 * size
    return Gang(victim, priority, work)


def run_time_ns(app: Application, allocation: Allocation, now_ns: int) -> int:
    """Return how long it declares to run, or if it declares nothing how long it has run."""
    declared_ns = runtime_of(app, allocation.spec)
    return max(0, now_ns - allocation.allocated_ns) if declared_ns == NEVER_NS else declared_ns


def size_of(state: PartitionState, resource: Resource) -> int:
    """Measure an allocation by the type of which it has the largest share."""
    capacity = state.capacity
    shares = (
        quantity * _PARTS_PER_MILLION // capacity[kind]
        for kind, quantity in resource.items()
        if capacity.get(kind, 0) > 0
    )
    return max(shares, default=0)


def cost_of(gangs: Sequence[Gang]) -> Cost:
    """Compare sets: less is better."""
    return (any(gang.victim.order[0] for gang in gangs), *loss_of(gangs))


def loss_of(gangs: Sequence[Gang]) -> Loss:
    """Compare sets where it is known that something opted out goes, or nothing."""
    orders = [gang.victim.order for gang in gangs]
    return (
        len(gangs),
        ranks_of([gang.victim for gang in gangs]),
        max((gang.priority for gang in gangs), default=0),
        sum(gang.work for gang in gangs),
        any(order[1] for order in orders),
        sum(len(gang.victim.allocations) for gang in gangs),
        tuple(sorted(orders)),
    )


def sets_below(gangs: Sequence[Gang], than: Loss | None) -> Iterator[tuple[Gang, ...]]:
    """Yield all sets that lose less, or simply all, in the order of what they lose."""
    for size in range(len(gangs) + 1 if than is None else min(len(gangs), than[0]) + 1):
        losses = [(loss_of(some), some) for some in combinations(gangs, size)]
        for loss, some in sorted(losses, key=itemgetter(0)):
            if than is None or loss < than:
                yield some


class Choice:
    def __init__(
        self,
        claimant: Claimant,
        rooms: dict[str, Resource],
        singles_on: Callable[[str], list[Victim]],
        count: int,
    ) -> None:
        self._claimant = claimant
        self._wanted = {kind: n for kind, n in claimant.wanted.items() if n > 0}
        self._rooms = rooms
        """Of each node that the ask may use: what is free or comes free, and is not promised."""
        self._count = count
        self._places = {node_id: self._places_in(room) for node_id, room in rooms.items()}
        self._free_places = sum(self._places.values())
        self._singles = {node_id: found for node_id in rooms if (found := singles_on(node_id))}
        singles = [victim for found in self._singles.values() for victim in found]
        self._is_bounded = len(singles) <= SINGLES_MAX and any(
            claimant.is_bounded(victim.leaf) for victim in singles
        )
        self._steps = STEPS_MAX
        self._plans: dict[tuple[str, ...], tuple[int, tuple[Victim, ...]]] = {}
        """Of sets beside which single work in order makes too few places: what makes how many."""
        self._beside: tuple[Victim, ...] = ()
        """The single work beside the set that was looked at last."""
        self.planned: tuple[Victim, ...] = ()
        """The single work that is to go; empty where it goes in order."""

    def of(self, gangs: list[Gang]) -> list[Victim]:
        """Return the applications that have to go; none where single work will do."""
        gangs = sorted(gangs, key=lambda gang: cost_of((gang,)))
        willing = [gang for gang in gangs if not gang.victim.order[0]]
        chosen, worth = self._best_of(willing, opted_out=False)
        opted_out = False
        if worth.served < self._count:
            others, with_others = self._best_of(gangs, opted_out=True)
            if with_others.served > worth.served:
                chosen, worth, opted_out = others, with_others, True
        victims = [gang.victim for gang in chosen]
        if self._is_bounded and worth.served > self._served_in_order(victims, opted_out=opted_out):
            self._worth(chosen, opted_out=opted_out)
            self.planned = self._beside
        return victims

    def _best_of(self, gangs: list[Gang], *, opted_out: bool) -> tuple[Sequence[Gang], Worth]:
        best: Sequence[Gang] = ()
        most = self._worth(best, opted_out=opted_out) or Worth(0, 0)
        tried = 0
        for size in range(1, len(gangs) + 1):
            if most.served >= self._count:
                return best, most
            tried += comb(len(gangs), size)
            if tried > SETS_MAX:
                return self._one_by_one(gangs, best, most, opted_out=opted_out)
            for some in combinations(gangs, size):
                if most.served >= self._count:
                    if size == 1:
                        # They are in the order of their cost: no other one costs less.
                        break
                    if cost_of(some) >= cost_of(best):
                        continue
                worth = self._worth(some, opted_out=opted_out)
                if worth is None or worth.served < most.served:
                    continue
                if worth.served > most.served or cost_of(some) < cost_of(best):
                    best, most = some, worth
        return best, most

    def _one_by_one(
        self, gangs: list[Gang], best: Sequence[Gang], most: Worth, *, opted_out: bool
    ) -> tuple[Sequence[Gang], Worth]:
        """Add what opens most room; of what opens the same, what costs least."""
        left, now = list(gangs), Worth(0, 0)
        added: list[Gang] = []
        while left and now.served < self._count:
            after = [(self._worth([*added, gang], opted_out=opted_out), gang) for gang in left]
            possible = [(worth, gang) for worth, gang in after if worth is not None]
            if not possible:
                break
            # The first of several that are equal: they are in the order of their cost.
            worth, gang = max(possible, key=lambda item: item[0])
            if worth <= now:
                break
            added.append(gang)
            left.remove(gang)
            now = worth
        for gang in sorted(added, key=lambda gang: cost_of((gang,)), reverse=True):
            rest = [other for other in added if other is not gang]
            without = self._worth(rest, opted_out=opted_out)
            if without is not None and without.served >= now.served:
                added, now = rest, without
        return (added, now) if now.served > most.served else (best, most)

    # -- what a set is worth

    def _worth(self, gangs: Iterable[Gang], *, opted_out: bool) -> Worth | None:
        """Say how many asks find room when these are gone; None if they may not go together."""
        claimant = self._claimant
        taken: list[Victim] = []
        worth = None
        for gang in gangs:
            if not claimant.may_take(gang.victim):
                break
            claimant.take(gang.victim)
            taken.append(gang.victim)
        else:
            worth = self._with_singles(taken, opted_out=opted_out)
        for victim in taken:
            claimant.give_back(victim)
        return worth

    def _with_singles(self, gone: list[Victim], *, opted_out: bool) -> Worth:
        rooms: dict[str, Resource] = {}
        for victim in gone:
            for allocation in victim.allocations:
                node_id = allocation.node_id
                if node_id in self._rooms:
                    if node_id not in rooms:
                        rooms[node_id] = dict(self._rooms[node_id])
                    charge(rooms[node_id], freed(allocation))
        places = self._free_places
        rest = 0.0
        for node_id, room in rooms.items():
            places += self._places_in(room) - self._places[node_id]
            rest += self._part_of_a_place(room)
        taken: list[Victim] = []
        if places < self._count and self._singles:
            places += self._made_by_singles(gone, rooms, places, taken, opted_out=opted_out)
        served = min(places, self._count, self._claimant.most_asks(self._count))
        self._beside = tuple(taken)
        for victim in taken:
            self._claimant.give_back(victim)
        return Worth(served, rest)

    def _made_by_singles(
        self,
        gone: list[Victim],
        rooms: dict[str, Resource],
        places: int,
        taken: list[Victim],
        *,
        opted_out: bool,
    ) -> int:
        """Count the places that single victims make beside these, and take them."""
        may_go = _beside(gone, opted_out=opted_out)
        made, is_bound = self._made_in_order(may_go, rooms, places, taken)
        if not is_bound or places + made >= self._count or not self._is_bounded:
            return made
        for victim in taken:
            self._claimant.give_back(victim)
        plan = self._plans.get(_names_of(gone))
        if plan is None:
            usable = {node_id: [*filter(may_go, it)] for node_id, it in self._singles.items()}
            choice = SingleChoice(
                self._claimant, self._places_in, self._rooms | rooms, usable, self._steps
            )
            plan = choice.more_than(made, self._count - places), choice.best or tuple(taken)
            self._steps, self._plans[_names_of(gone)] = choice.steps, plan
        made, taken[:] = plan
        for victim in taken:
            self._claimant.take(victim)
        return made

    def _made_in_order(
        self,
        may_go: Callable[[Victim], bool],
        rooms: dict[str, Resource],
        places: int,
        taken: list[Victim],
    ) -> tuple[int, bool]:
        """Count the places, and say whether some work may not go because of what went before."""
        claimant, made, is_bound = self._claimant, 0, False
        for node_id, singles in self._singles.items():
            room = dict(rooms.get(node_id) or self._rooms[node_id])
            had = self._places_in(room)
            tried: list[Victim] = []
            for victim in singles:
                if places + made >= self._count:
                    return made, is_bound
                if not may_go(victim):
                    continue
                if not claimant.may_take(victim):
                    is_bound = True
                    continue
                claimant.take(victim)
                tried.append(victim)
                charge(room, victim.on(node_id))
                if (has := self._places_in(room)) > had:
                    made += has - had
                    had = has
                    taken.extend(tried)
                    tried = []
            for victim in tried:
                claimant.give_back(victim)
        return made, is_bound

    def _served_in_order(self, gone: list[Victim], *, opted_out: bool) -> int:
        """Say how many asks find room if each takes the single work that is first in order."""
        may_go = _beside(gone, opted_out=opted_out)
        rooms = {node_id: dict(room) for node_id, room in self._rooms.items()}
        for it in (it for victim in gone for it in victim.allocations if it.node_id in rooms):
            charge(rooms[it.node_id], freed(it))
        singles = {node_id: [*filter(may_go, self._singles.get(node_id, ()))] for node_id in rooms}
        for victim in gone:
            self._claimant.take(victim)
        served = served_in_order(self._claimant, self._places_in, rooms, singles, self._count)
        for victim in gone:
            self._claimant.give_back(victim)
        return served

    def _places_in(self, room: Resource) -> int:
        places = max(0, min(room.get(kind, 0) // n for kind, n in self._wanted.items()))
        return fitting(self._wanted, room, places) if GPU in self._wanted else places

    def _part_of_a_place(self, room: Resource) -> float:
        most = min(room.get(kind, 0) / n for kind, n in self._wanted.items())
        return max(0.0, most - self._places_in(room))


def _beside(gone: Iterable[Victim], *, opted_out: bool) -> Callable[[Victim], bool]:
    """Say which single work may go beside whole applications: nothing of them."""
    absorbed = {victim.allocations[0].spec.application_id for victim in gone}

    def may_go(victim: Victim) -> bool:
        its = victim.allocations[0].spec
        return its.application_id not in absorbed and (opted_out or not victim.order[0])

    return may_go


def _names_of(victims: Iterable[Victim]) -> tuple[str, ...]:
    return tuple(victim.allocations[0].spec.application_id for victim in victims)


def chosen_of(
    state: PartitionState, choice: Choice, whole: Iterable[Victim], now_ns: int
) -> list[Victim]:
    """Return the chosen in the order in which they go."""
    chosen = choice.of([gang_of(state, victim, now_ns) for victim in whole])
    return sorted(chosen, key=in_order)
