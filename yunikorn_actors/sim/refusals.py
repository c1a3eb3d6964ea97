"""The checkers of refusals.

Nothing is proposed again that was refused on the same facts. And nothing is refused that was
decided on the facts on which it is committed: planner and commit ask the same rules.

They go by messages alone: what a planner was told, what it proposed, what was refused. Where
Context plans, it goes by the plan that was just refused. So they know nothing of how the planner
keeps to the rule (`planning/refusals.py`), but which facts a decision may depend on.
"""

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from yunikorn_actors.domain.proposals import Proposal, Refusal
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.predicates import (
    DenialsLifted,
    PredicatesChecked,
    PreemptionPredicatesChecked,
)
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    PartitionSnapshot,
    PlanningDue,
    ProposalRejected,
    ProposeAllocations,
    RunCycle,
)
from yunikorn_actors.planning.refusals import RECORDS
from yunikorn_actors.sim.simulator import Simulator


class RefusalChecker:
    """Check that no planner makes a proposal again that was refused on the same facts."""

    def __init__(self) -> None:
        self._planners: dict[str, _Record] = {}
        """By address of the scheduler; where Context plans, by name of the partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            self._follow_scheduler(simulator.effects, delivery)
        elif isinstance(machine, Context) and delivery is simulator.last:
            for name, partition in machine.partitions.items():
                if partition.planner is not None:
                    self._follow_own(name, partition.refused, simulator.effects, delivery)

    def _record(self, name: str) -> "_Record":
        return self._planners.setdefault(name, _Record())

    def _follow_scheduler(self, effects: Sequence[Effect], delivery: Delivery) -> None:
        record, message = self._record(delivery.mailbox), delivery.message
        if isinstance(message, ProposalRejected):
            record.refuse(message.proposal_id, message.reason)
        elif _is_news(message, record, delivery.at_ns):
            record.forget()
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, ProposeAllocations):
                for proposal in effect.message.proposals:
                    record.propose(proposal, delivery)

    def _follow_own(
        self,
        name: str,
        refused: Sequence[tuple[Proposal, Refusal]],
        effects: Sequence[Effect],
        delivery: Delivery,
    ) -> None:
        record, message = self._record(name), delivery.message
        if _is_news(message, record, delivery.at_ns):
            record.forget()
        told = (it.message for it in effects if isinstance(it, Send) and it.to == EVENT_PUBLISHER)
        mine = [it for it in told if isinstance(it, FactsAppended) and it.partition == name]
        has_planned = isinstance(message, RunCycle) or _is_answer(message)
        if any(_has_news(it) for it in mine):
            # It is not seen what came first: only a plan without any fact is judged.
            record.forget()
        elif has_planned and getattr(message, "partition", name) == name:
            new = record.not_judged(refused)
            for proposal, _ in new:
                record.propose(proposal, delivery)
            for proposal, reason in new:
                record.refuse(proposal.proposal_id, reason)


class AgreementChecker:
    """Check that the first thing that is refused of a planner was decided on older facts.

    What it proposed behind that may rest on it. Where the resource manager is asked first, or long
    work is under way, a proposal waits, and nobody can tell on which facts it was decided.
    """

    def __init__(self) -> None:
        self._revisions: dict[tuple[str, int], int] = {}
        """Of each life of a partition, when Context had handled the last message."""
        self._refused: dict[tuple[str, int], int] = {}
        """The revision at which something was refused last."""
        self._was_at_rest = True

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        context = simulator.machines.get(delivery.mailbox)
        if not isinstance(context, Context):
            return
        message, is_at_rest = delivery.message, self._was_at_rest and context.is_at_rest
        self._was_at_rest = context.is_at_rest
        for name, partition in context.partitions.items():
            life, revision = (name, partition.epoch), partition.state.revision
            before = self._revisions.get(life)
            self._revisions[life] = revision
            if getattr(message, "partition", "") != name or not is_at_rest:
                continue
            reason = None
            if isinstance(message, ProposeAllocations):
                reason = _first_reason(simulator.effects)
                is_new = message.as_of == before and not _asks_first(simulator, partition)
            elif isinstance(message, RunCycle) and partition.loop is not None:
                reason = next((it for _, it in partition.refused), None)
                is_new = partition.loop.predicate_gate is None
            if reason is None:
                continue
            if is_new and self._refused.get(life) != before:
                where = f"after {type(message).__name__} to {delivery.mailbox}"
                raise InvariantViolation(f"{where}: refused with {reason} on the facts of the plan")
            self._refused[life] = revision


def _first_reason(effects: Sequence[Effect]) -> Refusal | None:
    rejected = (it.message for it in effects if isinstance(it, Send))
    return next((it.reason for it in rejected if isinstance(it, ProposalRejected)), None)


def _asks_first(simulator: Simulator, partition: PartitionContext) -> bool:
    """Whether the resource manager is asked before a proposal is sent."""
    machines = [simulator.machines.get(it) for it in partition.schedulers.values()]
    return any(isinstance(it, Scheduler) and it.loop.predicate_gate is not None for it in machines)


class _Record:
    """What one planner has proposed since it last learned something."""

    def __init__(self) -> None:
        self._proposed: dict[int, Hashable] = {}
        self._refused: dict[Hashable, Refusal] = {}
        self.refused_ns = 0
        self._now_ns = 0
        self._judged: frozenset[int] = frozenset()
        """What was refused of the plan that was shown last."""

    def not_judged(
        self, refused: Sequence[tuple[Proposal, Refusal]]
    ) -> list[tuple[Proposal, Refusal]]:
        """Leave out what was shown before: a plan that waits behind long work was not made yet."""
        before, self._judged = self._judged, frozenset(it.proposal_id for it, _ in refused)
        return [it for it in refused if it[0].proposal_id not in before]

    def propose(self, proposal: Proposal, delivery: Delivery) -> None:
        content = replace(proposal, proposal_id=0)
        reason = self._refused.get(content)
        if reason is not None:
            where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
            raise InvariantViolation(
                f"{where}: refused with {reason} and proposed again though no fact has arrived: "
                f"{content}"
            )
        self._proposed[proposal.proposal_id] = content
        self._now_ns = delivery.at_ns

    def refuse(self, proposal_id: int, reason: Refusal) -> None:
        content = self._proposed.pop(proposal_id, None)
        if content is not None:
            self._refused[content] = reason
            self.refused_ns = self._now_ns

    def forget(self) -> None:
        self._proposed.clear()
        self._refused.clear()


def _is_news(message: object, record: _Record, now_ns: int) -> bool:
    """Whether it tells a planner something on which a decision may depend."""
    if isinstance(message, FactsAppended):
        return _has_news(message)
    if isinstance(message, PlanningDue):
        return now_ns > record.refused_ns
    return isinstance(message, PartitionSnapshot | DenialsLifted) or _is_no(message)


def _is_answer(message: object) -> bool:
    return isinstance(message, PredicatesChecked | PreemptionPredicatesChecked)


def _is_no(message: object) -> bool:
    """Whether a resource manager refuses a node, which a planner then leaves out."""
    if isinstance(message, PredicatesChecked):
        return bool(message.reason)
    return isinstance(message, PreemptionPredicatesChecked) and not message.response.success


def _has_news(message: FactsAppended) -> bool:
    return any(type(fact) not in RECORDS for fact in message.facts)
