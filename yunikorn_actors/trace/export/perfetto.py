"""The recording as a Chrome trace in JSON, which Perfetto opens, and other viewers of its kind.

A mailbox is a thread, and handling a message is a slice on it. An arrow leads from the step that
sent a message to the one that handles it. Waiting in a mailbox, and the life of an allocation, are
asynchronous slices: they overlap. Counters are the lengths of mailboxes and what queues hold.

Events stand in the order of the recording. A slice begins there, and ends where the recording tells
how long it took: with the next message of its mailbox, or at the end.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from yunikorn_actors.messages.base import Delivery, Message
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.export.timeline import (
    CALLERS,
    FactsOnce,
    Step,
    Timeline,
    lane_of,
    rank_of,
)
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.state_at import Replicas
from yunikorn_actors.trace.text.show import origin
from yunikorn_actors.trace.text.summary import message_summary
from yunikorn_actors.values.resource import Resource

HANDLING: Final = "handling"
WAITING: Final = "waiting"
ALLOCATION: Final = "allocation"
MESSAGE: Final = "message"
_PROCESS: Final = 1
_SIMULATED_NS: Final = 1

Event = dict[str, Any]


class Length(NamedTuple):
    """What can be counted while a recording is read: what is in mailboxes, and what queues hold.

    A counter is true only of all messages, so these are worked out from the whole run, whatever a
    filter leaves out.
    """

    at_ns: int
    messages: int


class MailboxLength:
    """How many messages wait in a mailbox, from when each was sent and when it was handled.

    What is sent is known when it is handled. A mailbox keeps its order, so nothing that is handled
    later was put in before this one.
    """

    def __init__(self) -> None:
        self._handled: deque[int] = deque()
        """When messages were taken out; what came in before that is not known yet."""
        self._waiting = 0
        self._last_ns = 0

    def take(self, sent_ns: int, begin_ns: int) -> Iterator[Length]:
        """Yield the changes up to when this message was sent."""
        # Stamped before it is put in: another one may have been faster.
        sent_ns = min(max(sent_ns, self._last_ns), begin_ns)
        while self._handled and self._handled[0] <= sent_ns:
            yield self._change(self._handled.popleft(), -1)
        yield self._change(sent_ns, 1)
        self._handled.append(begin_ns)

    def end(self) -> Iterator[Length]:
        while self._handled:
            yield self._change(self._handled.popleft(), -1)

    def _change(self, at_ns: int, by: int) -> Length:
        self._last_ns = at_ns
        self._waiting += by
        return Length(at_ns, self._waiting)


class Usage(NamedTuple):
    partition: str
    queue: str
    allocated: Resource


class QueueUsage:
    """Follows the facts as a scheduler does, and tells which queues hold something else now."""

    def __init__(self) -> None:
        self._replicas = Replicas()
        self._last: dict[tuple[str, int, str], Resource] = {}

    def take(self, message: Message) -> Iterator[Usage]:
        state = self._replicas.take(message)
        if state is None:
            return
        assert isinstance(message, FactsAppended)
        for path, queue in state.queues.items():
            name = (message.partition, message.epoch, path)
            if self._last.get(name, {}) != queue.allocated:
                self._last[name] = dict(queue.allocated)
                yield Usage(message.partition, queue.path, self._last[name])


def perfetto(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    before = '{"displayTimeUnit":"ns","traceEvents":[\n'
    for event in _Picture(trace, sieve).events():
        yield before + msgspec.json.encode({"pid": _PROCESS, **event}).decode()
        before = ","
    yield "]}"


class _Open(NamedTuple):
    """A slice that has begun; what is handled together has one."""

    begin_ns: int
    step: int
    """The last that it handles."""


class _Picture:
    def __init__(self, trace: TraceReader, sieve: DeliveryFilter) -> None:
        self._trace = trace
        self._sieve = sieve
        self._timeline = Timeline(trace.header)
        self._threads: dict[str, int] = {}
        self._begun: dict[str, dict[int, int]] = {}
        """When each step began that is in the picture, by mailbox."""
        self._open: dict[str, _Open] = {}
        self._lengths: dict[str, MailboxLength] = {}
        self._usage = QueueUsage()
        self._facts = FactsOnce()
        self._alive: dict[str, Event] = {}
        """Of each allocation that has begun and not ended: what its slice is known by."""

    def events(self) -> Iterator[Event]:
        name = f"core {self._trace.header.instance}"
        note = self._timeline.note
        yield _meta("process_name", name=f"{name} ({note})" if note else name)
        for step in self._timeline.steps(self._trace, self._sieve):
            yield from self._end_former(step.delivery)
            if step.is_wanted:
                yield from self._message(step)
            yield from self._counters(step)
            yield from self._lives(step)
        yield from self._end_last()

    # -- messages

    def _message(self, step: Step) -> Iterator[Event]:
        delivery = step.delivery
        lane = lane_of(delivery.mailbox)
        if lane not in self._threads:
            yield from self._thread(lane)
        thread, begin = self._threads[lane], _us(step.begin_ns)
        yield {**self._slice(step, lane), "tid": thread, "ts": begin}
        self._begun.setdefault(delivery.mailbox, {})[delivery.step] = step.begin_ns
        yield from self._arrow(step, thread)
        sent_ns = delivery.sent_ns
        if sent_ns is not None and sent_ns < delivery.at_ns:
            waiting = {"cat": WAITING, "id": step.number, "name": f"waiting for {lane}"}
            sent = _us(self._timeline.since_start(sent_ns))
            yield {**waiting, "ph": "b", "ts": sent, "args": {"type": type_name(delivery.message)}}
            yield {**waiting, "ph": "e", "ts": begin}

    def _thread(self, lane: str) -> Iterator[Event]:
        thread = self._threads[lane] = len(self._threads) + 1
        yield {**_meta("thread_name", name=lane), "tid": thread}
        yield {**_meta("thread_sort_index", sort_index=rank_of(lane)), "tid": thread}

    def _slice(self, step: Step, lane: str) -> Event:
        """Return a slice; one that takes time begins here, and ends when it is known."""
        number, begin_ns, delivery, _ = step
        message = delivery.message
        event: Event = {
            "cat": HANDLING,
            "name": type_name(message),
            "args": {
                "number": number, "step": f"{delivery.mailbox}/{delivery.step}",
                "cause": origin(delivery), "stimulus": delivery.stimulus,
                "says": message_summary(message),
            },
        }  # fmt: skip
        former = self._open.get(delivery.mailbox)
        if self._timeline.is_simulated:
            return {**event, "ph": "X", "dur": _us(_SIMULATED_NS)}
        if lane == CALLERS:
            return {**event, "ph": "X", "dur": 0}
        self._open[delivery.mailbox] = _Open(begin_ns, delivery.step)
        if former is not None:
            event["args"]["joined"] = True
            return {**event, "ph": "X", "dur": 0}
        return {**event, "ph": "B"}

    def _arrow(self, step: Step, thread: int) -> Iterator[Event]:
        mailbox, number = step.delivery.cause
        begun_ns = self._begun.get(mailbox, {}).get(number)
        if begun_ns is None:
            return
        arrow = {"cat": MESSAGE, "name": type_name(step.delivery.message), "id": step.number}
        yield {**arrow, "ph": "s", "tid": self._threads[lane_of(mailbox)], "ts": _us(begun_ns)}
        yield {**arrow, "ph": "f", "bp": "e", "tid": thread, "ts": _us(step.begin_ns)}

    def _end_former(self, delivery: Delivery) -> Iterator[Event]:
        if not delivery.joined:
            # After a gap the time is that of a step that is not here.
            yield from self._end(delivery.mailbox, delivery.previous_took_ns, delivery.step - 1)

    def _end(self, mailbox: str, took_ns: int | None, last_step: int) -> Iterator[Event]:
        open_ = self._open.pop(mailbox, None)
        if open_ is not None:
            known_ns = took_ns if took_ns is not None and open_.step == last_step else 0
            at = {"tid": self._threads[mailbox], "ts": _us(open_.begin_ns + known_ns)}
            yield {"ph": "E", **at}

    def _end_last(self) -> Iterator[Event]:
        """What is still being handled where a recording breaks off has no end."""
        footer = self._trace.footer
        for mailbox, open_ in tuple(self._open.items()):
            if footer is not None:
                yield from self._end(mailbox, footer.took_ns.get(mailbox), open_.step)
        for lane, lengths in self._lengths.items():
            yield from (_length(lane, length) for length in lengths.end())

    # -- counters

    def _counters(self, step: Step) -> Iterator[Event]:
        delivery = step.delivery
        if delivery.sent_ns is not None:
            lane = lane_of(delivery.mailbox)
            lengths = self._lengths.setdefault(lane, MailboxLength())
            sent_ns = self._timeline.since_start(delivery.sent_ns)
            for length in lengths.take(sent_ns, step.begin_ns):
                yield _length(lane, length)
        for usage in self._usage.take(delivery.message):
            name = f"{usage.partition} {usage.queue}"
            yield {"ph": "C", "name": name, "ts": _us(step.begin_ns), "args": usage.allocated}

    # -- lives

    def _lives(self, step: Step) -> Iterator[Event]:
        for fact in self._facts.of(step.delivery.message):
            match fact:
                case f.AllocationCommitted() if self._sieve.wanted.speaks_of(fact):
                    yield self._born(step, fact, fact.application_id, fact.key)
                case f.AllocationRecovered() if self._sieve.wanted.speaks_of(fact):
                    yield self._born(step, fact, fact.spec.application_id, fact.spec.key)
                case f.AllocationReleased(uuid=uuid) if uuid in self._alive:
                    yield {**self._alive.pop(uuid), "ph": "e", "ts": _us(step.begin_ns)}

    def _born(
        self, step: Step, fact: f.AllocationCommitted | f.AllocationRecovered, app: str, key: str
    ) -> Event:
        life = {"cat": ALLOCATION, "id": fact.uuid, "name": f"{app} {key}"}
        self._alive[fact.uuid] = life
        args = {"node": fact.node_id, "queue": fact.queue, "uuid": fact.uuid}
        return {**life, "ph": "b", "ts": _us(step.begin_ns), "args": args}


def _meta(what: str, **args: str | int) -> Event:
    return {"ph": "M", "name": what, "args": args}


def _length(lane: str, length: Length) -> Event:
    args = {"messages": length.messages}
    return {"ph": "C", "name": f"mailbox {lane}", "ts": _us(length.at_ns), "args": args}


def _us(ns: int) -> float:
    """Times are in microseconds; the fraction keeps the nanoseconds."""
    return ns / 1000
