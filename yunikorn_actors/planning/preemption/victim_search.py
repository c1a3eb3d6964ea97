"""The search for victims, for an ask of a queue below its guarantee.

On each node victims are picked in order until there is room, and unnecessary ones are left out.
Nodes are compared by their victims: opted-out work and originators last, then by number, then by
what the policy of the asking leaf says of them. If a quota refuses the ask, more victims may be
needed elsewhere. What one ask gets is counted before the next one looks: room beyond it serves the
next ask, which then needs no victims. So the solutions of all nodes stay on a heap; only the one on
top is worked out again, and a changed node is added anew.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property, partial
from heapq import heappop, heappush
from typing import NamedTuple

from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView
from yunikorn_actors.planning.preemption.claimant import (
    NO_IMPORTANCE,
    Claimant,
    Score,
    Victim,
    candidates_on,
    has_only_to_wait,
    in_order,
    is_kept_for_others,
    is_usable,
    score_of,
    whole_applications,
)
from yunikorn_actors.planning.preemption.device_room import fits, targets
from yunikorn_actors.planning.preemption.gang_choice import Choice, chosen_of, gang_of
from yunikorn_actors.planning.preemption.scene import Scene
from yunikorn_actors.planning.preemption.single_choice import SINGLES_MAX
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.preemption.victim_units import Part, Units, goes_as_one
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation, AskSpec
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource, charge

RETRACTIONS_MAX = 100
"""The most choices that are taken back on one node."""
Rank = Callable[[Sequence[Allocation]], Key]
"""What a policy says of work that would go together."""


class Solution(NamedTuple):
    node_id: str
    victims: tuple[Allocation, ...]
    """Empty if enough room is coming free already and is not promised."""
    has_only_to_wait: bool
    """It needs no earmark: with the room that comes free it is placed like any other ask."""


class Search:
    """The search for victims, for all asks of one leaf that are alike, within one plan.

    Nodes and queues are searched by one object: a victim that a node needs may be one that a quota
    needs too, and what is tried on either side must be taken back on both.
    """

    def __init__(
        self,
        scene: Scene,
        leaf: Queue,
        spec: AskSpec,
        shape: Shape,
        rank: Rank | None = None,
        *,
        whole: Container[str] | None = None,
    ) -> None:
        """`whole`: the ids of the applications that may go whole; None means any."""
        self._rank = rank
        self._whole = whole
        self._shape = shape
        self._scene = scene
        self._state: PartitionState = scene.state
        self._usage: ExpectedUsage = scene.usage
        self._leaf = leaf
        self._candidates: dict[str, list[Victim]] = {}
        self._units = Units(dict(scene.taken), spare=scene.spare)
        self._chosen: list[Victim] = []
        """Whole applications chosen as victims. Each is charged to the first ask that needs it, and
        not again."""
        self._chosen_on: set[str] = set()
        """The nodes on which they run."""
        self._first_on: set[str] | None = None
        """The nodes with surplus of gangs, or with what is left of broken ones."""
        self._absorbed: set[str] = set()
        """Of these nothing goes by itself."""
        self._planned: frozenset[str] = frozenset()
        """Single work that was chosen with them: other work goes only where it does not do."""
        self._has_chosen = False
        self._ordered: list[Victim] | None = None
        self._heap: list[tuple[Score, str]] | None = None
        self.is_over = False
        """Nothing was found, and nothing will be found within this plan."""
        self.is_blocked = False
        """Another ask has a node, or promised room, that it may yet give up or use."""
        self._displaces = False
        """In the last attempt a node is taken from an ask that merely waits for it, although no
        victim is needed there."""
        self._passed_over: list[tuple[Score, str]] = []
        """A heap of the nodes with room that were left to the asks that wait for more there."""
        self.spares_whole = False
        """No further whole applications are chosen: room that may be on its way is not known."""
        self.again_ns = NEVER_NS
        """When the first budget or cooldown ends that refused a victim to any of its asks."""
        self._seen = 0
        self._claimant: Claimant
        self._spec = spec

    def next(self, app: AppView, spec: AskSpec, waiting: Callable[[], int]) -> Solution | None:
        """Find room for one more ask; that room is taken from then on.

        Whole applications are chosen for all asks that wait and are alike.
        """
        is_of_another = spec.application_id != self._spec.application_id
        self._spec = spec
        self._claimant = Claimant(self._state, self._usage, self._scene.throttle, self._leaf, spec)
        # Nodes kept for this application are of no use to others, so they were left out.
        if is_of_another and self._heap is not None and app.app.reservation_count:
            self._offer_own(app)
        hopeless = self._claimant.is_hopeless
        # What earlier asks were refused is in `again_ns` already.
        self._scene.throttle.again_ns = NEVER_NS
        found = None
        if not hopeless:
            # Once for all of these asks: whole applications are chosen for as many as wait.
            if not self._has_chosen and not self.spares_whole:
                self._has_chosen = True
                self._choose(waiting)
            found = self._find(app)
            if found is None and self._planned:
                # Chosen work that leads nowhere is given up, and single work is tried again.
                self._planned, self._heap = frozenset(), None
                found = self._find(app)
            if found is None and self.spares_whole:
                self.is_blocked = True
            elif found is None and self._choose(lambda: 1, is_last_resort=True):
                # A last resort: whole applications for this one ask alone.
                found = self._find(app)
            if found is None and self._passed_over:
                found = self._find_by_displacing(app)
        # Promised room that is used or given up may help, so the ask looks again then.
        if hopeless and self._scene.has_promises:
            self.is_blocked = True
        # Work is looked at once for all asks: what was refused to one of them is for the next, too.
        self.again_ns = min(self.again_ns, self._scene.throttle.again_ns)
        if found is None:
            self.is_over = True
            # Nothing was found for it: the ask counts as used no longer.
            self._claimant.withdraw()
        return found

    def _find_by_displacing(self, app: AppView) -> Solution | None:
        """For one ask: the next is to have other nodes first, those that have changed."""
        others, self._heap = self._heap, self._passed_over
        self._displaces = True
        found = self._find(app)
        self._displaces, self._heap = False, others
        return found

    def _choose(self, waiting: Callable[[], int], *, is_last_resort: bool = False) -> bool:
        """Choose the whole applications that go for the waiting asks; say whether any does.

        The asks are counted only where there are such applications.
        """
        units = Units(self._scene.taken)
        whole = [
            victim
            for victim in whole_applications(self._state, self._claimant, units)
            if self._whole is None or victim.allocations[0].spec.application_id in self._whole
        ]
        self._rank_all(whole)
        if not whole and not self._is_small:
            # Neither anything to choose nor few enough to try: the order of single work decides.
            return False
        rooms: dict[str, Resource] = {}
        for node in self._state.nodes.values():
            room = None if is_barred(self._shape, node.id) else self._scene.room_on(node)
            if room is not None and self._may_use(node) and not self._is_out_of_use(node, room):
                rooms[node.id] = room
        choice = Choice(
            self._claimant, rooms, self._singles_on, waiting(), self._state.nodes,
            lambda it: gang_of(self._state, it, self._scene.now_ns).work,
            is_last_resort=is_last_resort,
        )  # fmt: skip
        chosen = chosen_of(self._state, choice, whole, self._scene.now_ns)
        planned = frozenset(it.allocations[0].uuid for it in choice.planned)
        # The same choice as before would be tried for ever.
        if not planned and [it.allocations for it in chosen] == [
            it.allocations for it in self._chosen
        ]:
            return False
        self.settle(chosen, planned)
        return bool(chosen or planned)

    def settle(self, chosen: list[Victim], planned: frozenset[str]) -> None:
        """Have these applications go, and beside them this single work before other."""
        self._has_chosen = True
        self._chosen, self._planned = chosen, planned
        self._chosen_on = {it.node_id for victim in chosen for it in victim.allocations}
        self._absorbed = {it.allocations[0].spec.application_id for it in chosen}
        self._heap = None

    def next_on(self, app: AppView, spec: AskSpec, node_id: str) -> Solution | None:
        """Find room for one more ask on one node, with what was settled."""
        self._spec = spec
        self._claimant = Claimant(self._state, self._usage, self._scene.throttle, self._leaf, spec)
        victims = None if self._claimant.is_hopeless else self._solve(node_id)
        chosen = None if victims is None else self._with_more(node_id, victims)
        if chosen is not None and self._claimant.may_have(chosen, quotas=True):
            return self._settle_on(node_id, app, chosen)
        self._claimant.withdraw()
        return None

    @cached_property
    def _is_small(self) -> bool:
        """Whether all choices of single work may be tried.

        Not in a large cluster: all of it would have to be looked at for a few asks.
        """
        nodes = self._state.nodes.values()
        return sum(len(node.allocations) for node in nodes) <= SINGLES_MAX

    def _may_use(self, node: Node) -> bool:
        opens = self._scene.is_opening(node)
        return is_usable(self._state, node, self._spec, is_opening=opens)

    def _is_out_of_use(self, node: Node, room: Resource) -> bool:
        """Whether the node has room without victims, and belongs to others who wait for it."""
        if not self._is_kept(node) or not fits(self._claimant.wanted, room):
            return False
        return not self._claimant.may_displace(node, self._spec.application_id)

    def _is_kept(self, node: Node) -> bool:
        if self._scene.is_opening(node) or self._scene.is_cleared(node):
            return False
        return is_kept_for_others(node, self._spec.application_id)

    def _find(self, app: AppView) -> Solution | None:
        while (best := self._best()) is not None:
            node_id, victims = best
            # One solution after the other, each with the quotas added, until one is allowed.
            chosen = self._with_more(node_id, victims)
            if chosen is None:
                break
            # Context asks the same of the same victims; whether those on the node do for the quotas
            # is known by now. A node for which the answer is no comes up again when something has
            # changed there.
            if self._claimant.may_have(chosen, quotas=chosen is not victims):
                return self._settle_on(node_id, app, chosen)
        self._look_at_all()
        return None

    def _with_more(self, node_id: str, victims: list[Victim]) -> list[Victim] | None:
        """Add the victims that the quotas need, and leave out what these make unnecessary."""
        # The victims on the node go in any case, so the queues are asked with them gone.
        for victim in victims:
            self._claimant.take(victim)
        more = self._more(victims)
        if not more:
            chosen = None if more is None else victims
            for victim in victims:
                self._claimant.give_back(victim)
            return chosen
        chosen = self._spare(self._state.nodes[node_id], [*victims, *more])
        for victim in chosen:
            self._claimant.give_back(victim)
        return chosen

    def _settle_on(self, node_id: str, app: AppView, chosen: list[Victim]) -> Solution:
        node, scene = self._state.nodes[node_id], self._scene
        going = tuple(it for victim in chosen for it in victim.allocations)
        for victim in chosen:
            self._claimant.take(victim)
        # Only if nothing goes: an ask that takes victims keeps its node in any case.
        waits = not going and self._has_only_to_wait(node)
        for allocation in going:
            scene.take(allocation)
        scene.promise(node, app, self._spec, waits=waits)
        return Solution(node_id, going, waits)

    def _has_only_to_wait(self, node: Node) -> bool:
        """Whether the room is free already, so that the ask only waits for the node to open."""
        free, wanted = self._scene.free_on(node), self._claimant.wanted
        opens = self._scene.is_opening(node) and fits(wanted, free)
        return opens or has_only_to_wait(node, free, self._spec)

    # -- nodes

    def _best(self) -> tuple[str, list[Victim]] | None:
        """Pop the node that costs least; a solution that has become worse goes back."""
        # Nodes that changed since the last ask are offered again. The others keep their old score,
        # which is checked when they come up.
        changed = self._scene.changed
        again = dict.fromkeys(changed[self._seen :])
        if self._heap is None:
            self._heap, again = [], dict.fromkeys(self._state.nodes)
            self._passed_over = []
        self._seen = len(changed)
        for node_id in again:
            self._offer(node_id)
        while self._heap:
            score, node_id = heappop(self._heap)
            victims = self._solve(node_id)
            if victims is None:
                continue
            now = self._score(node_id, victims)
            # Still the best, so it is that; else it is filed under what it costs now.
            if now <= score:
                return node_id, victims
            heappush(self._heap, (now, node_id))
        return None

    def _offer(self, node_id: str) -> None:
        """File a node by a lower bound of its cost; its cost is worked out when its turn comes.

        A node with room may need no victim, others need one at least. A whole application that goes
        in any case costs nothing more: its nodes come first, as single work that goes before may
        use up what its queue gives.
        """
        assert self._heap is not None
        room = self._scene.room_on(self._state.nodes[node_id])
        needs_one = room is not None and not fits(self._claimant.wanted, room)
        needs_one = needs_one and node_id not in self._chosen_on
        is_alone = needs_one and node_id not in self._nodes_of_gangs()
        of_gang = needs_one and not is_alone
        least = Score(0, 0, int(is_alone), 0, int(of_gang), (), NO_IMPORTANCE, node_id)
        heappush(self._heap, (least, node_id))

    def _score(self, node_id: str, victims: list[Victim]) -> Score:
        # Where it counts each node has to be worked out.
        return score_of(node_id, victims, counts_importance=self._is_small)

    def _nodes_of_gangs(self) -> set[str]:
        """Return the nodes with what gangs lose first: there no other work may have to go."""
        if self._first_on is None:
            state, units = self._state, self._units
            apps = (
                state.applications[id_]
                for path in self._claimant.reach
                for id_ in state.queues[path].applications.values()
            )
            self._first_on = {
                it.node_id
                for app in apps
                if app.spec.is_gang and goes_as_one(app)
                # Only gangs that go as one lose something before others; the rest goes by itself.
                for it in app.allocations.values()
                if units.part_of(app, it) is Part.OF_BROKEN or units.could_be_surplus(app, it)
            }
        return self._first_on

    def _offer_own(self, app: AppView) -> None:
        """Offer the nodes kept for this application: asks of others have left them alone."""
        for ask in app.app.waiting_asks():
            for node_id in ask.reserved:
                self._offer(node_id)

    def _look_at_all(self) -> None:
        """Find out of the nodes that never were the best whether something blocks them."""
        # Their answer decides only whether the ask waits for them or is idle.
        for _, node_id in self._heap or ():
            self._solve(node_id)

    def _solve(self, node_id: str) -> list[Victim] | None:
        """Return the fewest victims in order that make room on one node."""
        if is_barred(self._shape, node_id):
            return None
        node = self._state.nodes[node_id]
        room = self._scene.room_on(node)
        opens = self._scene.is_opening(node)
        if room is None or not is_usable(self._state, node, self._spec, is_opening=opens):
            # Closed for now, but its reservations may end: the ask is blocked, not idle.
            self.is_blocked = self.is_blocked or room is None or bool(node.reservations)
            return None
        found = [*self._solutions(node_id, room)]
        # With no victims the node has room already: only who waits for it is asked.
        if not all(found) and self._is_kept(node):
            may_displace = self._claimant.may_displace(node, self._spec.application_id)
            if may_displace and not self._displaces:
                heappush(self._passed_over, (self._score(node_id, []), node_id))
            if not (may_displace and self._displaces):
                # Somebody else waits for that room: only solutions that take victims are left.
                found = [victims for victims in found if victims]
        if not found:
            self.is_blocked = self.is_blocked or bool(node.reservations)
            return None
        return min(found, key=lambda victims: self._score(node_id, victims))

    def _solutions(self, node_id: str, room: Resource) -> Iterator[list[Victim]]:
        """Yield the fewest victims in order, for each choice of devices that are to be free."""
        wanted = self._claimant.wanted
        for devices in targets(room, wanted, lambda: self._allocations_on(node_id)):
            # Several devices may be free: each choice of them lacks something else.
            short = {
                kind: lack
                for kind, quantity in (*wanted.items(), *devices.items())
                if quantity > 0 and (lack := quantity - room.get(kind, 0)) > 0
            }
            victims = self._victims(node_id, short)
            if victims is not None:
                yield victims

    def _allocations_on(self, node_id: str) -> list[Allocation]:
        candidates = self._candidates_on(node_id)
        return [it for one in candidates for it in one.allocations if it.node_id == node_id]

    def _victims(self, node_id: str, short: Resource) -> list[Victim] | None:
        picked: list[Victim] = []
        found = not short or self._pick(node_id, short, picked)
        # Preempting must not take the asking side above its own guarantee, whatever it frees.
        found = found and not self._claimant.is_above_a_guarantee()
        # So far they were only tried; `_settle_on` takes those of the best node for good.
        # The next node starts from what the queues really have.
        for victim in picked:
            self._claimant.give_back(victim)
        return self._without_needless(node_id, picked, short) if found else None

    def _pick(self, node_id: str, short: Resource, picked: list[Victim]) -> bool:
        """Take candidates in order until nothing is short.

        A victim may use up what its queue can give and so bar a better one. Then the last choice is
        taken back and the search goes on, up to the bound.
        """
        claimant, candidates = self._claimant, self._candidates_on(node_id)
        # Positions at which a victim was taken; what lies behind them has been decided.
        taken_at: list[int] = []
        position, steps = 0, 0
        while _is_short(short):
            if position == len(candidates):
                # Back and forth at most so often: the search must end.
                steps += 1
                if not taken_at or steps > RETRACTIONS_MAX:
                    return False
                position = taken_at.pop()
                victim = picked.pop()
                claimant.give_back(victim)
                _grow(short, victim.on(node_id))
                # The same victim is not tried again at this position, or the search would go on for
                # ever.
                position += 1
                continue
            victim = candidates[position]
            freed = victim.on(node_id)
            if _helps(freed, short) and claimant.may_take(victim):
                claimant.take(victim)
                picked.append(victim)
                taken_at.append(position)
                _reduce(short, freed)
            position += 1
        return True

    def _without_needless(
        self, node_id: str, picked: list[Victim], short: Resource
    ) -> list[Victim]:
        """Leave out victims that a later, bigger one made unnecessary, the last in order first.

        Not where the guarantees need them: without one of them a queue may stay above its own, or
        a later victim may be forbidden.
        """
        kept = list(picked)
        for victim in reversed(picked):
            rest = [other for other in kept if other is not victim]
            _grow(short, victim.on(node_id))
            if not _is_short(short) and self._claimant.may_have(rest):
                kept = rest
            else:
                _reduce(short, victim.on(node_id))
        return kept

    def _candidates_on(self, node_id: str) -> list[Victim]:
        """Return what may go there, in order: first what goes in any case."""
        found = self._singles_on(node_id)
        if not self._chosen and not self._planned:
            return found
        found = [it for it in found if self._is_single(it)]
        return [*(victim for victim in self._still_chosen() if victim.on(node_id)), *found]

    def _singles_on(self, node_id: str) -> list[Victim]:
        found = self._candidates.get(node_id)
        if found is None:
            node = self._state.nodes[node_id]
            found = candidates_on(self._state, node, self._claimant, self._units)
            if self._rank_all(found):
                found.sort(key=in_order)
            self._candidates[node_id] = found
        taken = self._scene.taken
        # What was taken stays so: the next look is at fewer.
        found = [victim for victim in found if victim.allocations[0].uuid not in taken]
        self._candidates[node_id] = found
        return found

    def _rank_all(self, victims: list[Victim]) -> bool:
        """Ask the policy of the leaf about each of them, if it has a say."""
        if self._rank is None:
            return False
        for victim in victims:
            victim.rank_by(self._rank(victim.allocations))
        return True

    def _is_single(self, victim: Victim) -> bool:
        """Whether it may go by itself beside what was chosen."""
        first = victim.allocations[0]
        if self._planned and first.uuid not in self._planned:
            return False
        return first.spec.application_id not in self._absorbed

    def _still_chosen(self) -> list[Victim]:
        taken = self._scene.taken
        return [victim for victim in self._chosen if victim.allocations[0].uuid not in taken]

    # -- queues

    def _more(self, victims: list[Victim]) -> list[Victim] | None:
        """Pick the further victims that the quotas need to let the ask in; None if they cannot."""
        # Most queues are not over their quota, and then nothing more has to go.
        if not any(self._claimant.lacks_quota()):
            return []
        others = (victim for victim in self._everywhere() if victim not in victims)
        served, more = self._claimant.relieve(others, 0, 1)
        return more if served else None

    def _everywhere(self) -> Iterator[Victim]:
        """Yield all candidates in order; they are put in order once."""
        if self._ordered is None:
            nodes = self._state.nodes
            self._ordered = [v for node_id in nodes for v in self._singles_on(node_id)]
            self._ordered.sort(key=in_order)
        taken = self._scene.taken
        yield from self._still_chosen()
        for victim in self._ordered:
            if victim.allocations[0].uuid not in taken and self._is_single(victim):
                yield victim

    def _spare(self, node: Node, chosen: list[Victim]) -> list[Victim]:
        """Leave out victims that turned out to be unnecessary, the last in order first.

        Those of the node as well: a victim for a quota may make room on the node, too.
        """
        claimant, kept = self._claimant, list(chosen)
        for victim in reversed(chosen):
            claimant.give_back(victim)
            rest = [other for other in kept if other is not victim]
            # Both: the quotas have to hold without it, and the room on the node, too.
            lacks = any(claimant.lacks_quota()) or claimant.is_above_a_guarantee()
            if lacks or not self._has_room(node, rest):
                claimant.take(victim)
            else:
                kept = rest
        return kept

    def _has_room(self, node: Node, victims: list[Victim]) -> bool:
        """Whether the ask fits on the node when these are gone."""
        room = dict(self._scene.room_on(node) or {})
        for victim in victims:
            charge(room, victim.on(node.id))
        return fits(self._claimant.wanted, room)


def is_barred(shape: Shape, node_id: str) -> bool:
    """The resource manager refuses this node to the ask, so victims there would be in vain."""
    # Both kinds of refusal: to place it there, and to preempt for it there.
    return shape.is_refused(node_id, Use.PREEMPTING) or shape.is_refused(node_id, Use.PLACING)


def _helps(resource: Resource, short: Resource) -> bool:
    return any(quantity > 0 and resource.get(kind, 0) > 0 for kind, quantity in short.items())


def _is_short(short: Resource) -> bool:
    return any(quantity > 0 for quantity in short.values())


def _reduce(short: Resource, resource: Resource) -> None:
    for kind in short:
        short[kind] -= resource.get(kind, 0)


def _grow(short: Resource, resource: Resource) -> None:
    for kind in short:
        short[kind] += resource.get(kind, 0)


class Searches:
    def __init__(self, scene: Scene, whole: Container[str] | None = None) -> None:
        """`whole`: the ids of the applications that may go whole; None means any."""
        self.gangs: dict[int, None] = {}
        """Those that had their turn in this plan, by the serial of their application."""
        self._whole = whole
        self.begin_anew(scene)

    def begin_anew(self, scene: Scene) -> None:
        """Search in another scene from now on."""
        self.scene = scene
        self._searches: dict[tuple[QueueView, Shape, int], Search] = {}

    def of(self, shape: Shape, ask: AskView) -> Search:
        spec, leaf = ask.ask.spec, ask.app.leaf
        # By priority as well: of two asks of one shape the more important may take other victims.
        key = (leaf, shape, spec.priority)
        if key not in self._searches:
            rank = partial(self._rank, leaf) if leaf.decider.ranks_victims else None
            self._searches[key] = Search(
                self.scene, leaf.queue, spec, shape, rank, whole=self._whole
            )
        return self._searches[key]

    @property
    def again_ns(self) -> int:
        """When the first budget or cooldown ends that refused a victim to any ask."""
        return min((search.again_ns for search in self._searches.values()), default=NEVER_NS)

    def _rank(self, leaf: QueueView, victims: Sequence[Allocation]) -> Key:
        app = self.scene.state.applications[victims[0].spec.application_id]
        return leaf.decider.victim_rank(app, victims, self.scene.now_ns)
