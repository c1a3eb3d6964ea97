"""Victims for the guarantees of leaves: which asks try, how many of them at once, and gangs.

An ask may preempt when it has waited for the delay of its leaf. If nothing was found, it is tried
again after a change, but not before a pause is over. The number of attempts in one plan is bounded,
and only real attempts count (R-081). `planning/preemption/gang_claims.py` finds what goes for a
gang.
"""

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.tree import waiting_in
from yunikorn_actors.planning.model.views import AppView, AskView, Lane, QueueView, Tried
from yunikorn_actors.planning.preemption.agenda import PAUSE_NS, Agenda, may_preempt
from yunikorn_actors.planning.preemption.claimant import victims_of
from yunikorn_actors.planning.preemption.gang_claims import Claim, Found, GangClaims
from yunikorn_actors.planning.preemption.required_node import Bound
from yunikorn_actors.planning.preemption.scene import Scene, repeats_left
from yunikorn_actors.planning.preemption.victim_search import Searches
from yunikorn_actors.planning.stages.gangs import Admitter
from yunikorn_actors.planning.stages.preempt_decisions import Decisions
from yunikorn_actors.state.allocations import PreemptionRule
from yunikorn_actors.state.proposals import Preempt
from yunikorn_actors.values.durations import NEVER_NS

GANGS_MAX = 8
"""Gangs that claim room in one plan, at most: each looks at all that may go anew."""
ATTEMPTS_MAX = 256
"""In one plan; what is left over is tried in the next."""


class Allowance(Struct):
    """What one plan may still try and hand out."""

    room: int = 0
    """How many decisions it may hand out."""
    left: int = 0
    """How many of these are left."""
    attempts: int = 0
    is_cut_short: bool = False
    """A bound ended it; there may be more to find."""

    def begin(self, room: int) -> None:
        self.room = self.left = room
        self.attempts, self.is_cut_short = 0, False


