"""The planner: which ask runs where, decided one allocation at a time.

The way down goes from the root to the first queue with something to try, to its first application
and that one's first ask. What cannot be placed is filed with the reason and is not met again until
the change that can matter. Each decision is put in flight; a fact that carries its proposal's id,
or `reject`, takes it out again.
"""

from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.proposals import Allocate
from yunikorn_actors.planning.limits import LimitView
from yunikorn_actors.planning.nodes import NodeView
from yunikorn_actors.planning.shape import ShapeKey
from yunikorn_actors.planning.view import View
from yunikorn_actors.planning.views import AppView, AskView, Gate, InFlight, QueueView


class Planner(View):
    """Decides on its view."""

    @property
    def has_work(self) -> bool:
        """Whether anything might be decided now."""
        root = self.tree.root
        if self.state.held:
            return False
        return self.order_is_stale or (root is not None and root.has_work)

    def plan(self, limit: int) -> list[Allocate]:
        """Decide, one allocation at a time, until nothing can be placed or the limit is reached."""
        if self.state.held:
            return []
        if self.order_is_stale:
            self.tree.measure(self.state.capacity)
            self.order_is_stale = False
        for leaf in self.stale_leaves:
            self.tree.rekey(leaf)
        self.stale_leaves.clear()
        proposals: list[Allocate] = []
        while len(proposals) < limit:
            proposal = self._next()
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def _next(self) -> Allocate | None:
        root = self.tree.root
        while root is not None and root.children:
            leaf = root
            while not leaf.open_lanes:
                leaf = leaf.children[0][1]
            ask = leaf.first()
            shape = ask.shape
            app = ask.app
            if (app.limits or app.app.state is ApplicationState.ACCEPTED) and self._is_held(app):
                continue
            refusing = leaf.refusing(shape.wanted) or _refusing(app.limits, shape.wanted)
            if refusing is not None:
                lane = leaf.lanes[shape, app.owner]
                self.tree.refuse(lane, refusing)
                self._report_lane(lane)
                continue
            node = self.nodes.first_fit(shape)
            if node is None:
                self.tree.wait_for_node(shape)
                for lane in shape.lanes:
                    self._report_lane(lane)
                continue
            return self._decide(ask, leaf, node)
        return None

    def _is_held(self, app: AppView) -> bool:
        """Hold an application back where as many run as may."""
        gates: tuple[Gate, ...] = app.limits
        if app.app.state is ApplicationState.ACCEPTED:
            gates = (*app.leaf.application_limits, *gates)
        for gate in gates:
            if not gate.may_start(app):
                self.tree.hold(app, gate)
                return True
        return False

    def _start(self, app: AppView) -> None:
        """A decision for an application that does not run yet is in flight."""
        app.starting += 1
        for level in app.leaf.application_limits:
            level.starting[app.app.serial] = None

    def _decide(self, ask: AskView, leaf: QueueView, node: NodeView) -> Allocate:
        resource, record = ask.resource, ask.ask
        self._last_id = proposal_id = self._last_id + 1
        self.in_flight[proposal_id] = InFlight(ask, leaf, node, resource, ask.app.limits)
        ask.inflight += 1
        if ask.app.app.state is ApplicationState.ACCEPTED:
            self._start(ask.app)
        for limit in ask.app.limits:
            limit.take(ask.app, resource)
        self.nodes.take(node, resource)
        self._use(ask.app, leaf, resource)
        self._shut(ask, 1)
        self.tree.rekey(leaf)
        spec = record.spec
        return Allocate(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=record.sequence,
            node_id=node.id,
        )

    def reject(self, proposal_id: int) -> None:
        """Context refused: what the proposal held is free again, and the ask waits again."""
        held = self._let_go(self.in_flight.pop(proposal_id))
        if not held.ask.gone:
            self._resync(held.ask)
        self.stale_leaves[held.leaf] = None


def _refusing(limits: tuple[LimitView, ...], wanted: ShapeKey) -> LimitView | None:
    for limit in limits:
        if not limit.room_for(wanted):
            return limit
    return None
