"""The node index: nodes in the order in which they are tried.

The order is kept, never made: a node whose free amounts change moves to its new place. It moves
before the next search, once, however often they changed, because what runs already is reported by
the hundred thousand. Until then it stands where its old score has its place.

Nodes stand in runs of about a hundred, and each run knows a ceiling: for every resource type at
least as much as any of its nodes has free. A run whose ceiling is too low is passed over in one
comparison. Ceilings only rise while nodes come and go; a ceiling is made exact when a scan of its
run found nothing, which is the only moment at which a stale one costs anything.

Where full nodes stand first there is a floor as well for the shapes that were asked for last: no
node before it has room for that shape. Equal asks come in crowds, so most searches begin where the
last one ended.

`NodeRuns` is that: the open nodes in one order. `NodeIndex` knows all nodes of the partition, and
has their runs in the order of the partition. An application may have an order of its own. The nodes
stand in that as well from its first search on, and those that changed move there before the next
one: an order that nobody uses costs nothing.

What is free here is what the replica has available less what proposals in flight have taken.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from yunikorn_actors.config import NodeSortConfig
from yunikorn_actors.config.node_order import FAIR, NodeOrder, Scale, scale_of
from yunikorn_actors.planning.model.policy_views import SeenNode, read_only, seen_node
from yunikorn_actors.planning.model.shape import Shape, Use, Wanted
from yunikorn_actors.policies.places import OwnDevices, OwnScore
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.devices import Devices, Parts, amount_of, pick, take
from yunikorn_actors.values.resource import Resource

RUN_LENGTH = 100
FLOORS_MAX = 8
SHAPES_MAX = 256
"""Shapes for which the nodes are kept in the order of a policy, at most."""
NO_DEVICES = ("", -1)


class NodeView:
    __slots__ = ("coming", "entry", "free", "id", "keeping", "node", "reported", "scale", "seen")

    def __init__(self, node: Node) -> None:
        self.id = node.id
        self.node = node
        self.free: Resource = {}
        self.scale = Scale()
        self.seen: SeenNode | None = None
        """What a policy sees of it, where one has its order."""
        self.entry: Entry | None = None
        """Its place in the order; None while it takes no work, or is kept for an ask."""
        self.keeping = 0
        """Reservations of it, made or given up, that are on their way."""
        self.coming: tuple[tuple[Devices, int], ...] = ()
        """Devices that decisions in flight take, with the amount."""
        self.reported = NO_DEVICES
        """What the node reported of its devices when it was measured last."""

    # As the replica knows them, less what decisions in flight have taken.
    @property
    def parts(self) -> Parts | None:
        """What is free of each device, as `free` is of all."""
        parts = self.node.parts
        if parts is None or not self.coming:
            return parts
        left = list(parts)
        for devices, amount in self.coming:
            take(left, devices, amount)
        return left

    def devices_for(self, shape: Shape) -> Devices | None:
        """Choose devices for an ask of this shape; None if it cannot run here for want of them."""
        if not shape.takes_model_of(self.node):
            return None
        parts = self.parts
        return () if parts is None else pick(parts, shape.devices)

    @property
    def is_open(self) -> bool:
        return self.node.is_open and not self.keeping

    def serves(self, shape: Shape) -> bool:
        """Whether this node, as it is now, can hold an ask of this shape."""
        if shape.denial is not None and shape.is_refused(self.id, Use.PLACING):
            return False
        # A required node may be closed to others, drained or reserved: this ask may use it.
        if shape.required_node:
            if shape.required_node != self.id or self.node.awaited:
                return False
        elif self.entry is None:
            return False
        if not self.fits(shape.wanted):
            return False
        return not shape.devices or self.devices_for(shape) is not None

    def fits(self, wanted: Wanted) -> bool:
        free = self.free
        for kind, quantity in wanted:  # noqa: SIM110 - a generator would cost more than the loop
            if quantity > free.get(kind, 0):
                return False
        return True


Entry = tuple[float, str, NodeView]


class NodeRuns:
    """The nodes that take work, in one order, cut into runs.

    Ceilings and floors are promises about runs: whatever moves an entry has to keep them.
    """

    def __init__(self, order: NodeOrder, weights: dict[str, float]) -> None:
        self.order = order
        self.weights = weights
        self._score = order.score
        self._measured: Resource | None = None
        """The capacity that was measured last, and what came of it."""
        self._scale = Scale()
        self._runs: list[list[Entry]] = []
        self._last: list[Entry] = []
        self._ceilings: list[Resource] = []
        self._floors: dict[Shape, Entry] = {}

    # -- who stands where

    def put(self, view: NodeView) -> None:
        """The node itself changed, or is new: it is measured, and stands where it belongs."""
        self.displace(view)
        self._measure(view)
        if view.is_open:
            self._place(view, self.entry_of(view))

    def fill(self, views: Iterable[NodeView]) -> None:
        """Place many at once, where none stands yet."""
        entries = []
        for view in views:
            self._measure(view)
            if view.is_open:
                view.entry = self.entry_of(view)
                entries.append(view.entry)
        entries.sort()
        # Cut into runs once, instead of splitting again and again.
        self._runs = [entries[at : at + RUN_LENGTH] for at in range(0, len(entries), RUN_LENGTH)]
        self._last = [run[-1] for run in self._runs]
        self._ceilings = [_ceiling(run) for run in self._runs]

    def move(self, view: NodeView, new: "Entry | None" = None) -> None:
        """The free amounts changed; often the node keeps its place between its neighbours.

        Who knows the new entry gives it: each placement comes this way, so no call is made for it.
        """
        old = view.entry
        assert old is not None
        number = position = 0
        run = self._runs[0]
        # Where empty nodes come first it has often been the first of all.
        # The score of the old amounts is in the entry, so it is found by that.
        if run[0] is not old:
            number = bisect_left(self._last, old)
            run = self._runs[number]
            position = bisect_left(run, old)
        if new is None:
            new = (self._score(view.scale, view.free), view.id, view)
        # Between its neighbours nothing moves: most placements change a score by little.
        if 0 < position < len(run) - 1 and run[position - 1] < new < run[position + 1]:
            view.entry = run[position] = new
            self._note(view, new, number)
        else:
            self._cut(number, position)
            self._place(view, new)

    def displace(self, view: NodeView) -> None:
        entry = view.entry
        if entry is None:
            return
        view.entry = None
        number = bisect_left(self._last, entry)
        self._cut(number, bisect_left(self._runs[number], entry))

    def forget(self, view: NodeView) -> None:
        self.displace(view)
        # A node of the same name may come back: entries of two lives must never be compared.
        self._floors = {s: entry for s, entry in self._floors.items() if entry[2] is not view}

    def entry_of(self, view: NodeView) -> Entry:
        """Return where it belongs by what is free there now."""
        return (self._score(view.scale, view.free), view.id, view)

    def in_order(self) -> list[NodeView]:
        return [view for run in self._runs for _, _, view in run]

    def _measure(self, view: NodeView) -> None:
        """Nodes come in few sizes, so the scale of the last one often serves again."""
        capacity = view.node.capacity
        if capacity != self._measured:
            self._measured = capacity
            self._scale = scale_of(capacity, self.weights)
        view.scale = self._scale

    def _place(self, view: NodeView, entry: Entry) -> None:
        view.entry = entry
        last = self._last
        number = bisect_left(last, entry)
        if not last:
            self._runs.append([entry])
            last.append(entry)
            self._ceilings.append({})
        elif number == len(last):
            # Behind all others: no search.
            number -= 1
            self._runs[number].append(entry)
            last[number] = entry
        else:
            insort(self._runs[number], entry)
        self._note(view, entry, number)
        if len(self._runs[number]) > 2 * RUN_LENGTH:
            self._split(number)

    def _note(self, view: NodeView, entry: Entry, number: int) -> None:
        """Keep the promises of the ceiling and of the floors for a node in its new place."""
        # Ceilings only rise here; a scan in vain makes one exact.
        ceiling = self._ceilings[number]
        for kind, quantity in view.free.items():
            if quantity > ceiling.get(kind, 0):
                ceiling[kind] = quantity
        # Invariant of a floor: no node before it has room for the shape.
        if self._floors:
            for shape, floor in self._floors.items():
                if entry < floor and view.fits(shape.wanted):
                    self._floors[shape] = entry

    def _cut(self, number: int, position: int) -> None:
        run = self._runs[number]
        del run[position]
        if not run:
            del self._runs[number], self._last[number], self._ceilings[number]
        elif position == len(run):
            self._last[number] = run[-1]

    def _split(self, number: int) -> None:
        run = self._runs[number]
        head, tail = run[:RUN_LENGTH], run[RUN_LENGTH:]
        self._runs[number : number + 1] = [head, tail]
        self._last[number : number + 1] = [head[-1], tail[-1]]
        self._ceilings[number : number + 1] = [_ceiling(head), _ceiling(tail)]

    # -- who has room

    def first_fit(self, shape: Shape) -> NodeView | None:
        """Return the first node that has room for an ask that may go to every node."""
        wanted = shape.wanted
        floor = self._floors.get(shape)
        number = start = 0
        # From the floor on: nothing before it has room.
        if floor is not None:
            number = bisect_left(self._last, floor)
            if number < len(self._runs):
                start = bisect_left(self._runs[number], floor)
        for place in range(number, len(self._runs)):
            ceiling = self._ceilings[place]
            # Written out: a call for each run would cost more than the comparison.
            for kind, quantity in wanted:
                if quantity > ceiling.get(kind, 0):
                    break
            else:
                found = self._scan(place, start, wanted)
                if found is not None:
                    # Where the fullest nodes come first a search passes over many in vain. In the
                    # fair order the first nodes are the emptiest, so there is nothing to skip.
                    if self.order.full_first:
                        self._lay_floor(shape, found)
                    return found
            start = 0
        # Nothing at all: the floor has nowhere to stand.
        self._floors.pop(shape, None)
        return None

    def serving(self, shape: Shape) -> Iterator[NodeView]:
        """Yield the nodes that can hold it, also an ask that may not go to every node."""
        wanted = shape.wanted
        for ceiling, run in zip(self._ceilings, self._runs, strict=True):
            if all(quantity <= ceiling.get(kind, 0) for kind, quantity in wanted):
                yield from (view for _, _, view in run if view.serves(shape))

    def _scan(self, number: int, start: int, wanted: Wanted) -> NodeView | None:
        run = self._runs[number]
        for position in range(start, len(run)):
            view = run[position][2]
            free = view.free
            for kind, quantity in wanted:
                if quantity > free.get(kind, 0):
                    break
            else:
                return view
        # The whole run was searched in vain, so its ceiling was too high. It is not lowered with
        # each placement, because that would take a walk through the run each time.
        if not start:
            self._ceilings[number] = _ceiling(run)
        return None

    def _lay_floor(self, shape: Shape, view: NodeView) -> None:
        floors = self._floors
        # Bounded: the shape that was asked for first goes.
        if shape not in floors and len(floors) >= FLOORS_MAX:
            del floors[next(iter(floors))]
        assert view.entry is not None
        floors[shape] = view.entry


class OwnRuns(NodeRuns):
    """The nodes in the order that a policy gives them for asks of one shape."""

    def __init__(self, shape: Shape, score: OwnScore) -> None:
        super().__init__(FAIR, {})
        self._wanted = read_only(dict(shape.wanted))
        self._own = score

    def _measure(self, view: NodeView) -> None:
        """The policy looks at the node itself."""
        view.seen = seen_node(view)

    def entry_of(self, view: NodeView) -> Entry:
        assert view.seen is not None
        return (self._own(view.seen, self._wanted), view.id, view)


class NodeIndex:
    """All nodes of a partition, and who of them has room for a shape."""

    def __init__(self) -> None:
        self.views: dict[str, NodeView] = {}
        self.runs = NodeRuns(FAIR, NodeSortConfig().weights)
        self.own_devices: OwnDevices | None = None
        self.own: OwnScore | None = None
        """What a policy says of a node and a shape; where it does, it goes before the order."""
        self._others: dict[NodeOrder | Wanted, _OtherOrder] = {}
        self._asked_last: tuple[Wanted, _OtherOrder | None] = ((), None)
        self._stray: dict[NodeView, None] = {}
        """Nodes whose free amounts changed since they found their place."""
        self._unsorted: dict[NodeView, None] = {}
        """Nodes of which the orders of a policy know it, and ours does not: nobody has asked."""
        self.changed: dict[NodeView, None] = {}
        """Nodes whose amounts or place changed since the last list of all was made."""
        self.has_devices = False
        """Whether any node has ever reported its devices: hardly any cluster has such nodes."""

    def set_order(self, order: NodeOrder, weights: dict[str, float]) -> None:
        """Take another order; every node finds its new place."""
        self.runs = NodeRuns(order, weights)
        self._others.clear()
        self._asked_last = (), None
        self._stray.clear()
        self._unsorted.clear()
        # Only those that have a place take part in the new order.
        placed = [view for view in self.views.values() if view.entry is not None]
        for view in placed:
            # Its entry is one of the former order, where nobody looks any more.
            view.entry = None
            self._note_change(view)
        self.runs.fill(placed)

    # -- nodes that come, change and go

    def add(self, view: NodeView) -> None:
        """Know a node; its first `refresh` measures and places it."""
        self.views[view.id] = view

    def knows(self, view: NodeView) -> bool:
        """Whether it is there, and not one of the same name that came later."""
        return self.views.get(view.id) is view

    def discard(self, view: NodeView) -> None:
        del self.views[view.id]
        self._stray.pop(view, None)
        self._unsorted.pop(view, None)
        # Taken out of every order before its name may come back.
        self.runs.forget(view)
        self._note_change(view)
        del self.changed[view]

    def refresh(self, view: NodeView, free: Resource) -> None:
        """The node itself changed: size, attributes, or whether it takes work."""
        self._stray.pop(view, None)
        self._unsorted.pop(view, None)
        view.free = free
        view.reported = reported_devices_of(view.node)
        self.has_devices = self.has_devices or view.reported != NO_DEVICES
        self._note_change(view)
        self.runs.put(view)

    def take_devices(self, view: NodeView, devices: Devices, resource: Resource) -> None:
        """A decision takes these devices; when it is resolved the replica has taken them."""
        view.coming = (*view.coming, (devices, amount_of(resource)))

    def give_devices_back(self, view: NodeView, devices: Devices, resource: Resource) -> None:
        coming = list(view.coming)
        coming.remove((devices, amount_of(resource)))
        view.coming = tuple(coming)

    def take(self, view: NodeView, amount: Resource) -> None:
        free = view.free
        for kind, quantity in amount.items():
            free[kind] = free.get(kind, 0) - quantity
        # Moved before the next search, not now: it may change again at once.
        self._stray[view] = self.changed[view] = None

    def give_back(self, view: NodeView, amount: Resource) -> None:
        free = view.free
        for kind, quantity in amount.items():
            free[kind] = free.get(kind, 0) + quantity
        self._stray[view] = self.changed[view] = None

    def tidy(self) -> None:
        """Let each node whose free amounts changed find its place; every search begins with it."""
        if self._unsorted:
            self._stray.update(self._unsorted)
            self._unsorted.clear()
        for view in self._stray:
            if view.entry is not None:
                self.runs.move(view)
        # The other orders learn of it at their next search.
        for other in self._others.values():
            other.moved.update(self._stray)
        self._stray.clear()

    def _note_change(self, view: NodeView) -> None:
        """The node itself is another now; of amounts that changed `tidy` tells the other orders."""
        self.changed[view] = None
        for other in self._others.values():
            other.behind[view] = None

    # -- searches

    def first_fit(self, shape: Shape, order: NodeOrder | None = None) -> NodeView | None:
        """Return the first node that has room, in the order of its own that an ask has, if any."""
        if shape.required_node:
            required = self.views.get(shape.required_node)
            return required if required is not None and required.serves(shape) else None
        if order is None and self.own is not None:
            runs = self._in_own(shape, self.own)
        elif order is None or order is self.runs.order:
            self.tidy()
            runs = self.runs
        else:
            runs = self._in(order)
        is_alone = shape.denial is not None or (shape.devices and self._by_device(shape))
        found = next(runs.serving(shape), None) if is_alone else runs.first_fit(shape)
        # A twin stands in another order; the caller gets ours.
        return None if found is None else self.views[found.id]

    def first_other(
        self, shape: Shape, node_id: str, order: NodeOrder | None = None
    ) -> NodeView | None:
        """As `first_fit`, leaving one out; only a required one need not be open."""
        if shape.required_node:
            # A required ask has one node: leaving that out leaves nothing.
            required = self.first_fit(shape, order)
            return required if required is not None and required.id != node_id else None
        if order is None and self.own is not None:
            runs = self._in_own(shape, self.own)
        else:
            runs = self._in(order or self.runs.order)
        others = (view.id for view in runs.serving(shape) if view.id != node_id)
        found = next(others, None)
        return None if found is None else self.views[found]

    def _by_device(self, shape: Shape) -> bool:
        """Whether amounts are not enough: then each node is asked that a ceiling lets through."""
        return self.has_devices or shape.names_models

    def in_order(self) -> list[NodeView]:
        self.tidy()
        return self.runs.in_order()

    def _in(self, order: NodeOrder) -> NodeRuns:
        """Return the same nodes in an order of the caller's own, where they are twins of ours."""
        self.tidy()
        if order is self.runs.order:
            return self.runs
        other = self._others.get(order)
        if other is None:
            runs = NodeRuns(order, self.runs.weights)
            other = self._others[order] = _OtherOrder(runs, self.views.values())
        return other.caught_up(self)

    def _in_own(self, shape: Shape, score: OwnScore) -> NodeRuns:
        """Return them in the order for this shape: a node that changed costs one score there.

        By its amounts: a shape goes with the last ask of it, and the next one of that size would
        have every node scored again.
        """
        wanted, other = self._asked_last
        # Equal asks come in crowds.
        if other is None or wanted != shape.wanted:
            other = self._others.pop(shape.wanted, None)
            if other is None:
                other = _OtherOrder(OwnRuns(shape, score), self.views.values())
                if len(self._others) >= SHAPES_MAX:
                    del self._others[next(iter(self._others))]
            # The one that was asked for last is the last to go.
            self._others[shape.wanted] = other
            self._asked_last = shape.wanted, other
        if stray := self._stray:
            # As `tidy`, but our order is seldom asked for here.
            self._unsorted.update(stray)
            if other.moved or len(self._others) > 1:
                for each in self._others.values():
                    each.moved.update(stray)
                stray.clear()
            else:
                # Each placement comes this way: nothing is copied for the only one.
                self._stray, other.moved = other.moved, stray
        return other.caught_up(self)


