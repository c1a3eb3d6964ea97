"""The rules of scheduling, written a second time: a slow and plain scheduler that decides nothing.

No index, nothing remembered from one fact to the next, and nothing of the planner. It answers
questions about the cluster as it stands: who comes first, what stands against an ask, which node is
its first choice, who may go for it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from yunikorn_actors.lab.model.partition_sums import (
    App,
    Ask,
    Cluster,
    Gate,
    Kept,
    Node,
    Placed,
    Queue,
    once,
    total,
)
from yunikorn_actors.values.resource import (
    Resource,
    add,
    fits_in,
    fits_in_max_undef,
    match_any,
    sub,
    sub_only_existing,
)

Victims = Sequence[Placed]
LIVING = ("Accepted", "Starting", "Running", "Completing")
NOTHING_WAITS = -(2**31)
LENDING = ("all", "turns", "free")
"""Which asks lend their priority: all, those that may have their turn, those no gang holds back."""


class Model(Cluster):
    # -- the order: queues, applications, asks

    def before(self, one: Ask, two: Ask) -> bool:
        """Whether the first surely comes before the second, whichever asks lend their priority."""
        lending = LENDING if self.some_are_held_back() else LENDING[:1]
        return all(self._before(one, two, lends) for lends in lending)

    @once
    def some_are_held_back(self) -> bool:
        return any(map(self.is_held_back, self.waiting()))

    def is_held_back(self, ask: Ask) -> bool:
        return self.blocked(ask) or (ask.spec.placeholder and self.is_held(ask.app))

    @once
    def urgent(self, lends: str) -> list[Ask]:
        """Return the asks that lend their priority."""
        bars = {"all": lambda _: False, "turns": self.blocked, "free": self.is_held_back}[lends]
        return [ask for ask in self.waiting() if not bars(ask)]

    def _before(self, one: Ask, two: Ask, lends: str) -> bool:
        if one.app is two.app:
            return _rank_of_ask(one) < _rank_of_ask(two)
        for x, y in zip(one.app.leaf.up[::-1], two.app.leaf.up[::-1], strict=False):
            if x is not y:
                a, b = self.rank_of_queue(x, lends), self.rank_of_queue(y, lends)
                return a < b if a != b else _exceeds(self.pending(x), self.pending(y))
        return self.rank_of_app(one.app, lends) < self.rank_of_app(two.app, lends)

    @once
    def rank_of_queue(self, queue: Queue, lends: str) -> tuple[Any, ...]:
        assert queue.parent is not None
        says = queue.parent.says
        rank = queue.spec.position if says.queue_sort_policy == "fifo" else self.share(queue)
        here = [ask for ask in self.urgent(lends) if queue in ask.app.leaf.up]
        shown = [_shown(ask.spec.priority, ask.app.leaf, queue.parent) for ask in here]
        urgency = -max(shown, default=NOTHING_WAITS)
        return (urgency, rank) if says.application_sort_priority else (rank, urgency)

    def share(self, queue: Queue) -> float:
        due = dict(self.capacity())
        for level in reversed(queue.up):
            due = due | (level.spec.max or {}) if due else {}
        due |= queue.spec.guaranteed or {}
        used = self.used(queue).items()
        parts = [
            n / due[kind] if due[kind] > 0 else 1.0 for kind, n in used if n > 0 and kind in due
        ]
        return max(parts, default=0.0)

    @once
    def rank_of_app(self, app: App, lends: str) -> tuple[Any, ...]:
        says = app.leaf.says
        mine = [ask.spec.priority for ask in self.urgent(lends) if ask.app is app]
        urgency = -max(mine, default=NOTHING_WAITS)
        rank: tuple[Any, ...] = (app.age,)
        arrival = app.serial
        if says.application_sort_policy == "fair":
            due = app.leaf.spec.guaranteed or {}
            used = total(placed.size for placed in self.reals_of(app)).items()
            rank = tuple(sorted((n / (due.get(kind) or 1) for kind, n in used if n), reverse=True))
            arrival = 0
        ranks = (urgency, rank) if says.application_sort_priority else (rank, urgency)
        return (*ranks, arrival)

    # -- gates

    @once
    def may_run(self, app: App) -> bool:
        """Running ones always; an accepted one when there is a place for it everywhere."""
        if app.state != "Accepted":
            return app.state in LIVING
        if app.leaf.says.application_sort_policy == "stateaware" and not self._is_next(app):
            return False
        return all(self._has_place_in(app, gate) for gate in self.gates(app))

    def _has_place_in(self, app: App, gate: Gate) -> bool:
        """Allocations take places first, then reservations, the older ones first."""
        takes = self._runs if gate.queue else _counts
        if not gate.most_apps or takes(app):
            return True
        keepers = list(dict.fromkeys(kept.ask.app for kept in (*self.ending, *self.kept)))
        first = keepers[: keepers.index(app)] if app in keepers else keepers
        return sum(takes(other) or other in first for other in gate.apps) < gate.most_apps

    def _is_next(self, app: App, *, surely: bool = False) -> bool:
        """Whether a stateaware leaf may let the application start.

        Whether an older one bars it whose gang is held is open: a held gang bars nobody. One whose
        first real allocation takes a placeholder's room over is as good as Starting.
        """
        for other in self.below(app.leaf):
            older = other.state == "Accepted" and (other.age, other.serial) < (app.age, app.serial)
            swaps = other.state == "Accepted" and self.is_swapping(other)
            if other is not app and (other.state == "Starting" or swaps):
                return False
            asks = self.asks_of(other)
            if older and asks and (surely or not all(map(self.is_held_back, asks))):
                return False
        return True

    def _runs(self, app: App) -> bool:
        """Whether it takes a place in its queues."""
        holds = app.state in ("Accepted", "Resuming") and bool(self.of(app))
        return holds or app.state in ("Starting", "Running")

    def _keeps(self, app: App) -> bool:
        return any(kept.ask.app is app for kept in (*self.kept, *self.ending))

    def is_held(self, app: App) -> bool:
        """Whether its placeholders wait for the admission of the gang."""
        rest = self.unplaced(app)
        return app.leaf.says.gang_admission == "hold" and not app.admitted and any(rest.values())

    def unplaced(self, app: App) -> Resource:
        rest = sub(app.spec.placeholder_ask, app.placed)
        return {kind: max(0, n) for kind, n in rest.items()}

    def blocked(self, ask: Ask) -> bool:
        """Whether the rules of gangs keep a real ask from being placed plainly."""
        if ask.spec.placeholder:
            return False
        if self.awaits_placeholders(ask.app):
            return True
        group = ask.spec.task_group
        return any(held.spec.task_group == group for held in self.placeholders_of(ask.app))

    def has_headroom(self, ask: Ask) -> bool:
        """Whether each maximum has room; promises to others count in queues below the root."""
        for gate in self.gates(ask.app):
            promised = sub(self.claimed(gate.apps), self.redeems(ask)) if gate.queue else {}
            if not self.leaves_room(gate.most, add(gate.used, promised), ask.size):
                return False
        used = self.used(self.queues["root"])
        return bool(ask.spec.required_node) or self.leaves_room(self.capacity(), used, ask.size)

    @staticmethod
    def leaves_room(most: Resource | None, used: Resource, size: Resource) -> bool:
        return fits_in_max_undef(size, sub_only_existing(most, used))

    def gate(self, ask: Ask) -> str:
        """Say what stands against placing an ask, whatever the nodes are."""
        if not self.may_run(ask.app):
            return "its application may not run"
        if ask.spec.placeholder and self.is_held(ask.app):
            return "its gang is held"
        if self.blocked(ask):
            return "it waits for placeholders"
        return "" if self.has_headroom(ask) else "a quota is used up"

    # -- nodes

    def keeps_of(self, ask: Ask) -> list[Kept]:
        return [kept for kept in (*self.kept, *self.ending) if kept.ask is ask]

    def admits(self, node: Node, ask: Ask) -> bool:
        """Whether an ask may be placed on a node, if it has room."""
        if ask.spec.required_node:
            return ask.spec.required_node == node.id
        mine = any(kept.node == node.id for kept in self.keeps_of(ask))
        others = any(kept.node == node.id and kept.ask is not ask for kept in self.kept)
        return node.takes_work and (mine or not others)

    def score(self, node: Node) -> float:
        free, share = self.free(node), 0.0
        weights = {k: w for k, w in self.node_sort.weights.items() if w and k in node.capacity}
        if self.node_sort.policy == "least-fragmentation":
            used = {k: 1.0 - free.get(k, 0) / node.capacity[k] for k in sorted(weights)}
            most = max(weights.values(), default=0.0)
            return math.prod(max(0.0, 1.0 - weights[k] / most * u) for k, u in used.items())
        for kind, weight in weights.items():
            share += weight * (1.0 - free.get(kind, 0) / node.capacity[kind])
        share = share / sum(weights.values()) if weights else 0.0
        return 1.0 - share if self.node_sort.policy == "binpacking" else share

    def is_better(self, one: Node, two: Node) -> bool:
        """Whether a node comes first, beyond what the last bit of a number may say."""
        a, b = self.score(one), self.score(two)
        return a < b - 1e-9 or (a == b and one.id < two.id)

    @once
    def fitting(self, ask: Ask) -> list[Node]:
        """Return the nodes that could take the ask now, the first choice first."""
        nodes = [n for n in self.nodes.values() if fits_in(ask.size, self.free(n))]
        nodes = [n for n in nodes if self.admits(n, ask)]
        return sorted(nodes, key=lambda node: (self.score(node), node.id))

    def is_placeable(self, ask: Ask) -> bool:
        return bool(self.fitting(ask)) and not self.gate(ask) and self.surely_runs(ask.app)

    def surely_runs(self, app: App) -> bool:
        aware = app.leaf.says.application_sort_policy == "stateaware" and app.state == "Accepted"
        return self.may_run(app) and (not aware or self._is_next(app, surely=True))

    @once
    def has_turn(self, ask: Ask) -> bool:
        """Whether something must be decided for this ask, if nobody is before it."""
        return self.is_placeable(ask) or self.must_admit(ask)

    # -- gangs

    def must_admit(self, ask: Ask) -> bool:
        """Whether a gang is admitted at its turn, though admitted ones may take a place as well."""
        app = ask.app
        if not (ask.spec.placeholder and self.is_held(app) and self.surely_runs(app)):
            return False
        if app.lapsed is not None and any(self._goes_before(o, app) for o in self.waiting()):
            return False
        for gate in self.gates(app):
            takes = self._runs if gate.queue else _counts
            stay = [takes(other) or self._keeps(other) for other in gate.apps]
            coming = [it.admitted and not stays for it, stays in zip(gate.apps, stay, strict=True)]
            if any(coming) and 0 < gate.most_apps <= sum(stay) + sum(coming):
                return False
        aware = app.leaf.says.application_sort_policy == "stateaware"
        if aware and any(map(self._is_coming, self.below(app.leaf))):
            return False
        return self.has_room_for_all(app, claims=True)

    def _is_coming(self, app: App) -> bool:
        """Whether its gang is admitted and it has no place in its leaf, or none any more."""
        return app.admitted and not (self._runs(app) or self._keeps(app))

    def _goes_before(self, other: Ask, app: App) -> bool:
        return self.may_run(other.app) and self.fits_before(other, app)

    def fits_before(self, other: Ask, app: App) -> bool:
        """Whether another gang that fits is held, behind which one that lapsed waits."""
        o = other.app
        if o is app or not other.spec.placeholder or not self.is_held(o):
            return False
        first = o.lapsed is None or o.lapsed <= (app.lapsed or 0)
        return first and self.has_room_for_all(o, claims=False)

    def has_room_for_all(self, app: App, *, claims: bool) -> bool:
        """Whether each maximum on the way has room for what was never placed of a gang."""
        need = {kind: n for kind, n in self.unplaced(app).items() if n}
        for gate in self.gates(app):
            used = add(gate.used, self.claimed(gate.apps) if gate.queue else {})
            if gate.queue or claims:
                used = add(used, self.promised(gate.apps, app))
            if not self.leaves_room(gate.most, used, need):
                return False
        return True

    def promised(self, apps: list[App], but: App) -> Resource:
        """What admitted gangs have not placed yet."""
        return total(
            self.unplaced(app) for app in apps
            if app is not but and app.admitted
            and (app.state == "Accepted" or self.awaits_placeholders(app))
        )  # fmt: skip

    def awaits_placeholders(self, app: App) -> bool:
        return any(ask.spec.placeholder for ask in self.asks_of(app))

    def usable(self, ask: Ask) -> list[Placed]:
        """Return the placeholders of the ask's group that were not asked back."""
        group = ask.spec.task_group
        if ask.spec.placeholder or not group:
            return []
        mine = [held for held in self.placeholders_of(ask.app) if not held.leaving]
        return [held for held in mine if held.spec.task_group == group]

    def may_swap(self, ask: Ask) -> bool:
        waits = self.awaits_placeholders(ask.app)
        return self.may_run(ask.app) and not waits and not ask.spec.placeholder

    # -- preemption

    def meeting(self, one: Queue, two: Queue) -> Queue:
        return next(queue for queue in one.up if queue in two.up)

    def is_below_fence(self, ask: Ask, victim: Placed) -> bool:
        """Whether the ask's way up to where both paths meet passes no fence."""
        meet = self.meeting(ask.app.leaf, victim.app.leaf)
        for queue in ask.app.leaf.up:
            if queue is meet:
                return True
            used = add(self.stays(queue), self.claimed(self.below(queue), ask))
            full = not self.leaves_room(queue.spec.max, used, ask.size)
            if queue.says.preemption_policy == "fence" or full:
                return False
        return False

    def may_go(self, ask: Ask, victim: Placed) -> bool:
        """Whether the rules let one allocation go for an ask, guarantees apart."""
        mine, theirs = ask.app.leaf, victim.app.leaf
        if victim.leaving or victim.spec.required_node or not match_any(victim.size, ask.size):
            return False
        if ask.spec.required_node:
            bound = theirs.says.preemption_unit == "application"
            if bound and victim.app is ask.app:
                return False
            # What its leaf binds together goes with a part that is there.
            here = bound or victim.node == ask.spec.required_node
            return here and victim.spec.priority <= ask.spec.priority
        if mine is theirs or theirs.says.preemption_policy == "disabled":
            return False
        meet = self.meeting(mine, theirs)
        if self.now - victim.since < theirs.says.preemption_cooldown_ns:
            return False
        urgent = _shown(ask.spec.priority, mine, meet) >= _shown(victim.spec.priority, theirs, meet)
        source = self.source(ask)
        own = any(q.spec.guaranteed for q in theirs.up[: theirs.up.index(meet)])
        inside = source is not mine and source in theirs.up and not own
        return urgent and self.is_below_fence(ask, victim) and not inside

    def is_in_budget(self, victims: Victims) -> bool:
        """Whether no queue loses more within its time than it allows, for a guarantee."""
        for leaf in {id(v.app.leaf): v.app.leaf for v in victims}.values():
            budget = leaf.says.preemption_budget
            if not budget.window_ns:
                continue
            gone = sum(at > self.now - budget.window_ns for at in leaf.gone)
            runs = sum(p.app.leaf is leaf for p in self.placed.values() if self._runs_on(p))
            most = math.ceil((runs + gone) * budget.most / 100) if budget.is_share else budget.most
            if gone + sum(v.app.leaf is leaf for v in victims) > most:
                return False
        return True

    def _runs_on(self, placed: Placed) -> bool:
        return not placed.leaving or placed.uuid in self.swaps

    # -- what goes as one

    def is_bound(self, app: App, ask: Ask | None) -> bool:
        """Whether an application goes as one: for this ask, or for a quota."""
        by_guarantee = ask is not None and not ask.spec.required_node
        is_set = app.leaf.says.preemption_unit is not None
        return (by_guarantee or is_set) and self.goes_whole(app)

    def goes_whole(self, app: App) -> bool:
        """Whether it is to go as one where no number is to be met, or its leaf says so."""
        unit = app.leaf.says.preemption_unit
        if unit is not None:
            return unit == "application"
        hard = app.spec.gang_style.lower() == "hard"
        return hard and any(app.spec.placeholder_ask.values())

    def stay_of(self, app: App) -> list[Placed]:
        """Return what stays when all that was asked back is gone; a swap goes on."""
        return [p for p in self.of(app) if not p.leaving or p.uuid in self.swaps]

    def makes_whole(self, app: App, present: Iterable[Placed]) -> bool:
        """Whether with these alone the gang has all that it needs."""
        has = total(p.size for p in present if p.spec.task_group in app.groups)
        needs = sub(app.spec.placeholder_ask, app.spared)
        return all(n <= has.get(kind, 0) for kind, n in needs.items())

    def tears(self, app: App, victims: Victims) -> bool:
        """Whether an application that is bound is left in parts when these are gone."""
        stays = self.stay_of(app)
        left = [p for p in stays if p not in victims]
        if not left:
            return False
        if not any(app.spec.placeholder_ask.values()):
            return True
        lost = any(p.spec.originator for p in stays if p in victims)
        holds = self.makes_whole(app, stays) or app.leaf.says.preemption_unit is not None
        return holds and (lost or not self.makes_whole(app, left))

    def part(self, placed: Placed) -> int:
        """Rank what a gang loses: what is broken, a surplus, work that goes alone, a whole gang.

        A member counts as surplus if the gang is whole without it, whichever is the newest.
        """
        app = placed.app
        gang = any(app.spec.placeholder_ask.values())
        if not self.goes_whole(app):
            return ALONE
        is_set = app.leaf.says.preemption_unit is not None
        if gang and not is_set and not self.makes_whole(app, self.stay_of(app)):
            return BROKEN
        return WHOLE if self.tears(app, [placed]) else SURPLUS

    def units_for(self, ask: Ask, here: Iterable[Placed]) -> Iterator[list[Placed]]:
        """Yield what goes as one of some work, the more willing first."""
        seen: set[str] = set()
        for placed in sorted(here, key=lambda item: willing(item, ask)):
            unit = [placed]
            if self.is_bound(placed.app, ask) and self.tears(placed.app, unit):
                unit = self.stay_of(placed.app)
            if placed.uuid not in seen and all(self.may_go(ask, p) for p in unit):
                seen |= {p.uuid for p in unit}
                yield unit

    def source(self, ask: Ask) -> Queue | None:
        """Return the queue whose guarantee entitles the ask: its leaf, or the next above it."""
        return next((q for q in ask.app.leaf.up if q.spec.guaranteed), None)

    def is_entitled(self, ask: Ask, victims: Victims = ()) -> bool:
        """Whether a guarantee has room for the ask, once these are gone."""
        queue = self.source(ask)
        if queue is None or not match_any(queue.spec.guaranteed, ask.size):
            return False
        return self.leaves_room(queue.spec.guaranteed, self.spoken_for(queue, victims), ask.size)

    def stays(self, queue: Queue, victims: Victims = ()) -> Resource:
        """What a queue uses still when these and all that was asked back are gone."""
        gone = total(v.size for v in victims if queue in v.app.leaf.up)
        return sub(sub(self.used(queue), self.leaving(queue)), gone)

    def spoken_for(self, queue: Queue, victims: Victims = ()) -> Resource:
        """As `stays`, and what is promised counts as used."""
        return add(self.stays(queue, victims), self.claimed(self.below(queue)))

    def keeps_guarantee(self, ask: Ask, victims: Victims) -> bool:
        """Whether every queue that gives is above its guarantee before and not below it after.

        What is promised to it counts as used. It is above in a type of each of its victims.
        """
        if len(victims) > 1 and not all(self.keeps_guarantee(ask, [one]) for one in victims):
            return False
        for victim in victims:
            meet = self.meeting(ask.app.leaf, victim.app.leaf)
            for queue in victim.app.leaf.up:
                if queue is meet:
                    break
                gone = total(v.size for v in victims if queue in v.app.leaf.up)
                before = self.spoken_for(queue)
                due = {k: n for k, n in (queue.spec.guaranteed or {}).items() if gone.get(k)}
                wanted = [kind for kind in due if ask.size.get(kind)] or list(due)
                if due and not any(before.get(kind, 0) > due[kind] for kind in wanted):
                    return False
                after = sub(before, gone)
                if any(before.get(kind, 0) >= n > after.get(kind, 0) for kind, n in due.items()):
                    return False
        return True

    def makes_room(self, ask: Ask, node: Node, victims: Victims, ahead: Sequence[Ask] = ()) -> bool:
        """Whether the ask fits when these and all that was asked back are gone.

        Those ahead of it take their room first, and take it here.
        """
        leaving = [p for p in self.placed.values() if p.leaving and not self._hands_over(p)]
        free = self.free(node)
        for placed in {p.uuid: p for p in (*victims, *leaving)}.values():
            free = add(free, placed.size if placed.node == node.id else {})
        for kept in self.kept:
            mine = kept.ask is ask and not kept.claims  # what is promised to it is for a repeat
            spoken = kept.node == node.id and not mine
            free = sub(free, kept.size if spoken and self._speaks(kept) else {})
        if not fits_in(ask.size, sub(free, _wanted(ahead))):
            return False
        if ask.spec.required_node:
            return True
        for queue in ask.app.leaf.up:
            most = self.capacity() if queue.parent is None else queue.spec.max
            coming = _wanted(other for other in ahead if queue in other.app.leaf.up)
            used = add(self.spoken_for(queue, victims), coming)
            if not self.leaves_room(most, used, ask.size):
                return False
        return True

    def only_waits(self, ask: Ask) -> bool:
        """Whether it needs no victims: a node has room, and what is in its way already leaves."""
        may = self.waited_for_preemption(ask) and self.may_preempt(ask) and self.is_entitled(ask)
        return may and any(self.makes_room(ask, node, ()) for node in self.fitting(ask))

    def _speaks(self, kept: Kept) -> bool:
        """Whether what comes free is spoken for: of a node required, while others still go for it.

        What is left of it once they have gone, and nobody took by force, is not known here.
        """
        return kept.claims or any(uuid in self.placed for uuid in kept.victims)

    def took_victims_on(self, node: Node, but: Ask) -> list[Ask]:
        """List for which other asks that require this node all victims have gone."""
        made = (kept for kept in self.kept if kept.node == node.id and kept.victims)
        return [kept.ask for kept in made if kept.ask is not but and not self._speaks(kept)]

    def _hands_over(self, placed: Placed) -> bool:
        """Whether a real ask takes the place over, so that it does not come free."""
        swap = self.swaps.get(placed.uuid)
        return swap is not None and not swap.crosses

    def victims_on(self, ask: Ask, node: Node, until: float) -> list[Placed] | None:
        """Collect victims on one node, newest first; None where this simple way leads to none."""
        chosen: list[Placed] = []
        here = [p for p in self.placed.values() if p.node == node.id and p.came <= until]
        here = [p for p in here if self.may_go(ask, p)]
        for unit in self.units_for(ask, here):
            if self.makes_room(ask, node, chosen):
                break
            torn = len(unit) == 1 and self.tears(unit[0].app, [*chosen, *unit])
            if torn and self.is_bound(unit[0].app, ask):
                continue
            more = [*chosen, *(p for p in unit if p not in chosen)]
            if ask.spec.required_node or (
                self.keeps_guarantee(ask, more) and self.is_in_budget(more)
            ):
                chosen += [p for p in unit if p not in chosen]
        return chosen if chosen and self.makes_room(ask, node, chosen) else None

    def may_preempt(self, ask: Ask) -> bool:
        """Whether an ask may have others go now; quotas above may come free with them."""
        claims = sum(kept.claims for kept in self.keeps_of(ask))
        if not ask.spec.allow_preempt_other or claims >= ask.left or self.blocked(ask):
            return False
        held = ask.spec.placeholder and self.is_held(ask.app)
        return self.may_run(ask.app) and not held and all(
            self.leaves_room(gate.most, add(gate.used, self.claimed(gate.apps, ask)), ask.size)
            for gate in self.gates(ask.app) if gate.queue is None
        )  # fmt: skip

    def preemption_delay(self, ask: Ask) -> int:
        return ask.app.leaf.says.preemption_delay_ns or self.settings.preemption_delay_ns

    def waited_for_preemption(self, ask: Ask) -> bool:
        return self.now >= ask.created + self.preemption_delay(ask)

    def waiting_of_gang(self, ask: Ask) -> list[Ask]:
        """Return the placeholders that wait with an ask, of which all have victims or none."""
        if not ask.spec.placeholder or not any(ask.app.spec.placeholder_ask.values()):
            return []
        asks = [other for other in self.asks_of(ask.app) if other.spec.placeholder]
        return [other for other in asks if not other.spec.required_node]

    def claims_all(self, ask: Ask) -> bool:
        """Whether the guarantee of its leaf has room for all of its gang that is to come."""
        asks, leaf = self.waiting_of_gang(ask), ask.app.leaf
        if not asks:
            return True
        mine = total(kept.size for kept in self.kept if kept.claims and kept.ask in asks)
        wanted = sub(_wanted(asks), mine)
        used = add(self.spoken_for(leaf), wanted)
        bound = leaf.spec.guaranteed or {}
        return all(used.get(k, 0) <= n for k, n in bound.items() if wanted.get(k, 0) > 0)

    def could_preempt(self, ask: Ask, until: float = math.inf) -> bool:
        """Whether a victim must go for an ask: one node, its willing work, newest first.

        Of those that were placed until some revision; nobody where enough comes free already.
        """
        if not self.may_preempt(ask) or self.fitting(ask) or not self.surely_runs(ask.app):
            return False
        if ask.spec.required_node:
            nodes = [n for n in self.nodes.values() if n.id == ask.spec.required_node]
        elif self.config.preemption_enabled and self.is_entitled(ask) and ask.left == 1:
            # Of a gang all have victims or none: that is more than is looked at here.
            if self.waiting_of_gang(ask):
                return False
            nodes = [n for n in self.nodes.values() if n.takes_work]
            nodes = [n for n in nodes if all(k.claims for k in self.kept if k.node == n.id)]
        else:
            return False
        nodes = [n for n in nodes if fits_in(ask.size, n.capacity)]
        if any(self.makes_room(ask, n, ()) for n in nodes):
            return False
        return any(self.victims_on(ask, n, until) is not None for n in nodes)


BROKEN, SURPLUS, ALONE, WHOLE = range(4)


def _counts(app: App) -> bool:
    return app.counts


def _rank_of_ask(ask: Ask) -> tuple[int, ...]:
    return (-ask.spec.priority, ask.created, ask.sequence)


def _wanted(asks: Iterable[Ask]) -> Resource:
    return total(ask.size for ask in asks for _ in range(ask.left))


def _exceeds(left: Resource, right: Resource) -> bool:
    rest = sub(left, right).values()
    return any(rest) and all(n >= 0 for n in rest)


def _shown(priority: int, leaf: Queue, top: Queue | None) -> int:
    """Carry a priority up to a queue: each on the way adds its offset, or fences."""
    for queue in leaf.up:
        if queue is top:
            break
        offset = queue.says.priority_offset
        priority = offset if queue.says.priority_fence else priority + offset
    return priority


def willing(placed: Placed, ask: Ask) -> tuple[Any, ...]:
    """Rank victims: what opted out goes last, but before originators on a node that is required."""
    marks = (not placed.spec.allow_preempt_self, placed.spec.originator)
    return (*(marks[::-1] if ask.spec.required_node else marks), -placed.created)
