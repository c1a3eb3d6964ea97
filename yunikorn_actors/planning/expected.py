"""Expected starts: when asks that wait will start, as a place in their queue and an interval.

The order is that of the planner. The interval comes from a plan ahead on all nodes taken together.
It is made three times: with run times as short, as usual and as long as those of the same user, or
else of the same queue, were compared with what they had declared. How far such plans were off then
widens or narrows the next intervals of the queue, so that nine of ten hold. All of it is worked out
beside the core, from a replica.
"""

from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import count, islice
from math import exp
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.planning.model.deciding import Deciders
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY
from yunikorn_actors.planning.model.views import AppView, QueueView, key_of
from yunikorn_actors.policies.folds import Folds, is_part_of_gang, runtime_of
from yunikorn_actors.policies.profile import profile_of
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.policies.shipped import Fcfs
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.device_fit import could_hold
from yunikorn_actors.state.eligibility import check_limits, check_start
from yunikorn_actors.state.gangs import awaits_admission, waits_for_gang
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import NEVER_NS, SECOND
from yunikorn_actors.values.resource import Resource, charge

PLANNED_MAX: Final = 300
"""Asks that are planned ahead, at most; those behind them have a position and no interval."""
PIECES_MAX: Final = 4
"""Pieces in which the repeats of an ask are planned, at most: it starts with the first one."""
REPEATS_MAX: Final = 10_000
"""Repeats that are put in order one by one; behind them those of an ask stay together."""
RUNS_MAX: Final = 60
"""Runs of a user, and of a queue, that are remembered."""
RUNS_MIN: Final = 5
"""Fewer of them say nothing."""
SHARES: Final = (0.25, 0.5, 0.75)
"""Which of the remembered runs are short, usual and long."""
MISSES: Final = 0.05
"""The share of starts that may be before an interval, and behind it."""
STEP: Final = 0.07
"""How much one start changes the width of the next intervals."""
FIRST_WIDTH: Final = 3.0
LEAST_NS: Final = 300 * SECOND
"""A plan is never taken for more exact than that."""
_EXACT_BITS: Final = 5
"""The leading bits of an end that count: a plan has hundreds of moments, not thousands."""
_Name = tuple[str, str]
"""Of an ask: its application and its key."""


class Expected(Struct, frozen=True, kw_only=True):
    """Of one ask that waits."""

    application_id: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    queue: str
    """Path of its queue."""
    position: int
    """Its place in the order of its queue; 1 is next."""
    waiting: int
    """How many asks wait in the queue."""
    earliest_ns: int | None = None
    """Nine of ten start between this time and the latest; all three are None if nothing is known.

    That is so where it is not known how long what it waits for runs, and where it never fits.
    """
    likely_ns: int | None = None
    """When it starts if run times are as usual."""
    latest_ns: int | None = None
    """The end of the interval."""


