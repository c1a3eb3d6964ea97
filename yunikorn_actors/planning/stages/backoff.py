"""The back-off: applications that rest, because too many of their asks found no node.

A pass over an application's asks counts those that no node holds; an ask that waits for a node
counts as if it had been tried. When the count has reached the threshold of the leaf and the pass
goes on to another ask, of whatever kind, the application rests for a while: nothing of it is tried,
not even a new ask with a higher priority, and other applications go first. An ask counts as without
a node only after the search for its victims, so no application rests before that.
"""

from collections.abc import Iterable
from typing import ClassVar

from yunikorn_actors.planning.model.limits import refusing_limit
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.state.allocations import AskOrder
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.proposals import Proposal
from yunikorn_actors.values.durations import NEVER_NS


class Backoff:
    """Holds applications back, like a queue that lets no more of them start."""

    kind: ClassVar[GateKind] = GateKind.NONE
    name = "the back-off"

    def __init__(self, model: Model) -> None:
        self._participants = model.participants
        self._tree = model.tree
        self._requeue = model.requeue
        self.resting: dict[AppView, int] = {}
        """Until when."""
        self.due_ns = NEVER_NS

    def plan(self, now_ns: int, _room: int) -> list[Proposal]:
        """Wake applications whose rest is over; the same asks may make them rest again."""
        for app in [app for app, due_ns in self.resting.items() if due_ns <= now_ns]:
            del self.resting[app]
            # It may have come to be blocked by a run limit meanwhile, and stays so.
            if app.blocked_by is self:
                self._participants.come_back(app)
            self._requeue.pass_changed(app)
        self.due_ns = min(self.resting.values(), default=NEVER_NS)
        return []

    def must_rest(self, ask: AskView) -> bool:
        """Whether the pass of a leaf with a back-off ends before this ask, in this plan."""
        app = ask.app
        # One that rests already ends its pass at any ask, a new one with a higher priority
        # included.
        if app not in self.resting:
            before = sum(1 for order in self._misses(app) if order < ask.order)
            # Fewer misses in front of it: the pass has not come to its end.
            if before < app.leaf.queue.properties.backoff_count:
                return False
        self._requeue.pass_changed(app)
        self._hold(app)
        return True

    def end_passes(self, _now_ns: int, room: int) -> list[Proposal]:
        """Nothing more is tried now; victims are sought for the asks that were, before any rest."""
        if room > 0:
            for app in self._requeue.passes:
                # One that rests, or is blocked by something else, was not held for this plan alone.
                if app.blocked_by is self and app not in self.resting:
                    self._participants.come_back(app)
                    self._file(app)
        return []

    def _file(self, app: AppView) -> None:
        """File its lanes anew: they lost what refused them when the application left them."""
        for shape in app.piles:
            lane, gate = app.leaf.lanes[shape, app.owner], app.leaf.refusing(shape.wanted)
            if gate is not None and lane.is_open and not shape.required_node:
                # Only where the free size refuses it: a lane that waits for a node is filed there.
                self._tree.refuse(lane, gate)

    def begin_rests(self, now_ns: int, room: int) -> list[Proposal]:
        """Find the applications whose pass met too many misses and has more asks after them."""
        if room > 0:
            apps, self._requeue.passes = self._requeue.passes, {}
            self._look_at(apps, now_ns)
        return []

    def _look_at(self, apps: Iterable[AppView], now_ns: int) -> None:
        for app in apps:
            threshold = app.leaf.queue.properties.backoff_count
            misses = self._misses(app) if threshold and app not in self.resting else []
            if len(misses) < threshold or not misses or not app.is_schedulable:
                continue
            # The pass went on only if there is an ask behind the miss that reached the threshold.
            last = sorted(misses)[threshold - 1]
            order_of = app.leaf.decider.order_of
            if any(order_of(app.app, record) > last for record in app.app.asks.values()):
                self._rest(app, now_ns)

    def _misses(self, app: AppView) -> list[AskOrder]:
        """List the asks that every quota allows and no node, or the free size, has room for."""
        return [
            ask.order
            for ask in app.asks.values()
            # What its own quota refuses is not a matter of nodes: it does not count as a miss.
            if ask.open
            and not ask.shape.required_node
            and (ask.shape.waits_for_node or app.leaf.refusing(ask.shape.wanted) is not None)
            and app.leaf.refusing_quota(ask.shape.wanted) is None
            and refusing_limit(app.limits, ask.shape.wanted) is None
        ]

    def _rest(self, app: AppView, now_ns: int) -> None:
        until_ns = now_ns + app.leaf.queue.properties.backoff_delay_ns
        # A rest that has begun keeps its time: new misses do not draw it out.
        self.due_ns = min(self.due_ns, self.resting.setdefault(app, until_ns))
        self._hold(app)

    def _hold(self, app: AppView) -> None:
        if app.blocked_by is None:
            self._participants.hold(app, self)
