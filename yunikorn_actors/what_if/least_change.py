"""The least change that would let something start: found by search, and each one simulated.

A search asks one question again and again: does what is wanted start in time if this is changed as
well? Bounds are lifted, those that need not be are put back, and the others are brought down as far
as the answer stays yes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, islice
from math import comb, inf
from typing import Any, Final

from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.values.durations import LONGEST_S
from yunikorn_actors.values.ids import (
    DEFAULT_PARTITION,
    manager_of_partition,
    partition_name,
    short_partition_name,
)
from yunikorn_actors.values.quantity import amounts
from yunikorn_actors.values.resource import Resource, charge
from yunikorn_actors.values.tags import NODE_PARTITION
from yunikorn_actors.what_if.answer import AskName, Course, Wait
from yunikorn_actors.what_if.bounds import APPS, Bound, Submission, bounds_at
from yunikorn_actors.what_if.change_checks import checked, in_order, is_seconds
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request
from yunikorn_actors.what_if.core_state import CoreState
from yunikorn_actors.what_if.missing_room import Held, MissingRoom, held_by
from yunikorn_actors.what_if.simulation import Beside, simulate

TRIALS_MAX: Final = 2_000
SETS_MAX: Final = 300
"""So many sets of work to release are tried, the smallest first, and as many single ones."""
SUMS_MAX: Final = 32
"""So many smaller amounts are tried below one that helps, where others would take what is more."""
_LIFTED: Final = 1 << 60
_NODE: Final = "what-if-node"
_TOGETHER: Final = (
    "{}, in the same moment as it is asked for: where that comes later, others that wait take the "
    "room"
)


Room = dict[Bound | str, int]
"""How far bounds are lifted, and how much a new node has, by the type of resource."""


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
    """`raise`, `node`, `open` (a drained node), `release` or `wait`.

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


@dataclass(frozen=True, slots=True)
class _Act:
    """Something that may be done to what is there: work to release, a node to open."""

    what: str
    make: Callable[[], Request]
    """There may be very many, of which few are made."""
    held: tuple[Held, ...] = ()
    """What ends with it."""
    withdrawn: int = 0
    gang: str = ""
    """The application whose gang it is a part of."""
    uuids: frozenset[str] = frozenset()
    """Of what ends with it."""

    @property
    def text(self) -> str:
        return f"{self.what} ({amounts(_size([self]))})" if self.held else self.what


def _made(acts: Iterable[_Act]) -> list[Request]:
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


def _overlap(acts: Collection[_Act]) -> bool:
    """Whether something would end with two of them."""
    return len(frozenset().union(*(it.uuids for it in acts))) < sum(len(it.uuids) for it in acts)


def _size(acts: Iterable[_Act]) -> Resource:
    total: Resource = {}
    for it in acts:
        for held in it.held:
            charge(total, held.size)
    return total


def _cost(acts: Collection[_Act]) -> tuple[int, int, int, tuple[tuple[str, int], ...]]:
    """Say how many allocations end, how many gangs that hurts, what is withdrawn, and their size.

    Without a member the rest of a gang is of no use.
    """
    ended = withdrawn = 0
    gangs: set[str] = set()
    for it in acts:
        ended, withdrawn = ended + len(it.held), withdrawn + it.withdrawn
        gangs |= {it.gang} - {""}
    return ended, len(gangs), withdrawn, tuple(sorted(_size(acts).items()))


def least_changes(
    state: CoreState,
    wanted: Wanted,
    beside: Beside | None = None,
    left_s: Callable[[], float] | None = None,
    **simulated: Any,  # noqa: ANN401
) -> LeastChange:
    """Find the least changes; `simulated` are further arguments of `simulate`.

    With `beside` each trial runs in a process of its own, so `ready` serves all of them. `left_s`
    says how many seconds there are still for it. Each kind of change gets half of what is left,
    and the answer names those that were not searched to the end.
    """
    return _Search(state, wanted, beside, left_s or (lambda: inf), simulated).found()


