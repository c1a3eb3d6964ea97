"""Facts about allocations: their coming and going, their size, and swaps."""

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import ClassVar, Final

from msgspec import Struct

from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec, PreemptionRule, WaitingState
from yunikorn_actors.state.applications import COUNTS_BY_HOLDING, Application
from yunikorn_actors.state.facts.fact import (
    Base,
    Incident,
    IncidentKind,
    in_amounts,
    in_list,
    placed_on,
)
from yunikorn_actors.state.gangs import count_placeholders, forget_complete_gang, is_member
from yunikorn_actors.state.ledger import books_of, count_holding, strike, write
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import leaving_books, secure_freed_room
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, charge, discharge, sub

__all__ = [
    "AllocationCommitted",
    "AllocationFact",
    "AllocationRecovered",
    "AllocationReleased",
    "AllocationResized",
    "AllocationsCommitted",
    "Charged",
    "ConfirmationMissed",
    "ReleaseRequested",
    "SwapCompleted",
]

_ASKED_BACK: Final = {
    TerminationType.TIMEOUT: (
        IncidentKind.TIMEOUT,
        "allocations were asked back: their time was over",
    ),
    TerminationType.PREEMPTED_BY_SCHEDULER: (
        IncidentKind.PREEMPTED,
        "allocations were preempted: others get their room",
    ),
}
"""Which releases operators look for, as what, and in which words."""


class AllocationCommitted(Base, frozen=True, kw_only=True):
    """One repeat of an ask has its place; by a proposal, or reported by the resource manager."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    group: str = ""
    devices: Devices = ()
    """The numbers of the devices of its node that it gets."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        ask = app.asks[self.key]
        ask.remaining -= 1
        ask.taken += 1
        ask.reported = WaitingState.SCHEDULED
        # The books of the application, its queues, its user and its group, in one loop: the hot
        # path.
        for kind, quantity in ask.spec.resource.items():
            for book in app.pending_books:
                book[kind] -= quantity
        if ask.spec.placeholder:
            app.waiting_placeholders -= 1
        put_on(state, app, ask, _made(state, ask.spec, self.node_id, self))

    def in_words(self) -> str:
        placed = placed_on(self.key, self.node_id)
        return f"{self.application_id} {placed} {in_amounts(self.resource)} as {self.uuid}"


class Charged(Struct, frozen=True, kw_only=True, gc=False):
    """Into whose books an allocation is written."""

    application_id: str
    queue: str
    user: str
    group: str = ""


class AllocationsCommitted(Base, frozen=True, kw_only=True):
    """A run: asks of one size that got their places one right after the other."""

    charged: tuple[Charged, ...]
    """Each application once."""
    members: tuple[int, ...]
    """Of each allocation, the place of its application among those; and so on in this order."""
    keys: tuple[str, ...]
    uuids: tuple[str, ...]
    node_ids: tuple[str, ...]
    proposal_ids: tuple[int, ...]
    resource: Resource
    """Of each of them."""
    at_ns: int

    @property
    def count(self) -> int:
        return len(self.keys)

    def parts(self) -> Iterator[AllocationCommitted]:
        """Say it one by one."""
        columns = (self.members, self.keys, self.uuids, self.node_ids, self.proposal_ids)
        for member, key, uuid, node_id, proposal_id in zip(*columns, strict=True):
            charged = self.charged[member]
            yield AllocationCommitted(
                application_id=charged.application_id,
                queue=charged.queue,
                # The order of parts is that of the decisions; checkers and event records rely on
                # it.
                user=charged.user,
                group=charged.group,
                key=key,
                uuid=uuid,
                node_id=node_id,
                resource=self.resource,
                at_ns=self.at_ns,
                proposal_id=proposal_id,
            )

    def change(self, state: PartitionState) -> None:
        """What `AllocationCommitted` changes, for each of a run; shared books are written once."""
        # A run counts as its parts, of which one is counted already.
        state.revision += self.count - 1
        apps = [state.applications[charged.application_id] for charged in self.charged]
        # Counted by application, so that shared books are written once for each.
        counts = [0] * len(apps)
        of_placeholders = apps[0].asks[self.keys[0]].spec.placeholder
        nodes, owners, at_ns = state.nodes, state.owners, self.at_ns
        entries = tuple(self.resource.items())
        columns = (self.members, self.keys, self.uuids, self.node_ids)
        for member, key, uuid, node_id in zip(*columns, strict=True):
            counts[member] += 1
            app, node = apps[member], nodes[node_id]
            ask = app.asks[key]
            ask.remaining -= 1
            ask.taken += 1
            ask.reported = WaitingState.SCHEDULED
            ask.gain(uuid)
            spec = ask.spec
            app.allocations[uuid] = node.allocations[uuid] = Allocation(
                uuid=uuid,
                spec=spec,
                node_id=node_id,
                resource=spec.resource,
                allocated_ns=at_ns,
                instance_type=node.instance_type,
            )
            owners[uuid] = app.spec.application_id
            allocated, available = node.allocated, node.available
            for kind, quantity in entries:
                allocated[kind] = allocated.get(kind, 0) + quantity
                available[kind] = available.get(kind, 0) - quantity
        for app, count in zip(apps, counts, strict=True):
            together = self.resource
            # The last one may have none: the run ended before its ask.
            if count != 1:
                together = {kind: quantity * count for kind, quantity in entries}
            strike(app.pending_books, together)
            if of_placeholders:
                app.waiting_placeholders -= count
                write(app.placeholder_books, together)
                charge(app.placed, together)
                forget_complete_gang(state, app)
            else:
                write(app.allocated_books, together)
            _count_as_holding(app)

    def in_words(self) -> str:
        ids = ", ".join(charged.application_id for charged in self.charged)
        placed = in_list("", starmap(placed_on, zip(self.keys, self.node_ids, strict=False)))
        return f"{len(self.keys)} of {ids} {in_amounts(self.resource)} each:{placed}"


