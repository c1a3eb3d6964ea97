"""The choice of gangs: which whole applications go where single work is not enough for a claimant.

Of all sets that serve the most of its asks: the fewest whole gangs, then the fewest applications of
no gang that go as one, then of what is left of broken gangs; then those of which the policy of the
asking leaf says the least, if it has one, the greatest of them first, then the least important,
then the least work lost, then the order of single work: what opted out and originators last, the
newest first. All sets are tried as far as the bound allows, the small ones first. Beyond it the
applications are added one by one, each time the one that opens most room, and those that turn out
to be unnecessary are left out.

What a set is worth depends on the single work that goes beside it. That is taken in order: first
what makes room on nodes, then what quotas need that let fewer asks in than there is room for. Where
a guarantee binds it, all choices are tried. What costs least beside the best set is `planned`;
where there is too much single work for that, each ask takes what is first in order.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, combinations
from math import comb
from operator import itemgetter
from typing import NamedTuple

from yunikorn_actors.planning.preemption.claimant import (
    NO_IMPORTANCE,
    Claimant,
    Order,
    Victim,
    in_order,
    ranks_of,
)
from yunikorn_actors.planning.preemption.device_room import fitting, freed
from yunikorn_actors.planning.preemption.least_choice import LeastChoice
from yunikorn_actors.planning.preemption.single_choice import (
    SINGLES_MAX,
    STEPS_MAX,
    SingleChoice,
    in_turn,
)
from yunikorn_actors.planning.preemption.victim_units import Part, is_set_to_go_as_one, kind_of
from yunikorn_actors.policies.folds import runtime_of
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource, charge
from yunikorn_actors.values.tags import GPU

SETS_MAX = 4096
"""Sets that are tried, at most: all of them with up to twelve applications."""
WHOLE_MAX = SETS_MAX.bit_length() - 1
"""The most applications of which all sets may be looked at."""
LOOKS_MAX = SETS_MAX * SINGLES_MAX
"""Looks at single victims for all sets, at most; the more victims, the fewer sets."""
_PARTS_PER_MILLION = 1_000_000


class Loss(NamedTuple):
    """Compare sets of applications that go: less is better."""

    gangs: int
    """Those that are whole."""
    others: int
    """Applications of no gang, where their leaf has them go as one."""
    broken: int
    ranks: tuple[Key, ...]
    """What the policy of the asking leaf says of them."""
    importance: int
    """Of the most important."""
    work: int
    opted_out: int
    """What of it did, or of the single work that goes beside it."""
    originators: int
    allocations: int
    orders: tuple[Order, ...]

    @property
    def applications(self) -> int:
        return self.gangs + self.others + self.broken


class Gang(NamedTuple):
    victim: Victim
    kind: Part
    """A whole gang; or another application, or what is left of a gang, that goes as one."""
    work: int
    """Run time times size, in parts per million of the partition."""


class Worth(NamedTuple):
    served: int
    rest: float
    """How much of one more place there is on the nodes, added up; it breaks ties alone."""


def gang_of(state: PartitionState, victim: Victim, now_ns: int) -> Gang:
    app = state.applications[victim.allocations[0].spec.application_id]
    work, size, sized = 0, 0, None
    for allocation in victim.allocations:
        # Members of one gang are alike for the most part.
        if allocation.resource != sized:
            sized = allocation.resource
            size = size_of(state, sized)
        work += run_time_ns(app, allocation, now_ns) // 1_000_000 * size
    is_set = is_set_to_go_as_one(app)
    kind = kind_of(app, victim.allocations) if is_set else Part.OF_WHOLE
    return Gang(victim, kind, work)


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


def loss_of(gangs: Sequence[Gang], beside: Iterable[Victim] = ()) -> Loss:
    orders = [gang.victim.order for gang in gangs]
    kinds = Counter([gang.kind for gang in gangs])
    return Loss(
        kinds[Part.OF_WHOLE],
        kinds[Part.ALONE],
        kinds[Part.OF_BROKEN],
        ranks_of([gang.victim for gang in gangs]),
        max((gang.victim.importance for gang in gangs), default=NO_IMPORTANCE),
        sum(gang.work for gang in gangs),
        sum(order[0] for order in orders) + sum(victim.order[0] for victim in beside),
        sum(order[1] for order in orders),
        sum(len(gang.victim.allocations) for gang in gangs),
        tuple(sorted(orders)),
    )


def sets_below(gangs: Sequence[Gang], than: Loss | None) -> Iterator[tuple[Gang, ...]]:
    """Yield all sets that lose no more, or simply all, in the order of what they lose."""
    are_alike = _are_alike(gangs)
    # More whole gangs lose more: nothing larger than the best is looked at.
    most = min(len(gangs), than.gangs) if than is not None and are_alike else len(gangs)
    by_size = (combinations(gangs, size) for size in range(most + 1))
    # Of more whole gangs more is lost, whichever they are. Other applications weigh less than any.
    for sets in by_size if are_alike else [chain.from_iterable(by_size)]:
        for loss, some in sorted(((loss_of(it), it) for it in sets), key=itemgetter(0)):
            if than is None or loss <= than:
                yield some


def _are_alike(gangs: Sequence[Gang]) -> bool:
    """Whether all are whole gangs, so that a set of fewer loses less."""
    return all(gang.kind is Part.OF_WHOLE for gang in gangs)


class Choice:
    def __init__(
        self,
        claimant: Claimant,
        rooms: dict[str, Resource],
        singles_on: Callable[[str], list[Victim]],
        count: int,
        nodes: Iterable[str] = (),
        work_of: Callable[[Victim], int] = lambda _: 0,
        *,
        is_last_resort: bool = False,
    ) -> None:
        """Work on the other nodes is looked at where quotas are short.

        For one ask single work is planned as the last resort only: it takes what is best by its
        own order.
        """
        self._is_last_resort = is_last_resort
        self._claimant = claimant
        self._wanted = {kind: n for kind, n in claimant.wanted.items() if n > 0}
        self._rooms = rooms
        """Of each node that the ask may use: what is free or comes free, and is not promised."""
        self._count = claimant.most_entitled(count)
        # Without anything gone: sets are compared with this.
        self._places = {node_id: self._places_in(room) for node_id, room in rooms.items()}
        self._free_places = sum(self._places.values())
        self._singles = {node_id: found for node_id in rooms if (found := singles_on(node_id))}
        self._singles_on = singles_on
        self._other_nodes = [node_id for node_id in nodes if node_id not in rooms]
        self._elsewhere: list[dict[str, list[Victim]]] = []
        found = [victim for its in self._singles.values() for victim in its]
        self._turns = in_turn(self._singles)
        self._work_of = cache(work_of)
        self._is_small = len(found) <= SINGLES_MAX
        self._is_bounded = self._is_small and any(map(claimant.is_bounded, found))
        self._looks_each = max(1, len(found))
        """At single victims, for one set."""
        self._steps = STEPS_MAX
        self._plans: dict[tuple[int, tuple[str, ...]], tuple[int, tuple[Victim, ...]]] = {}
        """Of sets beside which single work in order makes too few places: what makes how many."""
        self._beside: tuple[Victim, ...] = ()
        """The single work beside the set that was looked at last."""
        self.planned: tuple[Victim, ...] = ()
        """The single work that is to go; empty where it goes in order."""

    def of(self, gangs: list[Gang]) -> list[Victim]:
        """Return the applications that have to go; none where single work will do."""
        # Cheapest first: the first set that serves all is the best of its size.
        gangs = sorted(gangs, key=lambda gang: loss_of((gang,)))
        chosen, worth = self._best_of(gangs)
        victims = [gang.victim for gang in chosen]
        # A single ask takes what is best in order, unless this is the last resort.
        if self._is_small and (self._count > 1 or self._is_last_resort):
            self.planned = self._least_beside(chosen, worth.served)
        return victims

    def _least_beside(self, gangs: Sequence[Gang], served: int) -> tuple[Victim, ...]:
        """Return the single work that costs least, of all with which `served` asks are served."""
        self._worth(gangs)
        if not self._beside:
            return ()
        # Gone while single work is chosen: it is chosen beside them.
        gone = [gang.victim for gang in gangs]
        for victim in gone:
            self._claimant.take(victim)
        rooms, (places, _) = self._without(gone)
        singles = self._turns[-1]
        if self._claimant.most_asks(served) < served:
            singles = self._anywhere(len(self._turns) - 1, singles)
        absorbed = _names_of(gone)
        usable = {node_id: _beside(absorbed, its) for node_id, its in singles.items()}
        choice = LeastChoice(
            self._claimant, self._places_in, self._rooms | rooms, usable, places, STEPS_MAX,
            self._work_of,
        )  # fmt: skip
        least = choice.least_for(served, self._beside)
        for victim in gone:
            self._claimant.give_back(victim)
        return least

    def _best_of(self, gangs: list[Gang]) -> tuple[Sequence[Gang], Worth]:
        best: Sequence[Gang] = ()
        most = self._worth(best) or Worth(0, 0)
        least = loss_of(best, self._beside)
        tried, are_alike = 0, _are_alike(gangs)
        for size in range(1, len(gangs) + 1):
            # All are served: of whole gangs alone a larger set only loses more.
            if most.served >= self._count and (are_alike or not best):
                return best, most
            tried += comb(len(gangs), size)
            # Too many sets, or too much to look at for each.
            if tried > SETS_MAX or tried * self._looks_each > LOOKS_MAX:
                return self._one_by_one(gangs, best, most)
            for some in combinations(gangs, size):
                # Serves all and loses no more: only a cheaper set is of interest.
                if most.served >= self._count and loss_of(some) >= least:
                    if size == 1:
                        # They are in the order of what they lose: no other one loses less.
                        break
                    continue
                worth = self._worth(some)
                if worth is None or worth.served < most.served:
                    continue
                loss = loss_of(some, self._beside)
                if worth.served > most.served or loss < least:
                    best, most, least = some, worth, loss
        return best, most

    def _one_by_one(
        self, gangs: list[Gang], best: Sequence[Gang], most: Worth
    ) -> tuple[Sequence[Gang], Worth]:
        """Add what opens most room; of what opens the same, what loses least.

        Where the bound does not allow all, those are compared that open most room by themselves.
        """
        left, now = list(gangs), Worth(0, 0)
        added: list[Gang] = []
        looks = LOOKS_MAX
        while left and now.served < self._count:
            # Shared out among the gangs, so that each gets a look.
            some = self._first_of(left, max(1, looks // (self._looks_each * len(left))))
            looks -= self._looks_each * len(some)
            best_of_all = None
            for gang in some:
                worth = self._worth([*added, gang])
                # The first of several that are equal: they are in the order of what they lose.
                if worth is not None and worth > now:
                    best_of_all, now = gang, worth
            if best_of_all is None:
                left = [gang for gang in left if gang not in some]
            else:
                added.append(best_of_all)
                left.remove(best_of_all)
        # What others have made unnecessary stays, the dearest first.
        for gang in sorted(added, key=lambda gang: loss_of((gang,)), reverse=True):
            rest = [other for other in added if other is not gang]
            without = self._worth(rest)
            if without is not None and without.served >= now.served:
                added, now = rest, without
        return (added, now) if now.served > most.served else (best, most)

    def _first_of(self, gangs: list[Gang], number: int) -> list[Gang]:
        """Return those that open most room without single work, in the given order."""
        if number >= len(gangs):
            return gangs
        by_room = sorted(gangs, key=lambda gang: self._without([gang.victim])[1], reverse=True)
        return [gang for gang in gangs if gang in by_room[:number]]

    # -- what a set is worth

    def _worth(self, gangs: Iterable[Gang]) -> Worth | None:
        """Say how many asks find room when these are gone; None if they may not go together."""
        claimant = self._claimant
        taken: list[Victim] = []
        worth = None
        # In order, each with those before it gone; one that may not go ends the set.
        for gang in gangs:
            if not claimant.may_take(gang.victim):
                break
            claimant.take(gang.victim)
            taken.append(gang.victim)
        else:
            worth = self._with_singles(taken)
        for victim in taken:
            claimant.give_back(victim)
        return worth

    def _without(self, gone: Iterable[Victim]) -> tuple[dict[str, Resource], Worth]:
        """Return the rooms of the nodes on which these run, and all places without single work."""
        rooms: dict[str, Resource] = {}
        for victim in gone:
            for allocation in victim.allocations:
                node_id = allocation.node_id
                # Only nodes that the ask may use.
                if node_id in self._rooms:
                    if node_id not in rooms:
                        rooms[node_id] = dict(self._rooms[node_id])
                    charge(rooms[node_id], freed(allocation))
        places, rest = self._free_places, 0.0
        for node_id, room in rooms.items():
            places += self._places_in(room) - self._places[node_id]
            rest += self._part_of_a_place(room)
        return rooms, Worth(places, rest)

    def _with_singles(self, gone: list[Victim]) -> Worth:
        rooms, (places, rest) = self._without(gone)
        self._beside, most = (), -1
        for turn, singles in enumerate(self._turns):
            served, beside = self._served_with(turn, singles, gone, rooms, places)
            # The first way that serves all is enough; each takes victims in another order.
            if served > most:
                most, self._beside = served, beside
            if most >= self._count:
                break
        return Worth(most, rest)

    def _served_with(
        self,
        turn: int,
        singles: dict[str, list[Victim]],
        gone: list[Victim],
        rooms: dict[str, Resource],
        places: int,
    ) -> tuple[int, tuple[Victim, ...]]:
        """Count the asks that are served with single work beside these, and say which goes."""
        claimant, absorbed = self._claimant, _names_of(gone)
        made, taken, is_bound = self._made_in_order(singles, frozenset(absorbed), rooms, places)
        places_with = min(places + made, self._count)
        served = claimant.most_asks(places_with)
        # Room there is, but a quota lets nothing in: victims below it help on any node.
        if served < places_with:
            # For these there is room, and a quota lets nothing more in.
            singles = self._anywhere(turn, singles)
            others = (
                victim
                for its in singles.values()
                for victim in _beside(absorbed, its)
                if victim not in taken
            )
            served, more = claimant.relieve(sorted(others, key=in_order), served, places_with)
            is_bound = served < places_with
            taken += more
        for victim in taken:
            claimant.give_back(victim)
        # Nothing binds: what was taken in order is as good as any choice.
        if not is_bound or served >= self._count or not self._is_bounded:
            return served, tuple(taken)
        plan = self._plans.get((turn, absorbed))
        # The same set comes up again with other numbers of asks.
        if plan is None:
            usable = {node_id: _beside(absorbed, its) for node_id, its in singles.items()}
            choice = SingleChoice(
                claimant, self._places_in, self._rooms | rooms, usable, places, self._steps
            )
            plan = choice.more_than(served, self._count), choice.best or tuple(taken)
            self._steps, self._plans[turn, absorbed] = choice.steps, plan
        return plan

    def _anywhere(self, turn: int, singles: dict[str, list[Victim]]) -> dict[str, list[Victim]]:
        """Add what runs on nodes that the asks cannot use: it relieves quotas as well."""
        if not self._elsewhere:
            found = {node_id: self._singles_on(node_id) for node_id in self._other_nodes}
            self._elsewhere = in_turn(found)
        is_last = turn == len(self._turns) - 1
        return singles | self._elsewhere[-1 if is_last else 0]

    def _made_in_order(
        self,
        singles: dict[str, list[Victim]],
        absorbed: frozenset[str],
        rooms: dict[str, Resource],
        places: int,
    ) -> tuple[int, list[Victim], bool]:
        """Count the places, take what makes them, and say whether some work may not go for that."""
        claimant, made, is_bound = self._claimant, 0, False
        taken: list[Victim] = []
        for node_id, victims in singles.items():
            room = dict(rooms.get(node_id) or self._rooms[node_id])
            had = self._places_in(room)
            tried: list[Victim] = []
            # Enough places: what is left stays.
            for victim in victims:
                if places + made >= self._count:
                    return made, taken, is_bound
                if victim.allocations[0].spec.application_id in absorbed:
                    continue
                if not claimant.may_take(victim):
                    is_bound = True
                    continue
                claimant.take(victim)
                tried.append(victim)
                charge(room, victim.on(node_id))
                # Only what opened a place was worth taking.
                if (has := self._places_in(room)) > had:
                    made += has - had
                    had = has
                    taken.extend(tried)
                    tried = []
            for victim in tried:
                claimant.give_back(victim)
        return made, taken, is_bound

    def _places_in(self, room: Resource) -> int:
        places = max(0, min(room.get(kind, 0) // n for kind, n in self._wanted.items()))
        return fitting(self._wanted, room, places) if GPU in self._wanted else places

    def _part_of_a_place(self, room: Resource) -> float:
        most = min(room.get(kind, 0) / n for kind, n in self._wanted.items())
        return max(0.0, most - self._places_in(room))


def _beside(absorbed: Container[str], singles: Iterable[Victim]) -> list[Victim]:
    """Return the single work that may go beside whole applications: nothing of them."""
    return [it for it in singles if it.allocations[0].spec.application_id not in absorbed]


def _names_of(victims: Iterable[Victim]) -> tuple[str, ...]:
    return tuple(victim.allocations[0].spec.application_id for victim in victims)


def chosen_of(
    state: PartitionState, choice: Choice, whole: Iterable[Victim], now_ns: int
) -> list[Victim]:
    """Return the chosen in the order in which they go."""
    chosen = choice.of([gang_of(state, victim, now_ns) for victim in whole])
    return sorted(chosen, key=in_order)
