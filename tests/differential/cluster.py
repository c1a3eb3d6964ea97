"""What stands in a partition, as its facts tell it: plain records, and sums made anew from them.

It shares no book with the product: every amount is added up from single asks and allocations.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import AskSpec
from yunikorn_actors.domain.application import ApplicationSpec
from yunikorn_actors.domain.config import NodeSortConfig, QueueProperties
from yunikorn_actors.domain.queue import QueueSpec
from yunikorn_actors.domain.resource import Resource, charge, discharge

T = TypeVar("T")
record = dataclass(eq=False, kw_only=True)
ENDED = ("Completed", "Failed", "Rejected", "Expired")


@record
class Queue:
    path: str
    spec: QueueSpec
    parent: "Queue | None"

    def __post_init__(self) -> None:
        self.says = QueueProperties.of(self.spec.properties)

    def up(self) -> "list[Queue]":
        return [self, *(self.parent.up() if self.parent else ())]


@record
class App:
    spec: ApplicationSpec
    serial: int
    leaf: Queue
    since: int
    age: int
    """Of the application or of its oldest ask."""
    state: str = "New"
    entered: int = 0
    group: str = ""
    counts: bool = False
    """Among the running ones of its user: from its first allocation on, until it completes."""
    admitted: bool = False
    lapsed: int | None = None
    """When it was held again; others go before it."""
    bare_since: int = 0
    """Since when the admitted gang has had no placeholder."""
    placed: Resource = field(default_factory=dict)
    """All placeholders ever placed."""
    gang_since: int | None = None
    started: int | None = None
    timed_out: bool = False
    reals: int = 0
    """How many real allocations it was ever given."""

    @property
    def id(self) -> str:
        return self.spec.application_id


@record
class Ask:
    app: App
    spec: AskSpec
    created: int
    sequence: int
    left: int
    taken: int = 0
    vain_at: int | None = None
    """When others were, or will be, looked for in vain."""
    could_since: int | None = None
    """Since when others could surely go for it."""

    @property
    def size(self) -> Resource:
        return self.spec.resource


@record
class Placed:
    app: App
    spec: AskSpec
    uuid: str
    node: str
    size: Resource
    since: int
    created: int
    """When it was asked for."""
    leaving: str = ""
    """Why it was asked back."""
    preempted: bool = False


@record
class Kept:
    ask: Ask
    node: str
    size: Resource
    required: bool
    claims: bool
    since: int
    speaks: bool = False
    """Others go for it, so what they leave is spoken for."""


@record
class Swap:
    app: App
    ask: Ask
    placeholder: str
    node: str
    crosses: bool
    size: Resource


@record
class Node:
    id: str
    capacity: Resource
    occupied: Resource
    drained: bool
    ready: bool
    foreign: dict[str, Resource] = field(default_factory=dict)


class Settings(Protocol):
    """What the operator may set, as far as the rules know of it."""

    completing_timeout_ns: int
    starting_timeout_ns: int
    placeholder_timeout_ns: int
    reservation_delay_ns: int
    preemption_delay_ns: int


def total(items: Iterable[Resource]) -> Resource:
    result: Resource = {}
    for item in items:
        charge(result, item)
    return result


class Cluster:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now = 0
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self.apps: dict[str, App] = {}
        self.asks: dict[tuple[str, str], Ask] = {}
        self.placed: dict[str, Placed] = {}
        self.kept: list[Kept] = []
        self.ending: list[Kept] = []
        """Reservations that end with the decision at hand."""
        self.swaps: dict[str, Swap] = {}
        self.config: Any = None
        self.node_sort = NodeSortConfig()
        self.quota_due: dict[str, int] = {}
        self.owed: list[Ask] = []
        """Asks whose room is still held for them though their swap is off."""
        self._memo: dict[Any, Any] = {}

    # -- sums

    def memo(self, key: Any, work: Callable[[], T]) -> T:
        if key not in self._memo:
            self._memo[key] = work()
        found: T = self._memo[key]
        return found

    def waiting(self) -> list[Ask]:
        return self.memo("waiting", lambda: [ask for ask in self.asks.values() if ask.left])

    def of(self, app: App) -> list[Placed]:
        return self.memo(("of", app), lambda: [p for p in self.placed.values() if p.app is app])

    def below(self, queue: Queue) -> list[App]:
        return self.memo(
            ("below", queue.path),
            lambda: [app for app in self.apps.values() if queue in app.leaf.up()],
        )

    def used(self, queue: Queue) -> Resource:
        return self.memo(
            ("used", queue.path),
            lambda: total(p.size for app in self.below(queue) for p in self.of(app)),
        )

    def leaving(self, queue: Queue) -> Resource:
        """What comes free; a swap frees nothing, it hands over."""
        mine = (p for app in self.below(queue) for p in self.of(app) if p.leaving)
        return total(p.size for p in mine if p.uuid not in self.swaps)

    def claimed(self, queue: Queue, but: Ask | None = None) -> Resource:
        apps = self.below(queue)
        return total(
            k.size for k in self.kept if k.claims and k.ask is not but and k.ask.app in apps
        )

    def pending(self, queue: Queue) -> Resource:
        def add() -> Resource:
            apps = self.below(queue)
            return total(a.size for a in self.waiting() if a.app in apps for _ in range(a.left))

        return self.memo(("pending", queue.path), add)

    @property
    def capacity(self) -> Resource:
        return self.memo("capacity", lambda: total(node.capacity for node in self.nodes.values()))

    def free(self, node: Node) -> Resource:
        def rest() -> Resource:
            free = dict(node.capacity)
            discharge(free, node.occupied)
            for taken in (
                *node.foreign.values(),
                *(p.size for p in self.placed.values() if p.node == node.id),
                *(s.size for s in self.swaps.values() if s.crosses and s.node == node.id),
            ):
                discharge(free, taken)
            return free

        return self.memo(("free", node.id), rest)

    def shared(self, queue: Queue, app: App, *, of_group: bool) -> list[App]:
        """Those below the queue who share a limit of the application's user or group with it."""
        below = self.below(queue)
        if of_group:
            return [o for o in below if o.group == app.group]
        return [o for o in below if o.spec.user == app.spec.user]

    def limits(self, app: App) -> Iterator[tuple[Any, list[App]]]:
        """Yield the limits that bind an application, and who shares each with it."""
        for queue in app.leaf.up():
            for of_group, names in ((False, (app.spec.user, "*")), (True, (app.group,))):
                for name in filter(None, names):
                    found = [
                        limit
                        for limit in queue.spec.limits
                        if name in (limit.groups if of_group else limit.users)
                    ]
                    if found:
                        yield found[0], self.shared(queue, app, of_group=of_group)
                        break

    # -- what the facts change

    def apply(self, fact: f.Fact) -> None:
        change = CHANGES.get(type(fact))
        if change is not None:
            self._memo.clear()
            self.now = max(self.now, getattr(fact, "at_ns", 0))
            change(self, fact)

    def _configured(self, fact: f.PartitionConfigured) -> None:
        self.config, self.node_sort = fact.config, fact.config.node_sort

    def _queue(self, fact: f.QueueAdded) -> None:
        parent = self.queues.get(fact.path.rpartition(".")[0])
        self.queues[fact.path] = Queue(path=fact.path, spec=fact.spec, parent=parent)

    def _queue_again(self, fact: f.QueueReconfigured) -> None:
        queue = self.queues[fact.path]
        queue.spec, queue.says = fact.spec, QueueProperties.of(fact.spec.properties)

    def _node(self, fact: f.NodeAdded) -> None:
        self.nodes[fact.node_id] = Node(
            id=fact.node_id, capacity={k: n for k, n in fact.capacity.items() if n},
            occupied=fact.occupied, drained=fact.drained, ready=fact.ready,
        )  # fmt: skip

    def _node_resized(self, fact: f.NodeResized) -> None:
        node = self.nodes[fact.node_id]
        node.capacity = {k: n for k, n in fact.capacity.items() if n}
        node.occupied = fact.occupied

    def _node_schedule(self, fact: f.NodeScheduleChanged) -> None:
        node = self.nodes[fact.node_id]
        node.drained, node.ready = fact.drained, fact.ready

    def _app(self, fact: f.ApplicationAdded) -> None:
        self.apps[fact.spec.application_id] = App(
            spec=fact.spec, serial=fact.serial, leaf=self.queues[fact.queue],
            since=fact.at_ns, age=fact.at_ns,
        )  # fmt: skip

    def _app_state(self, fact: f.ApplicationStateChanged) -> None:
        app = self.apps.get(fact.application_id)
        if app is None or app.serial != fact.serial:
            return
        app.state, app.entered = fact.state.value, fact.at_ns
        if app.state in ("Starting", "Running") and app.started is None:
            app.started = fact.at_ns
        if app.state in ("Resuming", "Failing"):
            app.timed_out, app.admitted = True, False
        if app.state in ("Completing", "Failing", *ENDED):
            app.counts = False
        if app.state in ENDED:
            self._forget(app)

    def _forget(self, app: App) -> None:
        del self.apps[app.id]
        self.asks = {key: ask for key, ask in self.asks.items() if ask.app is not app}

    def _ask(self, fact: f.AskAdded) -> None:
        app = self.apps[fact.spec.application_id]
        app.age = min(app.age, fact.created_ns)
        self.asks[app.id, fact.spec.key] = Ask(
            app=app, spec=fact.spec, created=fact.created_ns, sequence=fact.sequence,
            left=fact.spec.max_allocations,
        )  # fmt: skip

    def _ask_again(self, fact: f.AskReplaced) -> None:
        ask = self.asks[fact.spec.application_id, fact.spec.key]
        parked = sum(swap.ask is ask for swap in self.swaps.values())
        ask.spec = fact.spec
        ask.left = fact.spec.max_allocations - ask.taken - parked

    def _ask_removed(self, fact: f.AskRemoved) -> None:
        ask = self.asks[fact.application_id, fact.key]
        if ask.app.admitted and ask.spec.placeholder:
            # It will not come any more, so no room is kept for it.
            charge(ask.app.placed, total(ask.size for _ in range(ask.left)))
        ask.left = 0

    def _take(self, fact: Any, spec: AskSpec) -> None:
        app = self.apps[fact.application_id if hasattr(fact, "key") else spec.application_id]
        self.placed[fact.uuid] = Placed(
            app=app, spec=spec, uuid=fact.uuid, node=fact.node_id, size=_size(fact),
            since=fact.at_ns, created=self.asks[app.id, spec.key].created,
        )  # fmt: skip
        app.counts = True
        app.reals += not spec.placeholder
        if spec.placeholder:
            charge(app.placed, _size(fact))
            if app.gang_since is None:
                app.gang_since = fact.at_ns

    def _committed(self, fact: f.AllocationCommitted) -> None:
        ask = self.asks[fact.application_id, fact.key]
        ask.left -= 1
        ask.taken += 1
        self._take(fact, ask.spec)

    def _recovered(self, fact: f.AllocationRecovered) -> None:
        app = self.apps[fact.spec.application_id]
        app.age = min(app.age, fact.created_ns)
        if (app.id, fact.spec.key) not in self.asks:
            self.asks[app.id, fact.spec.key] = Ask(
                app=app, spec=fact.spec, created=fact.created_ns, sequence=fact.sequence,
                left=0, taken=1,
            )  # fmt: skip
        self._take(fact, fact.spec)

    def _released(self, fact: f.AllocationReleased | f.SwapCompleted, uuid: str = "") -> None:
        gone = self.placed.pop(uuid or fact.uuid)
        if not any(p.spec.placeholder for p in self.placed.values() if p.app is gone.app):
            gone.app.gang_since = None
            if gone.spec.placeholder:
                gone.app.bare_since = fact.at_ns

    def _swapped(self, fact: f.SwapCompleted) -> None:
        swap = self.swaps.pop(fact.placeholder)
        swap.ask.taken += 1
        self._released(fact, fact.placeholder)
        self._take(fact, swap.ask.spec)

    def _admitted(self, fact: f.GangAdmitted) -> None:
        app = self.apps[fact.application_id]
        app.admitted, app.lapsed, app.bare_since = True, None, fact.at_ns

    def _lapsed(self, fact: f.GangLapsed) -> None:
        app = self.apps[fact.application_id]
        app.admitted, app.lapsed = False, fact.at_ns

    def _parked(self, fact: f.AskParked) -> None:
        ask = self.asks[fact.application_id, fact.key]
        ask.left -= 1
        self.swaps[fact.placeholder] = Swap(
            app=ask.app, ask=ask, placeholder=fact.placeholder, node=fact.node_id,
            crosses=fact.crosses, size=fact.resource,
        )  # fmt: skip

    def _unparked(self, fact: f.AskUnparked) -> None:
        swap = self.swaps.pop(fact.placeholder)
        swap.ask.left += 1
        if fact.crosses and swap.node not in self.nodes:
            self.owed.append(swap.ask)

    def _kept(self, fact: f.ReservationMade) -> None:
        self.kept.append(
            Kept(
                ask=self.asks[fact.application_id, fact.key], node=fact.node_id,
                size=fact.resource, required=fact.required, claims=fact.by_preemption,
                since=fact.at_ns, speaks=fact.by_preemption,
            )
        )  # fmt: skip

    def _dropped(self, fact: f.ReservationDropped) -> None:
        named = (fact.application_id, fact.key, fact.node_id)
        for kept in self.kept:
            if (kept.ask.app.id, kept.ask.spec.key, kept.node) == named:
                self.kept.remove(kept)
                self.ending.append(kept)
                return

    def _asked_back(self, fact: f.ReleaseRequested) -> None:
        self.placed[fact.uuid].leaving = fact.type.name

    def _marked(self, fact: f.VictimMarked) -> None:
        self.placed[fact.uuid].preempted = True
        whom = (fact.beneficiary.application_id, fact.beneficiary.key)
        for kept in self.kept:
            if (kept.ask.app.id, kept.ask.spec.key) == whom and kept.node == fact.node_id:
                kept.speaks = True

    def _foreign(self, fact: f.ForeignAllocationPut) -> None:
        for node in self.nodes.values():
            node.foreign.pop(fact.key, None)
        self.nodes[fact.node_id].foreign[fact.key] = fact.resource


