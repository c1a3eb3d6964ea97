"""What goes to a resource manager when a handler ends.

It is announced item by item, in any order. The resource manager gets at most one message of each
kind, in the one order that the interface promises: verdicts on what it brought, then rejected,
released, new, then the states of applications.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from msgspec import Struct

from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import Message
from yunikorn_actors.state.allocations import AskSpec


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


_SHARED: dict[type, type] = {
    rm.AnnouncedRun: rm.AnnouncedAllocation,
    rm.AskedBack: rm.AnnouncedRelease,
}
"""What stands among others, in its place."""
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
    """The answers of one handler; of several requests those of each stay in their order.

    The answers to several requests are sent as if they were of one, unless that would turn round
    what is announced of an application (G27): one that was released and then rejected, say. Then
    the answers to the later request begin another batch.
    """

    def __init__(self) -> None:
        self.by_kind: _Batch = defaultdict(list)
        """Of the request in hand."""
        self._batches: list[_Batch] = []
        """Of the requests before it."""
        self._last_rank = 0
        """Of what the last batch tells last."""
        self._told: dict[str, int] = {}
        """The same about each application, as far as that has been asked for."""
        self._uncounted: list[_Batch] = []
        """Answers in the last batch that are not in there yet."""

    def add(self, answer: Answer) -> None:
        kind = type(answer)
        self.by_kind[_SHARED.get(kind, kind)].append(answer)

    def end_request(self) -> None:
        """What is added from now on answers another request."""
        answers = self.by_kind
        if not answers:
            return
        self.by_kind = defaultdict(list)
        ranks = [_RANKS[kind] for kind in answers]
        # What is sent behind all before it turns nothing round, whatever it is about: so it is in
        # a burst of one kind.
        if not self._batches or (min(ranks) < self._last_rank and self._turns_round(answers)):
            self._batches.append(defaultdict(list))
            self._last_rank = 0
            self._told.clear()
            self._uncounted.clear()
        batch = self._batches[-1]
        for kind, found in answers.items():
            batch[kind].extend(found)
        self._last_rank = max(self._last_rank, *ranks)
        self._uncounted.append(answers)

    def _turns_round(self, answers: _Batch) -> bool:
        """Whether something of it would be sent before an earlier answer about the same."""
        told = self._told
        for earlier in self._uncounted:
            for kind, found in earlier.items():
                for subject in _subjects(found):
                    told[subject] = max(_RANKS[kind], told.get(subject, 0))
        self._uncounted.clear()
        return any(
            _RANKS[kind] < told.get(subject, 0)
            for kind, found in answers.items()
            for subject in _subjects(found)
        )

    def of(self, kind: type[AnswerT]) -> tuple[AnswerT, ...]:
        return tuple(self.by_kind.get(kind, ()))

    def messages(self, rm_id: str) -> list[Message]:
        if not self._batches:
            return _messages(rm_id, self.by_kind) if self.by_kind else []
        self.end_request()
        return [message for batch in self._batches for message in _messages(rm_id, batch)]


def _messages(rm_id: str, batch: _Batch) -> list[Message]:
    to_rm: list[Message] = []
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
    """Name what each is about; an allocation is announced in the order of its application."""
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
    """Take those apart that are accepted and those that are rejected."""
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
    if size <= items_max or isinstance(message, rm.RMGivenBackUnasked):
        yield message, size
        return
    left = size
    for name, items in lists.items():
        for start in range(0, len(items), items_max):
            part = items[start : start + items_max]
            left -= len(part)
            if left:
                yield rm.RMPartAhead(rm_id=message.rm_id), 0
            yield type(message)(rm_id=message.rm_id, **{name: part}), len(part)