class AllocationRecovered(Base, frozen=True, kw_only=True):
    """Running work without an ask in this life of the core."""

    spec: AskSpec
    queue: str
    user: str
    uuid: str
    node_id: str
    created_ns: int
    sequence: int
    at_ns: int
    group: str = ""
    devices: Devices = ()

    def change(self, state: PartitionState) -> None:
        spec = self.spec
        app = state.applications[spec.application_id]
        if self.created_ns < app.submitted_ns:  # noqa: PLR1730 - a call costs more, per allocation
            app.submitted_ns = self.created_ns
        ask = app.asks.get(spec.key)
        if ask is None:
            ask = Ask(spec=spec, created_ns=self.created_ns, sequence=self.sequence, remaining=0)
            app.asks[spec.key] = ask
        ask.taken += 1
        if spec.placeholder:
            count_placeholders(app, spec, 1)
        elif is_member(app, spec):
            charge(app.reported, spec.resource)
            forget_complete_gang(state, app)
        put_on(state, app, ask, _made(state, spec, self.node_id, self))

    def in_words(self) -> str:
        spec = self.spec
        placed = placed_on(spec.key, self.node_id)
        return f"{spec.application_id} {placed} {in_amounts(spec.resource)} as {self.uuid}"


class AllocationResized(Base, frozen=True, kw_only=True):
    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    old_resource: Resource
    resource: Resource
    at_ns: int
    group: str = ""
    devices: Devices = ()
    """Those that it has from now on."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        allocation = app.allocations[self.uuid]
        node = state.nodes[allocation.node_id]
        # Before the size changes: what was used until now was used in the old size.
        app.history.charge(allocation, self.at_ns)
        # What is on its way out is resized with it, or a part would stay for ever (H-32).
        books = (*books_of(app, allocation), *leaving_books(app, allocation))
        strike(books, allocation.resource)
        discharge(node.allocated, allocation.resource)
        charge(node.available, allocation.resource)
        freed = sub(allocation.resource, self.resource)
        # Other devices, or none: taken and given back around the change.
        node.give_devices_back(allocation.devices, allocation.resource)
        allocation.resource, allocation.devices = self.resource, self.devices
        node.take_devices(allocation.devices, allocation.resource)
        write(books, self.resource)
        charge(node.allocated, self.resource)
        discharge(node.available, self.resource)
        # A victim that shrinks frees room early: that is for the ask it went for.
        if allocation.beneficiary is not None:
            _secure_freed(state, allocation, freed)

    def in_words(self) -> str:
        sizes = f"{in_amounts(self.old_resource)} -> {in_amounts(self.resource)}"
        return f"{self.application_id} {self.key} on {self.node_id} {sizes}"


class ReleaseRequested(Base, frozen=True, kw_only=True):
    """The core wants the allocation back; it stays charged until the resource manager confirms."""

    application_id: str
    key: str
    uuid: str
    type: TerminationType
    message: str
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    grace_ns: int = 0
    """How long a victim has to end by itself."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        allocation = app.allocations[self.uuid]
        # From here on no reason asks it back again (G12, G13).
        allocation.releasing = self.type
        allocation.asked_back_ns, allocation.grace_ns = self.at_ns, self.grace_ns
        state.unconfirmed[self.uuid] = app.id
        write(leaving_books(app, allocation), allocation.resource)

    def in_words(self) -> str:
        return f"asks back {self.application_id} {self.key} {self.type.name}"

    def incidents(self) -> Iterable[Incident]:
        found = _ASKED_BACK.get(self.type)
        if found is not None:
            kind, what = found
            yield Incident(kind, self.application_id, what, self.key)


