"""Node orders: which of the nodes that have room comes first.

An order is one value of the table below; configuration and planner find it there by its name. It
gives a node a score from what is free there, whatever the ask: so each node has one place, which
changes only with its own amounts. The lowest score comes first, and ids decide between equals.
Scores add and multiply in the order of the types' names, so that every replica has the same bits.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from yunikorn_actors.values.resource import Resource


class Scale(Struct, frozen=True, gc=False):
    """Which types count on a node, how much, and against what."""

    terms: tuple[tuple[str, float, int], ...] = ()
    """Of each type its name, its weight, and how much of it the node has."""
    total: float = 0.0
    """All weights together."""
    heaviest: float = 0.0


def scale_of(capacity: Resource, weights: dict[str, float]) -> Scale:
    terms = tuple(
        (kind, weights[kind], capacity[kind])
        for kind in sorted(weights)
        if weights[kind] and kind in capacity
    )
    total = heaviest = 0.0
    for _, weight, _ in terms:
        total += weight
        heaviest = max(heaviest, weight)
    return Scale(terms, total, heaviest)


class NodeOrder(Struct, frozen=True, eq=False):
    name: str
    score: Callable[[Scale, Resource], float]
    full_first: bool = False
    """Full nodes stand at the front: it pays to remember where an equal ask found room."""


def _used_share(scale: Scale, free: Resource) -> float:
    """Weighted mean of the used shares: everything that is not free counts as used."""
    if not scale.terms:
        return 0.0
    used = 0.0
    for kind, weight, size in scale.terms:
        used += weight * (1.0 - free.get(kind, 0) / size)
    return used / scale.total


def _free_share(scale: Scale, free: Resource) -> float:
    return 1.0 - _used_share(scale, free)


def _usable_share(scale: Scale, free: Resource) -> float:
    """Product of the free shares: room of one type is worth what the others leave of it.

    A mean takes a node with 10 % and 90 % free for as empty as one with 50 % and 50 %, though it
    holds hardly anything. By the product (9 % and 25 %) it comes first: the asks that fit into such
    a rest take it, and what is free of all types stays together for large ones. A type of less
    weight counts less as its use grows.
    """
    usable = 1.0
    for kind, weight, size in scale.terms:
        left = 1.0 - weight / scale.heaviest * (1.0 - free.get(kind, 0) / size)
        if left <= 0.0:
            return 0.0
        usable *= left
    return usable


FAIR: Final = NodeOrder("fair", _used_share)
BINPACKING: Final = NodeOrder("binpacking", _free_share, full_first=True)
LEAST_FRAGMENTATION: Final = NodeOrder("least-fragmentation", _usable_share, full_first=True)

NODE_ORDERS: Final = {order.name: order for order in (FAIR, BINPACKING, LEAST_FRAGMENTATION)}
"""All of them, by the names that configuration and the tag of an application use."""
