"""When to look for victims, for whom, and what is on its way.

An ask of a queue with a guarantee may preempt when it has waited for the delay of its leaf. If
nothing was found, the preemptor tries it again after a change, but not before a pause is over. It
looks at an ask that can run on one node alone whenever that node changes, and at a quota when its
time has come. The number of attempts in one plan is bounded, and only real attempts count (R-081).
What goes for a gang is found in `planning/preemption/gang_claims.py`.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain

from msgspec.structs import replace

from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView, Lane, QueueView, Tried
from yunikorn_actors.planning.model.waiting_asks import waiting_in
from yunikorn_actors.planning.preemption.agenda import PAUSE_NS, Agenda, may_preempt
from yunikorn_actors.planning.preemption.claimant import is_limited_by_promises, victims_of
from yunikorn_actors.planning.preemption.gang_claims import Claim, Found, GangClaims
from yunikorn_actors.planning.preemption.quota import Enforcement
from yunikorn_actors.planning.preemption.required_node import Bound, victims_on
from yunikorn_actors.planning.preemption.scene import (
    Flight,
    Scene,
    free_on,
    is_refused,
    repeats_left,
)
from yunikorn_actors.planning.preemption.victim_search import Searches, is_barred
from yunikorn_actors.planning.stages.gangs import Admitter
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving
from yunikorn_actors.state.allocations import Allocation, AskSpec, Beneficiary, PreemptionRule
from yunikorn_actors.state.gangs import unplaced
from yunikorn_actors.state.proposals import Preempt, Proposal, VictimRef
from yunikorn_actors.values.durations import NEVER_NS

GANGS_MAX = 8
"""So many gangs claim room in one plan: each looks at all that may go anew."""
WOULD_GO_MAX = 16
"""For so many repeats of one ask it is said who would go."""
ATTEMPTS_MAX = 256
"""In one plan; what is left over is tried in the next."""


class Preemptor:
    """Asks that require a node, quotas, guarantees: three searches that share one scene.

    They stay together, because each has to count what the ones before it decided in the same plan.
    When to search is for the agenda, and how for `victim_search`, `quota` and `required_node`.
    """

    def __init__(
        self, model: Model, open_proposals: OpenProposals, admitter: Admitter, delay_ns: int
    ) -> None:
        self._model = model
        self._admitter = admitter
        self._open_proposals = open_proposals
        self._marks = model.requeue.preempting
        self.in_flight: dict[int, Flight] = {}
        self._claiming: dict[AskView, int] = {}
        """Repeats of each ask whose victims are about to go."""
        self.agenda = Agenda(self._marks, delay_ns)
        self._due_ns = NEVER_NS
        """When an ask has waited long enough, or a quota is to be enforced."""
        self.asks_about_places = self.asks_about_victims = False
        """The resource manager is asked first: until it answers, nothing counts on the result."""
        self._awaits_answer = False
        """It is asked about an ask of the leaf: with a yes there may be room for those behind."""
        self._ends_leaf = False
        """And a whole application goes then, so there will be."""
        self._is_cut_short = False
        """The bound ended the last plan; there may be more to find."""
        self._attempts = 0
        self._again_ns = NEVER_NS
        """When the first budget or cooldown ends that refused a victim to a leaf."""
        self._room = self._left = 0
        """How many decisions the plan may hand out, and how many of them are left."""
        self._kept_back: dict[str, None] = {}
        """Nodes for which nothing was decided, because others of a gang found no room."""
        self._kept_back_at = -1
        """The revision at which that was found."""
        self._claims = GangClaims(model, partial(self._scene, is_trial=True), self.in_flight)

    @property
    def due_ns(self) -> int:
        return 0 if self._marks.was_measured else self._due_ns

    @property
    def has_work(self) -> bool:
        """Whether there is something to look at, or to find out when to."""
        marks, agenda = self._marks, self.agenda
        if self._is_cut_short or marks.lanes or (marks.was_freed and agenda.blocked):
            return True
        if self._kept_back and self._model.state.revision != self._kept_back_at:
            return True
        return marks.is_stale and bool(
            marks.new or agenda.idle or marks.nodes or self._model.state.quotas
        )

    # -- what becomes of the proposals

    def subject_of(self, proposal_id: int) -> AskView | str:
        flight = self.in_flight[proposal_id]
        return flight.beneficiary.queue if flight.ask is None else flight.ask

    def resolve(self, proposal_id: int, _: Resolving | None = None) -> bool:
        self._take_out(proposal_id)
        return True

    def _take_out(self, proposal_id: int) -> Flight:
        flight, model = self.in_flight.pop(proposal_id), self._model
        admitted = model.flights.admissions.pop(proposal_id, None)
        if admitted is not None:
            admitted.is_admitting = False
            model.gangs.follow(admitted)
        if flight.ask is not None:
            flight.ask.keeping -= 1
            self._claim(flight.ask, -1)
            # While this was on its way its node was not reserved anew; that may be due now.
            model.asks.keep_required(flight.ask)
        if flight.place is not None:
            model.participants.resolve(flight.place)
        if flight.node is not None and model.nodes.knows(flight.node):
            flight.node.keeping -= 1
            model.amounts.refresh_node(flight.node)
        self._marks.is_stale = self._marks.was_freed = True
        return flight

    def _claim(self, ask: AskView, repeats: int) -> None:
        self._claiming[ask] = self._claiming.get(ask, 0) + repeats
        if not self._claiming[ask]:
            del self._claiming[ask]

    def reject(self, proposal_id: int) -> None:
        """Look again as soon as the newer facts are here."""
        flight = self._take_out(proposal_id)
        self._model.requeue.try_full_again()
        if flight.node is not None and flight.beneficiary.rule is PreemptionRule.REQUIRED_NODE:
            # Another node of its gang may have refused it, and that is the one that changes.
            self._kept_back[flight.node.id] = None
        # Without the pause of 15 s: the attempt was not in vain, only its view was old (H-23).
        if flight.ask is not None and not flight.ask.gone:
            self.agenda.retry(flight.ask.app.leaf)

    def extend(self, proposal: Preempt, further: tuple[VictimRef, ...]) -> Preempt:
        """Add victims that the resource manager asked for to a proposal that is not sent yet."""
        victims = (*proposal.victims, *further)
        self.in_flight[proposal.proposal_id].victims = victims
        return replace(proposal, victims=victims)

    # -- a plan

    def plan(self, now_ns: int, room: int) -> list[Proposal]:
        if room <= 0:
            return []
        if self._kept_back and self._model.state.revision != self._kept_back_at:
            self._marks.nodes.update(self._kept_back)
            self._kept_back.clear()
        self._kept_back_at = self._model.state.revision
        self.agenda.take_marks()
        self._attempts = 0
        self._room = self._left = room
        self._is_cut_short = False
        proposals: list[Proposal] = []
        # A generator, so that it stops exactly at the bound: each decision has been put in flight,
        # and one that is not handed out would stay there for ever.
        for proposal in self._decide(now_ns):
            proposals.append(proposal)
            self._left -= 1
            if not self._left:
                self._is_cut_short = True
                break
        self._measure()
        return proposals

    def _decide(self, now_ns: int) -> Iterator[Preempt]:
        yield from self._for_required_nodes(now_ns)
        quotas = self._model.state.quotas.values()
        if not self.agenda.is_any_due(now_ns) and all(due_ns > now_ns for due_ns in quotas):
            return
        # Made only now: it counts what was just decided for required nodes. For the same reason
        # quotas come before guarantees: room that their victims leave spares other victims.
        scene = self._scene(now_ns)
        yield from self._for_quotas(scene, now_ns)
        yield from self._for_guarantees(scene, now_ns)

    def _scene(self, now_ns: int, *, is_trial: bool = False) -> Scene:
        scene = Scene(self._model, self.in_flight.values(), now_ns, self.is_asked_about)
        scene.is_trial = is_trial
        return scene

    def is_asked_about(self, spec: AskSpec) -> bool:
        """Whether the resource manager is asked before anything goes for this ask."""
        return self.asks_about_victims or (self.asks_about_places and spec.has_predicates)

    def _is_gang_asked_about(self, app: AppView) -> bool:
        return any(
            ask.is_placeholder and ask.waiting and self.is_asked_about(ask.ask.spec)
            for ask in app.asks.values()
        )

    def _measure(self) -> None:
        """Find out when to come back."""
        config = self._model.state.config
        quotas = config is not None and config.quota_preemption_enabled
        quotas_ns = min(self._open_quotas(), default=NEVER_NS) if quotas else NEVER_NS
        self._due_ns = min(self.agenda.next_ns(), quotas_ns)

    def _open_quotas(self) -> Iterator[int]:
        """Yield when they are due; what is being enforced is looked at when that is resolved."""
        for path, due_ns in self._model.state.quotas.items():
            if not self._is_enforced(path) and path not in self._model.set_aside:
                yield due_ns

    def _propose(
        self,
        rule: PreemptionRule,
        path: str,
        victims: tuple[Allocation, ...],
        ask: AskView | None = None,
        node: NodeView | None = None,
        gang: int | None = 0,
    ) -> Preempt:
        """Put a decision in flight; a gang of None begins with this one."""
        spec = None if ask is None else ask.ask.spec
        beneficiary = Beneficiary(
            rule=rule,
            queue=path,
            application_id="" if spec is None else spec.application_id,
            key="" if spec is None else spec.key,
        )
        refs = tuple(map(VictimRef.to, victims))
        proposal_id = self._open_proposals.next_id(self)
        resource = {} if ask is None else ask.resource
        place = None if ask is None else self._model.participants.take(ask.app)
        self.in_flight[proposal_id] = Flight(beneficiary, refs, ask, node, resource, place)
        if ask is not None:
            ask.keeping += 1
            self._claim(ask, 1)
            if ask.app.awaiting_gang is not None:
                # What goes for a gang admits it.
                self._model.flights.admissions[proposal_id] = ask.app
                ask.app.is_admitting = True
                self._model.gangs.follow(ask.app)
        if node is not None:
            node.keeping += 1
            self._model.amounts.refresh_node(node)
        return Preempt(
            proposal_id=proposal_id,
            beneficiary=beneficiary,
            victims=refs,
            sequence=0 if ask is None else ask.ask.sequence,
            node_id="" if node is None else node.id,
            gang=proposal_id if gang is None else gang,
        )

    # -- what would be decided

    def is_held_back(self, ask: AskView) -> bool:
        """Whether something else than room holds an ask back, so that nothing goes for it."""
        app, resource = ask.app, ask.resource
        if ask.shape.required_node:
            flights = self.in_flight.values()
            return is_refused(self._model, app, resource, (ask.ask.spec.key,), flights)
        if app.blocked_at() is not None or refusing_limit(app.limits, ask.shape.wanted):
            return True
        return is_limited_by_promises(self._model.state, app.app, resource)

    def may_claim(self, app: AppView) -> bool:
        """Whether the guarantee of its leaf covers all placeholders of a gang that wait."""
        # The time is nothing to it.
        return self._claims.has_claim(app, self._scene(0, is_trial=True))

    def would_go(self, ask: AskView, now_ns: int) -> tuple[Allocation, ...]:
        """Return who would go for an ask if its time had come; nothing is put in flight."""
        scene = self._scene(now_ns, is_trial=True)
        spec, searches = ask.ask.spec, Searches(scene)
        of_gang = ask.is_placeholder and ask.app.app.spec.is_gang
        if of_gang and not (spec.required_node and self._claims.only_bound_wait(ask.app)):
            return self._would_go_for_all(ask.app, scene, now_ns)
        if spec.required_node:
            return self._would_go_on(ask, spec.required_node)
        going: list[Allocation] = []
        search, repeats = searches.of(ask.shape, ask), repeats_left(self._model.state, ask)
        # Those that came with it or before it are to be served together with it.
        due_ns = ask.ask.created_ns + self.agenda.delay_of(ask.app.leaf)
        count = max(repeats, self._waiting_like(ask, max(now_ns, due_ns)))
        for _ in range(min(repeats, WOULD_GO_MAX)):
            solution = search.next(ask.app, spec, lambda: min(count, ATTEMPTS_MAX))
            if solution is None:
                break
            going += solution.victims
        return tuple(going)

    def _would_go_for_all(self, app: AppView, scene: Scene, now_ns: int) -> tuple[Allocation, ...]:
        bound = self._claims.find_bound(app)
        if bound is None or not self._claims.has_claim(app, scene):
            return ()
        found = self._claims.find(app, now_ns, bound).found
        if found is None or self._is_refused_admission(app, found, now_ns):
            return ()
        parts = (*(it.victims for it in bound), *(it.victims for _, it in found))
        return tuple(it for victims in parts for it in victims)

    def _would_go_on(self, ask: AskView, node_id: str) -> tuple[Allocation, ...]:
        node = self._model.nodes.views.get(node_id)
        if node is None or is_barred(ask.shape, node_id):
            return ()
        if ask.is_placeholder and ask.app.app.spec.is_gang:
            bound = self._find_bound_alone(ask.app)
            return tuple(victim for it in bound or () for victim in it.victims)
        free = free_on(self._model, node)
        return victims_on(self._model.state, node.node, ask.ask.spec, free) or ()

    # -- asks that can run on one node alone

    def _for_required_nodes(self, now_ns: int) -> Iterator[Preempt]:
        model = self._model
        while self._marks.nodes:
            first = next(iter(self._marks.nodes))
            del self._marks.nodes[first]
            node = model.nodes.views.get(first)
            # An awaited node is looked at again with its report.
            if node is None or node.keeping or node.node.awaited:
                continue
            for flight in tuple(node.node.reservations.values()):
                ask = model.ask_of(flight.application_id, flight.key)
                if flight.required and ask is not None and not node.keeping:
                    yield from self._make_room(ask, node, now_ns)

    def _make_room(self, ask: AskView, node: NodeView, now_ns: int) -> Iterator[Preempt]:
        model = self._model
        if not ask.open or not ask.ask.spec.allow_preempt_other or model.may_use(ask, node):
            return
        if is_refused(model, ask.app, ask.resource, (ask.ask.spec.key,), self.in_flight.values()):
            self._marks.full[node.id] = None
            return
        if is_barred(ask.shape, node.id):
            return
        free = free_on(model, node)
        victims = victims_on(model.state, node.node, ask.ask.spec, free)
        if victims is None:
            # Context records that there is no victim, but not again within the pause.
            if ask.tried is not None and ask.tried.at_ns + PAUSE_NS > now_ns:
                return
            ask.tried = Tried(now_ns, self.agenda.changes, NEVER_NS)
        elif not victims:
            return
        elif ask.is_placeholder and ask.app.app.spec.is_gang:
            yield from self._make_room_for_bound(ask, node)
            return
        rule = PreemptionRule.REQUIRED_NODE
        yield self._propose(rule, ask.app.leaf.queue.path, victims or (), ask, node)

    def _make_room_for_bound(self, ask: AskView, node: NodeView) -> Iterator[Preempt]:
        """All placeholders of the gang have room, or no victim goes for any of them (G31)."""
        bound = self._find_bound_alone(ask.app)
        if bound is None:
            self._kept_back[node.id] = None
            return
        yield from self._propose_for_bound(ask.app, bound)

    def _find_bound_alone(self, app: AppView) -> list[Bound] | None:
        """Return what goes for the placeholders bound to nodes, where no other ones claim room."""
        return self._claims.find_bound(app) if self._claims.only_bound_wait(app) else None

    def _propose_for_bound(self, app: AppView, bound: list[Bound]) -> Iterator[Preempt]:
        gang: int | None = None
        for it in bound:
            if it.victims:
                proposal = self._propose(
                    PreemptionRule.REQUIRED_NODE,
                    app.leaf.queue.path,
                    it.victims,
                    app.asks[it.key],
                    self._model.nodes.views[it.node_id],
                    # A resource manager that is asked first answers for one of them at a time.
                    0 if self._is_gang_asked_about(app) else gang,
                )
                gang = proposal.gang
                yield proposal

    # -- quotas

    def _for_quotas(self, scene: Scene, now_ns: int) -> Iterator[Preempt]:
        """From the root down; never two at once on one path of the tree (R-082, R-083)."""
        model = self._model
        config = model.state.config
        if config is None or not config.quota_preemption_enabled:
            return
        enforcement = Enforcement(model.state, scene.staying, scene.taken)
        for path, due_ns in sorted(model.state.quotas.items()):
            if due_ns > now_ns or self._is_enforced(path) or path in model.set_aside:
                continue
            queue = model.state.queues[path]
            victims = enforcement.victims_of(queue)
            # Victims for a quota are gone for guarantees too, in this very plan.
            for victim in victims:
                app = model.state.applications[victim.spec.application_id]
                scene.usage.take(app.queue, victim.resource)
                scene.throttle.take(app.queue, 1)
                scene.take(victim)
            yield self._propose(PreemptionRule.QUOTA, path, victims)

    def _is_enforced(self, path: str) -> bool:
        for flight in self.in_flight.values():
            other = flight.beneficiary
            if other.rule is PreemptionRule.QUOTA and _are_on_one_path(path, other.queue):
                return True
        return False

    # -- guarantees

    def _for_guarantees(self, scene: Scene, now_ns: int) -> Iterator[Preempt]:
        config = self._model.state.config
        root = self._model.tree.root
        if config is None or not config.preemption_enabled or root is None:
            self.agenda.clear()
            return
        searches = Searches(scene)
        for leaf in _leaves(root):
            if self.agenda.begin(leaf, now_ns):
                yield from self._for_leaf(leaf, searches, now_ns)

    def _for_leaf(self, leaf: QueueView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        agenda, next_ns = self.agenda, NEVER_NS
        self._again_ns, self._ends_leaf = NEVER_NS, False
        self._awaits_answer = any(
            it.ask is not None and it.ask.app.leaf is leaf and self.is_asked_about(it.ask.ask.spec)
            for it in self.in_flight.values()
        )
        newest: dict[int, int] = {}
        for ask in chain(self._tried_in(leaf, now_ns), self._held_in(leaf)):
            due_ns = self._claims.newest_ns(ask, newest) + agenda.delay_of(leaf)
            if ask.tried is not None:
                due_ns = max(due_ns, ask.tried.at_ns + PAUSE_NS)
                if due_ns > now_ns and ask.tried.changes == agenda.changes:
                    agenda.rest(leaf, due_ns)
                    next_ns = min(next_ns, _again_ns(ask, now_ns))
                    continue
            if due_ns > now_ns:
                next_ns = min(next_ns, due_ns)
                continue
            if searches.scene.would_exceed_limit(ask.app, ask.resource):
                self.agenda.block(leaf, now_ns)
                continue
            if ask.is_placeholder and ask.app.app.spec.is_gang:
                yield from self._try_placeholder(ask, searches, now_ns)
            else:
                yield from self._try(ask, searches, now_ns)
            next_ns = min(next_ns, _again_ns(ask, now_ns))
            if self._ends_leaf:
                break
            if self._attempts >= ATTEMPTS_MAX:
                self._is_cut_short = True
                return
        agenda.end(leaf, min(next_ns, self._again_ns))

    def _tried_in(self, leaf: QueueView, now_ns: int) -> Iterator[AskView]:
        for lane, ask in waiting_in(leaf, may_preempt):
            if self._may_try(ask, lane, now_ns):
                yield ask

    def _held_in(self, leaf: QueueView) -> Iterator[AskView]:
        """Yield the first placeholder of each gang that awaits its admission for want of room.

        One for which there is room is to be admitted; those bound to a node have no entry there.
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
        if not ask.ask.spec.allow_preempt_other or self._is_kept_back(ask, lane):
            return False
        if repeats_left(self._model.state, ask) > 0:
            return True
        if self._is_about_to_wait(ask):
            # If the node that it is to have kept is not kept for it in the end, nothing else may
            # ever happen.
            self.agenda.block(ask.app.leaf, now_ns)
        return False

    def _is_about_to_wait(self, ask: AskView) -> bool:
        """Whether a reservation for it that only waits is on its way, made or given up."""
        return ask.keeping > self._claiming.get(ask, 0)

    def _is_kept_back(self, ask: AskView, lane: Lane) -> bool:
        """Whether something else than room holds it back: then file it there, to be woken."""
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
            self._attempts += not search.is_over
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
                    self.agenda.block(leaf, now_ns)
                else:
                    ask.tried = Tried(now_ns, self.agenda.changes, search.again_ns)
                    self.agenda.rest(leaf, now_ns + PAUSE_NS)
                return
            yield self._propose(
                PreemptionRule.GUARANTEE,
                leaf.queue.path,
                found.victims,
                ask,
                model.nodes.views[found.node_id],
            )
            if self.is_asked_about(ask.ask.spec):
                # Its node is closed until the answer. What a whole application leaves there may
                # serve the asks behind, which would hurt another one elsewhere.
                self._awaits_answer = True
                victims = victims_of(model.state, found.victims)
                if any(victim.is_whole for victim in victims):
                    self._ends_leaf = True
                    self.agenda.block(leaf, now_ns)
                    return

    # -- gangs

    def _try_placeholder(self, ask: AskView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """All placeholders of a gang have room, or none has victims."""
        app = ask.app
        if app.app.serial in searches.gangs:
            return
        if self._is_gang_asked_about(app) and self._claims.has_claim(app, searches.scene):
            yield from self._try_one_of_gang(ask, searches, now_ns)
            return
        if any(it.is_placeholder and it.keeping for it in app.asks.values()):
            # What was decided for some of them may be refused, as it is one after the other where
            # all were decided together: nothing goes for the others alone (G31).
            searches.gangs[app.app.serial] = None
            self.agenda.block(app.leaf, now_ns)
            return
        if len(searches.gangs) >= GANGS_MAX:
            self._attempts = ATTEMPTS_MAX
            return
        searches.gangs[app.app.serial] = None
        if self._claims.has_claim(app, searches.scene):
            yield from self._try_gang(app, searches, now_ns)
        else:
            self._give_up(self._claims.placeholders_of(app), now_ns)

    def _try_one_of_gang(self, ask: AskView, searches: Searches, now_ns: int) -> Iterator[Preempt]:
        """A resource manager that is asked first answers for one ask at a time.

        So they are decided one by one, but only while all that wait would find room.
        """
        claim = self._find_claim(ask.app, self._claims.find_bound(ask.app), now_ns)
        if claim.found is None:
            asks = self._claims.placeholders_of(ask.app)
            if self._awaits_answer or any(it.shape.denial is not None for it in asks):
                # A question about another of them keeps a node closed until it is answered, and
                # what was refused may be allowed at any time.
                self.agenda.block(ask.app.leaf, now_ns)
                self._again_ns = min(self._again_ns, claim.again_ns)
            else:
                self._give_up([ask], now_ns, claim.again_ns)
            return
        yield from self._try(ask, searches, now_ns)

    def _find_claim(self, app: AppView, bound: list[Bound] | None, now_ns: int) -> Claim:
        if bound is None:
            return Claim(None, NEVER_NS, 0)
        claim = self._claims.find(app, now_ns, bound)
        self._attempts += claim.attempts
        if claim.found is not None and self._is_refused_admission(app, claim.found, now_ns):
            return claim._replace(found=None)
        return claim

    def _is_refused_admission(self, app: AppView, found: Found, now_ns: int) -> bool:
        """Whether queues and limits have no room for all of it when its victims are gone."""
        if app.awaiting_gang is None:
            return False
        scene, state = self._scene(now_ns, is_trial=True), self._model.state
        for _, solution in found:
            for victim in solution.victims:
                leaf = state.applications[victim.spec.application_id].queue
                scene.usage.take(leaf, victim.resource)
        need = unplaced(app.app)
        return self._admitter.refusing_claim(app, need, scene.usage.of) is not None

    def _give_up(self, asks: list[AskView], now_ns: int, again_ns: int = NEVER_NS) -> None:
        """Nothing goes for any of them; they are tried again after a change, or then."""
        for ask in asks:
            ask.tried = Tried(now_ns, self.agenda.changes, again_ns)
            self.agenda.rest(ask.app.leaf, now_ns + PAUSE_NS)

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
        if count > self._left < self._room:
            # They would not all be handed out together: in the next plan, before others.
            self._attempts = ATTEMPTS_MAX
            return
        # A gang that is larger than the bound is handed out by itself, beyond it.
        self._left = max(self._left, count)
        if len(to_claim) < len(found):
            self.agenda.block(app.leaf, now_ns)
        gang: int | None = None
        for proposal in self._propose_for_bound(app, bound):
            gang = proposal.gang
            yield proposal
        for ask, solution in to_claim:
            proposal = self._propose(
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
        searches.begin_anew(self._scene(now_ns))

    def _served_with(self, ask: AskView, now_ns: int) -> int:
        """Say for how many asks victims are chosen together, this one included."""
        waiting = self._waiting_like(ask, now_ns)
        return max(1, min(waiting, ATTEMPTS_MAX - self._attempts))

    def _waiting_like(self, ask: AskView, now_ns: int) -> int:
        """Count the repeats whose time has come then, and that are served in one search with it."""
        leaf, priority = ask.app.leaf, ask.ask.spec.priority
        delay_ns = self.agenda.delay_of(leaf)
        count = 0
        for lane, other in waiting_in(leaf, may_preempt):
            spec = other.ask.spec
            alike = lane.shape is ask.shape and spec.priority == priority
            if alike and spec.allow_preempt_other and other.ask.created_ns + delay_ns <= now_ns:
                count += repeats_left(self._model.state, other)
        return count


def _again_ns(ask: AskView, now_ns: int) -> int:
    """Return when to look again without any change, because a budget or a cooldown ends."""
    tried = ask.tried
    if tried is None or tried.at_ns + PAUSE_NS <= now_ns:
        return NEVER_NS
    return max(tried.at_ns + PAUSE_NS, tried.again_ns)


def _leaves(queue: QueueView) -> Iterator[QueueView]:
    """Yield the leaves in the order in which they are served."""
    if not queue.below:
        yield queue
    for child in sorted(queue.below, key=QueueView.key):
        yield from _leaves(child)


def _are_on_one_path(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
