"""The partitions of all resource managers: how they come, change with a configuration, and go.

Each life of a partition has an epoch. What arrives late for a former life (a proposal, a timer)
names an epoch that is gone; it is counted and does nothing (R-104).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.machines.context.applications import remove_application, report_run_limits
from yunikorn_actors.machines.context.asks import (
    names_no_application,
    no_application,
)
from yunikorn_actors.machines.context.commit import commit_all, report_waiting
from yunikorn_actors.machines.context.config_changes import configure
from yunikorn_actors.machines.context.endings import watch_confirmations
from yunikorn_actors.machines.context.lifecycle import cancelled_histories, fail, work_gone
from yunikorn_actors.machines.context.manager_registry import Registry, ResourceManager
from yunikorn_actors.machines.context.nodes import line_of, record_act, remove_node
from yunikorn_actors.machines.context.partition_context import Explaining, PartitionContext, Uuids
from yunikorn_actors.machines.context.quota_preemption import follow
from yunikorn_actors.machines.context.recovery import await_reports, drop_awaited, go_on
from yunikorn_actors.machines.context.timeouts import expire
from yunikorn_actors.machines.context.unit_of_work import (
    AllEnded,
    ContextJob,
    NodeVerdict,
    UnitOfWork,
    Work,
)
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import (
    CancelTimer,
    Effect,
    Failures,
    Log,
    Send,
    SetTimer,
    StartMachine,
    StopCore,
    StopMachine,
)
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import Slices, Steps, drawn_off
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Message
from yunikorn_actors.messages.followers import HistoryRequested, ManagerDescribed, ManagerLeft
from yunikorn_actors.messages.queries import CountsFound, Declined, ExplainRequested, Explanation
from yunikorn_actors.messages.restart import CoreRestored, LastNumbers, Registered, ReturnDue
from yunikorn_actors.messages.rm_events import (
    Capabilities,
    EventsConfigured,
    RejectedAsk,
    RMPartitionsRemove,
    RMRegistration,
)
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.partition import LongWork, LongWorkKind
from yunikorn_actors.state.proposals import Proposal
from yunikorn_actors.state.snapshot import Image, image_of
from yunikorn_actors.values.ids import partition_name

PARTITION_REMOVED = "PartitionRemoved"


class Partitions:
    """The partitions of all resource managers, and whatever needs more than one of them.

    Registration, reload and replacement touch several partitions in one handler, so the effects of
    all of them are put in order here.
    """

    def __init__(
        self, *, settings: Settings, schedulers: int, instance: str, policies: Policies
    ) -> None:
        self.settings = settings
        self.policies = policies
        self.registry = Registry()
        self.by_name: dict[str, PartitionContext] = {}
        self.uuids = Uuids(instance)
        self.stale = 0
        """Messages of a former life of a partition."""
        self.scheduling_errors = 0
        """Asks that named an application that is not there."""
        self.refused_node_actions = 0
        """Refused actions on nodes of unknown partitions; others are counted in their partition."""
        self.failed_nodes: dict[tuple[str, str], None] = {}
        """Nodes of each resource manager that were refused and have not been registered since."""
        self.failures = Failures()
        # The event publisher is always the first (see `show`).
        self.subscribers: tuple[str, ...] = (EVENT_PUBLISHER,)
        """Who hears the facts of all partitions; behind the first those who follow from outside."""
        self.rejected_asks = 0
        self.slices = Slices(CONTEXT, settings.slice_max)
        """Long work, in order for each resource manager."""
        self._schedulers = schedulers
        """How many each partition has; without any Context plans by itself."""
        self._epoch = 0
        self._publishers = 0
        """How many EventPublishers there have been before this one."""

    def work(self, rm_id: str, now_ns: int) -> Work:
        return Work(rm_id, now_ns, self.settings, self.subscribers)

    def send_out(self, work: Work) -> list[Effect]:
        """Send what was done and found; a partition just planned may have findings alone."""
        # Before `effects`: settling may record more facts, which belong to the same batch.
        self._settle(work)
        effects = work.effects()
        for unit in work.units.values():
            partition = unit.partition
            # Last, as a cycle may decide on everything above; a partition that was just closed
            # plans no more.
            # Its loop would ask for a cycle of a life that is over.
            if partition.loop is not None and self.by_name.get(partition.name) is partition:
                effects.extend(partition.loop.next_cycle())
        return effects

    def send_out_job(self, job: ContextJob, gone: Sequence[PartitionContext] = ()) -> Steps:
        """End a job: send what was done; where that is much, in parts.

        A partition that is gone plans no more.
        """
        # Generators only where they are needed: nearly every job ends in its first slice.
        if job.was_paused:
            return self._send_out_in_parts(job, gone)
        self._settle(job.work)
        self._send_rest(job, gone)
        return iter(())

    def _send_out_in_parts(self, job: ContextJob, gone: Sequence[PartitionContext]) -> Steps:
        yield from self._send_in_parts(job)
        self._send_rest(job, gone)

    def _send_rest(self, job: ContextJob, gone: Sequence[PartitionContext]) -> None:
        work, out = job.work, job.out
        for unit in work.units.values():
            if unit.state.long_work is not None:
                # In the last batch of facts: a core that starts again goes on with long work that
                # has no end.
                unit.record(f.LongWorkEnded(at_ns=unit.now_ns))
        out.extend(work.effects())
        for unit in work.units.values():
            loop = unit.partition.loop
            # Asked once for each partition, when all is recorded: a round for each item would plan
            # on half of it.
            if loop is not None and unit.partition not in gone:
                out.extend(loop.next_cycle())
        # What was sent must not be sent again: a reload goes on after this.
        work.begin_anew()

    def _send_in_parts(self, job: ContextJob) -> Steps:
        """The facts first: of those a slice has no more than it has items."""
        work = job.work
        self._settle(work)
        job.out.extend(work.facts_so_far())
        # Facts are sent already with each slice; only answers can be many here.
        for part, size in work.take_answers(self.settings.slice_max):
            job.out.append(Send(to=RM_PROXY, message=part))
            yield size

    def end_request(self, work: Work) -> None:
        """End one of several requests that are handled together: all but the sending."""
        self._settle(work)
        # Answers of the next request are ranked apart from those of this one (G27).
        work.answers.end_request()

    def _settle(self, work: Work) -> None:
        answers = work.answers.by_kind
        # Counting is a look at three keys; most works have none of them.
        if work.stray or RejectedAsk in answers or NodeVerdict in answers:
            self._count(work)
        for unit in work.units.values():
            # What has happened first, then what was found: a finding may be about an ask that is
            # gone by now, and is dropped.
            # What came down by itself may be any queue of any item: looked at once, at the end.
            if unit.state.quotas:
                follow(unit)
            # The timer follows the state: armed where something waits, and only then.
            if bool(unit.state.unconfirmed) is not unit.partition.awaits_confirmation:
                watch_confirmations(unit, self.confirm_warning_ns(unit.partition))
            # Fused only. A Scheduler sends its findings as a message.
            planner = unit.partition.planner
            if planner is not None and planner.findings:
                report_waiting(unit, s.observations_of(planner.findings.take()))
                report_run_limits(unit, s.run_limits_of(planner.findings.take_run_limits()))

    def confirm_warning_ns(self, partition: PartitionContext) -> int:
        """How long its resource manager may take; one that is gone has nobody to ask."""
        manager = self.registry.managers.get(partition.rm_id)
        return (manager.extra if manager is not None else ExtraConfig()).confirm_warning_ns

    def _count(self, work: Work) -> None:
        answers = work.answers.by_kind
        self.refused_node_actions += len(work.stray)
        if RejectedAsk in answers:
            self.rejected_asks += len(answers[RejectedAsk])
            self.scheduling_errors += sum(map(names_no_application, answers[RejectedAsk]))
        if NodeVerdict in answers:
            self._count_nodes(work)

    def _count_nodes(self, work: Work) -> None:
        for node in work.answers.of(NodeVerdict):
            if not node.refusal:
                # A refused repetition of a node that is registered is no failed node.
                self.failed_nodes.pop((work.rm_id, node.id), None)
            elif not self._has_node(work.rm_id, node.id):
                self.failed_nodes[work.rm_id, node.id] = None

    def _has_node(self, rm_id: str, node_id: str) -> bool:
        own = (partition for partition in self.by_name.values() if partition.rm_id == rm_id)
        return any(node_id in partition.state.nodes for partition in own)

    def current(self, name: str, epoch: int) -> PartitionContext | None:
        partition = self.by_name.get(name)
        if partition is None or partition.epoch != epoch:
            self.stale += 1
            return None
        return partition

    def loop_of(self, message: s.RunCycle | s.PlanningDue | p.Checked) -> PlanningLoop | None:
        """Return who plans for the partition of a message, if it lives and Context plans for it."""
        partition = self.current(message.partition, message.epoch)
        return None if partition is None else partition.loop

    def _commit_own(
        self, partition: PartitionContext, proposals: list[Proposal], now_ns: int
    ) -> list[Effect]:
        """Commit what the partition's own planner decided, on the truth it was decided on."""
        # One work for all proposals of the plan, so one batch of facts.
        assert partition.planner is not None
        work = self.work(partition.rm_id, now_ns)
        unit = work.unit(partition)
        partition.refused.clear()
        for proposal, reason in commit_all(unit, proposals):
            # At once, not by a message: in the fused topology planner and Context are one machine.
            partition.planner.refuse(proposal.proposal_id)
            partition.refused.append((proposal, reason))
        return self.send_out(work)

    def _record_suspension(self, work: Work, manager: ResourceManager) -> None:
        """Decide nothing for a resource manager any more, or go on."""
        for name in manager.partitions:
            work.unit(self.by_name[name]).record(manager.suspension(work.now_ns))

    def explain(self, message: ExplainRequested, now_ns: int) -> list[Effect]:
        """The planner of the partition knows why; a Scheduler answers by itself."""
        id_ = message.application_id
        # Without a name all partitions are asked, the one with the application answers.
        named = [it for it in self.by_name.values() if message.partition in {"", it.name}]
        for partition in named:
            if not id_ or id_ in partition.state.applications:
                # Fused: answered here, as no other machine has the planner.
                if partition.loop is not None:
                    answer = partition.loop.explain(message, now_ns)
                    answered = _answered(partition, message, answer, now_ns)
                    return [answered, *partition.loop.after_question()]
                return [_asked(partition, message)]
        return [self._without_application(message, named, now_ns)]

    def _without_application(
        self, message: ExplainRequested, named: list[PartitionContext], now_ns: int
    ) -> Effect:
        """Nothing waits or runs of it; an ask may be remembered that was rejected for that."""
        id_ = message.application_id
        # Rejected asks are remembered by the partition that rejected them, also for an application
        # that never came.
        for partition in named:
            if (why := partition.rejections.explain(id_, message.key, now_ns)) is not None:
                answer = Explanation(
                    partition=partition.name,
                    epoch=partition.epoch,
                    reply_to=message.reply_to,
                    as_of=partition.state.revision,
                    waiting=(why,),
                    is_complete=True,
                )
                return Send(to=message.reply_to, message=answer)
        reason = f"failed to find partition {message.partition}"
        if id_:
            reason = no_application((it.state for it in named), id_)
        return Send(to=message.reply_to, message=Declined(reason=reason))

    def explained(self, message: Explanation, now_ns: int) -> list[Effect]:
        partition = self.current(message.partition, message.epoch)
        if partition is None:
            return []
        # Kept until answered, so that a question survives the scheduler that was asked.
        asked = partition.explaining.pop(message.reply_to)
        return [_answered(partition, asked.question, message, now_ns)]

    # -- machines that failed

    def replace(self, message: s.MachineFailed, now_ns: int) -> list[Effect]:
        """Replace a machine that holds no truth, and bring the new one up to date."""
        role = "event publisher" if message.address == EVENT_PUBLISHER else "scheduler"
        # A machine that fails again and again is not mended by another replacement.
        if not self.failures.may_go_on(role, now_ns):
            return [StopCore()]
        if message.address == EVENT_PUBLISHER:
            return self._replace_publisher(message, now_ns)
        for partition in self.by_name.values():
            if message.address in partition.schedulers.values():
                return self._replace_scheduler(partition, message, now_ns)
        # It was replaced already, or its partition has gone: nothing to do.
        return []

    def _replace_scheduler(
        self, partition: PartitionContext, message: s.MachineFailed, now_ns: int
    ) -> list[Effect]:
        """Send the new scheduler a snapshot first; later changes come to it as facts."""
        # Taken before the fact is recorded: the new replica begins at this revision, and the fact
        # follows.
        succeeded = self._succeeded(partition, message.address)
        fact = f.MachineReplaced(machine="scheduler", failure=message.failure, at_ns=now_ns)
        work = self.work(partition.rm_id, now_ns)
        work.unit(partition).record(fact)
        return [*succeeded, *self.send_out(work)]

    def _succeeded(self, partition: PartitionContext, former: str) -> list[Effect]:
        heir = partition.succeed(former)
        is_planning = heir == partition.planning
        asked = [it for it in partition.explaining.values() if it.scheduler == former]
        return [
            # The former address stops first: its mailbox is dropped with it, and nothing of it
            # reaches the heir.
            StopMachine(address=former),
            _started(heir, partition.lives()[heir]),
            Send(to=heir, message=_snapshot(partition, image_of(partition.state))),
            *(partition.token() if is_planning else ()),
            # The questions that died in the mailbox of the failed one.
            *(_asked(partition, it.question) for it in asked),
        ]

    def _replace_publisher(self, message: s.MachineFailed, now_ns: int) -> list[Effect]:
        """Replace the event publisher at its own address: its callers know no other."""
        legacy = message.legacy
        self._publishers += 1
        arguments = {name: legacy[name] for name in ("next_id", "overflow", "hearers")}
        arguments["life"] = self._publishers
        # Facts that it never saw are counted in the fact below, partition by partition.
        known = {(name, epoch): revision for name, epoch, revision in legacy["revisions"]}
        effects: list[Effect] = [
            StartMachine(address=EVENT_PUBLISHER, kind="event_publisher", arguments=arguments),
            *(events_configured(manager) for manager in self.registry.managers.values()),
        ]
        # How far each partition is comes first: the next facts then follow without a gap.
        for name, partition in self.by_name.items():
            revision = partition.state.revision
            missed = s.FactsMissed(partition=name, epoch=partition.epoch, revision=revision)
            fact = f.MachineReplaced(
                machine="event publisher",
                failure=message.failure,
                at_ns=now_ns,
                lost_records=legacy["stored"],
                missed_facts=revision - known.get((name, partition.epoch), 0),
            )
            work = self.work(partition.rm_id, now_ns)
            work.unit(partition).record(fact)
            effects.extend([Send(to=EVENT_PUBLISHER, message=missed), *self.send_out(work)])
        return effects

    def retire(self, job: ContextJob, rm_id: str) -> Steps:
        """Remove everything of a resource manager; there is no callback left to tell."""
        manager = self.registry.leave(rm_id)
        if manager is None:
            return
        # Its generation makes a firing stale anyway; this spares the message.
        if manager.is_lost:
            job.out.append(CancelTimer(name=f"paused/{rm_id}"))
        for name in tuple(manager.partitions):
            partition = self.by_name[name]
            yield from _empty(job.now_doing(job.work.unit(partition), LongWorkKind.MANAGER))
            # Facts before the closing: the publisher takes none of a partition that it has closed.
            job.out.extend(job.work.facts_so_far())
            self._detach(manager, job.work, partition)
            yield from self._publish_closed(job, partition)
        self.registry.forget(rm_id)
        # Nodes of a manager that is gone are no longer failed nodes of anybody.
        for failed in [failed for failed in self.failed_nodes if failed[0] == rm_id]:
            del self.failed_nodes[failed]
        gone = EventsConfigured(rm_id=rm_id, extra=None)
        job.out.append(Send(to=EVENT_PUBLISHER, message=gone))
        job.out.extend(self._send_to_followers(ManagerLeft(rm_id=rm_id)))

    # -- restart

    def registered(self) -> Registered:
        """Return what a core that starts again has to know beside the images of partitions."""
        epochs = {name: partition.epoch for name, partition in self.by_name.items()}
        return self.registry.registered(epochs, self._epoch)

    def restore(self, message: CoreRestored, now_ns: int) -> list[Effect]:
        """Go on where a core ended: each resource manager is lost, and may come back.

        Order: event records, then per partition its schedulers with their snapshots, then facts.
        """
        # Epochs go on as well: an old timer or proposal must not meet a new life with its number.
        self._epoch = message.registered.last_epoch
        self.uuids.issued = message.issued_uuids
        begin = go_on if message.is_reported else await_reports
        self.registry.restore(message.registered)
        # The records first: the next facts then follow without a gap.
        effects: list[Effect] = [Send(to=EVENT_PUBLISHER, message=message.events)]
        for known in message.registered.managers:
            manager = self.registry.managers[known.registration.rm_id]
            effects.append(events_configured(manager))
            work = self.work(manager.rm_id, now_ns)
            for name, epoch in known.epochs.items():
                partition = self._made(manager, name, epoch)
                image = message.images[name]
                partition.restore(image, message.last_numbers.get(name, LastNumbers()))
                # Nothing is recorded before each planner has its snapshot: its replica begins at
                # that revision.
                for address, life in partition.lives().items():
                    snapshot = _snapshot(partition, image)
                    effects.extend([_started(address, life), Send(to=address, message=snapshot)])
                effects.extend(partition.token())
                begin(work.unit(partition), self.confirm_warning_ns(partition))
            # Suspended until it registers again: planners have their snapshot and decide nothing on
            # it.
            self._lose(work, manager)
            effects.extend(self.send_out(work))
            if self._is_unfinished(manager):
                # Under the key of the manager, so that what it sends when it is back waits behind
                # this.
                effects.extend(self.start(manager.rm_id, now_ns, partial(self._resume, manager)))
        return effects

    def _is_unfinished(self, manager: ResourceManager) -> bool:
        """Whether the core before this one ended in the middle of long work for a manager.

        A reload writes the checksum last: where it differs, the reload was not finished.
        """
        config = self.registry.config_of(manager.policy_group)
        return manager.checksum != config.checksum or any(
            self.by_name[name].state.long_work for name in manager.partitions
        )

    def _resume(self, manager: ResourceManager, job: ContextJob) -> Steps:
        """Go on with what the core before this one was in the middle of.

        What it was reloading keeps its mark until the reload comes to it: it is half done.
        """
        for name in tuple(manager.partitions):
            mark = self.by_name[name].state.long_work
            if mark is None:
                continue
            # The manager was leaving: nothing else of it matters.
            if mark.kind is LongWorkKind.MANAGER:
                yield from self.retire(job, manager.rm_id)
                return
            if mark.kind is LongWorkKind.RELOAD:
                # Whatever holds by now, and be it what held before.
                self.registry.forget_queues_of(manager)
                continue
            unit = job.work.unit(self.by_name[name])
            yield from _rest_of(job.now_doing(unit, mark.kind, mark.id, mark.detail), mark)
        yield from self.send_out_job(job)
        yield from self.reload(job, manager)

    def lose(self, manager: ResourceManager, now_ns: int) -> list[Effect]:
        """Its state and timers go on; nothing is decided until it registers again."""
        work = self.work(manager.rm_id, now_ns)
        self._lose(work, manager)
        return self.send_out(work)

    def _lose(self, work: Work, manager: ResourceManager) -> None:
        # No new work is decided before it is back, because nobody would bind it.
        manager.is_lost = True
        self._record_suspension(work, manager)
        due = RMPartitionsRemove(rm_id=manager.rm_id, generation=manager.generation)
        due_ns = work.now_ns + self._absence_ns(manager)
        work.wanted.append(SetTimer(name=f"paused/{manager.rm_id}", due_ns=due_ns, message=due))

    def _absence_ns(self, manager: ResourceManager) -> int:
        return manager.extra.paused_timeout_ns or self.settings.paused_timeout_ns

    def follow_backpressure(self, manager: ResourceManager, now_ns: int) -> list[Effect]:
        """Decide nothing while its callback is behind, or go on."""
        work = self.work(manager.rm_id, now_ns)
        self._record_suspension(work, manager)
        return self.send_out(work)

    def come_back(self, message: RMRegistration, now_ns: int) -> list[Effect]:
        """Take back a manager that was missing since the restart: what it reports is compared.

        No clean slate: its partitions, timers and UUIDs go on.
        """
        manager = self.registry.come_back(message)
        effects: list[Effect] = [CancelTimer(name=f"paused/{manager.rm_id}")]
        # Planners that match what its new callback can answer are there before anything is decided:
        # until the fact below the partitions are suspended.
        for name in manager.partitions:
            effects.extend(self._plan_anew(self.by_name[name], manager.capabilities))
        work = self.work(manager.rm_id, now_ns)
        self._record_suspension(work, manager)
        # Nothing is awaited where the core was copied and not restarted.
        if any(self.by_name[name].awaited is not None for name in manager.partitions):
            due = ReturnDue(rm_id=manager.rm_id, generation=manager.generation)
            due_ns = now_ns + self._absence_ns(manager)
            work.wanted.append(SetTimer(name=f"return/{manager.rm_id}", due_ns=due_ns, message=due))
        return [*effects, *self.send_out(work)]

    def _plan_anew(self, partition: PartitionContext, capabilities: Capabilities) -> list[Effect]:
        # The same callback can answer the same questions: its planners stay as they are.
        if not partition.has_other(capabilities):
            return []
        partition.plan_anew(capabilities)
        effects: list[Effect] = []
        # Replaced as after a failure, though none is counted.
        for former in tuple(partition.schedulers.values()):
            effects.extend(self._succeeded(partition, former))
        return effects

    def end_return(self, manager: ResourceManager, job: ContextJob) -> Steps:
        """Drop the allocations that a returning manager has not reported in time."""
        for name in manager.partitions:
            yield from drop_awaited(job.work.unit(self.by_name[name]))
        yield from self.send_out_job(job)

    def _open(self, manager: ResourceManager, name: str) -> list[Effect]:
        full_name = partition_name(manager.rm_id, name)
        # A new life, and a new number for it: everything late names another.
        self._epoch += 1
        self.registry.changes += 1
        partition = self._made(manager, full_name, self._epoch)
        manager.partitions.append(full_name)
        started = [_started(address, life) for address, life in partition.lives().items()]
        return [*started, *partition.token()]

    def _made(self, manager: ResourceManager, full_name: str, epoch: int) -> PartitionContext:
        partition = self.by_name[full_name] = PartitionContext(
            Life(
                partition=full_name,
                epoch=epoch,
                rm_id=manager.rm_id,
                capabilities=manager.capabilities,
            ),
            schedulers=self._schedulers,
            commit=self._commit_own,
            uuids=self.uuids,
            settings=self.settings,
            policies=self.policies,
        )
        return partition

    def _detach(self, manager: ResourceManager, work: Work, partition: PartitionContext) -> None:
        """Drop a partition whole. What arrives later names an epoch that is gone."""
        del self.by_name[partition.name]
        # What its unit would still send goes with it; `facts_so_far` has sent what mattered.
        work.units.pop(partition.name, None)
        manager.partitions.remove(partition.name)
        self.registry.changes += 1

    def _publish_closed(self, job: ContextJob, partition: PartitionContext) -> Steps:
        name, out = partition.name, job.out
        closed = s.PartitionClosed(partition=name, epoch=partition.epoch, rm_id=partition.rm_id)
        out.extend(Send(to=subscriber, message=closed) for subscriber in self.subscribers)
        for cancelled in cancelled_histories(partition):
            job.out.append(cancelled)
            # One a finished application: thousands, so in pieces.
            yield 1
        job.out.extend(StopMachine(address=address) for address in partition.schedulers.values())
        gone = Declined(reason=f"partition {name} has gone")
        # A caller that waits for an explanation would wait for ever.
        job.out.extend(Send(to=asker, message=gone) for asker in partition.explaining)

    def reload_group(self, group: str, end: AllEnded, now_ns: int) -> list[Effect]:
        """Bring every member under the configuration that holds for the group now."""
        effects: list[Effect] = []
        for manager in self.registry.members(group):
            effects.extend(self.reload_other(manager, end, now_ns))
        return effects

    def reload_all_of(self, manager: ResourceManager, job: ContextJob, end: AllEnded) -> Steps:
        """Reload the group of one for which this job works."""
        for member in self.registry.members(manager.policy_group):
            # In this job, which has the key of this manager already; the others have jobs of their
            # own.
            if member is manager:
                yield from self.reload(job, manager)
            else:
                job.out.extend(self.reload_other(member, end, job.now_ns))
        job.out.extend(end.arrived())

    def reload_other(self, manager: ResourceManager, end: AllEnded, now_ns: int) -> list[Effect]:
        """Reload a manager for which no job works yet, behind its own work under way."""
        # Counted before the job begins, which may end at once.
        end.awaited += 1

        def steps(job: ContextJob) -> Steps:
            # It may have left, or registered anew, while this waited behind its work.
            if self.registry.managers.get(manager.rm_id) is manager and not manager.is_leaving:
                yield from self.reload(job, manager)
            job.out.extend(end.arrived())

        return self.start(manager.rm_id, now_ns, steps)

    def start(self, rm_id: str, now_ns: int, steps: Callable[[ContextJob], Steps]) -> list[Effect]:
        """Begin a job behind all else that concerns this resource manager."""
        return self.slices.do(rm_id, lambda now_ns: self.job(rm_id, now_ns, steps), now_ns)

    def job(self, rm_id: str, now_ns: int, steps: Callable[[ContextJob], Steps]) -> ContextJob:
        return ContextJob(self.work(rm_id, now_ns), steps, lambda: self.subscribers)

    def report_refusal(self, reason: str, now_ns: int) -> list[Effect]:
        """Have it among the events of every partition that the configuration concerns."""
        effects: list[Effect] = []
        # A work is of one resource manager, and these partitions are of several.
        for partition in self.by_name.values():
            work = self.work(partition.rm_id, now_ns)
            work.unit(partition).record(f.ConfigurationRefused(reason=reason, at_ns=now_ns))
            effects.extend(self.send_out(work))
        return effects

    def report_policy(
        self, partition: PartitionContext, message: s.ReportPolicyFailed, now_ns: int
    ) -> list[Effect]:
        """Each planner finds out by itself; it is made known once."""
        if not partition.note_failed_policy(message):
            return []
        fact = f.PolicyFailed(
            queue=message.queue,
            policy=message.policy,
            failure=message.failure,
            is_slow=message.is_slow,
            at_ns=now_ns,
        )
        work = self.work(partition.rm_id, now_ns)
        work.unit(partition).record(fact)
        line = Log(text=f"{partition.name}: {fact.text}", is_warning=True, is_alarm=True)
        return [*self.send_out(work), line]

    def report_act(
        self, what: str, by: str, now_ns: int, names: Iterable[str] | None = None
    ) -> list[Effect]:
        """Have it in the log, and among the events of these partitions, or of all."""
        effects: list[Effect] = [line_of(what, by)]
        for name in tuple(self.by_name) if names is None else names:
            partition = self.by_name[name]
            work = self.work(partition.rm_id, now_ns)
            record_act(work.unit(partition), what, by)
            effects.extend(self.send_out(work))
        return effects

    def reload(self, job: ContextJob, manager: ResourceManager) -> Steps:
        """Bring one under the configuration of its group, if it is under another."""
        config = self.registry.config_of(manager.policy_group)
        # Several jobs may be asked for the same reload: the first one has done it.
        if manager.checksum == config.checksum:
            return
        # A work of its own. What `retire` announced for the former life of a manager is dropped
        # with the work of that, and never reaches the new callback (H-19).
        job.work = work = self.work(manager.rm_id, job.now_ns)
        described = {partition_name(manager.rm_id, c.name): c for c in config.partitions}
        # Partitions that the text does not describe any more go, with all that is in them (H-18).
        gone = [self.by_name[name] for name in manager.partitions if name not in described]
        for partition in gone:
            # Emptied fact by fact: replica, events and quotas learn of it as of any other end.
            yield from _empty(job.now_doing(work.unit(partition), LongWorkKind.RELOAD))
        for name, partition_config in described.items():
            is_new = name not in self.by_name
            if is_new:
                # Opened before it is configured: schedulers have to exist before the first fact of
                # their partition.
                job.out.extend(self._open(manager, partition_config.name))
            unit = job.now_doing(work.unit(self.by_name[name]), LongWorkKind.RELOAD)
            yield from configure(unit, partition_config)
            self.by_name[name].forget_failed_policies()
            if is_new and manager.is_suspended:
                # A new partition is suspended by a fact like those that were there when its manager
                # was lost.
                unit.record(manager.suspension(work.now_ns))
        job.out.extend(self.show(manager))
        yield from self.send_out_job(job, gone)
        # After their last facts have gone out: subscribers take none of a closed partition.
        for partition in gone:
            self._detach(manager, work, partition)
        # Last: a core that starts again in between still sees that it is to be reloaded.
        manager.checksum = config.checksum
        self.registry.changes += 1
        for partition in gone:
            yield from self._publish_closed(job, partition)

    # -- those who follow from outside

    def follow(self, follower: str) -> list[Effect]:
        """Say how everything stands; what becomes true from here on comes as facts."""
        # Among those who get facts from here on; what stands is sent in this same handler, so
        # between the two nothing can become true.
        self.subscribers = (*self.subscribers, follower)
        shown = [self._shown(manager) for manager in self.registry.managers.values()]
        stand = (
            s.PartitionSnapshot(partition=name, epoch=it.epoch, image=image_of(it.state))
            for name, it in self.by_name.items()
        )
        # Asked between two facts, so that both publishers go on with the same number.
        return [
            *(Send(to=follower, message=message) for message in (*shown, *stand)),
            Send(to=EVENT_PUBLISHER, message=HistoryRequested(follower=follower)),
        ]

    def unfollow(self, follower: str) -> None:
        self.subscribers = tuple(it for it in self.subscribers if it != follower)

    def configured(self, manager: ResourceManager) -> list[Effect]:
        """Tell the event publisher and those who follow, at one place among the facts.

        Records have the same numbers only where both count by the same wishes.
        """
        return [events_configured(manager), *self.show(manager)]

    def show(self, manager: ResourceManager) -> list[Effect]:
        """Tell followers what a resource manager brought, and its configuration."""
        # Nobody follows in most cores, and then nothing is built.
        followers = self.subscribers[1:]
        return self._send_to_followers(self._shown(manager)) if followers else []

    def _send_to_followers(self, message: Message) -> list[Effect]:
        return [Send(to=follower, message=message) for follower in self.subscribers[1:]]

    def _shown(self, manager: ResourceManager) -> ManagerDescribed:
        return ManagerDescribed(
            rm_id=manager.rm_id,
            version=manager.version,
            policy_group=manager.policy_group,
            build_info=manager.build_info,
            extra_config=manager.extra_config,
            extra=manager.extra,
            config=self.registry.config_of(manager.policy_group),
            capabilities=manager.capabilities,
        )

    def failed_policies(self) -> list[str]:
        return [
            f"{name}: {message.policy} of {message.queue or 'the nodes'}: {message.failure}"
            for name, partition in sorted(self.by_name.items())
            for message in partition.failed_policies.values()
        ]

    def counts(self) -> CountsFound:
        return CountsFound(
            issued_uuids=self.uuids.issued,
            stale_messages=self.stale,
            scheduling_errors=self.scheduling_errors,
            rejected_asks=self.rejected_asks,
            refused_node_actions=self.refused_node_actions,
            failed_nodes=tuple(f"{id_} of {rm_id}" for rm_id, id_ in sorted(self.failed_nodes)),
            failed_machines=self.failures.canonical(),
            failed_policies=tuple(self.failed_policies()),
        )


