"""Why an ask waits, or what has become of it, in words and as values.

Everything that refuses a waiting ask is named, in the order in which the planner meets it. What
stands first hides nothing: taking it away helps only if nothing stands behind it.
"""

from collections.abc import Hashable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.values.durations import duration_of
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import APP_TAG_COMPLETING_DISABLE


class Cause(StrEnum):
    """Why an ask waits, as a word for programs; `Obstacle.text` says it to people."""

    RM_PAUSED = "RM_PAUSED"
    """Its resource manager is lost, or does not take its answers."""
    APP_STATE = "APP_STATE"
    """Its application is in a state in which nothing is placed."""
    PARKED = "PARKED"
    """It takes over a placeholder whose end is not confirmed yet."""
    ON_ITS_WAY = "ON_ITS_WAY"
    """A decision about it is on its way."""
    NODE_KEPT = "NODE_KEPT"
    """Its node is kept for another ask."""
    BACKING_OFF = "BACKING_OFF"
    """Its application rests because no node held its asks."""
    GANG_HELD = "GANG_HELD"
    """Its gang awaits admission: the quotas have no room for all of it."""
    GANG_WAITS = "GANG_WAITS"
    """It waits for the placeholders of its gang."""
    APP_LIMIT = "APP_LIMIT"
    """No further application may run in its queue, or of its user or group."""
    STATEAWARE_BUSY = "STATEAWARE_BUSY"
    """Another application of its leaf, whose policy is `stateaware`, goes first."""
    QUEUE_LIMIT = "QUEUE_LIMIT"
    """The maximum of a queue is used up."""
    CLUSTER_FULL = "CLUSTER_FULL"
    """All of the cluster is used."""
    USER_LIMIT = "USER_LIMIT"
    """The limit of its user or group is used up."""
    POLICY = "POLICY"
    """The policy of its queue lets it wait."""
    NO_NODE = "NO_NODE"
    """No node holds it."""
    PREDICATES = "PREDICATES"
    """The resource manager refuses the nodes that would hold it."""
    NEXT = "NEXT"
    """Nothing refuses it: it is tried in the next plan."""
    PLACED = "PLACED"
    """It does not wait: all of it has been placed."""
    REJECTED = "REJECTED"
    """It does not wait: it was never taken, or the core withdrew it."""


IN_WORDS: Final[dict[Cause, str]] = {
    Cause.RM_PAUSED: "the resource manager is away, or does not take its messages",
    Cause.APP_STATE: "the application is in a state in which nothing is placed",
    Cause.PARKED: "it takes over a placeholder that is being released",
    Cause.ON_ITS_WAY: "a node has been chosen and is being checked",
    Cause.NODE_KEPT: "a node is kept for it and has no room yet",
    Cause.BACKING_OFF: "its application rests, because no node held its asks",
    Cause.GANG_HELD: "its gang is not admitted: there is no room for all of it",
    Cause.GANG_WAITS: "its gang is not complete",
    Cause.APP_LIMIT: "no more applications may run",
    Cause.STATEAWARE_BUSY: "another application of its queue starts first",
    Cause.QUEUE_LIMIT: "a queue is at its maximum",
    Cause.CLUSTER_FULL: "the whole cluster has no room for it",
    Cause.USER_LIMIT: "a user or group is at its limit",
    Cause.POLICY: "the policy of its queue lets it wait",
    Cause.NO_NODE: "no node has room for it",
    Cause.PREDICATES: "the resource manager refuses the nodes with room",
    Cause.NEXT: "nothing: it is tried after the asks before it",
    Cause.PLACED: "nothing: all of it is placed",
    Cause.REJECTED: "nothing: it was not taken",
}
"""What asks wait for, where many of them are counted."""


class NodeCheck(StrEnum):
    """The checks of a node, in the order in which they are made."""

    NO_WORK = "NO_WORK"
    """The node is drained or not ready."""
    AWAITED = "AWAITED"
    """The core was restarted, and nobody has reported the node since."""
    KEPT = "KEPT"
    """It is kept for another ask."""
    DEVICES = "DEVICES"
    """It has no such devices, or too few of them even when empty."""
    TOO_SMALL = "TOO_SMALL"
    """It is too small even when empty."""
    FULL = "FULL"
    """Too little of it is free."""
    SPLIT = "SPLIT"
    """Enough of its devices is free, but not on one of them, or not on enough idle ones."""
    REFUSED = "REFUSED"
    """The resource manager refuses it."""


