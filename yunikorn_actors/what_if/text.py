"""An answer in words, a line for each thing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import Final, TypeVar

from yunikorn_actors.recording.plain_text import moment
from yunikorn_actors.values.durations import duration
from yunikorn_actors.values.ids import (
    manager_of_partition,
)
from yunikorn_actors.values.quantity import readable
from yunikorn_actors.what_if.answer import (
    KEPT,
    REFUSED,
    Answer,
    Course,
    Difference,
    Ended,
    OfAsk,
    Placed,
    Wait,
)
from yunikorn_actors.what_if.bounds import in_partition
from yunikorn_actors.what_if.least_change import LeastChange

LINES_MAX: Final = 50
"""Lines of one kind that are shown; behind them stands how many more there are."""
_T = TypeVar("_T")


def lines_of(answer: Answer) -> Iterator[str]:
    """Yield the answer, line by line."""
    course, where = answer.course, _Where(answer.revisions)
    yield f"{_head(answer)}, {duration(course.until_s)} ahead"
    yield from _section("starts", course.placed, partial(_placed, where))
    alike = [[*some] for _, some in groupby(_last(course), _same)]
    yield from _section("waits", alike, partial(_waits, where))
    yield from _section("ended or withdrawn", course.ended, partial(_ended, where))
    refused = [f"{it.what} {it.name} ({when(it.at_s)}): {it.reason}" for it in course.refused]
    yield from _section("not taken", refused, str)
    if answer.without is not None:
        if not answer.differences:
            yield "without the changes: the same"
        line = partial(_difference, where, _nevers(answer))
        yield from _section("without the changes", answer.differences, line)
    if course.is_cut or (answer.without is not None and answer.without.is_cut):
        yield "cut short: the bound on what one answer may cost was reached"
    yield from basis_lines(answer)


def differing_lines(answer: Answer) -> Iterator[str]:
    """Yield what fares otherwise, and what that rests on."""
    yield f"{_head(answer)}, {duration(answer.course.until_s)} ahead"
    yield from difference_lines(answer)
    yield from basis_lines(answer)


def basis_lines(answer: Answer | LeastChange) -> Iterator[str]:
    """Yield what it rests on, and what is not known."""
    yield from _section("assumed", answer.assumptions, str)
    yield from _section("not known from this state", answer.lacks, str)


def difference_lines(answer: Answer) -> Iterator[str]:
    """Yield ask by ask what fares otherwise, then whose that is."""
    differences = answer.differences
    where = _Where([*answer.revisions, *(it.partition for it in differences)])
    if not differences:
        yield "nothing fares otherwise"
    line = partial(_difference, where, _nevers(answer))
    yield from _section("fares otherwise", differences, line)
    yield from _section("in sum", _shares(where, differences), str)


class _Where:
    """Names partitions where a name alone could be that of another one's."""

    def __init__(self, partitions: Iterable[str]) -> None:
        self._managers = {manager_of_partition(it) for it in partitions if it}

    def of(self, partition: str) -> str:
        if len(self._managers) > 1 and partition:
            return f" of {partition}"
        return in_partition(partition)

    def named(self, it: OfAsk) -> str:
        name = "/".join(filter(None, (it.application or "node", it.key)))
        return f"{name}{self.of(it.partition)}"


def _head(answer: Answer | LeastChange) -> str:
    names = ", ".join(f"{name} revision {it}" for name, it in answer.revisions.items())
    return f"as of {names or 'an empty core'} ({moment(answer.at_ns, digits=0)})"


def _section(head: str, found: Iterable[_T], line: Callable[[_T], str]) -> Iterator[str]:
    listed = list(found)
    if not listed:
        return
    yield f"{head}:"
    for one in listed[:LINES_MAX]:
        yield f"  {line(one)}"
    if len(listed) > LINES_MAX:
        yield f"  and {len(listed) - LINES_MAX} more"


def _last(course: Course) -> Iterator[Wait]:
    """Of what waits for ever all, of what waited for a while what it waited for."""
    return (it for it in course.waits if it.until_s is None or it.until_s > it.from_s)


def _placed(where: _Where, it: Placed) -> str:
    ends = "" if it.ends_s is None else f", ends {when(it.ends_s)}"
    what = "placeholder " if it.is_placeholder else ""
    size = readable(it.resources) if it.resources else "nothing"
    return f"{what}{where.named(it)} on {it.node} {when(it.at_s)}{ends} ({size})"