def _empty(unit: UnitOfWork) -> Steps:
    """End all that is in a partition that is about to go: applications, then nodes."""
    for id_, app in (yield from drawn_off(unit.state.applications.items())):
        # Failing first: nothing of it completes on the way out, which would announce success.
        fail(unit, app, PARTITION_REMOVED)
        yield from remove_application(unit, id_)
    for node in (yield from drawn_off(unit.state.nodes.values())):
        yield from remove_node(unit, node)


def _rest_of(unit: UnitOfWork, work: LongWork) -> Steps:
    """Do what is left of something that a core before this one had begun."""
    app, node = unit.state.applications.get(work.id), unit.state.nodes.get(work.id)
    if work.kind is LongWorkKind.APPLICATION and app is not None:
        yield from remove_application(unit, app.id)
    elif work.kind is LongWorkKind.NODE and node is not None:
        yield from remove_node(unit, node)
    elif work.kind is LongWorkKind.TIMER and app is not None:
        yield from expire(unit, app, work.detail)
    # What had ended in the slices of before may be all that an application waited for.
    for app in (yield from drawn_off(unit.state.applications.values())):
        if app.state in {ApplicationState.FAILING, ApplicationState.RESUMING}:
            work_gone(unit, app)


REJECTED_TOLD_MAX = 1_000
"""Rejected asks of one partition that are answered at once."""