class Guarantees:
    """Looks at the leaves that are due, ask by ask, and decides what goes for them."""

    def __init__(
        self,
        model: Model,
        admitter: Admitter,
        agenda: Agenda,
        decisions: Decisions,
        claims: GangClaims,
        allowance: Allowance,
    ) -> None:
        self._model = model
        self._admitter = admitter
        self._agenda = agenda
        self._decisions = decisions
        self._claims = claims
        self._allowance = allowance
        self._awaits_answer = False
        """It is asked about an ask of the leaf: with a yes there may be room for those behind."""
        self._ends_leaf = False
        """And a whole application goes then, so there will be."""
        self._again_ns = NEVER_NS
        """When the first budget or cooldown ends that refused a victim to a leaf."""

    def decide(self, scene: Scene, now_ns: int) -> Iterator[Preempt]:
        config = self._model.state.config
        root = self._model.tree.root
        if config is None or not config.preemption_enabled or root is None:
            # Switched off: what was due would be looked at for ever.
            self._agenda.clear()
            return
        searches = Searches(scene)
        for leaf in _leaves(root):
            if self._agenda.begin(leaf, now_ns):
                yield from self._for_leaf(leaf, searches, now_ns)

    def _for_leaf(self, leaf: QueueView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        agenda, next_ns = self._agenda, NEVER_NS
        # Kept for one leaf: what is refused here says nothing about the next one.
        self._again_ns, self._ends_leaf = NEVER_NS, False
        self._awaits_answer = self._decisions.awaits_answer_in(leaf)
        # By gang: the newest of its placeholders decides for all of them.
        newest: dict[int, int] = {}
        for ask in chain(self._tried_in(leaf, now_ns), self._held_in(leaf)):
            due_ns = self._claims.newest_ns(ask, newest) + agenda.delay_of(leaf)
            if ask.tried is not None:
                due_ns = max(due_ns, ask.tried.at_ns + PAUSE_NS)
                # Nothing has changed since: the same search would use up an attempt.
                if due_ns > now_ns and ask.tried.changes == agenda.changes:
                    # Due again after the pause, unless something changes before that.
                    agenda.rest(leaf, due_ns)
                    next_ns = min(next_ns, _again_ns(ask, now_ns))
                    continue
            if due_ns > now_ns:
                next_ns = min(next_ns, due_ns)
                continue
            # A promise that counts against the limit may be given up at any time, so no pause.
            if searches.scene.would_exceed_limit(ask.app, ask.resource):
                self._agenda.block(leaf, now_ns)
                continue
            if ask.is_placeholder and ask.app.app.spec.is_gang:
                yield from self._try_placeholder(ask, searches, now_ns)
            else:
                yield from self._try(ask, searches, now_ns)
            # Also when something was found: repeats of the ask may wait on.
            next_ns = min(next_ns, _again_ns(ask, now_ns))
            # The leaf is not at its end, but the answer decides about those behind.
            if self._ends_leaf:
                break
            if self._allowance.attempts >= ATTEMPTS_MAX:
                # Not ended, so the leaf stays due: the next plan looks at the rest of it.
                self._allowance.is_cut_short = True
                return
        agenda.end(leaf, min(next_ns, self._again_ns))

    # -- asks

    def _tried_in(self, leaf: QueueView, now_ns: int) -> Iterator[AskView]:
        # In the order in which they would be placed, so that an older ask finds its victims first.
        for lane, ask in waiting_in(leaf, may_preempt):
            if self._may_try(ask, lane, now_ns):
                yield ask

    def _held_in(self, leaf: QueueView) -> Iterator[AskView]:
        """Yield the first placeholder of each gang that awaits its admission for want of room.

        A gang that has room is admitted without a claim; gangs bound to a node are left out.
        """
        for app in tuple(leaf.held):
            asks = self._claims.placeholders_of(app)
            if not asks or app.turn is not None or app.blocked_by is not None:
                continue
            gate = app.blocked_at()
            if gate is not None:
                self._model.participants.hold(app, gate)
                continue
            if asks[0].ask.spec.allow_preempt_other and self._claims.find_bound(app) == []:
                yield asks[0]

    def _may_try(self, ask: AskView, lane: Lane, now_ns: int) -> bool:
        # Barred by its own setting, or by something that no victim helps.
        if not ask.ask.spec.allow_preempt_other or self._is_kept_back(ask, lane):
            return False
        if repeats_left(self._model.state, ask) > 0:
            return True
        if self._decisions.is_about_to_wait(ask):
            # If the node that it is to have kept is not kept for it in the end, nothing else may
            # ever happen.
            self._agenda.block(ask.app.leaf, now_ns)
        return False

    def _is_kept_back(self, ask: AskView, lane: Lane) -> bool:
        """Whether something else than room holds the ask back; then file it there, to be woken."""
        app, model = ask.app, self._model
        if app.blocked_by is not None or not may_preempt(lane):
            # An ask before this one has found out.
            return True
        gate = app.blocked_at()
        if gate is not None:
            model.participants.hold(app, gate)
            return True
        limit = refusing_limit(app.limits, lane.shape.wanted)
        if limit is not None:
            model.tree.refuse(lane, limit)
        return limit is not None

    def _try(self, ask: AskView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """Find room for as many repeats as wait, until nothing is found."""
        model = self._model
        leaf, search = ask.app.leaf, searches.of(ask.shape, ask)
        while repeats_left(self._model.state, ask):
            # A search that has ended costs nothing, so it is no attempt.
            self._allowance.attempts += not search.is_over
            # While an answer is awaited no whole application is chosen: it might not be needed.
            search.spares_whole = self._awaits_answer
            found = (
                None
                if search.is_over
                else search.next(ask.app, ask.ask.spec, lambda: self._served_with(ask, now_ns))
            )
            # Without an earmark nothing is promised: the ask is placed in its order when the room
            # is free.
            if found is None or found.has_only_to_wait:
                # Whatever else stands in its way: that this ends is no change.
                self._again_ns = min(self._again_ns, search.again_ns)
                if found is not None or search.is_blocked:
                    self._agenda.block(leaf, now_ns)
                else:
                    # With the time of the search: the pause and the changes since are measured from
                    # it.
                    ask.tried = Tried(now_ns, self._agenda.changes, search.again_ns)
                    self._agenda.rest(leaf, now_ns + PAUSE_NS)
                return
            yield self._decisions.propose(
                PreemptionRule.GUARANTEE,
                leaf.queue.path,
                found.victims,
                ask,
                model.nodes.views[found.node_id],
            )
            if self._decisions.is_asked_about(ask.ask.spec):
                # Its node is closed until the answer. What a whole application leaves there may
                # serve the asks behind, which would hurt another one elsewhere.
                self._awaits_answer = True
                victims = victims_of(model.state, found.victims)
                if any(victim.is_whole for victim in victims):
                    self._ends_leaf = True
                    self._agenda.block(leaf, now_ns)
                    return

    def _served_with(self, ask: AskView, now_ns: int) -> int:
        """Say for how many asks victims are chosen together, this one included."""
        # Never more than what may still be tried in this plan.
        waiting = self.waiting_like(ask, now_ns)
        return max(1, min(waiting, ATTEMPTS_MAX - self._allowance.attempts))

    def waiting_like(self, ask: AskView, now_ns: int) -> int:
        """Count the repeats that one search serves with this ask, if their time has come."""
        leaf, priority = ask.app.leaf, ask.ask.spec.priority
        delay_ns = self._agenda.delay_of(leaf)
        count = 0
        # Only those of the same priority are served alike: the victims of others are others.
        for lane, other in waiting_in(leaf, may_preempt):
            spec = other.ask.spec
            alike = lane.shape is ask.shape and spec.priority == priority
            if alike and spec.allow_preempt_other and other.ask.created_ns + delay_ns <= now_ns:
                count += repeats_left(self._model.state, other)
        return count

    # -- gangs

    def _try_placeholder(self, ask: AskView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """All placeholders of a gang have room, or none has victims."""
        app = ask.app
        # Once for a gang in a plan: the first of its placeholders stands for all.
        if app.app.serial in searches.gangs:
            return
        if self._decisions.is_gang_asked_about(app) and self._claims.has_claim(app, searches.scene):
            yield from self._try_one_of_gang(ask, searches, now_ns)
            return
        if any(it.is_placeholder and it.keeping for it in app.asks.values()):
            # What was decided for some of them may be refused, as it is one after the other where
            # all were decided together: nothing goes for the others alone (G31).
            searches.gangs[app.app.serial] = None
            self._agenda.block(app.leaf, now_ns)
            return
        if len(searches.gangs) >= GANGS_MAX:
            # As if all attempts were used: the leaf stays due, and the next plan begins with it.
            self._allowance.attempts = ATTEMPTS_MAX
            return
        searches.gangs[app.app.serial] = None
        if self._claims.has_claim(app, searches.scene):
            yield from self._try_gang(app, searches, now_ns)
        else:
            self._give_up(self._claims.placeholders_of(app), now_ns)

    def _try_one_of_gang(self, ask: AskView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """Try one placeholder of a gang: an asked resource manager answers for one at a time.

        Placeholders are decided one by one, but only while all that wait would find room.
        """
        # All of them have to find room, although only one is decided now.
        claim = self._find_claim(ask.app, self._claims.find_bound(ask.app), now_ns)
        if claim.found is None:
            asks = self._claims.placeholders_of(ask.app)
            if self._awaits_answer or any(it.shape.denial is not None for it in asks):
                # A question about another of them keeps a node closed until it is answered, and
                # what was refused may be allowed at any time.
                self._agenda.block(ask.app.leaf, now_ns)
                self._again_ns = min(self._again_ns, claim.again_ns)
            else:
                self._give_up([ask], now_ns, claim.again_ns)
            return
        yield from self._try(ask, searches, now_ns)

    def _try_gang(self, app: AppView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """Find room for all placeholders that wait, and have victims go only if there is (G31)."""
        bound = self._claims.find_bound(app)
        claim = self._find_claim(app, bound, now_ns)
        found = claim.found
        if bound is None or found is None:
            self._give_up(self._claims.placeholders_of(app), now_ns, claim.again_ns)
            return
        to_claim = [(ask, it) for ask, it in found if not it.has_only_to_wait]
        count = len(to_claim) + sum(bool(it.victims) for it in bound)
        if count > self._allowance.left < self._allowance.room:
            # They would not all be handed out together: in the next plan, before others.
            self._allowance.attempts = ATTEMPTS_MAX
            return
        # A gang that is larger than the bound is handed out by itself, beyond it.
        self._allowance.left = max(self._allowance.left, count)
        if len(to_claim) < len(found):
            # Some only wait for room that comes free: the leaf looks again when it does.
            self._agenda.block(app.leaf, now_ns)
        gang: int | None = None
        for proposal in self._decisions.propose_for_bound(app, bound):
            gang = proposal.gang
            # With the number of the first: Context commits all of them or none (G31).
            yield proposal
        for ask, solution in to_claim:
            proposal = self._decisions.propose(
                PreemptionRule.GUARANTEE,
                app.leaf.queue.path,
                solution.victims,
                ask,
                self._model.nodes.views[solution.node_id],
                gang,
            )
            gang = proposal.gang
            yield proposal
        # What was found was found apart, so that nothing had to be undone.
        searches.begin_anew(self._decisions.scene(now_ns))

    def _find_claim(self, app: AppView, bound: list[Bound] | None, now_ns: int) -> Claim:
        if bound is None:
            return Claim(None, NEVER_NS, 0)
        claim = self._claims.find(app, now_ns, bound)
        self._allowance.attempts += claim.attempts
        # Found, and still refused: the quotas have no room for a gang of that size.
        if claim.found is not None and self.is_refused_admission(app, claim.found, now_ns):
            return claim._replace(found=None)
        return claim

    def is_refused_admission(self, app: AppView, found: Found, now_ns: int) -> bool:
        """Whether queues and limits have no room for all of it when its victims are gone."""
        if app.awaiting_gang is None:
            return False
        scene, state = self._decisions.scene(now_ns, is_trial=True), self._model.state
        for _, solution in found:
            for victim in solution.victims:
                leaf = state.applications[victim.spec.application_id].queue
                scene.usage.take(leaf, victim.resource)
        return self._admitter.refusing_claim(app, scene.usage.of) is not None

    def _give_up(self, asks: list[AskView], now_ns: int, again_ns: int = NEVER_NS) -> None:
        """Nothing goes for any of them; they are tried again after a change, or then."""
        for ask in asks:
            ask.tried = Tried(now_ns, self._agenda.changes, again_ns)
            self._agenda.rest(ask.app.leaf, now_ns + PAUSE_NS)


def _again_ns(ask: AskView, now_ns: int) -> int:
    """Return when to look again without any change, because a budget or a cooldown ends."""
    tried = ask.tried
    # Older than the pause: nothing that was known then holds any more.
    if tried is None or tried.at_ns + PAUSE_NS <= now_ns:
        return NEVER_NS
    return max(tried.at_ns + PAUSE_NS, tried.again_ns)


def _leaves(queue: QueueView) -> Iterator[QueueView]:
    """Yield the leaves in the order in which they are served."""
    if not queue.below:
        yield queue
    for child in sorted(queue.below, key=QueueView.key):
        yield from _leaves(child)
