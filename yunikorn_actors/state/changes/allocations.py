"""How facts about asks, allocations and reservations change a partition."""

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec, Reservation, WaitingState
from yunikorn_actors.state.applications import COUNTS_BY_HOLDING, Application
from yunikorn_actors.state.beneficiary import PreemptionRule
from yunikorn_actors.state.changes.gangs import forget_complete_gang, let_out, resize_incoming
from yunikorn_actors.state.ledger import books_of, count_holding, strike, waiting, write
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import (
    book_earmark,
    give_up_earmark,
    going_for,
    leaving_books,
    reserve,
    resize_reservation,
    secure_free_room,
    secure_freed_room,
    unreserve,
    victims_going,
    without_one,
)
from yunikorn_actors.state.swap import TaskGroup
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.resource import Resource, charge, discharge, sub


def ask_added(state: PartitionState, fact: f.AskAdded) -> None:
    spec = fact.spec
    app = state.applications[spec.application_id]
    app.submitted_ns = min(app.submitted_ns, fact.created_ns)
    app.asks[spec.key] = Ask(
        spec=spec,
        created_ns=fact.created_ns,
        sequence=fact.sequence,
        remaining=spec.max_allocations,
    )
    _wait(app, spec, spec.max_allocations)
    if spec.placeholder:
        _count(app, spec, spec.max_allocations)


def asks_added(state: PartitionState, fact: f.AsksAdded) -> None:
    """What `ask_added` does, for each of a run; books are written once."""
    # A run counts as its parts, of which one is counted already.
    state.revision += fact.count - 1
    app = state.applications[fact.application_id]
    asks, repeats = app.asks, 0
    for sequence, spec in enumerate(fact.specs, fact.first_sequence):
        created_ns = fact.created_ns(spec)
        app.submitted_ns = min(app.submitted_ns, created_ns)
        asks[spec.key] = Ask(
            spec=spec, created_ns=created_ns, sequence=sequence, remaining=spec.max_allocations
        )
        if spec.placeholder:
            _count(app, spec, spec.max_allocations)
        repeats += spec.max_allocations
    _wait(app, fact.specs[0], repeats)


def _count(app: Application, spec: AskSpec, placeholders: int) -> None:
    """A task group expects so many placeholders more, or fewer (G17)."""
    if spec.placeholder:
        app.task_groups.setdefault(spec.task_group, TaskGroup()).count += placeholders


def _wait(app: Application, spec: AskSpec, repeats: int) -> None:
    """So many repeats more wait, or fewer."""
    if repeats >= 0:
        write(app.pending_books, waiting(spec, repeats))
    else:
        strike(app.pending_books, waiting(spec, -repeats))
    if spec.placeholder:
        app.waiting_placeholders += repeats


def ask_replaced(state: PartitionState, fact: f.AskReplaced) -> None:
    app = state.applications[fact.spec.application_id]
    ask = app.asks[fact.spec.key]
    _wait(app, ask.spec, -ask.remaining)
    _count(app, ask.spec, -ask.remaining)
    resize_incoming(state, app, fact.spec)
    for node_id in dict.fromkeys(ask.reserved):
        resize_reservation(app, state.nodes[node_id], fact.spec.key, fact.spec.resource)
    ask.spec = fact.spec
    ask.remaining = fact.spec.max_allocations - ask.taken - ask.parked
    _wait(app, ask.spec, ask.remaining)
    _count(app, ask.spec, ask.remaining)


def ask_removed(state: PartitionState, fact: f.AskRemoved) -> None:
    app = state.applications[fact.application_id]
    ask = app.asks[fact.key]
    _wait(app, ask.spec, -ask.remaining)
    if ask.spec.placeholder:
        app.task_groups[ask.spec.task_group].timed_out += ask.remaining
        if app.is_admitted:
            # It will not come, so nobody waits for its room any more.
            charge(app.placed, waiting(ask.spec, ask.remaining))
            forget_complete_gang(state, app)
    ask.remaining = 0
    if ask.is_over:
        del app.asks[fact.key]


def ask_reported(state: PartitionState, fact: f.AskReported) -> None:
    state.applications[fact.application_id].asks[fact.key].reported = fact.state


