"""The machine itself: resource managers, their partitions, and a handler for each message."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.config import SchedulerConfig
from yunikorn_actors.domain.ids import partition_name
from yunikorn_actors.domain.snapshot import snapshot
from yunikorn_actors.machines.context.applications import (
    add_application,
    remove_application,
)
from yunikorn_actors.machines.context.asks import report_waiting, take_item
from yunikorn_actors.machines.context.commit import commit
from yunikorn_actors.machines.context.configuration import clean, configure
from yunikorn_actors.machines.context.nodes import act_on_node, remove_node
from yunikorn_actors.machines.context.registry import Registry, ResourceManager
from yunikorn_actors.machines.context.releases import release_allocations, release_asks
from yunikorn_actors.machines.context.timeouts import on_timer
from yunikorn_actors.machines.context.work import Partition, Uuids, Work
from yunikorn_actors.machines.machine import (
    CancelTimer,
    Effect,
    Send,
    SetTimer,
    StartMachine,
    StopMachine,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Message,
    scheduler_address,
)
from yunikorn_actors.messages.queries import Accepted, StateDump, StateDumpRequested


class Context:
    def __init__(self, *, settings: Settings, topology: str, instance: str) -> None:
        self._settings = settings
        self._topology = topology
        self._uuids = Uuids(instance)
        self._registry = Registry()
        self._epoch = 0
        self.partitions: dict[str, Partition] = {}
        self.stale = 0
        """Messages of a former life of a partition: late proposals and timers."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        return HANDLERS[type(message)](self, message, now_ns)

    def canonical_state(self) -> dict[str, Any]:
        return {
            "managers": {
                rm_id: manager.canonical()
                for rm_id, manager in sorted(self._registry.managers.items())
            },
            "partitions": {
                name: snapshot(partition.state)
                for name, partition in sorted(self.partitions.items())
            },
            "issued_uuids": self._uuids.issued,
            "stale_messages": self.stale,
        }

    # -- resource managers

    def _on_rm_registration(self, message: rm.RMRegistration, now_ns: int) -> list[Effect]:
        """Register anew: everything of an earlier registration goes first (G25, H-19)."""
        reason = self._registry.conflict(message)
        if reason is not None:
            return [
                Send(
                    to=RM_PROXY,
                    message=rm.RMRegistrationRejected(
                        rm_id=message.rm_id,
                        callback=message.callback,
                        reason=reason,
                        reply_to=message.reply_to,
                    ),
                )
            ]
        effects = self._retire(message.rm_id, now_ns)
        manager = self._registry.add(message)
        answer = rm.RMRegistered(
            rm_id=message.rm_id, callback=message.callback, reply_to=message.reply_to
        )
        effects.append(Send(to=RM_PROXY, message=answer))
        return [*effects, *self._reload_group(manager.policy_group, now_ns)]

    def _on_rm_lost(self, message: rm.RMLost, now_ns: int) -> list[Effect]:
        """State and timers go on; nothing is decided until it registers again."""
        manager = self._registry.managers.get(message.rm_id)
        if manager is None or manager.is_paused:
            return []
        manager.is_paused = True
        work = self._work(manager.rm_id, now_ns)
        for name in manager.partitions:
            work.record(self.partitions[name], f.SchedulingHeld(held=True, at_ns=now_ns))
        due = rm.RMPartitionsRemove(rm_id=manager.rm_id, generation=manager.generation)
        work.timers.append(
            SetTimer(
                name=f"paused/{manager.rm_id}",
                due_ns=now_ns + manager.paused_timeout_ns(self._settings),
                message=due,
            )
        )
        return self._finish(work)

    def _on_rm_unregistered(self, message: rm.RMUnregistered, now_ns: int) -> list[Effect]:
        return self._retire(message.rm_id, now_ns)

    def _on_rm_partitions_remove(self, message: rm.RMPartitionsRemove, now_ns: int) -> list[Effect]:
        manager = self._registry.managers.get(message.rm_id)
        if manager is None or manager.generation != message.generation:
            return []
        return self._retire(message.rm_id, now_ns)

    def _retire(self, rm_id: str, now_ns: int) -> list[Effect]:
        """Remove everything of a resource manager; nobody is left to be told."""
        manager = self._registry.remove(rm_id)
        if manager is None:
            return []
        effects: list[Effect] = [CancelTimer(name=f"paused/{rm_id}")] if manager.is_paused else []
        for name in manager.partitions:
            work = self._work(rm_id, now_ns)
            self._empty(work, self.partitions[name])
            effects.extend([*work.silent_effects(), *self._close(name)])
        return effects

    def _empty(self, work: Work, partition: Partition) -> None:
        for id_ in tuple(partition.state.applications):
            remove_application(work, partition, id_)
        for node in tuple(partition.state.nodes.values()):
            remove_node(work, partition, node)

    def _open(self, manager: ResourceManager, name: str) -> list[Effect]:
        full_name = partition_name(manager.rm_id, name)
        self._epoch += 1
        scheduler = None
        effects: list[Effect] = []
        if self._topology == "proposing":
            scheduler = scheduler_address(full_name, self._epoch)
            arguments = {
                "partition": full_name,
                "epoch": self._epoch,
                "reports": manager.hears_states,
            }
            effects.append(StartMachine(address=scheduler, kind="scheduler", arguments=arguments))
        self.partitions[full_name] = Partition(
            full_name,
            rm_id=manager.rm_id,
            epoch=self._epoch,
            scheduler=scheduler,
            reports=manager.hears_states,
        )
        manager.partitions.append(full_name)
        return effects

    def _close(self, name: str) -> list[Effect]:
        """Drop a partition whole. Timers that fire later name an epoch that is gone."""
        partition = self.partitions.pop(name)
        closed = s.PartitionClosed(partition=name, epoch=partition.epoch)
        effects: list[Effect] = [Send(to=EVENT_PUBLISHER, message=closed)]
        if partition.scheduler is not None:
            effects.append(StopMachine(address=partition.scheduler))
        return effects

    # -- configuration

    def _on_rm_config_update(self, message: rm.RMConfigUpdate, now_ns: int) -> list[Effect]:
        manager = self._registry.managers.get(message.rm_id)
        reason = None
        if manager is None or manager.is_paused:
            reason = f"resource manager {message.rm_id!r} is not registered: register it first"
        elif message.policy_group not in {"", manager.policy_group}:
            reason = (
                f"resource manager {message.rm_id!r} is in policy group "
                f"{manager.policy_group!r}, not {message.policy_group!r}: register it anew"
            )
        if manager is None or reason is not None:
            rejected = rm.RMConfigRejected(reason=reason or "", reply_to=message.reply_to)
            return [Send(to=RM_PROXY, message=rejected)]
        manager.extra_config = message.extra_config
        self._registry.bring(manager.policy_group, message.config)
        effects = self._reload_group(manager.policy_group, now_ns)
        answer = rm.RMConfigUpdated(reply_to=message.reply_to)
        return [*effects, Send(to=RM_PROXY, message=answer)]

    def _on_admin_config_update(self, message: rm.AdminConfigUpdate, now_ns: int) -> list[Effect]:
        self._registry.admin = message.config
        groups = dict.fromkeys(m.policy_group for m in self._registry.managers.values())
        effects = [effect for group in groups for effect in self._reload_group(group, now_ns)]
        return [*effects, Send(to=message.reply_to, message=Accepted())]

    def _reload_group(self, group: str, now_ns: int) -> list[Effect]:
        """Bring every member under the configuration that holds for the group now."""
        config = self._registry.config_of(group)
        return [
            effect
            for manager in self._registry.members(group)
            if manager.checksum != config.checksum
            for effect in self._reload(manager, config, now_ns)
        ]

    def _reload(
        self, manager: ResourceManager, config: SchedulerConfig, now_ns: int
    ) -> list[Effect]:
        manager.checksum = config.checksum
        work = self._work(manager.rm_id, now_ns)
        effects: list[Effect] = []
        closing: list[Effect] = []
        described = {partition_name(manager.rm_id, c.name): c for c in config.partitions}
        for name in [name for name in manager.partitions if name not in described]:
            self._empty(work, self.partitions[name])
            manager.partitions.remove(name)
            closing.extend(self._close(name))
        for name, partition_config in described.items():
            if name not in self.partitions:
                effects.extend(self._open(manager, partition_config.name))
            configure(work, self.partitions[name], partition_config)
        return [*effects, *self._finish(work), *closing]

    # -- requests of resource managers

    def _on_rm_update_allocation(self, message: rm.RMUpdateAllocation, now_ns: int) -> list[Effect]:
        """Asks first, then what takes asks back, then what takes allocations back."""
        work = self._work(message.rm_id, now_ns)
        for item in message.asks:
            partition = self.partitions.get(item.partition)
            if partition is None:
                spec = item.spec
                work.reject_ask(
                    item,
                    f"Failed to find partition {item.partition}, for application "
                    f"{spec.application_id} and allocation {spec.key}",
                )
            else:
                take_item(work, partition, item)
        for ask_release in message.ask_releases:
            if (partition := self.partitions.get(ask_release.partition)) is not None:
                release_asks(work, partition, ask_release)
        for release in message.releases:
            if (partition := self.partitions.get(release.partition)) is not None:
                release_allocations(work, partition, release)
        return self._finish(work)

    def _on_rm_update_application(
        self, message: rm.RMUpdateApplication, now_ns: int
    ) -> list[Effect]:
        work = self._work(message.rm_id, now_ns)
        for new in message.added:
            partition = self.partitions.get(new.partition)
            if partition is None:
                id_ = new.spec.application_id
                reason = (
                    f"Failed to add application {id_} to partition {new.partition}, "
                    "partition doesn't exist"
                )
                work.rejected_apps.append(rm.Rejected(id=id_, reason=reason))
            else:
                add_application(work, partition, new.spec)
        for old in message.removed:
            if (partition := self.partitions.get(old.partition)) is not None:
                remove_application(work, partition, old.application_id)
        return self._finish(work)

    def _on_rm_update_node(self, message: rm.RMUpdateNode, now_ns: int) -> list[Effect]:
        work = self._work(message.rm_id, now_ns)
        for item in message.nodes:
            partition = self.partitions.get(item.partition)
            if partition is not None:
                act_on_node(work, partition, item)
            elif item.action.name.startswith("CREATE"):
                reason = f"failed to find partition {item.partition} for new node {item.node_id}"
                work.rejected_nodes.append(rm.Rejected(id=item.node_id, reason=reason))
        return self._finish(work)

    # -- scheduling

    def _on_propose_allocations(self, message: s.ProposeAllocations, now_ns: int) -> list[Effect]:
        partition = self._current(message.partition, message.epoch)
        if partition is None or partition.scheduler is None:
            return []
        work = self._work(partition.rm_id, now_ns)
        refusals: list[Effect] = []
        for proposal in message.proposals:
            reason = commit(work, partition, proposal)
            if reason is not None:
                refusal = s.ProposalRejected(proposal_id=proposal.proposal_id, reason=reason)
                refusals.append(Send(to=partition.scheduler, message=refusal))
        return [*self._finish(work), *refusals]

    def _on_report_waiting(self, message: s.ReportWaiting, now_ns: int) -> list[Effect]:
        partition = self._current(message.partition, message.epoch)
        if partition is None:
            return []
        work = self._work(partition.rm_id, now_ns)
        report_waiting(work, partition, message.observations)
        return self._finish(work)

    def _on_run_cycle(self, message: s.RunCycle, now_ns: int) -> list[Effect]:
        """Plan on the truth itself; nothing can have changed since, so nothing is refused."""
        partition = self._current(message.partition, message.epoch)
        if partition is None or partition.planner is None:
            return []
        partition.cycle_is_coming = False
        work = self._work(partition.rm_id, now_ns)
        for proposal in partition.planner.plan(self._settings.cycle_max):
            refusal = commit(work, partition, proposal)
            if refusal is not None:
                partition.planner.reject(proposal.proposal_id)
        return self._finish(work)

    def _next_cycle(self, partition: Partition) -> list[Effect]:
        planner = partition.planner
        if planner is None or partition.cycle_is_coming or not planner.has_work:
            return []
        partition.cycle_is_coming = True
        cycle = s.RunCycle(partition=partition.name, epoch=partition.epoch)
        return [Send(to=CONTEXT, message=cycle)]

    # -- timers

    def _on_application_timer_due(
        self, message: s.ApplicationTimerDue, now_ns: int
    ) -> list[Effect]:
        partition = self._current(message.partition, message.epoch)
        if partition is None:
            return []
        work = self._work(partition.rm_id, now_ns)
        on_timer(work, partition, message)
        return self._finish(work)

    def _on_history_expiry_due(self, message: s.HistoryExpiryDue, now_ns: int) -> list[Effect]:
        partition = self._current(message.partition, message.epoch)
        if partition is None or message.serial not in partition.state.finished:
            return []
        work = self._work(partition.rm_id, now_ns)
        fact = f.ApplicationForgotten(serial=message.serial, at_ns=now_ns)
        work.record(partition, fact)
        return self._finish(work)

    def _on_queue_cleaning_due(self, message: s.QueueCleaningDue, now_ns: int) -> list[Effect]:
        partition = self._current(message.partition, message.epoch)
        if partition is None:
            return []
        work = self._work(partition.rm_id, now_ns)
        clean(work, partition, message.path, message.generation)
        return self._finish(work)

    # -- questions

    def _on_state_dump_requested(self, message: StateDumpRequested, _: int) -> list[Effect]:
        return [Send(to=message.reply_to, message=StateDump(state=self.canonical_state()))]

    # -- parts of handlers

    def _work(self, rm_id: str, now_ns: int) -> Work:
        return Work(rm_id, now_ns, self._settings, self._uuids)

    def _finish(self, work: Work) -> list[Effect]:
        for partition in work.touched():
            if partition.planner is not None:
                findings = partition.planner.take_findings()
                report_waiting(work, partition, s.observations_of(findings))
        effects = work.effects()
        for partition in work.touched():
            if self.partitions.get(partition.name) is partition:
                effects.extend(self._next_cycle(partition))
        return effects

    def _current(self, name: str, epoch: int) -> Partition | None:
        partition = self.partitions.get(name)
        if partition is None or partition.epoch != epoch:
            self.stale += 1
            return None
        return partition


