"""Gang claims: all placeholders of a gang find room at once, or nothing goes for any (G31).

Placeholders that can run on one node alone have their victims there. For the others whole
applications and single work are searched as for any ask, in a scene of their own, so that nothing
has to be undone if one of them finds no room. When to look, and that all are decided together, is
for `planning/stages/guarantees.py`.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, permutations
from typing import NamedTuple

from msgspec.structs import replace

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.preemption.claimant import (
    Claimant,
    Victim,
    candidates_on,
    earmarks_of,
    has_claim_for_all,
    in_order,
    is_usable,
    victims_of,
    whole_applications,
)
from yunikorn_actors.planning.preemption.gang_choice import (
    WHOLE_MAX,
    Gang,
    Loss,
    gang_of,
    loss_of,
    sets_below,
    size_of,
)
from yunikorn_actors.planning.preemption.gang_packing import Packer, Packing, Size
from yunikorn_actors.planning.preemption.required_node import Bound, room_for_bound
from yunikorn_actors.planning.preemption.scene import (
    Flight,
    Scene,
    free_on,
    is_refused,
    repeats_left,
)
from yunikorn_actors.planning.preemption.victim_search import Searches, Solution, is_barred
from yunikorn_actors.planning.preemption.victim_units import Units
from yunikorn_actors.state.gangs import is_all_there
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource, charge

SIZES_MAX = 3
"""Sizes of placeholders of which all orders are tried; of more only three orders: as they come,
the largest first and the smallest first."""
RETRIES_MAX = 12
"""Cheaper sets that are tried, at most, where not all could be packed or some were in vain."""
Found = list[tuple[AskView, Solution]]
"""Room for each repeat of the placeholders of a gang."""
_GangCost = tuple[Loss, int]
"""Of all that goes for a gang, less is better: gangs, then single work."""


class Claim(NamedTuple):
    found: Found | None
    again_ns: int
    """Where nothing was found: when to look again without any change."""
    attempts: int
    """How many searches it took; of what cost less and was tried as well none counts."""


class GangClaims:
    def __init__(
        self, model: Model, trial: Callable[[int], Scene], in_flight: Mapping[int, Flight]
    ) -> None:
        """A trial is a scene in which what is found is not decided."""
        self._model = model
        self._in_flight = in_flight
        self._trial = trial
        self._attempts = 0

    # -- who claims

    def placeholders_of(self, app: AppView) -> list[AskView]:
        """Return waiting placeholders in order; those that require a node have another rule."""
        state = self._model.state
        asks = [
            ask
            for ask in app.asks.values()
            if ask.is_placeholder and not ask.shape.required_node and repeats_left(state, ask)
        ]
        return sorted(asks, key=lambda ask: ask.order)

    def newest_ns(self, ask: AskView, known: dict[int, int]) -> int:
        """Return when the ask was made; for a gang, which claims as one, its newest placeholder."""
        app = ask.app
        if not (ask.is_placeholder and app.app.spec.is_gang):
            return ask.ask.created_ns
        if app.app.serial not in known:
            placeholders = self.placeholders_of(app)
            known[app.app.serial] = max(it.ask.created_ns for it in (ask, *placeholders))
        return known[app.app.serial]

    def has_claim(self, app: AppView, scene: Scene) -> bool:
        """Whether all placeholders are there, and guarantee and limits have room for all of them.

        Context would refuse a claim over a limit, and others would miss its victims meanwhile.
        """
        to_claim = self._wanted_by(self.placeholders_of(app))
        # Context would refuse it, and victims would have been sought in vain.
        if scene.would_exceed_limit(app, to_claim):
            return False
        return has_claim_for_all(app.app, scene.usage.of(app.leaf.queue), to_claim)

    def _wanted_by(self, asks: Iterable[AskView]) -> Resource:
        wanted: Resource = {}
        for ask in asks:
            repeats = repeats_left(self._model.state, ask)
            charge(wanted, {kind: size * repeats for kind, size in ask.resource.items()})
        return wanted

    # -- placeholders that can run on one node alone

    def only_bound_wait(self, app: AppView) -> bool:
        """Whether its other placeholders run, or have room that is free or comes."""
        state = self._model.state
        for ask in app.asks.values():
            # An earmark is room that comes.
            may_run_anywhere = ask.is_placeholder and not ask.shape.required_node
            if may_run_anywhere and (ask.keeping or ask.waiting > earmarks_of(state, ask.ask)):
                return False
        return is_all_there(app.app)

    def find_bound(self, app: AppView) -> list[Bound] | None:
        """Return what goes for the placeholders that require a node, if all find room there."""
        model, views = self._model, self._model.nodes.views
        asks = {
            key: ask
            for key, ask in app.asks.items()
            if ask.is_placeholder and ask.shape.required_node and ask.waiting
        }
        if not asks:
            return []
        found = room_for_bound(
            model.state,
            app.app,
            {key: ask.waiting for key, ask in asks.items()},
            lambda node: free_on(model, views[node.id]),
        )
        claiming = [it for it in found or () if it.victims]
        # Only those with victims have to pass: the others have room.
        for it in claiming:
            ask, node = asks[it.key], views[it.node_id]
            is_kept = it.node_id in ask.ask.reserved
            if not is_kept or node.keeping or not ask.ask.spec.allow_preempt_other:
                return None
            # Held back, or refused by the resource manager: then nothing goes for the gang.
            if ask.open < ask.waiting or is_barred(ask.shape, it.node_id):
                return None
        together: Resource = {}
        for ask in asks.values():
            charge(together, {kind: size * ask.waiting for kind, size in ask.resource.items()})
        flights = self._in_flight.values()
        if claiming and is_refused(model, app, together, asks, flights):
            return None
        return found

    # -- all others

    def find(self, app: AppView, now_ns: int, bound: Sequence[Bound] = ()) -> Claim:
        """Find room for all placeholders that may run anywhere, beside victims for bound ones.

        Victims are chosen for all placeholders of one size, and their surplus serves the next size.
        Where several sizes find no room so, or hurt gangs, all are packed together, with the sets
        that cost less.
        """
        self._attempts = 0
        best, least, again_ns = self._find_in_orders(app, bound, now_ns)
        attempts = self._attempts
        asks = self.placeholders_of(app)
        # Sizes chosen one after the other may cost more than all of them together.
        if (least is None or _may_be_less(least)) and len({it.shape for it in asks}) > 1:
            best = self._find_cheaper(app, asks, least, bound, now_ns) or best
        return Claim(best, again_ns, attempts)

    def _find_cheaper(
        self,
        app: AppView,
        asks: list[AskView],
        least: _GangCost | None,
        bound: Sequence[Bound],
        now_ns: int,
    ) -> Found | None:
        """Return room for all that costs less than what was found size after size, if there is."""
        # A policy's ranks are not compared over several sizes.
        if app.leaf.decider.ranks_victims:
            return None
        scene = self._scene_with(bound, now_ns)
        state, groups = scene.state, _alike(asks)
        # What may go for the least important of them may go for all; what is of use to one of them
        # may help all.
        spec = min((it.ask.spec for it in asks), key=lambda it: it.priority)
        # The largest of each type: a victim of use to any size is of use to this.
        spec = replace(spec, resource=_largest_of(asks))
        claimant = Claimant(state, scene.usage, scene.throttle, app.leaf.queue, spec)
        units = Units(scene.taken, spare=scene.spare)
        whole = [*whole_applications(state, claimant, units)]
        packer = self._packer(groups, scene, claimant, units)
        # Too many sets to look at, or nothing could ever fit.
        if len(whole) > WHOLE_MAX or not packer.could_fit(whole):
            return None
        # Searches of a large cluster take long, and where all that may go did not do, a part of it
        # hardly does.
        if least is None and not packer.is_small:
            return None
        gangs, tries = [gang_of(state, victim, now_ns) for victim in whole], RETRIES_MAX
        for some in sets_below(gangs, None if least is None else least[0]):
            packing = packer.pack([it.victim for it in some])
            # Known not to fit: nothing more to try with this set.
            if packing is None and not packer.is_unknown:
                continue
            ids = {it.victim.allocations[0].spec.application_id for it in some}
            found, cost, _ = self._find_in_orders(app, bound, now_ns, ids)
            if packing is not None:
                scene = self._scene_with(bound, now_ns)
                packed = self._find_packed(groups, some, packing, Searches(scene, ids))
                if packed is not None and (cost is None or self._cost_of(packed, now_ns) < cost):
                    found, cost = packed, self._cost_of(packed, now_ns)
            # The first that costs less: sets come in the order of what they lose.
            if cost is not None and (least is None or cost < least):
                return found
            tries -= 1
            if not tries:
                break
        return None

    def _packer(
        self, groups: list[list[AskView]], scene: Scene, claimant: Claimant, units: Units
    ) -> Packer:
        state = scene.state
        rooms: dict[str, Resource] = {}
        singles: dict[str, list[Victim]] = {}
        usable: list[dict[str, None]] = [{} for _ in groups]
        for node in state.nodes.values():
            room = scene.room_on(node)
            if room is None:
                continue
            # Placeholders of one size may run on the same nodes.
            rooms[node.id] = room
            singles[node.id] = candidates_on(state, node, claimant, units)
            for (first, *_), nodes in zip(groups, usable, strict=True):
                opens = scene.is_opening(node)
                is_open = is_usable(state, node, first.ask.spec, is_opening=opens)
                if is_open and not is_barred(first.shape, node.id):
                    nodes[node.id] = None
        sizes = [
            Size(group[0].resource, sum(repeats_left(state, it) for it in group), nodes)
            for group, nodes in zip(groups, usable, strict=True)
        ]
        return Packer(claimant, rooms, singles, sizes)

    def _find_packed(
        self,
        groups: list[list[AskView]],
        gone: Sequence[Gang],
        packing: Packing,
        searches: Searches,
    ) -> Found | None:
        """Return the victims of each repeat on the node that it was packed on."""
        found: Found = []
        chosen = sorted((it.victim for it in gone), key=in_order)
        for group, nodes in zip(groups, packing.nodes, strict=True):
            places = iter(nodes)
            for ask in group:
                search = searches.of(ask.shape, ask)
                search.settle(chosen, packing.singles)
                # In the order of the packing: each repeat has its node.
                for node_id in islice(places, repeats_left(self._model.state, ask)):
                    solution = search.next_on(ask.app, ask.ask.spec, node_id)
                    if solution is None or not _may_have(ask, solution):
                        return None
                    found.append((ask, solution))
        return found

    def _find_in_orders(
        self,
        app: AppView,
        bound: Sequence[Bound],
        now_ns: int,
        whole: Container[str] | None = None,
    ) -> tuple[Found | None, _GangCost | None, int]:
        """Search in several orders of the sizes, unless in the first nothing goes."""
        best, least, again_ns = None, None, NEVER_NS
        for asks in self._orders_of(app):
            # A fresh scene for each order: what was taken in the one is there in the other.
            scene = self._scene_with(bound, now_ns)
            searches = Searches(scene, whole)
            found = self._find_all(asks, searches)
            again_ns = min(again_ns, searches.again_ns)
            if found is None:
                continue
            cost = self._cost_of(found, now_ns)
            if least is None or cost < least:
                best, least = found, cost
            # Nothing goes: no other order can be cheaper.
            if not _may_be_less(cost):
                break
        return best, least, again_ns

    def _scene_with(self, bound: Sequence[Bound], now_ns: int) -> Scene:
        """Return a scene in which what goes for these is gone."""
        scene = self._trial(now_ns)
        for victim in (victim for it in bound for victim in it.victims):
            leaf = scene.state.applications[victim.spec.application_id].queue
            scene.usage.take(leaf, victim.resource)
            scene.throttle.take(leaf, 1)
            scene.take(victim)
        return scene

    def _orders_of(self, app: AppView) -> Iterator[list[AskView]]:
        # By shape: what is alike is placed one after the other.
        groups = _alike(self.placeholders_of(app))
        orders: Iterable[Sequence[list[AskView]]] = permutations(groups)
        if len(groups) > SIZES_MAX:
            by_size = sorted(groups, key=lambda it: size_of(self._model.state, it[0].resource))
            orders = (groups, by_size[::-1], by_size)
        for order in orders:
            yield [ask for group in order for ask in group]

    def _cost_of(self, found: Found, now_ns: int) -> _GangCost:
        state = self._model.state
        victims = victims_of(state, [it for _, solution in found for it in solution.victims])
        specs = [ask.ask.spec for ask, _ in found]
        for victim in victims:
            leaf = state.applications[specs[0].application_id].queue
            victim.see_from(leaf, min(spec.priority for spec in specs))
        singles = [victim for victim in victims if not victim.is_whole]
        gangs = [gang_of(state, victim, now_ns) for victim in victims if victim.is_whole]
        return loss_of(gangs, singles), len(singles)

    def _find_all(self, asks: list[AskView], searches: Searches) -> Found | None:
        """Return room for each repeat, or None if one has none: then all is as before."""
        state = self._model.state
        found: Found = []
        # One search for each shape: it goes on where the last repeat ended.
        for ask in asks:
            search = searches.of(ask.shape, ask)
            alike = [other for other in asks if other.shape is ask.shape]
            count = partial(sum, [repeats_left(state, it) for it in alike])
            for _ in range(repeats_left(state, ask)):
                self._attempts += 1
                solution = search.next(ask.app, ask.ask.spec, count)
                if solution is None or not _may_have(ask, solution):
                    return None
                found.append((ask, solution))
        return found


def _alike(asks: list[AskView]) -> list[list[AskView]]:
    alike: dict[Shape, list[AskView]] = {}
    for ask in asks:
        alike.setdefault(ask.shape, []).append(ask)
    return list(alike.values())


def _may_have(ask: AskView, solution: Solution) -> bool:
    return ask.ask.spec.allow_preempt_other or not solution.victims


def _may_be_less(cost: _GangCost) -> bool:
    """Whether anything goes, so that others than these may be better."""
    loss, singles = cost
    return loss.applications > 0 or singles > 0


def _largest_of(asks: Iterable[AskView]) -> Resource:
    """Return the largest amount of each type that one of the asks wants."""
    largest: Resource = {}
    for ask in asks:
        for kind, size in ask.resource.items():
            largest[kind] = max(size, largest.get(kind, 0))
    return largest
