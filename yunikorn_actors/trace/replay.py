"""Replays a recording: fresh machines handle the recorded messages, and their effects are compared.

Machines do not share anything, so the order in each mailbox and the recorded times are the whole
schedule; a recording of threads is replayed like one of the simulator. No effect is carried out:
the answers of resource managers are in the recording.

Each message that a step sends must be the next one recorded from that mailbox to that receiver. The
last ones may be missing: they were still under way, or their receiver was gone. A timer need not
have fired, but one that fired must have been armed by the step it names, and must not be early.

How many messages were handled together stands in the recording. Other mailboxes may have been at
work meanwhile, so a message that others may be joined to is handled here when the next one of its
mailbox is not joined, when something follows that it has caused, or at the end.
"""

import difflib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import Struct

from yunikorn_actors.machines.machine import (
    CallRm,
    CancelTimer,
    Effect,
    Joining,
    Log,
    Machine,
    Send,
    SetTimer,
    StartMachine,
    StopCore,
    StopMachine,
)
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import (
    GATEWAY,
    TIMER,
    Cause,
    Delivery,
    Message,
    is_callback,
    is_outside,
)
from yunikorn_actors.messages.codec import UnknownMessage, state_digest
from yunikorn_actors.messages.scheduling import MachineFailed
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.equivalence import are_equivalent
from yunikorn_actors.trace.fields import MISSING, Change, changes
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import Header, TraceError, TraceReader
from yunikorn_actors.trace.text.show import lacking, payload_lines, place
from yunikorn_actors.version import VERSION


class Divergence(Struct, frozen=True, kw_only=True):
    """Where the replay first differs from the recording; both sides are lines of text."""

    mailbox: str
    step: int
    record: int
    what: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]
    fields: tuple[str, ...] = ()
    """The fields that are different, if there is a message on either side."""


class ReplayOutcome(Struct, frozen=True, kw_only=True):
    path: str
    messages: int
    mailboxes: int
    complete: bool
    states: int
    """How many machines have a recorded final state, which was compared."""
    undelivered: int
    """How many messages were sent to a mailbox that still existed, and never delivered."""
    failures: tuple[str, ...]
    """The steps that raised; their machines handled nothing after them."""
    difference: Divergence | None
    """The first one."""
    differences: dict[tuple[str, str], int]
    """How many there are up to where the replay ended, by mailbox and kind."""
    stopped: bool
    """Whether it ended where the caller wanted it to, before the end of the recording."""
    recorded_by: str
    """The version that wrote it, if it tells."""
    has_unknown_fields: bool
    """Whether there are fields in it that this version does not know, and so did not compare."""

    def report(self) -> str:
        if self.difference is not None:
            lines = (*self._versions(), *_report(self.path, self.difference), *self._counted())
            return "\n".join(lines)
        return "\n".join((self._summary(), *map(printable, self.failures)))

    def _versions(self) -> Iterator[str]:
        if self.recorded_by not in {"", VERSION}:
            yield f"recorded by {printable(self.recorded_by)}, replayed by {VERSION}"

    def _counted(self) -> Iterator[str]:
        """Only where the replay went on there are several."""
        count = sum(self.differences.values())
        if count > 1:
            yield f"{count} differences in {self.messages} messages:"
            for (mailbox, what), number in self.differences.items():
                yield f"{number:>8}  {printable(mailbox)}: {what}"

    def _summary(self) -> str:
        text = f"replayed {self.messages} messages in {self.mailboxes} mailboxes: identical"
        if self.undelivered:
            text += f"; {self.undelivered} sent and not delivered any more"
        if self.stopped:
            text += "; stopped there, so no states were compared"
        elif not self.complete:
            text += "; incomplete: the recording has no end, so no states were compared"
        elif not self.states:
            text += "; no states were recorded at its end"
        if self.has_unknown_fields:
            text += (
                f"; fields of {printable(self.recorded_by) or 'another version'} that "
                f"{VERSION} does not know were not compared"
            )
        return text


