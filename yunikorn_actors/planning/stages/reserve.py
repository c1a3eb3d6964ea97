"""Reservations: nodes kept for asks that no node holds now.

An ask may get a reservation if it has waited for longer than the delay, every quota allows it and
some node could hold it when empty. It gets the node with the least left over. So few nodes are
reserved that the cluster cannot freeze. An ask that can run on one node alone reserves it at once,
beside others of its kind. An ask with a reservation is tried first in every cycle: on its node,
then on the others if one has gained room. Its application takes a place among the running ones. An
old reservation is given up if the ask has no headroom, or its application may no longer start.

The reserver looks again after a change that can matter, and when an ask has waited long enough;
`due_ns` says when that is.
"""

from collections.abc import Iterator
from math import isqrt

from msgspec import Struct

from yunikorn_actors.planning.model.in_flight import Place
from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.nodes import Entry, NodeIndex, NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.tree import place_of, rank_of, waiting_below
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Lane, QueueView
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving
from yunikorn_actors.policies.folds import is_gated
from yunikorn_actors.state.allocations import Ask, Reservation
from yunikorn_actors.state.device_fit import could_hold
from yunikorn_actors.state.eligibility import check_use
from yunikorn_actors.state.proposals import Proposal, Reserve, Unreserve
from yunikorn_actors.state.reserved_nodes import (
    WAIT_NS,
    kept_count,
    kept_for,
    reservations_max,
    used_up,
)
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import fit_in_score, fits_in

Rank = tuple[float, Entry]


class BestNodes:
    """Which node would have the least left over if it were reserved for an ask of some shape.

    One list of all nodes, ranked for one shape, serves many questions: nodes that changed since are
    graded anew each time, and when they have become many the list is made again.
    """

    def __init__(self, nodes: NodeIndex) -> None:
        self._nodes = nodes
        self._shape: Shape | None = None
        self._ranked: list[Rank] = []
        """The best is the last; nodes that changed since, or are gone, do not count."""

    def find(self, shape: Shape) -> NodeView | None:
        """Return the open node with the least left over; the first in order among equals."""
        self._nodes.tidy()
        changed, ranked = self._nodes.changed, self._ranked
        # Each changed node is graded at each question. When about as many have changed as it costs
        # to sort all, the list is made anew.
        if shape is not self._shape or len(changed) > 3 * isqrt(len(self._nodes.views)):
            # Another shape measures nodes by other amounts: the list is of no use to it.
            self._rank_all(shape)
            changed, ranked = self._nodes.changed, self._ranked
        while ranked:
            view = ranked[-1][1][2]
            is_graded = self._nodes.knows(view) and view not in changed
            if is_graded and not shape.is_refused(view.id, Use.KEEPING):
                break
            ranked.pop()
        # Graded anew for this question alone: they stand in no order.
        ranks = [rank for view in changed if (rank := _rank(shape, view)) is not None]
        best = min([*ranks, *ranked[-1:]], default=None)
        return None if best is None else best[1][2]

    def _rank_all(self, shape: Shape) -> None:
        self._shape = shape
        ranks = [_rank(shape, view) for view in self._nodes.in_order()]
        self._ranked = sorted((rank for rank in ranks if rank is not None), reverse=True)
        self._nodes.changed.clear()


def _rank(shape: Shape, view: NodeView) -> Rank | None:
    # A node out of the order takes no work, and one too small never will.
    wanted = dict(shape.wanted)
    if view.entry is None or shape.is_refused(view.id, Use.KEEPING):
        return None
    if not fits_in(wanted, view.node.capacity):
        return None
    if not shape.could_have_devices_of(view.node):
        return None
    return (fit_in_score(view.free, wanted), view.entry)


class Keeping(Struct):
    """A reservation on its way, made or given up."""

    ask: AskView
    node: NodeView
    place: Place | None = None
    """A new reservation takes a place among the running applications."""