class _Runs:
    """How long work ran, as a share of what it had declared; by user, by queue, and all."""

    def __init__(self) -> None:
        self._shares: dict[_Name, deque[float]] = {}
        self._ran: dict[_Name, deque[float]] = {}

    def note(self, queue: str, user: str, declared_ns: int, ran_ns: int) -> None:
        # Two histories: shares of what was declared, and times where nothing was.
        is_declared = 0 < declared_ns < NEVER_NS
        kept = self._shares if is_declared else self._ran
        for name in (("user", user), ("queue", queue), ("", "")):
            runs = kept.setdefault(name, deque(maxlen=RUNS_MAX))
            runs.append(ran_ns / declared_ns if is_declared else ran_ns)

    def expected(
        self, queue: str, user: str, declared_ns: int, share: float, ran_ns: int = 0
    ) -> int:
        """Return how long it runs in all, if it has run for `ran_ns` already."""
        is_declared = declared_ns < NEVER_NS
        kept, unit = (self._shares, declared_ns) if is_declared else (self._ran, 1)
        names = (("user", user), ("queue", queue), ("", ""))
        # The nearest that says enough: the user, else the queue, else all.
        known = (kept.get(name, ()) for name in names)
        of_one = (1.0,) if is_declared else ()
        runs = next((tuple(it) for it in known if len(it) >= RUNS_MIN), of_one)
        # What has run for longer than most runs is compared with those that ran longer still.
        left = sorted(it for it in runs if it * unit > ran_ns)
        if left:
            return max(1, round(left[int(share * len(left))] * unit))
        # Longer than any known run: a little more is the best guess.
        return max(1, ran_ns + ran_ns // 10) if runs else NEVER_NS


class _Widths(Struct):
    """How many times its own uncertainty a plan is off, before and behind."""

    before: float = FIRST_WIDTH
    behind: float = FIRST_WIDTH


class _Plan(NamedTuple):
    """The first plan for an ask, which is judged when it starts."""

    queue: str
    earliest_ns: int
    latest_ns: int


class _Job(NamedTuple):
    app: Application
    asks: tuple[Ask, ...]
    """Several, if a gang starts as one."""
    size: Resource
    runtime_ns: int
    is_strict: bool
    """Nothing of its queue that comes behind it may start before it."""
    node: str = ""
    """The one that it requires."""

    @property
    def name(self) -> _Name:
        return self.app.id, self.asks[0].spec.key


class Expectations:
    """Of one partition; a follower shows it each fact before that is applied to the replica."""

    def __init__(self, policies: Policies) -> None:
        self.by_ask: dict[_Name, Expected] = {}
        self._policies = policies
        self._runs = _Runs()
        self._widths: dict[str, _Widths] = {}
        self._plans: dict[_Name, _Plan] = {}
        self._made = (-1, 0)
        """Of which revision the newest plans are, and when they were made."""
        self._due_ns = NEVER_NS
        """When something was planned to end or to start, so that they change if it has not."""
        self._late: set[_Name] = set()
        """Asks that wait longer than was planned first."""

    # -- what happens

    def before(self, state: PartitionState, fact: f.Fact) -> None:
        match fact:
            # What the core asked back did not run to its end, and says nothing.
            case f.AllocationReleased(given_back=None, placeholder=False):
                app = state.applications.get(fact.application_id)
                allocation = None if app is None else app.allocations.get(fact.uuid)
                if app is not None and allocation is not None:
                    # Before the fact is applied: the allocation is still there.
                    declared_ns = runtime_of(app, allocation.spec)
                    ran_ns = max(1, fact.at_ns - allocation.allocated_ns)
                    self._runs.note(app.queue.path, app.spec.user, declared_ns, ran_ns)
            case f.AllocationCommitted():
                self._judge((fact.application_id, fact.key), fact.at_ns)
            case f.AllocationsCommitted():
                for member, key in zip(fact.members, fact.keys, strict=True):
                    self._judge((fact.charged[member].application_id, key), fact.at_ns)

    def _judge(self, name: _Name, at_ns: int) -> None:
        """Narrow the next intervals a little, or widen them more, so that misses are rare."""
        # Judged by its first plan, which is what a person was shown.
        plan = self._plans.pop(name, None)
        if plan is None:
            return
        widths = self._widths[plan.queue]
        # A miss widens by far more than a hit narrows, so that misses stay near their share.
        widths.before *= exp(STEP * ((at_ns < plan.earliest_ns) - MISSES))
        if name not in self._late:
            widths.behind *= exp(STEP * ((at_ns > plan.latest_ns) - MISSES))
        self._late.discard(name)

    # -- what is expected

    def is_stale(
        self, state: PartitionState, application_id: str, now_ns: int, every_ns: int = 0
    ) -> bool:
        """Whether anything has happened since the plans were made, or should have, or is asked.

        They are made anew at most once in `every_ns`, and at once for an ask that they do not have.
        """
        revision, made_ns = self._made
        if revision == state.revision and now_ns < self._due_ns:
            return False
        app = state.applications.get(application_id)
        asked = () if app is None else app.waiting_asks()
        # A new ask is planned for at once: otherwise it would have no answer.
        return made_ns <= now_ns - every_ns or any(
            (application_id, it.spec.key) not in self.by_ask for it in asked
        )

    def of(self, application_id: str, now_ns: int) -> list[Expected]:
        """Return what is expected of an application, or of all, leaf by leaf in their order.

        What waits starts now or later, also where the plans are a little older.
        """
        asked = (it for it in self.by_ask.values() if application_id in {"", it.application_id})
        return [_from_now(it, now_ns) for it in asked]

    def of_ask(self, application_id: str, key: str, now_ns: int) -> Expected | None:
        """Return what is expected of one ask; None of one that does not wait."""
        expected = self.by_ask.get((application_id, key))
        return None if expected is None else _from_now(expected, now_ns)

    def refresh(self, state: PartitionState, now_ns: int) -> Iterator[None]:
        """Plan anew, a little at a time; the state must not change until it has ended.

        Nothing is kept before the end: work that takes longer than a slice is begun anew.
        """
        # Kept apart until the end: a plan that is cut short changes nothing.
        found: dict[_Name, Expected] = {}
        jobs: list[tuple[int, _Job]] = []
        for leaf, order in _orders(state, self._policies):
            for place, (app, ask) in enumerate(order, 1):
                found[app.id, ask.spec.key] = Expected(
                    application_id=app.id, key=ask.spec.key, queue=leaf.queue.path,
                    position=place, waiting=len(order),
                )  # fmt: skip
            came_ns = 0
            for job in _jobs(leaf, order):
                # What is tried behind another job of its queue comes no earlier than that one.
                came_ns = max(came_ns, job.asks[0].created_ns)
                jobs.append((came_ns, job))
            yield
        jobs.sort(key=itemgetter(0))
        # Those that a run limit bars have no time: when it ends is not planned.
        first = {*islice(dict.fromkeys(job.name for _, job in jobs), PLANNED_MAX)}
        planned = [job for _, job in jobs if job.name in first and _may_start(state, job.app)]
        hopeless = yield from _hopeless(state, planned)
        starts: list[dict[_Name, int]] = [{} for _ in SHARES]
        due_ns = NEVER_NS
        for share, found_starts in zip(SHARES, starts, strict=True):
            ends_ns = yield from self._plan(state, planned, hopeless, share, now_ns, found_starts)
            due_ns = min(due_ns, ends_ns, *found_starts.values())
        for name, expected in found.items():
            times = [it[name] for it in starts if name in it]
            if len(times) == len(SHARES):
                found[name] = self._interval(expected, times, now_ns)
        self._forget(found, now_ns)
        self.by_ask = found
        self._made, self._due_ns = (state.revision, now_ns), due_ns

    def _plan(
        self,
        state: PartitionState,
        jobs: list[_Job],
        hopeless: Collection[_Name],
        share: float,
        now_ns: int,
        planned: dict[_Name, int],
    ) -> Generator[None, None, int]:
        """Give each job the earliest room that it does not take from one before it.

        Return when the first of what runs ends.
        """
        runs = self._runs
        running: list[tuple[Resource, int]] = []
        # Only nodes that some job requires are looked at one by one; the rest is one large node.
        apart = {job.node for job in jobs} - {""}
        for app in state.applications.values():
            for it in app.allocations.values():
                ran_ns, declared_ns = now_ns - it.allocated_ns, runtime_of(app, it.spec)
                whole_ns = runs.expected(app.queue.path, app.spec.user, declared_ns, share, ran_ns)
                # What runs there leaves room on that very node.
                node = it.node_id if it.node_id in apart else ""
                running.append((_need(app, it.resource, node), _end(now_ns, whole_ns - ran_ns)))
            yield
        profile = profile_of(_free(state, jobs), now_ns, running)
        last: dict[str, int] = {}
        for job in jobs:
            path, need = job.app.queue.path, _need(job.app, job.size, job.node)
            run_ns = runs.expected(path, job.app.spec.user, job.runtime_ns, share)
            from_ns = last.get(path, 0)
            is_barred = from_ns >= NEVER_NS or job.name in hopeless
            start_ns = NEVER_NS if is_barred else profile.earliest(need, run_ns, from_ns)
            yield
            # In first-come order nothing overtakes it, also where it never starts.
            if job.is_strict:
                last[path] = start_ns
            # Never: what it would have to wait for has no end, or is too small.
            if start_ns >= NEVER_NS:
                continue
            profile.take(start_ns, _end(start_ns, run_ns), need)
            for ask in job.asks:
                # An ask starts when the first of its repeats does.
                planned.setdefault((job.app.id, ask.spec.key), start_ns)
        return min((end_ns for _, end_ns in running), default=NEVER_NS)

    def _interval(self, expected: Expected, times: list[int], now_ns: int) -> Expected:
        widths = self._widths.setdefault(expected.queue, _Widths())
        unsure_ns = max(times) - min(times) + LEAST_NS
        likely_ns = times[1]
        earliest_ns = max(now_ns, likely_ns - round(widths.before * unsure_ns))
        # The first plan stays: intervals that follow the facts would never be wrong.
        latest_ns = likely_ns + round(widths.behind * unsure_ns)
        name = expected.application_id, expected.key
        self._plans.setdefault(name, _Plan(expected.queue, earliest_ns, latest_ns))
        return replace(expected, earliest_ns=earliest_ns, likely_ns=likely_ns, latest_ns=latest_ns)

    def _forget(self, found: Mapping[_Name, Expected], now_ns: int) -> None:
        """Drop plans of asks that are gone; one that is late is judged before its ask starts."""
        # Late ones are judged now, as waiting for their start would forgive them.
        self._plans = {name: it for name, it in self._plans.items() if name in found}
        self._late &= self._plans.keys()
        for name, plan in self._plans.items():
            if now_ns > plan.latest_ns and name not in self._late:
                self._late.add(name)
                self._widths[plan.queue].behind *= exp(STEP * (1 - MISSES))


def _from_now(expected: Expected, now_ns: int) -> Expected:
    earliest_ns, likely_ns, latest_ns = (
        None if it is None else max(it, now_ns)
        for it in (expected.earliest_ns, expected.likely_ns, expected.latest_ns)
    )
    if earliest_ns == expected.earliest_ns:
        return expected
    return replace(expected, earliest_ns=earliest_ns, likely_ns=likely_ns, latest_ns=latest_ns)


# -- the order


def _orders(
    state: PartitionState, policies: Policies
) -> Iterator[tuple[QueueView, list[tuple[Application, Ask]]]]:
    """Yield leaves in which asks wait, each with these in its order."""
    # Deciders of its own: a policy asked here must not change what the planner keeps.
    deciders = Deciders(policies, cast(Folds | None, state.folds))
    views: dict[str, QueueView] = {}
    by_leaf: dict[str, list[AppView]] = {}
    starting = {it.queue.path for it in state.applications.values() if it.is_starting}
    for app in state.applications.values():
        waiting = [ask for ask in app.asks.values() if ask.remaining]
        if waiting:
            view = AppView(app, _view(app.queue, state, deciders, views))
            view.asks = {it.spec.key: cast(Any, _Seen(it, it.spec.resource)) for it in waiting}
            # Of whatever shape: here it says only that something waits, so it has a key.
            view.waits = cast(Any, {None: sum(it.remaining for it in waiting)})
            by_leaf.setdefault(app.queue.path, []).append(view)
    for path, apps in by_leaf.items():
        yield views[path], list(_Order(views[path], apps, is_starting=path in starting))


class _Line:
    """The waiting asks of one application, in its order."""

    def __init__(self, view: AppView) -> None:
        self.view = view
        asks = [it.ask for it in view.asks.values()]
        self._asks = sorted(asks, key=lambda it: view.leaf.decider.order_of(view.app, it))
        self._priorities = [NO_PRIORITY]
        """The highest of what may be tried, of each ask and those behind it; the last first."""
        # What may not be tried lends no priority to its application.
        may_be_tried = {it.spec.key for it in _open(view, self._asks)}
        for ask in reversed(self._asks):
            own = ask.spec.priority if ask.spec.key in may_be_tried else NO_PRIORITY
            self._priorities.append(max(own, self._priorities[-1]))
        self.placed = self._repeats = 0
        self.starts_until = 0
        """With this many placed it runs, and in a stateaware leaf the next may start."""
        view.priority = self._priorities.pop()

    @property
    def has_more(self) -> bool:
        return bool(self._asks)

    def take(self, *, is_whole: bool) -> Ask | None:
        """Place one repeat of the first ask, or all; return the ask if that is its first."""
        view, ask = self.view, self._asks[0]
        number = ask.remaining - self._repeats if is_whole else 1
        is_first = not self._repeats
        self.placed += number
        self._repeats += number
        charge(view.used, {kind: amount * number for kind, amount in ask.spec.resource.items()})
        view.waits = {kind: left - number for kind, left in view.waits.items() if left > number}
        if self._repeats == ask.remaining:
            self._repeats = 0
            del self._asks[0], view.asks[ask.spec.key]
            view.priority = self._priorities.pop()
        return ask if is_first else None


class _Order:
    """The asks of a leaf as they would start if there were room for one repeat after the other.

    The planner orders anew after each decision: an application that got something moves, by its
    usage or by the priority of its other asks.
    """

    def __init__(self, leaf: QueueView, apps: list[AppView], *, is_starting: bool) -> None:
        """`is_starting`: one of the leaf is."""
        self._moves = bool(leaf.decider.reads)
        """What an application uses moves its place."""
        self._heap: list[tuple[tuple[object, ...], _Line]] = []
        """By key, whose end is the serial: no two are equal."""
        self._to_start: list[_Line] = []
        """In a stateaware leaf one starts at a time; the oldest stands last."""
        for line in map(_Line, apps):
            app = line.view.app
            if leaf.is_stateaware and app.is_starting:
                line.starts_until = 1
            waits = leaf.is_stateaware and app.state is ApplicationState.ACCEPTED
            if waits and not (app.is_starting or awaits_admission(app)):
                self._to_start.append(line)
            else:
                self._push(line)
        self._to_start.sort(key=lambda it: it.view.app.age, reverse=True)
        if not is_starting:
            self._start_next()

    def _push(self, line: _Line) -> None:
        heappush(self._heap, (key_of(line.view), line))

    def _start_next(self) -> None:
        if self._to_start:
            line = self._to_start.pop()
            line.starts_until = 2
            self._push(line)

    def __iter__(self) -> Iterator[tuple[Application, Ask]]:
        for number in count():
            if not self._heap:
                # One that starts and wants no more does so for a while; the others go on.
                self._start_next()
                if not self._heap:
                    return
            _, line = heappop(self._heap)
            is_whole = (
                not self._moves or number >= REPEATS_MAX or not (self._heap or self._to_start)
            )
            yield from self._turn(line, is_whole=is_whole)

    def _turn(self, line: _Line, *, is_whole: bool) -> Iterator[tuple[Application, Ask]]:
        """Place what comes before anything else."""
        view, priority = line.view, line.view.priority
        stays = True
        while stays:
            # In a stateaware leaf one placement may be all it gets before the next one starts.
            is_starting = line.placed < line.starts_until
            ask = line.take(is_whole=is_whole and not is_starting)
            if ask is not None:
                yield view.app, ask
            if not line.has_more:
                stays = False
            elif is_starting or not is_whole or view.priority != priority:
                self._push(line)
                stays = False
            if is_starting and line.placed == line.starts_until:
                self._start_next()


def _open(view: AppView, waiting: list[Ask]) -> Iterator[Ask]:
    """Yield the asks that may be tried: neither their gang nor the gate of their leaf bars them.

    A gang that awaits its admission stands where the first of its placeholders would.
    """
    app, is_gated = view.app, view.leaf.decider.gate is not None
    for ask in waiting:
        is_free = not is_gated or is_part_of_gang(app, ask.spec)
        if ask.spec.placeholder or (is_free and not waits_for_gang(app, ask.spec)):
            yield ask


class _Seen(NamedTuple):
    ask: Ask
    resource: Resource


def _view(
    queue: Queue, state: PartitionState, deciders: Deciders, views: dict[str, QueueView]
) -> QueueView:
    view = views.get(queue.path)
    if view is None:
        above = None if queue.parent is None else _view(queue.parent, state, deciders, views)
        view = views[queue.path] = QueueView(queue, above, deciders)
        view.measure(state.capacity)
    return view


def _jobs(leaf: QueueView, order: list[tuple[Application, Ask]]) -> Iterator[_Job]:
    """Yield the asks that start together as one job each."""
    gate = leaf.decider.gate
    is_strict = gate is not None and getattr(type(gate), "may_start", None) is Fcfs.may_start
    gangs: dict[str, list[Ask]] = {}
    for app, ask in order:
        if awaits_admission(app) and is_part_of_gang(app, ask.spec):
            if ask.spec.placeholder:
                gangs.setdefault(app.id, []).append(ask)
            continue
        runtime_ns, node = runtime_of(app, ask.spec), ask.spec.required_node
        for repeats in _pieces(ask.remaining):
            size = {kind: amount * repeats for kind, amount in ask.spec.resource.items()}
            yield _Job(app, (ask,), size, runtime_ns, is_strict, node)
    for app in dict.fromkeys(app for app, _ in order if app.id in gangs):
        asks = tuple(gangs[app.id])
        runtime_ns = max(runtime_of(app, it.spec) for it in asks)
        yield _Job(app, asks, app.spec.placeholder_ask, runtime_ns, is_strict)


def _pieces(repeats: int) -> Iterator[int]:
    """Yield what is planned by itself: each repeat, or the first one and so many equal parts."""
    yield 1
    left = repeats - 1
    each = max(1, -(-left // (PIECES_MAX - 1)))
    while left > 0:
        yield min(each, left)
        left -= each


def _may_start(state: PartitionState, app: Application) -> bool:
    """Whether neither a bound on how many run holds it back, nor one that is starting.

    When that is over is not planned, so nothing is said of its time.
    """
    if app.state is not ApplicationState.ACCEPTED:
        return True
    return check_start(state, app) is None and check_limits(app, {}) is not Refusal.APP_LIMIT


def _hopeless(state: PartitionState, jobs: Iterable[_Job]) -> Generator[None, None, set[_Name]]:
    """Return what no node could hold, were it empty, or what has no such devices.

    The plan takes the nodes together, so it finds room for what is larger than each of them.
    """
    nodes = state.nodes
    held: dict[object, bool] = {}
    found = set[_Name]()
    for job in jobs:
        for ask in job.asks:
            spec = ask.spec
            # Most asks are like others, and a large cluster has ten thousand nodes.
            shape = spec.demand, spec.required_node
            if shape not in held:
                only = [nodes[spec.required_node]] if spec.required_node in nodes else []
                some = only if spec.required_node else nodes.values()
                held[shape] = any(could_hold(node, spec) for node in some)
                yield
            if not held[shape]:
                found.add(job.name)
    return found


# -- room: of the cluster by type, of queues, limits and nodes by their names and the type


def _free(state: PartitionState, jobs: list[_Job]) -> Resource:
    free: Resource = {}
    for node in state.nodes.values():
        if node.is_open:
            charge(free, node.available)
    for name in dict.fromkeys(job.node for job in jobs if job.node in state.nodes):
        # Neither a drain nor the reservations of others stand against what requires it.
        free.update({f"node {name} {it}": n for it, n in state.nodes[name].available.items()})
    for app in dict.fromkeys(job.app for job in jobs):
        for name, most, used in _bounds(app, state):
            free.update({f"{name} {kind}": most[kind] - used.get(kind, 0) for kind in most})
    return free


def _need(app: Application, size: Resource, node: str = "") -> Resource:
    need = dict(size)
    if node:
        need.update({f"node {node} {kind}": amount for kind, amount in size.items()})
    for name, most, _ in _bounds(app):
        need.update((f"{name} {kind}", size[kind]) for kind in most if kind in size)
    return need


def _bounds(
    app: Application, state: PartitionState | None = None
) -> Iterator[tuple[str, Resource, Resource]]:
    """Yield what bounds an application, with what is used of it."""
    for level in app.queue.lineage[:-1]:
        if level.spec.max is not None:
            yield level.path, level.spec.max, level.allocated
    for limit in limits_of(app.queue, app.spec.user, app.group):
        if limit.max_resources is not None:
            used = {} if state is None else state.usage_of(limit).amounts
            yield limit.name, limit.max_resources, used


def _end(start_ns: int, run_ns: int) -> int:
    """Return when it ends, rounded to the exactness that such a guess has."""
    coarse = 1 << max(0, run_ns.bit_length() - _EXACT_BITS)
    return min(NEVER_NS, start_ns + (run_ns + coarse // 2) // coarse * coarse)