def ask_shortage_changed(state: PartitionState, fact: f.AskShortageChanged) -> None:
    state.applications[fact.application_id].asks[fact.key].shortage = fact.shortage


def ask_refused(state: PartitionState, fact: f.AskRefused) -> None:
    state.applications[fact.application_id].asks[fact.key].refused_ns = fact.at_ns


def allocation_committed(state: PartitionState, fact: f.AllocationCommitted) -> None:
    app = state.applications[fact.application_id]
    ask = app.asks[fact.key]
    ask.remaining -= 1
    ask.taken += 1
    ask.reported = WaitingState.SCHEDULED
    for kind, quantity in ask.spec.resource.items():
        for book in app.pending_books:
            book[kind] -= quantity
    if ask.spec.placeholder:
        app.waiting_placeholders -= 1
    put_on(state, app, ask, _made(state, ask.spec, fact.node_id, fact))


def allocations_committed(state: PartitionState, fact: f.AllocationsCommitted) -> None:
    """What `allocation_committed` does, for each of a run; shared books are written once."""
    # A run counts as its parts, of which one is counted already.
    state.revision += fact.count - 1
    apps = [state.applications[charged.application_id] for charged in fact.charged]
    counts = [0] * len(apps)
    of_placeholders = apps[0].asks[fact.keys[0]].spec.placeholder
    nodes, owners, at_ns = state.nodes, state.owners, fact.at_ns
    entries = tuple(fact.resource.items())
    columns = (fact.members, fact.keys, fact.uuids, fact.node_ids)
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
        together = fact.resource
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


def allocation_recovered(state: PartitionState, fact: f.AllocationRecovered) -> None:
    spec = fact.spec
    app = state.applications[spec.application_id]
    if fact.created_ns < app.submitted_ns:  # noqa: PLR1730 - a call costs more, per allocation
        app.submitted_ns = fact.created_ns
    ask = app.asks.get(spec.key)
    if ask is None:
        ask = Ask(spec=spec, created_ns=fact.created_ns, sequence=fact.sequence, remaining=0)
        app.asks[spec.key] = ask
    ask.taken += 1
    if spec.placeholder:
        _count(app, spec, 1)
    put_on(state, app, ask, _made(state, spec, fact.node_id, fact))


