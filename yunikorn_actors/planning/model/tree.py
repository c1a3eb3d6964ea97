"""The queues of a partition as the planner walks them: who goes first.

Only what has changed moves to its new place; nothing is sorted from scratch. A refused lane is
closed and filed under what refused it, and a change there opens it again. The way down from the
root sees open lanes only, so an ask that cannot run costs nothing until then.
"""

from bisect import bisect_left, insort

from yunikorn_actors.domain.allocation import AskSpec
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.planning.model.held import HeldBack
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, ShapeKey, shape_key
from yunikorn_actors.planning.model.views import (
    NO_PRIORITY,
    AppView,
    AskView,
    Gate,
    Lane,
    QueueView,
    key_of,
    priority_of,
)
from yunikorn_actors.planning.wakes import Wakes


class Tree:
    """The queues of a partition as the planner walks them."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self.queues: dict[str, QueueView] = {}
        self.root: QueueView | None = None
        self.shapes: dict[ShapeKey, Shape] = {}
        self.turns = Shape(((), "", "", ""))
        """The shape of what stands for a held gang: nothing but its admission is tried."""
        self.lanes: dict[Shape, dict[Lane, None]] = {}
        """All lanes of a shape, in whatever leaf."""
        self.waiters: dict[Gate, dict[Lane, None]] = {}
        """Lanes that a queue or a limit refused last."""
        self.held = HeldBack()
        self.reserved: dict[Shape, dict[AskView, None]] = {}
        """Asks with a reservation that could run elsewhere."""
        self.waiting_shapes: dict[Shape, None] = {}
        """Shapes that no node has room for."""

    def add_queue(self, queue: Queue, capacity: Resource) -> None:
        """Nothing waits for it yet, so it is measured by itself."""
        parent = None if queue.parent is None else self.queues[queue.parent.path]
        self.queues[queue.path] = view = QueueView(queue, parent)
        if parent is None:
            self.root = view
        else:
            parent.below.append(view)
        view.measure(capacity)

    def remove_queue(self, path: str) -> None:
        view = self.queues.pop(path)
        if view.parent is not None:
            view.parent.below.remove(view)

    # -- shapes and lanes

    def shape_of(self, spec: AskSpec) -> Shape:
        key = shape_key(spec)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(key)
        return shape

    def enter(self, app: AppView) -> None:
        """Let an application take part with everything it waits for."""
        self.held.rekey(app)
        if app.entry is not None or not app.piles or not app.is_schedulable or app.held_by:
            return
        app.entry = (key_of(app), app)
        for shape in app.piles:
            self._join(app, shape)

    def leave(self, app: AppView) -> None:
        if app.entry is None:
            return
        for shape in app.piles:
            self._part(app, shape)
        app.entry = None

    def rekey_app(self, app: AppView) -> None:
        """What has nothing that waits stands nowhere: so it is while a recovery is reported."""
        if app.piles or app.entry is not None or app.held_by is not None:
            self.leave(app)
            self.enter(app)

    def _join(self, app: AppView, shape: Shape) -> None:
        leaf = app.leaf
        lane = leaf.lanes.get((shape, app.owner))
        if lane is None:
            lane = leaf.lanes[shape, app.owner] = Lane(leaf, shape, app.owner)
            self.lanes.setdefault(shape, {})[lane] = None
        assert app.entry is not None
        insort(lane.apps, app.entry)
        if lane.is_open:
            self.open_lane(lane)

    def _part(self, app: AppView, shape: Shape) -> None:
        leaf = app.leaf
        lane = leaf.lanes[shape, app.owner]
        assert app.entry is not None
        del lane.apps[bisect_left(lane.apps, app.entry)]
        if lane.apps:
            self._move(lane)
        else:
            self.close_lane(lane)
            del leaf.lanes[shape, app.owner]
            others = self.lanes[shape]
            del others[lane]
            self._unfile(lane)
            if not others:
                del self.lanes[shape]
                # A shape that waits for a node stays: its next ask need not be tried in vain.
                if not shape.waits_for_node:
                    self._forget(shape)

    def _forget(self, shape: Shape) -> None:
        """No lane has this shape any more; a held application that still has it starts anew."""
        self.waiting_shapes.pop(shape, None)
        shape.waits_for_node = False
        self.rouse(shape)
        if self.shapes.get(shape.key) is shape:
            del self.shapes[shape.key]

    def open_lane(self, lane: Lane) -> None:
        leaf = lane.leaf
        # As long as one lane was open alone it had no place; now the two are compared.
        if len(leaf.open_lanes) == 1:
            leaf.moved.update(leaf.open_lanes)
        leaf.open_lanes[lane] = None
        self._move(lane)
        if leaf.entry is None:
            self._show(leaf)

    def _move(self, lane: Lane) -> None:
        """Another ask may stand first in it; a lane that is open alone needs no place."""
        leaf = lane.leaf
        if len(leaf.open_lanes) > 1 and lane in leaf.open_lanes:
            leaf.moved[lane] = None

    def close_lane(self, lane: Lane) -> None:
        open_lanes = lane.leaf.open_lanes
        if lane in open_lanes:
            del open_lanes[lane]
            lane.leaf.moved.pop(lane, None)
            if not open_lanes:
                lane.leaf.order.clear()
                self._hide(lane.leaf)

    def _show(self, view: QueueView) -> None:
        """The queue has something to try again; so have its ancestors."""
        for level in view.lineage[:-1]:
            if level.entry is not None:
                return
            level.entry = (level.key(), level)
            assert level.parent is not None
            insort(level.parent.children, level.entry)

    def _hide(self, view: QueueView) -> None:
        for level in view.lineage[:-1]:
            if level.has_work:
                return
            parent = level.parent
            assert parent is not None
            assert level.entry is not None
            del parent.children[bisect_left(parent.children, level.entry)]
            level.entry = None

    def rekey(self, view: QueueView) -> None:
        """The amounts of this queue changed: it and its ancestors find their new places."""
        for level in view.lineage[:-1]:
            entry = level.entry
            if entry is None:
                continue
            parent = level.parent
            assert parent is not None
            children = parent.children
            level.entry = new = (level.key(), level)
            if len(children) == 1:
                children[0] = new
            else:
                del children[bisect_left(children, entry)]
                insort(children, new)

    # -- lanes that wait, and what wakes them

    def refuse(self, lane: Lane, gate: Gate) -> None:
        """There is no room for this shape: the lane waits until there is."""
        self._unfile(lane)
        lane.refused_by = gate
        self.waiters.setdefault(gate, {})[lane] = None
        self.close_lane(lane)

    def _unfile(self, lane: Lane) -> None:
        """The lane is refused by nothing now; asks that only a limit held back may preempt."""
        gate, lane.refused_by = lane.refused_by, None
        if gate is not None:
            waiters = self.waiters[gate]
            del waiters[lane]
            if not waiters:
                del self.waiters[gate]
            if lane.leaf.is_entitled and not isinstance(gate, QueueView):
                self._wakes.lane_resumed(lane)

    def wake_waiters(self, gate: Gate) -> None:
        """There may be more room than before."""
        for lane in [w for w in self.waiters.get(gate, ()) if gate.room_for(w.shape.wanted)]:
            self._unfile(lane)
            if lane.is_open:
                self.open_lane(lane)
            else:
                # Its shape waits for a node as well: what refuses the asks now is another reason.
                self._wakes.look_into_lane(lane)

    def wait_for_node(self, shape: Shape) -> None:
        """No node has room for this shape, wherever it is asked for."""
        shape.waits_for_node = True
        self.waiting_shapes[shape] = None
        for lane in self.lanes.get(shape, ()):
            self.close_lane(lane)

    def wake_shapes(self, node: NodeView) -> None:
        """The node may have more room than before."""
        for shape in [s for s in self.waiting_shapes if node.serves(s)]:
            self._wake_shape(shape)

    def wake_required(self, node_id: str) -> None:
        """Asks that require this node may get it reserved: they are tried again."""
        for shape in [s for s in self.waiting_shapes if s.required_node == node_id]:
            self._wake_shape(shape)

    def _wake_shape(self, shape: Shape) -> None:
        del self.waiting_shapes[shape]
        shape.waits_for_node = False
        self.rouse(shape)
        lanes = self.lanes.get(shape)
        if lanes is None:
            self._forget(shape)
            return
        for lane in lanes:
            if lane.is_open:
                self.open_lane(lane)

    def rouse(self, shape: Shape) -> None:
        if shape in self.reserved and not shape.waits_for_node:
            self._wakes.shape_roused(shape)

    def follow_reserved(self, ask: AskView) -> None:
        """An ask with a reservation goes before others on any node that has room for it."""
        if ask.ask.reserved and not ask.shape.required_node:
            self.reserved.setdefault(ask.shape, {})[ask] = None
            self.rouse(ask.shape)
        else:
            self.forget_reserved(ask)

    def forget_reserved(self, ask: AskView) -> None:
        asks = self.reserved.get(ask.shape)
        if asks is not None:
            asks.pop(ask, None)
            if not asks:
                del self.reserved[ask.shape]

    def measure(self, capacity: Resource) -> None:
        """The cluster or the configuration changed: limits and shares have new measures.

        Rare, so everything is measured again; what waits for a queue is asked again.
        """
        # Pass by pass: the place of a queue follows from the measures and priorities of all others.
        for view in self.queues.values():
            view.measure(capacity)
        for view in self.queues.values():
            self.wake_waiters(view)
        for view in self.queues.values():
            self._export(view)
        for view in self.queues.values():
            self.rekey(view)

    # -- asks

    def add_ask(self, view: AskView) -> None:
        """Put an ask on its pile; the application takes part, or moves up, as it should."""
        app, shape = view.app, view.shape
        pile = app.piles.get(shape)
        if pile is None:
            pile = app.piles[shape] = []
            if app.entry is not None:
                self._join(app, shape)
        insort(pile, (view.order, view))
        priority = view.order.priority
        if pile[0][1] is view:
            self._top(app, shape, pile[1][0].priority if len(pile) > 1 else None, priority)
        if priority > app.priority:
            self._rank(app, priority)
        if app.entry is None:
            self.enter(app)

    def drop_ask(self, view: AskView) -> None:
        app, shape = view.app, view.shape
        pile, priority = app.piles[shape], view.order.priority
        if pile[0][1] is view:
            del pile[0]
            self._top(app, shape, priority, pile[0][0].priority if pile else None)
        else:
            del pile[bisect_left(pile, (view.order, view))]
        if not pile:
            if app.entry is not None:
                self._part(app, shape)
            del app.piles[shape]
            if shape not in self.lanes:
                self._forget(shape)
        if not app.piles:
            app.entry = None
        # Last, because to move the application means to leave and to enter with what it still has.
        if priority == app.priority and not (pile and pile[0][0].priority == priority):
            self._rank(app, priority_of(app))

    def _top(self, app: AppView, shape: Shape, old: int | None, new: int | None) -> None:
        """Another ask is on top of a pile; these are the priorities of both."""
        leaf = app.leaf
        if new is not None and len(leaf.open_lanes) > 1 and app.entry is not None:
            self._move(leaf.lanes[shape, app.owner])
        if old == new:
            return
        heads = app.heads
        if new is not None:
            heads[new] = heads.get(new, 0) + 1
        if old is not None:
            heads[old] -= 1
            if not heads[old]:
                del heads[old]

    # -- priorities

    def _rank(self, app: AppView, priority: int) -> None:
        """The highest priority of an application changed: it and its queues move."""
        if priority == app.priority:
            return
        ranks = app.leaf.ranks
        if app.priority != NO_PRIORITY:
            ranks[app.priority] -= 1
            if not ranks[app.priority]:
                del ranks[app.priority]
        if priority != NO_PRIORITY:
            ranks[priority] = ranks.get(priority, 0) + 1
        app.priority = priority
        self.rekey_app(app)
        self._export(app.leaf)

    def _export(self, view: QueueView) -> None:
        for level in view.lineage:
            priority = level.exported_priority()
            if priority == level.priority:
                return
            level.priority = priority
