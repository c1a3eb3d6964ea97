"""Policy views: what policies see of applications, queues and nodes, and no more; read only.

An object that keeps one of these may read it later: it shows what is true then.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, cast

from msgspec import Struct

from yunikorn_actors.policies.folds import is_part_of_gang
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.devices import Parts
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource


class _Ask(Protocol):
    ask: Ask
    resource: Resource

    @property
    def runtime_ns(self) -> int: ...


class _Queue(Protocol):
    queue: Queue
    used: Resource
    due: Resource
    limit: Resource | None
    sorts_by_usage: bool
    clock_ns: int

    @property
    def lineage(self) -> "Sequence[_Queue]": ...


class _App(Protocol):
    app: Application
    used: Resource

    @property
    def leaf(self) -> _Queue: ...

    @property
    def asks(self) -> Mapping[str, _Ask]: ...


read_only = cast(Callable[[Resource], Resource], MappingProxyType)
"""It behaves as a dictionary that cannot be written, and shows what is in that later."""


class SeenApplication:
    __slots__ = ("_app",)

    def __init__(self, app: _App) -> None:
        self._app = app

    @property
    def id(self) -> str:
        return self._app.app.id

    @property
    def queue(self) -> str:
        return self._app.leaf.queue.path

    @property
    def user(self) -> str:
        return self._app.app.spec.user

    @property
    def group(self) -> str:
        return self._app.app.group

    @property
    def tags(self) -> Mapping[str, str]:
        return MappingProxyType(self._app.app.spec.tags)

    @property
    def submitted_ns(self) -> int:
        return self._app.app.submitted_ns

    @property
    def guaranteed(self) -> Resource:
        return read_only(self._app.leaf.queue.spec.guaranteed or {})

    @property
    def capacity(self) -> Resource:
        return read_only(self._app.leaf.lineage[-1].limit or {})

    @property
    def used(self) -> Resource:
        app = self._app
        # Under another order what is in flight is not kept for each application.
        return read_only(app.used if app.leaf.sorts_by_usage else app.app.allocated)

    @property
    def runtime_ns(self) -> int:
        return max([ask.runtime_ns for ask in self._waiting], default=NEVER_NS)

    @property
    def size(self) -> Resource:
        app = self._app.app
        largest: Resource = {}
        for ask in self._waiting:
            is_member = is_part_of_gang(app, ask.ask.spec)
            # A member of a gang needs all of the gang.
            size = app.spec.placeholder_ask if is_member else ask.resource
            for kind, quantity in size.items():
                largest[kind] = max(quantity, largest.get(kind, 0))
        return read_only(largest)

    @property
    def priority(self) -> int:
        return max([ask.ask.spec.priority for ask in self._waiting], default=0)

    @property
    def waited_ns(self) -> int:
        # The leaf's clock moves in steps: keys must not change within a plan.
        return max(0, self._app.leaf.clock_ns - self._app.app.submitted_ns)

    @property
    def _waiting(self) -> list[_Ask]:
        return [ask for ask in self._app.asks.values() if ask.ask.remaining]


class SeenQueue:
    __slots__ = ("_queue",)

    def __init__(self, queue: _Queue) -> None:
        self._queue = queue

    @property
    def path(self) -> str:
        return self._queue.queue.path

    @property
    def position(self) -> int:
        return self._queue.queue.spec.position

    @property
    def used(self) -> Resource:
        return read_only(self._queue.used)

    @property
    def guaranteed(self) -> Resource:
        return read_only(self._queue.queue.spec.guaranteed or {})

    @property
    def due(self) -> Resource:
        return read_only(self._queue.due)


class _Node(Protocol):
    node: Node
    free: Resource

    @property
    def parts(self) -> Parts | None: ...


class SeenNode(Struct, frozen=True, eq=False):
    """Made once for as long as the node itself is the same; what it shows as free moves on.

    Each placement asks for a score, so its members are plain fields, and a read costs no call.
    """

    id: str
    capacity: Resource
    free: Resource
    attributes: Mapping[str, str]
    model: str
    _node: _Node

    @property
    def parts(self) -> Parts | None:
        parts = self._node.parts
        return None if parts is None else tuple(parts)


def seen_node(view: _Node) -> SeenNode:
    node = view.node
    attributes = MappingProxyType(node.attributes)
    sizes = read_only(node.capacity), read_only(view.free)
    return SeenNode(node.id, *sizes, attributes, node.model, view)
