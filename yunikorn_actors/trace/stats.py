"""How much was handled in a run, how long it waited and how long it took, by mailbox and type."""

from array import array
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import TraceReader

SLOWEST: Final = 10


class Spread(Struct, frozen=True, kw_only=True):
    """Nanoseconds: the middle, what one in a hundred exceeds, and the most."""

    p50: int
    p99: int
    max: int


class Row(Struct, frozen=True, kw_only=True):
    mailbox: str
    type: str
    """Empty for all of the mailbox."""
    count: int
    per_second: float | None
    """None where the recording has no duration, as that of many simulated runs."""
    waited: Spread | None
    """From sending to handling; None where nobody measured it, as in simulated runs."""
    took: Spread | None
    longest_queue: int | None
    """Of the mailbox: how many messages were sent and not handled yet, at most."""


class Slow(NamedTuple):
    took_ns: int
    step: Cause
    type: str
    stimulus: str


class Stats(Struct, frozen=True, kw_only=True):
    messages: int
    duration_ns: int
    rows: tuple[Row, ...]
    slowest: tuple[Slow, ...]


class _Counts:
    def __init__(self) -> None:
        self.count = 0
        self.waited = array("q")
        self.took = array("q")


class _Step(NamedTuple):
    """A step whose duration is in the next record of its mailbox."""

    step: int
    type: str
    stimulus: str


class _Gathering:
    """What is known of one mailbox."""

    def __init__(self) -> None:
        self.by_type: dict[str, _Counts] = {}
        self.last: _Step | None = None
        self.sent = array("q")
        self.handled = array("q")


def stats(trace: TraceReader, wanted: FilterOptions) -> Stats:
    mailboxes: dict[str, _Gathering] = {}
    slow: list[Slow] = []
    first_ns = last_ns = trace.header.start_ns
    messages = 0
    for delivery in wanted.over(trace):
        messages += 1
        last_ns = max(last_ns, delivery.at_ns)
        slow = _note(mailboxes.setdefault(delivery.mailbox, _Gathering()), delivery, slow)
    for mailbox, took_ns in ({} if trace.footer is None else trace.footer.took_ns).items():
        if mailbox in mailboxes:
            slow = _took(mailboxes[mailbox], mailbox, took_ns, slow)
    return Stats(
        messages=messages,
        duration_ns=last_ns - first_ns,
        rows=tuple(_rows(mailboxes, last_ns - first_ns)),
        slowest=tuple(nlargest(SLOWEST, slow)),
    )


def _note(mailbox: _Gathering, delivery: Delivery, slow: list[Slow]) -> list[Slow]:
    if delivery.previous_took_ns is not None:
        slow = _took(mailbox, delivery.mailbox, delivery.previous_took_ns, slow)
    kind = type_name(delivery.message)
    counts = mailbox.by_type.setdefault(kind, _Counts())
    counts.count += 1
    if delivery.sent_ns is not None:
        counts.waited.append(max(0, delivery.at_ns - delivery.sent_ns))
        mailbox.sent.append(delivery.sent_ns)
        mailbox.handled.append(delivery.at_ns)
    mailbox.last = _Step(delivery.step, kind, delivery.stimulus)
    return slow


def _took(mailbox: _Gathering, name: str, took_ns: int, slow: list[Slow]) -> list[Slow]:
    """What a filter has left out is nobody's time."""
    last = mailbox.last
    if last is None:
        return slow
    mailbox.by_type[last.type].took.append(took_ns)
    slow.append(Slow(took_ns, Cause(name, last.step), last.type, last.stimulus))
    return nlargest(SLOWEST, slow) if len(slow) > 10 * SLOWEST else slow


def _rows(mailboxes: dict[str, _Gathering], duration_ns: int) -> Iterator[Row]:
    for name, mailbox in mailboxes.items():
        all_of_it = _Counts()
        for counts in mailbox.by_type.values():
            all_of_it.count += counts.count
            all_of_it.waited.extend(counts.waited)
            all_of_it.took.extend(counts.took)
        yield _row(name, "", all_of_it, duration_ns, _longest(mailbox))
        for kind, counts in sorted(mailbox.by_type.items(), key=lambda it: -it[1].count):
            yield _row(name, kind, counts, duration_ns, None)


def _row(mailbox: str, type_: str, counts: _Counts, duration_ns: int, longest: int | None) -> Row:
    return Row(
        mailbox=mailbox,
        type=type_,
        count=counts.count,
        per_second=counts.count / duration_ns * 1e9 if duration_ns else None,
        waited=_spread(counts.waited),
        took=_spread(counts.took),
        longest_queue=longest,
    )


def _spread(times: Iterable[int]) -> Spread | None:
    ordered = sorted(times)
    if not ordered:
        return None
    last = len(ordered) - 1
    return Spread(p50=ordered[last // 2], p99=ordered[last * 99 // 100], max=ordered[last])


def _longest(mailbox: _Gathering) -> int | None:
    """Count what was sent and not handled at each sending; the one that is sent counts."""
    longest, handled = 0, 0
    ends = sorted(mailbox.handled)
    for number, sent_ns in enumerate(sorted(mailbox.sent), 1):
        while handled < len(ends) and ends[handled] <= sent_ns:
            handled += 1
        longest = max(longest, number - handled)
    return longest if mailbox.sent else None
