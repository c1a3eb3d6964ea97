"""Messages with the parts of their runs one by one, and duplicates removed.

A run means no more than its parts do. So a recording in which each of them was a message, made
when there were no runs, replays as well; so does one made when a report was sent twice.

The same holds for a recording from before confirmations were separate from other releases. None
of its messages and facts says so, and none is missed. Nor is missed which decisions were for one
gang where none of a plan says so: Context takes each as it was recorded.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_events import (
    Accepted,
    AnnouncedAllocation,
    GivenBack,
    Released,
    ReleaseItem,
    RMApplicationUpdate,
    RMNewAllocations,
    RMUpdateAllocation,
)
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    Observation,
    ProposeAllocations,
    ReportWaiting,
)
from yunikorn_actors.state.facts import AllocationReleased, Fact, parts_of
from yunikorn_actors.state.proposals import Preempt, Proposal


def are_equivalent(one: Message, other: Message) -> bool:
    if one == other:
        return True
    one, other = _singly(one), _singly(other)
    return one == other or _untold(one, other) == other


def _singly(message: Message) -> Message:
    said = _SAID.get(type(message))
    return message if said is None else said(message)


def _untold(one: Message, other: Message) -> Message:
    """Return the first without what it says where the other, an older one, says nothing.

    That is about confirmations, the queues of accepted applications, and victims for a gang.
    """
    match one, other:
        case RMApplicationUpdate(), RMApplicationUpdate():
            if not any(item.queue for item in other.accepted):
                return replace(one, accepted=tuple(Accepted(id=it.id) for it in one.accepted))
        case RMUpdateAllocation(), RMUpdateAllocation():
            if not any(isinstance(item, GivenBack) for item in other.releases):
                return replace(one, releases=tuple(map(_release, one.releases)))
        case FactsAppended(), FactsAppended():
            if not any(getattr(fact, "given_back", None) for fact in other.facts):
                return replace(one, facts=tuple(map(_unconfirmed, one.facts)))
        case ProposeAllocations(), ProposeAllocations():
            if not any(isinstance(it, Preempt) and it.gang for it in other.proposals):
                return replace(one, proposals=tuple(map(_each_for_itself, one.proposals)))
    return one


def _release(item: Released) -> ReleaseItem:
    return ReleaseItem(
        partition=item.partition,
        application_id=item.application_id,
        uuid=item.uuid,
        key=item.key,
        type=item.type,
    )


def _unconfirmed(fact: Fact) -> Fact:
    return replace(fact, given_back=None) if isinstance(fact, AllocationReleased) else fact


def _each_for_itself(proposal: Proposal) -> Proposal:
    return replace(proposal, gang=0) if isinstance(proposal, Preempt) else proposal


def _facts(message: FactsAppended) -> Message:
    return replace(message, facts=tuple(p for fact in message.facts for p in parts_of(fact)))


def _new_allocations(message: RMNewAllocations) -> Message:
    in_runs = (
        AnnouncedAllocation(partition=run.partition, uuid=uuid, spec=spec, node_id=node_id)
        for run in message.runs
        for uuid, spec, node_id in zip(run.uuids, run.specs, run.node_ids, strict=False)
    )
    return replace(message, allocations=(*message.allocations, *in_runs), runs=())


def _once(message: ReportWaiting) -> Message:
    first: dict[tuple[object, ...], Observation] = {}
    for it in message.observations:
        refusals = tuple(it.refusals.items())
        first.setdefault(
            (it.application_id, it.key, it.state, it.reason, it.shortage, refusals), it
        )
    return replace(message, observations=tuple(first.values()))


_SAID: dict[type, Callable[[Any], Message]] = {
    FactsAppended: _facts,
    ReportWaiting: _once,
    RMNewAllocations: _new_allocations,
}
