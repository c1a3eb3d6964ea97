"""Why an ask waited, as lines of text."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from yunikorn_actors.recording.plain_text import moment, printable, table
from yunikorn_actors.trace.causes import Answer, Period, Waits
from yunikorn_actors.trace.checkpointed_replay import Moment
from yunikorn_actors.trace.text.show import CLOCK_DIGITS, place
from yunikorn_actors.trace.text.tables import seconds
from yunikorn_actors.values.close_names import did_you_mean
from yunikorn_actors.values.quantity import readable

_WIDTH: Final = 8
_TIMES: Final = ("from".rjust(_WIDTH), "to".rjust(_WIDTH))
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
    return when.rjust(_WIDTH)
