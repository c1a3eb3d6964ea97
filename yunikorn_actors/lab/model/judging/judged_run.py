"""One run as it is judged: the cluster, what the plan at hand could know, and what was found."""

from collections import Counter
from dataclasses import dataclass, field

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster, Queue
from yunikorn_actors.lab.model.rules import admitting, placing
from yunikorn_actors.machines.settings import Settings


class Difference(CoreError):
    """The core did what the rules do not allow, or left undone what they say must happen."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass
class PlanAtHand:
    """What the plan that made the decision at hand could not know, or did not know yet."""

    is_fused: bool = False
    """Each plan is made on the truth, and carried out at once."""
    is_stale: bool = False
    """The decision at hand was made before something else happened."""
    as_of: int | None = None
    """What the plan at hand knew."""
    seen: int = 0
    """The same; in `fused`, what stood when it was made."""
    let_go: dict[str, int] = field(default_factory=dict)
    """Nodes that were still kept when this was planned, and the revision that ended it."""
    lost: dict[Ask, int] = field(default_factory=dict)
    """The same of asks for which one was kept."""
    came: dict[str, int] = field(default_factory=dict)
    """The revision at which a node came last."""
    uncounted: dict[str, int] = field(default_factory=dict)
    """Nodes that came while a decision for one of their name was on its way: a planner counts
    it there as soon as it hears of it. With the revision of that."""
    unpromised: set[str] = field(default_factory=set)
    """Allocations that used no reservation up."""
    moved: dict[Queue, int] = field(default_factory=dict)
    """Leaves in order of states where one started or took its place since this was planned."""
    entering: App | None = None
    """Its gang was admitted with the last decision: its placeholders are tried at once."""

    def begin(self, revision: int, as_of: int | None, *, is_stale: bool) -> None:
        """A message begins to be handled; a plan may have been made before other news."""
        self.is_stale = is_stale
        if as_of is None or as_of != self.as_of:
            self.entering = None
        self.as_of = as_of
        self.seen = seen = as_of if as_of is not None else revision if self.is_fused else 0
        self.let_go = {node: at for node, at in self.let_go.items() if at > seen}
        self.lost = {ask: at for ask, at in self.lost.items() if at > seen}
        self.uncounted = {node: at for node, at in self.uncounted.items() if at > seen}
        self.moved = {leaf: at for leaf, at in self.moved.items() if at > seen}


@dataclass
class LastRest:
    revision: int = 0
    at_ns: int = 0
    work_ended: bool = False
    """Whether something was placed since then and has ended: meanwhile less was owed."""


class JudgedRun:
    def __init__(self, settings: Settings) -> None:
        self.cluster = Cluster(settings)
        self.plan = PlanAtHand()
        self.last_rest = LastRest()
        self.quota_delays: dict[str, int] = {}
        """Of queues that are to come down, by which that time was worked out."""
        self.checks: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()

    def must(self, kind: str, ok: bool, text: str) -> None:
        self.checks[kind] += 1
        if not ok:
            raise Difference(kind, text)

    def should(self, kind: str, ok: bool, text: str, *, unsure: bool = False) -> None:
        """What was right when it was decided may not be the first choice any more."""
        if ok or not (self.plan.is_stale or self.cluster.owed or unsure):
            self.must(kind, ok, text)
        else:
            self.checks[kind] += 1
            self.undecided[kind] += 1


def name_of(ask: Ask) -> str:
    return f"{ask.app.id}/{ask.spec.key}"


def is_new(run: JudgedRun, ask: Ask) -> bool:
    """Whether the ask has room only where a node was kept when this was planned."""
    let_go = run.plan.let_go
    nodes = placing.fitting(run.cluster, ask) if let_go else []
    return bool(let_go) and {node.id for node in nodes} <= let_go.keys()


def is_for_others(run: JudgedRun, ask: Ask) -> bool:
    """Whether all room for it is where others have work go, or are promised what comes free.

    It may be theirs.
    """
    cluster = run.cluster
    others = [kept for kept in cluster.kept if kept.ask is not ask]
    made = {kept.node for kept in others if kept.victims or kept.claims}
    nodes = {node.id for node in placing.fitting(cluster, ask)}
    return bool(nodes) and nodes <= made


def waits_behind_gangs(run: JudgedRun, ask: Ask) -> bool:
    """Whether its gang has lapsed and another one fits, if only it may start in this plan."""
    cluster = run.cluster
    lapsed = ask.spec.placeholder and ask.app.lapsed is not None
    return lapsed and any(
        admitting.fits_before(cluster, other, ask.app) for other in sums.waiting(cluster)
    )


def was_of_age(run: JudgedRun, ask: Ask) -> bool:
    """Whether it had waited long enough for a node at the last rest, so in this plan too."""
    return run.last_rest.at_ns - ask.created > run.cluster.settings.reservation_delay_ns
