"""What stands in a partition, as its facts state it: plain records, and nothing worked out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from yunikorn_actors.config import NodeSortConfig, QueueProperties
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.queues import QueueSpec
from yunikorn_actors.values.resource import Resource


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
    reported: Resource = field(default_factory=dict)
    """All members that were reported as running, which were placeholders in a former life."""
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


Victims = Sequence[Placed]


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
        """Of questions that were asked since the last fact: see `sums.once`."""
