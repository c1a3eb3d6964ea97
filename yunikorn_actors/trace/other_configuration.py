"""A recording under another configuration: the same requests, at the same times.

The calls of the recording are made again to a simulated core, once under the configuration that was
recorded and once under the other, and the two runs are compared. So neither run depends on the
order of threads in the recording. The answer also counts how many starts of the first run are as
recorded.

What a resource manager did because of what the core did follows the core here, too:

- Work that it ended runs as long as it did, from where it starts now.
- What is asked back is given back after as long as it was then.
- The members of a gang ask when its placeholders stand, if they stood in the recording. An
  application is removed when the same work is done as at its removal in the recording.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import Refused
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    EVENT_PUBLISHER,
    RM_PROXY,
    TIMER,
    Delivery,
    Message,
    is_outside,
)
from yunikorn_actors.messages.predicates import PredicatesAnswered
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import CallPredicates
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.origins.message_parts import facts_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import check_is_whole
from yunikorn_actors.values.durations import NEVER_NS, SECOND
from yunikorn_actors.values.ids import partition_name
from yunikorn_actors.what_if.answer import Answer, Course, FullName, differences_of
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.run import Manager, Run
from yunikorn_actors.what_if.simulation import WORDS, counted
from yunikorn_actors.what_if.text import basis_lines, difference_lines

AT_ONCE_NS: Final = 20_000_000
"""What lies so close together on threads is one moment: decisions take a few milliseconds there."""
SAME_S: Final = 1.0
"""A start is as recorded if it is on the same node and no more than this apart."""
UNLIKE_MAX: Final = 10
_NEVER: Final = -1
NO_END: Final = "what came behind its last message: the recording has no end"

_CALLS: Final = (
    rm.RegistrationRequested, rm.ConfigurationRequested, rm.AdminConfigUpdate, rm.AdminNodeUpdate,
    rm.AllocationsRequested, rm.ApplicationsRequested, rm.NodesRequested, rm.RMLost,
    rm.RMUnregistered, CoreRestored,
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class WhatIf:
    """What would have been different, and how far the comparison carries."""

    answer: Answer
    starts: int
    """How many there are in the recording."""
    as_recorded: int
    """How many are so when it is run again under its own configuration."""
    unlike: tuple[str, ...]
    """The first that are not."""


def what_if(trace: TraceReader, config: SchedulerConfig) -> WhatIf:
    """Run a recording again under its configuration and under this one.

    Raises TraceError where it is not whole.
    """
    trace.policies.compare(trace.header.policies, trace.path)
    recorded = _Recorded(trace)
    check_is_whole(trace)
    without = _RecordedRun(trace, recorded, None).go(None)
    course = _RecordedRun(trace, recorded, config).go(None)
    unlike = [*recorded.unlike(without)]
    return WhatIf(
        answer=Answer(
            revisions={},
            at_ns=trace.header.start_ns,
            course=course,
            without=without,
            differences=differences_of(course, without),
            assumptions=(*course.failures, *_assumptions(course)),
            lacks=() if trace.footer is not None else (NO_END,),
        ),
        starts=len(recorded.starts),
        as_recorded=len(recorded.starts) - len(unlike),
        unlike=tuple(unlike[:UNLIKE_MAX]),
    )


_WORDS: Final = {
    "undeclared": (
        "1 allocation runs on to the end: neither the recording nor a run time says how long it "
        "would run|{} allocations run on to the end: neither the recording nor a run time says how "
        "long they would run"
    ),
    "momentary": (
        "1 allocation was released in the moment in which it started, and so ends when it starts "
        "here: a resource manager may have withdrawn it at that time instead|{} allocations were "
        "released in the moment in which they started, and so end when they start here: a resource "
        "manager may have withdrawn them at that time instead"
    ),
    "predicates": (
        "1 predicate that was not asked in the recording is answered with yes|"
        "{} predicates that were not asked in the recording are answered with yes"
    ),
    **{name: WORDS[name] for name in ("limited", "further")},
}


def _assumptions(course: Course) -> Iterator[str]:
    yield "requests come at the times of the recording, and no others come, also behind its end"
    yield "work runs as long as it did, from where it starts"
    for name, words in _WORDS.items():
        if count := course.assumed.get(name):
            yield counted(words, count)


# -- what was recorded


@dataclass(slots=True)
class _Life:
    """An allocation of the recording."""

    ask: FullName
    uuid: str
    node: str
    start_ns: int
    is_reported: bool = False
    """A resource manager said that it runs there."""
    asked_back_ns: int = _NEVER
    given_back_ns: int = _NEVER
    end_ns: int = _NEVER
    ran_ns: int = _NEVER
    """How long it ran until a resource manager ended it by its own wish."""

    def end_at(self, at_ns: int) -> None:
        """A resource manager ends it, by its own wish or because it was asked to."""
        if self.asked_back_ns == _NEVER:
            self.ran_ns = max(0, at_ns - self.start_ns)
        else:
            self.given_back_ns = max(at_ns, self.asked_back_ns)

    @property
    def is_whole(self) -> bool:
        """Whether the recording says how long it would run: until its resource manager ended it."""
        return self.ran_ns != _NEVER


@dataclass(slots=True)
class _Call:
    """A call from outside, when it is made, and what is known of it."""

    message: Message
    mailbox: str
    stimulus: str
    at_ns: int
    is_after_rest: bool = True
    """All that was asked before had been handled."""
    ends: list[list[_Life]] = field(default_factory=list)
    """What each release of the request was about, those of asks behind the others."""


_Release = si.AllocationRelease | si.AllocationAskRelease


def _releases(request: si.AllocationRequest) -> tuple[_Release, ...]:
    releases = request.releases or si.AllocationReleasesRequest()
    return (*releases.allocations_to_release, *releases.allocation_asks_to_release)


class _Recorded:
    """What is read of a recording in one go."""

    def __init__(self, trace: TraceReader) -> None:
        self.calls: list[_Call] = []
        self.lives: defaultdict[FullName, list[_Life]] = defaultdict(list)
        """Of each ask, in the order in which they began."""
        self.of_app: defaultdict[tuple[str, str], list[_Life]] = defaultdict(list)
        self.answers: defaultdict[tuple[str, str, bool], list[str]] = defaultdict(list)
        """To predicates, by key, node and whether it is for a start."""
        self.start_ns = self.last_ns = trace.header.start_ns
        self._by_uuid: dict[tuple[str, str], _Life] = {}
        self._holds: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        """When placeholders of an application came to wait, and when they did no more."""
        self._restless: Counter[int] = Counter()
        self._read(trace)
        self._group()
        self._match()
        waits = [it.given_back_ns - it.asked_back_ns for it in self._all() if it.given_back_ns > 0]
        self.usual_ns = median_low(waits) if waits else 0
        """How long a resource manager took to give something back."""

    @property
    def starts(self) -> list[_Life]:
        return [it for it in self._all() if not it.is_reported]

    def _all(self) -> Iterator[_Life]:
        return iter(self._by_uuid.values())

    def _read(self, trace: TraceReader) -> None:
        calls_at: defaultdict[str, list[int]] = defaultdict(list)
        """By mailbox how many calls had come when it handled each of its messages."""
        asked: dict[tuple[str, int], tuple[str, str, bool]] = {}
        for delivery in trace:
            message, mailbox = delivery.message, delivery.mailbox
            self.last_ns = max(self.last_ns, delivery.at_ns)
            if mailbox == EVENT_PUBLISHER:
                for fact in facts_of(message):
                    self._take(message.partition, fact)  # type: ignore[attr-defined]
            elif isinstance(message, CallPredicates):
                args = message.args
                name = (args.allocation_key, args.node_id, args.allocate)
                asked[mailbox, message.call_id] = name
            elif isinstance(message, PredicatesAnswered):
                sent = asked.pop((delivery.sender, message.call_id), None)
                if sent is not None:
                    self.answers[sent].append(message.reason)
            elif isinstance(message, _CALLS) and is_outside(delivery.sender):
                self.calls.append(_Call(message, mailbox, delivery.stimulus, delivery.at_ns))
            if not is_outside(mailbox):
                self._note_flight(delivery, calls_at)

    def _note_flight(self, delivery: Delivery, calls_at: dict[str, list[int]]) -> None:
        """Note which calls came while this message was under way: the core was not at rest."""
        now = len(self.calls)
        calls_at[delivery.mailbox].append(now)
        is_inner = not is_outside(delivery.sender) and delivery.sender != TIMER
        if is_inner and delivery.mailbox != EVENT_PUBLISHER:
            cause = delivery.cause
            handled = calls_at[cause.mailbox]
            # The cause of a message is not there where the recording has lost its beginning, which
            # is found, and refused, when all of it has been read.
            if 0 < cause.step <= len(handled):
                self._restless[handled[cause.step - 1]] += 1
                self._restless[now] -= 1

    def _group(self) -> None:
        """Put to one moment what came while the core was at work on what came just before."""
        under_way, first_ns = 0, 0
        for number, call in enumerate(self.calls):
            under_way += self._restless[number]
            call.is_after_rest = not under_way or call.at_ns - first_ns > AT_ONCE_NS
            if call.is_after_rest:
                first_ns = call.at_ns
            call.at_ns = first_ns

    def _take(self, partition: str, fact: Fact) -> None:
        match fact:
            case f.AskAdded(spec=spec, at_ns=at_ns) if spec.placeholder:
                held = self._holds[partition, spec.application_id]
                held.append((at_ns, spec.max_allocations))
            case f.AllocationCommitted() | f.SwapCompleted() | f.AllocationRecovered():
                self._start(partition, fact)
            case f.ReleaseRequested(uuid=uuid, at_ns=at_ns):
                if (life := self._by_uuid.get((partition, uuid))) is not None:
                    life.asked_back_ns = at_ns
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                self._end(partition, uuid, at_ns)

    def _start(
        self, partition: str, fact: f.AllocationCommitted | f.SwapCompleted | f.AllocationRecovered
    ) -> None:
        whose = fact.spec if isinstance(fact, f.AllocationRecovered) else fact
        ask = (partition, whose.application_id, whose.key)
        life = _Life(ask, fact.uuid, fact.node_id, fact.at_ns, whose is not fact)
        self._by_uuid[partition, fact.uuid] = life
        self.lives[ask].append(life)
        self.of_app[ask[:2]].append(life)
        self._holds[ask[:2]].append((fact.at_ns, -1))
        if isinstance(fact, f.SwapCompleted):
            self._end(partition, fact.placeholder, fact.at_ns)

    def _end(self, partition: str, uuid: str, at_ns: int) -> None:
        if (life := self._by_uuid.get((partition, uuid))) is not None:
            life.end_ns = at_ns

    # -- which request ended what

    def _match(self) -> None:
        for call in self.calls:
            if isinstance(call.message, rm.AllocationsRequested):
                rm_id = call.message.request.rm_id
                for item in _releases(call.message.request):
                    partition = partition_name(rm_id, item.partition_name)
                    ended = list(self._named(partition, item, call.at_ns))
                    call.ends.append(ended)
                    for life in ended:
                        life.end_at(call.at_ns)

    def _named(self, partition: str, item: _Release, at_ns: int) -> Iterator[_Life]:
        uuid, key = getattr(item, "uuid", ""), item.allocation_key
        if uuid:
            life = self._by_uuid.get((partition, uuid))
            found = [] if life is None else [life]
        else:
            found = self.lives[partition, item.application_id, key] if key else []
        for life in found:
            is_begun = life.start_ns <= at_ns + AT_ONCE_NS
            is_over = life.is_whole or life.given_back_ns != _NEVER or _NEVER < life.end_ns < at_ns
            if is_begun and not is_over:
                yield life

    def placeholders_waited(self, partition: str, application: str, at_ns: int) -> bool:
        """Whether placeholders of it waited then."""
        return sum(n for since, n in self._holds[partition, application] if since <= at_ns) > 0

    def unlike(self, course: Course) -> Iterator[str]:
        """Yield which starts are not as they were recorded."""
        made: defaultdict[FullName, list[tuple[float, str]]] = defaultdict(list)
        for one in course.placed:
            made[one.name].append((one.at_s, one.node))
        for life in self.starts:
            name, at_s = life.ask, (life.start_ns - self.start_ns) / SECOND
            near = [it for it in made[name] if it[1] == life.node and abs(it[0] - at_s) <= SAME_S]
            if near:
                made[name].remove(near[0])
            else:
                yield f"{'/'.join(name[1:])} on {life.node} after {at_s:g} s"


# -- the run


class _RecordedRun(Run):
    """Makes the recorded calls, and answers as the resource managers did."""

    def __init__(
        self, trace: TraceReader, recorded: _Recorded, config: SchedulerConfig | None
    ) -> None:
        header = trace.header
        built = Topology(
            header.topology, settings=header.settings, instance=header.instance,
            schedulers=header.schedulers, policies=trace.policies,
        )  # fmt: skip
        simulator = Simulator(built)
        simulator.now_ns = header.start_ns
        changes = [
            Change(call, (call.at_ns - header.start_ns) / SECOND)  # type: ignore[arg-type]
            for call in recorded.calls
        ]
        super().__init__(simulator, changes, others_max=0)
        self._recorded, self._config = recorded, config
        self._has_admin = any(isinstance(it.message, rm.AdminConfigUpdate) for it in recorded.calls)
        self._begun: Counter[FullName] = Counter()
        self._lives: dict[str, _Life] = {}
        """What an allocation was in the recording, by its UUID now."""
        self._now: dict[int, Allocation] = {}
        """What is alive now of the recording, by the identity of the life."""
        self._with_calls: set[str] = set()
        """What began as it did in the recording: the recorded call ends it."""
        self._missed: set[int] = set()
        """Lives that the recorded call ended before they began here."""
        self._done: set[int] = set()
        self._held: list[tuple[str, Any]] = []
        """Members and removals that have to wait, with their resource manager."""
        self._asked: Counter[tuple[str, str, bool]] = Counter()

    # -- calls

    def _make(self, change: Change) -> None:
        call: _Call = change.request  # type: ignore[assignment]
        if call.is_after_rest:
            self._settle()
        try:
            self._call(call, call.message)
        except Refused as error:
            self.refuse("", "configuration", call.stimulus, str(error))

    def _call(self, call: _Call, message: Message) -> None:
        simulator = self._simulator
        match message:
            case rm.AllocationsRequested():
                self._allocations(call, message.request)
            case rm.ApplicationsRequested():
                self._applications(call, message)
            case rm.RegistrationRequested():
                self._register(message)
            case rm.ConfigurationRequested():
                simulator.managers.configure(message.request, self._other(message.config))
            case rm.AdminConfigUpdate():
                self._await(call, replace(message, config=self._config or message.config))
            case rm.AdminNodeUpdate():
                self._await(call, message)
            case rm.RMLost():
                if simulator.managers.is_registered(message.rm_id):
                    simulator.resource_manager_lost(message.rm_id)
            case rm.RMUnregistered():
                simulator.managers.unregister(message.rm_id, message.by)
            case _:
                simulator._post(call.mailbox, message, call.stimulus)

    def _other(self, config: SchedulerConfig | None) -> SchedulerConfig | None:
        """Return the other configuration in the place of one that was brought."""
        if self._config is None or (config is None and self._has_admin):
            return config
        return self._config

    def _register(self, message: rm.RegistrationRequested) -> None:
        manager = Manager(message.request.rm_id, message.capabilities, self)
        config = self._other(message.config)
        self._simulator.managers.register(message.request, manager, config)

    def _await(self, call: _Call, message: Any) -> None:  # noqa: ANN401 - it names a reply
        self._simulator.driver.await_acceptance(
            call.mailbox, lambda reply_to: replace(message, reply_to=reply_to), call.stimulus
        )

    def _allocations(self, call: _Call, request: si.AllocationRequest) -> None:
        asks = []
        for ask in request.asks:
            if self._must_wait(call, request.rm_id, ask):
                self._held.append((request.rm_id, ask))
            else:
                asks.append(ask)
        ends = [*self._still_to_release(call, _releases(request))]
        releases = si.AllocationReleasesRequest(
            allocations_to_release=tuple(it for it in ends if isinstance(it, si.AllocationRelease)),
            allocation_asks_to_release=tuple(
                it for it in ends if isinstance(it, si.AllocationAskRelease)
            ),
        )
        changed = replace(request, asks=tuple(asks), releases=releases if ends else None)
        self._post(rm.AllocationsRequested(request=changed))

    def _still_to_release(self, call: _Call, items: Iterable[_Release]) -> Iterator[_Release]:
        """Yield what is to be released: what began otherwise than recorded ends by itself."""
        for item, lives in zip(items, call.ends, strict=True):
            self._missed |= {id(it) for it in lives if id(it) not in self._now}
            known = [it for it in map(self._now.get, map(id, lives)) if it is not None]
            ends = [it for it in known if it.uuid in self._with_calls]
            for it in ends:
                self._done.add(id(self._lives[it.uuid]))
                self._given_back.add(it.uuid)
            if len(ends) == len(lives) and not getattr(item, "uuid", ""):
                # By its key: what of the ask still waits goes as well.
                yield item
            elif isinstance(item, si.AllocationRelease):
                for it in ends:
                    yield replace(item, uuid=it.uuid, allocation_key=it.spec.key)

    def _applications(self, call: _Call, message: rm.ApplicationsRequested) -> None:
        request, removed = message.request, []
        for item in request.remove:
            if self._must_wait(call, request.rm_id, item):
                self._held.append((request.rm_id, item))
            else:
                removed.append(item)
        self._post(replace(message, request=replace(request, remove=tuple(removed))))

    def _post(self, message: rm.AllocationsRequested | rm.ApplicationsRequested) -> None:
        self._simulator._post(RM_PROXY, message, "recorded")

    # -- what follows the core

    def _must_wait(self, call: _Call, rm_id: str, item: Any) -> bool:  # noqa: ANN401 - of two kinds
        """Whether what it came after in the recording has not come yet."""
        if isinstance(item, si.AllocationAsk):
            partition = partition_name(rm_id, item.partition_name)
            by_ns = call.at_ns + AT_ONCE_NS
            is_member = bool(item.task_group_name) and not item.placeholder
            if not is_member or self._recorded.placeholders_waited(
                partition, item.application_id, by_ns
            ):
                return False
        return self._is_held(rm_id, item)

    def _has_open_work(self, partition: str, application: str) -> bool:
        """Whether work of it waits or runs that was done in the recording when it was removed."""
        app = self._application(partition, application)
        if app is None or not (app.allocations or any(it.is_open for it in app.asks.values())):
            return False
        now_ns = self._simulator.now_ns
        return any(
            it.is_whole and it.start_ns + it.ran_ns <= now_ns and id(it) not in self._done
            for it in self._recorded.of_app[partition, application]
        )

    def _settle(self) -> None:
        super()._settle()
        while ready := [it for it in self._held if not self._is_held(*it)]:
            self._held = [it for it in self._held if it not in ready]
            for rm_id, item in ready:
                if isinstance(item, si.AllocationAsk):
                    asked = si.AllocationRequest(rm_id=rm_id, asks=(item,))
                    self._post(rm.AllocationsRequested(request=asked))
                else:
                    gone = si.ApplicationRequest(rm_id=rm_id, remove=(item,))
                    self._post(rm.ApplicationsRequested(request=gone))
            super()._settle()

    def _is_held(self, rm_id: str, item: Any) -> bool:  # noqa: ANN401 - of two kinds
        partition = partition_name(rm_id, item.partition_name)
        if isinstance(item, si.AllocationAsk):
            app = self._application(partition, item.application_id)
            return app is not None and app.waiting_placeholders > 0
        return self._has_open_work(partition, item.application_id)

    def _ask_for_members(self, name: str, app: Application) -> None:
        """Nobody asks for them here: the recording has them."""

    def _runtime_ns(self, name: str, app: Application, allocation: Allocation) -> int:
        ask = (name, app.id, allocation.spec.key)
        lives, number = self._recorded.lives[ask], self._begun[ask]
        self._begun[ask] += 1
        life = lives[number] if number < len(lives) else None
        if life is None:
            return super()._runtime_ns(name, app, allocation)
        self._lives[allocation.uuid], self._now[id(life)] = life, allocation
        if life.is_whole:
            is_late = abs(self._simulator.now_ns - life.start_ns) > AT_ONCE_NS
            if is_late or id(life) in self._missed:
                self.counts["momentary"] += not life.ran_ns
                return life.ran_ns
            self._with_calls.add(allocation.uuid)
            return NEVER_NS
        if life.end_ns != _NEVER and life.asked_back_ns == _NEVER:
            # It ended with its application, or with its node.
            return NEVER_NS
        last_ns = self._recorded.last_ns if life.end_ns == _NEVER else life.end_ns
        runtime_ns = super()._runtime_ns(name, app, allocation)
        # What ran on beyond what it declares is not ended by that.
        return runtime_ns if runtime_ns > last_ns - life.start_ns else NEVER_NS

    def _release(self, name: str, allocation: Allocation, why: int) -> bool:
        life = self._lives.get(allocation.uuid)
        if life is not None:
            self._done.add(id(life))
        return super()._release(name, allocation, why)

    def _confirm(self, name: str, allocation: Allocation, why: int) -> None:
        """Give it back after as long as it was then; what was not given back then is not now."""
        life, after_ns = self._lives.get(allocation.uuid), self._recorded.usual_ns
        if life is not None and life.asked_back_ns != _NEVER:
            if life.given_back_ns == _NEVER:
                return
            after_ns = life.given_back_ns - life.asked_back_ns
        if after_ns:
            self._end_later(self._simulator.now_ns + after_ns, name, allocation, why)
        else:
            self._release(name, allocation, why)

    def fits(self, key: str, node: str) -> str | None:
        """Answer as in the recording: each question anew, the last answer for further ones."""
        answers = self._recorded.answers
        name = next((it for it in ((key, node, True), (key, node, False)) if it in answers), None)
        if name is None:
            return super().fits(key, node)
        number = min(self._asked[name], len(answers[name]) - 1)
        self._asked[name] += 1
        return answers[name][number] or None


# -- in words


def what_if_lines(found: WhatIf) -> Iterator[str]:
    """Yield what fares otherwise, ask by ask and in sum, and what that rests on."""
    answer = found.answer
    yield from difference_lines(answer)
    yield from basis_lines(answer)
    yield (
        f"run again under its own configuration, {found.as_recorded} of {found.starts} starts are "
        "as recorded"
    )
    if found.unlike:
        yield "others are not, as threads decided in another order; recorded were:"
    for text in found.unlike:
        yield f"  {text}"
