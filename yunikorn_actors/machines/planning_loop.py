"""The planning loop: when a cycle runs, how much may be in flight, and when to come back.

A Scheduler runs it on its replica, and in the fused topology Context runs it on the truth itself.
They differ in one thing alone, which is given as `commit`: a Scheduler sends its decisions to
Context, where others may have been faster; Context resolves them on the spot.

Whoever runs it resolves what it committed with facts or `Planner.reject`, and calls `next_cycle`
after anything that may let something else be decided. A cycle that runs for nothing does no harm;
one that is missing lets asks wait for ever.
"""

from collections.abc import Callable, Iterator
from typing import Any

from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Proposal, Refusal
from yunikorn_actors.machines.explaining import explanation
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, Send, SetTimer
from yunikorn_actors.machines.predicate_gate import PredicateGate
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.parts.denials import Denied
from yunikorn_actors.planning.parts.part import NEVER_NS
from yunikorn_actors.planning.planner import Planner

Commit = Callable[[list[Proposal], int], list[Effect]]
"""Resolve these decisions now, or send them to be resolved; also tell what the planner found."""
Refuses = Callable[[PartitionState, Proposal, int], Refusal | None]
"""Says why Context would refuse a proposal in this state and at this time, if it would."""


class PlanningLoop:
    def __init__(
        self,
        state: PartitionState,
        commit: Commit,
        *,
        life: Life,
        address: str,
        settings: Settings,
    ) -> None:
        """Cycles and answers come to `address`."""
        self.planner = Planner(
            state,
            life.number,
            place=life.place,
            planners=life.planners,
            asks_first=life.capabilities.has_predicates
            or life.capabilities.has_preemption_predicates,
            reports=life.capabilities.hears_states and life.speaks,
            reservation_delay_ns=settings.reservation_delay_ns,
            preemption_delay_ns=settings.preemption_delay_ns,
        )
        self.predicate_gate: PredicateGate | None = None
        if life.capabilities.has_predicates or life.capabilities.has_preemption_predicates:
            self.predicate_gate = PredicateGate(self.planner, life, address)
        self._commit = commit
        self._address = address
        self._partition = life.partition
        self._number = life.number
        self.epoch = life.epoch
        self._settings = settings
        self.cycle_is_coming = False
        """Something may be decided that has not been tried yet."""
        self._due_ns = NEVER_NS
        """When the timer fires that is armed."""

    def canonical_predicate_gate(self) -> dict[str, Any] | None:
        return None if self.predicate_gate is None else self.predicate_gate.canonical_state()

    # -- what makes it plan

    def run_cycle(self, now_ns: int) -> list[Effect]:
        """Decide as much as may be in flight; some of it waits for the resource manager's word."""
        room = self._settings.inflight_max - self.planner.in_flight_count
        proposals = self.planner.plan(min(self._settings.cycle_max, room), now_ns)
        effects = [*self._tell_lifted(), *self._propose(proposals, now_ns)]
        # Only now: the commit has asked for no cycle, as it is asked for once, at the end.
        self.cycle_is_coming = False
        effects.extend(self._come_back())
        return effects

    def on_checked(self, message: p.Checked, now_ns: int) -> list[Effect]:
        """Go on with the proposal after a yes; a no has told the planner where else to look."""
        assert self.predicate_gate is not None
        proposal = self.predicate_gate.answered(message, now_ns)
        decided = [] if proposal is None else [proposal]
        denied, self.predicate_gate.denied = self.predicate_gate.denied, []
        spread = [Send(to=CONTEXT, message=it) for it in denied]
        return [
            *self._commit(self.planner.send(decided), now_ns),
            *spread,
            *self._come_back(),
        ]

    def on_node_denied(self, message: p.NodeDenied, now_ns: int) -> list[Effect]:
        """Another scheduler has asked: expect no more that it places the ask there."""
        denied = Denied(
            message.application_id, message.key, message.sequence, message.node_id,
            message.reason, Use(message.use),
        )  # fmt: skip
        self.planner.note_denied(denied, now_ns)
        return self._come_back()

    def on_denials_lifted(self) -> list[Effect]:
        self.planner.denials.lift_all()
        self.planner.answered()
        return [*self._tell_lifted(), *self.next_cycle()]

    def on_nodes_allowed(self, message: p.NodesAllowed, now_ns: int) -> list[Effect]:
        self.planner.note_lifted(message.asks, now_ns)
        return self._come_back()

    def _tell_lifted(self) -> list[Effect]:
        lifted = self.planner.denials.lifted
        if not lifted:
            return []
        self.planner.denials.lifted = {}
        allowed = p.NodesAllowed(
            partition=self._partition, epoch=self.epoch, scheduler=self._number, asks=tuple(lifted)
        )
        return [Send(to=CONTEXT, message=allowed)]

    def on_planning_due(self, now_ns: int) -> list[Effect]:
        self.planner.time_came(now_ns)
        return self.next_cycle()

    def void_ones(self, refuses: Refuses, now_ns: int) -> Iterator[int]:
        """Yield what is in flight that Context would refuse on the facts as they are known."""
        state = self.planner.state
        return self.planner.void_ones(lambda it: refuses(state, it, now_ns))

    def _propose(self, proposals: list[Proposal], now_ns: int) -> list[Effect]:
        # The bound counts questions too: their proposals are in flight until the answer comes.
        questions: list[Effect] = []
        if self.predicate_gate is not None:
            proposals, questions = self.predicate_gate.put(proposals)
        return [*self._commit(self.planner.send(proposals), now_ns), *questions]

    def caught_up(self, refuses: Refuses, now_ns: int) -> list[Effect]:
        """Give up what the facts have made void, and what was expected on others than these."""
        planner = self.planner
        void = self.void_ones(refuses, now_ns) if planner.may_hold_void_ones else ()
        for proposal_id in void:
            if self.predicate_gate is not None and self.predicate_gate.withdraw(proposal_id):
                planner.desk.reject(proposal_id)
            else:
                planner.desk.give_up(proposal_id)
        released = planner.caught_up(now_ns)
        return self._propose(released, now_ns) if released else []

    def explain(self, message: ExplainRequested, now_ns: int) -> Explanation:
        return explanation(self.planner, self.epoch, message, now_ns)

    # -- what comes next

    def next_cycle(self) -> list[Effect]:
        """Plan again if that may decide anything; at most one cycle is on its way."""
        if self.cycle_is_coming:
            return []
        is_full = self.planner.in_flight_count >= self._settings.inflight_max
        if is_full or not self.planner.has_work:
            return []
        # A message and not a call: whatever is in the mailbox already is handled first, so one
        # cycle serves all of it.
        self.cycle_is_coming = True
        cycle = s.RunCycle(partition=self._partition, epoch=self.epoch)
        return [Send(to=self._address, message=cycle)]

    def _come_back(self) -> list[Effect]:
        return [*self.next_cycle(), *self._next_timer()]

    def _next_timer(self) -> list[Effect]:
        """Come back when something comes of age; a timer that comes too early does no harm."""
        due_ns = self.planner.due_ns
        if due_ns == NEVER_NS or due_ns == self._due_ns:  # noqa: PLR1714 - no set is made
            return []
        self._due_ns = due_ns
        due = s.PlanningDue(partition=self._partition, epoch=self.epoch)
        name = f"planning/{self._partition}#{self.epoch}"
        return [SetTimer(name=name, due_ns=due_ns, message=due)]
