"""The least change that would let something start: found by search, and each one simulated.

A search asks one question again and again: does what is wanted start in time if this is changed as
well? Bounds are lifted, those that need not be are put back, and the others are brought down as far
as the answer stays yes.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, islice
from math import comb, inf
from typing import Any, Final, NamedTuple

from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.values.devices import DEVICES_MAX, WHOLE
from yunikorn_actors.values.ids import (
    manager_of_partition,
    partition_name,
    short_partition_name,
)
from yunikorn_actors.values.quantity import amounts
from yunikorn_actors.values.resource import Resource, charge
from yunikorn_actors.values.tags import (
    GPU,
    GPU_DEVICES,
    GPU_MODEL,
    NODE_PARTITION,
    TAG_REQUIRED_NODE,
)
from yunikorn_actors.what_if.answer import AskName, Course, FullName, Wait
from yunikorn_actors.what_if.bounds import APPS, Bound, Submission, bounds_at, in_partition
from yunikorn_actors.what_if.change_checks import check_seconds, checked, in_order
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request, asks_in, released
from yunikorn_actors.what_if.core_state import Copy, CoreState, Twin
from yunikorn_actors.what_if.missing_room import Act, MissingRoom, held_by
from yunikorn_actors.what_if.simulation import Beside, assumptions, beginning, course_of

TRIALS_MAX: Final = 2_000
SETS_MAX: Final = 300
"""So many sets of work to release are tried, the smallest first, and as many single ones."""
SUMS_MAX: Final = 32
"""So many smaller amounts are tried below one that helps, where others would take what is more."""
_LIFTED: Final = 1 << 60
_NODE: Final = "what-if-node"
_A: Final = si.ActionFromRM
_TOGETHER: Final = (
    "{}, in the same moment as it is asked for: where that comes later, others that wait take the "
    "room"
)
_WORDS: Final = {
    "raise": "raise {}",
    "node": "{}",
    "open": "let {} take work again",
    "release": "release {}",
}
"""By kind of change, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to start, and how soon."""

    changes: tuple[Change | Request | Reconfigure, ...]
    asks: tuple[AskName, ...] = ()
    """By application and key; without any those that the changes bring."""
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Option:
    """One way to have it start, verified by a simulation."""

    kind: str
    """`raise`, `node` (a new one, or more room on one that is required), `open` (a drained node),
    `release` or `wait`.

    A raise may be needed together with one of the next three: `raise and node`.
    """
    text: str
    changes: tuple[Request | Reconfigure, ...] = ()
    """To be made before what is wanted: what waits already takes its part of them first."""
    after_s: float = 0.0
    """When all of it has started."""
    is_together: bool = False
    """The changes help only where what is wanted is asked for before the core decides by them."""


@dataclass(frozen=True, slots=True)
class LeastChange:
    """The ways that were found."""

    fits: bool
    """It starts in time without any of them."""
    waits: tuple[Wait, ...]
    """What it waits for if nothing else is changed."""
    refused: tuple[str, ...]
    options: tuple[Option, ...]
    trials: int
    """How many simulations that took."""
    unsearched: tuple[str, ...] = ()
    """Kinds of changes that were not searched to the end, as that would have taken too long.

    What stands in `options` of these helps, but less may do.
    """
    revisions: dict[str, int] = field(default_factory=dict)
    """The revision of each partition that it is an answer about."""
    at_ns: int = 0
    """The moment of the state."""
    assumptions: tuple[str, ...] = ()
    """What the ways that were found rest on, each kind as often as one of them needs it."""
    lacks: tuple[str, ...] = ()
    """What the source of the state does not say: by that something else may be the least."""


class _Asked(NamedTuple):
    """What is to start of an ask."""

    repeats: int
    resource: Resource
    required_node: str
    """Empty where any will do."""
    models: str
    """Of devices that will do, if not all do."""


def _asked_by(ask: si.AllocationAsk) -> _Asked:
    size = {} if ask.resource_ask is None else ask.resource_ask.amounts()
    required, models = (ask.tags.get(tag, "") for tag in (TAG_REQUIRED_NODE, GPU_MODEL))
    return _Asked(ask.max_allocations, size, required, models)


def _asked_of(ask: Mapping[str, Any]) -> _Asked:
    spec = ask["spec"]
    models = spec.get("tags", {}).get(GPU_MODEL, "")
    return _Asked(ask["remaining"], spec["resource"], spec.get("required_node", ""), models)


def _is_called(full: FullName, name: AskName) -> bool:
    """Whether a name means this ask; its partition may stand before the application."""
    partition, application, key = full
    return name in {(application, key), (f"{partition}/{application}", key)}


_Knob = Bound | str | Act
Plan = dict[_Knob, int]
"""How far bounds are lifted, how much of each type a node has, or has more, and what is done."""


def _made(acts: Iterable[Act]) -> list[Request]:
    """Make of them one request: nothing is decided before all of it is done."""
    made: dict[tuple[type, str], Any] = {}
    for it in acts:
        request = it.make()
        name = type(request), request.rm_id
        made[name] = request if name not in made else _joined(made[name], request)
    return [*made.values()]


def _joined(one: Any, other: Any) -> Any:  # noqa: ANN401 - of two kinds
    if isinstance(one, si.NodeRequest):
        return structs.replace(one, nodes=(*one.nodes, *other.nodes))
    lists = ("allocations_to_release", "allocation_asks_to_release")
    both = {it: (*getattr(one.releases, it), *getattr(other.releases, it)) for it in lists}
    return structs.replace(one, releases=si.AllocationReleasesRequest(**both))


def _overlap(acts: Collection[Act]) -> bool:
    """Whether something would end with two of them."""
    uuids = [held.uuid for it in acts for held in it.held]
    return len({*uuids}) < len(uuids)


def least_changes(
    state: CoreState,
    wanted: Wanted,
    beside: Beside | None = None,
    left_s: Callable[[], float] = lambda: inf,
    *,
    ready: Callable[[], Copy] | None = None,
    **made: Any,  # noqa: ANN401 - `origin`, `groups` or `policies`
) -> LeastChange:
    """Find the least changes; the arguments that `simulate` has too are as there.

    With `beside` each trial runs in a process of its own, so `ready` serves all of them. `left_s`
    says how many seconds there are still for it. Each kind of change gets half of what is left,
    and the answer names those that were not searched to the end.
    """
    begin = ready or beginning(state, **made)
    policies = Policies(made.get("policies"))
    return _Search(state, wanted, policies, beside, left_s, begin).found()


class _Search:
    def __init__(
        self,
        state: CoreState,
        wanted: Wanted,
        policies: Policies,
        beside: Beside | None,
        left_s: Callable[[], float],
        begin: Callable[[], Copy | Twin],
    ) -> None:
        check_seconds("within", wanted.within_s)
        self._state, self._wanted, self._begin = state, wanted, begin
        self._beside, self._left_s = beside, left_s
        self._kept_s = 0.0
        """Seconds that are left to what is searched afterwards."""
        # A trial may break rules of a configuration, which what is found does not: so only once.
        self._ordered, self._notes = checked(in_order(wanted.changes), state, policies)
        self._changes = [it.request for it in self._ordered]
        self._asks: dict[FullName, _Asked] = {}
        self._others: dict[tuple[str, str], list[tuple[int, Resource]]] = {}
        """What waits beside what is wanted, by application: how often, and its size."""
        self._take_asks()
        self._apps = dict.fromkeys(name[:2] for name in self._asks)
        """Their partition and id."""
        self._concerned = dict.fromkeys(name for name, _ in self._apps)
        """Their partitions: what is done in others makes no room for them."""
        (self._partition, *_), first = next(iter(self._asks.items()))
        nodes = state.images.get(self._partition, {"nodes": ()})["nodes"]
        self._required = next((it for it in nodes if it["node_id"] == first.required_node), None)
        """The node that is enlarged where another one would not help."""
        alike = nodes if self._required is None else [self._required]
        self._has_devices = any(GPU_DEVICES in it["attributes"] for it in alike)
        """Devices are told apart on nodes, so one has whole ones."""
        self._queues: dict[tuple[str, str], str] = {}
        """Where applications are, as the first run shows it."""
        self._options: list[Option] = []
        self._assumed: Counter[str] = Counter()
        self._failures: dict[str, None] = {}
        self._trials = 0
        self._is_cut = False
        """A trial was wanted, and there was no time for it."""
        self._is_first = bool(self._ordered and self._others)
        """What waits already decides with the changes that are tried, before what is wanted."""

    def _take_asks(self) -> None:
        brought = {
            (partition, it.application_id, it.allocation_key): _asked_by(it)
            for partition, it in asks_in(self._changes)
        }
        waiting = {
            (partition, _id(app), key): _asked_of(ask)
            for partition, app in _apps(self._state)
            for key, ask in app["asks"].items()
            if ask["remaining"]
        }
        for name in self._wanted.asks:
            called = [it for it in brought if _is_called(it, name)] or [
                it for it in waiting if _is_called(it, name)
            ]
            what = f"least change: ask {'/'.join(name)}: it"
            if not called:
                problem = "neither waits nor is brought by a change: name one that does"
                raise InvalidRequest(f"{what} {problem}")
            if len(called) > 1:
                known = " or ".join(map("/".join, called))
                raise InvalidRequest(f"{what} is in several partitions: name it as {known}")
            self._asks[called[0]] = (waiting | brought)[called[0]]
        if not self._wanted.asks:
            self._asks = brought
        if not self._asks:
            raise InvalidRequest("least change: name an ask that is to start")
        for full, it in waiting.items():
            if full not in self._asks:
                self._others.setdefault(full[:2], []).append((it.repeats, it.resource))

    def found(self) -> LeastChange:
        course = self._tried((), until_s=self._wanted.within_s)
        self._rest_on(course)
        if self._starts(course):
            return self._answer(course)
        # Placement may have led them to other queues than they name.
        happened = (*course.placed, *course.waits)
        self._queues = {(it.partition, it.application): it.queue for it in happened}
        unsearched: list[str] = []
        for name, search in self._searches():
            self._is_cut = False
            # What is searched last, how long to wait, is one trial, and may be a long one.
            self._kept_s = 0.0 if search is _Search._waits else max(0.0, self._left_s()) / 2
            self._options += self._found_by(search)
            unsearched += [name] * self._is_cut
        return self._answer(course, unsearched)

    def _searches(self) -> Iterator[tuple[str, "_Searching"]]:
        """Yield all, or what needs no resource manager that is away: such a one changes nothing."""
        known = self._state.registered.managers
        is_away = any(
            self._state.is_away(it) for it in known if self._concerned.keys() & it.epochs.keys()
        )
        yield from (it for it in _SEARCHES.items() if it[1] is _Search._waits or not is_away)

    def _answer(self, course: Course, unsearched: Sequence[str] = ()) -> LeastChange:
        fits = self._starts(course)
        return LeastChange(
            fits=fits,
            waits=tuple(it for it in course.waits if not fits and it.name in self._asks),
            refused=() if fits else tuple(_reasons(course)),
            options=tuple(self._options),
            trials=self._trials,
            unsearched=tuple(unsearched),
            revisions=self._state.revisions,
            at_ns=self._state.at_ns,
            assumptions=(
                *self._failures, *assumptions(self._state, self._assumed), *self._notes
            ),
            lacks=self._state.lacks,
        )  # fmt: skip

    def _found_by(self, search: "_Searching") -> list[Option]:
        """Return what helps if it is made first; if nothing does, what helps in one moment."""
        options = list(search(self))
        if options or not self._is_first or search is _Search._waits:
            return options
        self._is_first = False
        options = [
            replace(it, text=_TOGETHER.format(it.text), is_together=True) for it in search(self)
        ]
        self._is_first = True
        return options

    @cached_property
    def _missing(self) -> MissingRoom:
        user = next((it.user for it in self._places()), "")
        return MissingRoom(self._state.images, self._bounds(), user)

    # -- the question

    def _is_over(self) -> bool:
        return self._left_s() < self._kept_s

    def _tried(
        self,
        extra: Sequence[Request | Reconfigure],
        *,
        until_s: float | None,
        **bounds: Any,  # noqa: ANN401
    ) -> Course:
        self._trials += 1
        # One request after the other, as an operator makes them: the core decides by each. A
        # configuration is loaded before what stands behind it is taken, so no moment has both.
        made = [Change(it, is_first=self._is_first or isinstance(it, Reconfigure)) for it in extra]

        # Made here, where each of the processes has it.
        copy = self._begin()
        changes = [*made, *self._ordered]
        done = partial(course_of, self._state, copy, changes, until_s, **bounds)
        return done() if self._beside is None else self._beside(done)

    def _started(
        self, extra: Sequence[Request | Reconfigure], until_s: float | None
    ) -> Course | None:
        """Return the run up to where all of it has started; None if it does not, or not in time."""
        if self._is_over() or self._trials >= TRIALS_MAX:
            self._is_cut = True
            return None
        awaited = {name: it.repeats for name, it in self._asks.items()}
        try:
            course = self._tried(extra, until_s=until_s, awaited=awaited, is_over=self._is_over)
        except TimeoutError:
            self._is_cut = True
            return None
        self._is_cut |= course.is_cut
        if not self._starts(course):
            return None
        self._rest_on(course)
        return course

    def _rest_on(self, course: Course) -> None:
        """Note what a run assumed that says what stands in the answer."""
        self._assumed |= Counter(course.assumed)
        self._failures |= dict.fromkeys(course.failures)

    def _starts(self, course: Course) -> bool:
        placed = Counter(it.name for it in course.placed)
        return all(placed[name] >= it.repeats for name, it in self._asks.items())

    def _does(self, plan: Plan) -> bool:
        return self._started(self._requests(plan), self._wanted.within_s) is not None

    def _requests(self, plan: Plan) -> list[Request | Reconfigure]:
        raised = [it.raised(amount) for it, amount in plan.items() if isinstance(it, Bound)]
        size = self._room(plan)
        node = [self._with_room(size)] if size else []
        return [*raised, *node, *_made(it for it in plan if isinstance(it, Act))]

    def _room(self, plan: Plan) -> Resource:
        """Return what a node has more, or a new one has: of devices whole ones."""
        size = {kind: it for kind, it in plan.items() if isinstance(kind, str) and it}
        if self._has_devices and GPU in size:
            size[GPU] = WHOLE * min(-(-size[GPU] // WHOLE), DEVICES_MAX)
        return size

    def _with_room(self, size: Resource) -> si.NodeRequest:
        it = self._required
        whole, attributes = ({}, self._model) if it is None else (it["capacity"], it["attributes"])
        whole = dict(whole)
        charge(whole, size)
        if self._has_devices and GPU in size:
            attributes = {**attributes, GPU_DEVICES: str(whole[GPU] // WHOLE)}
        name, action = (_NODE, _A.CREATE) if it is None else (it["node_id"], _A.UPDATE)
        return _node(self._partition, name, action, whole, attributes)

    @property
    def _model(self) -> dict[str, str]:
        """Return the attribute of a node whose devices will do; empty where any will."""
        models = next(filter(None, (it.models for it in self._asks.values())), "")
        return {GPU_MODEL: models.partition("|")[0]} if models else {}

    # -- raises, and room on a node

    def _raises(self) -> Iterator[Option]:
        kinds = sorted({kind for it in self._asks.values() for kind in it.resource})
        # With all the room there is, others that wait may take it: so first as much as is wanted.
        raised, lifted = self._lifts()
        small: Plan = {kind: self._whole(kind) for kind in kinds}
        large: Plan = dict.fromkeys(kinds, _LIFTED >> 1)
        if self._has_devices and GPU in large:
            large[GPU] = DEVICES_MAX * WHOLE
        ways = [*self._first(raised, lifted), *self._first(small, large)]
        for one in ways or self._first({**raised, **small}, {**lifted, **large}):
            yield from self._least(one)

    def _lifts(self) -> tuple[Plan, Plan]:
        """Return all bounds, raised by what is wanted, and out of the way."""
        bounds = list(self._bounds())
        return {it: self._usual(it) for it in bounds}, dict.fromkeys(bounds, _LIFTED)

    def _first(self, *ways: Plan) -> list[Plan]:
        """Return the first of these that helps, if one does."""
        return [*islice(filter(self._does, ways), 1)]

    def _whole(self, kind: str) -> int:
        if kind == APPS:
            return len(self._apps)
        return sum(it.repeats * it.resource.get(kind, 0) for it in self._asks.values())

    def _least(self, plan: Plan) -> Iterator[Option]:
        """Put back bounds that need not be lifted, then bring down the rest one by one."""
        plan, sizes = dict(plan), [it for it in plan if not isinstance(it, Act)]
        bounds = [it for it in sizes if isinstance(it, Bound)]
        self._put_back(plan, bounds)
        for name in sizes:
            self._lower(plan, name, self._usual(name))
        is_least = False
        while not is_least:
            # What is needless as others came down, once more.
            is_least = not self._put_back(plan, bounds)
            for name in sizes:
                less = plan.get(name, 0) - 1
                if less >= _floor(name) and self._does({**plan, name: less}):
                    plan[name] = less
                    self._lower(plan, name, less)
                    is_least = False
        # Else there was no time to bring it down, and nobody would write such an amount.
        if max(plan.values(), default=0) < _LIFTED >> 1:
            yield self._option(plan)

    def _option(self, plan: Plan) -> Option:
        size = self._room(plan)
        devices = "".join(f", devices of model {it}" for it in self._model.values() if GPU in size)
        new = f"add a node with {amounts(size)}{devices}{in_partition(self._partition, 'to')}"
        larger = self._required and f"enlarge {self._required['node_id']} by {amounts(size)}"
        parts = {
            "raise": [it.text(amount) for it, amount in plan.items() if isinstance(it, Bound)],
            "node": [larger or new] if size else [],
        }
        for it in plan:
            if isinstance(it, Act):
                parts.setdefault(it.kind, []).append(it.text)
        texts = {
            kind: _WORDS[kind].format(" and ".join(some)) for kind, some in parts.items() if some
        }
        kind, text = (" and ".join(it) for it in (texts, texts.values()))
        return Option(kind, text, tuple(self._requests(plan)))

    def _put_back(self, plan: Plan, names: Iterable[_Knob]) -> bool:
        """Put back which of these need not be; say whether that is any."""
        count = len(plan)
        for name in names:
            without = {it: amount for it, amount in plan.items() if it != name}
            if len(without) < len(plan) and self._does(without):
                del plan[name]
        return len(plan) < count

    def _lower(self, plan: Plan, name: Bound | str, high: int) -> None:
        """Bring one down as far as the answer stays yes; `high` helps nearly always.

        By arithmetic the least that helps is enough for what is wanted, with what others take.
        """
        if name not in plan:
            return
        kind, least = (name.kind if isinstance(name, Bound) else name), _floor(name)

        def helps(amount: int) -> bool:
            return self._does({**plan, name: amount})

        low = least
        if not helps(high):
            low, high = high + 1, plan[name]
        others = self._sums_of_others(kind)
        likely = sorted({one + other for one in self._enough(name) for other in others})
        likely = [*(it for it in likely if low <= it < high), high]
        place = bisect_left(likely[:-1], True, key=helps)
        low, high = (likely[place - 1] + 1 if place else low), likely[place]
        if low < high and helps(high - 1):
            high = low + bisect_left(range(low, high - 1), True, key=helps)
        # With more room, others that wait may take it first: so less may do where more does not.
        smaller = sorted(high - it for it in others if least <= high - it < high)
        plan[name] = next(filter(helps, smaller[:SUMS_MAX]), high)

    def _usual(self, name: Bound | str) -> int:
        """Return what is enough where nobody else takes a part of it."""
        if isinstance(name, Bound):
            return name.present + self._whole(name.kind)
        return self._whole(name)

    def _enough(self, name: Bound | str) -> Iterable[int]:
        """Return what may be enough for what is wanted: in a queue all of it, on a node some."""
        if isinstance(name, Bound):
            return (self._missing.used[name] + self._whole(name.kind),)
        own = ((it.repeats, it.resource) for it in self._asks.values())
        return _sums(own, name, SUMS_MAX)

    def _sums_of_others(self, kind: str) -> set[int]:
        """Return what others that wait may take together."""
        apps = self._others.values()
        if kind == APPS:
            return {*range(min(len(apps) + 1, SUMS_MAX * SUMS_MAX))}
        return _sums((one for some in apps for one in some), kind, SUMS_MAX * SUMS_MAX)

    def _bounds(self) -> Iterator[Bound]:
        """Yield each maximum that may concern what is wanted, along the path of its queue."""
        kinds = {APPS, *(kind for it in self._asks.values() for kind in it.resource)}
        found = (
            bound
            for place in dict.fromkeys(self._places())
            for bound in bounds_at(_config(self._state, place.partition), place)
        )
        images = self._state.images
        there = {(name, path) for name, it in images.items() for path, *_ in it["queues"]}
        for it in dict.fromkeys(found):
            if it.kind in kinds and not (it.template and (it.partition, it.queue) in there):
                yield it

    def _places(self) -> Iterator[Submission]:
        for request in self._changes:
            if isinstance(request, si.ApplicationRequest):
                for new in request.new:
                    partition = partition_name(request.rm_id, new.partition_name)
                    app = (partition, new.application_id)
                    if app in self._apps:
                        ugi = new.ugi or si.UserGroupInformation()
                        queue = self._queues.get(app, new.queue_name)
                        yield Submission(partition, queue, ugi.user, ugi.groups)
        for name, it in _apps(self._state):
            if (name, _id(it)) in self._apps:
                yield Submission(name, it["queue"], it["spec"].get("user", ""), (), it["group"])

    # -- what is done to what is there

    def _undrained(self) -> Iterator[Option]:
        images = self._state.images
        nodes = [
            (name, it) for name in self._concerned if name in images for it in images[name]["nodes"]
        ]
        action = _A.DRAIN_TO_SCHEDULABLE
        yield from self._done(
            Act("open", it["node_id"], partial(_node, name, it["node_id"], action))
            for name, it in nodes
            if it["drained"]
        )

    def _releases(self) -> Iterator[Option]:
        """Find the least work of others whose end makes room."""
        yield from self._done(
            act
            for name, app in _apps(self._state)
            if name in self._concerned and (name, _id(app)) not in self._apps
            for act in _work(name, app)
        )

    def _done(self, acts: Iterable[Act]) -> Iterator[Option]:
        """Find the fewest that help: by themselves, or with a raise that does not help alone."""
        ordered = sorted(acts, key=lambda it: self._missing.cost_of([it]))
        is_raised = any(it.kind == "raise" for it in self._options)
        lifts: tuple[Plan, ...] = ({},) if is_raised else ({}, *self._lifts())
        if ordered:
            for lifted in lifts:
                if some := self._fewest(ordered, lifted):
                    yield from self._least({**lifted, **dict.fromkeys(some, 1)})
                    return

    def _fewest(self, acts: list[Act], lifted: Plan) -> Sequence[Act]:
        """Return the least set that helps; where they are many, one of which none is needless."""

        def help_(some: Iterable[Act]) -> bool:
            return self._does({**lifted, **dict.fromkeys(some, 1)})

        if len(acts) > SETS_MAX and self._wanted.within_s == 0:
            asked = self._asks.values()
            sizes = [it.resource for it in asked for _ in range(min(it.repeats, SUMS_MAX))]
            for likely in filter(help_, self._missing.likely(acts, sizes, lifted)):
                return self._needed(likely, lifted)
        acts = acts[:SETS_MAX]
        if lifted and not help_(acts):
            return ()
        sets: list[tuple[Act, ...]] = []
        number = 0
        while number < len(acts) and len(sets) + comb(len(acts), number + 1) <= SETS_MAX:
            number += 1
            sets += (it for it in combinations(acts, number) if not _overlap(it))
        least = next(filter(help_, sorted(sets, key=self._missing.cost_of)), ())
        if least or number == len(acts) or not help_(acts):
            return least
        return self._needed(acts, lifted)

    def _needed(self, acts: Sequence[Act], lifted: Plan) -> list[Act]:
        """Leave out each that need not be."""
        plan: Plan = {**lifted, **dict.fromkeys(acts, 1)}
        self._put_back(plan, reversed(acts))
        return [it for it in acts if it in plan]

    def _waits(self) -> Iterator[Option]:
        course = self._started((), None)
        if course is not None:
            last = max(it.at_s for it in course.placed if it.name in self._asks)
            yield Option("wait", f"wait for {last:g} s", (), last)


_Searching = Callable[[_Search], Iterator[Option]]
_SEARCHES: Final[dict[str, _Searching]] = {
    "raises and nodes": _Search._raises,
    "drained nodes": _Search._undrained,
    "releases": _Search._releases,
    "waiting": _Search._waits,
}


# -- what is there


def _apps(state: CoreState) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each application, with the name of its partition."""
    for name, image in state.images.items():
        for app in image["applications"]:
            yield name, app


