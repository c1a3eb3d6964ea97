"""Placing: which ask runs where, decided one allocation at a time.

The way leads from the root to the first queue with something to try, to its first application and
to the first ask of that. An ask that cannot be placed is filed under the reason and is not tried
again before a change that can help.
"""

from yunikorn_actors.planning.model.in_flight import InFlight
from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.tree import rekey
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Lane, QueueView
from yunikorn_actors.planning.stages.backoff import Backoff
from yunikorn_actors.planning.stages.gangs import Admitter
from yunikorn_actors.planning.stages.gating import Gatekeeper
from yunikorn_actors.planning.stages.reserve import Reserved, Reserver, gate_of_reserved
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.facts import AllocationCommitted, AllocationsCommitted
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Allocate, Proposal
from yunikorn_actors.state.reserved_nodes import own_earmark
from yunikorn_actors.values.devices import Devices


class Placer:
    """One decision: its questions, what it takes, and its outcome, in one place.

    A refusal has to give back exactly what the decision took, so both stand in one class.
    """

    def __init__(
        self,
        model: Model,
        open_proposals: OpenProposals,
        *,
        admitter: Admitter,
        backoff: Backoff,
        gatekeeper: Gatekeeper,
        reserver: Reserver,
    ) -> None:
        self._model = model
        self._open_proposals = open_proposals
        self._findings = open_proposals.findings
        self._admitter = admitter
        self._backoff = backoff
        self._gatekeeper = gatekeeper
        gatekeeper.placing = self
        self._reserver = reserver
        self._reserved = Reserved(model)
        # The model has to know what is placed, because amounts rest on it; other parts keep theirs.
        self._in_flight = model.flights.placements

    # -- the stages

    def place_first(self, _now_ns: int, room: int) -> list[Proposal]:
        """Try the asks whose placeholder has gone at last: its room goes to them first."""
        proposals: list[Proposal] = []
        if self._model.requeue.gangs.first:
            for ask in self._take_first():
                if len(proposals) >= room:
                    # No room in this plan: the debt goes on to the next one.
                    self._model.requeue.goes_first((ask.app, ask.ask.spec.key))
                # One that lost two targets is owed two tries; the first may have placed it.
                elif ask.open and not gate_of(self._model.state, ask) and not ask.app.blocked_at():
                    node = self._node_for(ask)
                    if node is not None:
                        proposal = self._decide(ask, node)
                        # A refusal owes the try again (see `reject`).
                        self._in_flight[proposal.proposal_id].goes_first = True
                        proposals.append(proposal)
        return proposals

    def _take_first(self) -> list[AskView]:
        """Take the asks that go before all others, each as often as a turn is owed to it."""
        marks = self._model.requeue.gangs
        # Taken away before they are tried, so that a new debt is not lost.
        owed, marks.first = marks.first, []
        asks = [app.asks.get(key) for app, key in owed]
        return [ask for ask in asks if ask is not None and ask.open]

    def place_reserved(self, _now_ns: int, room: int) -> list[Proposal]:
        """Try asks with a reservation on their nodes, then on others: that frees their own."""
        proposals: list[Proposal] = []
        if not self._model.reserved_nodes:
            return proposals
        # An application may have a place to start only since the last plan.
        self._model.participants.top_up()
        reserved = self._reserved
        for ask, node, item in reserved.ready():
            if len(proposals) >= room:
                break
            if gate_of_reserved(ask, item) is None and not self.is_blocked(ask.app):
                proposals.append(self._decide(ask, node))
        # Only after all of those on their own nodes: placing elsewhere frees a node for others.
        while len(proposals) < room and (other := reserved.first_elsewhere()) is not None:
            self._try(other.app.leaf, other, proposals)
        return proposals

    def plan(self, _now_ns: int, room: int) -> list[Proposal]:
        """The main loop; when nothing is left, a gang whose commitment lapsed has its turn."""
        proposals: list[Proposal] = []
        admitter = self._admitter
        # Places may have come free since the last plan; one that gets a place takes part from the
        # start.
        if self._model.requeue.places:
            self._model.participants.top_up()
        while len(proposals) < room and (
            # A lapsed gang has its turn only when nothing else is left.
            self._next(proposals) or (admitter.lapsed and admitter.offer_lapsed())
        ):
            pass
        return proposals

    def has_room(self, ask: AskView) -> bool:
        """Whether it would be placed if it were tried now."""
        return gate_of(self._model.state, ask) is None and self._node_for(ask) is not None

    # -- one decision

    def _next(self, proposals: list[Proposal]) -> bool:
        """Make one decision, or file what could not be placed; False when nothing is left."""
        model = self._model
        root = model.tree.root
        if root is None or not root.children:
            # Nothing open may mean that applications wait for a place to start.
            return bool(model.requeue.places) and model.participants.top_up()
        leaf = root
        # Only queues with an open lane below them are children in the order, so a leaf is reached.
        while not leaf.open_lanes:
            leaf = leaf.children[0][1]
        gatekeeper, is_gated = self._gatekeeper, bool(self._gatekeeper.passes)
        # The gate has not let this job in, or lets it in later: the order has changed.
        if is_gated and not gatekeeper.confirms(leaf):
            return True
        ask = leaf.open_lanes.first()
        is_placed = self._try(leaf, ask, proposals)
        if is_gated:
            gatekeeper.went(leaf, ask, is_placed=is_placed)
        if not is_placed:
            # The application may have been woken for a place: it leaves the place to the next.
            model.participants.top_up()
        return True

    def _try(self, leaf: QueueView, ask: AskView, proposals: list[Proposal]) -> bool:
        """Place the ask, or file what stands in its way."""
        app, shape, model = ask.app, ask.shape, self._model
        # Its application may not start: nothing of it is tried, and the next one is looked at.
        if self.is_blocked(app):
            return False
        if shape is model.shapes.turns:
            return self._take_turn(app, proposals)
        # The order of these questions is that of their cost, and of how many asks one answer
        # serves.
        if leaf.queue.properties.backoff_count and self._backoff.must_rest(ask):
            return False
        gate = gate_of(model.state, ask)
        if gate is not None:
            # All of the lane is refused by the same place, so the lane moves and not the ask (ADR
            # 9).
            self._refuse(leaf.lanes[shape, app.owner], gate)
            return False
        node = self._node_for(ask)
        if node is not None:
            proposals.append(self._decide(ask, node))
            return True
        self._file(ask, proposals)
        return False

    def _node_for(self, ask: AskView) -> NodeView | None:
        """Return the first node with room; of a required one others may have a part for them."""
        node = self._model.nodes.first_fit(ask.shape, ask.app.node_order)
        # On a required node others may have reserved a part: amounts alone do not tell.
        if node is None or (ask.shape.required_node and not self._model.may_use(ask, node)):
            return None
        return node

    def is_blocked(self, app: AppView) -> bool:
        """Hold the application back if a maximum of running applications is reached."""
        if app.app.state is not ApplicationState.ACCEPTED:
            return False
        gate = app.blocked_at()
        if gate is not None:
            # Already blocked by something else: that is what it waits for.
            if app.blocked_by is None:
                self._model.participants.hold(app, gate)
            self._findings.note_blocked(app, gate)
        return gate is not None

    def _take_turn(self, app: AppView, proposals: list[Proposal]) -> bool:
        """Admit the gang, and try all of its placeholders at once.

        No other ask comes in between, so the room for which it was admitted is there for each,
        however many proposals a plan may hold.
        """
        # The turn ends first: it is a single entry and must not come up again in this plan.
        self._model.gangs.end_turn(app)
        # Refused here it gets no second turn in this plan; room that comes gives it a new one.
        admission = self._admitter.admit(app)
        if admission is not None:
            proposals.append(admission)
            # Each is filed or placed, so the loop comes to an end.
            while (ask := app.first_placeholder()) is not None:
                self._try(app.leaf, ask, proposals)
        # Its entry has gone, so the place of its queue among its siblings may have changed.
        rekey(app.leaf)
        return admission is not None

    def _refuse(self, lane: Lane, gate: Gate) -> None:
        self._model.tree.refuse(lane, gate)
        # A quota is not the fault of the cluster: what refuses it is known already.
        if gate.is_quota:
            self._findings.note_lane(lane)
        else:
            # Only the size of the cluster refuses it: what to report shows at the end of the plan.
            self._model.requeue.look_into_lane(lane)
        self._change_passes(lane)

    def _file(self, ask: AskView, proposals: list[Proposal]) -> None:
        """No node has room: the shape waits, and a required node is kept at once."""
        # A failed search says it of all asks of this shape, in whatever leaf they wait.
        model, shape = self._model, ask.shape
        model.tree.wait_for_node(shape)
        for lane in model.shapes.lanes.get(shape, ()):
            model.requeue.look_into_lane(lane)
            self._change_passes(lane)
        model.requeue.ask_may_reserve()
        required = model.nodes.views.get(shape.required_node)
        # Only that node helps it, so the room that comes free there is kept for it at once.
        if required is not None:
            model.requeue.required_node_is_full(required)
            reservation = self._reserver.reserve_required(ask, required)
            if reservation is not None:
                proposals.append(reservation)

    def _change_passes(self, lane: Lane) -> None:
        """Everything in the lane was refused."""
        if lane.leaf.queue.properties.backoff_count:
            for _, app in lane.apps:
                self._model.requeue.pass_changed(app)

    def _decide(self, ask: AskView, node: NodeView) -> Allocate:
        model, app = self._model, ask.app
        resource, record = ask.resource, ask.ask
        is_placeholder = ask.is_placeholder
        # All that the decision takes leaves the view now: until Context has answered no other
        # decision, of this plan or a later one, may count on it.
        proposal_id = self._open_proposals.next_id(self)
        devices: Devices = ()
        if ask.shape.devices:
            devices = model.take_devices(ask, node)
        self._in_flight[proposal_id] = InFlight(
            ask, node, resource, app.limits, is_placeholder, devices
        )
        ask.inflight += 1
        if record.reserved:
            model.flights.serve(ask, node)
            model.amounts.measure_earmarks(app, ask.ask.spec.key)
        # Its place, its limits, its node, its queues: a refusal gives back the same four.
        model.participants.start(app)
        for limit in app.limits:
            limit.take(app, resource)
        model.nodes.take(node, resource)
        model.amounts.use(app, resource, is_placeholder=is_placeholder, waited=ask.shape.total)
        ask.waiting -= 1
        if app.leaf.changed is not None:
            app.leaf.changed[ask] = None
        kind = (ask.shape, is_placeholder)
        # Empty kinds are removed: the sums walk over what is left.
        app.waits[kind] -= 1
        if not app.waits[kind]:
            del app.waits[kind]
        model.asks.shut(ask, 1)
        if is_placeholder:
            app.placing += 1
            model.gangs.follow_placing(app)
            # From here on it is no longer to come: else the gang would be counted twice in this
            # plan.
            self._admitter.note_placing(app, resource)
        rekey(app.leaf)
        spec = record.spec
        return Allocate(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=record.sequence,
            node_id=node.id,
            devices=devices,
        )

    # -- the outcomes

    def subject_of(self, proposal_id: int) -> AskView:
        return self._in_flight[proposal_id].ask

    def resolve(self, proposal_id: int, fact: Resolving) -> bool:
        """The ask may be another by now, and its node replaced by another of the same id."""
        assert isinstance(fact, AllocationCommitted | AllocationsCommitted)
        flight = self._in_flight.pop(proposal_id)
        # Only what was committed exactly as it was decided is charged already. In all other cases
        # it is given back here and charged anew with the amounts of the fact.
        is_same = (
            flight.resource == fact.resource and flight.is_placeholder is flight.ask.is_placeholder
        )
        # A node that came back under its name has other books: what was taken there is gone with
        # it.
        if is_same and self._model.nodes.knows(flight.node):
            self._resolve(flight)
            self._model.asks.forget_if_done(flight.ask)
            return True
        self._let_go(flight)
        return False

    def reject(self, proposal_id: int) -> None:
        """What it took is free again, and the ask waits again."""
        flight, model = self._in_flight.pop(proposal_id), self._model
        ask = flight.ask
        self._let_go(flight)
        # The attempt was refused, so nothing is resolved: the ask still goes first to its room.
        if flight.goes_first:
            model.requeue.goes_first((ask.app, ask.ask.spec.key))
        if not ask.gone:
            model.asks.resync(ask)
        model.requeue.amounts_changed(ask.app.leaf)
        # What it was to use is there: that may spare a victim, or be room enough with one.
        model.requeue.work_changed(flight.node)

    def _resolve(self, flight: InFlight) -> None:
        """The decision is in flight no longer."""
        model, ask = self._model, flight.ask
        app = ask.app
        ask.inflight -= 1
        # Its devices come back in any case; where the fact took some, it charges them anew.
        if flight.devices:
            model.nodes.give_devices_back(flight.node, flight.devices, flight.resource)
        if ask.is_placeholder:
            app.placing -= 1
        flights = model.flights
        if flights.serving and flights.served(flight):
            model.amounts.measure_earmarks(app, ask.ask.spec.key)
        # Only what is in flight ends here: the limit counts the rest from the fact.
        for limit in flight.limits:
            limit.resolve(app, flight.resource)
            model.participants.wake(limit)
        if app.starting:
            model.participants.started(app)

    def _let_go(self, flight: InFlight) -> None:
        self._resolve(flight)
        model, app = self._model, flight.ask.app
        model.amounts.give_back(app, flight.resource, is_placeholder=flight.is_placeholder)
        model.amounts.free_node(flight.node, flight.resource)
        # It may have become a placeholder since, or none any more.
        if flight.is_placeholder or flight.ask.is_placeholder:
            model.gangs.follow_placing(app)


def gate_of(state: PartitionState, ask: AskView, *, has_promised: bool = True) -> Gate | None:
    """Return what refuses the ask, if anything does; only quotas hold back a required node.

    The limits of its user come first: where they refuse it, nothing is preempted for it. With
    `has_promised=False` its own promises do not count: the answer holds for its whole lane.
    """
    # The limits first: where they refuse it no preemption may help.
    wanted, leaf, limits = ask.shape.wanted, ask.app.leaf, ask.app.limits
    own = own_earmark(state, ask.ask, "") if has_promised and ask.ask.reserved else None
    if limits and (limit := refusing_limit(limits, wanted)) is not None:
        return limit
    # Its queues count the room promised to it as used already, so it must not count twice.
    if own is not None:
        return leaf.refusing_earmarked(wanted, own)
    # A required node asks no free size: only the quotas can refuse it.
    return (leaf.refusing_quota if ask.shape.required_node else leaf.refusing)(wanted)
