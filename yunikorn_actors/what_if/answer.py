"""What a simulation found, as data: times are seconds from its beginning."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

AskName = tuple[str, str]
"""The application and the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A repeat of an ask got a node."""

    application: str
    key: str
    queue: str
    node: str
    at_s: float
    ends_s: float | None
    """When it ends by its declared run time; None if it declares none."""
    is_placeholder: bool = False
    resources: dict[str, int] = field(default_factory=dict)
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The core ended an allocation, or withdrew an ask."""

    application: str
    key: str
    node: str
    """Empty for an ask."""
    at_s: float
    why: str
    """The name of its termination type; `PREEMPTED_BY_SCHEDULER` if others needed its room."""
    beneficiary: str = ""
    """For which ask or queue it was preempted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTaken:
    """The core did not take an ask, an application or a node."""

    what: str
    name: str
    at_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What an ask waited for, and when."""

    application: str
    key: str
    queue: str
    from_s: float
    until_s: float | None
    """When that was over; None if it was so at the end."""
    cause: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many asks waited for what, from this time on."""

    at_s: float
    causes: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All that happened in one run."""

    placed: tuple[Placed, ...]
    ended: tuple[Ended, ...]
    refused: tuple[NotTaken, ...]
    waits: tuple[Wait, ...]
    """Of the asks that are asked about, all the time; of all others, at the end."""
    waiting: tuple[Waiting, ...]
    until_s: float
    """The end of the run."""
    is_cut: bool
    """The bound on what one answer may cost ended it."""
    digest: str
    """Of the state at the end, but for its revision."""

    @property
    def preempted(self) -> tuple[Ended, ...]:
        """What others needed the room of."""
        return tuple(it for it in self.ended if it.why == "PREEMPTED_BY_SCHEDULER")

    def start_of(self, application: str, key: str) -> Placed | None:
        """Return the first start of an ask."""
        asks = (it for it in self.placed if (it.application, it.key) == (application, key))
        return next(asks, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A repeat of an ask that fares otherwise than it would without the changes."""

    application: str
    key: str
    what: str
    """`starts`, `does not start`, `earlier`, `later`, `elsewhere`, `preempted` or `spared`."""
    without_s: float | None = None
    """When it starts, or is preempted, without the changes."""
    with_s: float | None = None
    without_node: str = ""
    with_node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What would happen, against what happens without the changes."""

    revisions: dict[str, int]
    """The revision of each partition that it is an answer about."""
    at_ns: int
    """The moment of the state."""
    course: Course
    without: Course | None
    """The same run without the changes; None if it was not wanted."""
    differences: tuple[Difference, ...]
    assumptions: tuple[str, ...]
    lacks: tuple[str, ...]
    """What the source of the state does not say."""


def differences_of(course: Course, without: Course) -> tuple[Difference, ...]:
    """Return what is different, ask by ask, in the order of their names."""
    return tuple(sorted(_starts(course, without), key=_place)) + tuple(
        sorted(_preempted(course, without), key=_place)
    )


def _place(one: Difference) -> AskName:
    return one.application, one.key


def _starts(course: Course, without: Course) -> Iterator[Difference]:
    after, before = _by_ask(course), _by_ask(without)
    for application, key in {**before, **after}:
        mine, former = after[application, key], before[application, key]
        for number in range(max(len(mine), len(former))):
            one = mine[number] if number < len(mine) else None
            other = former[number] if number < len(former) else None
            what = _what(one, other)
            if what:
                yield Difference(
                    application=application,
                    key=key,
                    what=what,
                    without_s=None if other is None else other.at_s,
                    with_s=None if one is None else one.at_s,
                    without_node="" if other is None else other.node,
                    with_node="" if one is None else one.node,
                )


def _what(one: Placed | None, other: Placed | None) -> str:
    if one is None or other is None:
        return "does not start" if one is None else "starts"
    if one.at_s != other.at_s:
        return "earlier" if one.at_s < other.at_s else "later"
    return "elsewhere" if one.node != other.node else ""


def _by_ask(course: Course) -> defaultdict[AskName, list[Placed]]:
    found: defaultdict[AskName, list[Placed]] = defaultdict(list)
    for one in course.placed:
        found[one.application, one.key].append(one)
    return found


def _preempted(course: Course, without: Course) -> Iterator[Difference]:
    after = {(it.application, it.key, it.node): it for it in course.preempted}
    before = {(it.application, it.key, it.node): it for it in without.preempted}
    for name in {**before, **after}:
        if name in before and name in after:
            continue
        one, other = after.get(name), before.get(name)
        yield Difference(
            application=name[0],
            key=name[1],
            what="spared" if one is None else "preempted",
            without_s=None if other is None else other.at_s,
            with_s=None if one is None else one.at_s,
            without_node="" if other is None else name[2],
            with_node="" if one is None else name[2],
        )
