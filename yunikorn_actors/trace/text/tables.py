"""The answers about a recording as lines of text."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.recording.plain_text import moment, printable, table
from yunikorn_actors.trace.causes import Answer, Period, Waits
from yunikorn_actors.trace.chain import Link
from yunikorn_actors.trace.checkpointed_replay import Moment
from yunikorn_actors.trace.path import Way
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.refused import RefusalGroup
from yunikorn_actors.trace.stats import Row, Slow, Spread, Stats
from yunikorn_actors.trace.story import StoryLine, Subject
from yunikorn_actors.trace.text.show import CLOCK_DIGITS, lacking, place
from yunikorn_actors.trace.text.summary import message_summary
from yunikorn_actors.values.close_names import did_you_mean
from yunikorn_actors.values.quantity import readable

_INDENT = "  "


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"


def milliseconds(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:.3f}"


# -- chains


def chain_lines(path: Path, links: Iterable[Link], *, clock: bool = False) -> Iterator[str]:
    with TraceReader(path) as trace:
        start_ns = trace.header.start_ns
    for link in links:
        delivery = link.delivery
        mark = "> " if link.is_wanted else "  "
        at = place(Cause(delivery.mailbox, delivery.step))
        what = f"{type_name(delivery.message)} {message_summary(delivery.message)}".rstrip()
        when = f"{(delivery.at_ns - start_ns) / 1e6:>10.3f}"
        of_day = f"{moment(delivery.at_ns, CLOCK_DIGITS)} " if clock else ""
        before = f"{when} {of_day}{mark}{_INDENT * link.depth}"
        yield printable(f"{before}{at}  {what}{_noted(link)}{_waited(delivery)}")


def _noted(link: Link) -> str:
    """Say what else the message came of, what it is also about, and what it was handled with."""
    notes = []
    if link.set_off_by is not None:
        notes.append(f"set off by {place(link.set_off_by)}")
    others = link.together - 1
    if others:
        notes.append(f"handled together with {others} other{'s' if others > 1 else ''}")
    if link.is_wanted and link.others:
        notes.append(f"about {link.about}; {link.others} more: --about")
    return f"  ({'; '.join(notes)})" if notes else ""


def _waited(delivery: Delivery) -> str:
    if delivery.sent_ns is None:
        return ""
    return f"  (waited {milliseconds(delivery.at_ns - delivery.sent_ns)} ms)"


# -- lives and ways


def story_lines(
    path: Path, subject: Subject, lines: Iterable[StoryLine], *, clock: bool = False
) -> Iterator[str]:
    with TraceReader(path) as trace:
        start_ns = trace.header.start_ns
    yield printable(subject.title)
    rows = [
        (
            milliseconds(it.at_ns - start_ns),
            *((moment(it.at_ns, CLOCK_DIGITS),) if clock else ()),
            it.stimulus, place(it.step), f"{it.what} {it.text}",
        )
        for it in lines
    ]  # fmt: skip
    head = ("ms", *(("clock",) if clock else ()), "stimulus", "by", "")
    yield from table(head, rows, left=len(head))


def path_lines(way: Way, *, clock: bool = False) -> Iterator[str]:
    """Yield the lines; with the clock each part names the moment at which it ended."""
    if not way.parts:
        yield printable(f"{way.ask}: nobody asked for it in this recording")
        return
    end = "to the callback" if way.is_whole else "so far: it has not come to the callback"
    yield printable(f"{way.ask}: {milliseconds(way.took_ns // 1000 * 1000)} ms {end}")
    longest = max(part.took_ns for part in way.parts)
    passed_ns = 0
    for part in way.parts:
        begin, began_us = _cells(passed_ns, way.took_ns), passed_ns // 1000
        passed_ns += part.took_ns
        # Moments are rounded, not spans: so what is shown adds up to the whole.
        shown_ns = (passed_ns // 1000 - began_us) * 1000
        bar = "#" * max(1, _cells(passed_ns, way.took_ns) - begin)
        mark = "  <- most of it" if part.took_ns == longest > 0 else ""
        when = f"{milliseconds(shown_ns):>12} ms  |{' ' * begin + bar:<{_BAR_WIDTH + 1}}| "
        of_day = f"{moment(way.began_ns + passed_ns, CLOCK_DIGITS)}  " if clock else ""
        yield printable(f"{of_day}{when}{part.what} ({place(part.step)}){mark}")


_BAR_WIDTH = 30


def _cells(ns: int, whole_ns: int) -> int:
    """Return how far to the right a moment is drawn."""
    return ns * _BAR_WIDTH // whole_ns if whole_ns else 0


# -- refusals


def refusal_lines(trace: TraceReader, groups: list[RefusalGroup]) -> Iterator[str]:
    if not groups:
        yield "nothing was refused"
        return
    start_ns = trace.header.start_ns
    yield from table(
        ("count", "what", "first", "at s", "by", "stimulus", "reason"),
        (
            (
                str(group.count), group.what, group.first or "-",
                seconds(group.first_ns - start_ns), place(group.first_at), group.stimulus,
                group.reason,
            )
            for group in groups
        ),
        left=7,
    )  # fmt: skip


# -- stats


def stats_lines(trace: TraceReader, found: Stats) -> Iterator[str]:
    yield f"{found.messages} messages in {seconds(found.duration_ns)} s"
    if not any(row.took for row in found.rows):
        yield _NO_TIMES[trace.header.driver == "sim"]
    yield ""
    yield from table(
        (
            "mailbox", "type", "count", "per s", "waited ms p50", "p99", "max", "took ms p50",
            "p99", "max", "longest queue",
        ),
        map(_stats_row, found.rows),
        left=2,
    )  # fmt: skip
    if found.slowest:
        yield ""
        yield "The slowest steps:"
        yield from table(("step", "type", "stimulus", "took ms"), map(_slow, found.slowest), left=3)
    if lacks := "; ".join(lacking(trace)):
        yield ""
        yield lacks


_NO_TIMES = {
    True: "a simulated run: nothing takes time in it, so there are counts alone",
    False: "a recording of format 1: it does not tell how long things took",
}


def _stats_row(row: Row) -> tuple[str, ...]:
    return (
        "" if row.type else row.mailbox,
        row.type or "all",
        str(row.count),
        "-" if row.per_second is None else f"{row.per_second:.1f}",
        *_spread(row.waited),
        *_spread(row.took),
        "" if row.type else "-" if row.longest_queue is None else str(row.longest_queue),
    )


def _spread(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return ("-", "-", "-")
    return (milliseconds(spread.p50), milliseconds(spread.p99), milliseconds(spread.max))


def _slow(slow: Slow) -> tuple[str, ...]:
    return (place(slow.step), slow.type, slow.stimulus, milliseconds(slow.took_ns))


_TIME_WIDTH: Final = 8
_TIMES: Final = ("from".rjust(_TIME_WIDTH), "to".rjust(_TIME_WIDTH))
_CLOCK: Final = ("from (UTC)", "to (UTC)")
_REST: Final = ("why", "since", "held by")
_TIMELESS: Final = "the clock stood still all the time, so these are numbers of records"


def wait_lines(answer: Answer, *, clock: bool = False) -> Iterator[str]:
    """Yield the lines; without times only the order of the records tells how long it was."""
    for number, waits in enumerate(answer.waits):
        if number:
            yield ""
        yield from _lines(waits, answer, clock=clock)


def wait_rows(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield each period as plain values."""
    for waits in answer.waits:
        names = {name: getattr(waits, name) for name in ("partition", "application_id", "key")}
        for period in waits.periods:
            row = msgspec.to_builtins(period)
            del row["kind"]
            row["step"] = place(period.step)
            begin, end = row.pop("begin"), row.pop("end") or (None, None)
            times = {"from_ns": begin[0], "to_ns": end[0]}
            yield names | times | {"from_record": begin[1], "to_record": end[1]} | row