class _Search:
    def __init__(
        self,
        state: CoreState,
        wanted: Wanted,
        beside: Beside | None,
        left_s: Callable[[], float],
        simulated: dict[str, Any],
    ) -> None:
        if not is_seconds(wanted.within_s, LONGEST_S):
            longest, given = f"{LONGEST_S:.0e}", wanted.within_s
            raise InvalidRequest(f"within: must be seconds from 0 to {longest}, not {given!r}")
        self._state, self._wanted, self._simulated = state, wanted, simulated
        self._beside, self._left_s = beside, left_s
        self._kept_s = 0.0
        """Seconds that are left to what is searched afterwards."""
        policies = Policies(simulated.get("policies"))
        # A trial may break rules of a configuration, which what is found does not: so only once.
        self._ordered, _ = checked(in_order(wanted.changes), state, policies)
        self._changes = [it.request for it in self._ordered]
        self._asks, self._partition = _asks_of(state, wanted, self._changes)
        """How many repeats of each are to start, and their size; and the partition of the first."""
        for name in wanted.asks:
            if name not in self._asks:
                raise InvalidRequest(
                    f"least change: ask {'/'.join(name)}: it neither waits nor is brought by a "
                    "change: name one that does"
                )
        if not self._asks:
            raise InvalidRequest("least change: name an ask that is to start")
        self._queues: dict[str, str] = {}
        """Where applications are, as the first run shows it."""
        self._options: list[Option] = []
        self._trials = 0
        self._is_cut = False
        """A trial was wanted, and there was no time for it."""
        self._is_first = bool(self._ordered) and _others_wait(state, self._asks)
        """What waits already decides with the changes that are tried, before what is wanted."""

    def found(self) -> LeastChange:
        course = self._tried((), until_s=self._wanted.within_s)
        if self._starts(course):
            return LeastChange(True, (), (), (), self._trials)
        # Placement may have led them to other queues than they name.
        self._queues |= {it.application: it.queue for it in course.placed}
        self._queues |= {it.application: it.queue for it in course.waits}
        unsearched: list[str] = []
        for name, search in _SEARCHES.items():
            self._is_cut = False
            # What is searched last, how long to wait, is one trial, and may be a long one.
            self._kept_s = 0.0 if search is _Search._waits else max(0.0, self._left_s()) / 2
            self._options += self._found_by(search)
            unsearched += [name] * self._is_cut
        names = set(self._asks)
        return LeastChange(
            fits=False,
            waits=tuple(it for it in course.waits if (it.application, it.key) in names),
            refused=tuple(_reasons(course)),
            options=tuple(self._options),
            trials=self._trials,
            unsearched=tuple(unsearched),
        )

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
        places = list(self._places())
        user = places[0].user if places else ""
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

        def done(_: int) -> Course:
            answer = simulate(
                self._state, *made, *self._ordered, until=until_s, compare=False, digest=False,
                is_checked=False, **bounds, **self._simulated,
            )  # fmt: skip
            return answer.course

        if self._beside is None:
            return done(0)
        # Here, where each of the processes has it: made there, it would be made for each trial.
        ready = self._simulated.get("ready")
        if ready is not None:
            ready()
        return self._beside(done)(0)

    def _started(
        self, extra: Sequence[Request | Reconfigure], until_s: float | None
    ) -> Course | None:
        """Return the run up to where all of it has started; None if it does not, or not in time."""
        if self._is_over() or self._trials >= TRIALS_MAX:
            self._is_cut = True
            return None
        awaited = {name: count for name, (count, _) in self._asks.items()}
        try:
            course = self._tried(extra, until_s=until_s, awaited=awaited, is_over=self._is_over)
        except TimeoutError:
            self._is_cut = True
            return None
        self._is_cut |= course.is_cut
        return course if self._starts(course) else None

    def _helps(self, extra: Sequence[Request | Reconfigure]) -> bool:
        return self._started(extra, self._wanted.within_s) is not None

    def _starts(self, course: Course) -> bool:
        placed = Counter((it.application, it.key) for it in course.placed)
        return all(placed[name] >= count for name, (count, _) in self._asks.items())

    # -- raises, and a node

    def _raises(self) -> Iterator[Option]:
        kinds = sorted({kind for _, size in self._asks.values() for kind in size})
        # With all the room there is, others that wait may take it: so first as much as is wanted.
        raised, lifted = self._lifts()
        small: Room = {kind: self._whole(kind) for kind in kinds}
        large: Room = dict.fromkeys(kinds, _LIFTED >> 1)
        ways = [*self._first(raised, lifted), *self._first(small, large)]
        for one in ways or self._first({**raised, **small}, {**lifted, **large}):
            option = self._least(one)
            if option is not None:
                yield option

    def _lifts(self) -> tuple[Room, Room]:
        """Return all bounds, raised by what is wanted, and out of the way."""
        bounds = list(self._bounds())
        return {it: self._usual(it) for it in bounds}, dict.fromkeys(bounds, _LIFTED)

    def _first(self, *ways: Room) -> list[Room]:
        """Return the first of these that helps, if one does."""
        return [*islice((it for it in ways if self._does(it)), 1)]

    def _does(self, room: Room, acts: Iterable[_Act] = ()) -> bool:
        return self._helps(self._requests(room, acts))

    def _requests(self, room: Room, acts: Iterable[_Act] = ()) -> list[Request | Reconfigure]:
        raised = [it.raised(amount) for it, amount in room.items() if isinstance(it, Bound)]
        size = _of_node(room)
        node = [_node(self._partition, size)] if size else []
        return [*raised, *node, *_made(acts)]

    def _whole(self, kind: str) -> int:
        return sum(count * size.get(kind, 0) for count, size in self._asks.values())

    def _least(
        self, room: Room, acts: Sequence[_Act] = (), act: tuple[str, str] = ("", "")
    ) -> Option | None:
        """Put back what need not be lifted, then bring down the rest one by one.

        `acts` are done as well, and `act` is the kind of that, and its words.
        """
        room = dict(room)
        self._put_back(room, acts)
        for name in tuple(room):
            self._lower(room, name, self._usual(name), acts)
        is_least = False
        while not is_least:
            # What is needless as others came down, once more.
            is_least = not self._put_back(room, acts)
            for name, amount in tuple(room.items()):
                less = amount - 1
                if less >= _floor(name) and self._does({**room, name: less}, acts):
                    room[name] = less
                    self._lower(room, name, less, acts)
                    is_least = False
        if max(room.values(), default=0) >= _LIFTED >> 1:
            # There was no time to bring it down, and nobody would write such an amount.
            return None
        words = [it.text(amount) for it, amount in room.items() if isinstance(it, Bound)]
        size = _of_node(room)
        texts = {
            "raise": f"raise {' and '.join(words)}" if words else "",
            "node": f"add a node with {amounts(size)}{_where(self._partition)}" if size else "",
            act[0]: act[1],
        }
        needed = {kind: text for kind, text in texts.items() if text}
        changes = tuple(self._requests(room, acts))
        return Option(" and ".join(needed), " and ".join(needed.values()), changes)

    def _put_back(self, room: Room, acts: Sequence[_Act]) -> bool:
        """Put back bounds that need not be lifted; say whether that is any."""
        needless = False
        for bound in [it for it in room if isinstance(it, Bound)]:
            without = {it: amount for it, amount in room.items() if it != bound}
            if self._does(without, acts):
                del room[bound]
                needless = True
        return needless

    def _lower(self, room: Room, name: Bound | str, high: int, acts: Sequence[_Act]) -> None:
        """Bring one down as far as the answer stays yes; `high` helps nearly always."""
        if isinstance(name, Bound):
            kind, enough = name.kind, {self._missing.used[name] + self._need(name.kind)}
        else:
            kind, enough = name, self._wholes(name)

        def helps(amount: int) -> bool:
            return self._does({**room, name: amount}, acts)

        room[name] = self._lowest(kind, _floor(name), high, room[name], enough, helps)

    def _usual(self, name: Bound | str) -> int:
        """Return what is enough where nobody else takes a part of it."""
        if isinstance(name, Bound):
            return name.present + self._need(name.kind)
        return self._whole(name)

    def _need(self, kind: str) -> int:
        return len({app for app, _ in self._asks}) if kind == APPS else self._whole(kind)

    def _lowest(
        self,
        kind: str,
        least: int,
        high: int,
        known: int,
        enough: Iterable[int],
        helps: Callable[[int], bool],
    ) -> int:
        """Return the least amount that helps; `known` does, and `high` nearly always.

        By arithmetic it is one of `enough`, and what others take before.
        """
        low = least
        if not helps(high):
            low, high = high + 1, known
        likely = sorted({it + other for it in enough for other in self._sums(kind)})
        while likely := [it for it in likely if low <= it < high]:
            middle = likely[len(likely) // 2]
            if helps(middle):
                high = middle
            else:
                low = middle + 1
        if low < high and not helps(high - 1):
            low = high
        while low < high:
            middle = (low + high) // 2
            if helps(middle):
                high = middle
            else:
                low = middle + 1
        # With more room, others that wait may take it first: so less may do where more does not.
        smaller = sorted(high - it for it in self._sums(kind) if least <= high - it < high)
        fitting = (it for it in smaller[:SUMS_MAX] if helps(it))
        return next(fitting, high)

    def _wholes(self, kind: str) -> set[int]:
        """Return what some of what is wanted take together."""
        sums = {0}
        for count, size in self._asks.values():
            for _ in range(min(count, SUMS_MAX)):
                if len(sums) < SUMS_MAX:
                    sums |= {it + size.get(kind, 0) for it in sums}
        return sums

    def _sums(self, kind: str) -> set[int]:
        """Return what others that wait may take together."""
        sums = {0}
        for image in self._state.images.values():
            for app in image["applications"]:
                waiting = _waiting(app, self._asks)
                sizes = [
                    it["spec"]["resource"].get(kind, 0)
                    for it in waiting
                    for _ in range(min(it["remaining"], SUMS_MAX))
                ]
                for size in [1] * bool(waiting) if kind == APPS else sizes:
                    if len(sums) < SUMS_MAX * SUMS_MAX:
                        sums |= {it + size for it in sums}
        return sums

    def _bounds(self) -> Iterator[Bound]:
        """Yield each maximum that may concern what is wanted, along the path of its queue."""
        kinds = {kind for _, size in self._asks.values() for kind in size}
        found = (
            bound
            for place in dict.fromkeys(self._places())
            for bound in bounds_at(_config(self._state, place.partition), place)
        )
        yield from (it for it in dict.fromkeys(found) if it.kind in kinds or it.kind == APPS)

    def _places(self) -> Iterator[Submission]:
        apps = {app for app, _ in self._asks}
        for request in self._changes:
            for new in request.new if isinstance(request, si.ApplicationRequest) else ():
                if new.application_id in apps:
                    ugi = new.ugi or si.UserGroupInformation()
                    queue = self._queues.get(new.application_id, new.queue_name)
                    partition = partition_name(request.rm_id, new.partition_name)
                    yield Submission(partition, queue, ugi.user, ugi.groups)
        for name, image in self._state.images.items():
            for app in image["applications"]:
                spec = app["spec"]
                if spec["application_id"] in apps:
                    yield Submission(name, app["queue"], spec.get("user", ""), (), app["group"])

    def _undrained(self) -> Iterator[Option]:
        acts = [
            _Act(node["node_id"], partial(_opened, name, node["node_id"]))
            for name, image in self._state.images.items()
            for node in image["nodes"]
            if node["drained"]
        ]
        yield from self._acts("open", acts, "let {} take work again")

    # -- releases

    def _releases(self) -> Iterator[Option]:
        """Find the least work whose end makes room."""
        acts = list(_work(self._state, {app for app, _ in self._asks}))
        yield from self._acts("release", acts, "release {}")

    def _acts(self, kind: str, acts: list[_Act], words: str) -> Iterator[Option]:
        """Find the fewest that help: by themselves, or with a raise that does not help alone."""
        if some := self._fewest(acts):
            text = words.format(" and ".join(it.text for it in some))
            yield Option(kind, text, tuple(_made(some)))
        elif acts and not any(it.kind == "raise" for it in self._options):
            for lifted in self._lifts():
                if some := self._fewest(acts, lifted):
                    text = words.format(" and ".join(it.text for it in some))
                    option = self._least(lifted, some, (kind, text))
                    yield from [] if option is None else [option]
                    return

    def _fewest(self, acts: list[_Act], room: Room | None = None) -> tuple[_Act, ...]:
        """Return the least set that helps; where they are many, one of which none is needless."""
        room = room or {}
        acts = sorted(acts, key=lambda it: _cost([it]))
        if len(acts) > SETS_MAX and self._wanted.within_s == 0:
            sizes = [it for n, it in self._asks.values() for _ in range(min(n, SUMS_MAX))]
            for some in self._missing.likely(acts, sizes, room, _cost):
                if self._does(room, some):
                    return self._needed(some, room)
        acts = acts[:SETS_MAX]
        if room and not self._does(room, acts):
            return ()
        sets: list[tuple[_Act, ...]] = []
        number = 0
        while number < len(acts) and len(sets) + comb(len(acts), number + 1) <= SETS_MAX:
            number += 1
            sets += (it for it in combinations(acts, number) if not _overlap(it))
        least = next((it for it in sorted(sets, key=_cost) if self._does(room, it)), ())
        if least or number == len(acts) or not self._does(room, acts):
            return least
        return self._needed(acts, room)

    def _needed(self, acts: Sequence[_Act], room: Room) -> tuple[_Act, ...]:
        """Leave out each that need not be."""
        kept = list(acts)
        for one in reversed(acts):
            without = [it for it in kept if it is not one]
            kept = without if self._does(room, without) else kept
        return tuple(kept)

    def _waits(self) -> Iterator[Option]:
        course = self._started((), None)
        if course is not None:
            last = max(it.at_s for it in course.placed if (it.application, it.key) in self._asks)
            yield Option("wait", f"wait for {last:g} s", (), last)


_Searching = Callable[[_Search], Iterator[Option]]
_SEARCHES: Final[dict[str, _Searching]] = {
    "raises and nodes": _Search._raises,
    "drained nodes": _Search._undrained,
    "releases": _Search._releases,
    "waiting": _Search._waits,
}


# -- what is there


def _of_node(room: Room) -> Resource:
    return {kind: amount for kind, amount in room.items() if isinstance(kind, str) and amount}


def _floor(name: Bound | str) -> int:
    return name.present + 1 if isinstance(name, Bound) else 0


def _reasons(course: Course) -> Iterator[str]:
    """Yield why something was not taken; of an application that was not, its asks say no more."""
    gone = {it.name for it in course.refused if it.what == "application"}
    for it in course.refused:
        if it.what != "ask" or it.name.partition("/")[0] not in gone:
            yield it.reason


def _node(partition: str, size: dict[str, int]) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=_NODE,
        action=si.ActionFromRM.CREATE,
        attributes={NODE_PARTITION: short_partition_name(partition)},
        schedulable_resource=si.Resource.of(size),
    )
    return si.NodeRequest(nodes=(info,), rm_id=manager_of_partition(partition))


