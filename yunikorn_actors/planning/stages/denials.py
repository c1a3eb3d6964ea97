"""Denials: nodes that a resource manager has refused to certain asks.

An ask with a denial is a shape of its own, because asks of the same size may still use the node.
Denials last until the resource manager makes its next request. Without one they are lifted after a
while, at growing distances: a predicate may depend on things that the core does not know.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import NEVER, Denial, Shape, Use, own_key
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.state.proposals import AskRef, Placing, Preempt, Proposal
from yunikorn_actors.values.durations import MINUTE, NEVER_NS, SECOND

FIRST_DELAY_NS = 15 * SECOND
LONGEST_DELAY_NS = 5 * MINUTE
DOUBLINGS_MAX = 5


class Denied(NamedTuple):
    """The resource manager refuses a node to an ask of this sequence."""

    application_id: str
    key: str
    sequence: int
    node_id: str
    reason: str
    use: Use

    @classmethod
    def of(cls, proposal: Placing | Preempt, reason: str, use: Use) -> Self:
        whom = proposal.beneficiary if isinstance(proposal, Preempt) else proposal
        place = proposal.sequence, proposal.node_id
        return cls(whom.application_id, whom.key, *place, reason, use)


class Denials:
    def __init__(self, model: Model, *, is_shared: bool = False) -> None:
        """Several planners share what they were refused."""
        self._model = model
        self._is_shared = is_shared
        self.lifted: dict[AskRef, None] = {}
        """What the resource manager allows again, and the other planners have not learned yet."""
        self.by_ask: dict[AskView, Denial] = {}
        """Made since the last request; a lifted one still counts how often that was."""
        self.due_ns = NEVER_NS
        """When the first of them is to be lifted."""

    def add(self, ask: AskView, denied: Denied, now_ns: int, *, elsewhere: bool = False) -> None:
        """A node of many may take long to be refused: the last of them starts the rest."""
        denial = ask.shape.denial
        if denial is None:
            # Lifted before, so it was refused anew: the next distance is longer.
            former = self.by_ask.get(ask)
            denial = Denial(0 if former is None else former.rounds + 1)
            self.by_ask[ask] = denial
            self._model.reshape(ask, Shape(own_key(ask.ask.spec), denial))
        place = denied.use, denied.node_id
        if not elsewhere:
            denial.elsewhere.discard(place)
        elif denied.node_id not in denial.refused[denied.use]:
            # Not refused to this planner itself: another one's no, which that one may take back.
            denial.elsewhere.add(place)
        denial.refused[denied.use][denied.node_id] = denied.reason
        doublings = min(denial.rounds, DOUBLINGS_MAX)
        denial.due_ns = now_ns + min(FIRST_DELAY_NS << doublings, LONGEST_DELAY_NS)
        self.due_ns = min(self.due_ns, denial.due_ns)

    def lift_all(self) -> None:
        """The resource manager has spoken: everything may be asked again, and counts anew."""
        # Only what this planner was refused itself goes to the others; they learn the rest alike.
        if self._is_shared:
            for ask in self.by_ask:
                key, id_ = ask.ask.spec.key, ask.ask.spec.application_id
                ref = AskRef(application_id=id_, key=key, sequence=ask.ask.sequence)
                self.lifted[ref] = None
        self.forget_all()

    def forget_all(self) -> None:
        self._lift_and_forget(list(self.by_ask))
        self.due_ns = NEVER_NS

    def lift(self, refs: Iterable[AskRef]) -> None:
        """Lift denials: another planner has learned that these asks may be tried again.

        Refusals of this planner itself may be younger, so they stay: it learns of their end by
        itself, and then tells the other planners.
        """
        asks: list[AskView] = []
        for ref in refs:
            ask = self._model.ask_of(ref.application_id, ref.key)
            # The very ask: one of the same key may have come since.
            if ask is not None and ask in self.by_ask and ask.ask.sequence == ref.sequence:
                denial = self.by_ask[ask]
                # Nothing that this planner was refused itself is left in it: it is lifted as a
                # whole.
                if not denial.allow_elsewhere():
                    asks.append(ask)
                elif ask.shape.denial is denial and ask.open:
                    self._model.reshape(ask, Shape(own_key(ask.ask.spec), denial))
        self._lift_and_forget(asks)

    def _lift_and_forget(self, asks: list[AskView]) -> None:
        for ask in asks:
            self._lift(ask)
            del self.by_ask[ask]
        # Members of gangs and asks that wait for a reservation look at nodes by themselves, not as
        # lanes: the lifted shapes alone would not wake them.
        self._model.requeue.ask_may_reserve()
        self._model.requeue.nodes_allowed()

    def plan(self, now_ns: int, _room: int) -> list[Proposal]:
        """Lift what has rested for long enough."""
        self.lift_due(now_ns)
        return []

    def lift_due(self, now_ns: int) -> None:
        if now_ns < self.due_ns:
            return
        self.due_ns = NEVER_NS
        self._model.requeue.nodes_allowed()
        for ask, denial in self.by_ask.items():
            # Not forgotten, only lifted: the next refusal doubles the distance.
            if denial.due_ns <= now_ns:
                denial.due_ns = NEVER_NS
                self._lift(ask)
            self.due_ns = min(self.due_ns, denial.due_ns)

    def _lift(self, ask: AskView) -> None:
        """An ask with all repeats in flight keeps its own shape: it will hardly come back."""
        ask.shape.denial = None
        # The node is open again, so the search for it is not hopeless any more.
        ask.shape.hopeless_at = NEVER
        if ask.open:
            self._model.reshape(ask, self._model.shapes.of(ask.ask.spec))
