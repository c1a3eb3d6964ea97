"""Who goes first: queues, applications and asks in the order in which they are tried.

Everything is kept in order by re-keying what changed; nothing is sorted from scratch. Asks of one
size are one *shape*. All asks of a shape in one leaf form a *lane*: whatever refuses the first of
them (a queue's limit, no node with room) refuses them all, so a lane is closed with that reason and
opened by the change that can matter. The way down from the root sees open lanes only, so an ask
that cannot run costs nothing until then.

A lane lists its applications, an application piles its asks by shape. The order between the shapes
of one application is by priority and age, between applications by the policy of the leaf, between
queues by fair share.
"""

from bisect import bisect_left, insort

from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.application import SCHEDULABLE, Application
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.share import usage_key
from yunikorn_actors.planning.nodes import Wanted

ShapeKey = Wanted


class Shape:
    """Asks of one size: what fits one fits all."""

    __slots__ = ("key", "lanes", "total", "waits_for_node", "wanted")

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.wanted: Wanted = tuple((kind, quantity) for kind, quantity in key if quantity > 0)
        self.total = 0
        for _, quantity in key:
            self.total += quantity
        self.lanes: dict[Lane, None] = {}
        self.waits_for_node = False


def shape_key(resource: Resource) -> ShapeKey:
    return tuple(sorted(resource.items()))


class Lane:
    """The asks of one shape in one leaf, by application."""

    __slots__ = ("apps", "leaf", "refused_by", "shape")

    def __init__(self, leaf: "QueueView", shape: Shape) -> None:
        self.leaf = leaf
        self.shape = shape
        self.apps: list[AppEntry] = []
        self.refused_by: QueueView | None = None
        """The queue whose limit refused it last; it is told when that queue has more room."""

    @property
    def is_open(self) -> bool:
        return self.refused_by is None and not self.shape.waits_for_node


class AskView:
    """An ask as the planner sees it: `open` repeats are neither placed nor in flight."""

    __slots__ = ("app", "ask", "gone", "inflight", "open", "order", "resource", "shape")

    def __init__(self, app: "AppView", ask: Ask, shape: Shape) -> None:
        self.app = app
        self.ask = ask
        self.shape = shape
        self.resource = ask.spec.resource
        self.order = ask.order()
        self.open = 0
        self.inflight = 0
        self.gone = False

    def resize(self, shape: Shape) -> None:
        """The ask was sent again; its record is the same, its size and rank may not be."""
        self.shape = shape
        self.resource = self.ask.spec.resource
        self.order = self.ask.order()


PileEntry = tuple[tuple[int, int, int], AskView]


class AppView:
    __slots__ = ("app", "asks", "entry", "leaf", "piles", "priority", "submitted_ns", "used")

    def __init__(self, app: Application, leaf: "QueueView") -> None:
        self.app = app
        self.leaf = leaf
        self.asks: dict[str, AskView] = {}
        self.piles: dict[Shape, list[PileEntry]] = {}
        self.used: Resource = dict(app.allocated)
        self.submitted_ns = app.submitted_ns
        self.priority = 0
        self.entry: AppEntry | None = None
        """Its place in the lanes; None while nothing of it may be tried."""

    @property
    def is_schedulable(self) -> bool:
        return self.app.state in SCHEDULABLE


AppEntry = tuple[tuple[object, ...], AppView]
ChildEntry = tuple[tuple[float, int, str], "QueueView"]


class QueueView:
    __slots__ = (
        "children",
        "denominators",
        "entry",
        "lanes",
        "limit",
        "limits",
        "lineage",
        "open_lanes",
        "parent",
        "queue",
        "used",
        "waiters",
        "waiting",
    )

    def __init__(self, queue: Queue, parent: "QueueView | None") -> None:
        self.queue = queue
        self.parent = parent
        self.lineage: tuple[QueueView, ...] = (self, *(parent.lineage if parent else ()))
        self.used: Resource = {}
        self.waiting = 0
        """Total of all amounts that wait below; breaks ties between equal shares."""
        self.denominators: Resource = {}
        self.limit: Resource | None = None
        self.limits: tuple[QueueView, ...] = ()
        """The queues of the lineage, root first, that can refuse something."""
        self.waiters: dict[Lane, None] = {}
        self.lanes: dict[Shape, Lane] = {}
        self.open_lanes: dict[Lane, None] = {}
        self.children: list[ChildEntry] = []
        """Children with something to try, in order."""
        self.entry: ChildEntry | None = None

    @property
    def has_work(self) -> bool:
        return bool(self.open_lanes or self.children)

    def key(self) -> tuple[float, int, str]:
        """Fair share first; the larger pending amount decides between equals."""
        share = 0.0
        denominators = self.denominators
        for kind, quantity in self.used.items():
            if quantity > 0:
                size = denominators.get(kind)
                if size is not None:
                    part = quantity / size if size > 0 else 1.0
                    share = max(share, part)
        return (share, -self.waiting, self.queue.path)

    def room_for(self, wanted: Wanted) -> bool:
        """Does this queue's own limit leave room; only types it names are limited."""
        limit, used = self.limit, self.used
        if limit is None:
            return True
        for kind, quantity in wanted:
            size = limit.get(kind)
            if size is None:
                if self.parent is None:
                    return False
            elif quantity > size - used.get(kind, 0):
                return False
        return True

    def refusing(self, wanted: Wanted) -> "QueueView | None":
        """Return the first queue from the root down that has no room, if any."""
        for level in self.limits:
            if not level.room_for(wanted):
                return level
        return None

    def first(self) -> tuple["AppView", AskView]:
        """Return the first application of an open leaf and its first ask that may be tried."""
        lanes = self.open_lanes
        if len(lanes) == 1:
            (lane,) = lanes
            app = lane.apps[0][1]
            return app, app.piles[lane.shape][0][1]
        app = min([lane.apps[0] for lane in lanes])[1]
        shapes = app.piles
        ask = min([shapes[lane.shape][0] for lane in lanes if lane.shape in shapes])[1]
        return app, ask