def _where(partition: str) -> str:
    name = short_partition_name(partition)
    return "" if name == DEFAULT_PARTITION else f" to partition {name}"


def _asks_of(
    state: CoreState, wanted: Wanted, changes: Sequence[Request | Reconfigure]
) -> tuple[dict[AskName, tuple[int, Resource]], str]:
    """Return how many repeats of each ask are to start, their size, and the first's partition."""
    found: dict[AskName, tuple[int, Resource]] = {}
    partitions: dict[AskName, str] = {}
    for request in changes:
        for ask in request.asks if isinstance(request, si.AllocationRequest) else ():
            size = {} if ask.resource_ask is None else ask.resource_ask.amounts()
            name = (ask.application_id, ask.allocation_key)
            found[name] = ask.max_allocations, size
            partitions[name] = partition_name(request.rm_id, ask.partition_name)
    for partition, image in state.images.items():
        for app in image["applications"]:
            for key, ask in app["asks"].items():
                name = (app["spec"]["application_id"], key)
                if name in wanted.asks and name not in found and ask["remaining"]:
                    found[name] = ask["remaining"], ask["spec"]["resource"]
                    partitions[name] = partition
    asks = {it: found[it] for it in wanted.asks or found if it in found}
    return asks, next((partitions[it] for it in asks), "")