def _size(fact: Any) -> Resource:
    size: Resource = getattr(fact, "resource", None) or fact.spec.resource
    return size


CHANGES: dict[type, Callable[[Cluster, Any], Any]] = {
    f.PartitionConfigured: Cluster._configured,
    f.QueueAdded: Cluster._queue,
    f.QueueReconfigured: Cluster._queue_again,
    f.QueueRemoved: lambda it, fact: it.queues.pop(fact.path),
    f.NodeAdded: Cluster._node,
    f.NodeResized: Cluster._node_resized,
    f.NodeScheduleChanged: Cluster._node_schedule,
    f.NodeRemoved: lambda it, fact: it.nodes.pop(fact.node_id),
    f.ApplicationAdded: Cluster._app,
    f.ApplicationStateChanged: Cluster._app_state,
    f.ApplicationLinked: lambda it, fact: setattr(
        it.apps[fact.application_id], "group", fact.group
    ),
    f.ApplicationRemoved: lambda it, fact: it._forget(it.apps[fact.application_id]),
    f.AskAdded: Cluster._ask,
    f.AskReplaced: Cluster._ask_again,
    f.AskRemoved: Cluster._ask_removed,
    f.AllocationCommitted: Cluster._committed,
    f.AllocationRecovered: Cluster._recovered,
    f.AllocationReleased: Cluster._released,
    f.AllocationResized: lambda it, fact: setattr(it.placed[fact.uuid], "size", fact.resource),
    f.GangAdmitted: Cluster._admitted,
    f.GangLapsed: Cluster._lapsed,
    f.AskParked: Cluster._parked,
    f.AskUnparked: Cluster._unparked,
    f.SwapCompleted: Cluster._swapped,
    f.ReservationMade: Cluster._kept,
    f.ReservationDropped: Cluster._dropped,
    f.ReleaseRequested: Cluster._asked_back,
    f.VictimMarked: Cluster._marked,
    f.ForeignAllocationPut: Cluster._foreign,
    f.ForeignAllocationRemoved: lambda it, fact: it.nodes[fact.node_id].foreign.pop(fact.key, None),
    f.QuotaPreemptionArmed: lambda it, fact: it.quota_due.update({fact.path: fact.due_ns}),
    f.QuotaPreemptionCleared: lambda it, fact: it.quota_due.pop(fact.path, None),
}
