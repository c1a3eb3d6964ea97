"""Views: what the planner sees of asks, applications and queues, and the lanes between them.

All asks of one shape in one leaf form a *lane*: whatever refuses the first of them (a queue's
limit, no node with room) refuses them all (ADR 9). A lane lists its applications, an application
piles its asks by shape. The order between the shapes of one application is by priority and age,
between applications by the policy of the leaf, between queues by fair share.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, ClassVar, NamedTuple, Protocol, Union

from msgspec import Struct

from yunikorn_actors.config import ApplicationSortPolicy
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.planning.model.deciding import Decider, Deciders
from yunikorn_actors.planning.model.limits import LimitView
from yunikorn_actors.planning.model.policy_views import SeenApplication, SeenQueue
from yunikorn_actors.planning.model.shape import Shape, Wanted
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY, OrderedItems, Priorities
from yunikorn_actors.policies.folds import runtime_of
from yunikorn_actors.policies.inputs import Hold
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation, Ask, AskOrder
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    SCHEDULABLE,
    Application,
    ApplicationState,
)
from yunikorn_actors.state.eligibility import starts_before
from yunikorn_actors.state.gates import GateKind, has_room, room_left
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import INT32_MAX, Resource, shared
from yunikorn_actors.values.tag_lookup import tag_of
from yunikorn_actors.values.tags import APP_TAG_NODE_SORT_POLICY

Owner = tuple[str, str] | None
"""User and group, if any limit counts for them: it refuses their asks and not those of others."""


class Holder(Protocol):
    """What keeps applications from taking part."""

    kind: ClassVar[GateKind]

    @property
    def name(self) -> str: ...


class Lane:
    """The asks of one shape and one limited owner in one leaf, by application."""

    __slots__ = ("apps", "leaf", "number", "owner", "refused_by", "shape")

    def __init__(self, leaf: "QueueView", shape: Shape, owner: Owner) -> None:
        self.leaf = leaf
        self.shape = shape
        self.owner = owner
        self.apps: list[AppEntry] = []
        self.refused_by: Gate | None = None
        """The queue or limit that refused it last; the lane is opened when that has more room."""
        self.number = 0
        """Of its newest entry in the order of the leaf; the others do not hold any more."""

    # Two reasons to be closed, each with its own way to open it again.
    @property
    def is_open(self) -> bool:
        return self.refused_by is None and not self.shape.waits_for_node

    @property
    def first(self) -> "AskView":
        return self.apps[0][1].piles[self.shape].head[0]

    def asks(self) -> "list[AskView]":
        return [ask for _, app in self.apps for ask in app.piles[self.shape]]

    @property
    def rank(self) -> "Rank":
        """The rank of its first application, then of the first ask of that."""
        key, app = self.apps[0]
        return (key, app.piles[self.shape].head[0].order)


class OpenLanes(dict[Lane, None]):
    """The open lanes of a leaf, and which of them has the ask that stands first.

    It is a dictionary itself, because each decision asks on its way down whether any lane is open.
    """

    __slots__ = ("_moved", "_numbered", "_order")

    def __init__(self) -> None:
        super().__init__()
        self._order: list[tuple[Rank, int, Lane]] = []
        """A heap of the lanes, while there are several; some entries do not hold any more."""
        self._numbered = 0
        """How many entries that heap has had: no two of them compare as equal."""
        self._moved: dict[Lane, None] = {}
        """Lanes in which another ask may have come to stand first since."""

    def open(self, lane: Lane) -> None:
        # As long as one lane was open alone it had no place; now the two are compared.
        if len(self) == 1:
            self._moved.update(self)
        self[lane] = None
        if len(self) > 1:
            self._moved[lane] = None

    def move(self, lane: Lane) -> None:
        """Another ask may stand first in it; a lane that is open alone needs no place."""
        if len(self) > 1 and lane in self:
            self._moved[lane] = None

    def close(self, lane: Lane) -> None:
        del self[lane]
        self._moved.pop(lane, None)
        if not self:
            self._order.clear()

    def first(self) -> "AskView":
        """Return the first ask that may be tried, of the first application; some lane is open."""
        if len(self) == 1:
            (lane,) = self
            return lane.first
        order = self._order
        # Entries that do not hold any more are dropped when they come to the top. Those below it
        # would make the heap grow without end, so it is built anew when they are more than half.
        if len(order) > 2 * len(self):
            order.clear()
            self._moved.update(self)
        for lane in self._moved:
            self._numbered += 1
            # A number for each entry: an older entry of the same lane is known by it.
            lane.number = self._numbered
            heappush(order, (lane.rank, lane.number, lane))
        self._moved.clear()
        while order[0][1] != order[0][2].number or order[0][2] not in self:
            heappop(order)
        return order[0][2].first


class Tried(NamedTuple):
    """A search for victims in vain."""

    at_ns: int
    changes: int
    """How many changes there had been: after as many nothing new is found."""
    again_ns: int
    """When a budget or a cooldown ends that refused a victim."""


class AskView(Struct, eq=False):
    """An ask as the planner sees it: `waiting` repeats are neither placed nor in flight.

    Those of the waiting repeats that neither a gang nor a gate holds back are `open`.
    """

    app: "AppView"
    ask: Ask
    shape: Shape
    resource: Resource
    order: AskOrder
    is_placeholder: bool = False
    waiting: int = 0
    open: int = 0
    inflight: int = 0
    gone: bool = False
    is_let_in: bool = False
    """It is the candidate of a leaf with a gate: the only one that takes part."""
    keeping: int = 0
    """Reservations for it, made or given up, that are on their way."""
    tried: Tried | None = None
    """The last search for victims that was in vain."""
    declared_ns: int | None = None
    """How long it says that it runs, once that was asked for."""

    @property
    def runtime_ns(self) -> int:
        if self.declared_ns is None:
            self.declared_ns = runtime_of(self.app.app, self.ask.spec)
        return self.declared_ns

    def resize(self, shape: Shape) -> None:
        """The ask was sent again; its record is the same, its size and rank may not be."""
        self.shape = shape
        self.resource = self.ask.spec.resource
        self.declared_ns = None
        self.order = self.app.leaf.decider.order_of(self.app.app, self.ask)
        self.is_placeholder = self.ask.spec.placeholder


Rank = tuple[tuple[object, ...], AskOrder]
Kind = tuple[Shape, bool]
"""The shape of asks, and whether they are placeholders."""


class AppView:
    """An application: its piles of asks, and where it stands in which order.

    It has many fields and hardly any method. The tree, the gangs, the participants each keep some
    of them; to look for an application in a map of each would cost a lookup at every try.
    """

    __slots__ = (
        "app",
        "asks",
        "awaiting_gang",
        "bars",
        "blocked_by",
        "blocked_entry",
        "entry",
        "heads",
        "is_admitting",
        "leaf",
        "limits",
        "node_order",
        "opens",
        "owner",
        "piles",
        "placing",
        "priority",
        "ranked",
        "run_limit",
        "seen",
        "starting",
        "submitted_ns",
        "turn",
        "usable",
        "used",
        "waits",
    )

    def __init__(self, app: Application, leaf: "QueueView") -> None:
        self.app = app
        self.leaf = leaf
        self.seen = SeenApplication(self)
        """What a policy sees of it."""
        self.asks: dict[str, AskView] = {}
        self.piles: dict[Shape, OrderedItems[AskView]] = {}
        """Its asks that may be tried, by shape; in order."""
        self.waits: dict[Kind, int] = {}
        """How many repeats of its asks wait, and of these are open, by shape."""
        self.opens: dict[Kind, int] = {}
        self.heads: dict[int, int] = {}
        """How many piles have an ask of which priority on top."""
        self.used: Resource = dict(app.allocated)
        self.submitted_ns = app.submitted_ns
        self.blocked_by: Holder | None = None
        """The queue or limit whose places are all taken; this application waits there."""
        self.run_limit = GateKind.NONE
        """What was reported of that last."""
        self.blocked_entry: AppEntry | None = None
        self.limits: tuple[LimitView, ...] = ()
        self.owner: Owner = None
        self.node_order = NODE_ORDERS.get(tag_of(app.spec.tags, APP_TAG_NODE_SORT_POLICY))
        """The order of nodes that it chose for itself, if any."""
        self.starting = 0
        """Decisions in flight, reservations too, for an application that does not run yet."""
        self.priority = NO_PRIORITY
        self.ranked: tuple[Decider, Key] | None = None
        """The key that its policy gave, until it may be another."""
        self.entry: AppEntry | None = None
        """Its place in the lanes; None while nothing of it may be tried."""
        self.bars: tuple[bool, bool, tuple[str, ...]] = (False, False, ())
        """What its gang holds back: placeholders, real asks, members of these groups."""
        self.awaiting_gang: tuple[tuple[int, int, int], AppView] | None = None
        """Its place among the gangs that wait for admission."""
        self.turn: AskView | None = None
        """Stands for its placeholders while they wait for admission, and may be admitted."""
        self.is_admitting = False
        """Its admission is in flight, and counts already."""
        self.placing = 0
        """Placeholders on their way: decided, so its real asks wait for them no longer."""
        self.usable: dict[str, dict[str, Allocation]] = {}
        """Placeholders that may be swapped, by task group and UUID."""

    @property
    def is_schedulable(self) -> bool:
        return self.app.state in SCHEDULABLE

    @property
    def guaranteed(self) -> Resource | None:
        return self.leaf.queue.spec.guaranteed

    def first_placeholder(self) -> AskView | None:
        """Return the first placeholder that may be tried; real asks wait until there is none."""
        if self.entry is None:
            return None
        lanes = self.leaf.lanes
        heads = [it.head[0] for shape, it in self.piles.items() if lanes[shape, self.owner].is_open]
        ask = min(heads, key=order_of) if heads else None
        return ask if ask is not None and ask.is_placeholder else None

    def blocked_key(self) -> tuple[object, ...]:
        """Where it stands among the blocked: the oldest starts first in a stateaware leaf."""
        return self.app.age if self.leaf.is_stateaware else key_of(self)

    def blocked_at(self) -> "Gate | None":
        """Return the first queue or limit that has no place for this application, if any."""
        for gate in self.gates():
            if not gate.may_start(self):
                return gate
        return None

    def gates(self) -> "tuple[Gate, ...]":
        """Return the gates for running applications, if this one still needs a place."""
        # Any other state has a place, or needs none.
        if self.app.state is ApplicationState.ACCEPTED:
            return (*self.leaf.application_limits, *self.limits)
        return ()


class Holds:
    """What the gate of a leaf holds, each with its answer."""

    def __init__(self) -> None:
        self._answers: dict[AskView | AppView, Hold] = {}
        self._behind: tuple[Hold, Iterable[AskView | AppView]] | None = None
        """An answer for all behind one, and these: hardly anybody looks for them."""

    def clear(self) -> None:
        self._answers.clear()
        self._behind = None

    def add(self, subject: AskView | AppView, hold: Hold) -> None:
        self._answers[subject] = hold

    def add_behind(self, hold: Hold, subjects: Iterable[AskView | AppView]) -> None:
        self._behind = hold, subjects

    def get(self, subject: AskView | AppView) -> Hold | None:
        if self._behind is not None:
            # Nearly nobody asks what stands behind: it is spread out only then.
            (hold, subjects), self._behind = self._behind, None
            self._answers = dict.fromkeys(subjects, hold) | self._answers
        return self._answers.get(subject)

    def __contains__(self, subject: AskView | AppView) -> bool:
        return self.get(subject) is not None


Gate = Union["QueueView", LimitView]
"""What can refuse an ask or hold an application back, and has both wait until it has room."""
AppEntry = tuple[tuple[object, ...], AppView]
ChildKey = tuple[Any, Any, int, str]
ChildEntry = tuple[ChildKey, "QueueView"]


class QueueView:
    """A queue: its usage, its quota, and its place among its siblings.

    It has many members on purpose. Each decision reads usage, quota, priority and place together,
    on each level of a lineage. And a queue is a gate twice over, for the room of asks and for the
    places of applications: both are counted on the same tree and wake those who wait for them.
    """

    kind: ClassVar[GateKind] = GateKind.QUEUE
    __slots__ = (
        "application_limits",
        "below",
        "changed",
        "children",
        "clock_ns",
        "decider",
        "deciders",
        "due",
        "entry",
        "fair_max",
        "held",
        "holds",
        "is_entitled",
        "is_stateaware",
        "lanes",
        "limit",
        "limits",
        "lineage",
        "members",
        "open_lanes",
        "parent",
        "priorities",
        "priority",
        "queue",
        "redeemed",
        "seen",
        "sorts_by_priority",
        "sorts_by_usage",
        "starting",
        "used",
        "waiting",
    )

    def __init__(self, queue: Queue, parent: "QueueView | None", deciders: Deciders) -> None:
        self.queue = queue
        self.parent = parent
        self.deciders = deciders
        self.decider: Decider
        """Its policy."""
        self.seen = SeenQueue(self)
        self.changed: dict[AskView | AppView, None] | None = None
        """Of these the key, or what waits, may be another now; None where nobody goes by it."""
        self.clock_ns = 0
        """The time that keys go by, if they do: the last step of it when something was planned."""
        self.holds = Holds()
        """Asks and gangs that the gate of this leaf holds, each with the reason."""
        self.lineage: tuple[QueueView, ...] = (self, *(parent.lineage if parent else ()))
        # With what is in flight: the queue of the state has only what is committed.
        self.used: Resource = {}
        self.waiting = 0
        """Total of all amounts that wait below, kept back by a gang or not: it breaks ties between
        equal shares."""
        self.fair_max: Resource = {}
        self.due: Resource = {}
        self.limit: Resource | None = None
        self.redeemed: Resource = {}
        """Promised room that decisions in flight use: it is counted once."""
        self.application_limits: tuple[QueueView, ...] = ()
        """The queues of the lineage that bound how many applications run."""
        self.members: dict[int, AppView] = {}
        self.held: dict[AppView, None] = {}
        """Those whose gang awaits its admission."""
        self.starting: dict[int, None] = {}
        """Serials of applications to which something is on its way: they take a place."""
        self.limits: tuple[QueueView, ...] = ()
        """The queues of the lineage that can refuse something: quotas, then the cluster."""
        self.lanes: dict[tuple[Shape, Owner], Lane] = {}
        self.open_lanes = OpenLanes()
        self.children: list[ChildEntry] = []
        """Children with something to try, in order."""
        self.entry: ChildEntry | None = None
        self.below: list[QueueView] = []
        self.priorities = Priorities()
        """Of the applications of a leaf, of the queues below a parent."""
        self.priority = NO_PRIORITY
        """What the parent sees of the highest below: queues may change it."""
        self.sorts_by_usage = self.sorts_by_priority = False
        self.is_stateaware = False
        self.is_entitled = False
        """Something is guaranteed to it, by itself or by an ancestor."""
        self.read_properties()

    def read_properties(self) -> None:
        """Read all that keys go by at one moment: keys of before do not compare with others."""
        policy = self.queue.properties.application_sort_policy
        self.sorts_by_priority = self.queue.properties.application_sort_priority
        self.decider = self.deciders.of(self.queue)
        self.holds.clear()
        self.deciders.gated.pop(self, None)
        if self.decider.gate is not None:
            self.deciders.gated[self] = None
        self.deciders.moving.pop(self, None)
        # Nothing stands in the order of a leaf with a gate but what that lets in.
        if self.decider.moves and self.decider.gate is None:
            self.deciders.moving[self] = None
        self.deciders.timed.pop(self, None)
        if self.decider.step_ns:
            self.deciders.timed[self] = None
        is_kept = self.decider.moves or self.decider.gate is not None
        self.changed = dict.fromkeys(self.members.values()) if is_kept else None
        self.sorts_by_usage = "used" in self.decider.reads
        self.is_stateaware = policy is ApplicationSortPolicy.STATEAWARE

    def follow_time(self, now_ns: int) -> bool:
        """Say whether the keys may be others by now; they are until the next step of the time.

        By steps and not by plans, so that a planner that was made anew has the same keys.
        """
        # A step of time, and not the moment: two planners made at different times agree.
        clock_ns = now_ns - now_ns % self.decider.step_ns
        if clock_ns == self.clock_ns or self.changed is None:
            return False
        self.clock_ns = clock_ns
        self.changed.update(dict.fromkeys(self.members.values()))
        return True

    def read_limit(self) -> None:
        """Keep its quota, which is asked for at each try: only facts about it change it."""
        self.limit = self.queue.quota(self.redeemed)

    def measure(self, capacity: Resource) -> None:
        """Work out the limits and the base of the fair share, after those of the parent."""
        spec = self.queue.spec
        if self.parent is None:
            self.limit = self.fair_max = capacity
        else:
            self.read_limit()
            # What its parent may have at most bounds its share as well.
            inherited = self.parent.fair_max
            self.fair_max = shared(inherited | (spec.max or {})) if inherited else {}
        self.due = shared(self.fair_max | (spec.guaranteed or {}))
        if self.changed is not None:
            # A key may be a share of the cluster.
            self.changed.update(dict.fromkeys(self.members.values()))
        # Only queues with a quota are asked, and the cluster last.
        quotas = tuple(q for q in self.lineage if q.parent is not None and q.limit is not None)
        self.limits = (*quotas, self.lineage[-1])
        self.is_entitled = self.queue.is_entitled
        self.application_limits = tuple(
            level
            for level in self.lineage
            if level.queue.spec.max_applications or level.is_stateaware
        )

    def exported_priority(self) -> int:
        """Work the priority out from what is below; without anything waiting there is none."""
        highest = self.priorities.highest
        if highest == NO_PRIORITY:
            # Nothing waits: no offset makes a priority of that.
            return NO_PRIORITY
        properties = self.queue.properties
        if not (properties.priority_offset or properties.priority_fence):
            return highest
        return max(NO_PRIORITY, min(INT32_MAX, properties.priority_outside(highest)))

    @property
    def position(self) -> int:
        return self.queue.spec.position

    @property
    def is_quota(self) -> bool:
        """Whether it is configured: the root stands for the size of the cluster."""
        return self.parent is not None

    @property
    def reserving(self) -> dict[int, None]:
        return self.queue.reserving

    @property
    def with_place(self) -> tuple[int, ...]:
        """Return applications that have a place and may be blocked all the same.

        Those with a reservation, as others may have taken the place by force; and in a stateaware
        leaf those that hold something, as another one may start before them.
        """
        queue = self.queue
        return (*queue.reserving, *(queue.allocating if self.is_stateaware else ()))

    @property
    def name(self) -> str:
        return f"queue {self.queue.path}"

    @property
    def has_work(self) -> bool:
        return bool(self.open_lanes or self.children)

    # The path at the end: no two queues are equal.
    def key(self) -> ChildKey:
        """Rank among the siblings: priority and fair share, in the order the parent says.

        The larger pending amount decides between equals; a parent may also keep to the order of its
        configuration.
        """
        assert self.parent is not None
        properties = self.parent.queue.properties
        rank = self.parent.decider.queue_rank(self)
        if properties.application_sort_priority:
            return (-self.priority, rank, -self.waiting, self.queue.path)
        return (rank, -self.priority, -self.waiting, self.queue.path)

    def room_for(self, wanted: Wanted) -> bool:
        return has_room(self.limit, self.used, wanted, self.parent is None)

    def room(self) -> Resource:
        return room_left(self.limit, self.used)

    def may_start(self, app: "AppView") -> bool:
        if self.is_stateaware and not self.is_next_to_start(app):
            # A stateaware leaf starts one at a time.
            return False
        return self.queue.places.may_start(app.app.serial, self.starting)

    def places(self) -> int:
        """How many more applications may start."""
        free = self.queue.places.free(self.starting)
        return min(1, free) if self.is_stateaware else free

    def counts(self, app: "AppView") -> bool:
        """Whether the application has a place, not counting one by a reservation."""
        if self not in app.leaf.lineage:
            return False
        serial = app.app.serial
        by_state = app.app.state in COUNTS_AS_RUNNING
        return by_state or serial in self.queue.allocating or serial in self.starting

    def is_next_to_start(self, app: "AppView") -> bool:
        """In a stateaware leaf one application starts at a time, the oldest waiting one first."""
        return next(self.starting_before(app), None) is None

    def starting_before(self, app: "AppView") -> "Iterator[AppView]":
        return (
            other
            for other in self.members.values()
            if starts_before(
                other.app,
                app.app,
                is_starting=other.starting > 0,
                awaits_admission=other.awaiting_gang is not None,
            )
        )

    def refusing(self, wanted: Wanted) -> "QueueView | None":
        """Return the first of them that has no room, if any."""
        # From the leaf up: the nearest queue that refuses is the one that is named.
        for level in self.limits:
            if not has_room(level.limit, level.used, wanted, level.parent is None):
                return level
        return None

    def refusing_earmarked(self, wanted: Wanted, own: Resource) -> "QueueView | None":
        """As `refusing`, for an ask that was promised a part (`own`) of what the quotas keep."""
        for level in self.limits:
            if has_room(level.limit, level.used, wanted, level.parent is None):
                continue
            # A promise only adds room, and has to be looked at where there is none without it.
            if not level.is_quota:
                return level
            sizes = level.queue.quota_for(own, level.used, level.redeemed)
            if not has_room(sizes, level.used, wanted):
                return level
        return None

    def refusing_quota(self, wanted: Wanted) -> "QueueView | None":
        """As `refusing`, but the size of the cluster does not count."""
        gate = self.refusing(wanted)
        return gate if gate is not None and gate.is_quota else None


def order_of(ask: AskView) -> AskOrder:
    return ask.order


def key_of(app: AppView, priority: int | None = None) -> tuple[object, ...]:
    """Order the applications of a leaf; the serial, which tells arrival, decides in the end.

    The priority is that of what may be tried, unless another one is to count.
    """
    leaf, submitted_ns, serial = app.leaf, app.app.submitted_ns, app.app.serial
    rank, shown = leaf.decider.rank(app), app.priority if priority is None else priority
    if leaf.sorts_by_priority:
        return (-shown, rank, submitted_ns, serial)
    return (rank, -shown, submitted_ns, serial)
