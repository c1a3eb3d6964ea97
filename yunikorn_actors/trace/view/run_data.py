"""A recorded run as the data of a page: columns of numbers, and each text once.

The page reads this; `assets/run.js` is the other side. All that is known of messages stands in
columns, with an entry for each message. The payloads stand apart, one a line, in the same order. A
number that stands for a message is its place in these columns.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, field

from yunikorn_actors.messages.base import RM_PROXY, TIMER, Cause, Delivery, Message, is_outside
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.recording.plain_text import moment
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts.fact import SHOWN_MAX
from yunikorn_actors.state.gangs import tightest_max
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.trace.export.timeline import FactsOnce, Step, Timeline, lane_of, rank_of
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.origins.cause_index import CauseIndex, InFile
from yunikorn_actors.trace.origins.items import Item
from yunikorn_actors.trace.origins.message_parts import Copies
from yunikorn_actors.trace.origins.origin_queries import InMemory, Recorded
from yunikorn_actors.trace.origins.swaps import along_swaps
from yunikorn_actors.trace.read import TraceReader, silent
from yunikorn_actors.trace.refused import refusals_in
from yunikorn_actors.trace.state_at import Replicas
from yunikorn_actors.trace.text.show import ending, origin, place
from yunikorn_actors.trace.text.summary import fact_summary, in_json, message_summary
from yunikorn_actors.trace.view.ways import Ways, ways_of
from yunikorn_actors.values.resource import Resource, component_wise_min

NONE: Final = -1
"""In a column: there is none, or it is not known."""


class Shown(NamedTuple):
    """A recording that is to be shown, and what it is called."""

    name: str
    path: Path
    policies: Mapping[str, Policy] | None = None
    """Those of the user's own that decided in it."""


class Columns(Struct, kw_only=True):
    """An entry of each list is about one message; texts and places are numbers of `texts`."""

    record: list[int] = []
    lane: list[int] = []
    place: list[int] = []
    """The mailbox and the step, such as `context/751`."""
    kind: list[int] = []
    role: list[int] = []
    """What it is for: a request, a decision, a fact, a callback."""
    stimulus: list[int] = []
    origin: list[int] = []
    cause: list[int] = []
    """The message that was being handled when it was sent, if it is in the picture.

    Of several that were handled together, it is the one about its first item.
    """
    says: list[int] = []
    begin_ns: list[int] = []
    sent_ns: list[int] = []
    took_ns: list[int] = []
    joined: list[int] = []
    mixed: list[int] = []
    """Whether it came, perhaps by others, of several that were handled together."""


class Series(Struct, kw_only=True):
    """How full a queue was: for each change the message that is next, the time and the part."""

    name: str
    points: list[tuple[int, int, int]] = []


class MarkedAt(Struct, kw_only=True):
    kind: str
    text: str
    message: int
    """NONE if the message is not in the picture."""
    following: int
    """The message, or else the next one that is in the picture; the last of it may be before."""
    at_ns: int


class Run(Struct, kw_only=True):
    name: str
    about: str
    """Who recorded it, and how."""
    ending: str
    is_simulated: bool
    texts: list[str] = []
    lanes: list[str] = []
    messages: Columns = field(default_factory=Columns)
    ways: Ways = field(default_factory=Ways)
    series: list[Series] = []
    marks: list[MarkedAt] = []


class Drawn(Struct, kw_only=True):
    run: Run
    payloads: list[bytes]
    """JSON of each message, without line ends."""
    deliveries: list[Delivery]
    is_whole: bool
    """Whether these are all messages of the recording."""
    start_ns: int


class Tell(Protocol):
    """Hears how many messages have been read, and what is done with them."""

    def __call__(self, messages: int, doing: str) -> None: ...


def counted(deliveries: Iterable[Delivery], tell: Tell, doing: str) -> Iterator[Delivery]:
    for messages, delivery in enumerate(deliveries, start=1):
        tell(messages, doing)
        yield delivery


def drawn(shown: Shown, wanted: FilterOptions, tell: Tell = silent) -> Drawn:
    wanted = along_swaps(shown.path, wanted)
    with TraceReader(shown.path) as trace:
        return _Drawing(trace, DeliveryFilter(wanted, trace), tell).drawn(shown)


