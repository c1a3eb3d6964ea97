"""The preemptor: when to look for victims, and for whom.

An ask of a queue with a guarantee may preempt when it has waited for the delay of its leaf
(`guarantees`). An ask that can run on one node alone is looked at whenever that node changes, and a
quota when its time has come. What was decided is on its way until Context answers
(`preempt_decisions`).
"""

from collections.abc import Iterator
from functools import partial

from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView, Tried
from yunikorn_actors.planning.preemption.agenda import PAUSE_NS, Agenda
from yunikorn_actors.planning.preemption.claimant import is_limited_by_promises
from yunikorn_actors.planning.preemption.gang_claims import GangClaims
from yunikorn_actors.planning.preemption.quota import Enforcement
from yunikorn_actors.planning.preemption.required_node import Bound, victims_on
from yunikorn_actors.planning.preemption.scene import Scene, free_on, is_refused, repeats_left
from yunikorn_actors.planning.preemption.victim_search import Searches, is_barred
from yunikorn_actors.planning.stages.gangs import Admitter
from yunikorn_actors.planning.stages.guarantees import ATTEMPTS_MAX, Allowance, Guarantees
from yunikorn_actors.planning.stages.preempt_decisions import Decisions
from yunikorn_actors.planning.stages.stage import OpenProposals
from yunikorn_actors.state.allocations import Allocation, PreemptionRule
from yunikorn_actors.state.proposals import Preempt, Proposal
from yunikorn_actors.values.durations import NEVER_NS

WOULD_GO_MAX = 16
"""Repeats of one ask, at most, for which an answer names who would go."""


