"""The claimant: one ask that may preempt, what it lacks, and which work may be a victim for it.

The expected usage includes the ask from the start, so it shows what a queue lacks or may give. The
planner finds victims with this, and Context checks with it what the planner found.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from yunikorn_actors.planning.preemption.device_room import fits, freed, keep
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import (
    ExpectedUsage,
    Reach,
    bounds_of,
    excess,
    guards,
    importance,
    is_movable,
    is_named_by,
    is_reached,
    may_be_preempted,
    may_give,
    order_of,
    reach_of,
    share_a_guarantee,
)
from yunikorn_actors.planning.preemption.victim_units import Part, Units, fits_beyond
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec, Reservation, ReservationKey
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.device_fit import could_hold, promised_devices
from yunikorn_actors.state.gangs import is_all_there
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.state.limits import Limit, limits_of
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.reserved_nodes import kept_for
from yunikorn_actors.values.resource import Resource, add, charge, discharge, match_any

NO_IMPORTANCE: Final = -(1 << 40)
"""Less than that of any work."""
Lack = tuple[Queue, str]
Amounts = tuple[tuple[str, int], ...]
Order = tuple[Any, ...]
"""As of an allocation, but what hurts least, and what a policy says, come before what is newer."""


class Victim:
    """A candidate, or one that was picked: an allocation, or all of an application."""

    __slots__ = (
        "allocations",
        "has_budget",
        "importance",
        "leaf",
        "order",
        "part",
        "rank",
        "resource",
        "spare",
    )

    def __init__(
        self,
        state: PartitionState,
        allocations: tuple[Allocation, ...],
        part: Part = Part.ALONE,
        spare: Resource | None = None,
    ) -> None:
        """Of several the newest comes first."""
        first = allocations[0]
        app = state.applications[first.spec.application_id]
        self.allocations = allocations
        self.leaf = app.queue
        self.has_budget = app.queue.properties.preemption_budget.is_set
        self.part = part
        self.spare = spare
        """Of a surplus what its gang has left beyond its need: all of that gang change this."""
        self.resource = first.resource
        order = order_of(first, app.asks[first.spec.key])
        # Opted out and originators last, then by part, then by time: what hurts least goes first.
        self.order: Order = (*order[:2], part, *order[2:])
        if len(allocations) > 1:
            self.resource = {}
            for allocation in allocations:
                charge(self.resource, allocation.resource)
            opted_out = not all(it.spec.allow_preempt_self for it in allocations)
            # One originator among them weighs as all: the application would lose its first task.
            originator = any(it.spec.originator for it in allocations)
            self.order = (opted_out, originator, part, *order[2:])
        self.rank: Key = ()
        """What a policy says of it, if one does."""
        self.importance = max([it.spec.priority for it in allocations])
        """By its most important allocation; as the claimant sees it, once that is known."""

    def see_from(self, asking: Queue, priority: int) -> None:
        """Judge the victim's importance as the claimant sees it; the less important goes first."""
        # Seen from the asking queue: priorities pass fences and offsets on the way.
        self.importance = importance(asking, priority, self.leaf, self.importance)
        self.order = (*self.order[:3], self.importance, *self.order[3:])

    def rank_by(self, key: Key) -> None:
        """Let a policy decide what hurts the least decides so far, before what is newer."""
        self.rank = key
        self.order = (*self.order[:3], key, *self.order[3:])

    def on(self, node_id: str) -> Resource:
        """Return what comes free on a node when it goes."""
        if len(self.allocations) == 1:
            first = self.allocations[0]
            return freed(first) if first.node_id == node_id else {}
        room: Resource = {}
        for allocation in self.allocations:
            # Several may run on one node, others elsewhere.
            if allocation.node_id == node_id:
                charge(room, freed(allocation))
        return room

    def relieves(self, lacks: Iterable[Lack]) -> bool:
        """Whether a queue that lets no more in uses less of what it lacks when this is gone."""
        # Where a maximum is reached, room on a node is of no use: something below that queue has to
        # go.
        return any(
            queue in self.leaf.lineage and self.resource.get(kind, 0) > 0 for queue, kind in lacks
        )

    @property
    def is_whole(self) -> bool:
        """Whether a whole application goes, of which nothing goes by itself."""
        return self.part is Part.OF_WHOLE


