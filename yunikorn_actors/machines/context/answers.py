"""What goes to a resource manager when a handler ends.

It is announced item by item, in any order. The resource manager gets at most one message of each
kind, in the one order that the interface promises: verdicts on what it brought, then rejected,
released, new, then the states of applications.
"""

from collections import defaultdict
from typing import Any, TypeVar

from msgspec import Struct

from yunikorn_actors.domain.allocation import AskSpec
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import Message


class Verdict(Struct, frozen=True):
    """Whether what came is taken; where not, the refusal says why."""

    id: str
    refusal: str = ""


class NodeVerdict(Verdict, frozen=True):
    pass


class ApplicationVerdict(Verdict, frozen=True):
    pass


Answer = (
    NodeVerdict
    | ApplicationVerdict
    | rm.RejectedAsk
    | rm.AnnouncedWithdrawal
    | rm.AnnouncedRelease
    | rm.AnnouncedAllocation
    | rm.ContainerState
    | rm.ApplicationUpdate
)
AnswerT = TypeVar("AnswerT", bound=Answer)


class Answers:
    """The answers of one handler."""

    def __init__(self) -> None:
        self.by_kind: defaultdict[type, list[Any]] = defaultdict(list)

    def add(self, answer: Answer) -> None:
        self.by_kind[type(answer)].append(answer)

    def of(self, kind: type[AnswerT]) -> tuple[AnswerT, ...]:
        found = self.by_kind.get(kind)
        return tuple(found) if found else ()

    def messages(self, rm_id: str) -> list[Message]:
        to_rm: list[Message] = []
        by_kind = self.by_kind
        if not by_kind:
            return to_rm
        if NodeVerdict in by_kind:
            accepted, rejected = _divided(self.of(NodeVerdict))
            to_rm.append(rm.RMNodeUpdate(rm_id=rm_id, accepted=accepted, rejected=rejected))
        if ApplicationVerdict in by_kind:
            accepted, rejected = _divided(self.of(ApplicationVerdict))
            to_rm.append(rm.RMApplicationUpdate(rm_id=rm_id, accepted=accepted, rejected=rejected))
        if rm.RejectedAsk in by_kind:
            asks = self.of(rm.RejectedAsk)
            to_rm.append(rm.RMRejectedAllocationAsk(rm_id=rm_id, rejected=asks))
        if rm.AnnouncedWithdrawal in by_kind or rm.AnnouncedRelease in by_kind:
            withdrawn, released = self.of(rm.AnnouncedWithdrawal), self.of(rm.AnnouncedRelease)
            release = rm.RMReleaseAllocation(rm_id=rm_id, withdrawn=withdrawn, released=released)
            to_rm.append(release)
        if rm.AnnouncedAllocation in by_kind:
            new = self.of(rm.AnnouncedAllocation)
            to_rm.append(rm.RMNewAllocations(rm_id=rm_id, allocations=new))
        if rm.ContainerState in by_kind:
            states = self.of(rm.ContainerState)
            to_rm.append(rm.RMContainerSchedulingState(rm_id=rm_id, states=states))
        if rm.ApplicationUpdate in by_kind:
            updated = self.of(rm.ApplicationUpdate)
            to_rm.append(rm.RMApplicationUpdate(rm_id=rm_id, updated=updated))
        return to_rm


def _divided(verdicts: tuple[Verdict, ...]) -> tuple[tuple[str, ...], tuple[rm.Rejected, ...]]:
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
