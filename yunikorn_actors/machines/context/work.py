"""The work of one handler.

Everything that a handler decides is written down here first: facts, which take effect at once, and
what the resource manager is to hear. `effects` then turns it into messages in the one order that
the interface promises: rejected, released, new, then the states of applications. So a handler may
work item by item and the resource manager still gets at most one message of each kind.
"""

from collections.abc import Callable
from functools import partial

from yunikorn_actors.domain.allocation import AskSpec, WaitingState
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.changes import apply
from yunikorn_actors.domain.facts import Fact, NodeActionRefused
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Proposal
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Message,
    scheduler_address,
)
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused
from yunikorn_actors.planning.planner import Planner


class Partition:
    """One life of a partition, with the counters that name things in it."""

    def __init__(
        self,
        name: str,
        *,
        rm_id: str,
        epoch: int,
        commit: Callable[["Partition", list[Proposal], int], list[Effect]] | None,
        reports: bool,
        has_predicates: bool,
        has_preemption_predicates: bool,
        settings: Settings,
    ) -> None:
        self.name = name
        self.rm_id = rm_id
        self.epoch = epoch
        self.life = 0
        """How many Schedulers it has had before this one."""
        self.scheduler = None if commit is not None else scheduler_address(name, epoch)
        """Address of the Scheduler; None if Context plans by itself."""
        self.state = PartitionState(name)
        self.loop: PlanningLoop | None = None
        self.planner: Planner | None = None
        if commit is not None:
            self.loop = PlanningLoop(
                self.state,
                partial(commit, self),
                address=CONTEXT,
                timer=f"planning/{name}#{epoch}",
                epoch=epoch,
                life=0,
                rm_id=rm_id,
                reports=reports,
                has_predicates=has_predicates,
                has_preemption_predicates=has_preemption_predicates,
                settings=settings,
            )
            self.planner = self.loop.planner
        self.reports = reports
        """Whether its resource manager hears of container states."""
        self.explaining: dict[str, ExplainRequested] = {}
        """What its Scheduler was asked, by who waits for the answer."""
        self.awaits_confirmation = False
        """A timer is armed for the releases that are not confirmed."""
        self.cleaning: dict[str, int] = {}
        """Generation of the cleaning timer of each queue that has become empty."""
        self.last_serial = 0
        self.last_sequence = 0
        self.last_timer = 0

    def begin_life(self) -> None:
        """Another Scheduler takes over; messages to the former one are dropped."""
        self.life += 1
        self.scheduler = scheduler_address(self.name, self.epoch, self.life)

    def next_serial(self) -> int:
        self.last_serial += 1
        return self.last_serial

    def next_sequence(self) -> int:
        self.last_sequence += 1
        return self.last_sequence

    def next_timer(self) -> int:
        self.last_timer += 1
        return self.last_timer


DIGITS_MAX = 19


class Uuids:
    """Names of allocations: a part of the core's instance, and a number that never comes again."""

    def __init__(self, instance: str) -> None:
        self._prefix = f"{instance}-"
        self.issued = 0

    def next(self) -> str:
        self.issued += 1
        return self._prefix + str(self.issued)

    def avoid(self, uuid: str) -> None:
        """Never issue a UUID that a resource manager has brought, as after a restart."""
        number = uuid.removeprefix(self._prefix)
        if number != uuid and number.isascii() and number.isdecimal() and len(number) < DIGITS_MAX:
            self.issued = max(self.issued, int(number))