class _Drawing:
    def __init__(self, trace: TraceReader, sieve: DeliveryFilter, tell: Tell) -> None:
        self._trace = trace
        self._tell = tell
        self._sieve = sieve
        self._columns = Columns()
        self._texts = _Numbers()
        self._lanes = _Numbers()
        self._messages: dict[Cause, int] = {}
        self._last: dict[str, tuple[int, int]] = {}
        """Of each mailbox the step that was handled last, and its message or NONE."""
        self._mixing: set[Cause] = set()
        """Steps of which what follows is mixed."""
        self._facts = FactsOnce()
        self._copies = Copies()
        self._fullness = Fullness()
        self._series: dict[str, Series] = {}
        self._marks: list[MarkedAt] = []
        self._deliveries: list[Delivery] = []

    def drawn(self, shown: Shown) -> Drawn:
        trace, timeline = self._trace, Timeline(self._trace.header)
        for step in timeline.steps(trace, self._sieve):
            self._tell(step.number, "drawing ")
            self._end_former(step.delivery)
            self._mix(step.delivery)
            self._whole_run(step)
            if step.is_wanted:
                self._message(step, timeline)
            else:
                self._last.pop(step.delivery.mailbox, None)
        for mailbox, took_ns in ({} if trace.footer is None else trace.footer.took_ns).items():
            self._took(mailbox, took_ns)
        self._sort_lanes()
        ways = self._ways(shown.path)
        run = Run(
            name=shown.name, about=_about(trace), ending=ending(trace),
            is_simulated=timeline.is_simulated, texts=self._texts.all(), lanes=self._lanes.all(),
            messages=self._columns, ways=ways, marks=self._marks,
            series=[self._series[it] for it in sorted(self._series)],
        )  # fmt: skip
        payloads = self._payloads()
        return Drawn(
            run=run, payloads=payloads, deliveries=self._deliveries, is_whole=self._is_whole,
            start_ns=trace.header.start_ns,
        )  # fmt: skip

    def _payloads(self) -> list[bytes]:
        written: dict[int, bytes] = {}
        for it in self._deliveries:
            if id(it.message) not in written:
                written[id(it.message)] = in_json(it.message)
        return [written[id(it.message)] for it in self._deliveries]

    @property
    def _is_whole(self) -> bool:
        return len(self._deliveries) == self._trace.messages

    def _message(self, step: Step, timeline: Timeline) -> None:
        it, columns, text = step.delivery, self._columns, self._texts.of
        message = self._copies.of(it.message)
        it = it if message is it.message else it._replace(message=message)
        number, at = len(self._deliveries), Cause(it.mailbox, it.step)
        columns.record.append(self._trace.number)
        columns.lane.append(self._lanes.of(lane_of(it.mailbox)))
        columns.place.append(text(place(at)))
        columns.kind.append(text(type_name(it.message)))
        columns.role.append(text(role_of(it)))
        columns.stimulus.append(text(it.stimulus))
        columns.origin.append(text(origin(it)))
        columns.says.append(text(_says(it.message)))
        columns.begin_ns.append(step.begin_ns)
        columns.sent_ns.append(NONE if it.sent_ns is None else timeline.since_start(it.sent_ns))
        columns.took_ns.append(NONE)
        columns.joined.append(int(it.joined))
        columns.mixed.append(int(it.cause in self._mixing))
        self._messages[at] = number
        self._last[it.mailbox] = (it.step, number)
        self._deliveries.append(it)

    def _ways(self, path: Path) -> Ways:
        """Find out what led to what; of the items that the filters are about, if they are."""
        deliveries, wanted = self._deliveries, self._sieve.wanted
        names = {*wanted.about, *wanted.along}

        def takes(item: Item) -> bool:
            return not names.isdisjoint((item.application_id, item.key, item.uuid))

        recorded: Recorded
        if self._is_whole:
            recorded = InMemory(deliveries)
        else:
            recorded = in_file = InFile(path, CauseIndex(path))
            items = [item for it in deliveries for item in in_file.items_of(it.message)]
            in_file.hold({name for it in items if not names or takes(it) for name in it.names})
        self._columns.cause = [self._led_by(recorded, it) for it in deliveries]
        tell = partial(self._tell, doing="ways in ")
        return ways_of(recorded, deliveries, takes if names else None, self._texts.of, tell)

    def _led_by(self, recorded: Recorded, delivery: Delivery) -> int:
        cause = delivery.cause
        place = self._messages.get(cause, NONE)
        if cause.step and (place == NONE or self._deliveries[place].joined):
            together = recorded.joined_with(cause)
            items = recorded.items_of(delivery.message) if len(together) > 1 else ()
            found = together.about(items[0]) if items else None
            if found is not None:
                return self._messages.get(Cause(found.mailbox, found.step), NONE)
        return place

    def _mix(self, delivery: Delivery) -> None:
        if delivery.joined or delivery.cause in self._mixing:
            self._mixing.add(Cause(delivery.mailbox, delivery.step))

    def _end_former(self, following: Delivery) -> None:
        """How long handling took is recorded with what the mailbox handles next."""
        if following.joined:
            return
        step, _ = self._last.get(following.mailbox, (NONE, NONE))
        if following.previous_took_ns is not None and step == following.step - 1:
            self._took(following.mailbox, following.previous_took_ns)
        self._last.pop(following.mailbox, None)

    def _took(self, mailbox: str, took_ns: int) -> None:
        _, number = self._last.get(mailbox, (NONE, NONE))
        if number != NONE:
            self._columns.took_ns[number] = took_ns

    def _whole_run(self, step: Step) -> None:
        """Queues and marks are those of the run, whatever is left out of the picture."""
        said, following = step.delivery.message, len(self._deliveries)
        for level in self._fullness.take(said):
            series = self._series.setdefault(level.name, Series(name=level.name))
            series.points.append((following, step.begin_ns, level.permille))
        for mark in marks_in(step.delivery, self._facts.of(said)):
            message = following if step.is_wanted else NONE
            self._marks.append(
                MarkedAt(
                    kind=mark.kind,
                    text=mark.text,
                    message=message,
                    following=following,
                    at_ns=step.begin_ns,
                )
            )

    def _sort_lanes(self) -> None:
        """From the outside inwards; so two runs have the same order."""
        names = self._lanes.all()
        order = sorted(range(len(names)), key=lambda number: rank_of(names[number]))
        new = {number: position for position, number in enumerate(order)}
        self._columns.lane = [new[number] for number in self._columns.lane]
        self._lanes = _Numbers()
        for number in order:
            self._lanes.of(names[number])


