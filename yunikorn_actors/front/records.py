"""The records of a front: plain data, which `Applications`, `Asks` and `Keys` change."""

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import CoreError
from yunikorn_actors.front.gang import PLAIN, Members, Treatment
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.node_rules import Rule

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Fits = Callable[[str], Any]


def nothing() -> None:
    """Where nothing is to be done."""


class Promise(Protocol[T_contra]):
    """The other side of a future. If the future was cancelled the value goes nowhere."""

    def keep(self, value: T_contra, otherwise: Callable[[], None] = nothing) -> None:
        """Have the future done; if it was cancelled make the other call."""

    def fail(self, error: BaseException) -> None: ...


class AskStage(Enum):
    """How far a record has come; it never goes back."""

    WAITS = auto()
    HELD = auto()
    WANTED = auto()
    OVER = auto()


@dataclass(eq=False, slots=True, kw_only=True)
class ApplicationRecord(Generic[L]):
    """One life of an application."""

    id: str
    accepted: Promise[Any]
    groups: Mapping[str, Members] = field(default_factory=dict)
    """Of a gang: how large a member of each group is, and how it is treated."""
    treatment: Treatment = PLAIN
    """Of its asks, those of groups excepted."""
    request: si.AddApplicationRequest | None = None
    """What the core was asked to take."""
    handle: Any = None
    """The application, as its program holds it, once it was accepted."""
    queue: str = ""
    """Where the core has put it; the one that it asked for if an older core does not say."""
    is_known: bool = False
    """The core has accepted it; what it says before that is about a former one of this id."""
    state: str = "New"
    ended: CoreError | None = None
    by_key: "dict[str, AskRecord[L]]" = field(default_factory=dict)
    """By the program's key: asks that wait, and leases that it has."""
    by_core_key: "dict[str, AskRecord[L]]" = field(default_factory=dict)
    """The same and placeholders, as the core names them."""
    withdrawn: set[str] = field(default_factory=set)
    """Keys of which the core may still say that they were placed."""


@dataclass(eq=False, slots=True, kw_only=True)
class AskRecord(Generic[L]):
    """An ask, and later its lease."""

    app: ApplicationRecord[L]
    key: str
    """As the program knows it; empty for placeholders."""
    core_key: str = ""
    """As the core knows it: `Keys` chooses it, but for placeholders."""
    promise: Promise[L] | None = None
    """None for placeholders, for what ran before, and once it is kept."""
    ask: si.AllocationAsk | None = None
    """As the core was asked; None for what ran before."""
    running: Running
    fits: Fits | None = None
    rule: Rule | None = None
    number: int = 0
    """Of the request, in the order in which asks were made."""
    stage: AskStage = AskStage.WAITS
    uuid: str = ""
    wanted: si.TerminationType = si.TerminationType.STOPPED_BY_RM
    """As what the lease is given back."""
    reason: str = ""
    """Why it is wanted back."""
    due_s: float = 0.0
    """When it is lost, if it is wanted back: of the monotonic clock."""
    lease: "LeaseRef[L] | None" = None
    """Of one that is placed, until it is over."""
    deadline_s: float = 0.0
    """Seconds after which it is withdrawn, counted from its request; 0 means never."""

    @property
    def is_placeholder(self) -> bool:
        return not self.key

    @property
    def is_held(self) -> bool:
        return self.stage is AskStage.HELD or self.stage is AskStage.WANTED

    @property
    def standing(self) -> str:
        if self.stage is AskStage.WAITS:
            return "waits to be placed" if self.promise is not None else "is being recovered"
        return f"has a lease on {self.running.node_id}"


class LeaseRef(weakref.ref[L]):
    """What the records have of a lease: the program has it, and may drop it."""

    __slots__ = ("record",)
    record: "AskRecord[L]"
    """Of one that the program is to release."""


class Asked(NamedTuple, Generic[L]):
    """One ask of the program, with the promise that its lease fulfils."""

    ask: si.AllocationAsk
    running: Running
    fits: Fits | None
    promise: Promise[L]
    deadline_s: float
    rule: Rule | None = None


class Unanswered(Generic[T]):
    """Requests that wait for an answer, by id; the core answers in the order of the requests.

    So an answer to one that was taken back meanwhile is not taken for the next one of its id.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, deque[T]] = {}

    # Several of the same id: one may have been taken back before its answer came.
    def asked(self, name: str, item: T) -> None:
        self._by_id.setdefault(name, deque()).append(item)

    def answered(self, name: str) -> T | None:
        """Return what this answer is about; None if it was not asked here."""
        items = self._by_id.get(name)
        if not items:
            return None
        item = items.popleft()
        if not items:
            del self._by_id[name]
        return item

    def forget(self) -> None:
        """Nothing of what was asked will be answered."""
        self._by_id.clear()
