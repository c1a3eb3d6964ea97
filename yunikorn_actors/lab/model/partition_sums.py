"""What stands in a partition, as its facts tell it: plain records, and sums made anew from them.

It shares no book with the product: every amount is added up from single asks and allocations.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from yunikorn_actors.config import NodeSortConfig, QueueProperties
from yunikorn_actors.machines.context.lifecycle import PLACEHOLDER_TIMER
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.beneficiary import Beneficiary
from yunikorn_actors.state.queues import QueueSpec
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in

Work = TypeVar("Work", bound=Callable[..., Any])
ENDED = ("Completed", "Failed", "Rejected", "Expired")


class Queue:
    def __init__(self, path: str, parent: "Queue | None") -> None:
        self.path, self.parent = path, parent
        self.up: list[Queue] = [self, *(parent.up if parent else ())]
        self.gone: list[int] = []
        """When its victims were marked, since it has a budget."""

    def configure(self, spec: QueueSpec) -> None:
        self.spec, self.says = spec, QueueProperties.of(spec.properties)
        if not self.says.preemption_budget.window_ns:
            self.gone = []


@dataclass(eq=False)
class App:
    spec: ApplicationSpec
    serial: int
    leaf: Queue
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
    groups: set[str] = field(default_factory=set)
    """Of its placeholders, whatever became of them."""
    spared: Resource = field(default_factory=dict)
    """What of its `placeholder_ask` no member needs."""
    gang_since: int | None = None
    gang_expired: bool = False
    """Whether its time was up: placeholders that come later have a time of their own."""
    started: int | None = None
    timed_out: bool = False
    reals: int = 0
    """How many real allocations it was ever given."""

    @property
    def id(self) -> str:
        return self.spec.application_id


@dataclass(eq=False)
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


@dataclass(eq=False)
class Placed:
    app: App
    spec: AskSpec
    uuid: str
    node: str
    size: Resource
    since: int
    created: int
    """When it was asked for."""
    came: int
    """Revision of the fact that made it."""
    leaving: str = ""
    """Why it was asked back."""


@dataclass(eq=False)
class Kept:
    ask: Ask
    node: str
    size: Resource
    required: bool
    claims: bool
    came: int
    """Revision of the fact that made it."""
    since: int
    victims: list[str] = field(default_factory=list)
    """Those that go, or went, for it."""


@dataclass(eq=False)
class Swap:
    ask: Ask
    node: str
    crosses: bool
    size: Resource


@dataclass(eq=False)
class Node:
    id: str
    capacity: Resource = field(default_factory=dict)
    occupied: Resource = field(default_factory=dict)
    takes_work: bool = True
    foreign: dict[str, Resource] = field(default_factory=dict)


class Gate(NamedTuple):
    """A queue, or a limit of a user or group: how much those below it may use, how many may run."""

    queue: Queue | None
    most: Resource | None
    most_apps: int
    apps: list[App]
    used: Resource


def total(items: Iterable[Resource]) -> Resource:
    result: Resource = {}
    for item in items:
        charge(result, item)
    return result


def once(work: Work) -> Work:
    """Answer the same question only once between two facts."""

    @wraps(work)
    def answer(cluster: "Cluster", *about: Any) -> Any:  # noqa: ANN401 - as what it wraps
        answers, question = cluster.answers, (work, *about)
        if question not in answers:
            answers[question] = work(cluster, *about)
        return answers[question]

    return cast("Work", answer)


_Placing = f.AllocationCommitted | f.AllocationRecovered | f.SwapCompleted


class Cluster:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now = 0
        self.revision = 0
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self.apps: dict[str, App] = {}
        self.asks: dict[tuple[str, str], Ask] = {}
        self.placed: dict[str, Placed] = {}
        self.kept: list[Kept] = []
        self.ending: list[Kept] = []
        """Reservations that end with the decision at hand."""
        self.marked: dict[tuple[str, str, str], list[str]] = {}
        """Victims by the application, the key and the node of a reservation that is still to be
        made for them."""
        self.swaps: dict[str, Swap] = {}
        """By the placeholder whose room is handed over."""
        self.config: Any = None
        self.node_sort = NodeSortConfig()
        self.quota_due: dict[str, int] = {}
        self.owed: list[Ask] = []
        """Asks whose room is still held for them though their swap is off."""
        self.answers: dict[Any, Any] = {}

    # -- sums

    @once
    def waiting(self) -> list[Ask]:
        return [ask for ask in self.asks.values() if ask.left]

    @once
    def asks_of(self, app: App) -> list[Ask]:
        return [ask for ask in self.waiting() if ask.app is app]

    @once
    def of(self, app: App) -> list[Placed]:
        return [placed for placed in self.placed.values() if placed.app is app]

    def placeholders_of(self, app: App) -> list[Placed]:
        return [placed for placed in self.of(app) if placed.spec.placeholder]

    def reals_of(self, app: App) -> list[Placed]:
        return [placed for placed in self.of(app) if not placed.spec.placeholder]

    def is_swapping(self, app: App) -> bool:
        """Whether a real ask of it is about to take a placeholder's room over."""
        return any(swap.ask.app is app for swap in self.swaps.values())

    @once
    def below(self, queue: Queue) -> list[App]:
        return [app for app in self.apps.values() if queue in app.leaf.up]

    @once
    def used(self, queue: Queue) -> Resource:
        return self.used_by(self.below(queue))

    def used_by(self, apps: list[App]) -> Resource:
        return total(placed.size for app in apps for placed in self.of(app))

    def leaving(self, queue: Queue) -> Resource:
        """What comes free; a swap frees nothing, it hands over."""
        mine = (p for app in self.below(queue) for p in self.of(app) if p.leaving)
        return total(p.size for p in mine if p.uuid not in self.swaps)

    def claimed(self, apps: list[App], but: Ask | None = None) -> Resource:
        """What is promised to asks of these applications."""
        claims = [kept for kept in self.kept if kept.claims and kept.ask is not but]
        return total(kept.size for kept in claims if kept.ask.app in apps)

    def redeems(self, ask: Ask) -> Resource:
        """What is promised to an ask and its next repeat uses up: nothing while others need it."""
        mine = [kept for kept in self.kept if kept.ask is ask and kept.claims]
        if any(kept.ask is ask for kept in self.ending):
            return {}
        there = any(fits_in(ask.size, self.free(self.nodes[kept.node])) for kept in mine)
        return mine[0].size if mine and (there or len(mine) >= ask.left) else {}

    @once
    def pending(self, queue: Queue) -> Resource:
        mine = [ask for ask in self.waiting() if queue in ask.app.leaf.up]
        return total(ask.size for ask in mine for _ in range(ask.left))

    @once
    def capacity(self) -> Resource:
        return total(node.capacity for node in self.nodes.values())

    @once
    def free(self, node: Node) -> Resource:
        free = dict(node.capacity)
        for taken in (
            node.occupied,
            *node.foreign.values(),
            *(p.size for p in self.placed.values() if p.node == node.id),
            *(s.size for s in self.swaps.values() if s.crosses and s.node == node.id),
        ):
            discharge(free, taken)
        return free

    @once
    def gates(self, app: App) -> list[Gate]:
        """List the queues of an application, and the limits that bind it."""
        found = []
        for queue in app.leaf.up:
            spec, below, user, group = queue.spec, self.below(queue), app.spec.user, app.group
            found.append(Gate(queue, spec.max, spec.max_applications, below, self.used(queue)))
            mine = [it for name in (user, "*") for it in spec.limits if name in it.users]
            ours = [it for it in spec.limits if group and group in it.groups]
            for limits, apps in (
                (mine, [other for other in below if other.spec.user == user]),
                (ours, [other for other in below if other.group == group]),
            ):
                for it in limits[:1]:
                    most, used = it.max_resources or None, self.used_by(apps)
                    found.append(Gate(None, most, it.max_applications, apps, used))
        return found

    # -- what the facts change

    def apply(self, fact: f.Fact) -> None:
        change = CHANGES.get(type(fact))
        if change is not None:
            self.answers.clear()
            self.now = max(self.now, getattr(fact, "at_ns", 0))
            change(self, fact)

    def _configured(self, fact: f.PartitionConfigured) -> None:
        self.config, self.node_sort = fact.config, fact.config.node_sort

    def _queue(self, fact: f.QueueAdded | f.QueueReconfigured) -> None:
        parent = self.queues.get(fact.path.rpartition(".")[0])
        self.queues.setdefault(fact.path, Queue(fact.path, parent)).configure(fact.spec)

    def _node(self, fact: f.NodeAdded) -> None:
        self.nodes[fact.node_id] = Node(fact.node_id)
        self._node_resized(fact)
        self._node_schedule(fact)

    def _node_resized(self, fact: f.NodeAdded | f.NodeResized) -> None:
        node = self.nodes[fact.node_id]
        node.capacity = {kind: n for kind, n in fact.capacity.items() if n}
        node.occupied = fact.occupied

    def _node_schedule(self, fact: f.NodeAdded | f.NodeScheduleChanged) -> None:
        is_awaited = isinstance(fact, f.NodeScheduleChanged) and fact.awaited
        node = self.nodes[fact.node_id]
        node.takes_work = fact.ready and not (fact.drained or is_awaited)

    def _app(self, fact: f.ApplicationAdded) -> None:
        leaf = self.queues[fact.queue]
        self.apps[fact.spec.application_id] = App(fact.spec, fact.serial, leaf, fact.at_ns)

    def _app_state(self, fact: f.ApplicationStateChanged) -> None:
        app = self.apps.get(fact.application_id)
        if app is None or app.serial != fact.serial:
            return
        app.state, app.entered = fact.state.value, fact.at_ns
        if app.state in ("Starting", "Running") and app.started is None:
            app.started = fact.at_ns
        if app.state in ("Resuming", "Failing"):
            # Placeholders that come later are another gang.
            app.timed_out, app.admitted, app.lapsed, app.placed = True, False, None, {}
            app.spared = {}
        if app.state in ("Completing", "Failing", *ENDED):
            app.counts = False
        if app.state in ENDED:
            self._forget(app)

    def _forget(self, app: App) -> None:
        del self.apps[app.id]
        self.asks = {key: ask for key, ask in self.asks.items() if ask.app is not app}

    def _ask(self, fact: f.AskAdded | f.AllocationRecovered) -> Ask:
        spec, app = fact.spec, self.apps[fact.spec.application_id]
        ask = Ask(app, spec, fact.created_ns, fact.sequence, spec.max_allocations)
        app.age = min(app.age, ask.created)
        self.asks[app.id, spec.key] = ask
        if spec.placeholder:
            app.groups.add(spec.task_group)
        return ask

    def _ask_again(self, fact: f.AskReplaced) -> None:
        ask = self.asks[fact.spec.application_id, fact.spec.key]
        parked = sum(swap.ask is ask for swap in self.swaps.values())
        ask.spec = fact.spec
        if fact.spec.placeholder:
            ask.app.groups.add(fact.spec.task_group)
        ask.left = fact.spec.max_allocations - ask.taken - parked
        for kept in self.kept:
            if kept.ask is ask:
                kept.size = ask.size

    def _ask_removed(self, fact: f.AskRemoved) -> None:
        ask = self.asks[fact.application_id, fact.key]
        if ask.app.admitted and ask.spec.placeholder:
            # It will not come any more, so no room is kept for it.
            charge(ask.app.placed, total(ask.size for _ in range(ask.left)))
        ask.left = 0

    def _take(self, fact: _Placing, ask: Ask, spec: AskSpec, size: Resource) -> None:
        app = ask.app
        self.placed[fact.uuid] = Placed(
            app, spec, fact.uuid, fact.node_id, size, fact.at_ns, ask.created, self.revision
        )
        app.counts = True
        app.reals += not spec.placeholder
        if spec.placeholder:
            charge(app.placed, size)
            if self._is_first_of_gang(app):
                app.gang_since, app.gang_expired = fact.at_ns, False

    def _committed(self, fact: f.AllocationCommitted) -> None:
        ask = self.asks[fact.application_id, fact.key]
        ask.left, ask.taken = ask.left - 1, ask.taken + 1
        self._take(fact, ask, ask.spec, fact.resource)

    def _recovered(self, fact: f.AllocationRecovered) -> None:
        ask = self.asks.get((fact.spec.application_id, fact.spec.key))
        if ask is None:
            ask = self._ask(fact)
            ask.left = 0
        ask.taken += 1
        app = ask.app
        app.age = min(app.age, fact.created_ns)
        is_first = fact.spec.placeholder and self._is_first_of_gang(app)
        self._take(fact, ask, fact.spec, fact.spec.resource)
        if is_first and app.spec.created_ns is not None:
            # It has what is left of its time, or one moment more.
            rest = fact.at_ns + MILLISECOND - self.gang_timeout(app)
            app.gang_since = max(rest, min(fact.at_ns, app.spec.created_ns))

    def _is_first_of_gang(self, app: App) -> bool:
        return app.gang_since is None or app.gang_expired

    def gang_is_over(self, app: App) -> bool:
        return app.gang_since is not None and app.gang_since + self.gang_timeout(app) <= self.now

    def _timer_cancelled(self, fact: f.TimerCancelled) -> None:
        app = self.apps.get(fact.application_id)
        if fact.kind == PLACEHOLDER_TIMER and app is not None and self.gang_is_over(app):
            app.gang_expired = True

    def gang_timeout(self, app: App) -> int:
        if app.spec.is_gang and app.spec.timeout_ms > 0:
            return app.spec.timeout_ms * MILLISECOND
        return self.settings.placeholder_timeout_ns

    def _released(self, fact: f.AllocationReleased | f.SwapCompleted, uuid: str = "") -> None:
        gone = self.placed.pop(uuid or fact.uuid)
        if gone.spec.placeholder and gone.leaving == "TIMEOUT" and not uuid:
            charge(gone.app.spared, gone.size)
        if not any(p.spec.placeholder for p in self.placed.values() if p.app is gone.app):
            gone.app.gang_since = None
            if gone.spec.placeholder:
                gone.app.bare_since = fact.at_ns

    def _swapped(self, fact: f.SwapCompleted) -> None:
        ask = self.swaps.pop(fact.placeholder).ask
        ask.taken += 1
        charge(ask.app.spared, self.placed[fact.placeholder].size)
        discharge(ask.app.spared, fact.resource)
        self._released(fact, fact.placeholder)
        self._take(fact, ask, ask.spec, fact.resource)

    def _admitted(self, fact: f.GangAdmitted) -> None:
        app = self.apps[fact.application_id]
        app.admitted, app.lapsed, app.bare_since = True, None, fact.at_ns

    def _lapsed(self, fact: f.GangLapsed) -> None:
        app = self.apps[fact.application_id]
        app.admitted, app.lapsed = False, fact.at_ns

    def _parked(self, fact: f.AskParked) -> None:
        ask = self.asks[fact.application_id, fact.key]
        ask.left -= 1
        self.swaps[fact.placeholder] = Swap(ask, fact.node_id, fact.crosses, fact.resource)

    def _unparked(self, fact: f.AskUnparked) -> None:
        swap = self.swaps.pop(fact.placeholder)
        swap.ask.left += 1
        if fact.crosses and swap.node not in self.nodes:
            self.owed.append(swap.ask)

    def _kept(self, fact: f.ReservationMade) -> None:
        ask, claims = self.asks[fact.application_id, fact.key], fact.by_preemption
        kept = Kept(
            ask, fact.node_id, fact.resource, fact.required, claims, self.revision, fact.at_ns
        )
        if claims:
            # Its victims are marked before the node is kept.
            kept.victims = self.marked.pop((fact.application_id, fact.key, fact.node_id), [])
        self.kept.append(kept)

    def _keepers(self, whom: f.ReservationDropped | Beneficiary, node: str) -> list[Kept]:
        named = (whom.application_id, whom.key, node)
        return [k for k in self.kept if (k.ask.app.id, k.ask.spec.key, k.node) == named]

    def _dropped(self, fact: f.ReservationDropped) -> None:
        for kept in self._keepers(fact, fact.node_id)[:1]:
            self.kept.remove(kept)
            self.ending.append(kept)

    def _asked_back(self, fact: f.ReleaseRequested) -> None:
        self.placed[fact.uuid].leaving = fact.type.name

    def _marked(self, fact: f.VictimMarked) -> None:
        leaf = self.queues[fact.queue]
        if leaf.says.preemption_budget.window_ns:
            leaf.gone.append(fact.at_ns)
        whom = fact.beneficiary
        keepers = self._keepers(whom, fact.node_id)
        for kept in keepers:
            kept.victims.append(fact.uuid)
        if not keepers:
            named = (whom.application_id, whom.key, fact.node_id)
            self.marked.setdefault(named, []).append(fact.uuid)

    def _decided(self, fact: f.PreemptionDecided) -> None:
        """A maximum is enforced once."""
        if not fact.beneficiary.key:
            self.quota_due.pop(fact.beneficiary.queue, None)

    def _resized(self, fact: f.AllocationResized) -> None:
        self.placed[fact.uuid].size = fact.resource

    def _linked(self, fact: f.ApplicationLinked) -> None:
        self.apps[fact.application_id].group = fact.group

    def _foreign(self, fact: f.ForeignAllocationPut) -> None:
        for node in self.nodes.values():
            node.foreign.pop(fact.key, None)
        self.nodes[fact.node_id].foreign[fact.key] = fact.resource