class _OtherOrder:
    """Runs of twins of our nodes: a node has one entry, so it cannot stand in two orders.

    Twins share the amounts that are free.
    """

    def __init__(self, runs: NodeRuns, views: Iterable[NodeView]) -> None:
        self._runs = runs
        self._twins: dict[NodeView, NodeView] = {}
        self.behind: dict[NodeView, None] = dict.fromkeys(views)
        """Nodes that are others themselves since the last search, came or left."""
        self.moved: dict[NodeView, None] = {}
        """Nodes of which no more than what is free has changed since."""

    def caught_up(self, ours: NodeIndex) -> NodeRuns:
        """Move the nodes that are behind; one that left comes before its later namesake."""
        twins, behind, runs = self._twins, self.behind, self._runs
        for view in self.moved:
            twin = twins.get(view)
            # What was in flight to a node that has left comes back to nobody.
            if twin is not None and not (behind and view in behind):
                twin.coming = view.coming
                if twin.entry is not None:
                    runs.move(twin, runs.entry_of(twin))
        self.moved.clear()
        # The first time: all at once.
        if behind and not twins:
            runs.fill([self._twin_of(view) for view in behind if ours.knows(view)])
        else:
            for view in behind:
                self._follow(view, ours)
        behind.clear()
        return runs

    def _follow(self, view: NodeView, ours: NodeIndex) -> None:
        twin = self._twins.get(view)
        if not ours.knows(view):
            if twin is not None:
                self._runs.forget(self._twins.pop(view))
            return
        self._runs.put(self._twin_of(view))

    def _twin_of(self, view: NodeView) -> NodeView:
        twin = self._twins.get(view)
        if twin is None:
            twin = self._twins[view] = NodeView(view.node)
        twin.keeping, twin.coming = view.keeping, view.coming
        twin.free = view.free
        return twin


def reported_devices_of(node: Node) -> tuple[str, int]:
    """Return the model of its devices and how many it has; -1 if it does not tell them apart."""
    return node.model, -1 if node.parts is None else len(node.parts)


def _ceiling(run: list[Entry]) -> Resource:
    ceiling: Resource = {}
    for _, _, view in run:
        for kind, quantity in view.free.items():
            if quantity > ceiling.get(kind, 0):
                ceiling[kind] = quantity
    return ceiling
