"""The recording as spans of OpenTelemetry, in JSON as its protocol has it (OTLP/JSON).

A request from outside is a trace, and handling a message is a span of it, below the span of the
step that sent it. What came of several messages that were handled together is below the last of
them; links lead to those of them that brought its own items. The time of the handling is written
once, by the last of them. Numbers of traces and spans come from the names, so they are the same
whenever it is exported.

Each line is a JSON document of its own, as collectors read files: a line at a time.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from yunikorn_actors.messages.base import Cause, Delivery, Message
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.trace.export.timeline import Step, Timeline
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.origins.items import items_in
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import origin
from yunikorn_actors.trace.text.summary import message_summary
from yunikorn_actors.version import VERSION

LINE_BYTES: Final = 256 * 1024
"""A line has so much at most, or one span: collectors cut off lines from a mebibyte on."""
LINKS_MAX: Final = 128
"""What libraries of OpenTelemetry keep of a span as well, if nothing else is set."""
_CONSUMER: Final = 5
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8

Json = dict[str, Any]


def otlp(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    spans = _Spans(trace, sieve)
    resource = {"service.name": "yunikorn-actors", "service.instance.id": trace.header.instance}
    head = _json({"attributes": _attributes(resource | spans.note)})
    scope = _json({"name": "yunikorn_actors.trace", "version": VERSION})
    before = f'{{"resourceSpans":[{{"resource":{head},"scopeSpans":[{{"scope":{scope},"spans":['
    line: list[str] = []
    size = 0
    for text in map(_json, spans.ended()):
        if line and size + len(text.encode()) > LINE_BYTES:
            yield f"{before}{','.join(line)}]}}]}}]}}"
            line, size = [], 0
        line.append(text)
        size += len(text.encode()) + 1
    if line:
        yield f"{before}{','.join(line)}]}}]}}]}}"


class _Together(NamedTuple):
    """Messages that were handled together; the last of them has caused what came of it."""

    of_items: dict[object, Cause]
    """The step that brought each item last."""

    def take(self, delivery: Delivery) -> None:
        at = Cause(delivery.mailbox, delivery.step)
        for names in _names(delivery.message):
            self.of_items.update(dict.fromkeys(names, at))

    def brought(self, message: Message) -> Iterator[Cause]:
        """Yield which of them brought each item of a message, if one did."""
        for names in _names(message):
            found = next((self.of_items[it] for it in names if it in self.of_items), None)
            if found is not None:
                yield found


class _Spans:
    def __init__(self, trace: TraceReader, sieve: DeliveryFilter) -> None:
        self._trace = trace
        self._sieve = sieve
        self._timeline = Timeline(trace.header)
        self.note = {"note": self._timeline.note} if self._timeline.note else {}
        self._run = f"{trace.header.instance}\0{trace.header.start_ns}\0"
        self._stimuli: dict[Cause, str] = {}
        """Of each step that has a span."""
        self._open: dict[str, list[Json]] = {}
        """What was handled last in each mailbox, together: it ends as soon as that is known."""
        self._last: dict[str, Delivery] = {}
        """The last message of each mailbox."""
        self._together: dict[Cause, _Together] = {}
        """What was handled together with each step that was the last of several."""

    def ended(self) -> Iterator[Json]:
        for step in self._timeline.steps(self._trace, self._sieve):
            delivery = step.delivery
            mailbox, last = delivery.mailbox, self._last.get(delivery.mailbox)
            if not delivery.joined:
                is_next = last is not None and last.step == delivery.step - 1
                yield from self._end(mailbox, delivery.previous_took_ns if is_next else None)
            elif last is not None:
                self._join(delivery, last)
            if step.is_wanted:
                self._begin(step)
            self._last[mailbox] = delivery
        footer = self._trace.footer
        took = {} if footer is None else footer.took_ns
        for mailbox in tuple(self._open):
            yield from self._end(mailbox, took.get(mailbox))

    def _join(self, delivery: Delivery, last: Delivery) -> None:
        together = self._together.pop(Cause(last.mailbox, last.step), None)
        if together is None:
            together = _Together({})
            together.take(last)
        together.take(delivery)
        self._together[Cause(delivery.mailbox, delivery.step)] = together

    def _begin(self, step: Step) -> None:
        delivery = step.delivery
        at = Cause(delivery.mailbox, delivery.step)
        begin_ns = _nano(self._trace.header.start_ns + step.begin_ns)
        span: Json = {
            "traceId": self._trace_id(delivery.stimulus),
            "spanId": self._span_id(at),
            "name": type_name(delivery.message) or "message",
            "kind": _CONSUMER,
            "startTimeUnixNano": begin_ns,
            "endTimeUnixNano": begin_ns,
            "attributes": _attributes(_details_of(step)),
        }
        if self._stimuli.get(delivery.cause) == delivery.stimulus:
            span["parentSpanId"] = self._span_id(delivery.cause)
        links = self._links(delivery)
        if links:
            span["links"] = links[:LINKS_MAX]
        if len(links) > LINKS_MAX:
            span["droppedLinksCount"] = len(links) - LINKS_MAX
        self._open.setdefault(delivery.mailbox, []).append(span)
        self._stimuli[at] = delivery.stimulus

    def _links(self, delivery: Delivery) -> list[Json]:
        """Lead to the cause, if it is no parent, and to what brought the items of a message."""
        causes = dict.fromkeys([delivery.cause])
        together = self._together.get(delivery.cause)
        if together is not None:
            causes |= dict.fromkeys(together.brought(delivery.message))
        if self._stimuli.get(delivery.cause) == delivery.stimulus:
            del causes[delivery.cause]
        return [
            {"traceId": self._trace_id(self._stimuli[it]), "spanId": self._span_id(it)}
            for it in causes
            if it in self._stimuli
        ]

    def _end(self, mailbox: str, took_ns: int | None) -> Iterator[Json]:
        spans = self._open.pop(mailbox, [])
        if spans:
            end_ns = int(spans[-1]["startTimeUnixNano"]) + (took_ns or 0)
            spans[-1]["endTimeUnixNano"] = _nano(end_ns)
        yield from spans

    def _trace_id(self, stimulus: str) -> str:
        return _digest(self._run + stimulus, _TRACE_BYTES)

    def _span_id(self, at: Cause) -> str:
        return _digest(f"{self._run}{at.mailbox}\0{at.step}", _SPAN_BYTES)


def _details_of(step: Step) -> dict[str, str | int | bool]:
    delivery = step.delivery
    waited = _waited(delivery)
    return {
        "messaging.system": "yunikorn-actors",
        "messaging.operation.type": "process",
        "messaging.destination.name": delivery.mailbox,
        "number": step.number,
        "step": delivery.step,
        "sender": origin(delivery),
        "stimulus": delivery.stimulus,
        "says": message_summary(delivery.message),
        "joined": delivery.joined,
        **({} if waited is None else {"waited_ns": waited}),
    }


def _names(message: Message) -> Iterator[tuple[object, ...]]:
    """Yield as what each item of a message is known, the surest first.

    An ask and its end may come together: an end is of the request to end it, if there is one.
    """
    for part, application_id, key, uuid in items_in(message):
        own = (("uuid", uuid),) if uuid else ()
        names = (*own, *(((application_id, key),) if key or not uuid else ()))
        yield (*((part, name) for name in names), *names)


def _waited(delivery: Delivery) -> int | None:
    return None if delivery.sent_ns is None else delivery.at_ns - delivery.sent_ns


def _digest(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]


def _nano(ns: int) -> str:
    return str(min(max(ns, 0), 2**64 - 1))


def _attributes(values: dict[str, Any]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: str | int | bool) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}


def _json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return msgspec.json.encode(value).decode()