class Tree:
    """The queues of a partition as the planner walks them."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueView] = {}
        self.shapes: dict[ShapeKey, Shape] = {}

    @property
    def root(self) -> QueueView:
        return self.queues["root"]

    # -- shapes and lanes

    def shape_of(self, resource: Resource) -> Shape:
        key = shape_key(resource)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(key)
        return shape

    def enter(self, app: AppView) -> None:
        """Let an application take part with everything it waits for."""
        if app.entry is not None or not app.piles or not app.is_schedulable:
            return
        app.priority = _priority(app)
        app.entry = (_app_key(app), app)
        for shape in app.piles:
            self._join(app, shape)

    def leave(self, app: AppView) -> None:
        if app.entry is None:
            return
        for shape in app.piles:
            self._part(app, shape)
        app.entry = None

    def rekey_app(self, app: AppView) -> None:
        if app.entry is not None:
            self.leave(app)
            self.enter(app)

    def _join(self, app: AppView, shape: Shape) -> None:
        leaf = app.leaf
        lane = leaf.lanes.get(shape)
        if lane is None:
            lane = leaf.lanes[shape] = Lane(leaf, shape)
            shape.lanes[lane] = None
        assert app.entry is not None
        insort(lane.apps, app.entry)
        if lane.is_open:
            self.open_lane(lane)

    def _part(self, app: AppView, shape: Shape) -> None:
        leaf = app.leaf
        lane = leaf.lanes[shape]
        assert app.entry is not None
        del lane.apps[bisect_left(lane.apps, app.entry)]
        if not lane.apps:
            self.close_lane(lane)
            del leaf.lanes[shape]
            del shape.lanes[lane]
            if lane.refused_by is not None:
                del lane.refused_by.waiters[lane]
            if not shape.lanes and not shape.waits_for_node:
                self.shapes.pop(shape.key, None)

    def open_lane(self, lane: Lane) -> None:
        leaf = lane.leaf
        leaf.open_lanes[lane] = None
        if leaf.entry is None:
            self._show(leaf)

    def close_lane(self, lane: Lane) -> None:
        open_lanes = lane.leaf.open_lanes
        if lane in open_lanes:
            del open_lanes[lane]
            if not open_lanes:
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
                return
            parent = level.parent
            assert parent is not None
            children = parent.children
            level.entry = new = (level.key(), level)
            if len(children) == 1:
                children[0] = new
            else:
                del children[bisect_left(children, entry)]
                insort(children, new)

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
        if app.entry is None:
            self.enter(app)
        elif -view.order[0] > app.priority:
            self.rekey_app(app)

    def drop_ask(self, view: AskView) -> None:
        app, shape = view.app, view.shape
        pile = app.piles[shape]
        if pile[0][1] is view:
            del pile[0]
        else:
            del pile[bisect_left(pile, (view.order, view))]
        if not pile:
            if app.entry is not None:
                self._part(app, shape)
            del app.piles[shape]
        if not app.piles:
            app.entry = None
        elif (
            app.entry is not None
            and -view.order[0] == app.priority
            and not (pile and pile[0][0][0] == view.order[0])
            and _priority(app) != app.priority
        ):
            self.rekey_app(app)


def _priority(app: AppView) -> int:
    """The highest priority among the asks that wait."""
    return max(-pile[0][0][0] for pile in app.piles.values())


def _app_key(app: AppView) -> tuple[object, ...]:
    """Order the applications of a leaf; the serial, which tells arrival, decides in the end."""
    leaf = app.leaf.queue
    key: list[object] = []
    if leaf.properties.application_sort_policy == "fair":
        key.append(usage_key(app.used, leaf.spec.guaranteed))
    else:
        key.append(app.app.submitted_ns)
    key.insert(0 if leaf.properties.application_sort_priority else 1, -app.priority)
    return (*key, app.app.submitted_ns, app.app.serial)
