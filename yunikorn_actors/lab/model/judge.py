"""Follows what the core announces, and judges it by the model.

Each decision is judged on the cluster as it stood then: do the rules allow it, and was another ask
first? At rest: does something wait that must go on, and has everything been announced? What cannot
be seen from outside is counted as undecided.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.model.partition_sums import App, Ask, Placed, Queue, total
from yunikorn_actors.lab.model.quota_rules import QuotaRules
from yunikorn_actors.lab.model.rules import LIVING, SURPLUS, WHOLE, Model, willing
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.base import Message
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.values.durations import HOUR, MILLISECOND, SECOND
from yunikorn_actors.values.resource import (
    Resource,
    add,
    equals_or_empty,
    fit_in_score,
    fits_in,
    fits_in_max_undef,
    sub,
)

AGAIN = 15 * SECOND
"""Between two attempts to preempt for one ask."""
NEXT_STATES = {
    "New": ("Accepted", "Failing", "Resuming", "Rejected"),
    "Accepted": ("Starting", "Running", "Completing", "Failing", "Resuming"),
    "Starting": ("Running", "Completing", "Failing"),
    "Running": ("Completing", "Failing"),
    "Completing": ("Running", "Completed"),
    "Resuming": ("Accepted",),
    "Failing": ("Failed",),
}


class Difference(CoreError):  # noqa: N818 - a word of this page, as the other errors of the core
    """The core did what the rules do not allow, or left undone what they say must happen."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Judge(Model):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.checks: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()
        self.is_stale = False
        """The decision at hand was made before something else happened."""
        self.as_of: int | None = None
        """What the plan at hand knew."""
        self.seen = 0
        """The same; in `fused`, what stood when it was made."""
        self.rested = self.rested_ns = 0
        """The revision at the last rest, and its time."""
        self.passed_by = False
        """Whether something was placed since then and has ended: meanwhile less was owed."""
        self.is_fused = False
        """Each plan is made on the truth, and carried out at once."""
        self.let_go: dict[str, int] = {}
        """Nodes that were still kept when this was planned, and the revision that ended it."""
        self.lost: dict[Ask, int] = {}
        """The same of asks for which one was kept."""
        self.came: dict[str, int] = {}
        """The revision at which a node came last."""
        self.uncounted: dict[str, int] = {}
        """Nodes that came while a decision for one of their name was on its way: a planner counts
        it there as soon as it hears of it. With the revision of that."""
        self.unpromised: set[str] = set()
        """Allocations that used no reservation up."""
        self.moved: dict[Queue, int] = {}
        """Leaves in order of states where one started or took its place since this was planned."""
        self.entering: App | None = None
        """Its gang was admitted with the last decision: its placeholders are tried at once."""
        self.delays: dict[str, int] = {}
        """Of queues that are to come down, by which that time was worked out."""
        self.unnotified: Counter[tuple[str, ...]] = Counter()
        """What the resource manager is to hear; below zero what it heard without a fact."""

    def must(self, kind: str, ok: bool, text: str) -> None:
        self.checks[kind] += 1
        if not ok:
            raise Difference(kind, text)

    def should(self, kind: str, ok: bool, text: str, *, unsure: bool = False) -> None:
        """What was right when it was decided may not be the first choice any more."""
        if ok or not (self.is_stale or self.owed or unsure):
            self.must(kind, ok, text)
        else:
            self.checks[kind] += 1
            self.undecided[kind] += 1

    def begin(self, as_of: int | None = None, *, is_stale: bool = False) -> None:
        """A message begins to be handled; a plan may have been made before other news."""
        self.is_stale = is_stale
        if as_of is None or as_of != self.as_of:
            self.entering = None
        self.as_of = as_of
        self.ending.clear()
        self.seen = seen = as_of if as_of is not None else self.revision if self.is_fused else 0
        self.let_go = {node: at for node, at in self.let_go.items() if at > seen}
        self.lost = {ask: at for ask, at in self.lost.items() if at > seen}
        self.uncounted = {node: at for node, at in self.uncounted.items() if at > seen}
        self.moved = {leaf: at for leaf, at in self.moved.items() if at > seen}

    def follow(self, fact: f.Fact) -> None:
        self.revision += 1
        if isinstance(fact, f.NodeAdded):
            self.came[fact.node_id] = self.revision
        if isinstance(fact, f.AllocationReleased):
            self.passed_by |= self.placed[fact.uuid].came > self.rested
        check = CHECKS.get(type(fact))
        if check is not None:
            check(self, fact)
        self.unnotified.update(_notices_of(fact))
        self.apply(fact)
        if isinstance(fact, f.AllocationCommitted | f.ReservationMade | f.AskParked):
            self.ending.clear()
        self.owed = [a for a in self.owed if a.left and self._is_owed(a)]

    def _is_owed(self, ask: Ask) -> bool:
        return any(p.leaving == "PLACEHOLDER_REPLACED" for p in self.of(ask.app))

    def receive(self, message: Message) -> None:
        """Take note of what the resource manager is notified of."""
        if isinstance(message, c.CallUpdateAllocation):
            told = message.response
            self.unnotified.subtract(("new", item.uuid) for item in told.new)
            self.unnotified.subtract(
                ("released", it.uuid, it.termination_type.name) for it in told.released
            )
        elif isinstance(message, c.CallUpdateApplication):
            told_of = message.response.updated
            self.unnotified.subtract(("state", item.application_id, item.state) for item in told_of)

    def check_notified(self) -> None:
        """Nothing is on its way: the resource manager was notified of everything once."""
        wrong = [what for what, times in self.unnotified.items() if times]
        self.must("told", not wrong, f"told too often or not at all: {wrong}")

    # -- decisions

    def _is_new(self, ask: Ask) -> bool:
        """Whether the ask has room only where a node was kept when this was planned."""
        return bool(self.let_go) and {node.id for node in self.fitting(ask)} <= self.let_go.keys()

    def _turn(self, ask: Ask, what: str) -> None:
        """Nobody before this ask could have been given something."""
        entering, self.entering = self.entering, None
        if entering is ask.app and ask.spec.placeholder:
            self.entering = entering
            return
        for mate in self.waiting():
            left = entering is mate.app and mate.spec.placeholder and self.is_placeable(mate)
            text = f"{what} {_name(ask)} amid the gang of {_name(mate)}"
            self.should("gang", not left, text, unsure=self._is_new(mate))
        mine = self._was_kept_for(ask)
        for other in self.waiting():
            if other is ask or other.app.state not in LIVING:
                continue
            reserved = self._was_kept_for(other)
            first = self.before(other, ask) if reserved is mine else reserved
            if first and not (mine and reserved):
                name = f"{what} {_name(ask)}, but {_name(other)} comes first"
                unsure = self._is_new(other) or other.app.leaf in self.moved
                unsure = unsure or self._waits_behind_gangs(other) or self._is_for_others(other)
                self.should("order", not self.has_turn(other), name, unsure=unsure)

    def _waits_behind_gangs(self, ask: Ask) -> bool:
        """Whether its gang has lapsed and another one fits, if only it may start in this plan."""
        lapsed = ask.spec.placeholder and ask.app.lapsed is not None
        return lapsed and any(self.fits_before(other, ask.app) for other in self.waiting())

    def _was_kept_for(self, ask: Ask) -> bool:
        """Whether it had a reservation when this was planned: one on its way is none yet.

        While more repeats wait than room is promised to, one that goes elsewhere ends no promise,
        so it has no better turn than others.
        """
        kept = [it for it in self.keeps_of(ask) if it.came <= self.seen or self.is_fused]
        mine = [it for it in self.of(ask.app) if it.spec is ask.spec and it.came > self.seen]
        since = sum(placed.uuid in self.unpromised for placed in mine)
        if all(it.claims for it in kept) and len(kept) < ask.left + since:
            nodes = {node.id for node in self.fitting(ask)}
            return any(it.node in nodes for it in kept)
        return bool(kept)

    def _placing(self, fact: f.AllocationCommitted) -> None:
        if not fact.proposal_id:
            return
        ask, name = self.asks[fact.application_id, fact.key], f"{fact.application_id}/{fact.key}"
        node = self.nodes.get(fact.node_id)
        self.must("ask", ask.left > 0, f"{name} does not wait")
        self.must("gate", not self.gate(ask), f"{name} placed although {self.gate(ask)}")
        assert node is not None, f"{name} on a node that is not there"
        self.must("node", self.admits(node, ask), f"{name} may not run on {node.id}")
        room = fits_in(ask.size, self.free(node))
        self.must("node", room, f"{name} placed on {node.id}, which has no room")
        kept = {item.node for item in self.keeps_of(ask)}
        choices = self.fitting(ask)
        choices = [n for n in choices if n.id in kept] or choices
        other_order = "node.sort.policy" in ask.app.spec.tags or node.id in kept
        if not any(it.ask is ask for it in self.ending):
            self.unpromised.add(fact.uuid)
        text = f"{name} on {node.id}, but {choices[0].id} is its first choice"
        first = other_order or not self.is_better(choices[0], node)
        unsure = choices[0].id in self.let_go or bool(
            {choices[0].id, node.id} & self.uncounted.keys()
        )
        self.should("node", first, text, unsure=unsure)
        if self.as_of is not None and self.came.get(node.id, 0) > self.as_of:
            self.uncounted[node.id] = self.revision
        self._turn(ask, "placed")
        aware = ask.app.leaf.says.application_sort_policy == "stateaware"
        if aware and ask.app.state == "Accepted" and not self.of(ask.app):
            self.moved[ask.app.leaf] = self.revision

    def _admitted(self, fact: f.GangAdmitted) -> None:
        app = self.apps[fact.application_id]
        asks = [ask for ask in self.asks_of(app) if ask.spec.placeholder]
        self.must("gang", self.is_held(app) and bool(asks), f"{app.id} admitted, but is not held")
        self.should("gang", self.may_run(app), f"{app.id} admitted, but may not run")
        fits = self.has_room_for_all(app, claims=False)
        self.must("gang", fits, f"{app.id} admitted, but its queues or limits have no room for all")
        if app.lapsed is not None:
            for other in self.waiting():
                first = other.app.lapsed is None and self.must_admit(other)
                text = f"{app.id} admitted again, but {_name(other)} comes first"
                unsure = other.app.leaf in self.moved
                self.should("gang", other.app is app or not first, text, unsure=unsure)
        self._turn(min(asks, key=lambda a: (-a.spec.priority, a.created, a.sequence)), "admitted")
        self.entering = app

    def _lapsing(self, fact: f.GangLapsed) -> None:
        app = self.apps[fact.application_id]
        late = app.admitted and self.now >= app.bare_since + self.gang_timeout(app)
        bare = not self.placeholders_of(app)
        self.must("gang", late and bare, f"{app.id} is held again too early")

    def _swapping(self, fact: f.AskParked) -> None:
        ask, held = self.asks[fact.application_id, fact.key], self.placed[fact.placeholder]
        name = f"{_name(ask)} for {held.spec.key}"
        mine = held.app is ask.app and held.spec.placeholder
        mine = mine and held.spec.task_group == ask.spec.task_group
        self.must("swap", mine, f"{name}: not a placeholder of its group")
        self.must("swap", fact.placeholder not in self.swaps, f"{name}: swapped already")
        self.must("swap", fits_in(ask.size, held.size), f"{name}: it does not fit into that")
        self.must("swap", self.may_swap(ask), f"{name}: placeholders of it wait, or it may not run")
        required = ask.spec.required_node in ("", fact.node_id)
        self.must("swap", required, f"{name}: it is bound to {ask.spec.required_node}")
        self.must("swap", fact.crosses == (held.node != fact.node_id), f"{name}: wrong node")
        if fact.crosses:
            node = self.nodes[fact.node_id]
            fits = fits_in(ask.size, self.free(node)) and self.admits(node, ask)
            self.must("swap", fits, f"{name}: no room on {node.id}")
        for other in self.waiting():
            same = other.app is ask.app and other.spec.task_group == ask.spec.task_group
            first = same and not other.spec.placeholder and self.before(other, ask)
            fits = first and fits_in(other.size, held.size) and not other.spec.required_node
            self.should("swap order", not fits, f"{name}, but {_name(other)} comes first")

    def _cancelled(self, fact: f.PlaceholderCancelled) -> None:
        ask = self.asks[fact.application_id, fact.key]
        suits = any(fits_in(ask.size, p.size) for p in self.usable(ask))
        self.should(
            "swap", not suits, f"{_name(ask)} fits into a placeholder, {fact.placeholder_key} goes"
        )

    def _kept_for(self, fact: f.ReservationMade) -> None:
        ask, name = self.asks[fact.application_id, fact.key], f"{fact.key} keeps {fact.node_id}"
        node = self.nodes[fact.node_id]
        if not fact.by_preemption:
            self.must("reservation", not self.gate(ask), f"{name} although {self.gate(ask)}")
        self.must("reservation", fits_in(ask.size, node.capacity), f"{name}, which is too small")
        mine = [kept for kept in self.kept if kept.ask is ask]
        self.must("reservation", len(mine) < ask.left, f"{name}: one for each repeat")
        here = [kept for kept in self.kept if kept.node == node.id]
        if fact.required:
            fits = ask.spec.required_node == node.id and all(k.required for k in here)
            self.must("reservation", fits, f"{name}: not its own, or kept for others")
            return
        fits = node.takes_work
        self.must("reservation", fits, f"{name}, which takes no work")
        alike = all(kept.claims for kept in here) if fact.by_preemption else not here
        self.must("reservation", alike, f"{name}: kept for others")
        if not fact.by_preemption:
            ordinary = [kept for kept in self.kept if not kept.required and not kept.claims]
            self.must("reservation", len(ordinary) < self._kept_max(), f"{name}: too many are kept")
            old = self.now - ask.created > self.settings.reservation_delay_ns
            self.must("reservation", old, f"{name}, and is too young")
            free = not self.fitting(ask)
            self.should(
                "reservation", free, f"{name}, but could be placed", unsure=self._is_new(ask)
            )
            score = fit_in_score(self.free(node), ask.size)
            better = [n for grade, n in self.could_keep(ask) if grade < score - 1e-9]
            better = [n for n in better if n not in self.let_go]
            self.should("reservation", not better, f"{name}, but {better} fit better")
            for other in self.waiting():
                first = other.app.state in LIVING and self.before(other, ask)
                first = first and self.wants_node_kept(other) and not self.fitting(other)
                open_to = {name for _, name in self.could_keep(other)}
                unsure = other.app.leaf in self.moved or other in self.lost
                unsure = unsure or open_to <= self.let_go.keys()
                unsure = unsure or (other.created > ask.created and not self._was_of_age(other))
                self.should(
                    "order", not first, f"{name}, but {_name(other)} comes first", unsure=unsure
                )

    def _was_of_age(self, ask: Ask) -> bool:
        """Whether it had waited long enough for a node at the last rest, so in this plan too."""
        return self.rested_ns - ask.created > self.settings.reservation_delay_ns

    def _let_go(self, fact: f.ReservationDropped) -> None:
        self.let_go[fact.node_id] = self.revision
        self.lost.update((kept.ask, self.revision) for kept in self._keepers(fact, fact.node_id))

    def _kept_max(self) -> int:
        nodes = [n for n in self.nodes.values() if n.takes_work]
        percent = self.queues["root"].says.reservation_max_nodes_percent
        return max(2, len(nodes) * percent // 100)

    def could_keep(self, ask: Ask) -> list[tuple[float, str]]:
        return [
            (fit_in_score(self.free(node), ask.size), node.id)
            for node in self.nodes.values()
            if node.takes_work and fits_in(ask.size, node.capacity)
            and all(kept.node != node.id for kept in self.kept)
        ]  # fmt: skip

    def _releasing(self, fact: f.ReleaseRequested) -> None:
        item = self.placed[fact.uuid]
        self.must("release", not item.leaving, f"{fact.key} is asked back a second time")
        if fact.type.name != "TIMEOUT" or "incompatible" in fact.message:
            return
        app, spec = item.app, item.spec
        alone = 0 < spec.timeout_ms * MILLISECOND <= self.now - item.since
        gang = item.spec.placeholder and self.gang_is_over(app)
        over = not app.spec.is_gang and app.spec.timeout_ms > 0 and app.started is not None
        over = over and app.started + app.spec.timeout_ms * MILLISECOND <= self.now  # type: ignore[operator]
        done = (
            app.state == "Completing"
            and app.entered + self.settings.completing_timeout_ns <= self.now
        )
        self.must(
            "timeout", alone or gang or over or (done and spec.placeholder), f"{fact.key} is early"
        )

    def _withdrawing(self, fact: f.AskRemoved) -> None:
        """The core withdraws asks when a time is up.

        Of a gang its placeholders, or all of a hard one that does not run yet.
        """
        if fact.type.name != "TIMEOUT":
            return
        ask = self.asks[fact.application_id, fact.key]
        app = ask.app
        fails = app.spec.is_hard and app.state == "Accepted"
        gang = self.gang_is_over(app) and (ask.spec.placeholder or fails)
        over = not app.spec.is_gang and app.spec.timeout_ms > 0 and app.started is not None
        over = over and app.started + app.spec.timeout_ms * MILLISECOND <= self.now  # type: ignore[operator]
        self.must("timeout", gang or over, f"{_name(ask)} is withdrawn, and its time is not up")

    # -- preemption

    def _preempts(self, fact: f.PreemptionDecided) -> None:
        victims = [self.placed[uuid] for uuid in fact.victims]
        keys = [placed.spec.key for placed in victims]
        whom = f"{fact.beneficiary.key or fact.beneficiary.queue} has {keys} go"
        self._may_all_go(fact.beneficiary, victims, whom)
        if fact.beneficiary.rule is PreemptionRule.QUOTA:
            self._enforces(fact.beneficiary.queue, victims, whom)
            return
        ask = self.asks[fact.beneficiary.application_id, fact.beneficiary.key]
        if not victims:
            return
        self.must("preempt", self.may_preempt(ask), f"{whom}, but may not preempt")
        for victim in victims:
            self.must("victim", self.may_go(ask, victim), f"{whom}: {victim.spec.key} may not go")
        if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
            self.must("preempt", bool(self.config.preemption_enabled), f"{whom}: switched off")
            self.must("preempt", self.is_entitled(ask, victims), f"{whom}, but is not entitled")
            self.must("preempt", self.waited_for_preemption(ask), f"{whom}, too early")
            self.must("preempt", self.claims_all(ask), f"{whom}, and claims a part of its gang")
            self.must("victim", self.keeps_guarantee(ask, victims), f"{whom}: below a guarantee")
            self.must("victim", self.is_in_budget(victims), f"{whom}: over a budget")
            for other in self.waiting():
                # What can run on one node alone has a rule of its own, in no order with this.
                first = other.app.leaf is ask.app.leaf and not other.spec.required_node
                first = first and self.before(other, ask)
                first = first and self.waited_for_preemption(other) and other.vain_at is None
                # What was placed since the last rest may not have run yet when it was tried.
                first = first and self.could_preempt(other, self.rested)
                text = f"{whom}, but {_name(other)} comes first"
                self.should("preempt", not (first and self.could_preempt(other)), text)
        node = self.nodes[fact.node_id]
        placeable = bool(self.fitting(ask)) and self.has_headroom(ask)
        text = f"{whom}, but could be placed"
        unsure = self._is_new(ask) or self._is_for_others(ask)
        self.should("preempt", not placeable, text, unsure=unsure)
        self.should("preempt", self.makes_room(ask, node, victims), f"{whom} in vain")
        if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
            ahead = [it for it in self.waiting() if self.before(it, ask) and self.only_waits(it)]
        else:
            ahead = self.took_victims_on(node, ask)
        for victim in victims:
            rest = [p for p in victims if p is not victim]
            if self.is_bound(victim.app, ask) and self.tears(victim.app, rest):
                # It goes as one with others.
                rest = [p for p in victims if p.app is not victim.app]
            needless = self.makes_room(ask, node, rest)
            text = f"{whom}: {victim.spec.key} need not"
            # Others may take what opens there, have room there and only wait for a quota, or had
            # work go there, and what that left is theirs.
            unsure = node.id in self.let_go
            unsure = unsure or (needless and not self.makes_room(ask, node, rest, ahead))
            self.should("preempt", not needless, text, unsure=unsure)
            self._is_next_victim(ask, victim, victims, whom)

    def _may_all_go(self, beneficiary: Beneficiary, victims: list[Placed], whom: str) -> None:
        for victim in victims:
            fit = not victim.leaving and not victim.spec.required_node
            self.must("victim", fit, f"{whom}: {victim.spec.key} is bound or on its way")
        asking = self.asks.get((beneficiary.application_id, beneficiary.key))
        for app in {id(v.app): v.app for v in victims}.values():
            torn = self.is_bound(app, asking) and self.tears(app, victims)
            self.must("victim", not torn, f"{whom}: a part of {app.id} stays, which goes as one")

    def _is_for_others(self, ask: Ask) -> bool:
        """Whether all room for it is where others have work go, or are promised what comes free.

        It may be theirs.
        """
        others = [kept for kept in self.kept if kept.ask is not ask]
        made = {kept.node for kept in others if kept.victims or kept.claims}
        nodes = {node.id for node in self.fitting(ask)}
        return bool(nodes) and nodes <= made

    def _is_next_victim(self, ask: Ask, victim: Placed, victims: list[Placed], whom: str) -> None:
        """Of two that are alike the more willing goes, then the newer one.

        What the same plan has placed does not run yet when it chooses victims.
        """
        for other in self.placed.values():
            if other.came > self.seen:
                continue
            alike = other.node == victim.node and other.size == victim.size and other not in victims
            alike = alike and other.app.leaf is victim.app.leaf and self.may_go(ask, other)
            if alike and (
                not ask.spec.required_node or other.spec.priority <= victim.spec.priority
            ):
                parts = self.part(other), self.part(victim)
                if not self._are_in_order(ask, *parts):
                    continue
                better = willing(other, ask) < willing(victim, ask)
                if parts[0] != parts[1]:
                    flags = willing(other, ask)[:2], willing(victim, ask)[:2]
                    better = (flags[0], parts[0]) < (flags[1], parts[1])
                elif ask.spec.required_node and other.spec.priority < victim.spec.priority:
                    better = willing(other, ask)[:2] <= willing(victim, ask)[:2]
                self.should("victim", not better, f"{whom}, but {other.spec.key} goes before")

    def _are_in_order(self, ask: Ask | None, other: int, victim: int) -> bool:
        """Whether one of two is surely to go before the other, by what they are to their gangs.

        Which of a gang is its surplus is not known here, nor which of two whole gangs goes first;
        for a guarantee a whole gang goes for several asks at once.
        """
        if SURPLUS in (other, victim) or other == victim == WHOLE:
            return False
        for_guarantee = ask is not None and not ask.spec.required_node
        return not (for_guarantee and WHOLE in (other, victim))

    def _arms(self, fact: f.QuotaPreemptionArmed) -> None:
        text = f"{fact.path} is to come down, and is not above its maximum"
        queue = self.queues[fact.path]
        self.must("quota", self._is_above(queue), text)
        delay, due = queue.says.quota_preemption_delay_ns, self.quota_due.get(fact.path)
        # With another delay the time moves by the difference.
        right = fact.at_ns + delay if due is None else due + delay - self.delays[fact.path]
        self.must("quota", fact.due_ns == right, f"{fact.path} is to come down at another time")
        self.delays[fact.path] = delay

    def _is_above(self, queue: Queue) -> bool:
        used = self.used(queue)
        return any(used.get(kind, 0) > most for kind, most in (queue.spec.max or {}).items())

    def _enforces(self, path: str, victims: list[Placed], whom: str) -> None:
        queue = self.queues[path]
        due = self.quota_due.get(path)
        self.must("quota", due is not None and due <= self.now, f"{whom} too early")
        over = sub(self.stays(queue), queue.spec.max)
        for victim in victims:
            below = queue in victim.app.leaf.up
            self.must("quota", below, f"{whom}: {victim.spec.key} is not of it")
        gone = total(victim.size for victim in victims)
        wanted = {kind: n for kind, n in over.items() if n > 0 and kind in (queue.spec.max or {})}
        least = fits_in_max_undef(gone, wanted)
        self.should("quota", least, f"{whom}: more than the excess")
        self._takes_all(queue, victims, wanted, whom)
        self._takes_these(queue, victims, whom)
        for level in {q.path: q for v in victims for q in v.app.leaf.up}.values():
            gone = total(v.size for v in victims if level in v.app.leaf.up)
            stays = self.stays(level, victims)
            for kind, n in (level.spec.guaranteed or {}).items():
                kept = n <= stays.get(kind, 0) or not gone.get(kind) or kind not in wanted
                self.must("quota", kept, f"{whom}: {level.path} below its guarantee")

    def _takes_these(self, queue: Queue, victims: list[Placed], whom: str) -> None:
        """All of it worked out a second time; what the same plan has placed does not run yet."""
        expected = QuotaRules(self).victims_of(queue)
        ran = [it.came <= self.seen for it in self.placed.values() if queue in it.app.leaf.up]
        these = {victim.uuid for victim in victims} == expected
        keys = sorted(self.placed[uuid].spec.key for uuid in expected)
        self.should("quota", these, f"{whom}, expected {keys}", unsure=not all(ran))

    def _takes_all(self, queue: Queue, victims: list[Placed], wanted: Resource, whom: str) -> None:
        """A leaf without a guarantee takes what it may, the willing and less important first."""
        gone = total(victim.size for victim in victims)
        for other in self.placed.values():
            if other.app.leaf is not queue or other in victims or other.leaving:
                continue
            bound = bool(other.spec.required_node) or not set(wanted) & set(other.size)
            bound = bound or self.is_bound(other.app, None)
            more = fits_in_max_undef(add(gone, other.size), wanted)
            free = all(not level.spec.guaranteed for level in queue.up)
            self.should(
                "quota", bound or not (more and free), f"{whom}: {other.spec.key} goes as well"
            )
            for victim in victims:
                parts = self.part(other), self.part(victim)
                if not self._are_in_order(None, *parts):
                    continue
                ranks = _bids(other, parts[0]), _bids(victim, parts[1])
                better = other.size == victim.size and ranks[0] < ranks[1]
                self.should(
                    "quota", bound or not better, f"{whom}, but {other.spec.key} goes before"
                )

    # -- states of applications

    def _moving(self, fact: f.ApplicationStateChanged) -> None:
        app, state = self.apps.get(fact.application_id), fact.state.value
        if app is None or app.serial != fact.serial:
            return
        name = f"{app.id} goes from {app.state} to {state}"
        self.must("state", state in NEXT_STATES[app.state], name)
        stateaware = app.leaf.says.application_sort_policy == "stateaware"
        waits = bool(self.asks_of(app) or self.is_swapping(app))
        real = bool(self.reals_of(app))
        aware = stateaware and "application.stateaware.disable" not in app.spec.tags
        right = {
            "Running": self._may_start_on(app) and (not aware or app.state != "Accepted"),
            "Starting": aware and (real or self._is_whole(app)),
            "Completing": not (waits or real),
            "Completed": not (self.asks_of(app) or self.of(app))
            and self.now >= app.entered + self.settings.completing_timeout_ns,
            "Resuming": self.gang_is_over(app) and not app.spec.is_hard,
            "Failing": self.gang_is_over(app) or app.spec.timeout_ms > 0,
            "Failed": not self.of(app),
        }  # fmt: skip
        self.must("state", right.get(state, True), f"{name}, which is not so")
        if stateaware:
            self.moved[app.leaf] = self.revision

    def _may_start_on(self, app: App) -> bool:
        """Whether an application may go to Running: one that is Starting takes a second step."""
        if app.state == "Starting":
            over = self.now >= app.entered + self.settings.starting_timeout_ns
            return over or app.reals > (0 if app.spec.is_gang else 1)
        return app.state != "Accepted" or bool(self.reals_of(app)) or self._is_whole(app)

    def _is_whole(self, app: App) -> bool:
        """Whether all placeholders of a gang stand."""
        held = total(placed.size for placed in self.placeholders_of(app))
        return app.spec.is_gang and equals_or_empty(held, app.spec.placeholder_ask)

    def _linking(self, fact: f.ApplicationLinked) -> None:
        app = self.apps[fact.application_id]
        if fact.group:
            self.must(
                "group", fact.group == self._group_of(app), f"{app.id} counts in {fact.group}"
            )

    def _group_of(self, app: App) -> str:
        for queue in app.leaf.up:
            names = [name for limit in queue.spec.limits for name in limit.groups]
            for name in names:
                if name in app.spec.groups:
                    return name
            if "*" in names:
                return "*"
        return ""

    # -- at rest

    def rest(self) -> None:
        """Nothing is on its way: whatever waits must have a reason."""
        self.begin()
        self.answers.clear()
        for ask in self.waiting():
            if ask.app.state in LIVING:
                self._must_wait(ask)
        for app in self.apps.values():
            self._state_is_right(app)
        for kept in self.kept:
            self.must(
                "reservation", kept.ask.left > 0, f"{kept.node} is kept for {_name(kept.ask)}"
            )
            # One of no use ends after an hour, if nothing came free meanwhile.
            useless = self.now > kept.since + HOUR and not self.may_run(kept.ask.app)
            self.should(
                "reservation", not useless, f"{kept.node} is kept for {_name(kept.ask)} too long"
            )
        for path in self.quota_due:
            if path in self.queues:
                text = f"{path} is to come down still, and is not above its maximum"
                self.must("quota", self._is_above(self.queues[path]), text)
        self.rested, self.rested_ns, self.passed_by = self.revision, self.now, False

    def _must_wait(self, ask: Ask) -> None:
        name = _name(ask)
        text = f"{name} waits and could be placed"
        self.should("waits", not self.is_placeable(ask), text, unsure=self._is_for_others(ask))
        self.should("waits", not self.must_admit(ask), f"the gang of {name} waits and has room")
        usable = self.usable(ask)
        if usable and self.may_swap(ask):
            there = [p for p in usable if ask.spec.required_node in ("", p.node)]
            swap = any(fits_in(ask.size, p.size) for p in there)
            self.should("waits", not swap, f"{name} waits and could be swapped")
            none = not any(fits_in(ask.size, p.size) for p in usable)
            self.should("waits", not none, f"{name} fits into no placeholder, and these stay")
        required = self.nodes.get(ask.spec.required_node)
        if required is not None and fits_in(ask.size, required.capacity) and not self.gate(ask):
            here = [kept for kept in self.kept if kept.node == required.id and not kept.required]
            kept = bool(self.keeps_of(ask)) or bool(here)
            self.should("waits", kept, f"{name} waits and its node is not kept for it")
        self._must_not_preempt(ask)
        self._must_not_keep(ask)

    def _must_not_preempt(self, ask: Ask) -> None:
        if ask.spec.required_node:
            kept = self.keeps_of(ask)
            there = [p for p in self.placed.values() if p.node == ask.spec.required_node]
            tried = any(placed.leaving for placed in there)
            if kept and not tried and ask.spec.allow_preempt_other and not self.gate(ask):
                node = self.nodes[ask.spec.required_node]
                others = [k for k in self.kept if k.node == node.id and k.ask is not ask]
                could = not others and self.victims_on(ask, node, self.revision) is not None
                self.should("waits", not could, f"{_name(ask)} waits and others may go for it")
            return
        could, waited = self.could_preempt(ask), self.waited_for_preemption(ask)
        due = ask.created + self.preemption_delay(ask)
        came = self.rested_ns < due <= self.now and self.revision > self.rested
        if ask.vain_at is None and came:
            # Its time came while more happened: it may have been tried before that.
            ask.vain_at = due
        if self.passed_by or not (could and self.could_preempt(ask, self.rested)):
            # What was placed since the last rest may not have run yet when it was tried, and what
            # has ended since may have run then.
            if waited:
                ask.vain_at = self.now
            elif ask.vain_at is None or ask.vain_at > self.now:
                # An attempt that was made stays made, even if a longer delay came after it.
                ask.vain_at = due
            ask.could_since = self.now if could else None
        elif ask.could_since is None:
            ask.could_since = self.now
        if could and waited and ask.could_since is not None:
            vain = ask.vain_at is not None and ask.vain_at <= self.now
            due = ask.could_since + AGAIN if vain else ask.could_since
            text = f"{_name(ask)} waits and others may go for it"
            self.should("waits", self.now <= due and vain, text)

    def wants_node_kept(self, ask: Ask) -> bool:
        """Whether nothing but the nodes stands against an ask of age, and one could be kept."""
        old = self.now - ask.created > self.settings.reservation_delay_ns
        if not old or ask.spec.required_node or self.keeps_of(ask) or self.gate(ask):
            return False
        return bool(self.could_keep(ask))

    def _must_not_keep(self, ask: Ask) -> None:
        ordinary = [kept for kept in self.kept if not kept.required and not kept.claims]
        waits = len(ordinary) >= self._kept_max() or not self.wants_node_kept(ask)
        self.should("waits", waits, f"{_name(ask)} waits and no node is kept")

    def _state_is_right(self, app: App) -> None:
        mine, placeholders = self.of(app), self.placeholders_of(app)
        idle = app.admitted and app.state == "Accepted" and not placeholders
        idle = idle and self.awaits_placeholders(app)
        idle = idle and any(self.unplaced(app).values())
        late = idle and app.bare_since + self.gang_timeout(app) <= self.now
        self.must("gang", not late, f"{app.id} has room that it cannot use")
        waits = bool(self.asks_of(app) or self.is_swapping(app))
        done = app.entered + self.settings.completing_timeout_ns
        started = app.entered + self.settings.starting_timeout_ns
        stale = [placed for placed in placeholders if not placed.leaving]
        lives, real = waits or bool(mine), bool(self.reals_of(app))
        right = {
            "New": not lives,
            "Accepted": (lives or app.timed_out) and not real,
            "Running": lives,
            "Starting": lives and self.now <= started,
            "Completing": not (waits or real) and (self.now <= done or (bool(mine) and not stale)),
            "Resuming": bool(placeholders),
            "Failing": bool(mine),
        }
        self.must("state", right.get(app.state, False), f"{app.id} rests in {app.state}")
        if stale and self.gang_is_over(app):
            self.must("timeout", False, f"{stale[0].spec.key} stays beyond its time")
        for item in mine:
            most_ns = item.spec.timeout_ms * MILLISECOND
            late = not item.leaving and 0 < most_ns < self.now - item.since
            self.must("timeout", not late, f"{item.spec.key} runs beyond its time")


_TOLD_AS_STOPPED = ("STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE")
"""Ends that the core did not ask for: by the resource manager, and with a node."""


def _notices_of(fact: f.Fact) -> list[tuple[str, ...]]:
    match fact:
        case f.AllocationCommitted() | f.AllocationRecovered():
            return [("new", fact.uuid)]
        case f.SwapCompleted():
            echo = [("released", fact.placeholder, "STOPPED_BY_RM")]
            return [("new", fact.uuid), *(echo if fact.type.name in _TOLD_AS_STOPPED else [])]
        case f.ReleaseRequested():
            return [("released", fact.uuid, fact.type.name)]
        case f.AllocationReleased() if fact.type.name in _TOLD_AS_STOPPED:
            return [("released", fact.uuid, "STOPPED_BY_RM")]
        case f.ApplicationStateChanged():
            return [("state", fact.application_id, fact.state.value)]
    return []


def _name(ask: Ask) -> str:
    return f"{ask.app.id}/{ask.spec.key}"


def _bids(placed: Placed, part: int) -> tuple[Any, ...]:
    """Rank for a quota: plain work before originators before what opted out, then by priority.

    Before the priority comes what it is to its gang.
    """
    spec = placed.spec
    return (not spec.allow_preempt_self, spec.originator, part, spec.priority)


CHECKS: dict[type, Callable[[Judge, Any], None]] = {
    f.AllocationCommitted: Judge._placing,
    f.GangAdmitted: Judge._admitted,
    f.GangLapsed: Judge._lapsing,
    f.AskParked: Judge._swapping,
    f.PlaceholderCancelled: Judge._cancelled,
    f.ReservationMade: Judge._kept_for,
    f.ReservationDropped: Judge._let_go,
    f.ReleaseRequested: Judge._releasing,
    f.AskRemoved: Judge._withdrawing,
    f.PreemptionDecided: Judge._preempts,
    f.ApplicationStateChanged: Judge._moving,
    f.ApplicationLinked: Judge._linking,
    f.QuotaPreemptionArmed: Judge._arms,
}
