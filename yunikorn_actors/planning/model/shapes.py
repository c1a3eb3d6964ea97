"""The shapes of the asks that wait: the lanes of each, and which of them no node has room for."""

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.planning.model.shape import Shape, ShapeKey, shape_key
from yunikorn_actors.planning.model.views import AskView, Lane
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values.resource import Resource


class Shapes:
    def __init__(self, requeue: Requeue) -> None:
        self._requeue = requeue
        self.known: dict[ShapeKey, Shape] = {}
        self._last: tuple[Resource, Shape] | None = None
        """What asks of this resource that may run on every node have, while that shape is known."""
        self.turns = Shape(((), "", "", "", ""))
        """What stands for a gang that awaits admission has it: nothing but that is tried."""
        self.lanes: dict[Shape, dict[Lane, None]] = {}
        """All lanes of a shape, in whatever leaf."""
        self.waiting: dict[Shape, None] = {}
        """Shapes that no node has room for."""
        self.reserved: dict[Shape, dict[AskView, None]] = {}
        """Asks with a reservation that could run elsewhere."""

    def of(self, spec: AskSpec) -> Shape:
        """Find it by the amounts; asks of one request mostly share theirs, so they are compared."""
        last = self._last
        # By identity: asks of one request share their amounts.
        if last is not None and last[0] is spec.resource and not spec.is_choosy:
            return last[1]
        key = shape_key(spec)
        shape = self.known.get(key)
        if shape is None:
            shape = self.known[key] = Shape(key)
        # The shape of an ask that wants more than room is no answer for the next one of that size.
        if not shape.is_choosy:
            self._last = (spec.resource, shape)
        return shape

    # -- lanes

    def join(self, lane: Lane) -> None:
        self.lanes.setdefault(lane.shape, {})[lane] = None

    def part(self, lane: Lane) -> None:
        shape = lane.shape
        others = self.lanes[shape]
        del others[lane]
        if not others:
            del self.lanes[shape]
            # A shape that waits for a node stays: its next ask need not be tried in vain.
            if not shape.waits_for_node:
                self._forget(shape)

    def _forget(self, shape: Shape) -> None:
        """No lane has this shape any more; a blocked application that still has it starts anew."""
        self.waiting.pop(shape, None)
        shape.waits_for_node = False
        # Asks with a reservation may look for another node again.
        if shape in self.reserved:
            self._rouse(shape)
        # An ask with a denial may have a shape of the same key, which is not the known one.
        if self.known.get(shape.key) is shape:
            del self.known[shape.key]
            self._last = None

    def forget_unused(self, shape: Shape) -> None:
        if shape not in self.lanes:
            self._forget(shape)

    # -- shapes that wait for a node

    def wait(self, shape: Shape) -> None:
        """No node has room for this shape, wherever it is asked for."""
        shape.waits_for_node = True
        self.waiting[shape] = None

    def fitting(self, node: NodeView) -> list[Shape]:
        return [shape for shape in self.waiting if node.serves(shape)]

    def requiring(self, node_id: str) -> list[Shape]:
        return [shape for shape in self.waiting if shape.required_node == node_id]

    def wake(self, shape: Shape) -> None:
        # Marked first: a shape that waits for a node is not roused.
        del self.waiting[shape]
        shape.waits_for_node = False
        self._rouse(shape)
        self.forget_unused(shape)

    # -- asks with a reservation

    def follow_reserved(self, ask: AskView) -> None:
        """An ask with a reservation comes before others on any node that has room for it."""
        if ask.ask.reserved and not ask.shape.required_node:
            self.reserved.setdefault(ask.shape, {})[ask] = None
            self._rouse(ask.shape)
        else:
            self.forget_reserved(ask)

    def forget_reserved(self, ask: AskView) -> None:
        asks = self.reserved.get(ask.shape)
        if asks is not None:
            asks.pop(ask, None)
            if not asks:
                del self.reserved[ask.shape]

    def _rouse(self, shape: Shape) -> None:
        if shape in self.reserved and not shape.waits_for_node:
            self._requeue.shape_roused(shape)
