"""Gates: what can refuse an ask or hold an application back (queues, limits of users and groups).

The rules of room and of places stand here once, as functions of what a gate allows and what is
used. Context asks them about the truth, the planner about the replica and what is in flight, and
`why` explains their answers.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from yunikorn_actors.values.resource import Resource, saturated

NO_BOUND = 2**31
"""As many more applications as anybody could submit."""
Wanted = Iterable[tuple[str, int]]
"""Amounts of an ask; to want nothing of a type, or less, always fits."""


class GateKind(StrEnum):
    """The kind of a gate that has no room, or no place for another application."""

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
        # The cluster has none of a type that no node reports; a gate that does not name a type does
        # not bound it.
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


class Places(NamedTuple):
    """Which applications have the places of a gate; serials stand for applications."""

    most: int
    """How many may run; 0 is any number."""
    taken: int
    """How many run, or hold something: `having` is part of it."""
    having: dict[int, None]
    reserving: dict[int, None]
    """Those that hold nothing and have a node kept for them, the first to have one first."""

    def may_start(self, serial: int, starting: Iterable[int] = ()) -> bool:
        """Whether this one may run, others being on their way.

        Of those with a reservation, who came first has what is left: a reload or a recovery may
        leave too little for all of them.
        """
        # It has a place already: nothing is asked of the others.
        if serial in self.having:
            return True
        if serial in self.reserving and list(self.reserving).index(serial) < self._left():
            return True
        return self.free(other for other in starting if other != serial) > 0

    def free(self, starting: Iterable[int] = ()) -> int:
        """How many more may run; who is on the way takes a place, if it has none yet."""
        coming = sum(s not in self.having and s not in self.reserving for s in starting)
        return self._left() - len(self.reserving) - coming

    def _left(self) -> int:
        return self.most - self.taken if self.most else NO_BOUND