class _Numbers:
    """Numbers texts in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def _about(trace: TraceReader) -> str:
    header = trace.header
    seed = "" if header.seed is None else f", seed {header.seed}"
    package = "" if header.package is None else f", {header.package.name} {header.package.version}"
    started = f"started {moment(header.start_ns, 3)}"
    how = f"{header.topology} topology, driver {header.driver}{seed}"
    return f"{how}, {header.instance}, {started}{package}"


def _says(message: Message) -> str:
    if not isinstance(message, FactsAppended):
        return message_summary(message)
    facts = [f"{type(it).__name__} {fact_summary(it)}" for it in message.facts[:SHOWN_MAX]]
    rest = len(message.facts) - len(facts)
    return "; ".join((*facts, *((f"+{rest} more",) if rest else ())))


_MARKED: Final = frozenset({f.IncidentKind.TIMEOUT, f.IncidentKind.LOST})


class Mark(NamedTuple):
    """What a person looks for first in a picture of a run: refusals, timeouts, what was lost.

    Refusals are taken from the messages that make them, which name more than the facts among them.
    """

    kind: str
    text: str


def marks_in(delivery: Delivery, news: Iterable[f.Fact]) -> Iterator[Mark]:
    """Yield the marks of a message; `news` are the facts that no mailbox had before."""
    for refusal in refusals_in(delivery):
        yield Mark(f.IncidentKind.REFUSED, f"{refusal.what} {refusal.id}: {refusal.reason}")
    for fact in news:
        for incident in fact.incidents():
            if incident.kind in _MARKED:
                yield Mark(incident.kind, f"{type(fact).__name__} {fact_summary(fact)}")


class Role(StrEnum):
    """What a message is for, by the way it goes: so a message of a later version has a role too."""

    REQUEST = "request"
    """It came from outside, or goes inwards on behalf of that."""
    DECISION = "decision"
    """A proposal, what became of it, and what else planners and Context have to tell each other."""
    FACT = "fact"
    """What Context has written down."""
    CALLBACK = "callback"
    """It goes out, to a resource manager or to a caller."""
    OTHER = "timer"
    """A timer, or what a machine sends itself, such as the next cycle of planning."""


def role_of(delivery: Delivery) -> Role:
    sender, mailbox = delivery.sender, delivery.mailbox
    if isinstance(delivery.message, FactsAppended):
        return Role.FACT
    if sender in {TIMER, mailbox}:
        return Role.OTHER
    if is_outside(mailbox) or (mailbox == RM_PROXY and not is_outside(sender)):
        return Role.CALLBACK
    if is_outside(sender) or sender == RM_PROXY:
        return Role.REQUEST
    return Role.DECISION


class Level(NamedTuple):
    """How full each queue and the whole cluster are, as a recording goes on."""

    name: str
    """The partition and the queue; the root of the queues is the cluster."""
    permille: int
    """Of the resource of which it has the largest part of what it may have."""


class Fullness:
    def __init__(self) -> None:
        self._replicas = Replicas()
        self._last: dict[str, int] = {}

    def take(self, message: Message) -> Iterator[Level]:
        """Yield what a message has changed."""
        state = self._replicas.take(message)
        if state is None:
            return
        for queue in state.queues.values():
            name, permille = f"{state.name} {queue.path}", _permille(queue, state)
            if self._last.get(name, 0) != permille:
                self._last[name] = permille
                yield Level(name, permille)


def _permille(queue: Queue, state: PartitionState) -> int:
    """A queue may have what is configured, and never more than the cluster has."""
    limit: Resource = component_wise_min(state.capacity, tightest_max(queue) or {})
    held = queue.allocated
    return max(
        (1000 * held.get(kind, 0) // most for kind, most in limit.items() if most), default=0
    )