class Work:
    """Facts and answers of one handler, for one resource manager."""

    def __init__(self, rm_id: str, now_ns: int, settings: Settings, uuids: Uuids) -> None:
        self.rm_id = rm_id
        self.now_ns = now_ns
        self.settings = settings
        self.uuids = uuids
        self.unknown_applications = 0
        self.rejected_asks: list[rm.RejectedAsk] = []
        self.withdrawn: list[rm.AnnouncedWithdrawal] = []
        self.released: list[rm.AnnouncedRelease] = []
        self.new: list[rm.AnnouncedAllocation] = []
        self.accepted_apps: list[str] = []
        self.rejected_apps: list[rm.Rejected] = []
        self.updated: list[rm.ApplicationUpdate] = []
        self.states: list[rm.ContainerState] = []
        self.accepted_nodes: list[str] = []
        self.rejected_nodes: list[rm.Rejected] = []
        self.timers: list[Effect] = []
        self.lines: list[Effect] = []
        self.stray: list[NodeActionRefused] = []
        """Actions on nodes of a partition that is not there."""
        self._facts: dict[str, tuple[Partition, list[Fact]]] = {}

    def record(self, partition: Partition, fact: Fact) -> None:
        """State a fact: it is true from here on."""
        apply(partition.state, fact)
        if partition.planner is not None:
            partition.planner.observe(fact)
        entry = self._facts.get(partition.name)
        if entry is None:
            self._facts[partition.name] = (partition, [fact])
        else:
            entry[1].append(fact)

    def touched(self) -> list[Partition]:
        return [partition for partition, _ in self._facts.values()]

    # -- what the resource manager is to hear

    def reject_ask(self, item: rm.AskItem, reason: str) -> None:
        spec = item.spec
        self.rejected_asks.append(
            rm.RejectedAsk(
                application_id=spec.application_id,
                key=spec.key,
                reason=reason,
                later_form=spec.later_form,
            )
        )

    def tell_state(self, spec: AskSpec, state: WaitingState, reason: str) -> None:
        self.states.append(
            rm.ContainerState(
                application_id=spec.application_id, key=spec.key, state=state, reason=reason
            )
        )

    def announce_state(self, application_id: str, state: ApplicationState, message: str) -> None:
        self.updated.append(
            rm.ApplicationUpdate(
                application_id=application_id, state=state, at_ns=self.now_ns, message=message
            )
        )

    def announce_release(
        self,
        partition: Partition,
        application_id: str,
        key: str,
        uuid: str,
        type_: TerminationType,
        message: str,
    ) -> None:
        self.released.append(
            rm.AnnouncedRelease(
                partition=partition.name,
                application_id=application_id,
                uuid=uuid,
                key=key,
                type=type_,
                message=message,
            )
        )

    def announce_withdrawal(
        self, partition: Partition, spec: AskSpec, type_: TerminationType, message: str
    ) -> None:
        self.withdrawn.append(
            rm.AnnouncedWithdrawal(
                partition=partition.name,
                application_id=spec.application_id,
                key=spec.key,
                type=type_,
                message=message,
                later_form=spec.later_form,
            )
        )

    # -- the end of the handler

    def effects(self) -> list[Effect]:
        return [*self._answers(), *self.silent_effects()]

    def silent_effects(self) -> list[Effect]:
        """Facts and timers alone, if there is no callback left to tell."""
        return [*self._publications(), *self.timers, *self.lines]

    def _answers(self) -> list[Effect]:
        to_rm: list[Message] = []
        if self.accepted_nodes or self.rejected_nodes:
            to_rm.append(
                rm.RMNodeUpdate(
                    rm_id=self.rm_id,
                    accepted=tuple(self.accepted_nodes),
                    rejected=tuple(self.rejected_nodes),
                )
            )
        if self.accepted_apps or self.rejected_apps:
            to_rm.append(
                rm.RMApplicationUpdate(
                    rm_id=self.rm_id,
                    accepted=tuple(self.accepted_apps),
                    rejected=tuple(self.rejected_apps),
                )
            )
        if self.rejected_asks:
            to_rm.append(
                rm.RMRejectedAllocationAsk(rm_id=self.rm_id, rejected=tuple(self.rejected_asks))
            )
        if self.withdrawn or self.released:
            to_rm.append(
                rm.RMReleaseAllocation(
                    rm_id=self.rm_id,
                    withdrawn=tuple(self.withdrawn),
                    released=tuple(self.released),
                )
            )
        if self.new:
            to_rm.append(rm.RMNewAllocations(rm_id=self.rm_id, allocations=tuple(self.new)))
        if self.states:
            to_rm.append(rm.RMContainerSchedulingState(rm_id=self.rm_id, states=tuple(self.states)))
        if self.updated:
            to_rm.append(rm.RMApplicationUpdate(rm_id=self.rm_id, updated=tuple(self.updated)))
        return [Send(to=RM_PROXY, message=message) for message in to_rm]

    def _publications(self) -> list[Effect]:
        effects: list[Effect] = []
        for partition, facts in self._facts.values():
            message = FactsAppended(
                partition=partition.name,
                epoch=partition.epoch,
                rm_id=partition.rm_id,
                first_revision=partition.state.revision - len(facts) + 1,
                facts=tuple(facts),
            )
            if partition.scheduler is not None:
                effects.append(Send(to=partition.scheduler, message=message))
            effects.append(Send(to=EVENT_PUBLISHER, message=message))
        if self.stray:
            stray = NodeActionsRefused(rm_id=self.rm_id, refused=tuple(self.stray))
            effects.append(Send(to=EVENT_PUBLISHER, message=stray))
        return effects