def wait_problems(answer: Answer, keys: Iterable[str]) -> Iterator[str]:
    """Yield why there is no answer, or no whole one."""
    for key in keys:
        if not answer.names(key):
            yield f"no ask {key!r:.80} came{did_you_mean(key, answer.known)}"
    if answer.difference is not None:
        yield answer.difference.as_warning()


def _lines(waits: Waits, answer: Answer, *, clock: bool) -> Iterator[str]:
    spent = waits.spent()
    how_long = f"{seconds(spent.at_ns)} s" if answer.has_times else f"{spent.record} records"
    asked = f"{waits.key} of {waits.application_id} ({readable(waits.resource)})"
    yield printable(f"{asked} in {waits.partition} waited {how_long}")
    if not answer.has_times:
        yield _TIMELESS
    if not waits.periods:
        yield "the recording ends before its planner learned of it"
        return
    yield ""
    head = (*_TIMES, *(_CLOCK if clock else ()), *_REST)
    rows = (row for period in waits.periods for row in _rows(period, answer, clock=clock))
    yield from table(head, rows, left=len(head))


def _rows(period: Period, answer: Answer, *, clock: bool) -> Iterator[tuple[str, ...]]:
    moments = (period.begin, period.end)
    times = (
        *(_when(it, answer) for it in moments),
        *("" if it is None else moment(it.at_ns, CLOCK_DIGITS) for it in moments if clock),
    )
    first, *more = period.brief.split("\n")
    yield *times, first, period.since, ", ".join(period.held_by)
    for line in more:
        yield *("" for _ in times), f"  {line}", "", ""


def _when(at: Moment | None, answer: Answer) -> str:
    if at is None:
        return ""
    when = seconds(at.at_ns - answer.start_ns) if answer.has_times else str(at.record)
    return when.rjust(_TIME_WIDTH)
