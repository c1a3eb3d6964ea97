"""Which node would have the least left over if it were reserved for an ask of some shape.

One list of all nodes, ranked for one shape, serves many questions: nodes that changed since are
graded anew each time, and when they have become many the list is made again.
"""

from math import isqrt

from yunikorn_actors.planning.model.nodes import Entry, NodeIndex, NodeView
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.values.resource import fit_in_score, fits_in

Rank = tuple[float, Entry]


class BestNodes:
    def __init__(self, nodes: NodeIndex) -> None:
        self._nodes = nodes
        self._shape: Shape | None = None
        self._ranked: list[Rank] = []
        """The best is the last; nodes that changed since, or are gone, do not count."""

    def find(self, shape: Shape) -> NodeView | None:
        """Return the open node with the least left over; the first in order among equals."""
        self._nodes.tidy()
        changed, ranked = self._nodes.changed, self._ranked
        # Each changed node is graded at each question. When about as many have changed as it costs
        # to sort all, the list is made anew.
        if shape is not self._shape or len(changed) > 3 * isqrt(len(self._nodes.views)):
            self._rank_all(shape)
            changed, ranked = self._nodes.changed, self._ranked
        while ranked:
            view = ranked[-1][1][2]
            is_graded = self._nodes.knows(view) and view not in changed
            if is_graded and not shape.is_refused(view.id, Use.KEEPING):
                break
            ranked.pop()
        ranks = [rank for view in changed if (rank := _rank(shape, view)) is not None]
        best = min([*ranks, *ranked[-1:]], default=None)
        return None if best is None else best[1][2]

    def _rank_all(self, shape: Shape) -> None:
        self._shape = shape
        ranks = [_rank(shape, view) for view in self._nodes.in_order()]
        self._ranked = sorted((rank for rank in ranks if rank is not None), reverse=True)
        self._nodes.changed.clear()


def _rank(shape: Shape, view: NodeView) -> Rank | None:
    wanted = dict(shape.wanted)
    if view.entry is None or shape.is_refused(view.id, Use.KEEPING):
        return None
    if not fits_in(wanted, view.node.capacity):
        return None
    if not shape.could_have_devices_of(view.node):
        return None
    return (fit_in_score(view.free, wanted), view.entry)