def victims_of(
    state: PartitionState,
    allocations: Sequence[Allocation],
    gone: Container[str] = (),
    back: Container[str] = (),
) -> list[Victim]:
    """Put together those that go as one, in the order of the first of each.

    `gone`: allocations that go before these. `back`: allocations that count as if they had not
    been asked back.
    """
    found, named = [], dict.fromkeys([it.uuid for it in allocations])
    units = Units(gone, back, first=lambda _, it: it.uuid not in named)
    seen: dict[str, None] = {}
    for allocation in allocations:
        if allocation.uuid in seen:
            continue
        app = state.applications[allocation.spec.application_id]
        # All of a unit named: it goes as one. A part named: part of a whole, which the rules
        # refuse.
        part = units.part_of(app, allocation)
        whole = () if part is Part.ALONE else units.whole(app)
        if whole and all(it.uuid in named for it in whole):
            seen.update(dict.fromkeys([it.uuid for it in whole]))
            found.append(Victim(state, whole, Part.OF_WHOLE))
        else:
            part = Part.FROM_WHOLE if part is Part.OF_WHOLE else part
            found.append(Victim(state, (allocation,), part))
    return found


class Claimant:
    def __init__(
        self,
        state: PartitionState,
        usage: ExpectedUsage,
        throttle: Throttle,
        leaf: Queue,
        spec: AskSpec,
    ) -> None:
        self._state = state
        self.usage = usage
        self._throttle = throttle
        self.leaf = leaf
        self.wanted = spec.resource
        self.priority = spec.priority
        self._bounds = bounds_of(leaf, self.wanted)
        self._bounded = [it for it in leaf.lineage if it.path in self._bounds]
        """The queues whose guarantees bound it, the leaf first."""
        self._guards: dict[str, tuple[Queue, ...]] = {}
        """By the path of a leaf that gives."""
        self._claims_in_vain = self.is_above_a_guarantee()
        # Counted as used before anything is asked: what the ask lacks shows as an excess.
        usage.add(leaf, self.wanted)
        reach = reach_of(leaf, spec, usage, self._bounds)
        self.reach: Reach = {
            path: limit
            for path, limit in reach.items()
            if not share_a_guarantee(leaf, state.queues[path])
        }

    def withdraw(self) -> None:
        self.usage.take(self.leaf, self.wanted)

    def is_above_a_guarantee(self) -> bool:
        """Whether a queue that entitles the ask uses more than its guarantee.

        If it does before the ask is counted as used, victims below that queue do not mend it, and
        the ask claims in vain. A queue exactly at its guarantee may be shared anew among its
        children.
        """
        for level in self._bounded:
            if excess(self._bounds[level.path], self.usage.of(level), self.wanted):
                return True
        return False

    @property
    def is_hopeless(self) -> bool:
        """Nothing entitles it, a guarantee is used up or exceeded, or nobody is in reach."""
        own = excess(self._bounds.get(self.leaf.path), self.usage.of(self.leaf), self.wanted)
        return bool(not self._bounds or not self.reach or own or self._claims_in_vain)

    def may_have(self, victims: Sequence["Victim"], *, quotas: bool = False) -> bool:
        """Whether these may go together, one after the other, for this ask.

        Both the search and Context ask this about the victims as they are proposed, so Context
        refuses no choice of the search for any other reason than newer facts. Each victim is
        checked with those before it gone: two that are harmless alone may take a queue below its
        guarantee together, and a choice that leaves one out is another choice. On demand the maxima
        are asked, too.
        """
        # Taken one after the other, and given back: each is judged with those before it gone.
        taken: list[Victim] = []
        allowed = not self.is_hopeless
        if allowed:
            for victim in victims:
                if not self.may_be_victim(victim) or not self.may_take(victim):
                    allowed = False
                    break
                self.take(victim)
                taken.append(victim)
        # When all are gone the guarantees that entitle the ask must not be exceeded.
        allowed = allowed and not self.is_above_a_guarantee()
        allowed = allowed and not (quotas and any(self.lacks_quota()))
        for victim in taken:
            self.give_back(victim)
        return allowed

    # -- queues

    def lacks_quota(self, asks: int = 1) -> Iterator[Lack]:
        """Yield what keeps the ask out though a node has room, or the last of several like it."""
        for level in self.leaf.lineage:
            limit = self._state.capacity if level.parent is None else level.spec.max
            used = self.usage.of(level)
            # The ask itself is counted already.
            if asks > 1:
                used = add(used, {kind: n * (asks - 1) for kind, n in self.wanted.items()})
            for kind in excess(limit, used, self.wanted):
                yield level, kind

    def lacking(self, lack: Lack, asks: int) -> int:
        """Say by how much this number of asks exceeds the limit that lets no more in."""
        level, kind = lack
        limit = self._state.capacity if level.parent is None else level.spec.max or {}
        coming = self.wanted.get(kind, 0) * (asks - 1)
        return self.usage.of(level).get(kind, 0) + coming - limit.get(kind, 0)

    def most_entitled(self, count: int) -> int:
        """Say how many asks like this one the guarantee of their leaf is for, whatever goes."""
        return max(0, self._most_within(self._bounds.get(self.leaf.path), self.leaf, count))

    def most_asks(self, count: int) -> int:
        """Say how many asks like this one the guarantees and the quotas have room for."""
        for level in self.leaf.lineage:
            limit = self._state.capacity if level.parent is None else level.spec.max
            count = self._most_within(limit, level, count)
            count = self._most_within(self._bounds.get(level.path), level, count)
        return max(0, count)

    def _most_within(self, bound: Resource | None, level: Queue, count: int) -> int:
        if bound:
            used = self.usage.of(level)
            for kind, size in self.wanted.items():
                if size > 0 and kind in bound:
                    # One of them is counted as used.
                    count = min(count, (bound[kind] - used.get(kind, 0)) // size + 1)
        return count

    # -- victims

    def is_bounded(self, victim: Victim) -> bool:
        """Whether a guarantee, a budget or its gang may let only a part of its like go."""
        # Only then does it matter which of several goes.
        is_surplus = victim.spare is not None
        return is_surplus or victim.has_budget or bool(self._guards_of(victim.leaf))

    def _guards_of(self, leaf: Queue) -> tuple[Queue, ...]:
        # The search asks it of each candidate, with each set of gangs.
        found = self._guards.get(leaf.path)
        if found is None:
            found = self._guards[leaf.path] = guards(self.leaf, leaf)
        return found

    def is_within_reach(self, allocation: Allocation, leaf: Queue) -> bool:
        """Whether it is of use, and only the throttle and guarantees may keep it from going."""
        return may_be_preempted(allocation, self.wanted) and is_reached(
            self.reach, leaf, allocation.spec.priority
        )

    def may_be_victim(self, victim: Victim) -> bool:
        """All of it has to be allowed to go, and one at least has to be of use."""
        its, leaf = victim.allocations, victim.leaf
        if not match_any(victim.resource, self.wanted):
            return False
        for it in its:
            if not (is_movable(it) and is_reached(self.reach, leaf, it.spec.priority)):
                return False
        return self.are_cooled(leaf, its)

    def are_cooled(self, leaf: Queue, allocations: Sequence[Allocation]) -> bool:
        """Whether allocations that go as one have run as long as their queue asks for.

        The search runs again when the first refused one has cooled.
        """
        return self._throttle.are_cooled(leaf, allocations)

    def may_take(self, victim: Victim) -> bool:
        """Whether no queue ends below its guarantee or over its budget, and no gang broken.

        Victims that were taken before count.
        """
        leaf = victim.leaf
        guards = self._guards_of(leaf)
        # No queue can be above its guarantee in a type that it does not name: the work stays.
        if guards and not is_named_by(guards, victim.resource, self.wanted):
            return False
        if victim.spare is not None and not fits_beyond(victim.resource, victim.spare):
            return False
        # Each queue on the way keeps its guarantee.
        for queue in guards:
            if not may_give(queue, self.usage.of(queue), victim.resource, self.wanted):
                return False
        return not victim.has_budget or self._throttle.may_lose(leaf, len(victim.allocations))

    def relieve(
        self, victims: Iterable["Victim"], served: int, asks: int
    ) -> tuple[int, list["Victim"]]:
        """Take of these in order what the quotas need to let more than the served asks in.

        Return how many of the asks are served then, and what went for them. Work anywhere below
        such a queue is of use, on whichever node it runs.
        """
        taken: list[Victim] = []
        tried: list[Victim] = []
        # What lets too few asks in, with those served counted.
        lacks = tuple(self.lacks_quota(served + 1))
        for victim in victims:
            if not lacks:
                break
            if not victim.relieves(lacks) or not self.may_take(victim):
                continue
            self.take(victim)
            tried.append(victim)
            lacks = tuple(self.lacks_quota(served + 1))
            # Each ask that is let in may need less than the last: the lacks are read anew.
            while not lacks and served < asks:
                served += 1
                taken, tried = taken + tried, []
                lacks = tuple(self.lacks_quota(served + 1)) if served < asks else ()
        # The last ones served nobody: they stay.
        for victim in tried:
            self.give_back(victim)
        return served, taken

    def may_displace(self, node: Node, application_id: str) -> bool:
        """Whether all that wait for a node may lose it, though nothing has to go there."""
        return all(
            self._may_be_displaced(kept)
            for kept in node.reservations.values()
            if kept.application_id != application_id
        )

    def _may_be_displaced(self, kept: Reservation) -> bool:
        """Whether it is within reach, as a victim has to be, so it is of another leaf.

        No queue of it may be owed what the ask wants: two that are below their guarantees would
        take turns.
        """
        # Also a reservation has to be within reach, like a victim.
        app = self._state.applications[kept.application_id]
        if not is_reached(self.reach, app.queue, app.asks[kept.key].spec.priority):
            return False
        # Two queues below their guarantees would displace each other in turn.
        return not any(self._is_owed(queue) for queue in self._guards_of(app.queue))

    def _is_owed(self, queue: Queue) -> bool:
        used, guaranteed = self.usage.of(queue), queue.spec.guaranteed or {}
        return any(
            used.get(kind, 0) < size and self.wanted.get(kind, 0) > 0
            for kind, size in guaranteed.items()
        )

    def take(self, victim: Victim) -> None:
        self.usage.take(victim.leaf, victim.resource)
        if victim.has_budget:
            self._throttle.take(victim.leaf, len(victim.allocations))
        # The surplus of one gang is shared by all its members here.
        if victim.spare is not None:
            for kind in victim.spare:
                victim.spare[kind] -= victim.resource.get(kind, 0)

    def give_back(self, victim: Victim) -> None:
        self.usage.add(victim.leaf, victim.resource)
        if victim.has_budget:
            self._throttle.give_back(victim.leaf, len(victim.allocations))
        if victim.spare is not None:
            for kind in victim.spare:
                victim.spare[kind] += victim.resource.get(kind, 0)


# -- nodes


def candidates_on(
    state: PartitionState, node: Node, claimant: Claimant, units: Units
) -> list[Victim]:
    """Return what may go by itself on a node, in order."""
    found: list[Victim] = []
    loose: dict[tuple[str, Amounts], list[Allocation]] = {}
    """Members that their gang may not need, by their size: which size is of use shows later."""
    for allocation in node.allocations.values():
        app = state.applications[allocation.spec.application_id]
        if not claimant.is_within_reach(allocation, app.queue):
            continue
        part = units.part_of(app, allocation)
        of_gang = part is Part.OF_WHOLE or part is Part.SURPLUS
        # A member of a whole gang cools with its gang: its own time would wake the search in vain.
        if of_gang and not units.could_be_surplus(app, allocation):
            continue
        # One that runs too briefly is no candidate, and wakes the search when it has cooled.
        if claimant.are_cooled(app.queue, (allocation,)):
            if of_gang:
                size = tuple(sorted(allocation.resource.items()))
                loose.setdefault((app.id, size), []).append(allocation)
            else:
                found.append(Victim(state, (allocation,), part))
    # Which of equal members goes is the gang's choice, not that of the node.
    for (id_, _), those in loose.items():
        app = state.applications[id_]
        for allocation in units.surplus_among(app, those):
            spare = units.spare_of(app, allocation)
            found.append(Victim(state, (allocation,), Part.SURPLUS, spare))
    for victim in found:
        victim.see_from(claimant.leaf, claimant.priority)
    found.sort(key=in_order)
    return found


def whole_applications(state: PartitionState, claimant: Claimant, units: Units) -> Iterator[Victim]:
    """Yield the applications that may go as one for an ask."""
    for path in claimant.reach:
        for application_id in state.queues[path].applications.values():
            whole = units.whole(state.applications[application_id])
            if whole:
                victim = Victim(state, whole, Part.OF_WHOLE)
                if claimant.may_be_victim(victim):
                    victim.see_from(claimant.leaf, claimant.priority)
                    yield victim


def in_order(victim: Victim) -> Order:
    return victim.order


def ranks_of(victims: Sequence[Victim]) -> tuple[Key, ...]:
    """Return what a policy says of them, the greatest first; nothing where there is none."""
    if not victims or victims[0].rank == ():
        return ()
    return tuple(sorted([victim.rank for victim in victims], reverse=True))


class Score(NamedTuple):
    """Compare nodes by their victims: less is better.

    Whole applications were chosen before and cost nothing.
    """

    opted_out: int
    originators: int
    alone: int
    surplus: int
    of_broken: int
    ranks: tuple[Key, ...]
    importance: int
    """Of the most important; it does not count in a large cluster."""
    node_id: str


def score_of(node_id: str, victims: Sequence[Victim], *, counts_importance: bool) -> Score:
    # What goes whole was chosen and paid for before.
    singles = [victim for victim in victims if victim.part is not Part.OF_WHOLE]
    opted_out = originators = 0
    numbers = [0, 0, 0]
    for victim in singles:
        opted_out += victim.order[0]
        originators += victim.order[1]
        numbers[victim.part] += 1
    of_broken, surplus, alone = numbers
    ranks, most = ranks_of(singles), NO_IMPORTANCE
    if counts_importance:
        most = max([victim.importance for victim in singles], default=NO_IMPORTANCE)
    return Score(opted_out, originators, alone, surplus, of_broken, ranks, most, node_id)


def room_on(
    node: Node,
    free: Resource,
    taken: Container[str] = (),
    served: Sequence[ReservationKey] = (),
) -> Resource:
    """Return the room of a node when all that was asked back is gone, less what is promised.

    What is free tells devices apart as types of their own, if the node does. `served` are asks of
    which a repeat has its devices already.
    """
    room, has_devices = dict(free), node.parts is not None
    # Each search looks at all nodes, and on most of them nothing was asked back or taken.
    going = [it for it in node.allocations.values() if it.releasing is not None]
    if taken:
        going += [
            it for it in node.allocations.values() if it.uuid in taken and it.releasing is None
        ]
    # Room that a swap leaves on this node counts, too (`frees_node`).
    for allocation in going:
        if allocation.frees_node or allocation.uuid in taken:
            charge(room, freed(allocation) if has_devices else allocation.resource)
    # Promised room is taken off, whether it is there already or still coming.
    discharge(room, node.promised)
    if has_devices:
        for holder, kept in node.reservations.items():
            if kept.earmark is not None:
                for amount in islice(promised_devices(kept), served.count(holder), None):
                    keep(room, amount)
    return room


def is_usable(
    state: PartitionState, node: Node, asking: AskSpec, *, is_opening: bool = False
) -> bool:
    """Whether the node could promise room to this ask, beside its other promises.

    `is_opening`: those that have a reservation there are about to be placed.
    A reservation that only waits gives way; that of an ask that requires the node does not.
    """
    # Neither closed nor too small: an earmark there could be used.
    if not node.is_schedulable or not could_hold(node, asking):
        return False
    # Beside promises there is room for another; an ordinary reservation has to give way.
    return (
        is_opening
        or is_promised(node)
        or all(
            _is_own(kept, asking) or _gives_way(state, kept, asking)
            for kept in node.reservations.values()
        )
    )


def is_promised(node: Node) -> bool:
    """Whether anything there has an earmark; then all reservations there have (G18)."""
    return any(kept.earmark is not None for kept in node.reservations.values())


def is_kept_for_another(node: Node, asking: AskSpec) -> bool:
    """Whether another ask has an ordinary reservation here, which waits for room by itself."""
    return not is_promised(node) and any(
        not _is_own(kept, asking) for kept in node.reservations.values()
    )


def is_kept_for_others(node: Node, application_id: str) -> bool:
    """Whether another application waits for room here by itself.

    Within one application an ask gives its node up for another one: a waiting ask is served either
    way.
    """
    return not is_promised(node) and any(
        kept.application_id != application_id for kept in node.reservations.values()
    )


def has_only_to_wait(node: Node, free: Resource, asking: AskSpec) -> bool:
    """Whether the ask could be placed here without an earmark: then it lacks no room."""
    is_open = not is_promised(node) and not is_kept_for_another(node, asking)
    return is_open and fits(asking.resource, free)


def _is_own(kept: Reservation, asking: AskSpec) -> bool:
    return kept.application_id == asking.application_id and kept.key == asking.key


def _gives_way(state: PartitionState, kept: Reservation, asking: AskSpec) -> bool:
    if kept.required:
        # A reservation of an ask that can run nowhere else stays.
        return False
    app = state.applications[kept.application_id]
    leaf = state.applications[asking.application_id].queue
    its = app.asks[kept.key].spec.priority
    # No more important than the ask that displaces it.
    return importance(leaf, asking.priority, app.queue, its) <= 0


def earmarked_below(state: PartitionState, limit: Limit) -> Iterator[Reservation]:
    """Yield the earmarks of asks for which a limit of a user or a group counts."""
    queue = state.queues[limit.path]
    for node in state.nodes.values():
        for kept in node.reservations.values():
            # By the present group: limits count by that.
            app = state.applications[kept.application_id]
            owner = app.group if limit.of_group else app.spec.user
            if kept.earmark is not None and owner == limit.owner and queue in app.queue.lineage:
                yield kept


def is_limited_by_promises(state: PartitionState, app: Application, wanted: Resource) -> bool:
    """Whether a limit of its user or group has no room for this once all promised room is used."""
    for limit in limits_of(app.queue, app.spec.user, app.group):
        coming = dict(wanted)
        for other in earmarked_below(state, limit):
            charge(coming, other.promised)
        # Only types that are wanted: others may be above their limit already.
        entries = ((kind, coming[kind]) for kind, quantity in wanted.items() if quantity > 0)
        if not has_room(limit.max_resources, state.usage_of(limit).amounts, entries):
            return True
    return False


def earmarks_of(state: PartitionState, ask: Ask) -> int:
    """Count the repeats that have an earmark already."""
    return sum(1 for id_ in ask.reserved if kept_for(state, ask, id_).earmark is not None)


def has_claim_for_all(app: Application, used: Resource, to_claim: Resource) -> bool:
    """Whether all placeholders of a gang are there, and its leaf is guaranteed room for them (G31).

    `to_claim` is what those want that have no earmark yet, and `used` what the leaf will use
    without them.
    """
    coming = dict(used)
    charge(coming, to_claim)
    # All of them have to be there: what is still to come would need room that is not counted.
    return is_all_there(app) and not excess(app.queue.spec.guaranteed, coming, to_claim)


def to_claim_of(state: PartitionState, app: Application) -> Resource:
    """Add up what the placeholders want that wait without an earmark and may run anywhere."""
    wanted: Resource = {}
    for ask in app.asks.values():
        if ask.spec.placeholder and not ask.spec.required_node:
            repeats = ask.remaining - earmarks_of(state, ask)
            size = ask.spec.resource
            charge(wanted, {kind: quantity * repeats for kind, quantity in size.items()})
    return wanted