def _answered(
    partition: PartitionContext, asked: ExplainRequested, found: Explanation, now_ns: int
) -> Effect:
    """Add what the planner cannot know: which asks were never taken."""
    rejections = partition.rejections
    part = asked.waiting
    if part is not None and not (part.explained and part.serial == part.place == 0):
        pass  # The rejected ones do not wait: a list has them with its first part.
    elif not asked.application_id:
        # A list of everything: the newest rejections are appended.
        found = replace(found, rejected=rejections.newest(REJECTED_TOLD_MAX, now_ns))
    elif not found.waiting:
        # About one ask: where nothing waits, it may have been rejected.
        why = rejections.explain(asked.application_id, asked.key, now_ns)
        found = found if why is None else replace(found, waiting=(why,))
    return Send(to=asked.reply_to, message=found)


def _snapshot(partition: PartitionContext, image: Image) -> s.PartitionSnapshot:
    return s.PartitionSnapshot(partition=partition.name, epoch=partition.epoch, image=image)


def _asked(partition: PartitionContext, question: ExplainRequested) -> Effect:
    """Pass it on to the scheduler that plans, and keep it: if that one fails, it is asked again."""
    # There is one: `explain` passes on only where Context has no planner.
    planning = partition.planning
    assert planning is not None
    partition.explaining[question.reply_to] = Explaining(planning, question)
    return Send(to=planning, message=question)


def _started(scheduler: str, life: Life) -> Effect:
    return StartMachine(address=scheduler, kind="scheduler", arguments={"life": life})


def events_configured(manager: ResourceManager) -> Effect:
    message = EventsConfigured(rm_id=manager.rm_id, extra=manager.extra)
    return Send(to=EVENT_PUBLISHER, message=message)
