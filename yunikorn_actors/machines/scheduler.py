"""Scheduler: plans on a replica of one partition and proposes.

The replica begins empty, or with a snapshot where another scheduler failed, and changes by facts
alone. What the planner has decided and Context has not resolved yet is in flight, and bounded. A
cycle runs only after something arrived that can change a decision, or when a bound cut the last one
short: at rest there is no message at all.
"""

from collections.abc import Callable, Sequence
from typing import Any

from yunikorn_actors.machines import planning_loop
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, Message, scheduler_address
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Proposal
from yunikorn_actors.state.snapshot import restore


class Scheduler:
    def __init__(self, *, life: Life, settings: Settings, policies: Policies = NO_POLICIES) -> None:
        self._partition = life.partition
        self._epoch = life.epoch
        self.replica = PartitionState(life.partition, Folds(policies))
        self.loop = PlanningLoop(
            self.replica,
            self._commit,
            life=life,
            address=scheduler_address(life.partition, life.epoch, life.number),
            settings=settings,
            policies=policies,
        )
        self.planner = self.loop.planner
        self.rejections: dict[str, int] = {}

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        kind = type(message)
        # Its own messages first, as nearly all are facts; the loop's are the rest.
        own = HANDLERS.get(kind)
        if own is not None:
            return own(self, message, now_ns)
        return planning_loop.HANDLERS[kind](self.loop, message, now_ns)

    def canonical_state(self) -> dict[str, Any]:
        folds = None if self.replica.folds is None else self.replica.folds.kept()
        return {
            # The replica is part of the digest: a replay finds where it left the truth.
            "replica": snapshot(self.replica),
            **({"folds": folds} if folds else {}),
            "in_flight": self.planner.unresolved,
            "asking": self.loop.canonical_predicate_gate(),
            "rejections": dict(sorted(self.rejections.items())),
        }

    def legacy(self) -> dict[str, Any]:
        """Nothing to hand over: the next Scheduler learns everything from the snapshot."""
        return {}

    def _on_partition_snapshot(self, message: s.PartitionSnapshot, now_ns: int) -> list[Effect]:
        # Only an empty replica may begin with one: a snapshot over facts would count them twice.
        if self.replica.revision:
            raise InvariantViolation(
                f"replica of {self._partition} is at revision {self.replica.revision} and was sent "
                "a snapshot"
            )
        restore(self.replica, message.image)
        # The planner has seen no fact of it, and reads the state.
        self.planner.adopt()
        return [*self._next_report(), *self.loop.go_on(now_ns)]

    def _on_facts_appended(self, message: s.FactsAppended, now_ns: int) -> list[Effect]:
        replica, planner = self.replica, self.planner
        # A gap would let it plan on something that was never true; nothing mends it but another
        # start.
        if message.first_revision != replica.revision + 1:
            raise InvariantViolation(
                f"replica of {self._partition} is at revision {replica.revision} and was sent "
                f"facts from revision {message.first_revision} on"
            )
        for fact in message.facts:
            apply(replica, fact)
            # After the replica: the planner compares what it kept with what is true now.
            planner.observe(fact)
        # At once after each fact: the planner keeps its order up to date piece by piece.
        return [*self._next_report(), *self.loop.go_on(now_ns)]

    def _on_proposal_rejected(self, message: s.ProposalRejected, now_ns: int) -> list[Effect]:
        # Each proposal is resolved once: by a fact, or by this.
        if not self.planner.is_in_flight(message.proposal_id):
            raise InvariantViolation(f"proposal {message.proposal_id} was resolved twice")
        self.planner.refuse(message.proposal_id)
        self.rejections[message.reason] = self.rejections.get(message.reason, 0) + 1
        return self.loop.go_on(now_ns)

    def _on_explain_requested(self, message: ExplainRequested, now_ns: int) -> list[Effect]:
        answer = Send(to=CONTEXT, message=self.loop.explain(message, now_ns))
        return [answer, *self.loop.after_question()]

    def _commit(self, proposals: list[Proposal], _now_ns: int) -> list[Effect]:
        """Propose; the answers come as facts, or as refusals."""
        if not proposals:
            return self._next_report()
        # Decisions before findings: a resource manager waits for them.
        return [Send(to=CONTEXT, message=self.proposing(proposals)), *self._next_report()]

    def proposing(self, proposals: Sequence[Proposal]) -> s.ProposeAllocations:
        """Return the message that asks Context for these, on the view as it is now."""
        # Where the view stood: `trace` shows by it how old a decision was when it was made.
        return s.ProposeAllocations(
            partition=self._partition,
            epoch=self._epoch,
            as_of=self.replica.revision,
            proposals=tuple(proposals),
        )

    def _next_report(self) -> list[Effect]:
        findings = self.planner.findings
        # Each message asks for this, and nearly none brings something.
        # Two attributes, and no call, for nearly every message.
        if not findings.found and not findings.run_limits:
            return []
        report = s.ReportWaiting(
            partition=self._partition,
            epoch=self._epoch,
            as_of=self.replica.revision,
            observations=s.observations_of(findings.take()),
            crowds=s.run_limits_of(findings.take_run_limits()),
        )
        return [Send(to=CONTEXT, message=report)]


HANDLERS: dict[type, Callable[[Scheduler, Any, int], list[Effect]]] = {
    s.PartitionSnapshot: Scheduler._on_partition_snapshot,
    s.FactsAppended: Scheduler._on_facts_appended,
    s.ProposalRejected: Scheduler._on_proposal_rejected,
    ExplainRequested: Scheduler._on_explain_requested,
}