def _id(app: Mapping[str, Any]) -> str:
    id_: str = app["spec"]["application_id"]
    return id_


def _floor(name: Bound | str) -> int:
    return name.present + 1 if isinstance(name, Bound) else 0


def _sums(sizes: Iterable[tuple[int, Resource]], kind: str, most: int) -> set[int]:
    """Return what some of these may take together; of very many, so many sums."""
    sums = {0}
    for count, size in sizes:
        for _ in range(min(count, SUMS_MAX)):
            if len(sums) < most:
                sums |= {it + size.get(kind, 0) for it in sums}
    return sums


def _reasons(course: Course) -> Iterator[str]:
    """Yield why something was not taken; of an application that was not, its asks say no more."""
    gone = {it.name for it in course.refused if it.what == "application"}
    for it in course.refused:
        if it.what != "ask" or it.name.partition("/")[0] not in gone:
            yield it.reason


def _node(
    partition: str,
    name: str,
    action: si.ActionFromRM,
    size: Resource | None = None,
    attributes: Mapping[str, str] | None = None,
) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=name,
        action=action,
        attributes={**(attributes or {}), NODE_PARTITION: short_partition_name(partition)},
        schedulable_resource=None if size is None else si.Resource.of(size),
    )
    return si.NodeRequest(nodes=(info,), rm_id=manager_of_partition(partition))


