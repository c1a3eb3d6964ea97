"""The work of one handler of Context: in each partition that it comes to, a unit of work.

Whatever a handler decides is written down here first: facts, which take effect at once, and answers
to the resource manager. When the handler ends, `Work.effects` turns it into messages. So a handler
may work item by item, and the resource manager still gets at most one message of each kind.

Long work is one `Work` over several slices. Facts go out with the slice in which they were
recorded. The resource manager hears everything at the end, in parts that `RmProxy` joins, so it
gets the same responses however many slices the work has taken. At the first pause each partition
that the work has touched gets a mark in its state (`LongWorkStarted`): nothing is decided for it,
and a core that starts again goes on with what the mark names.

Messages of several kinds go out in the one order that the interface promises: verdicts on what the
resource manager brought, then rejected, released, new, then the states of applications.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from msgspec import Struct

from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import Steps
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import EVENT_PUBLISHER, RM_PROXY, Message
from yunikorn_actors.messages.rm_events import ContainerState
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, AskSpec, WaitingState
from yunikorn_actors.state.facts import Fact, NodeActionRefused, apply
from yunikorn_actors.state.partition import LongWork, LongWorkKind


class Verdict(Struct, frozen=True):
    """Whether what came is taken; where not, the refusal says why."""

    id: str
    refusal: str = ""


class NodeVerdict(Verdict, frozen=True):
    pass


class ApplicationVerdict(Verdict, frozen=True):
    queue: str = ""
    """Where it is, if it was accepted."""
    by_last_resort: bool = False
    queues: tuple[str, ...] = ()
    """Those that would take it, if no placement rule matched."""


class GivenBackUnasked(Struct, frozen=True):
    application_id: str
    uuid: str


Answer = (
    NodeVerdict
    | ApplicationVerdict
    | rm.RejectedAsk
    | rm.AnnouncedWithdrawal
    | rm.AnnouncedRelease
    | rm.AskedBack
    | GivenBackUnasked
    | rm.AnnouncedAllocation
    | rm.AnnouncedRun
    | rm.ContainerState
    | rm.ApplicationUpdate
)
AnswerT = TypeVar("AnswerT", bound=Answer)


# An allocation and a run of them are answers of one kind: their order is that of the commits.
_SHARED: dict[type, type] = {
    rm.AnnouncedRun: rm.AnnouncedAllocation,
    rm.AskedBack: rm.AnnouncedRelease,
}
"""Kinds that are sent in order among answers of another kind."""
_RANKS: dict[type, int] = {
    kind: rank
    for rank, kind in enumerate(
        (
            NodeVerdict,
            ApplicationVerdict,
            rm.RejectedAsk,
            rm.AnnouncedWithdrawal,
            rm.AnnouncedRelease,
            GivenBackUnasked,
            rm.AnnouncedAllocation,
            rm.ContainerState,
            rm.ApplicationUpdate,
        )
    )
}
"""In which order the kinds of answers are sent."""

_Batch = defaultdict[type, list[Any]]


class Answers:
    """The answers of one handler; the answers to each request stay in their order.

    Answers to several requests go out as one batch, unless that would reverse the announcements of
    an application (G27), say of a release and a later rejection. Then the answers to the later
    request begin another batch.
    """

    def __init__(self) -> None:
        self.by_kind: _Batch = defaultdict(list)
        """Of the request in hand."""
        self._batches: list[_Batch] = []
        """Of the requests before it."""
        self._last_rank = 0
        """The rank of the last answer in the last batch."""
        self._answered: dict[str, int] = {}
        """By application: the rank of its last answer in the last batch; filled on demand."""
        self._uncounted: list[_Batch] = []
        """Answers in the last batch that are not in there yet."""

    def add(self, answer: Answer) -> None:
        kind = type(answer)
        self.by_kind[_SHARED.get(kind, kind)].append(answer)

    def end_request(self) -> None:
        """What is added from now on answers another request."""
        # Nothing was answered: an empty request must not begin a batch.
        answers = self.by_kind
        if not answers:
            return
        self.by_kind = defaultdict(list)
        # The least and the greatest rank of this request, against the last of the batch before it.
        ranks = [_RANKS[kind] for kind in answers]
        # What is sent behind all before it turns nothing round, whatever it is about: so it is in
        # a burst of one kind.
        if not self._batches or (min(ranks) < self._last_rank and self._turns_round(answers)):
            self._batches.append(defaultdict(list))
            self._last_rank = 0
            self._answered.clear()
            self._uncounted.clear()
        # Within a kind requests follow each other as they came.
        batch = self._batches[-1]
        for kind, found in answers.items():
            batch[kind].extend(found)
        self._last_rank = max(self._last_rank, *ranks)
        self._uncounted.append(answers)

    def _turns_round(self, answers: _Batch) -> bool:
        """Whether something of it would be sent before an earlier answer about the same."""
        answered = self._answered
        # Filled in only when an order is in question: a burst of one kind never looks at subjects.
        for earlier in self._uncounted:
            for kind, found in earlier.items():
                for subject in _subjects(found):
                    answered[subject] = max(_RANKS[kind], answered.get(subject, 0))
        self._uncounted.clear()
        return any(
            _RANKS[kind] < answered.get(subject, 0)
            for kind, found in answers.items()
            for subject in _subjects(found)
        )

    def of(self, kind: type[AnswerT]) -> tuple[AnswerT, ...]:
        return tuple(self.by_kind.get(kind, ()))

    def messages(self, rm_id: str) -> list[Message]:
        # One request alone: no batches, and nothing is copied.
        if not self._batches:
            return _messages(rm_id, self.by_kind) if self.by_kind else []
        self.end_request()
        return [message for batch in self._batches for message in _messages(rm_id, batch)]


def _messages(rm_id: str, batch: _Batch) -> list[Message]:
    to_rm: list[Message] = []
    # In the order of the interface: of one thing that a request both brings and ends, the end is
    # sent first (G27).
    if NodeVerdict in batch:
        accepted, rejected = _divided(batch[NodeVerdict])
        to_rm.append(rm.RMNodeUpdate(rm_id=rm_id, accepted=accepted, rejected=rejected))
    if ApplicationVerdict in batch:
        to_rm.append(_application_update(rm_id, batch[ApplicationVerdict]))
    if rm.RejectedAsk in batch:
        asks = tuple(batch[rm.RejectedAsk])
        to_rm.append(rm.RMRejectedAllocationAsk(rm_id=rm_id, rejected=asks))
    if rm.AnnouncedWithdrawal in batch or rm.AnnouncedRelease in batch:
        release = rm.RMReleaseAllocation(
            rm_id=rm_id,
            withdrawn=tuple(batch.get(rm.AnnouncedWithdrawal, ())),
            released=tuple(batch.get(rm.AnnouncedRelease, ())),
        )
        to_rm.append(release)
    if GivenBackUnasked in batch:
        uuids = tuple([it.uuid for it in batch[GivenBackUnasked]])
        to_rm.append(rm.RMGivenBackUnasked(rm_id=rm_id, uuids=uuids))
    if rm.AnnouncedAllocation in batch:
        to_rm.append(_announced(rm_id, batch[rm.AnnouncedAllocation]))
    if rm.ContainerState in batch:
        states = tuple(batch[rm.ContainerState])
        to_rm.append(rm.RMContainerSchedulingState(rm_id=rm_id, states=states))
    if rm.ApplicationUpdate in batch:
        updated = tuple(batch[rm.ApplicationUpdate])
        to_rm.append(rm.RMApplicationUpdate(rm_id=rm_id, updated=updated))
    return to_rm


def _application_update(rm_id: str, verdicts: list[ApplicationVerdict]) -> rm.RMApplicationUpdate:
    return rm.RMApplicationUpdate(
        rm_id=rm_id,
        accepted=tuple(
            [
                rm.Accepted(id=it.id, queue=it.queue, by_last_resort=it.by_last_resort)
                for it in verdicts
                if not it.refusal
            ]
        ),
        rejected=tuple(
            [
                rm.Rejected(id=it.id, reason=it.refusal, queues=it.queues)
                for it in verdicts
                if it.refusal
            ]
        ),
    )


def _subjects(answers: list[Any]) -> Iterator[str]:
    """Name the application, or the node, that each answer is about: these keep their order."""
    for answer in answers:
        match answer:
            case rm.AnnouncedRun(specs=specs):
                yield from (spec.application_id for spec in specs)
            case rm.AnnouncedAllocation(spec=spec):
                yield spec.application_id
            case Verdict(id=id_):
                yield id_
            case _:
                yield answer.application_id


def _announced(
    rm_id: str, new: list[rm.AnnouncedAllocation | rm.AnnouncedRun]
) -> rm.RMNewAllocations:
    """All of them in one order: as soon as there is a run, those by themselves are runs too."""
    # A response has one list of allocations, whose order is that of the commits.
    if rm.AnnouncedRun not in map(type, new):
        alone = cast("list[rm.AnnouncedAllocation]", new)
        return rm.RMNewAllocations(rm_id=rm_id, allocations=tuple(alone))
    return rm.RMNewAllocations(rm_id=rm_id, runs=tuple(map(_as_run, new)))


def _as_run(it: rm.AnnouncedAllocation | rm.AnnouncedRun) -> rm.AnnouncedRun:
    if isinstance(it, rm.AnnouncedRun):
        return it
    return rm.AnnouncedRun(
        partition=it.partition,
        uuids=(it.uuid,),
        specs=(it.spec,),
        node_ids=(it.node_id,),
        devices=it.devices,
    )


def _divided(verdicts: list[Verdict]) -> tuple[tuple[str, ...], tuple[rm.Rejected, ...]]:
    """Divide verdicts into accepted ids and rejected ones with their reasons."""
    accepted = tuple(it.id for it in verdicts if not it.refusal)
    rejected = tuple(rm.Rejected(id=it.id, reason=it.refusal) for it in verdicts if it.refusal)
    return accepted, rejected


def rejected_ask(spec: AskSpec, reason: str) -> rm.RejectedAsk:
    return rm.RejectedAsk(
        application_id=spec.application_id,
        key=spec.key,
        reason=reason,
        later_form=spec.later_form,
    )


def in_parts(message: Any, items_max: int) -> Iterator[tuple[Message, int]]:  # noqa: ANN401
    """Take a message apart that a resource manager is to get whole, each part with its size."""
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    lists = {name: items for name, items in fields.items() if isinstance(items, tuple)}
    size = sum(map(len, lists.values()))
    # Small enough, or of no callback: RmProxy forgets UUIDs and does not wait for a whole.
    if size <= items_max or isinstance(message, rm.RMGivenBackUnasked):
        yield message, size
        return
    left = size
    for name, items in lists.items():
        for start in range(0, len(items), items_max):
            # The last part ends the whole, so all others are announced by a mark before them.
            part = items[start : start + items_max]
            left -= len(part)
            if left:
                yield rm.RMPartAhead(rm_id=message.rm_id), 0
            yield type(message)(rm_id=message.rm_id, **{name: part}), len(part)


class Work:
    """The decisions of one handler, for one resource manager, at one moment.

    Its units know the lists that they write into, and not the work: a reference back would be a
    cycle, and all that a handler wrote would wait for the garbage collector.
    """

    def __init__(
        self,
        rm_id: str,
        now_ns: int,
        settings: Settings,
        subscribers: tuple[str, ...] = (EVENT_PUBLISHER,),
    ) -> None:
        self.rm_id = rm_id
        self.now_ns = now_ns
        self.settings = settings
        self._subscribers = subscribers
        """Who hears the facts of all partitions."""
        self.answers = Answers()
        self.stray: list[NodeActionRefused] = []
        """Actions on nodes of a partition that is not there."""
        self.wanted: list[Effect] = []
        """Timers, and lines for the log."""
        self.units: dict[str, UnitOfWork] = {}
        """One in each partition that the handler has come to, by its name."""

    def unit(self, partition: PartitionContext) -> "UnitOfWork":
        unit = self.units.get(partition.name)
        if unit is None:
            unit = self.units[partition.name] = UnitOfWork(self, partition)
        return unit

    def announce(self, answer: Answer) -> None:
        """Send this to the resource manager when the handler ends."""
        self.answers.add(answer)

    def effects(self) -> list[Effect]:
        # Answers, which a caller waits for, come before facts and timers. Per mailbox this is the
        # order of delivery; between mailboxes none is promised. So whatever has to come one after
        # the other goes to one mailbox.
        answers = self.answers.messages(self.rm_id)
        effects: list[Effect] = []
        for answer in answers:
            effects.append(Send(to=RM_PROXY, message=answer))  # noqa: PERF401 - mostly none or one
        self._publish(effects)
        if self.stray:
            stray = NodeActionsRefused(rm_id=self.rm_id, refused=tuple(self.stray))
            effects.extend(Send(to=subscriber, message=stray) for subscriber in self._subscribers)
        effects.extend(self.wanted)
        return effects

    def resume(self, now_ns: int, subscribers: tuple[str, ...]) -> None:
        """Go on after other messages were handled: some of them may have recorded facts."""
        # Other handlers have recorded facts of these partitions in between: the next batch begins
        # behind them.
        self.now_ns, self._subscribers = now_ns, subscribers
        for unit in self.units.values():
            unit.now_ns, unit.first_revision = now_ns, unit.state.revision + 1

    def facts_so_far(self) -> list[Effect]:
        """Take out the facts and timers of a slice; the resource manager hears all at the end."""
        effects = self.silent_effects()
        self.wanted.clear()
        for unit in self.units.values():
            unit.facts.clear()
            # Emptied, so that no later slice sends them again.
            unit.first_revision = unit.state.revision + 1
        return effects

    def take_answers(self, items_max: int) -> Iterator[tuple[Message, int]]:
        """Take out the messages to the resource manager, in parts, each with the size of it."""
        answers, self.answers = self.answers.messages(self.rm_id), Answers()
        # Units announce into the new answers from here on.
        for unit in self.units.values():
            unit.announce = self.answers.add
        for message in answers:
            yield from in_parts(message, items_max)

    def begin_anew(self) -> None:
        """Forget what has been sent."""
        self.units.clear()
        self.wanted.clear()
        self.stray.clear()

    def silent_effects(self) -> list[Effect]:
        """Facts and timers alone, if there is no callback left to tell."""
        effects: list[Effect] = []
        self._publish(effects)
        effects.extend(self.wanted)
        return effects

    def _publish(self, effects: list[Effect]) -> None:
        for unit in self.units.values():
            partition, facts = unit.partition, unit.facts
            if not facts:
                # A unit that only answered has no facts: an empty batch would be a message for
                # nothing.
                continue
            # One batch for all subscribers: they get each fact once, and in the same order.
            message = FactsAppended(
                partition=partition.name,
                epoch=partition.epoch,
                rm_id=partition.rm_id,
                first_revision=unit.first_revision,
                facts=tuple(facts),
            )
            # Schedulers first; a partition of the fused topology has none.
            for subscriber in (*partition.schedulers.values(), *self._subscribers):
                effects.append(Send(to=subscriber, message=message))  # noqa: PERF401 - two, mostly


class UnitOfWork:
    """The changes of one handler in one partition, at one moment."""

    __slots__ = (
        "announce",
        "facts",
        "first_revision",
        "now_ns",
        "partition",
        "settings",
        "state",
        "want",
    )

    def __init__(self, work: Work, partition: PartitionContext) -> None:
        self.partition = partition
        self.state = partition.state
        self.now_ns = work.now_ns
        self.settings = work.settings
        self.facts: list[Fact] = []
        self.first_revision = self.state.revision + 1
        # Bound methods and no reference to the work: a cycle would leave all of it to the garbage
        # collector.
        self.announce = work.answers.add
        """Send this to the resource manager when the handler ends."""
        self.want = work.wanted.append
        """Set or cancel a timer, or write a line for the log, when the handler ends."""

    def record(self, fact: Fact) -> None:
        """State a fact: it is true from here on."""
        # Applied before anything else is decided in this handler: each item sees what those before
        # it did.
        apply(self.state, fact)
        # Fused, the planner sees each fact at once, as the next proposal is decided on it.
        planner = self.partition.planner
        if planner is not None:
            planner.observe(fact)
        self.facts.append(fact)


_REQUEST = LongWork(LongWorkKind.REQUEST)


class ContextJob:
    """Work in slices, and the mark of what it was doing when it was interrupted.

    The way of a request for allocations through it:

        Context._take_requests      steps of the job: a request at a time, its items in pieces
          asks.take_from            decides on each item
            UnitOfWork.record       a fact: applied to the truth, and to the planner where fused
            UnitOfWork.announce     what the resource manager gets
        Slices._is_done             counts pieces; after a slice of them, others have their turn:
          ContextJob.pause            LongWorkStarted says what is half done
            Work.facts_so_far         facts go out first: announcements may only follow them
          ContextJob.begin_slice      goes on with the time of the next slice
        Partitions.send_out_job     all that is left, when the steps have ended:
          Work.effects              facts to followers and answers to RmProxy, in this order
          PlanningLoop.next_cycle   asks for a plan; after a pause Work.take_answers cuts answers
    """

    def __init__(
        self,
        work: Work,
        steps: Callable[["ContextJob"], Steps],
        subscribers: Callable[[], tuple[str, ...]],
    ) -> None:
        self.work = work
        self.out: list[Effect] = []
        """What follows from this slice."""
        self.was_paused = False
        self._subscribers = subscribers
        # Before the first `now_doing`: items of a request, which are whole one by one.
        self._doing: tuple[str, LongWork] = "", _REQUEST
        self.steps = steps(self)

    @property
    def now_ns(self) -> int:
        return self.work.now_ns

    def now_doing(
        self, unit: UnitOfWork, kind: LongWorkKind, id_: str = "", detail: str = ""
    ) -> UnitOfWork:
        """From here on this is done, in this partition: it must not stay half done."""
        self._doing = unit.partition.name, LongWork(kind, id_, detail)
        return unit

    def begin_slice(self, now_ns: int) -> None:
        self.work.resume(now_ns, self._subscribers())

    def pause(self) -> None:
        self.was_paused = True
        name, doing = self._doing
        for unit in self.work.units.values():
            # The mark says what is half done, in the partition where it is; elsewhere a request is
            # under way.
            before, mark = unit.state.long_work, _REQUEST
            if unit.partition.name == name:
                mark = doing
            elif before is not None and before.kind is LongWorkKind.RELOAD:
                # A reload ends in all partitions at once: one that is to go may be half done.
                mark = before
            # Only on change: a job of a hundred slices marks once.
            if before != mark:
                unit.record(f.LongWorkStarted(work=mark, at_ns=unit.now_ns))
        self.out.extend(self.work.facts_so_far())

    def end_slice(self) -> list[Effect]:
        effects, self.out = self.out, []
        return effects


class AllEnded:
    """What is sent when a number of jobs, each with an order key of its own, have all ended."""

    def __init__(self, tell: Callable[[], list[Effect]]) -> None:
        self.awaited = 1
        """The jobs that have not ended, and one for who starts them."""
        self._tell = tell

    def arrived(self) -> list[Effect]:
        self.awaited -= 1
        return [] if self.awaited else self._tell()


def report_state(unit: UnitOfWork, ask: Ask, state: WaitingState, reason: str = "") -> None:
    # On change only, and only for a manager that has the callback for it.
    if unit.partition.hears_states and ask.reported is not state:
        spec = ask.spec
        unit.announce(
            ContainerState(
                application_id=spec.application_id, key=spec.key, state=state, reason=reason
            )
        )