class NearMiss(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The node that is short by the least."""

    node_id: str
    """Id of the node."""
    check: NodeCheck
    """The check that it fails."""
    lacks: Resource
    """Of what is free there, or of its size if it is too small even when empty."""
    foreign: Resource = field(default_factory=dict)
    """How much of these types others use there, whom this core does not schedule."""


class Gang(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far the placeholders of a gang have come, and which of them is the next."""

    placed: int
    """How many placeholders have been placed."""
    size: int
    """All placeholders that were asked for, placed ones and others."""
    member: str = ""
    """Key of the placeholder ask that is tried next, if one waits."""
    cause: Cause | None = None
    """What refuses that one."""


class Obstacle(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that keeps an ask waiting, and the change that would remove it."""

    cause: Cause
    """The kind of obstacle."""
    text: str
    """The obstacle in words."""
    remedy: str = ""
    """Which change would take this obstacle away; empty if nothing has to be changed."""
    never: bool = False
    """It is larger than what this could ever give: waiting does not help, only a change of the
    configuration, of the cluster or of the ask."""
    where: str = ""
    """Path of the queue, or id of the node."""
    wanted: Resource = field(default_factory=dict)
    """What is asked for, of each type that is bounded there."""
    used: Resource = field(default_factory=dict)
    """How much of each of these types is used there."""
    promised: Resource = field(default_factory=dict)
    """How much of them is kept there for others."""
    maximum: Resource = field(default_factory=dict)
    """How much of them there may be at most."""
    lacks: Resource = field(default_factory=dict)
    """How much room is missing there."""
    running: int = 0
    """How many applications run there, or have a place."""
    running_max: int = 0
    """How many may."""
    holders: tuple[str, ...] = ()
    """Which those are; not more than ten are named."""
    gang: Gang | None = None
    """How far the gang has come, if that is what it waits for."""
    nodes: dict[str, int] = field(default_factory=dict)
    """For each check, how many nodes fail it first."""
    without: dict[str, int] = field(default_factory=dict)
    """For each check, how many nodes would take the ask if they passed this one as well."""
    exhausted: dict[str, int] = field(default_factory=dict)
    """For each type of resource, how many nodes have too little of it."""
    near_miss: NearMiss | None = None
    """The node that comes nearest to holding it."""
    kept_for: dict[str, str] = field(default_factory=dict)
    """For nodes that are reserved, for whom; not more than ten are named."""
    refusals: dict[str, int] = field(default_factory=dict)
    """For each reason of the resource manager's predicate, how many nodes it refused."""
    until_ns: int = 0
    """When the ask is tried again without any other change; 0 if that does not happen."""
    left_ns: int = 0
    """How long that is from now on."""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


class PreemptionVictim(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An allocation that is preempted, or would be."""

    key: str
    """Key of its ask."""
    application_id: str
    """Its application."""
    queue: str
    """Path of its queue."""
    node_id: str
    """Where it runs."""
    unit: str
    """Why it goes in this way: by itself, or as a part of what."""
    priority: int = 0
    """As the ask's."""
    ran_s: int = 0
    """For how many seconds it has run."""
    resource: Resource = field(default_factory=dict)
    """How much it uses."""


class PreemptionCost(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is lost when they go."""

    allocations: int
    """How many of them there are."""
    applications: int = 0
    """How many applications go whole."""
    lost: Resource = field(default_factory=dict)
    """Amounts times seconds: for how long each declares to run, or else has run."""


class Preempting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether victims are preempted for the ask, or it is preempted itself."""

    text: str
    """In words: what is preempted for it, or why nothing is."""
    victims: tuple[str, ...] = ()
    """Keys of the preempted allocations whose end is not confirmed yet."""
    tried_ns: int = 0
    """When the last search found no victims; 0 if none has failed."""
    next_ns: int = 0
    """When the next search may begin; 0 if it does not wait for a time."""
    goes: tuple[PreemptionVictim, ...] = ()
    """Who goes for it, or would if the search were made now.

    Of a victim: it, and what goes with it.
    """
    cost: PreemptionCost | None = None
    """What is lost with them."""
    against: dict[str, int] = field(default_factory=dict)
    """What stands against others as victims, and how many of those there are."""
    rule: str = ""
    """Of a victim: by which rule it goes; else empty."""
    for_queue: str = ""
    """Path of the queue for which it goes."""
    for_application_id: str = ""
    """Id of the application for which it goes; empty for a quota."""
    for_key: str = ""
    """Key of the ask for which it goes; empty for a quota."""


class Why(Struct, frozen=True, kw_only=True):
    """The answer to `explain`."""

    application_id: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    repeats: int
    """How many of its repeats wait."""
    since_ns: int
    """When the ask came; if it was rejected, when that was."""
    reserved: tuple[str, ...]
    """Nodes that are reserved for it."""
    obstacle: Obstacle
    """What the planner meets first."""
    preempting: Preempting | None = None
    """None if no repeat of it waits for room, and none is preempted."""
    behind: tuple[Obstacle, ...] = ()
    """What else refuses it, in the order of the planner."""
    queue: str = ""
    """Path of its queue."""
    position: int = 0
    """Its place among the asks that wait in its queue, from 1 on; 0 if it does not wait there."""
    waiting: int = 0
    """How many asks wait in its queue."""
    nodes_with_room: int | None = None
    """How many nodes would take it now, whatever else refuses it; None if they were not counted."""
    placed: dict[str, int] = field(default_factory=dict)
    """For each node, how many allocations of it there are."""
    at_ns: int = 0
    """When all this was true."""
    runtime: str = ""
    """For how long it declares to run, or why that counts as none; empty if it declares nothing."""

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """All of them, in the order of the planner."""
        return (self.obstacle, *self.behind)

    @property
    def decisive(self) -> Obstacle:
        """The first that waiting does not take away; if there is none, the first of all."""
        return decisive(self.obstacles)

    @property
    def waits(self) -> bool:
        """Whether a repeat of it waits; one that was placed or rejected is explained as well."""
        return self.repeats > 0

    @property
    def reason(self) -> str:
        """What to look at first, in words, and whether victims are on their way out for it."""
        # Only victims on their way out change what a person should do: wait.
        going = self.preempting is not None and self.preempting.victims
        more = f"; {self.preempting.text}" if self.preempting and going else ""
        return f"{self.decisive}{more}"

    def __str__(self) -> str:
        return f"{self.key} of {self.application_id}: {self.reason}"

    def report(self) -> str:
        """Say all of it, one thing on a line."""
        return "\n".join(self.lines())

    def lines(self) -> tuple[str, ...]:
        """The report, line by line."""
        return tuple(_lines(self))


EXPLAINED_MAX: Final = 1_000
"""Asks of one partition that are explained in one list."""
LOOKS_MAX: Final = 200_000
"""Nodes that are looked at for one list, at most; shapes that are left go without that look."""


class WaitingQuestion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which asks that wait are counted or listed, and where to go on: a partition has very many."""

    serial: int = 0
    """The application to go on with."""
    place: int = 0
    """How many of its asks were looked at."""
    cause: str = ""
    """Asks that wait for this first; empty for all."""
    text: str = ""
    """Asks with this in their key or queue, in the id or the user of their application."""
    listed: int = 0
    """How many of them are listed."""
    by_cause: bool = False
    """They are counted by cause as well, which takes longer."""
    explained: int = 0
    """How many of them are explained, each as by itself."""
    looks: int = 0
    """Nodes that may be looked at for that; the asks that are left go without that look."""
    sums: bool = False
    """Nothing of the above: they are added up by cause, queue and size."""


class WaitingAsk(Struct, frozen=True, kw_only=True):
    """One ask that waits, and what it waits for first."""

    application_id: str
    key: str
    cause: Cause
    text: str


SizeKey = tuple[tuple[tuple[str, int], ...], str, bool]
"""What asks of one size share: amounts, models of devices, whether one node alone will do."""


class WaitingSum(Struct, frozen=True, kw_only=True):
    """Repeats that wait in one queue for one reason, all of one size."""

    cause: Cause
    """Why it waits, as the planner found it last."""
    queue: str
    """Path of the queue."""
    size: Resource
    """How much each of them needs, in base units: thousandths of a cpu, bytes."""
    count: int
    """How many there are."""
    required_nodes: tuple[str, ...] = ()
    """The nodes that they require, if each of them requires one: other nodes help none of these."""
    gpu_model: str = ""
    """The models of devices that will do, as `"A100|V100"`; empty if any will."""

    @property
    def resources(self) -> Resource:
        """How much all of them need together."""
        return {kind: quantity * self.count for kind, quantity in self.size.items()}

    def plus(self, other: "WaitingSum") -> "WaitingSum":
        """Return the sum of two that are alike but for the nodes that they require."""
        nodes = tuple(sorted({*self.required_nodes, *other.required_nodes}))
        return replace(self, count=self.count + other.count, required_nodes=nodes)


def sum_of(cause: Cause, queue: str, size: SizeKey, nodes: Iterable[str], count: int) -> WaitingSum:
    amounts, models, _ = size
    return WaitingSum(
        cause=cause,
        queue=queue,
        size=dict(amounts),
        count=count,
        required_nodes=tuple(nodes),
        gpu_model=models,
    )


def alike(one: WaitingSum) -> tuple[Hashable, ...]:
    """Return what sums have in common that may be added up."""
    size = (*one.size.items(), one.gpu_model, bool(one.required_nodes))
    return (one.cause, one.queue, *size)


class WaitingAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found of the part that was looked at."""

    total: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    asks: tuple[WaitingAsk, ...] = ()
    is_all: bool = True
    """There is no more to look at."""
    serial: int = 0
    """Where to go on, if there is."""
    place: int = 0
    """How many asks of that application were looked at."""
    explained: tuple[Why, ...] = ()
    looks: int = 0
    """How many nodes were looked at."""
    sums: tuple[WaitingSum, ...] = ()


def decisive(obstacles: Iterable[Obstacle]) -> Obstacle:
    listed = list(obstacles)
    return next((it for it in listed if it.never), listed[0])


CLUSTER: Final = "the whole cluster"


def no_room(place: str) -> str:
    """Say that a queue, a limit or the cluster has no room for an ask."""
    return f"{place} has no room for it"


def what_became(state: str, message: str) -> str:
    """Say how an application has ended, and what its user may do."""
    # An application that failed may be mended; a completed one only needs to be sent again.
    if state != ApplicationState.COMPLETED:
        why = f" ({message})" if message else ""
        first = "mend that and " if state == ApplicationState.REJECTED else ""
        return f"it is {state}{why}; {first}submit it again"
    return (
        "it is Completed, because it had no work for a while; submit it again, with tag "
        f"{APP_TAG_COMPLETING_DISABLE}=true if it is to stay"
    )


def _lines(why: Why) -> Iterator[str]:
    yield f"{why.key} of {why.application_id} {_head(why)}"
    for number, obstacle in enumerate(why.obstacles, 1):
        yield f"  {number}. {obstacle.cause}: {obstacle.text}"
        if obstacle.remedy:
            yield f"     {obstacle.remedy}"
    if why.runtime:
        yield f"  declared run time: {why.runtime}"
    # Without a place it does not wait in its queue, so most of the report says nothing.
    if not why.position:
        yield from _preemption(why)
        return
    if why.nodes_with_room is not None:
        yield f"  nodes with room for it now: {why.nodes_with_room}"
    if why.reserved:
        yield f"  reserved for it: {', '.join(why.reserved)}"
    if why.placed:
        nodes = ", ".join(f"{count} on {node}" for node, count in why.placed.items())
        yield f"  placed already: {nodes}"
    yield from _preemption(why)


def _preemption(why: Why) -> Iterator[str]:
    its = why.preempting
    if its is None:
        return
    wait_ns = its.next_ns - why.at_ns
    more = f" (the next search may begin in {duration_of(wait_ns)})" if wait_ns > 0 else ""
    yield f"  preemption: {its.text}{more}"
    yield from (f"    {line}" for line in who_goes(its))


def who_goes(its: Preempting) -> Iterator[str]:
    """Yield in words the victims, the cost, and the objections against the others."""
    goes = "goes" if its.victims or its.rule else "would go"
    for it in its.goes:
        ran = f"it has run for {it.ran_s} s"
        yield f"{goes}: {it.key} of {it.application_id} on {it.node_id}, {ran}; {it.unit}"
    yield from at_what_cost(its)


def at_what_cost(its: Preempting) -> Iterator[str]:
    """Yield in words what is lost with those that go, and what stands against the others."""
    if its.cost is not None and its.goes:
        gangs = f", {its.cost.applications} whole applications" if its.cost.applications else ""
        yield f"cost: {its.cost.allocations} allocations{gangs}"
    for reason, count in its.against.items():
        yield f"against {count} others: {reason}"


def _head(why: Why) -> str:
    if not why.waits:
        return "does not wait"
    waited = f"has waited for {duration_of(why.at_ns - why.since_ns)} in {why.queue}"
    repeats = f", {why.repeats} repeats of it" if why.repeats > 1 else ""
    if not why.position:
        return waited + repeats
    return f"{waited}{repeats}, place {why.position} of {why.waiting}"