def outcome_rows(outcome: ReplayOutcome) -> Iterator[dict[str, Any]]:
    """Yield what `report` says as plain values, each with its kind under `what`."""
    found = outcome.difference
    yield {
        "what": "replayed", "identical": found is None,
        **{name: getattr(outcome, name) for name in _OF_THE_WHOLE},
    }  # fmt: skip
    if found is not None:
        yield {
            "what": "first", "step": f"{found.mailbox}/{found.step}", "record": found.record,
            "is": found.what, "fields": found.fields,
            "recorded": found.recorded, "replayed": found.replayed,
        }  # fmt: skip
    for (mailbox, what), count in outcome.differences.items():
        yield {"what": "count", "mailbox": mailbox, "is": what, "differences": count}


_OF_THE_WHOLE: Final = (
    "messages", "mailboxes", "complete", "states", "undelivered", "failures", "stopped",
    "recorded_by", "has_unknown_fields",
)  # fmt: skip


class Extent(Struct, frozen=True, kw_only=True):
    """How far to replay."""

    until: Moment | None = None
    """The last message."""
    goes_on: bool = False
    """Count differences, and do not end at the first one."""


def replay(
    trace: TraceReader,
    extent: Extent = Extent(),  # noqa: B008 - it is frozen
    progress: Callable[[int], None] = lambda _: None,
) -> ReplayOutcome:
    """Run it again, and tell now and then how many messages were handled."""
    rerun = Rerun.of(trace, goes_on=extent.goes_on)
    stopped = False
    with suppress(DifferentError):  # it is in the books of the rerun
        for delivery, _ in rerun.follow(trace):
            progress(rerun.messages)
            if extent.until is not None and extent.until.is_reached(trace, delivery):
                stopped = True
                break
        rerun.settle()
        if not stopped:
            rerun.compare(trace)
    return ReplayOutcome(
        path=str(trace.path),
        messages=rerun.messages,
        mailboxes=len(rerun.steps),
        complete=trace.footer is not None,
        states=0 if trace.footer is None else len(trace.footer.states),
        undelivered=rerun.undelivered(),
        failures=(*rerun.replaced, *rerun.failed.values()),
        difference=None if rerun.first is None else _difference(rerun.first),
        differences=dict(rerun.differences),
        stopped=stopped,
        recorded_by="" if trace.header.package is None else trace.header.package.version,
        has_unknown_fields=trace.has_unknown_fields,
    )


def _check_can_be_replayed(trace: TraceReader, delivery: Delivery) -> None:
    """Raise TraceError where machines would have to do without messages, or to guess at them."""
    message = delivery.message
    if isinstance(message, UnknownMessage):
        raise TraceError(
            f"{trace.path}: record {trace.number} is a message of type {message.type!r}, which "
            "this version does not know; replay it with the version that recorded it"
        )
    check_is_whole(trace)


def check_is_whole(trace: TraceReader) -> None:
    if trace.lost or trace.filtered or trace.header.segment > 1:
        missing = "; ".join(lacking(trace))
        raise TraceError(
            f"{trace.path}: {missing}; a replay needs every message from the first one on: show it "
            "or draw it instead"
        )


class DifferentError(Exception):
    """The replay is not what was recorded, from here on."""

    def __init__(
        self, cause: Cause, what: str, recorded: tuple[str, ...], replayed: tuple[str, ...]
    ) -> None:
        super().__init__(what)
        self.cause = cause
        self.what = what
        self.recorded = recorded
        self.replayed = replayed
        self.fields: tuple[str, ...] = ()
        self.record = 0

    def as_warning(self) -> str:
        """Say it where something else was asked for."""
        return (
            f"the replay is not what was recorded from {place(self.cause)} on ({self.what}), so "
            "what came later is not known: trace replay says more"
        )


class _Sent(NamedTuple):
    cause: Cause
    stimulus: str
    message: Message


class _Armed(NamedTuple):
    due_ns: int
    stimulus: str
    message: Message


class Step(NamedTuple):
    """What a machine has done again."""

    mailbox: str
    machine: Machine
    deliveries: list[Delivery]
    effects: list[Effect]
    record: int
    """The number of the record of its last message."""


