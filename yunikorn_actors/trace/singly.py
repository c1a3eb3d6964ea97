"""Messages with the parts of their runs one by one, and duplicates removed.

A run means no more than its parts do. So a recording in which each of them was a message, made
when there were no runs, replays as well; so does one made when a report was sent twice.

The same holds for a recording from before confirmations were separate from other releases. None
of its messages and facts says so, and none is missed.
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
from yunikorn_actors.messages.scheduling import FactsAppended, Observation, ReportWaiting
from yunikorn_actors.state.facts import AllocationReleased, Fact, parts_of


def say_the_same(one: Message, other: Message) -> bool:
    if one == other:
        return True
    one, other = _singly(one), _singly(other)
    return one == other or _untold(one, other) == other


def _singly(message: Message) -> Message:
    said = _SAID.get(type(message))
    return message if said is None else said(message)


def _untold(one: Message, other: Message) -> Message:
    """Return the first without what it says where the other, an older one, says nothing.

    That is about confirmations and about the queues of accepted applications.
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