class ConfirmationMissed(Base, frozen=True, kw_only=True):
    """The resource manager has not confirmed a release for too long; it is still waited for."""

    is_record: ClassVar[bool] = True
    application_id: str
    key: str
    uuid: str
    type: TerminationType
    asked_back_ns: int
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].allocations[self.uuid].is_overdue = True
        del state.unconfirmed[self.uuid]

    def in_words(self) -> str:
        return f"{self.application_id} does not give back {self.key} {self.type.name}"

    def incidents(self) -> Iterable[Incident]:
        what = "the release of allocations is not confirmed"
        yield Incident(IncidentKind.TIMEOUT, self.application_id, what, self.key)


class AllocationReleased(Base, frozen=True, kw_only=True):
    """It is charged nowhere any more."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    type: TerminationType
    at_ns: int
    group: str = ""
    given_back: TerminationType | None = None
    """Why the core had asked it back, where this is the confirmation; else None."""
    placeholder: bool = False
    with_ask: bool = False
    """The release meant its ask too, of which nothing is left now."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        allocation = take_off(state, app, self.uuid, self.at_ns)
        # (G17) Every end of a placeholder but a swap counts as timed out.
        if allocation.spec.placeholder:
            app.task_groups[allocation.spec.task_group].timed_out += 1
            # Given up by the core: the gang is whole without it.
            if allocation.releasing is TerminationType.TIMEOUT:
                charge(app.spared, allocation.resource)
        if not app.allocations:
            count_holding(app)

    def in_words(self) -> str:
        what = f"{self.application_id} {self.key} from {self.node_id} {self.uuid}"
        if self.given_back is None:
            return f"{what} {self.type.name}"
        answer = "" if self.type is self.given_back else f", confirmed as {self.type.name}"
        return f"gives back {what} {self.given_back.name}{answer}"