class Rerun:
    """Machines that handle the messages of a recording once more."""

    @classmethod
    def of(cls, trace: TraceReader, *, goes_on: bool = False) -> Self:
        """Raises MissingPolicy where one that decided was not given to the reader."""
        trace.policies.compare(trace.header.policies, trace.path)
        return cls(trace.header, trace.policies, goes_on=goes_on)

    def __init__(
        self, header: Header, policies: Policies = NO_POLICIES, *, goes_on: bool = False
    ) -> None:
        """One that goes on takes what was recorded where it differs, and counts."""
        self.messages = 0
        self.first: DifferentError | None = None
        self.differences: Counter[tuple[str, str]] = Counter()
        self._goes_on = goes_on
        self._record = 0
        self.steps: dict[str, int] = {}
        self.failed: dict[str, str] = {}
        """Mailboxes whose machine has failed, each with the text of its failure."""
        self.replaced: list[str] = []
        """The failures of machines that have been replaced since."""
        self._sent: dict[tuple[str, str], deque[_Sent]] = {}
        """Messages sent in the replay and not met in the recording yet, by sender and receiver."""
        self._topology = Topology(
            header.topology,
            settings=header.settings,
            instance=header.instance,
            schedulers=header.schedulers,
            policies=policies,
        )
        self.machines = self._topology.first_machines()
        """A stopped machine stays here: on threads it may have been in the middle of a step."""
        self._stopped: set[str] = set()
        self._waiting: dict[str, list[Delivery]] = {}
        """What a machine is to handle as one, as soon as it is known that no more is joined."""
        self._armed: dict[Cause, list[_Armed]] = {}
        self._records: dict[str, int] = {}
        """The record of the last message of each mailbox."""
        self._done: list[Step] = []

    @property
    def is_at_rest(self) -> bool:
        """Whether no machine is in the middle of long work."""
        return all(getattr(it, "is_at_rest", True) for it in self.machines.values())

    def run(self, trace: TraceReader) -> Iterator[Step]:
        """Run a recording again, and yield each step; raise DifferentError where it differs."""
        for _, steps in self.follow(trace):
            yield from steps
        yield from self.settle()
        self.compare(trace)

    def follow(self, trace: TraceReader) -> Iterator[tuple[Delivery, list[Step]]]:
        """Yield each message that was taken, and the steps that could be done then."""
        for delivery in trace:
            _check_can_be_replayed(trace, delivery)
            yield delivery, self.take(delivery, trace.number)
        check_is_whole(trace)

    def take(self, delivery: Delivery, record: int) -> list[Step]:
        """Take the next message; return the steps that can be done now, perhaps of others."""
        self._done, self._record = [], record
        self._check_step(delivery)
        self._let_be_caused(delivery.cause)
        self._check_origin(delivery)
        if delivery.mailbox in self.machines:
            self._put(delivery)
        elif not is_outside(delivery.mailbox):
            self._differ(delivery, "goes to nobody", "no machine was started at this address")
        self.messages += 1
        return self._done

    def undelivered(self) -> int:
        return sum(len(queue) for (_, to), queue in self._sent.items() if to not in self._stopped)

    def settle(self) -> list[Step]:
        """Handle whatever is left: nothing more is joined to it."""
        self._done = []
        for mailbox in tuple(self._waiting):
            self._handle(mailbox)
        return self._done

    def compare(self, trace: TraceReader) -> None:
        """Compare the final states; a machine that was still at work has none recorded."""
        recorded = {} if trace.footer is None else trace.footer.states
        # The reader has looked for one more record after the footer.
        self._record = trace.number - 1
        for address, state in sorted(recorded.items()):
            replayed = self._state(address)
            if replayed != state:
                at = Cause(address, self.steps.get(address, 0))
                self._note_difference(
                    DifferentError(at, "leaves another state", (state,), (replayed,))
                )

    def _differ(self, delivery: Delivery, what: str, *replayed: str) -> None:
        self._note_difference(_different(delivery, what, *replayed))

    def _note_difference(self, error: DifferentError) -> None:
        error.record = self._record
        self.first = self.first or error
        self.differences[error.cause.mailbox, error.what] += 1
        if not self._goes_on:
            raise error

    def _state(self, address: str) -> str:
        machine = self.machines.get(address)
        if machine is None or address in self._stopped:
            return "no machine is at this address"
        return self.failed.get(address) or state_digest(machine.canonical_state())

    # -- what comes in

    def _check_step(self, delivery: Delivery) -> None:
        step = self.steps.get(delivery.mailbox, 0) + 1
        if delivery.step != step:
            self._differ(delivery, "is out of order", f"step {step} comes next")
        self.steps[delivery.mailbox] = step

    def _check_origin(self, delivery: Delivery) -> None:
        sender = delivery.sender
        if sender == TIMER:
            self._check_timer(delivery)
        elif isinstance(delivery.message, MachineFailed) and sender in self.machines:
            self._take_failure(delivery)
        elif sender in self.machines:
            self._check_sent(delivery)
        elif sender != GATEWAY and not is_callback(sender):
            self._differ(delivery, "comes from nobody", "no machine was started there")

    def _check_sent(self, delivery: Delivery) -> None:
        queue = self._sent.get((delivery.sender, delivery.mailbox))
        if not queue:
            self._differ(delivery, "is not sent again", "nothing")
        elif _is_same(queue[0], delivery):
            queue.popleft()
        else:
            error = _different(delivery, "is not the same", *_lines(*queue[0]))
            error.fields = _fields(delivery, queue[0])
            self._note_difference(error)
            _fall_in(queue, delivery)

    def _take_failure(self, delivery: Delivery) -> None:
        """Take a machine as failed because the recording says so, even if it did not fail again.

        The reason may have been a lack of memory, a planted fault, or a bug that is fixed by now.
        The effects of that step are dropped, because they were not carried out then.
        """
        sender = delivery.sender
        if delivery.cause != (sender, self.steps.get(sender, 0)):
            self._differ(delivery, "is no failure of its last step")
        why = f"{place(delivery.cause)} failed and its machine was replaced"
        self.failed.setdefault(sender, why)
        for (origin, _), queue in self._sent.items():
            while origin == sender and queue and queue[-1].cause == delivery.cause:
                queue.pop()
        self._armed.pop(delivery.cause, None)

    def _check_timer(self, delivery: Delivery) -> None:
        armed = self._armed.get(delivery.cause, [])
        for number, timer in enumerate(armed):
            due = timer.due_ns <= delivery.at_ns
            if due and timer[1:] == (delivery.stimulus, delivery.message):
                del armed[number]
                return
        wanted = (
            line
            for timer in armed
            for line in (f"due at {timer.due_ns}", *_lines(delivery.cause, *timer[1:]))
        )
        self._differ(delivery, "is no timer that was armed", *wanted)

    # -- what a machine does with it

    def _put(self, delivery: Delivery) -> None:
        """Leave a message to its machine, which handles first what this one is not joined to."""
        mailbox, message = delivery.mailbox, delivery.message
        if not (delivery.joined and self._is_joined(delivery, self._waiting.get(mailbox, []))):
            self._handle(mailbox)
        if mailbox in self.failed:
            self._differ(delivery, "is handled", self.failed[mailbox])
            return
        self._waiting.setdefault(mailbox, []).append(delivery)
        self._records[mailbox] = self._record
        if not _joins(self.machines[mailbox], message, message):
            self._handle(mailbox)

    def _is_joined(self, delivery: Delivery, waiting: list[Delivery]) -> bool:
        if not waiting:
            self._differ(delivery, "is joined to nothing")
            return False
        first, machine = waiting[0], self.machines[delivery.mailbox]
        if first.at_ns != delivery.at_ns or not _joins(machine, first.message, delivery.message):
            self._differ(delivery, "is joined to what it cannot be handled with")
            return False
        return True

    def _let_be_caused(self, cause: Cause) -> None:
        """The message of that step has been handled: it has sent something."""
        waiting = self._waiting.get(cause.mailbox)
        if waiting and cause.step >= waiting[0].step:
            self._handle(cause.mailbox)

    def _handle(self, mailbox: str) -> None:
        """Run a step; the last one of a machine may raise: it is what ended the recorded run.

        What several messages that are handled together lead to, the last of them has caused.
        """
        deliveries = self._waiting.pop(mailbox, None)
        if deliveries is None:
            return
        machine, last = self.machines[mailbox], deliveries[-1]
        cause = Cause(mailbox, last.step)
        try:
            effects = _effects(machine, deliveries)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as the outcome
            what = type(last.message).__name__
            self.failed[mailbox] = f"{place(cause)} fails on {what}: {error!r}"
            return
        for effect in effects:
            self._note(cause, last.stimulus, effect)
        self._done.append(Step(mailbox, machine, deliveries, effects, self._records[mailbox]))

    def _note(self, cause: Cause, stimulus: str, effect: Effect) -> None:
        match effect:
            case Send(to=to, message=message) | CallRm(callback=to, call=message):
                queue = self._sent.setdefault((cause.mailbox, to), deque())
                queue.append(_Sent(cause, stimulus, message))
            case SetTimer(due_ns=due_ns, message=message):
                self._armed.setdefault(cause, []).append(_Armed(due_ns, stimulus, message))
            case CancelTimer() | StopCore():
                pass  # on threads the timer may have fired already
            case StartMachine(address=address, kind=kind, arguments=arguments):
                machine = self._topology.build(kind, arguments)
                self.machines[address] = machine
                self._succeed(address)
            case StopMachine(address=address):
                self._stopped.add(address)
            case Log():
                pass  # a log line changes nothing

    def _succeed(self, address: str) -> None:
        """Another machine is at this address now: drop the messages to the former one."""
        if address in self.failed:
            self.replaced.append(self.failed.pop(address))
            for (_, to), queue in self._sent.items():
                if to == address:
                    queue.clear()


