"""Device fit: which devices of a node an ask may have; planner, commit and checkers ask this.

A reservation names no devices. What victims went for is kept all the same: the asks to which room
here was promised are fitted in first, and another ask gets what they leave.
"""

from collections.abc import Container, Iterable, Iterator

from yunikorn_actors.state.allocations import Allocation, AskSpec, Reservation, ReservationKey
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.devices import (
    Devices,
    Parts,
    amount_of,
    could_be,
    give_back,
    hold,
    number_of,
    pick,
    take,
)
from yunikorn_actors.values.resource import Resource, fits_in


def devices_on(node: Node, spec: AskSpec, free: Parts | None) -> Devices | None:
    """Choose devices for an ask from the free ones; None if there are too few for it to run."""
    amount = amount_of(spec.resource)
    if amount <= 0:
        return ()
    if not spec.takes_model(node.model):
        return None
    return () if free is None else pick(free, amount)


def are_free(node: Node, spec: AskSpec, devices: Devices) -> bool:
    """Whether an ask may have just these devices of a node now."""
    amount = amount_of(spec.resource)
    # A node that does not report devices one by one has an amount only: then no devices may be
    # named.
    if amount <= 0 or node.parts is None:
        return not devices and (amount <= 0 or spec.takes_model(node.model))
    free = parts_for(node, spec, node.parts)
    return spec.takes_model(node.model) and hold(free, devices, amount)


def could_hold(node: Node, spec: AskSpec) -> bool:
    """Whether the node, were it empty, has room for an ask."""
    return fits_in(spec.resource, node.capacity) and has_devices(node, spec)


def has_devices(node: Node, spec: AskSpec) -> bool:
    """Whether the devices of the node are such as an ask wants, free or not."""
    amount = amount_of(spec.resource)
    return amount <= 0 or (spec.takes_model(node.model) and are_so_many(node, amount))


def are_so_many(node: Node, amount: int) -> bool:
    """Whether the node has as many devices as the amount takes, free or not."""
    return node.parts is None or 0 < number_of(amount) <= len(node.parts)


def parts_for(
    node: Node, asking: AskSpec, free: Parts, served: Container[ReservationKey] = ()
) -> Parts:
    """Return what an ask may use of the free parts of devices, as `room_for` does of the rest.

    All but those of other asks that victims went for. `served` are asks that are about to use
    theirs, which are not free any more.
    """
    reservations = node.reservations
    if not reservations:
        return free
    # Either all reservations of a node require it, or none does (G18).
    if asking.required_node and not next(iter(reservations.values())).required:
        return free
    own = (asking.application_id, asking.key)
    others = [kept for at, kept in reservations.items() if at != own and at not in served]
    promised = [amount for kept in others for amount in promised_devices(kept)]
    # Promised first, in the order of the reservations: what they leave is free for others.
    if not promised:
        return free
    left, coming = list(free), coming_parts(node, free)
    for amount in promised:
        devices = pick(coming, amount)
        if devices is not None:
            take(left, devices, amount)
            take(coming, devices, amount)
    return left


# Also of swaps to other nodes: their devices here are needed no more.
def coming_parts(node: Node, free: Parts) -> list[int]:
    """Return what is free when all that was asked back is gone."""
    coming = list(free)
    for item in node.allocations.values():
        if item.devices and item.frees_node:
            give_back(coming, item.devices, amount_of(item.resource))
    return coming


def promised_devices(kept: Reservation) -> Iterator[int]:
    """Yield how much of devices each repeat was promised."""
    amount = amount_of(kept.earmark or kept.due)
    if amount > 0:
        for _ in range(kept.repeats):
            yield amount


def less_promised(parts: list[int], amounts: Iterable[int]) -> bool:
    """Take what was promised out of these parts; whether all of it was there."""
    complete = True
    for amount in amounts:
        devices = pick(parts, amount)
        if devices is None:
            complete = False
        else:
            take(parts, devices, amount)
    return complete


def suffice(node: Node, amounts: Iterable[int]) -> bool:
    """Whether the devices that are free, or on their way, hold what was promised of them."""
    return node.parts is None or less_promised(coming_parts(node, node.parts), amounts)


def taken_over(resource: Resource, placeholder: Allocation) -> Devices:
    """Return the devices that a member gets of its placeholder, which has at least as many."""
    # The first ones: the member needs no more than its placeholder has.
    return placeholder.devices[: number_of(amount_of(resource))]


def after_resize(node: Node, allocation: Allocation, resource: Resource, named: Devices) -> Devices:
    """Return the devices of an allocation that runs with another size now.

    Without a word about them it keeps its own, if they are enough. If not, nothing is known of its
    devices any more: it runs, and only its resource manager knows where.
    """
    devices, amount = allocation.devices, amount_of(resource)
    # The tag of the report says where the program runs, whatever was chosen.
    if could_be(named, amount) and _are_there(node, named):
        return named
    number = number_of(amount)
    return devices[:number] if number <= len(devices) else ()


def reported_devices(node: Node, resource: Resource, named: Devices) -> Devices:
    """Return the devices of running work: the named ones if they exist, else free ones."""
    amount = amount_of(resource)
    if node.parts is None or amount <= 0:
        return ()
    if could_be(named, amount) and _are_there(node, named):
        return named
    # None free: it runs all the same, and its devices are not known.
    return pick(node.parts, amount) or ()


def _are_there(node: Node, devices: Devices) -> bool:
    return node.parts is not None and max(devices, default=0) < len(node.parts)
