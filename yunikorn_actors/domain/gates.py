"""What can refuse an ask or hold an application back: queues, and limits of users and groups.

The rules of room are said here once, as functions of what a gate allows and what is used. Context
asks them about the truth, the planner about the replica and what is in flight, and `why` tells
people what they say.
"""

from collections.abc import Iterable
from enum import StrEnum

from yunikorn_actors.domain.resource import Resource, saturated

Wanted = Iterable[tuple[str, int]]
"""Amounts of an ask; to want nothing of a type, or less, always fits."""


class GateKind(StrEnum):
    """Which kind of gate it is that has no room, or as many applications running as it may."""

    NONE = ""
    QUEUE = "queue"
    QUOTA = "limit of a user or group"


def has_room(
    sizes: Resource | None, used: Resource, wanted: Wanted, is_cluster: bool = False
) -> bool:
    """A gate bounds the types that it names; the cluster has nothing of those that no node has.

    What `shortfall` says, without saying of what: this is asked of each gate for each allocation.
    """
    if sizes is None:
        return True
    for kind, quantity in wanted:
        size = sizes.get(kind)
        if size is None:
            if is_cluster and quantity > 0:
                return False
        elif 0 < quantity > size - used.get(kind, 0):
            return False
    return True


def shortfall(
    sizes: Resource | None, used: Resource, wanted: Wanted, is_cluster: bool = False
) -> Resource:
    """Say how much more room it would take, of each type."""
    missing: Resource = {}
    if sizes is None:
        return missing
    for kind, quantity in wanted:
        size = sizes.get(kind, 0 if is_cluster else None)
        if size is not None and 0 < quantity > size - used.get(kind, 0):
            missing[kind] = quantity - (size - used.get(kind, 0))
    return saturated(missing)


def room_left(sizes: Resource | None, used: Resource) -> Resource:
    """Return what is left of each type that is named; below 0 where more was forced in."""
    return {kind: size - used.get(kind, 0) for kind, size in (sizes or {}).items()}
