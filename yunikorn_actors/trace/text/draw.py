"""Draws a trace: the messages between mailboxes, from top to bottom, in the order of the recording.

Each mailbox has a column; everything outside of the core shares one. The message stands beside its
arrow, and its facts below it. An arrow that ends in `+` brings what was handled together with the
message before it in that mailbox. The event publisher gets the same facts as the schedulers and
answers nothing. So its copies are left out if there are schedulers, unless `--mailbox` asks for
them. Who asks about a member gets its placeholder too, and the other way round.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Delivery,
    is_outside,
)
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.plain_text import moment, printable
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.origins.swaps import along_swaps
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.text.show import (
    CLOCK_DIGITS,
    CLOCK_WIDTH,
    NewFacts,
    cut,
    ending,
    is_whole,
)
from yunikorn_actors.trace.text.summary import message_summary

_OUTSIDE = "outside"
_GAP = "   "
_FACT_INDENT = "  "

_Row = tuple[int, str, str, bool, list[tuple[str, str]]]
"""The time, sender, receiver, whether joined, and the texts: of the message, then of its facts."""


def draw(
    path: Path, wanted: FilterOptions, *, width: int = 0, limit: int = 0, clock: bool = False
) -> Iterator[str]:
    """Yield the lines, none if no message is wanted; width 0 cuts nothing, limit 0 draws all.

    The recording is read twice: which columns there are is known at its end.
    """
    wanted = along_swaps(path, wanted)
    with TraceReader(path) as trace:
        columns = _Columns(_ends(islice(_rows(trace, wanted), limit or None)))
    with TraceReader(path) as trace:
        if columns.has_any:
            heading = f"{'ms':>10}  {'clock':<{CLOCK_WIDTH}}  " if clock else ""
            yield heading + columns.heading
            yield (" " * len(heading) + columns.between).rstrip()
        for at_ns, sender, receiver, joined, texts in islice(_rows(trace, wanted), limit or None):
            since_ns = at_ns - trace.header.start_ns
            when = f"{since_ns / 1e6:>10.3f}  {moment(at_ns, CLOCK_DIGITS)}  " if clock else ""
            before = when + columns.arrow(sender, receiver, joined=joined) + _GAP
            for kind, words in texts:
                start = before + kind
                yield start + cut(words, start, width)
                before = " " * len(when) + columns.between + _GAP + _FACT_INDENT
        if columns.has_any and not limit and not is_whole(trace):
            yield ""
            yield ending(trace)


def _ends(rows: Iterator[_Row]) -> Iterator[str]:
    """Yield who sends and who receives, as far as the recording can be read."""
    with suppress(TraceError):
        for _, sender, receiver, *_ in rows:
            yield sender
            yield receiver


def _rows(trace: TraceReader, wanted: FilterOptions) -> Iterator[_Row]:
    sieve = DeliveryFilter(wanted, trace)
    new_facts = NewFacts(sieve)
    leaves_out_copies = trace.header.topology == "proposing" and not wanted.mailbox
    for delivery in filter(sieve, trace):
        is_copy = delivery.mailbox == EVENT_PUBLISHER and isinstance(
            delivery.message, FactsAppended
        )
        if not (is_copy and leaves_out_copies):
            ends = _column(delivery.sender), _column(delivery.mailbox)
            yield delivery.at_ns, *ends, delivery.joined, _texts(delivery, wanted, new_facts)


def _texts(delivery: Delivery, wanted: FilterOptions, new_facts: NewFacts) -> list[tuple[str, str]]:
    message = delivery.message
    kind, words = type_name(message), message_summary(message)
    if not isinstance(message, FactsAppended):
        return [(kind, printable(wanted.named(words, message)))]
    words = printable(words)
    facts = list(new_facts.of(message))
    return [(kind, words if facts else f"as above: {words}"), *facts]


def _column(address: str) -> str:
    return _OUTSIDE if is_outside(address) else printable(address)


_PLACES: Final = (_OUTSIDE, RM_PROXY, CONTEXT, "scheduler", EVENT_PUBLISHER)


def _place(column: str) -> int:
    kind = column.partition(":")[0]
    return _PLACES.index(kind) if kind in _PLACES else len(_PLACES)


class _Columns:
    """A column for each mailbox, in an order that does not depend on the run."""

    def __init__(self, addresses: Iterable[str]) -> None:
        columns = sorted(dict.fromkeys(addresses), key=_place)
        self.has_any = bool(columns)
        kinds = [column.partition(":")[0] for column in columns]
        names = [
            kind if kinds.count(kind) == 1 else column
            for kind, column in zip(kinds, columns, strict=True)
        ]
        starts = accumulate((len(name + _GAP) for name in names), initial=0)
        centres = [start + len(name) // 2 for start, name in zip(starts, names, strict=False)]
        self.heading = _GAP.join(names)
        self._at = dict(zip(columns, centres, strict=True))
        self.between = self._row(dict.fromkeys(centres, "|"))

    def arrow(self, sender: str, receiver: str, *, joined: bool) -> str:
        """Draw an arrow; a message of a mailbox to itself has no length."""
        start, end = self._at[sender], self._at[receiver]
        row = dict.fromkeys(self._at.values(), "|")
        if start < end:
            row |= dict.fromkeys(range(start + 1, end - 1), "-") | {end - 1: "+" if joined else ">"}
        elif start > end:
            row |= dict.fromkeys(range(end + 2, start), "-") | {end + 1: "+" if joined else "<"}
        else:
            row[start] = "o"
        return self._row(row)

    def _row(self, signs: dict[int, str]) -> str:
        return "".join(signs.get(at, " ") for at in range(len(self.heading)))
