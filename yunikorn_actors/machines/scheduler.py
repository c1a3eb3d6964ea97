"""Scheduler: plans on a replica of one partition and proposes.

The replica changes by facts alone. What the planner has decided and Context has not settled yet is
in flight, and bounded. A cycle runs only after something arrived that can change a decision, or
when a bound cut the last one short: at rest there is no message at all.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.snapshot import snapshot
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, Message, scheduler_address
from yunikorn_actors.planning.planner import Planner


class Scheduler:
    def __init__(self, *, partition: str, epoch: int, reports: bool, settings: Settings) -> None:
        self._address = scheduler_address(partition, epoch)
        self._partition = partition
        self._epoch = epoch
        self._settings = settings
        self.replica = PartitionState(partition)
        self.planner = Planner(self.replica, reports=reports)
        self.rejections: dict[str, int] = {}
        self._cycle_is_coming = False

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        return HANDLERS[type(message)](self, message)

    def canonical_state(self) -> dict[str, Any]:
        return {
            "replica": snapshot(self.replica),
            "in_flight": sorted(self.planner.in_flight),
            "rejections": dict(sorted(self.rejections.items())),
        }

    def _on_facts_appended(self, message: s.FactsAppended) -> list[Effect]:
        replica, planner = self.replica, self.planner
        if message.first_revision != replica.revision + 1:
            raise InvariantViolation(
                f"replica of {self._partition} is at revision {replica.revision} and was sent "
                f"facts from revision {message.first_revision} on"
            )
        for fact in message.facts:
            replica.apply(fact)
            planner.observe(fact)
        return [*self._next_report(), *self._next_cycle()]

    def _on_proposal_rejected(self, message: s.ProposalRejected) -> list[Effect]:
        if message.proposal_id not in self.planner.in_flight:
            raise InvariantViolation(f"proposal {message.proposal_id} was settled twice")
        self.planner.reject(message.proposal_id)
        self.rejections[message.reason] = self.rejections.get(message.reason, 0) + 1
        return self._next_cycle()

    def _on_run_cycle(self, _: s.RunCycle) -> list[Effect]:
        self._cycle_is_coming = False
        room = self._settings.inflight_max - len(self.planner.in_flight)
        proposals = self.planner.plan(min(self._settings.cycle_max, room))
        effects: list[Effect] = []
        if proposals:
            message = s.ProposeAllocations(
                partition=self._partition,
                epoch=self._epoch,
                as_of=self.replica.revision,
                proposals=tuple(proposals),
            )
            effects.append(Send(to=CONTEXT, message=message))
        return [*effects, *self._next_report(), *self._next_cycle()]

    def _next_report(self) -> list[Effect]:
        findings = self.planner.take_findings()
        if not findings:
            return []
        report = s.ReportWaiting(
            partition=self._partition,
            epoch=self._epoch,
            as_of=self.replica.revision,
            observations=s.observations_of(findings),
        )
        return [Send(to=CONTEXT, message=report)]

    def _next_cycle(self) -> list[Effect]:
        full = len(self.planner.in_flight) >= self._settings.inflight_max
        if self._cycle_is_coming or full or not self.planner.has_work:
            return []
        self._cycle_is_coming = True
        cycle = s.RunCycle(partition=self._partition, epoch=self._epoch)
        return [Send(to=self._address, message=cycle)]


SchedulerInbox = s.FactsAppended | s.ProposalRejected | s.RunCycle

HANDLERS: dict[type, Callable[[Scheduler, Any], list[Effect]]] = {
    s.FactsAppended: Scheduler._on_facts_appended,
    s.ProposalRejected: Scheduler._on_proposal_rejected,
    s.RunCycle: Scheduler._on_run_cycle,
}
