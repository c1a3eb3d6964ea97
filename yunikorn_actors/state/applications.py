"""Applications and their life.

The two tables are the state machine: what is not in them is not a transition (R-134). A leaf whose
sort policy is `stateaware` lets an application take two steps from Accepted to Running, by way of
Starting; its table holds only the rows that differ.

`serial` tells one life of an application id from the next, as an id may be submitted again (H-24).
"""

from enum import StrEnum
from typing import Self

from msgspec import Struct, field
from msgspec.structs import asdict

from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.gates import GateKind, Places
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource, saturated

# Resource seconds: what an application has used over its life, by type of node.
#
# An allocation is charged when it ends, and before it gets another size, for the whole seconds
# since it was made; so nothing is done about it while it runs. What was preempted and what
# placeholders used count apart.

ResourceSeconds = dict[str, Resource]
"""Type of node to type of resource to quantity times seconds."""


class UsageHistory(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    used: ResourceSeconds = field(default_factory=dict)
    placeholder: ResourceSeconds = field(default_factory=dict)
    preempted: ResourceSeconds = field(default_factory=dict)

    def charge(self, allocation: Allocation, until_ns: int) -> None:
        """Add what an allocation has used since it was charged the last time."""
        # Whole seconds, less those that were charged before: rounding never adds up.
        lived_s = (until_ns - allocation.allocated_ns) // SECOND
        seconds = lived_s - allocation.charged_s
        if not seconds:
            return
        allocation.charged_s = lived_s
        amounts = self._part_of(allocation).setdefault(allocation.instance_type, {})
        for kind, quantity in allocation.resource.items():
            amounts[kind] = amounts.get(kind, 0) + quantity * seconds

    def saturated(self) -> Self:
        """Give it as a message can hold it: the sums are exact, and may be beyond an int64."""
        return type(self)(
            **{
                name: {instance: saturated(amounts) for instance, amounts in part.items()}
                for name, part in asdict(self).items()
            }
        )

    def _part_of(self, allocation: Allocation) -> ResourceSeconds:
        # Preempted counts before placeholder: a preempted placeholder is in the first.
        if allocation.beneficiary is not None:
            return self.preempted
        return self.placeholder if allocation.spec.placeholder else self.used


def tracked(part: ResourceSeconds) -> str:
    """Write one part down as it stands in a summary."""
    entries = (
        f"{instance}:{kind}={quantity}"
        for instance, amounts in sorted(part.items())
        for kind, quantity in sorted(amounts.items())
    )
    return f"TrackedResource{{{','.join(entries)}}}"


# Swaps and task groups: what is remembered of placeholders and of the swaps in flight.
#
# A placeholder is an allocation that a real ask of the same task group takes over. The swap is in
# flight from the moment the placeholder is asked back until that is confirmed; the real ask is
# *parked* meanwhile, neither pending nor allocated. If the real ask goes to another node, that
# node is charged at once, and everything else keeps the placeholder's charge.


class TaskGroup(Struct, kw_only=True, gc=False):
    """How the placeholders of one group of an application fared (G17)."""

    count: int = 0
    replaced: int = 0
    timed_out: int = 0
    """Those that ended in any other way than a swap."""

    @property
    def alive(self) -> int:
        """Placeholders that wait or stand; members of the group wait for them."""
        return self.count - self.replaced - self.timed_out


class Swap(Struct, frozen=True, kw_only=True, gc=False):
    """One repeat of a real ask is parked until its placeholder is gone."""

    placeholder: str
    """The UUID of the placeholder."""
    key: str
    node_id: str
    crosses: bool
    """The real one goes to another node, which is charged already."""


class Incoming(Struct, frozen=True, kw_only=True, gc=False):
    """Room on a node that a parked ask holds until its placeholder elsewhere is gone."""

    application_id: str
    resource: Resource
    devices: Devices = ()


# What a user has in use, queue by queue.
#
# A usage exists as long as an application of that user is attached to a queue at or below it, so
# applications can hold on to it; an empty one is not shown.


class Usage:
    __slots__ = ("amounts", "attached", "reserving", "running")

    def __init__(self) -> None:
        self.amounts: Resource = {}
        self.running: dict[int, None] = {}
        """Serials of the applications that have been given something and are not ending."""
        self.reserving: dict[int, None] = {}
        """Those that were given nothing yet and have a node kept for them: they take a place."""
        self.attached = 0

    def places(self, most: int) -> Places:
        return Places(most, len(self.running), self.running, self.reserving)

    def is_empty(self) -> bool:
        return not self.running and not any(self.amounts.values())


class ApplicationState(StrEnum):
    NEW = "New"
    ACCEPTED = "Accepted"
    STARTING = "Starting"
    RUNNING = "Running"
    REJECTED = "Rejected"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    FAILING = "Failing"
    FAILED = "Failed"
    EXPIRED = "Expired"
    RESUMING = "Resuming"


class ApplicationEvent(StrEnum):
    """What drives a transition; the resource manager gets these texts."""

    REJECT = "rejectApplication"
    RUN = "runApplication"
    COMPLETE = "completeApplication"
    FAIL = "failApplication"
    EXPIRE = "expireApplication"
    RESUME = "resumeApplication"


_S, _E = ApplicationState, ApplicationEvent

TRANSITIONS: dict[tuple[ApplicationState, ApplicationEvent], ApplicationState] = {
    (_S.NEW, _E.REJECT): _S.REJECTED,
    (_S.NEW, _E.RUN): _S.ACCEPTED,
    (_S.RESUMING, _E.RUN): _S.ACCEPTED,
    (_S.ACCEPTED, _E.RUN): _S.RUNNING,
    (_S.STARTING, _E.RUN): _S.RUNNING,
    (_S.COMPLETING, _E.RUN): _S.RUNNING,
    (_S.ACCEPTED, _E.COMPLETE): _S.COMPLETING,
    (_S.STARTING, _E.COMPLETE): _S.COMPLETING,
    (_S.RUNNING, _E.COMPLETE): _S.COMPLETING,
    (_S.COMPLETING, _E.COMPLETE): _S.COMPLETED,
    (_S.NEW, _E.FAIL): _S.FAILING,
    (_S.ACCEPTED, _E.FAIL): _S.FAILING,
    (_S.STARTING, _E.FAIL): _S.FAILING,
    (_S.RUNNING, _E.FAIL): _S.FAILING,
    (_S.FAILING, _E.FAIL): _S.FAILED,
    (_S.NEW, _E.RESUME): _S.RESUMING,
    (_S.ACCEPTED, _E.RESUME): _S.RESUMING,
    (_S.COMPLETED, _E.EXPIRE): _S.EXPIRED,
    (_S.FAILED, _E.EXPIRE): _S.EXPIRED,
    (_S.REJECTED, _E.EXPIRE): _S.EXPIRED,
}
"""(Running, RUN) is absent on purpose: it is no transition, nothing is announced."""

STATEAWARE_TRANSITIONS = {(_S.ACCEPTED, _E.RUN): _S.STARTING}

COUNTS_AS_RUNNING = frozenset({_S.STARTING, _S.RUNNING})
COUNTS_BY_HOLDING = frozenset({_S.ACCEPTED, _S.RESUMING})
"""These count towards a maximum of running applications as long as they hold something."""
SCHEDULABLE = frozenset({_S.ACCEPTED, _S.STARTING, _S.RUNNING, _S.COMPLETING})
FINISHED = frozenset({_S.COMPLETED, _S.FAILED, _S.REJECTED, _S.EXPIRED})
# Resuming takes asks: a soft gang goes on as a plain application.
TAKES_NO_ASKS = FINISHED | {_S.FAILING}
GANG_IS_OVER = frozenset({_S.RESUMING, _S.FAILING})
# The count of a user or group is left by the first of these states and not by the last.
LEAVES_USER_COUNT = frozenset({_S.COMPLETING, _S.FAILING}) | FINISHED


def next_state(
    state: ApplicationState, event: ApplicationEvent, *, stateaware: bool
) -> ApplicationState | None:
    """Return the state that follows, or None where the event is no transition."""
    key = (state, event)
    # Stateaware first: its table holds only what differs.
    if stateaware and key in STATEAWARE_TRANSITIONS:
        return STATEAWARE_TRANSITIONS[key]
    return TRANSITIONS.get(key)


class ApplicationSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the resource manager gave when it submitted the application."""

    application_id: str
    queue_name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    timeout_ms: int = 0
    placeholder_ask: Resource = field(default_factory=dict)
    gang_style: str = ""
    created_ns: int | None = None
    """From the creation time tag, where it was created before this life of the core."""
    unresolved: str = ""
    """Why the user cannot be resolved; such an application is rejected."""

    @property
    def is_gang(self) -> bool:
        return any(self.placeholder_ask.values())

    @property
    def is_hard(self) -> bool:
        """Whether an incomplete gang fails at its timeout; else it goes on without its rest."""
        return self.gang_style.lower() == "hard"


class Timer(Struct, frozen=True, kw_only=True, gc=False):
    """An armed timer of an application; a firing with another generation is stale."""

    generation: int
    due_ns: int


STATE_LOG_MAX = 100


class StateEntry(Struct, frozen=True, array_like=True, gc=False):
    at_ns: int
    state: ApplicationState


class StateLog(Struct, gc=False):
    """The states of an application and when it entered each, the newest last.

    One that idles between its tasks goes to and fro for as long as it lives, so the oldest entries
    are dropped and counted.
    """

    entries: list[StateEntry]
    dropped: int = 0

    def note(self, at_ns: int, state: ApplicationState) -> None:
        self.entries.append(StateEntry(at_ns, state))
        if len(self.entries) > STATE_LOG_MAX:
            del self.entries[0]
            self.dropped += 1


class FinishedApplication(Struct, kw_only=True, gc=False):
    """What is remembered of an application that has ended, or was never taken."""

    spec: ApplicationSpec
    serial: int
    queue: str
    state: ApplicationState
    message: str
    state_log: StateLog
    submitted_ns: int
    started_ns: int = 0
    history: UsageHistory = field(default_factory=UsageHistory)


class Application:
    """One life of an application in one partition; changed by facts alone.

    It is a record: nearly all members are what is true of it, and facts write each of them.
    """

    __slots__ = (
        "allocated",
        "allocated_books",
        "allocations",
        "asks",
        "group",
        "group_usages",
        "history",
        "id",
        "is_admitted",
        "lapsed_ns",
        "owed",
        "pending",
        "pending_books",
        "placed",
        "placeholders",
        "queue",
        "reported",
        "reservation_count",
        "run_limit",
        "serial",
        "spared",
        "spec",
        "started_ns",
        "state",
        "state_log",
        "submitted_ns",
        "swaps",
        "task_groups",
        "timers",
        "usages",
        "waiting_placeholders",
    )

    def __init__(
        self,
        spec: ApplicationSpec,
        *,
        serial: int,
        queue: Queue,
        usages: tuple[Usage, ...],
        now_ns: int,
    ) -> None:
        self.spec = spec
        self.id = spec.application_id
        self.serial = serial
        self.queue = queue
        self.usages = usages
        self.group = ""
        """The group in which it counts, decided once."""
        self.group_usages: tuple[Usage, ...] = ()
        self.state = ApplicationState.NEW
        self.submitted_ns = now_ns
        self.started_ns = 0
        self.state_log = StateLog([StateEntry(now_ns, ApplicationState.NEW)])
        self.timers: dict[str, Timer] = {}
        self.asks: dict[str, Ask] = {}
        self.allocations: dict[str, Allocation] = {}
        self.reservation_count = 0
        self.pending: Resource = {}
        self.allocated: Resource = {}
        self.placeholders: Resource = {}
        # Tuples of books that one amount is written into; the books themselves are never replaced,
        # so the tuple stays right.
        self.allocated_books: tuple[Resource, ...] = ()
        self.pending_books: tuple[Resource, ...] = (
            self.pending,
            *(level.pending for level in queue.lineage),
        )
        self.task_groups: dict[str, TaskGroup] = {}
        self.swaps: dict[str, Swap] = {}
        """Swaps in flight, by the UUID of their placeholder."""
        self.owed: dict[str, str] = {}
        """Keys of asks that lost the node they were moving to, by the UUID of their placeholder:
        they are tried first when it is gone. An entry stays until another ask is owed."""
        self.waiting_placeholders = 0
        """Repeats of placeholder asks that wait; real asks wait for them."""
        self.run_limit = GateKind.NONE
        self.is_admitted = False
        """There was room for the whole gang, so its placeholders may be placed."""
        self.lapsed_ns = 0
        """When the last commitment of the gang came to nothing; it waits behind others since."""
        self.placed: Resource = {}
        """All placeholders that were placed since the gang came, those that ended included."""
        self.reported: Resource = {}
        """All members that were reported as running: each was a placeholder once, as a rule in a
        former life of the core."""
        self.spared: Resource = {}
        """How much less than its `placeholder_ask` makes the gang whole: members that are smaller
        than their placeholders, and placeholders that no member came for."""
        self.history = UsageHistory()
        self.gather_books()

    def gather_books(self) -> None:
        """Gather every book that one allocation is written into.

        The books are changed in place and never replaced, so this is done once for each group, and
        the hot path touches no attribute at all.
        """
        books = [self.allocated]
        books += [level.allocated for level in self.queue.lineage]
        books += [usage.amounts for usage in self.usages]
        books += [usage.amounts for usage in self.group_usages]
        self.allocated_books = tuple(books)

    @property
    def placeholder_books(self) -> tuple[Resource, ...]:
        """The same for a placeholder; few applications have any, so it is not kept."""
        # A placeholder counts in the same queues and limits, and apart in its application.
        return (self.placeholders, *self.allocated_books[1:])

    @property
    def age(self) -> tuple[int, int]:
        """The older is smaller."""
        # The serial settles equal times: the one that came first is older.
        return (self.submitted_ns, self.serial)

    @property
    def counted_in(self) -> str:
        """The group that counts it now; its usage stays there to the end."""
        return "" if self.state in LEAVES_USER_COUNT else self.group

    # Accepted with a swap in flight: its first member runs as soon as the placeholder is gone.
    @property
    def is_starting(self) -> bool:
        """Its first real allocation stands or is on its way: in a stateaware leaf others wait."""
        if self.state is ApplicationState.ACCEPTED:
            return bool(self.swaps)
        return self.state is ApplicationState.STARTING

    @property
    def has_placeholders(self) -> bool:
        return any(self.placeholders.values())

    def waiting_asks(self) -> list[Ask]:
        """Return the asks that wait, in the order in which they are tried."""
        return sorted((ask for ask in self.asks.values() if ask.remaining), key=Ask.order)