def _config(state: CoreState, partition: str) -> SchedulerConfig:
    managers = state.registered.managers
    known = next((it for it in managers if partition in it.epochs), None)
    return state.config_of("" if known is None else known.registration.policy_group)


def _work(partition: str, app: Mapping[str, Any]) -> Iterator[Act]:
    """Yield what could be released of an application: an allocation, an ask or all of it."""
    id_, waits = _id(app), {key: it["remaining"] for key, it in app["asks"].items()}
    of_ask: defaultdict[str, list[Any]] = defaultdict(list)
    for it in app["allocations"].values():
        of_ask[it["spec"]["key"]].append(it)

    def ended(what: str, some: list[Any], withdrawn: int, key: str = "", uuid: str = "") -> Act:
        gang = id_ if any(it["spec"].get("task_group") for it in some) else ""
        held = tuple(held_by(partition, app, it) for it in some)
        make = partial(released, partition, id_, key, uuid)
        return Act("release", what, make, held, withdrawn, gang)

    for key, some in of_ask.items():
        waiting = waits.get(key, 0)
        if len(some) > 1 or waiting:
            for it in some:
                yield ended(f"{id_}/{key} on {it['node_id']}", [it], 0, key, it["uuid"])
        yield ended(f"{id_}/{key}", some, waiting, key)
    open_ = {key for key, count in waits.items() if count}
    if of_ask and len(of_ask.keys() | open_) > 1:
        what = f"{id_} and what waits of it" if open_ else id_
        yield ended(what, [it for some in of_ask.values() for it in some], sum(waits.values()))
