"""What a simulation found, as data: times are seconds from its beginning."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, TypeVar

AskName = tuple[str, str]
"""The application and the key."""
FullName = tuple[str, str, str]
"""Of an ask: its partition, by full name, its application and its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAsk:
    """What happens to an ask, or to a repeat of it."""

    application: str
    key: str
    queue: str = ""
    user: str = ""
    partition: str = ""
    """By its full name: another one may have an application of the same id."""

    @property
    def name(self) -> FullName:
        """Its partition, its application and its key: no other ask has the same."""
        return self.partition, self.application, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(OfAsk):
    """A repeat of an ask got a node."""

    node: str
    at_s: float
    ends_s: float | None
    """When it ends by its declared run time; None if it declares none."""
    is_placeholder: bool = False
    resources: dict[str, int] = field(default_factory=dict)
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(OfAsk):
    """An allocation ended before its time, or an ask was withdrawn while it waited."""

    node: str
    """Empty for an ask."""
    at_s: float
    why: str
    """The name of its termination type; `PREEMPTED_BY_SCHEDULER` if others needed its room."""
    message: str = ""
    """The words of the core for it."""
    beneficiary: str = ""
    """For which ask or queue it was preempted."""

    @property
    def loss(self) -> str:
        """What its owner loses; nothing where the member of a gang takes the place of another."""
        if not self.node:
            return "withdrawn"
        return {"PLACEHOLDER_REPLACED": "", "PREEMPTED_BY_SCHEDULER": "preempted"}.get(
            self.why, "ended"
        )

    @property
    def words(self) -> str:
        """Why it ended, in words where there are some."""
        if self.loss == "withdrawn" and self.why == "STOPPED_BY_RM":
            return "withdrawn while it waited"
        if self.loss == "ended" and self.message:
            return self.message
        return f"{self.why} for {self.beneficiary}" if self.beneficiary else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTaken:
    """The core did not take an ask, an application or a node."""

    what: str
    name: str
    """Of an ask with its application before it."""
    at_s: float
    reason: str
    partition: str = ""
    """By its full name; empty where its resource manager has several, and none says which."""

    @property
    def whole_name(self) -> FullName:
        """Its name as that of an ask; of an application the key is empty, of a node it is alone."""
        application, _, key = (
            self.name.partition("/") if self.what != "node" else ("", "", self.name)
        )
        return self.partition, application, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(OfAsk):
    """What an ask waited for, and when."""

    from_s: float
    until_s: float | None
    """When that was over; None if it was so at the end."""
    cause: str
    text: str
    """As it was at last."""
    first_text: str = ""
    """As it was when that began, where that is something else: more or less of it was short."""


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
    """Of all asks, from the beginning on; assumptions say where these were too many for that."""
    waiting: tuple[Waiting, ...]
    until_s: float
    """The end of the run."""
    is_cut: bool
    """The bound on what one answer may cost ended it."""
    digest: str
    """Of the state at the end, but for its revision; empty if it was not wanted."""
    has_more: bool = False
    """Behind the end of the run something else is known to happen."""
    assumed: dict[str, int] = field(default_factory=dict)
    """How often each kind of assumption was needed."""
    failures: tuple[str, ...] = ()
    """Policies of one's own that failed, in words."""

    @property
    def preempted(self) -> tuple[Ended, ...]:
        """What others needed the room of."""
        return tuple(it for it in self.ended if it.loss == "preempted")

    @property
    def is_smooth(self) -> bool:
        """All of it was taken, and nothing waits to the end."""
        return not (self.refused or any(it.until_s is None for it in self.waits))

    def start_of(self, application: str, key: str) -> Placed | None:
        """Return the first start of an ask."""
        asks = (it for it in self.placed if (it.application, it.key) == (application, key))
        return next(asks, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(OfAsk):
    """A repeat of an ask that fares otherwise than it would without the changes.

    The key is empty for an application that is refused, or taken; of a node alone it is its name.
    """

    what: str
    """`starts`, `does not start`, `earlier`, `later`, `elsewhere`, `preempted`, `spared`, `ended`,
    `not ended`, `withdrawn`, `not withdrawn`, `refused` or `taken`."""
    without_s: float | None = None
    """When it starts, or is preempted, ended or withdrawn, without the changes."""
    with_s: float | None = None
    without_node: str = ""
    with_node: str = ""
    why: str = ""
    """What it waits for at the end if it does not start, or why it is refused, or ends."""


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
    starts = [*_starts(course, without)]
    parts = (_refused(course, without, starts), starts, _losses(course, without))
    return tuple(it for part in parts for it in sorted(part, key=_place))


def _place(one: Difference) -> tuple[str, ...]:
    return one.application, one.key, one.partition


def _starts(course: Course, without: Course) -> Iterator[Difference]:
    open_ = {it.name: it.text for it in course.waits if it.until_s is None}
    refused, taken = ({it.whole_name: it.reason for it in one.refused} for one in (course, without))
    for name, one, other in _both(course.placed, without.placed):
        what, why = _what(one, other), open_.get(name, "") if one is None else ""
        if one is None and name in refused:
            what, why = "refused", refused[name]
        elif other is None and name in taken:
            what = "taken"
        if what:
            yield _difference(what, one, other, why=why)


def _what(one: Placed | None, other: Placed | None) -> str:
    if one is None or other is None:
        return "does not start" if one is None else "starts"
    if one.at_s != other.at_s:
        return "earlier" if one.at_s < other.at_s else "later"
    return "elsewhere" if one.node != other.node else ""


_T = TypeVar("_T", Placed, Ended)


def _both(
    after: Iterable[_T], before: Iterable[_T]
) -> Iterator[tuple[FullName, _T | None, _T | None]]:
    """Yield what is of one repeat of an ask in both runs: None where there is nothing."""
    by_ask: defaultdict[FullName, tuple[list[_T], list[_T]]] = defaultdict(lambda: ([], []))
    for place, found in enumerate((before, after)):
        for one in found:
            by_ask[one.name][place].append(one)
    for name, (old, new) in by_ask.items():
        for one, other in zip_longest(new, old):
            yield name, one, other


REFUSED: Final = ("refused", "taken")
KEPT: Final = {"preempted": "spared", "ended": "not ended", "withdrawn": "not withdrawn"}
"""What is said of an ask that is lost without the changes, and with them is not."""


def _losses(course: Course, without: Course) -> Iterator[Difference]:
    """Yield which start of an ask ends before its time, or does so no more: wherever that is."""
    for loss, kept in KEPT.items():
        lost = ([it for it in run.ended if it.loss == loss] for run in (course, without))
        for _, one, other in _both(*lost):
            if other is None and one is not None:
                yield _difference(loss, one, None, why=one.words)
            elif one is None:
                yield _difference(kept, None, other)


def _difference(
    what: str, one: Placed | Ended | None, other: Placed | Ended | None, *, why: str = ""
) -> Difference:
    known = one or other
    assert known is not None
    return Difference(
        application=known.application,
        key=known.key,
        what=what,
        queue=known.queue,
        user=known.user,
        partition=known.partition,
        without_s=None if other is None else other.at_s,
        with_s=None if one is None else one.at_s,
        without_node="" if other is None else other.node,
        with_node="" if one is None else one.node,
        why=why,
    )


def _refused(course: Course, without: Course, starts: Iterable[Difference]) -> Iterator[Difference]:
    """Yield what is refused in one run alone, and does not start in the other one."""
    after, before = ({it.whole_name: it for it in one.refused} for one in (course, without))
    known = {it.name for it in starts if it.what in REFUSED}
    for name in (after.keys() ^ before.keys()) - known:
        one, other = after.get(name), before.get(name)
        partition, application, key = name
        yield Difference(
            application=application,
            key=key,
            partition=partition,
            what="taken" if one is None else "refused",
            without_s=None if other is None else other.at_s,
            with_s=None if one is None else one.at_s,
            why=(one or other).reason,  # type: ignore[union-attr]
        )
