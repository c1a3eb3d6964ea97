"""Prints a trace for a person: one line for each message, in the order of the recording.

A line tells the time (milliseconds since the start, and the time of day if that is wanted), the
stimulus from outside that started the chain, the step of which mailbox sent the message, the step
that handles it, and the message. Facts follow their message, one on a line. Names come from
outside, so characters that could control a terminal are printed as escapes. A `+` behind a step
says that it was handled together with the step before it in its mailbox.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TextIO

import msgspec
from msgspec import Struct

from yunikorn_actors.messages.base import TIMER, Cause, Delivery, Message
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.plain_text import moment, printable
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.origins.message_parts import News
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.summary import fact_summary, in_json, message_summary

_ROUTE_WIDTH = 42
_FACT_INDENT = " " * 27
_CUT = "..."

CLOCK_DIGITS: Final = 6
CLOCK_WIDTH: Final = len("2026-01-01T00:00:00.") + CLOCK_DIGITS + len("Z")
"""How the time of day is written."""

_BOLD = "1"
_DIM = "2"


class Look(Struct, frozen=True, kw_only=True):
    """How to print: width 0 cuts nothing, limit 0 shows all."""

    colour: bool = False
    width: int = 0
    full: bool = False
    times: bool = False
    """Whether to tell how long each message waited, and how long the step before it took."""
    limit: int = 0
    clock: bool = False
    """Whether to print the time of day beside the time since the start."""


def show(trace: TraceReader, out: TextIO, wanted: FilterOptions, look: Look) -> int:
    """Print, and return how many messages were wanted."""
    for line in _heading(trace, look):
        print(printable(line), file=out)
    sieve = DeliveryFilter(wanted, trace)
    page = _Page(trace.header.start_ns, sieve, look)
    shown = 0
    for delivery in filter(sieve, trace):
        for line in page.lines(delivery):
            print(line, file=out)
        shown += 1
        if shown == look.limit:
            break
    print(_closing(trace, shown, stopped=shown == look.limit > 0), file=out)
    return shown


def shown_rows(
    trace: TraceReader, wanted: FilterOptions, limit: int
) -> Iterator[dict[str, object]]:
    """Yield each message that is wanted as plain values, whole."""
    for delivery in islice(wanted.over(trace), limit or None):
        waited_ns = None if delivery.sent_ns is None else delivery.at_ns - delivery.sent_ns
        message = delivery.message
        yield {
            "record": trace.number,
            "at_ns": delivery.at_ns,
            "since_start_ns": delivery.at_ns - trace.header.start_ns,
            "clock": moment(delivery.at_ns, 9),
            "mailbox": delivery.mailbox,
            "step": place(Cause(delivery.mailbox, delivery.step)),
            "joined": delivery.joined,
            "sender": delivery.sender,
            "cause": place(delivery.cause) if delivery.cause.step else None,
            "stimulus": delivery.stimulus,
            "waited_ns": waited_ns,
            "step_before_took_ns": delivery.previous_took_ns,
            "type": type_name(message),
            "text": wanted.named(message_summary(message), message),
            "payload": msgspec.Raw(in_json(message)),
        }


def cut(text: str, before: str, width: int) -> str:
    """Shorten to the rest of the line; if hardly anything is left, let the line wrap."""
    room = width - len(before) - 1
    if len(text) > room > 2 * len(_CUT):
        text = text[: room - len(_CUT)] + _CUT
    return f" {text}" if text else ""


def payload_lines(message: Message) -> list[str]:
    """The payload as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(message), indent=2).decode()
    return [printable(line) for line in text.split("\n")]


def place(cause: Cause) -> str:
    return f"{cause.mailbox}/{cause.step}"


class NewFacts:
    """The texts of facts, each shown once: with the message to the first receiver."""

    def __init__(self, sieve: DeliveryFilter) -> None:
        self._sieve = sieve
        self._news = News()

    def of(self, message: FactsAppended) -> Iterator[tuple[str, str]]:
        """Leave out facts that were shown, and count those that are not wanted.

        The sieve has just let this message through.
        """
        if not self._news.are_new(message):
            return
        facts, others = self._sieve.parts_of(message)
        for fact in facts:
            yield type(fact).__name__, printable(self._sieve.wanted.named(fact_summary(fact), fact))
        if others:
            yield "and", f"{others} about others"


