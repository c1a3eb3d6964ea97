"""The checkers of refusals: no proposal again on the same facts, no refusal on the facts of a plan.

Nothing is proposed again that was refused on the same facts. And nothing is refused that was
decided on the facts on which it is committed: planner and commit ask the same rules.

They go by messages alone: what a planner received, what it proposed, what was refused. Where
Context plans, they go by the plan that was just refused. So they know nothing of how the planner
keeps to the rule (`planning/refusals.py`), except which facts a decision may depend on.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    SCHEDULER,
    Delivery,
)
from yunikorn_actors.messages.predicates import (
    DenialsLifted,
    PredicatesChecked,
    PreemptionPredicatesChecked,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    PartitionSnapshot,
    PlanningDue,
    ProposalRejected,
    ProposeAllocations,
    RunCycle,
)
from yunikorn_actors.state.proposals import Proposal, Refusal


class RefusalChecker:
    """Check that no planner makes a proposal again that was refused on the same facts."""

    receivers: Final = frozenset({CONTEXT, SCHEDULER})

    def __init__(self) -> None:
        self._planners: dict[str, _Record] = {}
        """By address of the scheduler; where Context plans, by name of the partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, CoreRestored):
            # A restored core plans anew, with proposals numbered from the beginning.
            self._planners.clear()
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
        published = (
            it.message for it in effects if isinstance(it, Send) and it.to == EVENT_PUBLISHER
        )
        mine = [it for it in published if isinstance(it, FactsAppended) and it.partition == name]
        has_planned = isinstance(message, RunCycle) or _is_answer(message)
        if any(_has_news(it) for it in mine):
            # It is not seen what came first: only a plan without any fact is judged.
            record.forget()
        elif has_planned and getattr(message, "partition", name) == name:
            # Only a plan without any fact is judged: with facts nobody sees what came first.
            new = record.not_judged(refused)
            for proposal, _ in new:
                record.propose(proposal, delivery)
            for proposal, reason in new:
                record.refuse(proposal.proposal_id, reason)


class AgreementChecker:
    """Check that what Context refuses of a planner was decided on older facts.

    The first decision of a plan alone: others may rest on one that was refused, or go without what
    that one has used. Where the resource manager is asked first, or long work is under way, a
    proposal waits, and nobody can tell on which facts it was decided.
    """

    receivers: Final = frozenset({CONTEXT, SCHEDULER})

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Know nothing: the planners of a core number their proposals from the beginning."""
        self._revisions: dict[_Life, int] = {}
        """Of each life of a partition, when Context had handled the last message."""
        self._refused: dict[_Life, int] = {}
        """The revision at which something was refused last."""
        self._was_at_rest = True
        self._first: dict[tuple[_Life, int], None] = {}
        """What planners sent first in a message: a laboratory makes up others."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, CoreRestored):
            self._begin()
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            if machine.loop.predicate_gate is None:
                self._first.update(dict.fromkeys(_first_of(simulator.effects)))
        elif isinstance(machine, Context):
            self._committed(simulator, delivery, machine)

    def _committed(self, simulator: Simulator, delivery: Delivery, context: Context) -> None:
        message, waits = delivery.message, not (self._was_at_rest and context.is_at_rest)
        self._was_at_rest = context.is_at_rest
        for name, partition in context.partitions.items():
            life, revision = (name, partition.epoch), partition.state.revision
            before = self._revisions.get(life)
            self._revisions[life] = revision
            # Until a refusal arrives, the planner counts what was refused as decided. A slice of
            # long work does not say of which partition it is.
            is_refused = any(_refused(simulator.effects))
            if waits or getattr(message, "partition", "") != name:
                if is_refused and getattr(message, "partition", name) == name:
                    self._refused[life] = revision
                continue
            reasons: list[Refusal] = []
            if isinstance(message, ProposeAllocations):
                is_known = message.as_of == before
                # Only what a planner sent first: the others rest on it.
                reasons = [
                    why for id_, why in _refused(simulator.effects) if (life, id_) in self._first
                ]
            elif isinstance(message, RunCycle) and partition.loop is not None:
                is_known = partition.loop.predicate_gate is None and before == revision
                reasons = [why for _, why in partition.refused[:1]]
                is_refused = bool(partition.refused)
            # Unless something was refused just before: until the planner knows that, it counts it
            # as decided.
            if reasons and is_known and self._refused.get(life) != before:
                where = f"after {type(message).__name__} to {delivery.mailbox}"
                raise InvariantViolation(
                    f"{where}: refused with {reasons[0]} on the facts of the plan"
                )
            if is_refused:
                self._refused[life] = revision


_Life = tuple[str, int]
"""The name of a partition, and its epoch."""


def _first_of(effects: Sequence[Effect]) -> Iterator[tuple[_Life, int]]:
    for effect in effects:
        message = effect.message if isinstance(effect, Send) else None
        if isinstance(message, ProposeAllocations) and message.proposals:
            yield (message.partition, message.epoch), message.proposals[0].proposal_id


def _refused(effects: Sequence[Effect]) -> Iterator[tuple[int, Refusal]]:
    for effect in effects:
        message = effect.message if isinstance(effect, Send) else None
        if isinstance(message, ProposalRejected):
            yield message.proposal_id, message.reason


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
        # The same but for its number is the same proposal.
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
        # A time that has come since is a reason to try again.
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
    return any(not fact.is_record for fact in message.facts)