def _others_wait(state: CoreState, wanted: Collection[AskName]) -> bool:
    return any(_waiting(app, wanted) for it in state.images.values() for app in it["applications"])


def _waiting(app: Mapping[str, Any], wanted: Collection[AskName]) -> list[Any]:
    """Return what waits of an application beside what is wanted."""
    id_ = app["spec"]["application_id"]
    return [it for key, it in app["asks"].items() if it["remaining"] and (id_, key) not in wanted]


def _config(state: CoreState, partition: str) -> SchedulerConfig:
    managers = state.registered.managers
    known = next((it for it in managers if partition in it.epochs), None)
    return state.config_of("" if known is None else known.registration.policy_group)


def _opened(name: str, node: str) -> si.NodeRequest:
    attributes = {NODE_PARTITION: short_partition_name(name)}
    action = si.ActionFromRM.DRAIN_TO_SCHEDULABLE
    info = si.NodeInfo(node_id=node, action=action, attributes=attributes)
    return si.NodeRequest(nodes=(info,), rm_id=manager_of_partition(name))


def _work(state: CoreState, own: set[str]) -> Iterator[_Act]:
    """Yield what could be released of others: an allocation, an ask or an application."""
    for name, image in state.images.items():
        for app in image["applications"]:
            id_ = app["spec"]["application_id"]
            if id_ in own:
                continue
            of_ask: dict[str, list[Any]] = {}
            for it in app["allocations"].values():
                of_ask.setdefault(it["spec"]["key"], []).append(it)
            for key, some in of_ask.items():
                waiting = app["asks"].get(key, {"remaining": 0})["remaining"]
                if len(some) > 1 or waiting:
                    for it in some:
                        one = f"{id_}/{key} on {it['node_id']}"
                        yield _released(name, one, [it], app, key, uuid=it["uuid"])
                yield _released(name, f"{id_}/{key}", some, app, key, withdrawn=waiting)
            waits = {key: it["remaining"] for key, it in app["asks"].items() if it["remaining"]}
            if of_ask and len(of_ask.keys() | waits.keys()) > 1:
                every = [it for some in of_ask.values() for it in some]
                what = f"{id_} and what waits of it" if waits else id_
                yield _released(name, what, every, app, withdrawn=sum(waits.values()))


def _released(
    name: str,
    what: str,
    allocations: list[Any],
    app: Mapping[str, Any],
    key: str = "",
    *,
    uuid: str = "",
    withdrawn: int = 0,
) -> _Act:
    application = app["spec"]["application_id"]
    gang = application if any(it["spec"].get("task_group") for it in allocations) else ""
    held = tuple(held_by(name, app, it) for it in allocations)
    uuids = frozenset(it["uuid"] for it in allocations)
    return _Act(what, partial(_release, name, application, key, uuid), held, withdrawn, gang, uuids)


def _release(name: str, application: str, key: str, uuid: str) -> si.AllocationRequest:
    one = si.AllocationRelease(
        partition_name=short_partition_name(name),
        application_id=application,
        allocation_key=key,
        uuid=uuid,
        termination_type=si.TerminationType.STOPPED_BY_RM,
    )
    every = si.AllocationAskRelease(
        partition_name=one.partition_name, application_id=application,
        termination_type=one.termination_type,
    )  # fmt: skip
    releases = si.AllocationReleasesRequest(
        allocations_to_release=(one,), allocation_asks_to_release=() if key else (every,)
    )
    return si.AllocationRequest(releases=releases, rm_id=manager_of_partition(name))
