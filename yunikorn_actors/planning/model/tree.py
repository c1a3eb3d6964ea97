"""The tree: the queues of a partition as the planner walks them, to the ask that is next.

Only what has changed moves to its new place; nothing is sorted from scratch. A refused lane is
closed and filed under what refused it, and a change there opens it again. The way down from the
root sees open lanes only, so an ask that cannot run costs nothing until then. Queues with something
to try stand in order among their siblings.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from yunikorn_actors.planning.model.deciding import Deciders
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.shapes import Shapes
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY, OrderedItems
from yunikorn_actors.planning.model.views import (
    AppEntry,
    AppView,
    AskView,
    ChildKey,
    Gate,
    Holder,
    Lane,
    QueueView,
    key_of,
)
from yunikorn_actors.state.allocations import AskOrder
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource

# Applications blocked by a run limit, for each queue or limit, in the order of their leaf.
#
# When there are free places, the first applications of each leaf are woken: which leaf comes
# first shows only when they are tried.


class BlockedApps:
    __slots__ = ("apps", "leaves")

    def __init__(self) -> None:
        self.apps: dict[int, AppView] = {}
        """By serial."""
        self.leaves: dict[QueueView, list[AppEntry]] = {}

    def __bool__(self) -> bool:
        return bool(self.leaves)

    def add(self, app: AppView) -> None:
        self.apps[app.app.serial] = app
        # The key is kept with the entry: it is found by the key under which it was filed.
        app.blocked_entry = (app.blocked_key(), app)
        insort(self.leaves.setdefault(app.leaf, []), app.blocked_entry)

    def sort_anew(self, leaf: QueueView) -> None:
        entries = self.leaves.get(leaf, [])
        for app in [app for _, app in entries]:
            app.blocked_entry = (app.blocked_key(), app)
        entries[:] = sorted(app.blocked_entry for _, app in entries if app.blocked_entry)

    def discard(self, app: AppView) -> None:
        del self.apps[app.app.serial]
        entries = self.leaves[app.leaf]
        assert app.blocked_entry is not None
        del entries[bisect_left(entries, app.blocked_entry)]
        app.blocked_entry = None
        if not entries:
            del self.leaves[app.leaf]


class Blocked:
    """Applications that do not take part, by the queue, limit or back-off that blocks them."""

    def __init__(self) -> None:
        self.by: dict[Holder, BlockedApps] = {}

    def add(self, app: AppView, holder: Holder) -> None:
        app.blocked_by = holder
        blocked = self.by.get(holder)
        if blocked is None:
            blocked = self.by[holder] = BlockedApps()
        blocked.add(app)

    def discard(self, app: AppView) -> None:
        holder = app.blocked_by
        assert holder is not None
        app.blocked_by = None
        blocked = self.by[holder]
        blocked.discard(app)
        if not blocked:
            del self.by[holder]

    def rekey(self, app: AppView) -> None:
        """Give an application its new place among the blocked: its rank may have changed."""
        holder = app.blocked_by
        if holder is not None:
            self.discard(app)
            self.add(app, holder)

    def sort_anew(self, leaf: QueueView) -> None:
        """Its applications have keys of another kind now: one of each among the others is no order.

        So all of them move before the next one is searched.
        """
        for blocked in self.by.values():
            blocked.sort_anew(leaf)


def show(view: QueueView) -> None:
    """The queue has something to try again; so have its ancestors."""
    for level in view.lineage[:-1]:
        # An ancestor that is shown has ancestors that are shown: so far up and no further.
        if level.entry is not None:
            return
        level.entry = (level.key(), level)
        assert level.parent is not None
        insort(level.parent.children, level.entry)


def hide(view: QueueView) -> None:
    for level in view.lineage[:-1]:
        if level.open_lanes or level.children:
            return
        parent = level.parent
        assert parent is not None
        assert level.entry is not None
        del parent.children[bisect_left(parent.children, level.entry)]
        level.entry = None


def rekey(view: QueueView) -> None:
    """The amounts of this queue changed: it and its ancestors find their new places."""
    for level in view.lineage[:-1]:
        entry = level.entry
        if entry is None:
            continue
        parent = level.parent
        assert parent is not None
        children = parent.children
        level.entry = new = (level.key(), level)
        # It has often been the first: that is where the next ask is looked for.
        # Found by its old key, then put where the new one belongs.
        place = 0 if children[0] is entry else bisect_left(children, entry)
        del children[place]
        # Where queues take turns, who was served stands behind all others now. To search the place
        # would look at entries that nobody has touched for long, and costs more than the rest.
        if not children or children[-1] < new:
            children.append(new)
        else:
            insort(children, new)


def export_priority(view: QueueView) -> None:
    """The priority of what is below changed; each queue up the path shows it to the next."""
    for level in view.lineage:
        priority = level.exported_priority()
        # Nothing above can have changed: it sees this queue by this number alone.
        if priority == level.priority:
            return
        if level.parent is not None:
            level.parent.priorities.change(level.priority, priority)
        level.priority = priority


class Tree:
    """The queues, and all moves in their orders: of asks, applications, lanes and priorities.

    One move causes the next: an ask that comes may open a lane, show a queue, raise a priority.
    So all of them are here, and an order is consistent again when a method returns.
    """

    def __init__(self, shapes: Shapes, requeue: Requeue, deciders: Deciders) -> None:
        self._shapes = shapes
        self._deciders = deciders
        self._requeue = requeue
        self.queues: dict[str, QueueView] = {}
        self.root: QueueView | None = None
        self.waiters: dict[Gate, dict[Lane, None]] = {}
        """Lanes that a queue or a limit refused last."""
        self.blocked = Blocked()

    def add_queue(self, queue: Queue, capacity: Resource) -> None:
        """Add a queue; nothing waits in it yet, so it is measured by itself."""
        parent = None if queue.parent is None else self.queues[queue.parent.path]
        self.queues[queue.path] = view = QueueView(queue, parent, self._deciders)
        if parent is None:
            self.root = view
        else:
            parent.below.append(view)
        view.measure(capacity)

    def remove_queue(self, path: str) -> None:
        view = self.queues.pop(path)
        self._deciders.gated.pop(view, None)
        self._deciders.moving.pop(view, None)
        self._deciders.timed.pop(view, None)
        if view.parent is not None:
            view.parent.below.remove(view)

    # -- shapes and lanes

    def enter(self, app: AppView) -> None:
        """Let an application take part with everything it waits for."""
        # Its key may be another; it stays blocked.
        if app.blocked_by is not None:
            self.blocked.rekey(app)
        # One place decides who takes part, so every way in asks the same questions.
        if app.entry is not None or not app.piles or not app.is_schedulable or app.blocked_by:
            return
        app.entry = (key_of(app), app)
        for shape in app.piles:
            self._join(app, shape)

    def leave(self, app: AppView) -> None:
        if app.entry is None:
            return
        for shape in app.piles:
            # By its present entry: the key must not change before.
            self._part(app, shape)
        app.entry = None

    def rekey_moving(self) -> None:
        """Where a key goes by what waits, or by what its policy keeps: whose is another moves."""
        for leaf in self._deciders.moving:
            assert leaf.changed is not None
            # Many asks of one application change together, and it has one key.
            apps = {it if isinstance(it, AppView) else it.app: None for it in leaf.changed}
            # A policy that reads its own state may rank every application anew with each fact.
            for app in tuple(leaf.members.values() if leaf.decider.goes_by_state else apps):
                self._rekey_if_moved(app)
            leaf.changed.clear()

    def _rekey_members(self, leaf: QueueView) -> None:
        """Key all applications of a leaf anew: a key may divide by the size of the cluster."""
        if leaf.decider.ranks_by_policy:
            if leaf.changed is not None:
                leaf.changed.update(dict.fromkeys(leaf.members.values()))
            for app in tuple(leaf.members.values()):
                app.ranked = None
                self._rekey_if_moved(app)

    def _rekey_if_moved(self, app: AppView) -> None:
        if app.blocked_by is not None:
            self.blocked.rekey(app)
        elif app.entry is not None and key_of(app) != app.entry[0]:
            self.rekey_app(app)

    def rekey_app(self, app: AppView) -> None:
        """What has nothing that waits stands nowhere: so it is while a recovery is reported."""
        if app.entry is not None:
            self.leave(app)
        if app.piles or app.blocked_by is not None:
            self.enter(app)

    def _join(self, app: AppView, shape: Shape) -> None:
        leaf = app.leaf
        # Made with its first application and gone with the last.
        lane = leaf.lanes.get((shape, app.owner))
        if lane is None:
            lane = leaf.lanes[shape, app.owner] = Lane(leaf, shape, app.owner)
            self._shapes.join(lane)
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
            # Its first ask may be another one now.
            leaf.open_lanes.move(lane)
        else:
            self.close_lane(lane)
            del leaf.lanes[shape, app.owner]
            # A lane that is gone must not be woken: its gate would keep it for ever.
            if lane.refused_by is not None:
                self._unfile(lane)
            self._shapes.part(lane)

    def open_lane(self, lane: Lane) -> None:
        leaf = lane.leaf
        leaf.open_lanes.open(lane)
        if leaf.entry is None:
            show(leaf)

    def close_lane(self, lane: Lane) -> None:
        open_lanes = lane.leaf.open_lanes
        if lane in open_lanes:
            # A leaf without open lanes is not on the way down.
            open_lanes.close(lane)
            if not open_lanes:
                hide(lane.leaf)

    # -- lanes that wait, and what wakes them

    def refuse(self, lane: Lane, gate: Gate) -> None:
        """There is no room for this shape: the lane waits until there is."""
        # Filed under one gate at a time: the one that refused it last.
        self._unfile(lane)
        lane.refused_by = gate
        self.waiters.setdefault(gate, {})[lane] = None
        self.close_lane(lane)

    def _unfile(self, lane: Lane) -> None:
        """The lane is refused by nothing now; asks that only a limit kept back may preempt."""
        gate, lane.refused_by = lane.refused_by, None
        if gate is not None:
            waiters = self.waiters[gate]
            del waiters[lane]
            if not waiters:
                del self.waiters[gate]
            if lane.leaf.is_entitled and not isinstance(gate, QueueView):
                self._requeue.lane_resumed(lane)

    def wake_waiters(self, gate: Gate) -> None:
        """There may be more room than before."""
        # Only those for which there is room now: the others would be refused again.
        for lane in [w for w in self.waiters.get(gate, ()) if gate.room_for(w.shape.wanted)]:
            # Woken is not placed: at its turn the next gate of its lineage may refuse it.
            self._unfile(lane)
            if lane.is_open:
                self.open_lane(lane)
            else:
                # Its shape waits for a node as well: what refuses the asks now is another reason.
                self._requeue.look_into_lane(lane)

    def wait_for_node(self, shape: Shape) -> None:
        """No node has room for this shape, wherever it is asked for."""
        self._shapes.wait(shape)
        for lane in self._shapes.lanes.get(shape, ()):
            self.close_lane(lane)

    def wake_shapes(self, node: NodeView) -> None:
        """The node may have more room than before."""
        if self._shapes.waiting:
            self._wake_shapes(self._shapes.fitting(node))

    def wake_required(self, node_id: str) -> None:
        """Asks that require this node may get it reserved: they are tried again."""
        self._wake_shapes(self._shapes.requiring(node_id))

    def _wake_shapes(self, shapes: Iterable[Shape]) -> None:
        for shape in shapes:
            self._shapes.wake(shape)
            for lane in self._shapes.lanes.get(shape, ()):
                if lane.is_open:
                    self.open_lane(lane)

    def measure(self, capacity: Resource) -> Iterator[None]:
        """The cluster or the configuration changed: limits and shares have new measures.

        Rare, so everything is measured again; what waits for a queue is asked again. Yields after
        each step, so that facts may come in between; nothing is planned before the last.
        """

        def measure(view: QueueView) -> None:
            view.measure(capacity)

        views = tuple(self.queues.values())
        # Pass by pass: the place of a queue follows from the measures and priorities of all others.
        # Parents stand before their children here, and a child measures by its parent.
        for step in (measure, self._rekey_members, self.wake_waiters, export_priority, rekey):
            for view in views:
                # A queue may have been removed between two steps.
                if self.queues.get(view.queue.path) is view:
                    step(view)
                yield

    # -- asks

    def add_ask(self, view: AskView) -> None:
        """Put an ask on its pile; the application takes part, or moves up, as it should."""
        app, shape = view.app, view.shape
        pile = app.piles.get(shape)
        is_alone = pile is None
        if pile is None:
            pile = app.piles[shape] = OrderedItems()
            if app.entry is not None:
                self._join(app, shape)
        pile.add(view)
        priority = view.order.priority
        # The second was the first until now: its priority is on top no more.
        if pile.head[0] is view:
            second = None if is_alone else pile.second
            self._top(app, shape, None if second is None else second.order.priority, priority)
        if priority > app.priority:
            self._rank(app, priority)
        if app.entry is None:
            self.enter(app)

    def drop_ask(self, view: AskView) -> None:
        app, shape = view.app, view.shape
        pile, priority = app.piles[shape], view.order.priority
        was_first = pile.head[0] is view
        pile.remove(view)
        head = pile.head
        if was_first:
            self._top(app, shape, priority, head[0].order.priority if head else None)
        if not head:
            if app.entry is not None:
                self._part(app, shape)
            del app.piles[shape]
            self._shapes.forget_unused(shape)
        if not app.piles:
            app.entry = None
        # Last, because to move the application means to leave and to enter with what it still has.
        if priority == app.priority and not (head and head[0].order.priority == priority):
            self._rank(app, max(app.heads, default=NO_PRIORITY))

    def _top(self, app: AppView, shape: Shape, old: int | None, new: int | None) -> None:
        """Another ask is on top of a pile; these are the priorities of both."""
        leaf = app.leaf
        if new is not None and len(leaf.open_lanes) > 1 and app.entry is not None:
            # Compared with other lanes only where there are several.
            leaf.open_lanes.move(leaf.lanes[shape, app.owner])
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
        app.leaf.priorities.change(app.priority, priority)
        app.priority = priority
        self.rekey_app(app)
        export_priority(app.leaf)


class ModelParts(NamedTuple):
    shapes: Shapes
    tree: Tree
    reserved_nodes: dict[str, None]
    requeue: Requeue


# Asks that wait, in the order in which they would be tried.


def waiting_below(
    queue: QueueView, counts: Callable[[Lane], bool]
) -> Iterator[tuple[Lane, AskView]]:
    """Yield the asks of all lanes that count, of this queue and below."""
    yield from waiting_in(queue, counts)
    for child in sorted(queue.below, key=QueueView.key):
        yield from waiting_below(child, counts)


def waiting_in(leaf: QueueView, counts: Callable[[Lane], bool]) -> Iterator[tuple[Lane, AskView]]:
    lanes = [lane for lane in leaf.lanes.values() if counts(lane)]
    apps = {app.app.serial: app for lane in lanes for _, app in lane.apps}
    for app in sorted(apps.values(), key=_rank):
        mine = [
            (lane, ask)
            for lane in lanes
            if lane.owner == app.owner
            for ask in app.piles.get(lane.shape, ())
        ]
        yield from sorted(mine, key=_order)


def place_of(leaf: QueueView) -> tuple[ChildKey, ...]:
    """Rank a leaf among all leaves."""
    return tuple(level.key() for level in reversed(leaf.lineage[:-1]))


def rank_of(ask: AskView) -> tuple[object, ...]:
    """Rank an ask among all of its leaf."""
    return (_rank(ask.app), ask.order)


def _rank(app: AppView) -> tuple[object, ...]:
    assert app.entry is not None
    return app.entry[0]


def _order(item: tuple[Lane, AskView]) -> AskOrder:
    return item[1].order
