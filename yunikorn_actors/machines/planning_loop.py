"""The planning loop: when a cycle runs, how much may be in flight, and when to come back.

A Scheduler runs it on its replica, and in the fused topology Context runs it on the truth itself.
They differ in one thing alone, which is given as `commit`: a Scheduler sends its decisions to
Context, where others may have been faster; Context resolves them on the spot.

Whoever runs it resolves what it committed with facts or `Planner.reject`, and calls `next_cycle`
after anything that may let something else be decided. A cycle that runs for nothing does no harm;
one that is missing lets asks wait for ever.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Proposal
from yunikorn_actors.machines.explaining import explanation
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, Send, SetTimer
from yunikorn_actors.machines.predicate_gate import PredicateGate
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.parts.part import NEVER_NS
from yunikorn_actors.planning.planner import Planner

Commit = Callable[[list[Proposal], int], list[Effect]]
"""Resolve these decisions now, or send them to be resolved; also tell what the planner found."""


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
        # The bound counts questions too: their proposals are in flight until the answer comes.
        questions: list[Effect] = []
        if self.predicate_gate is not None:
            proposals, questions = self.predicate_gate.put(proposals)
        effects = [*self._commit(self.planner.send(proposals), now_ns), *questions]
        # Only now: the commit has asked for no cycle, as it is asked for once, at the end.
        self.cycle_is_coming = False
        effects.extend(self._come_back())
        return effects

    def on_checked(self, message: p.Checked, now_ns: int) -> list[Effect]:
        """Go on with the proposal after a yes; a no has told the planner where else to look."""
        assert self.predicate_gate is not None
        proposal = self.predicate_gate.answered(message, now_ns)
        decided = [] if proposal is None else [proposal]
        return [*self._commit(self.planner.send(decided), now_ns), *self._come_back()]

    def on_denials_lifted(self) -> list[Effect]:
        self.planner.denials.lift_all()
        self.planner.answered()
        return self.next_cycle()

    def on_planning_due(self, now_ns: int) -> list[Effect]:
        self.planner.time_came(now_ns)
        return self.next_cycle()

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