class _Page:
    """The lines of each message."""

    def __init__(self, start_ns: int, sieve: DeliveryFilter, look: Look) -> None:
        self._start_ns = start_ns
        self._wanted = sieve.wanted
        self._look = look
        self._new_facts = NewFacts(sieve)

    def lines(self, delivery: Delivery) -> Iterator[str]:
        message = delivery.message
        text, below = message_summary(message), list[str]()
        if self._look.full:
            below = payload_lines(message)
        elif isinstance(message, FactsAppended):
            below = list(self._facts(message))
            text = text if below else f"as above: {text}"
        else:
            text = self._wanted.named(text, message)
        yield self._line(delivery, text)
        yield from below

    def _line(self, delivery: Delivery, text: str) -> str:
        milliseconds = (delivery.at_ns - self._start_ns) / 1e6
        clock = f"{moment(delivery.at_ns, CLOCK_DIGITS)}  " if self._look.clock else ""
        when = f"{milliseconds:>10.3f}  {clock}{printable(delivery.stimulus):<14} "
        joined = " +" if delivery.joined else ""
        route = f"{origin(delivery)} -> {delivery.mailbox}/{delivery.step}{joined}"
        start = f"{printable(route):<{_ROUTE_WIDTH}} "
        kind = type_name(delivery.message)
        if self._look.times:
            text = f"{text}{_times(delivery)}"
        text = self._cut(printable(text), when + start + kind)
        return self._paint(when, _DIM) + start + self._paint(kind, _BOLD) + text

    def _facts(self, message: FactsAppended) -> Iterator[str]:
        for kind, text in self._new_facts.of(message):
            yield f"{_FACT_INDENT}{self._paint(kind, _DIM)}{self._cut(text, _FACT_INDENT + kind)}"

    def _cut(self, text: str, before: str) -> str:
        return cut(text, before, self._look.width)

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._look.colour else text


def _times(delivery: Delivery) -> str:
    waited_ns = None if delivery.sent_ns is None else delivery.at_ns - delivery.sent_ns
    times = {"waited": waited_ns, "the step before took": delivery.previous_took_ns}
    times_shown = [f"{what} {ns / 1e6:.3f} ms" for what, ns in times.items() if ns is not None]
    return f" ({', '.join(times_shown)})" if times_shown else ""


def _heading(trace: TraceReader, look: Look) -> Iterator[str]:
    header = trace.header
    seed = "" if header.seed is None else f", seed {header.seed}"
    yield f"{trace.path}: {header.topology} topology, driver {header.driver}{seed}"
    yield f"instance {header.instance}, started {moment(header.start_ns, 3)}"
    yield ""
    clock = f"{'clock':<{CLOCK_WIDTH}}  " if look.clock else ""
    yield f"{'ms':>10}  {clock}{'stimulus':<14} {'cause -> mailbox/step':<{_ROUTE_WIDTH}} message"


def origin(delivery: Delivery) -> str:
    """The step that sent it, or for a timer the step that armed it; the outside has no cause."""
    if delivery.sender == TIMER:
        return f"{TIMER} of {place(delivery.cause)}"
    return place(delivery.cause) if delivery.cause.step else delivery.sender


def _closing(trace: TraceReader, shown: int, *, stopped: bool) -> str:
    if stopped:
        return f"\nstopped at the limit of {shown}: there may be more"
    total = trace.messages
    counted = f"{total} messages" if shown == total else f"{shown} of {total} messages"
    return f"\n{counted}; {ending(trace)}"


def ending(trace: TraceReader) -> str:
    """Say how a recording ends that has been read, and what is missing in it."""
    if trace.footer is None:
        how = "incomplete: the run is still being recorded, or was cut off"
        if trace.rest:
            how += f"; its last {trace.rest} bytes are no whole record"
    elif trace.footer.failure:
        how = f"the run failed: {printable(trace.footer.failure)}"
    else:
        how = "complete"
    return "; ".join((how, *lacking(trace)))


TAIL: Final = 10
"""So many lines of what is there already are shown of a run that is followed."""


def tail(
    path: Path, out: TextIO, wanted: FilterOptions, look: Look, pause: Callable[[], None]
) -> None:
    """Print the last lines, and what is written from now on, up to the end of the run."""
    last: deque[str] = deque(maxlen=TAIL)
    has_caught_up = False

    def wait() -> None:
        nonlocal has_caught_up
        has_caught_up = True
        _flush(last, out)
        pause()

    with TraceReader(path, wait) as trace:
        sieve = DeliveryFilter(wanted, trace)
        page = _Page(trace.header.start_ns, sieve, look)
        for delivery in filter(sieve, trace):
            last.extend(page.lines(delivery))
            if has_caught_up:
                _flush(last, out)
        _flush(last, out)
        print(f"\n{ending(trace)}", file=out)


def _flush(lines: deque[str], out: TextIO) -> None:
    while lines:
        print(lines.popleft(), file=out)
    out.flush()


def is_whole(trace: TraceReader) -> bool:
    """Whether a recording that has been read has all of a run that went well."""
    return trace.footer is not None and not trace.footer.failure and not any(lacking(trace))


def lacking(trace: TraceReader) -> Iterator[str]:
    if trace.header.segment > 1:
        yield "the beginning of the run is not in it"
    if trace.lost:
        yield f"{trace.lost} messages are missing: the disk was too slow for them"
    if trace.filtered:
        yield f"{trace.filtered} messages were left out when it was exported"
    for kind, count in trace.unknown.items():
        yield f"{count} records of the kind {printable(kind)!r} are of a later version"