class Preemptor:
    """Asks that require a node, quotas, guarantees: three searches that share one scene.

    They stay together, because each has to count what the ones before it decided in the same plan.
    When to search is for the agenda, and how for `victim_search`, `quota` and `required_node`.
    """

    def __init__(
        self, model: Model, open_proposals: OpenProposals, admitter: Admitter, delay_ns: int
    ) -> None:
        self._model = model
        self._marks = model.requeue.preempting
        self.agenda = Agenda(self._marks, delay_ns)
        self.decisions = Decisions(model, open_proposals, self.agenda)
        self._due_ns = NEVER_NS
        """When an ask has waited long enough, or a quota is to be enforced."""
        self._allowance = Allowance()
        self._claims = GangClaims(
            model, partial(self.decisions.scene, is_trial=True), self.decisions.in_flight
        )
        self._guarantees = Guarantees(
            model, admitter, self.agenda, self.decisions, self._claims, self._allowance
        )

    @property
    def due_ns(self) -> int:
        # Shares changed: which leaves are due is found out at once, without waiting for a time.
        return 0 if self._marks.was_measured else self._due_ns

    @property
    def has_work(self) -> bool:
        """Whether there is something to look at, or to find out when to."""
        marks, agenda = self._marks, self.agenda
        if self._allowance.is_cut_short or marks.lanes or (marks.was_freed and agenda.blocked):
            return True
        # Kept back until something has changed: without a change the same would come out.
        if agenda.kept_back and self._model.state.revision != agenda.kept_back_at:
            return True
        return marks.is_stale and bool(
            marks.new or agenda.idle or marks.nodes or self._model.state.quotas
        )

    # -- a plan

    def plan(self, now_ns: int, room: int) -> list[Proposal]:
        if room <= 0:
            # Without room for a decision nothing is searched: what is found could not be handed
            # out.
            return []
        self.agenda.take_marks(self._model.state.revision)
        allowance = self._allowance
        allowance.begin(room)
        proposals: list[Proposal] = []
        # A generator, so that it stops exactly at the bound: each decision has been put in flight,
        # and one that is not handed out would stay there for ever.
        for proposal in self._decide(now_ns):
            proposals.append(proposal)
            allowance.left -= 1
            if not allowance.left:
                # More may be found: the next plan comes at once.
                allowance.is_cut_short = True
                break
        self._measure()
        return proposals

    def _decide(self, now_ns: int) -> Iterator[Preempt]:
        # First: it needs no scene, and what it decides is seen by the others.
        yield from self._for_required_nodes(now_ns)
        quotas = self._model.state.quotas.values()
        if not self.agenda.is_any_due(now_ns) and all(due_ns > now_ns for due_ns in quotas):
            return
        # Made only now: it counts what was just decided for required nodes. For the same reason
        # quotas come before guarantees: room that their victims leave spares other victims.
        scene = self.decisions.scene(now_ns)
        yield from self._for_quotas(scene, now_ns)
        yield from self._guarantees.decide(scene, now_ns)

    def _measure(self) -> None:
        """Find out when to come back."""
        config = self._model.state.config
        # Switched off: no quota names a time to come back.
        quotas = config is not None and config.quota_preemption_enabled
        quotas_ns = min(self._open_quotas(), default=NEVER_NS) if quotas else NEVER_NS
        self._due_ns = min(self.agenda.next_ns(), quotas_ns)

    def _open_quotas(self) -> Iterator[int]:
        """Yield when they are due; what is being enforced is looked at when that is resolved."""
        for path, due_ns in self._model.state.quotas.items():
            # What is in flight for this path must not be enforced twice.
            if not self.decisions.is_enforced(path) and path not in self._model.set_aside:
                yield due_ns

    # -- what would be decided

    def is_held_back(self, ask: AskView) -> bool:
        """Whether something else than room holds an ask back, so that nothing goes for it."""
        app, resource = ask.app, ask.resource
        if ask.shape.required_node:
            flights = self.decisions.in_flight.values()
            return is_refused(self._model, app, resource, (ask.ask.spec.key,), flights)
        if app.blocked_at() is not None or refusing_limit(app.limits, ask.shape.wanted):
            return True
        return is_limited_by_promises(self._model.state, app.app, resource)

    def may_claim(self, app: AppView) -> bool:
        """Whether the guarantee of its leaf covers all placeholders of a gang that wait."""
        # The time is nothing to it.
        return self._claims.has_claim(app, self.decisions.scene(0, is_trial=True))

    def would_go(self, ask: AskView, now_ns: int) -> tuple[Allocation, ...]:
        """Return who would go for an ask if its time had come; nothing is put in flight."""
        scene = self.decisions.scene(now_ns, is_trial=True)
        # A search of its own: trying must not change what the planner has found.
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
        count = max(repeats, self._guarantees.waiting_like(ask, max(now_ns, due_ns)))
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
        if found is None or self._guarantees.is_refused_admission(app, found, now_ns):
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
        # Its own node alone: nothing else of the partition matters to it.
        model = self._model
        while self._marks.nodes:
            first = next(iter(self._marks.nodes))
            # Taken off before it is looked at: a change made by the decision marks it again.
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
        if is_refused(
            model, ask.app, ask.resource, (ask.ask.spec.key,), self.decisions.in_flight.values()
        ):
            self._marks.full[node.id] = None
            return
        if is_barred(ask.shape, node.id):
            # Placing there is refused, so nothing is preempted for it either.
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
            # Its victims go for all placeholders of the gang, or for none of them.
            yield from self._make_room_for_bound(ask, node)
            return
        rule = PreemptionRule.REQUIRED_NODE
        yield self.decisions.propose(rule, ask.app.leaf.queue.path, victims or (), ask, node)

    def _make_room_for_bound(self, ask: AskView, node: NodeView) -> Iterator[Preempt]:
        """All placeholders of the gang have room, or no victim goes for any of them (G31)."""
        bound = self._find_bound_alone(ask.app)
        if bound is None:
            # Kept back until the node has changed: looking again would find the same.
            self.agenda.kept_back[node.id] = None
            return
        yield from self.decisions.propose_for_bound(ask.app, bound)

    def _find_bound_alone(self, app: AppView) -> list[Bound] | None:
        """Return what goes for the placeholders bound to nodes, where no other ones claim room."""
        return self._claims.find_bound(app) if self._claims.only_bound_wait(app) else None

    # -- quotas

    def _for_quotas(self, scene: Scene, now_ns: int) -> Iterator[Preempt]:
        """From the root down; never two at once on one path of the tree (R-082, R-083)."""
        model = self._model
        config = model.state.config
        if config is None or not config.quota_preemption_enabled:
            # Off or not configured: a queue above its maximum keeps what it has.
            return
        enforcement = Enforcement(model.state, scene.staying, scene.taken)
        for path, due_ns in sorted(model.state.quotas.items()):
            # In the order of their paths, so that a parent comes before its children.
            if due_ns > now_ns or self.decisions.is_enforced(path) or path in model.set_aside:
                continue
            queue = model.state.queues[path]
            victims = enforcement.victims_of(queue)
            # Victims for a quota are gone for guarantees too, in this very plan.
            for victim in victims:
                app = model.state.applications[victim.spec.application_id]
                scene.usage.take(app.queue, victim.resource)
                scene.throttle.take(app.queue, 1)
                scene.take(victim)
            yield self.decisions.propose(PreemptionRule.QUOTA, path, victims)