class Reserved:
    """Reservations that may be used now: by the ask on its node, or anywhere else."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.requeue.reserving

    def ready(self) -> Iterator[tuple[AskView, NodeView, Reservation]]:
        """Yield asks with the node that is reserved for them, if it has room."""
        model, marks = self._model, self._marks
        # A copy: placing one of them may mark other nodes.
        for node_id in tuple(marks.nodes):
            node = model.nodes.views.get(node_id)
            fitting = [] if node is None else list(self._fitting(node))
            if node is None or not fitting:
                # It is looked at again when it gains room.
                del marks.nodes[node_id]
                continue
            for ask, item in fitting:
                # Asked again for each: the planner may have placed the one before it meanwhile.
                if node_id not in self._unused(ask) or not model.may_use(ask, node):
                    continue
                if not ask.shape.is_refused(node_id, Use.PLACING):
                    yield ask, node, item

    def _fitting(self, node: NodeView) -> Iterator[tuple[AskView, Reservation]]:
        for item in node.node.reservations.values():
            ask = self._model.ask_of(item.application_id, item.key)
            if ask is not None and self._model.may_use(ask, node):
                # Several reservations of one ask serve as many repeats.
                for _ in range(item.repeats):
                    yield ask, item

    def _unused(self, ask: AskView) -> list[str]:
        """Return the reserved nodes that no decision in flight uses: each reservation serves once.

        A decision for another node ends a reservation as well, the oldest first.
        """
        reserved = ask.ask.reserved
        left = {id_: self._model.flights.serving.get((ask, id_), 0) for id_ in reserved}
        unused: list[str] = []
        for id_ in reserved:
            # Each decision in flight uses up one of them, here or elsewhere.
            left[id_] -= 1
            if left[id_] < 0:
                unused.append(id_)
        elsewhere = ask.inflight - (len(reserved) - len(unused))
        return unused[max(0, elsewhere, len(unused) - ask.open) :]

    def first_elsewhere(self) -> AskView | None:
        """Return the first ask with a reservation that may find room on another node."""
        asks: dict[QueueView, list[AskView]] = {}
        roused, reserved = self._marks.shapes, self._model.shapes.reserved
        # A copy: shapes are taken out in the loop.
        for shape in tuple(roused):
            if shape.waits_for_node or shape not in reserved:
                # It is looked at again when it is roused.
                del roused[shape]
                continue
            for ask in reserved[shape]:
                if self._may_go_elsewhere(ask):
                    asks.setdefault(ask.app.leaf, []).append(ask)
        return min(asks[min(asks, key=place_of)], key=rank_of) if asks else None

    def _may_go_elsewhere(self, ask: AskView) -> bool:
        """Whether it may be tried now, and placing it would end a reservation.

        What others in its lane are refused for may be the room that was promised to this ask.
        """
        lane = ask.app.leaf.lanes.get((ask.shape, ask.app.owner))
        if not ask.open or ask.app.entry is None or lane is None or not self._unused(ask):
            return False
        state = self._model.state
        # Which of its reservations a placement elsewhere would use up.
        kept = used_up(state, ask.ask, "")
        # A lane that is open is tried in its order anyway; a closed one may be refused for others
        # alone.
        if kept is None or lane.is_open:
            return kept is not None
        return gate_of_reserved(ask, kept_for(state, ask.ask, kept)) is None


def gate_of_reserved(ask: AskView, item: Reservation) -> Gate | None:
    """Return what refuses an ask with this reservation, if anything does."""
    wanted, leaf = ask.shape.wanted, ask.app.leaf
    if (limit := refusing_limit(ask.app.limits, wanted)) is not None:
        return limit
    if item.earmark is not None:
        # Room that was promised to it counts as its own, so the quota must not count it twice.
        return leaf.refusing_earmarked(wanted, item.earmark)
    return (leaf.refusing_quota if item.required else leaf.refusing)(wanted)


class Reserver:
    def __init__(self, model: Model, open_proposals: OpenProposals, delay_ns: int) -> None:
        self._model = model
        self._open_proposals = open_proposals
        self._marks = model.requeue.reserving
        self._delay_ns = delay_ns
        # Shared by all asks of a plan: most that wait are of one shape.
        self.best_nodes = BestNodes(model.nodes)
        self.due_ns = NEVER_NS
        """When the next ask has waited long enough, or a reservation is old enough to end."""
        self.in_flight: dict[int, Keeping] = {}

    def plan(self, now_ns: int, room: int) -> list[Proposal]:
        """Reserve nodes for asks that have waited long enough, and give up what serves nobody."""
        if room <= 0:
            return []
        self._marks.is_stale = False
        # In this order: the first sets `due_ns` anew, the second only makes it earlier.
        return [*self._reserve_ordinary(now_ns, room), *self._give_up(now_ns)]

    # -- the outcomes of proposals

    def subject_of(self, proposal_id: int) -> AskView:
        return self.in_flight[proposal_id].ask

    def resolve(self, proposal_id: int, _: Resolving | None = None) -> bool:
        flight = self.in_flight.pop(proposal_id)
        ask, node, model = flight.ask, flight.node, self._model
        ask.keeping -= 1
        if flight.place is not None:
            model.participants.resolve(flight.place)
        model.asks.keep_required(ask)
        model.requeue.resolved()
        # The node may have left, and another one come under its name.
        if model.nodes.knows(node):
            node.keeping -= 1
            model.amounts.refresh_node(node)
        return True

    def reject(self, proposal_id: int) -> None:
        self.resolve(proposal_id)
        self._marks.is_stale = True

    # -- asks that come to have a node kept

    def reserve_required(self, ask: AskView, node: NodeView) -> Reserve | None:
        """Reserve the required node, unless it is reserved for the ask, awaited or too small."""
        if node.id in ask.ask.reserved or ask.keeping or node.node.awaited:
            return None
        if not could_hold(node.node, ask.ask.spec):
            return None
        return self._reserve(ask, node)

    def _reserve_ordinary(self, now_ns: int, limit: int) -> list[Reserve]:
        """Reserve nodes for asks that have waited long enough, in order, within the bound."""
        model, amounts = self._model, self._model.amounts
        self.due_ns = NEVER_NS
        # The bound keeps asks that cannot run from closing every node to those that can.
        free = min(limit, reservations_max(model.state) - self._kept())
        lanes = self._lanes(now_ns) if free > 0 else {}
        proposals: list[Reserve] = []
        if not lanes or model.tree.root is None:
            return proposals
        # In the order of a placement: the first that waits gets the node.
        for lane, ask in waiting_below(model.tree.root, lanes.__contains__):
            if len(proposals) >= free:
                return proposals
            # Asked before, on nodes that have not changed since: the answer would be the same.
            shape = lane.shape
            if shape.hopeless_at == amounts.node_changes or not self._is_of_age(ask, now_ns):
                continue
            # As many nodes as repeats that may run, and none for an application that may not start:
            # it would keep the node from everybody for nothing.
            if len(ask.ask.reserved) + ask.keeping >= ask.open or ask.app.blocked_at() is not None:
                continue
            # A gate that has failed lets in everybody, and its leaf still keeps no nodes.
            if is_gated(model.state, ask.app.app, ask.ask):
                continue
            node = self.best_nodes.find(shape)
            if node is None:
                shape.hopeless_at = amounts.node_changes
            else:
                proposals.append(self._reserve(ask, node))
        self._note_ages(lanes)
        return proposals

    def _lanes(self, now_ns: int) -> dict[Lane, None]:
        """Find lanes in which an ask may be old enough and only the nodes refuse it."""
        found: dict[Lane, None] = {}
        for shape in self._model.shapes.waiting:
            if shape.required_node or shape.hopeless_at == self._model.amounts.node_changes:
                continue
            due_ns = shape.oldest_ns + self._delay_ns
            # A little later than the delay: at the very moment it is not longer than that.
            if due_ns >= now_ns:
                self.due_ns = min(self.due_ns, due_ns + 1)
                continue
            for lane in self._model.shapes.lanes.get(shape, ()):
                if self._has_headroom(lane.apps[0][1], shape):
                    found[lane] = None
        return found

    def _note_ages(self, lanes: dict[Lane, None]) -> None:
        """Everything has been looked at: note how old these shapes really are."""
        # Once, at the end: the walk is over all applications of the partition.
        ages = {lane.shape: NEVER_NS for lane in lanes}
        for app in self._model.apps.values():
            for shape, pile in app.piles.items():
                if shape in ages:
                    ages[shape] = min(ages[shape], *(ask.ask.created_ns for ask in pile))
        for shape, oldest_ns in ages.items():
            shape.oldest_ns = oldest_ns

    def _kept(self) -> int:
        model = self._model
        made = kept_count(model.nodes.views[node_id].node for node_id in model.reserved_nodes)
        # Required nodes are reserved beside others, so they are not bounded.
        coming = sum(1 for it in self.in_flight.values() if not it.ask.shape.required_node)
        return made + coming

    def _is_of_age(self, ask: AskView, now_ns: int) -> bool:
        due_ns = ask.ask.created_ns + self._delay_ns
        if due_ns < now_ns:
            return True
        self.due_ns = min(self.due_ns, due_ns + 1)
        return False

    def _reserve(self, ask: AskView, node: NodeView) -> Reserve:
        model = self._model
        proposal_id = self._open_proposals.next_id(self)
        self.in_flight[proposal_id] = Keeping(ask, node, model.participants.take(ask.app))
        ask.keeping += 1
        # The node looks the same until Context answers, so no other decision may count on it.
        node.keeping += 1
        model.amounts.refresh_node(node)
        spec = ask.ask.spec
        return Reserve(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=ask.ask.sequence,
            node_id=node.id,
        )

    # -- reservations that are given up

    def _give_up(self, now_ns: int) -> list[Unreserve]:
        """Give nodes free whose asks have had no headroom, or no leave to start, for too long.

        Where only what is on its way stands against an ask, that has to be resolved first: Context
        does not know of it and would refuse, again and again while a question is out.
        """
        model = self._model
        # Set anew: a plan that finds nothing that waits must not stay in that state.
        self._marks.waits = False
        proposals: list[Unreserve] = []
        for node_id in model.reserved_nodes:
            for item in model.nodes.views[node_id].node.reservations.values():
                due_ns = item.made_ns + WAIT_NS
                ask = model.ask_of(item.application_id, item.key)
                if ask is None or (gate_of_reserved(ask, item) or ask.app.blocked_at()) is None:
                    continue
                if due_ns > now_ns:
                    self.due_ns = min(self.due_ns, due_ns)
                elif check_use(model.state, ask.app.app, ask.ask, item) is None:
                    # Only what is in flight refuses it: that is resolved first.
                    self._marks.waits = True
                elif not ask.keeping and ask not in model.set_aside:
                    # What Context refused on these facts is not proposed again.
                    proposals.append(self._unreserve(ask.ask, ask, node_id))
        return proposals

    def _has_headroom(self, app: AppView, shape: Shape) -> bool:
        refusing = app.leaf.refusing(shape.wanted) or refusing_limit(app.limits, shape.wanted)
        return refusing is None

    def _unreserve(self, record: Ask, ask: AskView, node_id: str) -> Unreserve:
        proposal_id = self._open_proposals.next_id(self)
        node = self._model.nodes.views[node_id]
        self.in_flight[proposal_id] = Keeping(ask, node)
        ask.keeping += 1
        node.keeping += 1
        return Unreserve(
            proposal_id=proposal_id,
            application_id=record.spec.application_id,
            key=record.spec.key,
            sequence=record.sequence,
            node_id=node_id,
        )