def _same(it: Wait) -> tuple[object, ...]:
    """What asks behind each other must share to stand in one line."""
    return it.partition, it.application, it.from_s, it.until_s, it.text, it.first_text


def _waits(where: _Where, alike: list[Wait]) -> str:
    first = alike[0]
    name = where.named(first)
    if len(alike) > 1:
        name = f"{name} to {alike[-1].key} ({len(alike)} asks)"
    until = "to the end" if first.until_s is None else f"until {since_begin(first.until_s)}"
    began = f"{first.first_text}; at last: " if first.first_text else ""
    return f"{name} from {since_begin(first.from_s)} {until}: {began}{first.text}"


def _ended(where: _Where, it: Ended) -> str:
    return f"{where.named(it)} {_moment(it.at_s, it.node)}: {it.words}"


def _nevers(answer: Answer) -> tuple[str, str]:
    """Say of both runs what it means that something does not happen in them."""

    def never(course: Course) -> str:
        if not course.has_more:
            return "never"
        return f"not within {duration(course.until_s)}" if course.until_s else "not at once"

    return never(answer.without or answer.course), never(answer.course)


def _difference(where: _Where, nevers: tuple[str, str], it: Difference) -> str:
    name = where.named(it)
    was = _moment(it.without_s, it.without_node, nevers[0])
    now = _moment(it.with_s, it.with_node, nevers[1])
    why = f": {it.why}" if it.why else ""
    if it.what == "refused":
        starts = f"starts {was}, " if it.without_node else ""
        return f"{name}: {starts}refused with the changes{why}"
    if it.what == "taken":
        return f"{name}: taken with the changes" + (f", starts {now}" if it.with_node else "")
    what = next((loss for loss, kept in KEPT.items() if it.what in {loss, kept}), "starts")
    return f"{name}: {what} {was}, with the changes {now}{why}"


def _moment(at_s: float | None, node: str, never: str = "never") -> str:
    where = f" on {node}" if node else ""
    return never if at_s is None else f"{when(at_s)}{where}"


_IN_SUM: Final = (
    "earlier", "later", "elsewhere", "starts", "does not start", *chain.from_iterable(KEPT.items()),
    *REFUSED,
)  # fmt: skip


def _shares(where: _Where, differences: Iterable[Difference]) -> Iterator[str]:
    """Add up who gains and who loses; of each kind, those that it concerns most come first."""
    kinds = ("queue", "user", "application")
    found: defaultdict[tuple[int, str, str], list[Difference]] = defaultdict(list)
    for it in differences:
        for number, kind in enumerate(kinds):
            if name := getattr(it, kind):
                found[number, name, it.partition].append(it)
    for (number, name, partition), some in sorted(
        found.items(), key=lambda it: (it[0][0], -len(it[1]), it[0][1:])
    ):
        counts = Counter(it.what for it in some)
        by_s = {
            what: sum(abs((it.without_s or 0) - (it.with_s or 0)) for it in some if it.what == what)
            for what in ("earlier", "later")
        }
        parts = [
            f"{counts[what]} {what}"
            + (f" (by {duration(by_s[what])} in all)" if what in by_s else "")
            for what in _IN_SUM
            if what in counts
        ]
        yield f"{kinds[number]} {name}{where.of(partition)}: {', '.join(parts)}"


def when(at_s: float) -> str:
    """Say a time from the beginning on."""
    return "at once" if at_s == 0 else f"after {duration(at_s)}"


def since_begin(at_s: float) -> str:
    """Name a time from the beginning on."""
    return "the beginning" if at_s == 0 else duration(at_s)


def fit_lines(found: LeastChange) -> Iterator[str]:
    """Yield what would let it start, and what that rests on, line by line."""
    yield _head(found)
    yield from way_lines(found)
    yield from basis_lines(found)


def way_lines(found: LeastChange) -> Iterator[str]:
    """Yield what would let it start."""
    if found.fits:
        yield "it starts without any change"
        return
    where = _Where(found.revisions)
    for it in found.waits:
        yield f"{where.named(it)} waits: {it.text}"
    for reason in dict.fromkeys(found.refused):
        yield f"not taken: {reason}"
    for option in found.options:
        yield f"{option.kind}: {option.text}"
    if found.unsearched:
        kinds = " and ".join(found.unsearched)
        yield f"not searched to the end, for want of time: {kinds}; less may do, or something else"
    elif not found.options:
        yield "no single change of these lets it start: a raise, a node, a release, waiting"