CHANGES: dict[type, Callable[[Cluster, Any], Any]] = {
    f.PartitionConfigured: Cluster._configured,
    f.QueueAdded: Cluster._queue,
    f.QueueReconfigured: Cluster._queue,
    f.QueueRemoved: lambda it, fact: it.queues.pop(fact.path),
    f.NodeAdded: Cluster._node,
    f.NodeResized: Cluster._node_resized,
    f.NodeScheduleChanged: Cluster._node_schedule,
    f.NodeRemoved: lambda it, fact: it.nodes.pop(fact.node_id),
    f.ApplicationAdded: Cluster._app,
    f.ApplicationStateChanged: Cluster._app_state,
    f.ApplicationLinked: Cluster._linked,
    f.ApplicationRemoved: lambda it, fact: it._forget(it.apps[fact.application_id]),
    f.AskAdded: Cluster._ask,
    f.AskReplaced: Cluster._ask_again,
    f.AskRemoved: Cluster._ask_removed,
    f.AllocationCommitted: Cluster._committed,
    f.AllocationRecovered: Cluster._recovered,
    f.AllocationReleased: Cluster._released,
    f.AllocationResized: Cluster._resized,
    f.GangAdmitted: Cluster._admitted,
    f.GangLapsed: Cluster._lapsed,
    f.AskParked: Cluster._parked,
    f.AskUnparked: Cluster._unparked,
    f.SwapCompleted: Cluster._swapped,
    f.PlaceholderCancelled: lambda it, fact: charge(
        it.apps[fact.application_id].spared, {k: -n for k, n in fact.placeholder_resource.items()}
    ),
    f.ReservationMade: Cluster._kept,
    f.ReservationDropped: Cluster._dropped,
    f.ReleaseRequested: Cluster._asked_back,
    f.VictimMarked: Cluster._marked,
    f.PreemptionDecided: Cluster._decided,
    f.TimerCancelled: Cluster._timer_cancelled,
    f.ForeignAllocationPut: Cluster._foreign,
    f.ForeignAllocationRemoved: lambda it, fact: it.nodes[fact.node_id].foreign.pop(fact.key, None),
    f.QuotaPreemptionArmed: lambda it, fact: it.quota_due.update({fact.path: fact.due_ns}),
    f.QuotaPreemptionCleared: lambda it, fact: it.quota_due.pop(fact.path, None),
}
