"""The books of preemption: what is on its way out, and what its room is for."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from yunikorn_actors.state.allocations import (
    Allocation,
    AskSpec,
    PreemptionRule,
    Reservation,
    ReservationKey,
)
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.device_fit import promised_devices, suffice
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge


def leaving_books(app: Application, allocation: Allocation) -> tuple[Resource, ...]:
    """Return the books of what was asked back and frees its room; a swap frees none."""
    # A swap hands its room on, and is in none of these books.
    if not allocation.comes_free:
        return ()
    books = tuple(level.leaving for level in app.queue.lineage)
    if allocation.releasing is TerminationType.PREEMPTED_BY_SCHEDULER:
        books += tuple(level.preempting for level in app.queue.lineage)
    return books


# In every queue of the path: the room of an earmark is taken from the maximum on each level (G18).
def book_earmark(app: Application, node: Node, amount: Resource) -> None:
    """Count room that was promised to an ask as used, so that nobody else takes it."""
    for book in (node.promised, *(level.earmarked for level in app.queue.lineage)):
        charge(book, amount)


def give_up_earmark(app: Application, node: Node, amount: Resource) -> None:
    for book in (node.promised, *(level.earmarked for level in app.queue.lineage)):
        discharge(book, amount)


def on_its_way(node: Node) -> Iterator[Resource]:
    """Yield what comes free on a node when all that was asked back there is gone."""
    for allocation in node.allocations.values():
        if allocation.frees_node:
            yield allocation.resource


def is_overpromised(node: Node) -> bool:
    """Whether less is there, or on its way, than its earmarks promise (G18)."""
    if not any(node.promised.values()):
        return False
    room = dict(node.available)
    for amount in on_its_way(node):
        charge(room, amount)
    if any(0 < quantity > room.get(kind, 0) for kind, quantity in node.promised.items()):
        return True
    earmarks = (kept for kept in node.reservations.values() if kept.earmark is not None)
    # Amounts may suffice where devices do not: half a device here and half there make none.
    return not suffice(node, (amount for kept in earmarks for amount in promised_devices(kept)))


def staying(queue: Queue) -> Resource:
    """Return what a queue will use when all that was asked back is gone."""
    used = dict(queue.allocated)
    discharge(used, queue.leaving)
    return used


def expected(queue: Queue) -> Resource:
    """Return what it will use when those are placed, too, for whom others have to go."""
    used = staying(queue)
    charge(used, queue.earmarked)
    return used


# -- the room that victims made


def room_for(
    node: Node, asking: AskSpec, free: Resource, served: Iterable[ReservationKey] = ()
) -> Resource:
    """Return what an ask may use of the free room of a node.

    Room that is secured for other asks is left out: victims went for them, so it stays theirs
    until they are placed or give it up. Planner, commit and checker ask this. `served`: asks
    that are about to use their room, so that it is not free any more. An ask that requires the
    node comes before reservations of those that do not.
    """
    reservations = node.reservations
    # Nothing is secured on nearly every node: then all that is free is for all.
    if not reservations or not any(node.secured.values()):
        return free
    # Either all reservations of a node require it, or none does (G18).
    if asking.required_node and not next(iter(reservations.values())).required:
        return free
    room = dict(free)
    discharge(room, node.secured)
    # Its own is not kept from it.
    own = (asking.application_id, asking.key)
    if own in reservations:
        charge(room, reservations[own].secured)
    for holder in served:
        if holder != own and (kept := reservations.get(holder)) is not None:
            # All that are placed there in one plan are asked about each other.
            for kind, quantity in kept.secured.items():
                room[kind] = room.get(kind, 0) + quantity
    return room


def reserve(node: Node, kept: Reservation) -> None:
    """Write a reservation down on its node, in place of what the ask had there."""
    holder = (kept.application_id, kept.key)
    former = node.reservations.get(holder)
    # In place of the former: the sum of what is secured on the node follows.
    if former is not None:
        discharge(node.secured, former.secured)
    node.reservations[holder] = kept
    charge(node.secured, kept.secured)


def unreserve(node: Node, holder: ReservationKey) -> None:
    discharge(node.secured, node.reservations.pop(holder).secured)


def secure_free_room(
    node: Node, holder: ReservationKey, wanted: Resource, victims: Resource
) -> None:
    """Secure what the ask needs beside its victims, of the room that is free and not secured."""
    needed = dict(wanted)
    # Only what its victims do not bring: that room has to be there now.
    discharge(needed, node.reservations[holder].secured)
    discharge(needed, victims)
    _secure(node, holder, needed, wanted)


def secure_freed_room(
    node: Node, holder: ReservationKey, freed: Resource, wanted: Resource
) -> None:
    """A victim has gone, or has become smaller: what is needed of its room is for the ask.

    Where more is used than the node has, its room is not free and serves nobody.
    """
    if holder in node.reservations:
        _secure(node, holder, freed, wanted)


def _secure(node: Node, holder: ReservationKey, more: Resource, wanted: Resource) -> None:
    available, taken = node.available, node.secured
    kept = node.reservations[holder]
    had, secured = kept.secured, {}
    for kind, most in wanted.items():
        # Never more than is free, than the ask needs, or than was freed.
        free = available.get(kind, 0) - taken.get(kind, 0)
        added = max(0, min(more.get(kind, 0), free))
        quantity = min(most, had.get(kind, 0) + added)
        if quantity > 0:
            secured[kind] = quantity
    if secured != had:
        reserve(node, replace(kept, secured=secured))


def _at_most(wanted: Resource, room: Resource) -> Resource:
    parts = ((kind, min(quantity, room.get(kind, 0))) for kind, quantity in wanted.items())
    return {kind: quantity for kind, quantity in parts if quantity > 0}


def resize_reservation(app: Application, node: Node, key: str, size: Resource) -> None:
    """Resize the reservation of an ask that was sent again to what it needs now."""
    kept = node.reservations[app.id, key]
    resized = replace(
        kept,
        earmark=None if kept.earmark is None else size,
        # Smaller: what it needs no more is free for others. Larger: nothing more is secured.
        secured=_at_most({kind: n * kept.repeats for kind, n in size.items()}, kept.secured),
        due=_at_most(size, kept.due),
    )
    reserve(node, resized)
    give_up_earmark(app, node, kept.promised)
    book_earmark(app, node, resized.promised)


def note_due(node: Node, holder: ReservationKey, size: Resource) -> None:
    """Victims are to make room of this size for an ask that requires the node."""
    reserve(node, replace(node.reservations[holder], due=size))


def without_one(kept: Reservation, size: Resource) -> Reservation:
    """Return a reservation of one repeat less, without the room that was secured for it."""
    left = {kind: quantity - size.get(kind, 0) for kind, quantity in kept.secured.items()}
    secured = {kind: quantity for kind, quantity in left.items() if quantity > 0}
    return replace(kept, repeats=kept.repeats - 1, secured=secured)


def going_for(node: Node, holder: ReservationKey) -> Resource:
    """Add up what is still on its way out on a node for the earmarks of an ask."""
    application_id, key = holder
    rule = PreemptionRule.GUARANTEE
    going: Resource = {}
    for allocation in node.allocations.values():
        whom = allocation.beneficiary
        # Only victims for the guarantee: those for a required node are counted by their
        # reservation.
        if whom is None or whom.rule is not rule:
            continue
        if whom.key == key and whom.application_id == application_id:
            charge(going, allocation.resource)
    return going


def is_overdrawn(node: Node) -> bool:
    """Whether less is free than is secured for asks that require the node.

    Then it was taken by force.
    """
    secured: Resource = {}
    for kept in node.reservations.values():
        if kept.required:
            charge(secured, kept.secured)
    return any(0 < quantity > node.available.get(kind, 0) for kind, quantity in secured.items())


def is_short_of_victims(state: PartitionState, node: Node) -> bool:
    """Whether free and coming room is too little for the asks for which victims went.

    Only asks that require the node: for others their earmarks tell. The cause is that the node
    became smaller, or was taken by force.
    """
    wanted: Resource = {}
    devices: list[int] = []
    for holder in claimants(node):
        app = state.applications[holder[0]]
        # The size for which victims went, where it is known: a larger ask has no claim to more.
        size = node.reservations[holder].due or app.asks[holder[1]].spec.resource
        charge(wanted, size)
        devices.append(amount_of(size))
    if not wanted:
        return False
    if not suffice(node, filter(None, devices)):
        return True
    room = dict(node.available)
    for amount in on_its_way(node):
        charge(room, amount)
    return any(0 < quantity > room.get(kind, 0) for kind, quantity in wanted.items())


def claimants(node: Node) -> list[ReservationKey]:
    """Return the asks that require the node and for which victims have gone, or are to go."""
    return [
        holder
        for holder, kept in node.reservations.items()
        if kept.required and (kept.secured or has_victims_going(node, kept))
    ]


def has_victims_going(node: Node, kept: Reservation) -> bool:
    """Whether room is on its way to the ask for which this node, which it requires, is kept."""
    going = victims_going(node, (kept.application_id, kept.key))
    return any(uuid not in kept.former for uuid in going)


def victims_going(node: Node, holder: ReservationKey) -> tuple[str, ...]:
    """Return all victims on their way out for an ask that requires the node, earlier ones too."""
    rule = PreemptionRule.REQUIRED_NODE
    return tuple(
        uuid
        for uuid, item in node.allocations.items()
        if (whom := item.beneficiary) is not None
        and whom.rule is rule
        and (whom.application_id, whom.key) == holder
    )
