"""Rooms that tell devices apart: a search for victims counts each device as a type of its own.

So it needs no rules for devices: what is short, what a victim frees and what is promised are
amounts, and the devices of a node are among them. Which devices are to become free is tried out.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final

from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.values.devices import Parts, amount_of, number_of, pick, take
from yunikorn_actors.values.resource import Resource, fits_in

TARGETS_MAX: Final = 64
"""Choices of devices that are tried on one node, at most."""
_PREFIX: Final = "gpu#"
_NUMBER: Final = "gpus#"
"""How many devices a room tells apart, whatever comes free there: work may have devices that its
node does not report any more."""


def with_parts(free: Resource, parts: Parts | None) -> Resource:
    """Return what is free with the devices in it, in their order."""
    # A node that reports no devices one by one has an amount of them only.
    if parts is None:
        return free
    devices = {f"{_PREFIX}{device}": part for device, part in enumerate(parts)}
    return {**free, _NUMBER: len(parts), **devices}


def freed(allocation: Allocation) -> Resource:
    """Return what its node has more when an allocation is gone."""
    devices, resource = allocation.devices, allocation.resource
    if not devices:
        return resource
    # Each device of an allocation gives back an equal part.
    each = amount_of(resource) // len(devices)
    return {**resource, **{f"{_PREFIX}{device}": each for device in devices}}


def fits(wanted: Resource, room: Resource) -> bool:
    if not fits_in(wanted, room):
        return False
    amount = amount_of(wanted)
    # By amounts it fits: now whether the devices do.
    return amount <= 0 or not (parts := _parts_in(room)) or pick(parts, amount) is not None


def fitting(wanted: Resource, room: Resource, most: int) -> int:
    """Count the asks of one size, up to `most`, for which a room has devices."""
    parts, amount, count = _parts_in(room), amount_of(wanted), 0
    while parts and count < most and (devices := pick(parts, amount)) is not None:
        take(parts, devices, amount)
        count += 1
    return count if parts else most


def keep(room: Resource, amount: int) -> None:
    """Take devices for this amount out of a room, if it has them."""
    if amount > 0:
        for device in pick(_parts_in(room), amount) or ():
            room[f"{_PREFIX}{device}"] -= amount // number_of(amount)


def targets(
    room: Resource, wanted: Resource, candidates: Callable[[], Sequence[Allocation]]
) -> Iterator[Resource]:
    """Yield what a node is to have free of its devices, for each choice worth a try.

    Nothing of them if the devices do already, or are all alike. Devices that lack least
    come first; what nobody could free is not tried.
    """
    amount = amount_of(wanted)
    # One choice, nothing to try: the devices do, or do not matter.
    if amount <= 0 or not (parts := _parts_in(room)) or pick(parts, amount) is not None:
        yield {}
        return
    number = number_of(amount)
    if not number:
        return
    # A target names devices that are to be free; the search for victims does the rest.
    each = amount // number
    on_offer = dict.fromkeys(range(len(parts)), 0)
    for item in candidates():
        for device in item.devices:
            if device in on_offer:
                on_offer[device] += amount_of(item.resource) // len(item.devices)
    # Of these no set of victims could free enough.
    able = [device for device in on_offer if parts[device] + on_offer[device] >= each]
    able.sort(key=lambda device: (max(0, each - parts[device]), device))
    for devices in islice(combinations(able, number), TARGETS_MAX):
        yield {f"{_PREFIX}{device}": each for device in devices}


def _parts_in(room: Resource) -> list[int]:
    """Return what is free of each device that the node has."""
    number = room.get(_NUMBER, 0)
    return [room[f"{_PREFIX}{device}"] for device in range(number)]