ContextInbox = (
    rm.RMRegistration
    | rm.RMLost
    | rm.RMUnregistered
    | rm.RMPartitionsRemove
    | rm.RMConfigUpdate
    | rm.AdminConfigUpdate
    | rm.RMUpdateAllocation
    | rm.RMUpdateApplication
    | rm.RMUpdateNode
    | s.ProposeAllocations
    | s.ReportWaiting
    | s.RunCycle
    | s.ApplicationTimerDue
    | s.HistoryExpiryDue
    | s.QueueCleaningDue
    | StateDumpRequested
)

HANDLERS: dict[type, Callable[[Context, Any, int], list[Effect]]] = {
    rm.RMRegistration: Context._on_rm_registration,
    rm.RMLost: Context._on_rm_lost,
    rm.RMUnregistered: Context._on_rm_unregistered,
    rm.RMPartitionsRemove: Context._on_rm_partitions_remove,
    rm.RMConfigUpdate: Context._on_rm_config_update,
    rm.AdminConfigUpdate: Context._on_admin_config_update,
    rm.RMUpdateAllocation: Context._on_rm_update_allocation,
    rm.RMUpdateApplication: Context._on_rm_update_application,
    rm.RMUpdateNode: Context._on_rm_update_node,
    s.ProposeAllocations: Context._on_propose_allocations,
    s.ReportWaiting: Context._on_report_waiting,
    s.RunCycle: Context._on_run_cycle,
    s.ApplicationTimerDue: Context._on_application_timer_due,
    s.HistoryExpiryDue: Context._on_history_expiry_due,
    s.QueueCleaningDue: Context._on_queue_cleaning_due,
    StateDumpRequested: Context._on_state_dump_requested,
}
