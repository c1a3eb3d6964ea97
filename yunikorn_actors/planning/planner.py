"""The planner: which ask runs where, decided one allocation at a time.

The way leads from the root to the first queue with something to try, to its first application and
the first ask of that. An ask that cannot be placed is filed under the reason and is not tried again
before a change that can help. Each decision is put in flight; a fact that carries the id of its
proposal, or `reject`, takes it out again. docs/explanation/planning.md tells why the stages of a
plan come in this order.
"""

from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Allocate, Placing, Preempt, Proposal
from yunikorn_actors.domain.reserving import own_claim
from yunikorn_actors.planning.model.flights import InFlight
from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Lane, QueueView
from yunikorn_actors.planning.parts.backoff import Backoff
from yunikorn_actors.planning.parts.denials import Denials
from yunikorn_actors.planning.parts.preempting import Preemptor
from yunikorn_actors.planning.parts.reserving import Reserver
from yunikorn_actors.planning.view import View


class Planner(View):
    """Decides on its view."""

    def __init__(
        self,
        state: PartitionState,
        scheduler_number: int = 0,
        *,
        reports: bool = False,
        reservation_delay_ns: int = 0,
        preemption_delay_ns: int = 0,
    ) -> None:
        super().__init__(state, scheduler_number, reports=reports)
        self.reserver = Reserver(self, reservation_delay_ns)
        self.preemptor = Preemptor(self, preemption_delay_ns)
        self.denials = Denials(self)
        self.backoff = Backoff(self)

    @property
    def has_work(self) -> bool:
        """Whether anything might be decided now."""
        root = self.tree.root
        if self.state.held:
            return False
        stale = self.order_is_stale or self.reserving_is_stale or self.preemptor.is_stale
        stale = stale or self.gangs.has_work or bool(self.unsettled_apps)
        stale = stale or self.findings.has_work or bool(self.tree.loose)
        return stale or (root is not None and root.has_work)

    @property
    def due_ns(self) -> int:
        """The earliest moment at which a delay, a pause or a rest ends."""
        parts = (self.reserver, self.preemptor, self.denials, self.backoff)
        return min(part.due_ns for part in parts)

    @property
    def in_flight_count(self) -> int:
        """What is bounded: allocations, swaps and admissions on their way."""
        return len(self.in_flight) + len(self.gangs.swaps) + len(self.gangs.admissions)

    @property
    def unsettled(self) -> list[int]:
        """Proposals that Context has not answered yet."""
        return sorted(
            [
                *self.in_flight,
                *self.reserver.in_flight,
                *self.preemptor.in_flight,
                *self.gangs.in_flight,
            ]
        )

    def plan(self, limit: int, now_ns: int) -> list[Proposal]:
        """Decide, one at a time, until nothing can be placed or the limit is reached.

        Asks with a reservation come first, then the others in order. For asks that find no room
        the preemptor looks for victims, or nodes are reserved.
        """
        proposals: list[Proposal] = []
        if self.state.held or limit <= 0:
            return proposals
        if self.denials.due_ns <= now_ns:
            self.denials.lift_due(now_ns)
        self.backoff.wake(now_ns)
        self._bring_up_to_date()
        self._place_first(proposals, limit)
        if self.reserved_nodes:
            self._place_reserved(proposals, limit)
            self._place_elsewhere(proposals, limit)
        proposals.extend(self.gangs.swap(self, limit - len(proposals)))
        self.gangs.offer_turns(self)
        self.tree.top_up()
        while len(proposals) < limit and (self._next(proposals) or self.gangs.offer_lapsed(self)):
            pass
        if self.unsettled_apps and len(proposals) < limit:
            self.backoff.end_passes()
        if len(proposals) < limit and (self.preemptor.is_stale or self.preemptor.due_ns <= now_ns):
            proposals.extend(self.preemptor.plan(now_ns, limit - len(proposals)))
        if self.unsettled_apps and len(proposals) < limit:
            self.backoff.look()
        if len(proposals) < limit and self._is_time_to_reserve(now_ns):
            self.reserving_is_stale = False
            proposals.extend(self.reserver.reserve_ordinary(now_ns, limit - len(proposals)))
            proposals.extend(self.reserver.give_up(now_ns))
        if self.findings.has_work and len(proposals) < limit:
            self._explain()
            self.findings.note_crowds(self.apps)
        return proposals

    def _bring_up_to_date(self) -> None:
        if self.order_is_stale:
            self.tree.measure(self.state.capacity)
            self.preemptor.look_everywhere()
            self.gangs.room_has_changed = True
            self.order_is_stale = False
        for leaf in self.stale_leaves:
            self.tree.rekey(leaf)
        self.stale_leaves.clear()

    def _is_time_to_reserve(self, now_ns: int) -> bool:
        return self.reserving_is_stale or self.reserver.due_ns <= now_ns

    def _place_first(self, proposals: list[Proposal], limit: int) -> None:
        """Try the asks whose placeholder is gone at last: they come first to what it freed."""
        for ask in self.gangs.first_tries():
            if len(proposals) >= limit:
                self.gangs.try_first(ask)
            elif not self._gate(ask) and not ask.app.held_at():
                node = self.nodes.first_fit(ask.shape, ask.app.node_order)
                if node is not None:
                    proposal = self._decide(ask, ask.app.leaf, node)
                    self.in_flight[proposal.proposal_id].goes_first = True
                    proposals.append(proposal)

    def _place_reserved(self, proposals: list[Proposal], limit: int) -> None:
        for ask, node, item in self.reserver.ready():
            if len(proposals) >= limit:
                return
            if self.reserver.gate_of(ask, item) is None and not self._is_held(ask.app):
                proposals.append(self._decide(ask, ask.app.leaf, node))

    def _place_elsewhere(self, proposals: list[Proposal], limit: int) -> None:
        """An ask with a reservation goes first on other nodes too: that frees its own."""
        while len(proposals) < limit and (ask := self.reserver.first_elsewhere()) is not None:
            self._try(ask.app.leaf, ask, proposals)

    def _next(self, proposals: list[Proposal]) -> bool:
        """Make one decision, or file what could not be placed; False when nothing is left."""
        root = self.tree.root
        if root is None or not root.children:
            return self.tree.top_up()
        leaf = root
        while not leaf.open_lanes:
            leaf = leaf.children[0][1]
        if not self._try(leaf, leaf.first(), proposals):
            self.tree.top_up()
        return True

    def _try(self, leaf: QueueView, ask: AskView, proposals: list[Proposal]) -> bool:
        """Place the ask, or file what stands in its way."""
        if self._is_held(ask.app):
            return False
        if ask.shape is self.tree.turns:
            return self._take_turn(ask.app, proposals)
        if self.backoff.must_rest(ask):
            return False
        gate = self._gate(ask)
        if gate is not None:
            lane = leaf.lanes[ask.shape, ask.app.owner]
            self.tree.refuse(lane, gate)
            if gate.is_quota:
                self.findings.note_lane(lane)
            else:
                self.findings.look_into_lane(lane)
            self._unsettle_apps(lane)
            return False
        node = self.nodes.first_fit(ask.shape, ask.app.node_order)
        if node is not None:
            proposals.append(self._decide(ask, leaf, node))
            return True
        self._file(ask, proposals)
        return False

    def _take_turn(self, app: AppView, proposals: list[Proposal]) -> bool:
        """Admit the gang, and try all of its placeholders at once: no ask comes in between.

        So what it was admitted to is still there for each of them, however many a plan may hold.
        """
        self.end_turn(app)
        admission = self.gangs.admit(self, app)
        if admission is not None:
            proposals.append(admission)
            while (ask := app.first_placeholder()) is not None:
                self._try(app.leaf, ask, proposals)
        self.tree.rekey(app.leaf)
        return admission is not None

    def _file(self, ask: AskView, proposals: list[Proposal]) -> None:
        """No node has room: the shape waits, and a required node is kept at once."""
        shape = ask.shape
        self.tree.wait_for_node(shape)
        for lane in self.tree.lanes.get(shape, ()):
            self.findings.look_into_lane(lane)
            self._unsettle_apps(lane)
        self.reserving_is_stale = True
        required = self.nodes.views.get(shape.required_node)
        if required is not None:
            self.unsettled_nodes[required.id] = None
            self.preempting_is_stale = True
            reservation = self.reserver.reserve_required(ask, required)
            if reservation is not None:
                proposals.append(reservation)

    def _unsettle_apps(self, lane: Lane) -> None:
        """Everything in the lane was refused."""
        if lane.leaf.queue.properties.backoff_count:
            self.unsettled_apps.update((app, None) for _, app in lane.apps)

    def _gate(self, ask: AskView) -> Gate | None:
        """Return what refuses the ask, if anything does; only quotas hold back a required node."""
        wanted = ask.shape.wanted
        leaf = ask.app.leaf
        own = own_claim(self.state, ask.ask, "") if ask.ask.reserved else None
        if own is not None:
            return leaf.refusing_claimed(wanted, own) or refusing_limit(ask.app.limits, wanted)
        gate: Gate | None = leaf.refusing(wanted)
        if gate is not None and gate.is_quota:
            return gate
        return refusing_limit(ask.app.limits, wanted) or (None if ask.shape.required_node else gate)

    def _explain(self) -> None:
        """Find out what holds back the asks that are not tried by themselves.

        A shape that no node has room for is not tried in the other leaves that ask for it: their
        own limits may refuse it too, and then these are to say when that changes.
        """
        for ask in self.findings.take_unexplained():
            if not ask.open or not ask.app.is_schedulable or self._is_held(ask.app):
                continue
            lane = ask.app.leaf.lanes.get((ask.shape, ask.app.owner))
            if lane is None or lane.is_open:
                continue
            gate = self._gate(ask) if lane.refused_by is None else None
            if gate is not None:
                self.tree.refuse(lane, gate)
            self.findings.note(ask, lane)

    def _settle_reservation(self, proposal_id: int) -> None:
        self.reserver.settle(proposal_id)

    def _settle_preemption(self, proposal_id: int) -> None:
        self.preemptor.settle(proposal_id)

    def _is_held(self, app: AppView) -> bool:
        """Hold the application back if a maximum of running applications is reached."""
        if app.app.state is not ApplicationState.ACCEPTED:
            return False
        gate = app.held_at()
        if gate is not None:
            if app.held_by is None:
                self.tree.hold(app, gate)
            self.findings.note_held(app, gate)
        return gate is not None

    def _decide(self, ask: AskView, leaf: QueueView, node: NodeView) -> Allocate:
        resource, record = ask.resource, ask.ask
        proposal_id = self.next_id()
        self.in_flight[proposal_id] = InFlight(
            ask, leaf, node, resource, ask.app.limits, ask.is_placeholder
        )
        ask.inflight += 1
        if record.reserved:
            self.serving[ask, node.id] = self.serving.get((ask, node.id), 0) + 1
            self.measure_claims(leaf)
        self.start(ask.app)
        for limit in ask.app.limits:
            limit.take(ask.app, resource)
        self.nodes.take(node, resource)
        self._use(ask.app, leaf, resource, is_placeholder=ask.is_placeholder)
        self.wait(ask, -1)
        self._shut(ask, 1)
        if ask.is_placeholder:
            ask.app.placing += 1
            self.follow_gang(ask.app)
            self.gangs.note_placing(ask.app, resource)
        self.tree.rekey(leaf)
        spec = record.spec
        return Allocate(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=record.sequence,
            node_id=node.id,
        )

    def is_in_flight(self, proposal_id: int) -> bool:
        return (
            proposal_id in self.in_flight
            or proposal_id in self.reserver.in_flight
            or proposal_id in self.preemptor.in_flight
            or self.gangs.is_in_flight(proposal_id)
        )

    def deny(self, proposal: Placing | Preempt, reason: str, now_ns: int, use: Use) -> None:
        """The resource manager refused: the ask waits again, and not for this node."""
        whom = proposal.beneficiary if isinstance(proposal, Preempt) else proposal
        ask = self.ask_of(whom.application_id, whom.key)
        if ask is not None and ask.ask.sequence == proposal.sequence:
            self.denials.add(ask, proposal.node_id, reason, now_ns, use)
        self.reject(proposal.proposal_id)

    def reject(self, proposal_id: int) -> None:
        """Context refused: what the proposal held is free again, and the ask waits again."""
        if self.reserver.settle(proposal_id):
            self.reserving_is_stale = True
            return
        if self.preemptor.reject(proposal_id) or self.gangs.reject(self, proposal_id):
            return
        held = self._let_go(self.in_flight.pop(proposal_id))
        if held.goes_first:
            self.gangs.try_first(held.ask)
        if not held.ask.gone:
            self.resync(held.ask)
        self.stale_leaves[held.leaf] = None
