"""Devices of a node, one by one: how much of each is free, and which of them an ask gets.

A resource type says how much of all devices together is free. Half a device left on each of two
makes one of them by that sum, and holds no ask for a whole one; so what is free is kept for each
device by its number. Amounts are thousandths of a device. An ask for less than one takes a share of
one device; a multiple of a thousand takes so many whole ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import GPU, GPU_DEVICES

WHOLE: Final = 1000
"""The thousandths of one device."""
DEVICES_MAX: Final = 1024
"""More than this no node has: the number is a slip, and would cost memory."""

_DIGITS: Final = len(str(DEVICES_MAX))

Devices = tuple[int, ...]
"""The numbers of the devices that an allocation has; empty where its node does not tell them."""
Parts = Sequence[int]
"""What is free of each device of a node, by its number."""


def amount_of(resource: Resource) -> int:
    """Return how much of devices is asked for."""
    return resource.get(GPU, 0)


def number_of(amount: int) -> int:
    """Return on how many devices so much is; 0 if no devices can be shared so."""
    if amount < WHOLE:
        return int(amount > 0)
    return 0 if amount % WHOLE else amount // WHOLE


def pick(free: Parts, amount: int) -> Devices | None:
    """Choose the devices for so much; None if these do not hold it.

    A share goes to the fullest device that has room for it, so that whole ones stay whole; whole
    devices are the first that are idle. Of equal ones the lowest number is taken.
    """
    number = number_of(amount)
    if amount < WHOLE:
        fitting = [(part, device) for device, part in enumerate(free) if part >= amount > 0]
        return (min(fitting)[1],) if fitting else None
    idle = [device for device, part in enumerate(free) if part >= WHOLE][:number]
    return tuple(idle) if number and len(idle) == number else None


def hold(free: Parts, devices: Devices, amount: int) -> bool:
    """Whether these devices, each named once, have so much free."""
    number = number_of(amount)
    if not number or len(devices) != number or len(set(devices)) != number:
        return False
    each = amount // number
    return all(0 <= device < len(free) and free[device] >= each for device in devices)


def take(free: list[int], devices: Devices, amount: int) -> None:
    """Take so much from these devices together; a device that is gone has nothing to take."""
    if devices:
        each = amount // len(devices)
        for device in devices:
            if device < len(free):
                free[device] -= each


def give_back(free: list[int], devices: Devices, amount: int) -> None:
    take(free, devices, -amount)


def is_of_model(model: str, wanted: str) -> bool:
    """Whether a node with this model will do for an ask that names models, if it names any."""
    return not wanted or model in wanted.split("|")


def read_count(attributes: dict[str, str]) -> int | None:
    """Return how many devices a node has; None if it does not say. Raises ValueError."""
    text = attributes.get(GPU_DEVICES)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS:
        raise ValueError(f"{GPU_DEVICES}: {text!r:.40} is no number of devices")
    if int(text) > DEVICES_MAX:
        raise ValueError(f"{GPU_DEVICES}: {text} devices are more than {DEVICES_MAX}")
    return int(text)


def written(devices: Iterable[int]) -> str:
    """Write devices as the tag of an allocation has them."""
    return ",".join(map(str, devices))


def with_devices(tags: Mapping[str, str], devices: Devices) -> dict[str, str]:
    """Return the tags of an allocation as others are shown them.

    A report may have named devices that its node does not tell apart, or does not have: what is
    shown is what is known.
    """
    shown = dict(tags)
    if devices:
        shown[GPU_DEVICES] = written(devices)
    else:
        shown.pop(GPU_DEVICES, None)
    return shown


def devices_in(tags: Mapping[str, str]) -> Devices:
    """Read the devices of an allocation from its tags; empty if they name none."""
    text = tags.get(GPU_DEVICES)
    words = () if text is None else text.split(",")
    if not all(word.isascii() and word.isdecimal() and len(word) <= _DIGITS for word in words):
        return ()
    return tuple(int(word) for word in words)


def could_be(devices: Devices, amount: int) -> bool:
    """Whether work of this size can have these devices: so many, and none twice."""
    return len(devices) == number_of(amount) == len(set(devices))


def flaw_of_devices(attributes: dict[str, str], capacity: Resource) -> str:
    """Say why a node cannot have the devices that it reports; empty if it can, or reports none."""
    try:
        count = read_count(attributes)
    except ValueError as error:
        return str(error)
    if count is None or amount_of(capacity) == count * WHOLE:
        return ""
    return (
        f"{count} devices are {GPU} {count * WHOLE}, and its capacity has {amount_of(capacity)}: "
        f"report {WHOLE} for each device"
    )
