"""Shapes: asks of one size, so that one answer serves them all."""

from typing import TYPE_CHECKING

from yunikorn_actors.domain.resource import Resource

if TYPE_CHECKING:
    from yunikorn_actors.planning.views import Lane

ShapeKey = tuple[tuple[str, int], ...]


class Shape:
    __slots__ = ("key", "lanes", "total", "waits_for_node", "wanted")

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.wanted: ShapeKey = tuple((kind, quantity) for kind, quantity in key if quantity > 0)
        """The positive amounts: asking for nothing of a type always fits."""
        self.total = 0
        for _, quantity in key:
            self.total += quantity
        self.lanes: dict[Lane, None] = {}
        self.waits_for_node = False
        """No node has room for it; the first that gains enough says so."""


def shape_key(resource: Resource) -> ShapeKey:
    return tuple(sorted(resource.items()))
