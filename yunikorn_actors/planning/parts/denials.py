"""Nodes that a resource manager has refused to certain asks.

An ask with a denial is a shape of its own, because asks of the same size may still use the node.
Denials last until the resource manager makes its next request. Without one they are lifted after a
while, at growing distances: a predicate may depend on things that the core is not told.
"""

from yunikorn_actors.planning.model.shape import NEVER, Denial, Shape, Use, own_key
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.parts.reserving import NEVER_NS
from yunikorn_actors.planning.view import View

FIRST_DELAY_NS = 15_000_000_000
LONGEST_DELAY_NS = 300_000_000_000
DOUBLINGS_MAX = 5


class Denials:
    def __init__(self, view: View) -> None:
        self._view = view
        self._of: dict[AskView, Denial] = {}
        """Made since the last request; a lifted one still counts how often that was."""
        self.due_ns = NEVER_NS
        """When the first of them is to be lifted."""

    def add(self, ask: AskView, node_id: str, reason: str, now_ns: int, use: Use) -> None:
        """A node of many may take long to be refused: the last of them starts the rest."""
        denial = ask.shape.denial
        if denial is None:
            former = self._of.get(ask)
            denial = Denial(0 if former is None else former.rounds + 1)
            self._of[ask] = denial
            self._view.reshape(ask, Shape(own_key(ask.ask.spec), denial))
        denial.refused[use][node_id] = reason
        doublings = min(denial.rounds, DOUBLINGS_MAX)
        denial.due_ns = now_ns + min(FIRST_DELAY_NS << doublings, LONGEST_DELAY_NS)
        self.due_ns = min(self.due_ns, denial.due_ns)

    def lift_all(self) -> None:
        """The resource manager has spoken: everything may be asked again, and counts anew."""
        for ask in self._of:
            self._lift(ask)
        self._of.clear()
        self.due_ns = NEVER_NS
        self._view.reserving_is_stale = True
        self._view.gangs.wake()

    def lift_due(self, now_ns: int) -> None:
        """Ask again what has rested for long enough."""
        self.due_ns = NEVER_NS
        self._view.gangs.wake()
        for ask, denial in self._of.items():
            if denial.due_ns <= now_ns:
                denial.due_ns = NEVER_NS
                self._lift(ask)
            self.due_ns = min(self.due_ns, denial.due_ns)

    def _lift(self, ask: AskView) -> None:
        """An ask with all repeats in flight keeps its own shape: it will hardly come back."""
        ask.shape.denial = None
        ask.shape.hopeless_at = NEVER
        if ask.open:
            self._view.reshape(ask, self._view.tree.shape_of(ask.ask.spec))
