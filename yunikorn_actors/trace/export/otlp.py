"""The recording as spans of OpenTelemetry, in JSON as its protocol has it (OTLP/JSON).

A request from outside is a trace, and handling a message is a span of it, below the span of the
step that sent it. What was handled together is linked: what came of it is below the last of them.
Numbers of traces and spans come from the names, so they are the same whenever it is exported.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.trace.export.timeline import Step, Timeline
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.show import origin
from yunikorn_actors.trace.summary import message_summary
from yunikorn_actors.trace.wanted import Sieve
from yunikorn_actors.version import VERSION

_CONSUMER: Final = 5
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8

Json = dict[str, Any]


def otlp(trace: TraceReader, sieve: Sieve) -> Iterator[str]:
    spans = _Spans(trace, sieve)
    resource = {"service.name": "yunikorn-actors", "service.instance.id": trace.header.instance}
    scope = {"name": "yunikorn_actors.trace", "version": VERSION}
    head = _json({"attributes": _attributes(resource | spans.note)})
    before = (
        f'{{"resourceSpans":[{{"resource":{head},"scopeSpans":[{{"scope":{_json(scope)},"spans":[\n'
    )
    for span in spans.ended():
        yield before + _json(span)
        before = ","
    yield ("" if before == "," else before) + "]}]}]}"


class _Spans:
    def __init__(self, trace: TraceReader, sieve: Sieve) -> None:
        self._trace = trace
        self._sieve = sieve
        self._timeline = Timeline(trace.header)
        self.note = {"note": self._timeline.note} if self._timeline.note else {}
        self._run = f"{trace.header.instance}\0{trace.header.start_ns}\0"
        self._stimuli: dict[Cause, str] = {}
        """Of each step that has a span."""
        self._open: dict[str, list[Json]] = {}
        """What was handled last in each mailbox, together: it ends as soon as that is known."""
        self._last: dict[str, int] = {}
        """The last step of these."""

    def ended(self) -> Iterator[Json]:
        for step in self._timeline.steps(self._trace, self._sieve):
            delivery = step.delivery
            if not delivery.joined:
                took_ns, is_next = delivery.previous_took_ns, delivery.step - 1
                yield from self._end(delivery.mailbox, took_ns, is_next)
            if step.is_wanted:
                self._begin(step)
        footer = self._trace.footer
        took = {} if footer is None else footer.took_ns
        for mailbox in tuple(self._open):
            yield from self._end(mailbox, took.get(mailbox), self._last[mailbox])

    def _begin(self, step: Step) -> None:
        delivery = step.delivery
        at = Cause(delivery.mailbox, delivery.step)
        begin_ns = self._trace.header.start_ns + step.begin_ns
        span: Json = {
            "traceId": self._trace_id(delivery.stimulus),
            "spanId": self._span_id(at),
            "name": type_name(delivery.message),
            "kind": _CONSUMER,
            "startTimeUnixNano": _nano(begin_ns),
            "endTimeUnixNano": _nano(begin_ns),
            "attributes": _attributes(_told(step)),
        }
        together = self._open.setdefault(delivery.mailbox, [])
        links = [{"traceId": it["traceId"], "spanId": it["spanId"]} for it in together]
        sender = self._stimuli.get(delivery.cause)
        if sender == delivery.stimulus:
            span["parentSpanId"] = self._span_id(delivery.cause)
        elif sender is not None:
            links.append(
                {"traceId": self._trace_id(sender), "spanId": self._span_id(delivery.cause)}
            )
        if links:
            span["links"] = links
        together.append(span)
        self._last[delivery.mailbox] = delivery.step
        self._stimuli[at] = delivery.stimulus

    def _end(self, mailbox: str, took_ns: int | None, last_step: int) -> Iterator[Json]:
        spans = self._open.pop(mailbox, ())
        known_ns = took_ns if took_ns is not None and self._last.get(mailbox) == last_step else 0
        for span in spans:
            yield {**span, "endTimeUnixNano": _nano(int(span["startTimeUnixNano"]) + known_ns)}

    def _trace_id(self, stimulus: str) -> str:
        return _digest(self._run + stimulus, _TRACE_BYTES)

    def _span_id(self, at: Cause) -> str:
        return _digest(f"{self._run}{at.mailbox}\0{at.step}", _SPAN_BYTES)


def _told(step: Step) -> dict[str, str | int | bool]:
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