class SwapCompleted(Base, frozen=True, kw_only=True):
    """The placeholder is gone and the real allocation stands in its place, in one step."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    placeholder: str
    placeholder_key: str
    placeholder_node: str
    placeholder_resource: Resource
    type: TerminationType
    """How the placeholder ended: the state of the core, not this type, made it a swap."""
    at_ns: int
    group: str = ""
    devices: Devices = ()

    @property
    def is_even(self) -> bool:
        """Whether queues, users and nodes use the same before and after."""
        return self.node_id == self.placeholder_node and self.resource == self.placeholder_resource

    def change(self, state: PartitionState) -> None:
        """One step for application, queue, node and user: nothing is ever in between (R-004)."""
        app = state.applications[self.application_id]
        swap = app.swaps.pop(self.placeholder)
        ask = app.asks[swap.key]
        # The other node held room for it since the swap began.
        if swap.crosses:
            state.nodes[swap.node_id].let_out(self.placeholder)
        ask.parked -= 1
        ask.taken += 1
        ask.reported = WaitingState.SCHEDULED
        allocation = _made(state, ask.spec, swap.node_id, self)
        _enter(state, app, ask, allocation)
        placeholder = _leave(state, app, self.placeholder, self.at_ns)
        if self.is_even:
            # Only the application counts its placeholders apart.
            charge(app.allocated, self.resource)
            discharge(app.placeholders, self.resource)
        else:
            _charge(state, app, allocation)
            _discharge(state, app, placeholder)
        _count_as_holding(app)
        app.task_groups[placeholder.spec.task_group].replaced += 1
        # The member is smaller: the gang needs that much less to be whole.
        if not self.is_even:
            charge(app.spared, sub(placeholder.resource, self.resource))

    def in_words(self) -> str:
        member = f"{self.application_id} {self.key} swapped for {self.placeholder_key}"
        return f"{member} on {self.node_id}, {self.uuid} for {self.placeholder}"


AllocationFact = (
    AllocationCommitted
    | AllocationsCommitted
    | AllocationRecovered
    | AllocationResized
    | ReleaseRequested
    | ConfirmationMissed
    | AllocationReleased
    | SwapCompleted
)


def _made(
    state: PartitionState,
    spec: AskSpec,
    node_id: str,
    fact: AllocationCommitted | AllocationRecovered | SwapCompleted,
) -> Allocation:
    return Allocation(
        uuid=fact.uuid,
        spec=spec,
        node_id=node_id,
        resource=spec.resource,
        allocated_ns=fact.at_ns,
        instance_type=state.nodes[node_id].instance_type,
        devices=fact.devices,
    )


def put_on(state: PartitionState, app: Application, ask: Ask, allocation: Allocation) -> None:
    _enter(state, app, ask, allocation)
    _charge(state, app, allocation)
    _count_as_holding(app)


def _enter(state: PartitionState, app: Application, ask: Ask, allocation: Allocation) -> None:
    uuid = allocation.uuid
    ask.gain(uuid)
    node = state.nodes[allocation.node_id]
    app.allocations[uuid] = node.allocations[uuid] = allocation
    if allocation.devices:
        node.take_devices(allocation.devices, allocation.resource)
    state.owners[uuid] = app.spec.application_id


def _charge(state: PartitionState, app: Application, allocation: Allocation) -> None:
    node, resource = state.nodes[allocation.node_id], allocation.resource
    # A placeholder counts towards its gang, whatever happens to it later.
    if allocation.spec.placeholder:
        write(app.placeholder_books, resource)
        charge(app.placed, resource)
        forget_complete_gang(state, app)
    else:
        write(app.allocated_books, resource)
    allocated, available = node.allocated, node.available
    for kind, quantity in resource.items():
        allocated[kind] = allocated.get(kind, 0) + quantity
        available[kind] = available.get(kind, 0) - quantity


def _count_as_holding(app: Application) -> None:
    # It takes a place among the running ones by what it holds.
    if app.state in COUNTS_BY_HOLDING:
        for level in app.queue.lineage:
            level.allocating[app.serial] = None
    if app.serial not in app.usages[0].running:
        # Counts for its user from its first allocation on, placeholders included.
        for usage in (*app.usages, *app.group_usages):
            usage.running[app.serial] = None
    if app.reservation_count:
        # A place by reservation is one by allocation now.
        count_holding(app)


def take_off(state: PartitionState, app: Application, uuid: str, at_ns: int) -> Allocation:
    """Take an allocation out of all books; the ask goes with the last of it."""
    allocation = _leave(state, app, uuid, at_ns)
    _discharge(state, app, allocation)
    return allocation


def _discharge(state: PartitionState, app: Application, allocation: Allocation) -> None:
    node, resource = state.nodes[allocation.node_id], allocation.resource
    strike(books_of(app, allocation), resource)
    allocated, available = node.allocated, node.available
    for kind, quantity in resource.items():
        allocated[kind] = allocated.get(kind, 0) - quantity
        available[kind] = available.get(kind, 0) + quantity
    if allocation.beneficiary is not None:
        _secure_freed(state, allocation, resource)


def _secure_freed(state: PartitionState, allocation: Allocation, freed: Resource) -> None:
    """Secure a victim's room for the ask for which it went, if that still waits here."""
    # A quota makes room for nobody.
    whom = allocation.beneficiary
    if whom is None or whom.rule is PreemptionRule.QUOTA:
        return
    node, holder = state.nodes[allocation.node_id], (whom.application_id, whom.key)
    kept = node.reservations.get(holder)
    # A reservation that was made anew since then is about other room: the ask gave this one up.
    if kept is not None and allocation.uuid not in kept.former:
        size = state.applications[whom.application_id].asks[whom.key].spec.resource
        secure_freed_room(node, holder, freed, kept.promised or size)


def _leave(state: PartitionState, app: Application, uuid: str, at_ns: int) -> Allocation:
    """Forget an allocation, and the ask with the last of it; only the books still count it."""
    allocation = app.allocations.pop(uuid)
    app.history.charge(allocation, at_ns)
    node = state.nodes[allocation.node_id]
    del state.owners[uuid], node.allocations[uuid]
    if allocation.devices:
        node.give_devices_back(allocation.devices, allocation.resource)
    # By any way out: a confirmation is no longer waited for.
    state.unconfirmed.pop(uuid, None)
    if leaving := leaving_books(app, allocation):
        strike(leaving, allocation.resource)
    ask = app.asks[allocation.spec.key]
    ask.lose(uuid)
    # The ask ends with its last allocation.
    if ask.is_over:
        del app.asks[allocation.spec.key]
    return allocation