def _effects(machine: Machine, deliveries: list[Delivery]) -> list[Effect]:
    first, now_ns = deliveries[0].message, deliveries[0].at_ns
    if isinstance(machine, Joining) and type(first) in machine.joined:
        return machine.handle_together((it.message for it in deliveries), now_ns)
    return machine.handle(first, now_ns)


def _joins(machine: Machine, first: Message, message: Message) -> bool:
    if not isinstance(machine, Joining) or type(first) not in machine.joined:
        return False
    return machine.joins(first, message)


# -- differences


def _different(delivery: Delivery, what: str, *replayed: str) -> DifferentError:
    fired = (f"fired at {delivery.at_ns}",) if delivery.sender == TIMER else ()
    recorded = (*fired, *_lines(delivery.cause, delivery.stimulus, delivery.message))
    at = Cause(delivery.mailbox, delivery.step)
    return DifferentError(at, what, recorded, replayed)


def _is_same(sent: _Sent, delivery: Delivery) -> bool:
    same_origin = sent[:2] == (delivery.cause, delivery.stimulus)
    return same_origin and are_equivalent(sent.message, delivery.message)


def _fall_in(queue: deque[_Sent], delivery: Delivery) -> None:
    """Drop what was sent in place of this delivery: the next one is compared with its own."""
    while queue and queue[0].cause.step < delivery.cause.step:
        queue.popleft()
    of_step = [sent for sent in queue if sent.cause == delivery.cause]
    same = next((n for n, sent in enumerate(of_step, 1) if _is_same(sent, delivery)), 1)
    for _ in range(min(same, len(of_step))):
        queue.popleft()


