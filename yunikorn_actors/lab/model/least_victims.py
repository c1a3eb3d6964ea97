"""Which victims should go for a guarantee: without any search, all sets of them are compared.

Written from the pages on preemption, and for partitions so small that this takes no time.
Guarantees and maxima name one type, the first; what is free on a node counts in all types.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field

Amounts = tuple[int, int]
"""Of both types."""
Kind = Literal["whole", "application", "remains", "alone", "surplus", "broken"]
"""A whole gang, an application of no gang, and what is left of a broken gang, each of which goes as
one; and single work."""
AS_ONE: Final = ("whole", "application", "remains")
UNITS_MAX: Final = 11
"""So many that may go are looked at: of more there are too many sets."""
_NO_IMPORTANCE: Final = -(1 << 40)
_PARTS: Final = 1_000_000
"""The share of a partition is counted in millionths."""


class QueueRules(Struct, kw_only=True):
    """What the configuration says of a queue."""

    path: str
    parent: str = ""
    guaranteed: int | None = None
    maximum: int | None = None
    offset: int = 0
    fences_priority: bool = False
    fences_preemption: bool = False
    is_disabled: bool = False
    unit: str = ""
    budget: int | None = None
    budget_is_share: bool = False
    window_s: int = 0
    cooldown_s: int = 0
    quota_delay_s: int = 0


class Job(Struct, kw_only=True):
    """An application."""

    id: str
    queue: str
    style: str = ""
    """Of its gang; it has none without."""
    asked: Amounts = (0, 0)
    runtime_s: int | None = None


class Work(Struct, kw_only=True):
    """What runs."""

    key: str
    job: str
    node: str
    size: Amounts
    since_s: int
    priority: int = 0
    opted_out: bool = False
    originator: bool = False
    is_bound: bool = False
    in_group: bool = True
    """Whether it belongs to a task group, where its application is a gang."""
    is_placeholder: bool = False


class Unit(NamedTuple):
    """What goes or stays."""

    kind: Kind
    works: tuple[Work, ...]


class Claim(Struct, kw_only=True):
    """Asks that are alike, or the placeholders of one gang that wait."""

    queue: str
    priority: int
    sizes: tuple[Amounts, ...]
    is_gang: bool


class Small(Struct, kw_only=True):
    """A partition, as far as it matters here."""

    queues: dict[str, QueueRules]
    jobs: dict[str, Job]
    nodes: dict[str, Amounts]
    works: list[Work]
    went: dict[str, list[int]] = field(default_factory=dict)
    """By queue the moments at which something was preempted, in seconds."""

    def lineage(self, path: str) -> list[QueueRules]:
        """Return a queue and all above it."""
        found = [self.queues[path]]
        while found[-1].parent:
            found.append(self.queues[found[-1].parent])
        return found

    def running_in(self, path: str) -> list[Work]:
        """Return what runs in a queue and below it."""
        return [
            it for it in self.works
            if path in {level.path for level in self.lineage(self.jobs[it.job].queue)}
        ]  # fmt: skip

    def used(self, path: str) -> int:
        return sum(it.size[0] for it in self.running_in(path))

    def rooms(self) -> dict[str, Amounts]:
        """Return what is free on each node."""
        rooms = dict(self.nodes)
        for it in self.works:
            rooms[it.node] = _less(rooms[it.node], it.size)
        return rooms


def _less(one: Amounts, other: Amounts) -> Amounts:
    return one[0] - other[0], one[1] - other[1]


def _more(one: Amounts, other: Amounts) -> Amounts:
    return one[0] + other[0], one[1] + other[1]


# -- who may go


def _is_reached(small: Small, claim: Claim, work: Work) -> bool:
    """Whether work is not fenced off, in another leaf, and not more important."""
    path = small.jobs[work.job].queue
    if path == claim.queue or small.queues[path].is_disabled:
        return False
    below, _ = _to_the_meeting(small, claim, work)
    if any(it.fences_preemption for it in below):
        return False
    return importance(small, claim, work) <= 0


def importance(small: Small, claim: Claim, work: Work) -> int:
    """Say how much more important work is than a claim, where their paths meet."""
    below, theirs = _to_the_meeting(small, claim, work)
    return _seen(theirs, work.priority) - _seen(below, claim.priority)


def _to_the_meeting(
    small: Small, claim: Claim, work: Work
) -> tuple[list[QueueRules], list[QueueRules]]:
    """Return the queues of both sides below the one where their paths meet."""
    asking, giving = small.lineage(claim.queue), small.lineage(small.jobs[work.job].queue)
    common = {it.path for it in giving} & {it.path for it in asking}
    return [it for it in asking if it.path not in common], [
        it for it in giving if it.path not in common
    ]


def _seen(levels: Iterable[QueueRules], priority: int) -> int:
    """Return how important something is to those beside the last of these queues."""
    for level in levels:
        priority = level.offset if level.fences_priority else priority + level.offset
    return priority


def _may_go(small: Small, claim: Claim, work: Work, now_s: int) -> bool:
    cooled_s = work.since_s + small.queues[small.jobs[work.job].queue].cooldown_s
    return _is_reached(small, claim, work) and not work.is_bound and cooled_s <= now_s


def units_of(small: Small, claim: Claim, now_s: int) -> Iterator[Unit]:
    """Yield all that may go for a claim, each with what goes with it."""
    for job in small.jobs.values():
        its = tuple(it for it in small.works if it.job == job.id)
        for unit in _units_of_job(job, small.queues[job.queue].unit, its):
            # A gang that would go may be held back by any part of it, what is surplus as well.
            if unit.works and all(_may_go(small, claim, it, now_s) for it in unit.works):
                yield unit


def kind_of_each(small: Small) -> dict[str, Kind]:
    """Return what each work is to its application, by its key."""
    found: dict[str, Kind] = {}
    for job in small.jobs.values():
        its = tuple(it for it in small.works if it.job == job.id)
        for unit in _units_of_job(job, small.queues[job.queue].unit, its):
            found.update(dict.fromkeys([it.key for it in unit.works], unit.kind))
    return found


def _units_of_job(job: Job, unit: str, its: tuple[Work, ...]) -> Iterator[Unit]:
    goes_whole = job.style.lower() == "hard" if not unit else unit == "application"
    if not goes_whole:
        yield from (Unit("alone", (it,)) for it in its)
        return
    surplus = [it for it in its if job.style and not (it.in_group or it.originator)]
    total = (
        sum(it.size[0] for it in its if it.in_group),
        sum(it.size[1] for it in its if it.in_group),
    )
    is_whole = total[0] >= job.asked[0] and total[1] >= job.asked[1]
    if not job.style:
        yield Unit("application", its)
    elif is_whole or unit:
        yield Unit("whole" if is_whole else "remains", its)
    else:
        yield from (Unit("broken", (it,)) for it in its)
    if is_whole:
        yield from (Unit("surplus", (it,)) for it in surplus)


# -- what goes together


class _Sets:
    """All sets of units, and what comes of each."""

    def __init__(self, small: Small, claim: Claim, now_s: int) -> None:
        self._small, self._claim, self._now_s = small, claim, now_s
        self.units = [*units_of(small, claim, now_s)]
        self._rooms = small.rooms()
        common = {it.path for it in small.lineage(claim.queue)}
        self._guards = {
            path: small.used(path) - it.guaranteed
            for path, it in small.queues.items()
            if it.guaranteed is not None and path not in common
        }
        self._budgets = {path: n for path in small.queues if (n := self._budget(path)) is not None}
        self._quotas = {
            it.path: it.maximum - small.used(it.path)
            for it in small.lineage(claim.queue)
            if it.maximum is not None
        }
        self.has_quota = bool(self._quotas)
        rules = small.queues[claim.queue]
        left = (rules.guaranteed or 0) - small.used(claim.queue)
        total = sum(size[0] for size in claim.sizes)
        if claim.is_gang:
            self.most = len(claim.sizes) if total <= left else 0
        else:
            self.most = min(len(claim.sizes), max(0, left) // max(1, claim.sizes[0][0]))

    def _budget(self, path: str) -> int | None:
        """Return how many may go yet."""
        rules, small = self._small.queues[path], self._small
        if rules.budget is None:
            return None
        spent = sum(1 for at in small.went.get(path, ()) if at + rules.window_s > self._now_s)
        running = sum(small.jobs[it.job].queue == path for it in small.works)
        most = (
            -(-(running + spent) * rules.budget // 100) if rules.budget_is_share else rules.budget
        )
        return most - spent

    def all(self) -> Iterator[list[Unit]]:
        """Yield the sets that may go."""
        for number in range(1 << len(self.units)):
            some = [unit for at, unit in enumerate(self.units) if number >> at & 1]
            if self.are_allowed(some):
                yield some

    def are_allowed(self, units: Sequence[Unit]) -> bool:
        """Whether guarantees and budgets let all of these go."""
        small = self._small
        works = [it for unit in units for it in unit.works]
        if len({it.key for it in works}) < len(works):
            return False
        taken, counts = dict.fromkeys(self._guards, 0), dict.fromkeys(self._budgets, 0)
        for it in works:
            for level in small.lineage(small.jobs[it.job].queue):
                if level.path in taken:
                    taken[level.path] += it.size[0]
                if level.path in counts:
                    counts[level.path] += 1
        return all(not n or n <= self._guards[path] for path, n in taken.items()) and all(
            not n or n <= self._budgets[path] for path, n in counts.items()
        )

    def served(self, units: Sequence[Unit]) -> int:
        """Return how many have room when these are gone; of a gang all or none."""
        small, claim = self._small, self._claim
        rooms, quotas = dict(self._rooms), dict(self._quotas)
        for it in (work for unit in units for work in unit.works):
            rooms[it.node] = _more(rooms[it.node], it.size)
            for level in small.lineage(small.jobs[it.job].queue):
                if level.path in quotas:
                    quotas[level.path] += it.size[0]
        least = min(quotas.values(), default=1 << 60)
        if claim.is_gang:
            wanted = sorted(claim.sizes, reverse=True)
            fits = sum(size[0] for size in wanted) <= least and _have_room(rooms, wanted)
            return self.most if fits else 0
        size = claim.sizes[0]
        places = sum(
            min(has // need for has, need in zip(room, size, strict=True) if need)
            for room in rooms.values()
            if min(room) >= 0
        )
        return max(0, min(self.most, places, least // max(1, size[0])))


def _have_room(rooms: dict[str, Amounts], wanted: Sequence[Amounts]) -> bool:
    if not wanted:
        return True
    size, *others = wanted
    tried: set[Amounts] = set()
    for node, room in rooms.items():
        if room[0] >= size[0] and room[1] >= size[1] and room not in tried:
            tried.add(room)
            if _have_room({**rooms, node: _less(room, size)}, others):
                return True
    return False


# -- what it costs


class Lost(NamedTuple):
    """Of one kind of single work; less is better."""

    number: int
    importance: int
    work: int


class Cost(NamedTuple):
    """Of a set that goes, in the order in which sets are compared; less is better."""

    gangs: int
    """Whole ones; then what else goes as one."""
    applications: int
    remains: int
    importance: int
    work: int
    opted_out: int
    """How much single work did."""
    originators: int
    alone: Lost
    surplus: Lost
    broken: Lost

    @property
    def of_gangs(self) -> tuple[int, ...]:
        return self[:5]

    @property
    def of_single_work(self) -> tuple[int, int, Lost, Lost, Lost]:
        return self[5:]


def _work_of(small: Small, works: Iterable[Work], now_s: int) -> int:
    """Return the run time times the size of what is lost."""
    capacity = [sum(node[at] for node in small.nodes.values()) for at in (0, 1)]
    total = 0
    for it in works:
        size = max(n * _PARTS // whole for n, whole in zip(it.size, capacity, strict=True) if whole)
        declared_s = small.jobs[it.job].runtime_s
        total += (now_s - it.since_s if declared_s is None else declared_s) * size
    return total


def cost_of(small: Small, claim: Claim, units: Sequence[Unit], now_s: int) -> Cost:
    def most_of(works: Sequence[Work]) -> int:
        return max((importance(small, claim, it) for it in works), default=_NO_IMPORTANCE)

    def lost(kind: Kind) -> Lost:
        works = [it for unit in units if unit.kind == kind for it in unit.works]
        return Lost(len(works), most_of(works), _work_of(small, works, now_s))

    kinds = [unit.kind for unit in units]
    members = [it for unit in units if unit.kind in AS_ONE for it in unit.works]
    single = [it for unit in units if unit.kind not in AS_ONE for it in unit.works]
    return Cost(
        kinds.count("whole"),
        kinds.count("application"),
        kinds.count("remains"),
        most_of(members),
        _work_of(small, members, now_s),
        sum(it.opted_out for it in single),
        sum(it.originator for it in single),
        lost("alone"),
        lost("surplus"),
        lost("broken"),
    )


# -- judging


def faults_of(small: Small, claim: Claim, gone: frozenset[str], now_s: int) -> list[str]:
    """Name what is wrong with the victims that went together for a claim, given by their keys."""
    sets = _Sets(small, claim, now_s)
    if len(sets.units) > UNITS_MAX:
        return []
    units = _as_units(sets.units, gone)
    names = ", ".join(sorted(gone)) or "nobody"
    if units is None:
        return [f"{names} went, and a part of this may not go, or not without others"]
    if not sets.are_allowed(units):
        return [f"{names} went, and a guarantee or a budget keeps a part of this"]
    if not gone and sets.served(()):
        return [f"{sets.served(())} of {claim.sizes} have room, and wait"]
    faults = _worse(claim, sets, units, lambda some: cost_of(small, claim, some, now_s))
    return [f"{names} went for {claim.sizes}: {it}" for it in faults]


def _as_units(units: Sequence[Unit], gone: frozenset[str]) -> list[Unit] | None:
    """Divide what went into units, the whole ones first; None where they do not make it up."""
    left, found = set(gone), list[Unit]()
    for unit in sorted(units, key=lambda it: it.kind not in AS_ONE):
        keys = {it.key for it in unit.works}
        if keys <= left:
            found.append(unit)
            left -= keys
    return None if left else found


def _worse(
    claim: Claim, sets: _Sets, units: Sequence[Unit], cost: Callable[[Sequence[Unit]], Cost]
) -> Iterator[str]:
    served, its = sets.served(units), cost(units)
    rivals = [(theirs, them) for them in sets.all() if (theirs := sets.served(them)) >= served]
    most = max([theirs for theirs, _ in rivals])
    costs = [(cost(them), them) for theirs, them in rivals if theirs == most]
    if most > served:
        # A maximum is looked at ask by ask: the others may be served by the next plan.
        if not (units and served and sets.has_quota):
            yield f"{served} are served, and {most} could be"
        return
    of_gangs = min([other.of_gangs for other, _ in costs])
    gangs = _gangs_of(units)
    beside = min([other.of_single_work for other, them in costs if _gangs_of(them) == gangs])
    if of_gangs < its.of_gangs:
        yield f"of gangs {its.of_gangs} go, and {of_gangs} would do"
    elif not claim.is_gang and sets.most > 1 and beside < its.of_single_work:
        yield f"of single work {its.of_single_work} goes, and {beside} would do"
    elif not served and units:
        yield "nobody is served"
    elif not sets.has_quota:
        yield from _needless(sets, units, served)


def _gangs_of(units: Iterable[Unit]) -> frozenset[str]:
    """Return the applications that go whole."""
    return frozenset(it.works[0].job for it in units if it.kind in AS_ONE)


def _needless(sets: _Sets, units: Sequence[Unit], served: int) -> Iterator[str]:
    for one in units:
        if sets.served([it for it in units if it is not one]) >= served:
            yield f"{[it.key for it in one.works]} is not needed"
