"""The items of a message: the asks, ends of allocations and applications that it is about."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum, auto
from typing import NamedTuple

from msgspec import Struct

from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Delivery, Message, is_manager, manager_of
from yunikorn_actors.messages.rm_calls import (
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateContainerSchedulingState,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import Preempt
from yunikorn_actors.trace.origins.message_parts import facts_of


class Part(IntEnum):
    """As what an item stands in a message."""

    ASK = auto()
    """An ask, its placement, or what becomes of it meanwhile."""
    END = auto()
    """The end of an ask or of an allocation, or the request to end it."""
    APPLICATION = auto()


class Item(NamedTuple):
    """One thing that a message is about."""

    part: Part
    application_id: str
    key: str = ""
    uuid: str = ""

    @property
    def name(self) -> str:
        """What it is called where one name is enough."""
        return self.key or self.uuid or self.application_id

    @property
    def names(self) -> set[str]:
        return {self.key, self.uuid} - {""} or {self.application_id} - {""}


def items_in(message: Message) -> list[Item]:
    """Return all items, each once."""
    items_of = _ITEMS.get(type(message))
    return [] if items_of is None else list(dict.fromkeys(items_of(message)))


class ItemsOnce:
    """Works out the items of each message once, and holds the message as long as them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, Sequence[Item]]] = {}

    def __call__(self, message: Message) -> Sequence[Item]:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = message, items_in(message)
        return known[1]


def manager_in(delivery: Delivery) -> str:
    """Return whose items these are: two managers may use the same ids. Empty if not known."""
    if is_manager(delivery.mailbox):
        return manager_of(delivery.mailbox)
    message = delivery.message
    rm_id: str = getattr(getattr(message, "request", message), "rm_id", "")
    return rm_id or manager_of_partition(getattr(message, "partition", ""))


def manager_of_partition(full_name: str) -> str:
    return full_name.rpartition("]")[0].removeprefix("[")


def _keyed(part: Part, items: Iterable[Struct]) -> Iterator[Item]:
    for it in items:
        key: str = getattr(it, "allocation_key", getattr(it, "key", ""))
        yield Item(part, getattr(it, "application_id", ""), key, getattr(it, "uuid", ""))


def _requested(message: rm.AllocationsRequested) -> Iterator[Item]:
    request = message.request
    yield from _keyed(Part.ASK, (*request.asks, *request.allocations))
    if request.releases is not None:
        yield from _keyed(Part.END, request.releases.allocation_asks_to_release)
        yield from _keyed(Part.END, request.releases.allocations_to_release)


def _updated(message: rm.RMUpdateAllocation) -> Iterator[Item]:
    yield from _keyed(Part.ASK, (it.spec for it in message.asks))
    yield from _keyed(Part.END, (*message.ask_releases, *message.releases))


def _new(message: rm.RMNewAllocations) -> Iterator[Item]:
    for it in message.allocations:
        yield Item(Part.ASK, it.spec.application_id, it.spec.key, it.uuid)
    for run in message.runs:
        for uuid, spec in zip(run.uuids, run.specs, strict=False):
            yield Item(Part.ASK, spec.application_id, spec.key, uuid)


def _released(message: rm.RMReleaseAllocation) -> Iterator[Item]:
    yield from _keyed(Part.END, (*message.withdrawn, *message.released))


def _called(message: CallUpdateAllocation) -> Iterator[Item]:
    it = message.response
    yield from _keyed(Part.ASK, (*it.new, *it.rejected, *it.rejected_allocations))
    yield from _keyed(Part.END, (*it.released, *it.released_asks))


def _applications(ids: Iterable[str]) -> Iterator[Item]:
    return (Item(Part.APPLICATION, id_) for id_ in ids)


def _application_update(message: rm.RMApplicationUpdate) -> Iterator[Item]:
    for part in (message.accepted, message.rejected):
        yield from _applications(it.id for it in part)
    yield from _applications(it.application_id for it in message.updated)


def _application_call(message: CallUpdateApplication) -> Iterator[Item]:
    it = message.response
    for part in (it.accepted, it.rejected, it.updated):
        yield from _applications(one.application_id for one in part)


def _facts(message: s.FactsAppended) -> Iterator[Item]:
    for fact in facts_of(message):
        found = item_of(fact)
        if found is not None:
            yield found


def item_of(fact: f.Fact) -> Item | None:
    """Return what a fact is about, if that is an ask or an application; a run has no key."""
    spec = getattr(fact, "spec", None)
    id_ = getattr(fact, "application_id", getattr(spec, "application_id", ""))
    key = getattr(fact, "key", getattr(spec, "key", ""))
    if not id_:
        return None
    part = Part.END if isinstance(fact, _ENDS) else Part.ASK if key else Part.APPLICATION
    return Item(part, id_, key, getattr(fact, "uuid", ""))


_ENDS = (f.AskRemoved, f.AllocationReleased, f.ReleaseRequested, f.ConfirmationMissed)


def _proposed(message: s.ProposeAllocations) -> Iterator[Item]:
    for it in message.proposals:
        found = claimant(it)
        if found is not None:
            yield found


def claimant(proposal: object) -> Item | None:
    """Return for which ask something is proposed; None if for none, but for a queue."""
    whom = proposal.beneficiary if isinstance(proposal, Preempt) else proposal
    id_, key = getattr(whom, "application_id", ""), getattr(whom, "key", "")
    if not id_:
        return None
    return Item(Part.ASK if key else Part.APPLICATION, id_, key)


_ITEMS: dict[type, Callable[..., Iterator[Item]]] = {
    rm.AllocationsRequested: _requested,
    rm.RMUpdateAllocation: _updated,
    rm.RMNewAllocations: _new,
    rm.RMReleaseAllocation: _released,
    rm.RMRejectedAllocationAsk: lambda it: _keyed(Part.ASK, it.rejected),
    rm.RMContainerSchedulingState: lambda it: _keyed(Part.ASK, it.states),
    rm.RMApplicationUpdate: _application_update,
    rm.ApplicationsRequested: lambda it: _applications(
        one.application_id for one in (*it.request.new, *it.request.remove)
    ),
    rm.RMUpdateApplication: lambda it: _applications(
        (
            *(one.spec.application_id for one in it.added),
            *(one.application_id for one in it.removed),
        )
    ),
    rm.NodesRequested: lambda it: _keyed(
        Part.ASK, (one for node in it.request.nodes for one in node.existing_allocations)
    ),
    rm.RMUpdateNode: lambda it: _keyed(
        Part.ASK, (one.spec for node in it.nodes for one in node.allocations)
    ),
    CallUpdateAllocation: _called,
    CallUpdateApplication: _application_call,
    CallUpdateContainerSchedulingState: lambda it: _keyed(Part.ASK, it.requests),
    s.FactsAppended: _facts,
    s.ProposeAllocations: _proposed,
    s.ReportWaiting: lambda it: _keyed(Part.ASK, it.observations),
}