def _made(
    state: PartitionState,
    spec: AskSpec,
    node_id: str,
    fact: f.AllocationCommitted | f.AllocationRecovered | f.SwapCompleted,
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
    if app.state in COUNTS_BY_HOLDING:
        for level in app.queue.lineage:
            level.allocating[app.serial] = None
    if app.serial not in app.usages[0].running:
        for usage in (*app.usages, *app.group_usages):
            usage.running[app.serial] = None
    if app.reservation_count:
        count_holding(app)


def reservation_made(state: PartitionState, fact: f.ReservationMade) -> None:
    app = state.applications[fact.application_id]
    ask = app.asks[fact.key]
    ask.reserved = (*ask.reserved, fact.node_id)
    ask.reported = WaitingState.RESERVED
    node = state.nodes[fact.node_id]
    holder = (app.id, fact.key)
    had = node.reservations.get(holder)
    gave_up = victims_going(node, holder) if fact.required and had is None else ()
    reservation = Reservation(
        application_id=fact.application_id,
        key=fact.key,
        node_id=fact.node_id,
        required=fact.required,
        made_ns=fact.at_ns,
        earmark=ask.spec.resource if fact.by_preemption else None,
        repeats=1 if had is None else had.repeats + 1,
        secured={} if had is None else had.secured,
        former=gave_up if had is None else had.former,
    )
    reserve(node, reservation)
    if fact.by_preemption:
        secure_free_room(node, holder, reservation.promised, going_for(node, holder))
    state.reservation_count += 1
    app.reservation_count += 1
    count_holding(app)
    book_earmark(app, node, reservation.earmark or {})


def reservation_dropped(state: PartitionState, fact: f.ReservationDropped) -> None:
    app = state.applications[fact.application_id]
    ask = app.asks[fact.key]
    place = ask.reserved.index(fact.node_id)
    ask.reserved = (*ask.reserved[:place], *ask.reserved[place + 1 :])
    if ask.reported is WaitingState.RESERVED and not ask.reserved:
        ask.reported = WaitingState.UNREPORTED
    node = state.nodes[fact.node_id]
    kept = node.reservations[app.id, fact.key]
    if kept.repeats > 1:
        reserve(node, without_one(kept, kept.earmark or {}))
    else:
        unreserve(node, (app.id, fact.key))
    give_up_earmark(app, node, kept.earmark or {})
    state.reservation_count -= 1
    app.reservation_count -= 1
    count_holding(app)


def allocation_resized(state: PartitionState, fact: f.AllocationResized) -> None:
    app = state.applications[fact.application_id]
    allocation = app.allocations[fact.uuid]
    node = state.nodes[allocation.node_id]
    app.history.charge(allocation, fact.at_ns)
    # What is on its way out is resized with it, or a part would stay for ever (H-32).
    books = (*books_of(app, allocation), *leaving_books(app, allocation))
    strike(books, allocation.resource)
    discharge(node.allocated, allocation.resource)
    charge(node.available, allocation.resource)
    freed = sub(allocation.resource, fact.resource)
    node.give_devices_back(allocation.devices, allocation.resource)
    allocation.resource, allocation.devices = fact.resource, fact.devices
    node.take_devices(allocation.devices, allocation.resource)
    write(books, fact.resource)
    charge(node.allocated, fact.resource)
    discharge(node.available, fact.resource)
    if allocation.beneficiary is not None:
        _secure_freed(state, allocation, freed)


def release_requested(state: PartitionState, fact: f.ReleaseRequested) -> None:
    app = state.applications[fact.application_id]
    allocation = app.allocations[fact.uuid]
    allocation.releasing = fact.type
    allocation.asked_back_ns = fact.at_ns
    state.unconfirmed[fact.uuid] = app.id
    write(leaving_books(app, allocation), allocation.resource)


def confirmation_missed(state: PartitionState, fact: f.ConfirmationMissed) -> None:
    state.applications[fact.application_id].allocations[fact.uuid].is_overdue = True
    del state.unconfirmed[fact.uuid]


def allocation_released(state: PartitionState, fact: f.AllocationReleased) -> None:
    app = state.applications[fact.application_id]
    allocation = take_off(state, app, fact.uuid, fact.at_ns)
    if allocation.spec.placeholder:
        app.task_groups[allocation.spec.task_group].timed_out += 1
        if allocation.releasing is TerminationType.TIMEOUT:
            charge(app.spared, allocation.resource)
    if not app.allocations:
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
    """The room that a victim leaves is for the ask for which it went, if that still waits here."""
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
    state.unconfirmed.pop(uuid, None)
    if leaving := leaving_books(app, allocation):
        strike(leaving, allocation.resource)
    ask = app.asks[allocation.spec.key]
    ask.lose(uuid)
    if ask.is_over:
        del app.asks[allocation.spec.key]
    return allocation


def swap_completed(state: PartitionState, fact: f.SwapCompleted) -> None:
    """One step for application, queue, node and user: nothing is ever in between (R-004)."""
    app = state.applications[fact.application_id]
    swap = app.swaps.pop(fact.placeholder)
    ask = app.asks[swap.key]
    if swap.crosses:
        let_out(state.nodes[swap.node_id], fact.placeholder)
    ask.parked -= 1
    ask.taken += 1
    ask.reported = WaitingState.SCHEDULED
    allocation = _made(state, ask.spec, swap.node_id, fact)
    _enter(state, app, ask, allocation)
    placeholder = _leave(state, app, fact.placeholder, fact.at_ns)
    if fact.is_even:
        # Only the application counts its placeholders apart.
        charge(app.allocated, fact.resource)
        discharge(app.placeholders, fact.resource)
    else:
        _charge(state, app, allocation)
        _discharge(state, app, placeholder)
    _count_as_holding(app)
    app.task_groups[placeholder.spec.task_group].replaced += 1
    if not fact.is_even:
        charge(app.spared, sub(placeholder.resource, fact.resource))