def _fields(delivery: Delivery, sent: _Sent) -> tuple[str, ...]:
    """Tell which fields are different; messages of two types have none in common."""
    if type(delivery.message) is not type(sent.message):
        return ()
    recorded, replayed = (
        {"from": place(cause), "stimulus": stimulus, **msgspec.to_builtins(message)}
        for cause, stimulus, message in (
            (delivery.cause, delivery.stimulus, delivery.message),
            sent,
        )
    )
    return tuple(map(_field_line, changes(recorded, replayed)))


def _field_line(change: Change) -> str:
    one, other = (
        "nothing" if value is MISSING else msgspec.json.encode(value).decode()
        for value in (change.one, change.other)
    )
    return printable(f"{change.field}: recorded {one}, replayed {other}")


def _difference(error: DifferentError) -> Divergence:
    mailbox, step = error.cause
    return Divergence(
        mailbox=mailbox, step=step, record=error.record, what=error.what,
        recorded=error.recorded, replayed=error.replayed, fields=error.fields,
    )  # fmt: skip


def _lines(cause: Cause, stimulus: str, message: Message) -> tuple[str, ...]:
    head = printable(f"{type(message).__name__} from {place(cause)} for {stimulus}")
    return (head, *payload_lines(message))


def _report(path: str, difference: Divergence) -> list[str]:
    where = place(Cause(difference.mailbox, difference.step))
    head = f"{path}: different at {where} (record {difference.record}): {difference.what}"
    lines = difflib.unified_diff(
        difference.recorded, difference.replayed, "recorded", "replayed", lineterm=""
    )
    return [printable(head), *(f"  {line}" for line in difference.fields), *lines]
