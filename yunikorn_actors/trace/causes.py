"""Why an ask waited, from when to when: worked out by running the recording replay.

What was reported at the time is not enough: the first reason of an ask is reported, and what
changes later mostly is not. So the planner is asked after each of its steps that leaves no cycle on
its way; before that cycle it would say of much that it is tried next. Equal answers that follow
each other are one period.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Machine, Send
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import Cause as Place
from yunikorn_actors.messages.rm_events import AskItem
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.planning.reasons import Cause, Obstacle, at_what_cost
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.planning.why.inquiry import BRIEF
from yunikorn_actors.planning.why.preempting import account_of_victim
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.facts import ApplicationRemoved, AskRemoved, parts_of
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.checkpointed_replay import (
    CheckpointedReplay,
    Checkpoints,
    Moment,
    asks_in,
)
from yunikorn_actors.trace.holders import holders
from yunikorn_actors.trace.origins.items import Item, Part, manager_of_partition
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader, silent
from yunikorn_actors.trace.records.record_index import Places
from yunikorn_actors.trace.records.source import STANDARD_INPUT
from yunikorn_actors.trace.replay import DifferentError, Step
from yunikorn_actors.values.resource import Resource

IsNamed = Callable[[str, str], bool]
"""Whether an ask is meant, by the id of its application and its key."""


class Period(Struct, frozen=True, kw_only=True):
    """How long one answer was true; the last one of an ask that waits no more has no end."""

    begin: Moment
    end: Moment | None
    cause: str
    text: str
    """In the words of the core."""
    brief: str
    """The same, shorter, with amounts as people write them; it may be of several lines."""
    since: str
    """The request from outside that led to it."""
    step: Place
    """The step of the planner after which it was true."""
    kind: tuple[str, ...] = ()
    """What makes two answers much the same: the cause, the place, and which checks nodes fail."""
    held_by: tuple[str, ...] = ()
    """Who has most of what is missing, when the period began."""

    @property
    def waits(self) -> bool:
        return self.cause not in ENDS


WITHDRAWN: Final = "WITHDRAWN"
PARTITION_CLOSED: Final = "PARTITION_CLOSED"
PREEMPTED: Final = "PREEMPTED"
ENDS: Final = frozenset({Cause.PLACED, Cause.REJECTED, WITHDRAWN, PARTITION_CLOSED, PREEMPTED})


class Waits(Struct, frozen=True, kw_only=True):
    """All that became of one ask while it waited."""

    partition: str
    application_id: str
    key: str
    resource: Resource
    periods: tuple[Period, ...]

    def lasting(self) -> "Waits":
        """Leave out what was true for no time, but not what is true at the end."""
        lasting = (
            it
            for it in self.periods
            if it.end is None or it.end.at_ns > it.begin.at_ns or it is self.periods[-1]
        )
        return replace(self, periods=tuple(lasting))

    def gathered(self, alike: Callable[[Period], object]) -> "Waits":
        """Make one period of those that follow each other and are alike; the first gives the text.

        What is true at the end keeps its own text: a person acts on that one.
        """
        groups = [tuple(group) for _, group in groupby(self.periods, alike)]
        if groups and self.periods[-1].waits:
            groups[-1:] = _and_its_end(groups[-1])
        return replace(
            self, periods=tuple(replace(group[0], end=group[-1].end) for group in groups)
        )

    def spent(self) -> Moment:
        """Add up how long it waited, in nanoseconds and in records."""
        spans = [(it.begin, it.end) for it in self.periods if it.end is not None]
        return Moment(
            sum(end.at_ns - begin.at_ns for begin, end in spans),
            sum(end.record - begin.record for begin, end in spans),
        )


def _and_its_end(group: tuple[Period, ...]) -> list[tuple[Period, ...]]:
    """Part the periods that have the text of the last one from those before it."""
    before = [number for number, it in enumerate(group, 1) if _text(it) != _text(group[-1])]
    end = before[-1] if before else 0
    return [part for part in (group[:end], group[end:]) if part]


class Answer(Struct, frozen=True, kw_only=True):
    waits: tuple[Waits, ...]
    known: tuple[str, ...]
    """All keys that came up to where the recording was run replay."""
    has_times: bool
    """Whether the clock went on at all; if not, only the order tells anything."""
    start_ns: int
    difference: DifferentError | None
    """Where the replay left the recording: what came later is not known."""

    def grouped(self, *, each: bool = False) -> "Answer":
        """Put answers of one kind together, unless each is wanted, and what lasted no time away."""
        alike = _text if each else _kind
        lasting = (it.lasting() if self.has_times else it for it in self.waits)
        return replace(self, waits=tuple(it.gathered(alike) for it in lasting))

    def names(self, key: str) -> list[str]:
        """Return whose asks a key means, each as one may ask for it."""
        is_named = named((key,))
        return list(
            dict.fromkeys(
                f"{it.application_id}/{it.key}"
                for it in self.waits
                if is_named(it.application_id, it.key)
            )
        )


def named(keys: Collection[str]) -> IsNamed:
    """Mean all asks with one of these keys, which may be written as `APPLICATION/KEY`."""
    return lambda application_id, key: key in keys or f"{application_id}/{key}" in keys


def why_of(
    path: Path,
    keys: Collection[str],
    checkpoints: Checkpoints | None = None,
    tell: Callable[[int], None] = silent,
    policies: Mapping[str, Policy] | None = None,
) -> Answer:
    """Say it of asks in a recording, run replay from before them to where no more can come."""
    with TraceReader(path, policies=policies) as trace:
        if path == STANDARD_INPUT:
            return why(trace, named(keys), tell)
        span = Places(path).span_of({key.rpartition("/")[2] or key for key in keys})
        replay = CheckpointedReplay(
            trace, checkpoints, lambda checkpoint: not span or checkpoint.record < span.start
        )
        return _why(replay, named(keys), trace.header.start_ns, tell, span.stop)


def why(trace: TraceReader, is_named: IsNamed, tell: Callable[[int], None] = silent) -> Answer:
    """Say it of all asks that are named; `tell` hears how many messages have been run replay."""
    return _why(CheckpointedReplay(trace), is_named, trace.header.start_ns, tell)


def _why(
    replay: CheckpointedReplay,
    is_named: IsNamed,
    start_ns: int,
    tell: Callable[[int], None],
    stop: int = 0,
) -> Answer:
    """Say it of all asks that are named; from the record `stop` on there is none, if it is given.

    In a simulated run the clock may stand still up to there, and then go on.
    """
    course = replay.course
    inquest = _Inquest(is_named, course.stimuli)
    difference = None
    try:
        for step in replay.run():
            inquest.follow(step)
            tell(replay.rerun.messages)
            if 0 < stop <= step.record and course.has_times and not inquest.waits:
                break
        inquest.look_at_the_end()
    except DifferentError as error:
        difference = error
    return Answer(
        waits=tuple(inquest.finish(course.last)),
        known=tuple(course.known),
        has_times=course.has_times,
        start_ns=start_ns,
        difference=difference,
    )


def _text(period: Period) -> tuple[str, ...]:
    return period.cause, period.text


def _kind(period: Period) -> tuple[str, ...]:
    return period.kind or _text(period)


class _Inquest:
    def __init__(self, is_named: IsNamed, stimuli: Stimuli) -> None:
        self._is_named = is_named
        self._asks: dict[tuple[str, str, str], _Ask] = {}
        self._stimuli = stimuli
        self._last: dict[str, Step] = {}
        """The latest step of each mailbox, in order."""

    @property
    def waits(self) -> bool:
        """Whether more is to come of one that is named, or none has come."""
        return not self._asks or any(ask.waits_on for ask in self._asks.values())

    def follow(self, step: Step) -> None:
        machine = step.machine
        self._last.pop(step.mailbox, None)
        self._last[step.mailbox] = step
        if isinstance(machine, Context):
            for item in asks_in(step.deliveries):
                self._note(item)
        for ask in self._asks.values():
            if isinstance(machine, Context):
                ask.receive(machine, step)
            for loop in _loops(machine, ask.partition):
                ask.look(loop, step)

    def look_at_the_end(self) -> None:
        """Ask once more where a cycle was still to come: the recording ends before it."""
        for step in self._last.values():
            for ask in self._asks.values():
                for loop in _loops(step.machine, ask.partition):
                    ask.look_at_the_end(loop, step)

    def finish(self, last: Moment) -> Iterator[Waits]:
        for ask in self._asks.values():
            yield ask.waits(last)

    def _note(self, item: AskItem) -> None:
        partition, id_, key = item.partition, item.spec.application_id, item.spec.key
        if self._is_named(id_, key) and (partition, id_, key) not in self._asks:
            self._asks[partition, id_, key] = _Ask(item, self._stimuli)


def _loops(machine: Machine, partition: str) -> Iterator[PlanningLoop]:
    """Yield who plans for a partition, if it is this machine and can say why asks wait."""
    if isinstance(machine, Scheduler):
        replica, loop = machine.replica, machine.loop
        if loop.knows_why and replica.name == partition and replica.revision:
            yield loop
    elif isinstance(machine, Context):
        found = machine.partitions.get(partition)
        if found is not None and found.loop is not None:
            yield found.loop


class _Reason(NamedTuple):
    cause: str
    text: str
    kind: tuple[str, ...] = ()

    brief: str = ""
    """Only where it differs."""

    @classmethod
    def of(cls, obstacle: Obstacle, brief: str = "") -> Self:
        cause = obstacle.cause.value
        return cls(cause, obstacle.text, (cause, obstacle.where, *obstacle.nodes), brief)


_CLOSED: Final = _Reason(PARTITION_CLOSED, "its partition was closed, with all that was in it")


class _Ask:
    """What became of one ask so far."""

    def __init__(self, item: AskItem, stimuli: Stimuli) -> None:
        self._stimuli = stimuli
        self.partition = item.partition
        self._id = item.spec.application_id
        self._key = item.spec.key
        self._resource = item.spec.resource
        self._periods: list[Period] = []
        self._began: Moment | None = None
        """When the planner learned of it, until it waits no more."""
        self._epoch = 0
        """The life of the partition in which it waits."""
        self._is_known = False
        """The planner has it: it waits, or was placed."""
        self._refused_ns: int | None = None
        self._refusal: _Reason | None = None
        """The reason Context gave when it took it back or refused it."""
        self._victims: set[str] = set()
        """What ran of it, and was preempted."""

    @property
    def waits_on(self) -> bool:
        return self._began is not None or not self._periods

    def receive(self, context: Context, step: Step) -> None:
        """Learn what only Context knows: asks that were never taken, partitions that have gone."""
        partition = context.partitions.get(self.partition)
        if partition is None or partition.epoch != self._epoch:
            self._is_known = False
            if self._began is not None:
                self._end(step, _CLOSED)
        if partition is None:
            return
        at_ns = step.deliveries[-1].at_ns
        refused = partition.rejections.explain(self._id, self._key, at_ns)
        if refused is None or refused.since_ns == self._refused_ns:
            return
        self._refused_ns, self._refusal = refused.since_ns, _Reason.of(refused.obstacle)
        if not self._is_known:
            self._end(step, self._refusal)

    def look(self, loop: PlanningLoop, step: Step) -> None:
        app = loop.planner.state.applications.get(self._id)
        ask = None if app is None else app.asks.get(self._key)
        was_known = self._is_known
        self._is_known, self._epoch = ask is not None, loop.epoch
        if ask is None:
            # It may have come and gone in one step: then nobody was asked about it.
            removal = self._removal(step)
            if self._began is not None:
                self._end(step, self._refusal or removal or _GONE)
            elif removal is not None and not self._periods:
                self._end(step, removal)
        elif not ask.is_open:
            # It may have come and been placed in one step.
            if self._began is not None or not was_known:
                self._end(step, _placed(loop, ask.uuids))
        else:
            at_ns = step.deliveries[-1].at_ns
            if self._began is None:
                self._began = Moment(min(ask.created_ns, at_ns), step.record)
                self._refusal = None
            if not loop.cycle_is_coming:
                self._ask(loop, step)
        if app is not None and ask is not None:
            self._look_at_victims(loop, app, ask, step)

    def _look_at_victims(self, loop: PlanningLoop, app: Application, ask: Ask, step: Step) -> None:
        for uuid in ask.uuids:
            it = app.allocations.get(uuid)
            if it is None or it.beneficiary is None or uuid in self._victims:
                continue
            self._victims.add(uuid)
            its = account_of_victim(loop.planner, app, it, step.deliveries[-1].at_ns)
            units = [one.unit for one in its.goes if one.key == self._key][:1]
            lines = (its.text, *units, *at_what_cost(its))
            reason = _Reason(PREEMPTED, "; ".join(lines), brief="\n".join(lines))
            self._add(_period(step, _moment(step), reason, self._since(step)))
            if self._began is not None:
                self._began = _moment(step)

    def look_at_the_end(self, loop: PlanningLoop, step: Step) -> None:
        """Ask where no more can come; a planner of a former life of the partition is not meant."""
        if loop.cycle_is_coming and self._began is not None and loop.epoch == self._epoch:
            self._ask(loop, step)

    def waits(self, last: Moment) -> Waits:
        """Return all of it; what is true at the end of the recording ends there."""
        if self._periods and self._periods[-1].waits:
            self._periods[-1] = replace(self._periods[-1], end=last)
        return Waits(
            partition=self.partition,
            application_id=self._id,
            key=self._key,
            resource=self._resource,
            periods=tuple(self._periods),
        )

    def _ask(self, loop: PlanningLoop, step: Step) -> None:
        answer = explain(loop.planner, self._id, self._key, step.deliveries[-1].at_ns)
        assert answer is not None
        obstacle = answer.decisive
        waits = self._periods and self._periods[-1].waits
        former = self._periods[-1] if waits else None
        if former is not None and (former.cause, former.text) == (obstacle.cause, obstacle.text):
            return
        begin = self._began if former is None else _moment(step)
        assert begin is not None
        held_by = holders(loop.planner.state, self._id, obstacle)
        briefly = explain(loop.planner, self._id, self._key, answer.at_ns, BRIEF)
        assert briefly is not None
        reason = _Reason.of(obstacle, briefly.decisive.text)
        since = self._came_of(step) if former is None else self._since(step)
        self._add(_period(step, begin, reason, since, held_by))

    def _end(self, step: Step, reason: _Reason) -> None:
        waits = self._periods and self._periods[-1].waits
        if self._began is not None and not waits and self._began.at_ns < _moment(step).at_ns:
            # The first plan placed it, so nobody was asked what held it up to there.
            self._add(_period(step, self._began, _UNPLANNED, self._came_of(step)))
        self._began = None
        self._add(_period(step, _moment(step), reason, self._since(step)))

    def _came_of(self, step: Step) -> str:
        """Return the request that brought this ask, whatever let it be looked at."""
        ask = Item(Part.ASK, self._id, self._key)
        return self._stimuli.that_brought(
            manager_of_partition(self.partition), ask, step.deliveries[-1].stimulus
        )

    def _since(self, step: Step) -> str:
        """Return the request that led to what a step did about this ask."""
        ask = Item(Part.ASK, self._id, self._key)
        return self._stimuli.of(step.deliveries[-1], ask, manager_of_partition(self.partition))

    def _add(self, period: Period) -> None:
        if self._periods and self._periods[-1].end is None and self._periods[-1].waits:
            self._periods[-1] = replace(self._periods[-1], end=period.begin)
        self._periods.append(period)

    def _removal(self, step: Step) -> _Reason | None:
        for fact in _facts(step):
            match fact:
                case AskRemoved(application_id=self._id, key=self._key, type=type_):
                    return _Reason(WITHDRAWN, _WITHDRAWN[type_])
                case ApplicationRemoved(application_id=self._id) if self._began is not None:
                    return _Reason(WITHDRAWN, "its application was removed")
        return None


_GONE: Final = _Reason(WITHDRAWN, "it was taken back")
_UNPLANNED: Final = _Reason(Cause.NEXT.value, "it is tried in the next plan")
_WITHDRAWN: Final = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: "it was taken back",
    TerminationType.STOPPED_BY_RM: "its resource manager took it back",
    TerminationType.TIMEOUT: "it was withdrawn, because its time was over",
    TerminationType.PREEMPTED_BY_SCHEDULER: "it was withdrawn, because it was preempted",
    TerminationType.PLACEHOLDER_REPLACED: "it was withdrawn, because a member took its place",
    TerminationType.SCHEDULING_FAILED_ON_RM: "its resource manager could not bind it",
}


def _facts(step: Step) -> Iterator[object]:
    """Yield what became true for the planner: a Scheduler receives facts, Context sends them."""
    said = (effect.message for effect in step.effects if isinstance(effect, Send))
    for message in (*(it.message for it in step.deliveries), *said):
        if isinstance(message, FactsAppended):
            for fact in message.facts:
                yield from parts_of(fact)


def _moment(step: Step) -> Moment:
    return Moment(step.deliveries[-1].at_ns, step.record)


def _period(
    step: Step, begin: Moment, reason: _Reason, since: str, held_by: tuple[str, ...] = ()
) -> Period:
    last = step.deliveries[-1]
    return Period(
        begin=begin,
        end=None,
        cause=reason.cause,
        text=reason.text,
        brief=reason.brief or reason.text,
        since=since,
        step=Place(last.mailbox, last.step),
        kind=reason.kind,
        held_by=held_by,
    )


def _placed(loop: PlanningLoop, uuids: Iterable[str]) -> _Reason:
    state = loop.planner.state
    owners = ((state.owner_of(uuid), uuid) for uuid in uuids)
    nodes = (app.allocations[uuid].node_id for app, uuid in owners if app is not None)
    return _Reason(Cause.PLACED.value, f"placed on {', '.join(dict.fromkeys(nodes))}")
