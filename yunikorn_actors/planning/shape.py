"""Shapes: asks of one size, so that one answer serves them all.

An ask that can run on one node alone is a shape of its own: what it waits for is that node.
"""

from typing import TYPE_CHECKING

from yunikorn_actors.domain.allocation import AskSpec

if TYPE_CHECKING:
    from yunikorn_actors.planning.views import Lane

Wanted = tuple[tuple[str, int], ...]
ShapeKey = tuple[Wanted, str, str, str]
"""Amounts, and for an ask with a required node that node, its application and its key."""


class Shape:
    __slots__ = ("key", "lanes", "required_node", "total", "waits_for_node", "wanted")

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        amounts, self.required_node, _, _ = key
        self.wanted: Wanted = tuple((kind, quantity) for kind, quantity in amounts if quantity > 0)
        """The positive amounts: asking for nothing of a type always fits."""
        self.total = 0
        for _, quantity in amounts:
            self.total += quantity
        self.lanes: dict[Lane, None] = {}
        self.waits_for_node = False
        """No node has room for it; the first that gains enough says so."""


def shape_key(spec: AskSpec) -> ShapeKey:
    amounts = tuple(sorted(spec.resource.items()))
    if spec.required_node:
        return (amounts, spec.required_node, spec.application_id, spec.key)
    return (amounts, "", "", "")
