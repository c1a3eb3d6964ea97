"""The state of one partition, and the only way to change it.

`apply` takes one fact and brings every book up to date. It is dumb on purpose: whoever writes a
fact has checked it, and every holder of this class (Context, the replica of a scheduler, a replay)
goes through the same code. The dictionaries of amounts are changed in place and never replaced,
so an application can keep the tuple of all books that one of its allocations is written into.

Pending counts the repeats that still wait; allocated counts what is charged, placeholders too
(an application counts those apart).
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain import (
    gang_changes,
    node_changes,
    preemption_changes,
    work_changes,
)
from yunikorn_actors.domain.allocation import (
    ForeignAllocation,
)
from yunikorn_actors.domain.application import (
    COUNTS_AS_RUNNING,
    FINISHED,
    GANG_IS_OVER,
    LEAVES_USER_COUNT,
    TRANSITIONS,
    Application,
    ApplicationEvent,
    ApplicationState,
    FinishedApplication,
    StateLog,
    Timer,
)
from yunikorn_actors.domain.books import (
    attach,
    count_holding,
    detach,
    forget_holding,
    relink,
)
from yunikorn_actors.domain.config import PartitionConfig
from yunikorn_actors.domain.limits import Limit
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.user import Usage


class PartitionState:
    """Truth in Context, a replica in Scheduler."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.revision = 0
        self.config: PartitionConfig | None = None
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self.capacity: Resource = {}
        """Sum over the nodes: the max of the root queue. A type no node has is absent."""
        self.applications: dict[str, Application] = {}
        self.finished: dict[int, FinishedApplication] = {}
        self.rejected: dict[int, None] = {}
        """Serials of those among them that were never accepted, the oldest first."""
        self.users: dict[str, dict[str, Usage]] = {}
        self.groups: dict[str, dict[str, Usage]] = {}
        self.foreign: dict[str, ForeignAllocation] = {}
        self.quotas: dict[str, int] = {}
        """Queues whose maximum is to be enforced, and when."""
        self.schedulable_count = 0
        """Nodes that take work."""
        self.admitted: dict[int, str] = {}
        """Serial to id of the admitted gangs of which something is still to come."""
        self.unconfirmed: dict[str, str] = {}
        """UUID to application of what was asked back, the oldest first, until it is reported."""
        self.owners: dict[str, str] = {}
        """UUID of each allocation to its application."""
        self.reservation_count = 0
        self.refused_node_actions = 0
        self.held = False
        self.behind = False
        """Its resource manager is away: nothing is decided."""

    @property
    def root(self) -> Queue:
        return self.queues["root"]

    @property
    def allocation_count(self) -> int:
        return len(self.owners)

    def owner_of(self, uuid: str) -> Application | None:
        """Return the application that has this allocation, if any does."""
        id_ = self.owners.get(uuid)
        return None if id_ is None else self.applications[id_]

    def queue(self, path: str) -> Queue | None:
        """Look a queue up by its path; names of queues ignore case."""
        return self.queues.get(path.lower())

    def usage_of(self, limit: Limit) -> Usage:
        """What counts against the limit of a user or group."""
        return (self.groups if limit.of_group else self.users)[limit.owner][limit.path]

    def apply(self, fact: f.Fact) -> None:
        self.revision += 1
        _APPLY[type(fact)](self, fact)

    # -- the partition and its queues

    def _on_configured(self, fact: f.PartitionConfigured) -> None:
        self.config = fact.config

    def _on_scheduling_held(self, fact: f.SchedulingHeld) -> None:
        self.held, self.behind = fact.held, fact.behind

    def _on_machine_replaced(self, fact: f.MachineReplaced) -> None:
        """Nothing is different: it is told, no more."""

    def _on_queue_added(self, fact: f.QueueAdded) -> None:
        parent_path, _, name = fact.path.rpartition(".")
        parent = self.queues[parent_path] if parent_path else None
        queue = Queue(name, fact.spec, parent)
        self.queues[fact.path] = queue
        if parent is not None:
            parent.children[name] = queue

    def _on_queue_reconfigured(self, fact: f.QueueReconfigured) -> None:
        self.queues[fact.path].configure(fact.spec)

    def _on_queue_state_changed(self, fact: f.QueueStateChanged) -> None:
        self.queues[fact.path].state = fact.state

    def _on_queue_removed(self, fact: f.QueueRemoved) -> None:
        queue = self.queues.pop(fact.path)
        self.quotas.pop(fact.path, None)
        if queue.parent is not None:
            del queue.parent.children[queue.name]

    # -- applications

    def _on_application_added(self, fact: f.ApplicationAdded) -> None:
        queue = self.queues[fact.queue]
        usages = attach(self.users, fact.spec.user, queue)
        app = Application(
            fact.spec, serial=fact.serial, queue=queue, usages=usages, now_ns=fact.at_ns
        )
        self.applications[app.id] = app
        queue.applications[app.serial] = app.id

    def _on_application_rejected(self, fact: f.ApplicationRejected) -> None:
        self.rejected[fact.serial] = None
        self.finished[fact.serial] = FinishedApplication(
            spec=fact.spec,
            serial=fact.serial,
            queue="",
            state=REJECTED,
            message=fact.reason,
            state_log=StateLog([(fact.at_ns, REJECTED)]),
            submitted_ns=fact.at_ns,
        )

    def _on_application_state_changed(self, fact: f.ApplicationStateChanged) -> None:
        app = self.applications.get(fact.application_id)
        if app is None or app.serial != fact.serial:
            finished = self.finished[fact.serial]
            finished.state = fact.state
            finished.state_log.note(fact.at_ns, fact.state)
            return
        counted, counts = app.state in COUNTS_AS_RUNNING, fact.state in COUNTS_AS_RUNNING
        if counted is not counts:
            for level in app.queue.lineage:
                level.running_apps += 1 if counts else -1
        if counts and not app.started_ns:
            app.started_ns = fact.at_ns
        app.state = fact.state
        if fact.state in GANG_IS_OVER:
            gang_changes.dissolve_gang(self, app)
        app.state_log.note(fact.at_ns, fact.state)
        if fact.state in LEAVES_USER_COUNT:
            for usage in (*app.usages, *app.group_usages):
                usage.running.pop(app.serial, None)
        count_holding(app)
        if fact.state in FINISHED:
            self._detach(app)
            self.finished[app.serial] = FinishedApplication(
                spec=app.spec,
                serial=app.serial,
                queue=app.queue.path,
                state=fact.state,
                message=fact.message,
                state_log=app.state_log,
                submitted_ns=app.submitted_ns,
                started_ns=app.started_ns,
                history=app.history,
            )

    def _on_application_removed(self, fact: f.ApplicationRemoved) -> None:
        app = self.applications[fact.application_id]
        if app.state in COUNTS_AS_RUNNING:
            for level in app.queue.lineage:
                level.running_apps -= 1
        self._detach(app)

    def _on_application_forgotten(self, fact: f.ApplicationForgotten) -> None:
        del self.finished[fact.serial]
        self.rejected.pop(fact.serial, None)

    def _on_application_summarized(self, _: f.ApplicationSummarized) -> None:
        """It is told and nothing more: what it says has been kept as it came about."""

    def _detach(self, app: Application) -> None:
        """The application leaves the active ones, its queue, and the books of its user."""
        forget_holding(app)
        gang_changes.forget_gang(self, app)
        del self.applications[app.id]
        del app.queue.applications[app.serial]
        detach(self.users, app.spec.user, app)
        if app.group:
            detach(self.groups, app.group, app)

    def _on_application_linked(self, fact: f.ApplicationLinked) -> None:
        relink(self.groups, self.applications[fact.application_id], fact.group)

    def _on_application_crowded(self, fact: f.ApplicationCrowded) -> None:
        self.applications[fact.application_id].crowd = fact.crowd

    def _on_timer_armed(self, fact: f.TimerArmed) -> None:
        timer = Timer(generation=fact.generation, due_ns=fact.due_ns)
        self.applications[fact.application_id].timers[fact.kind] = timer

    def _on_timer_cancelled(self, fact: f.TimerCancelled) -> None:
        self.applications[fact.application_id].timers.pop(fact.kind, None)


REJECTED = TRANSITIONS[ApplicationState.NEW, ApplicationEvent.REJECT]

_APPLY: dict[type, Callable[[PartitionState, Any], None]] = {
    f.PartitionConfigured: PartitionState._on_configured,
    f.SchedulingHeld: PartitionState._on_scheduling_held,
    f.MachineReplaced: PartitionState._on_machine_replaced,
    f.QueueAdded: PartitionState._on_queue_added,
    f.QueueReconfigured: PartitionState._on_queue_reconfigured,
    f.QueueStateChanged: PartitionState._on_queue_state_changed,
    f.QueueRemoved: PartitionState._on_queue_removed,
    f.NodeAdded: node_changes.node_added,
    f.NodeResized: node_changes.node_resized,
    f.NodeAttributesReplaced: node_changes.node_attributes_replaced,
    f.NodeScheduleChanged: node_changes.node_schedule_changed,
    f.NodeRemoved: node_changes.node_removed,
    f.ClusterResized: node_changes.cluster_resized,
    f.NodeActionRefused: node_changes.node_action_refused,
    f.ApplicationAdded: PartitionState._on_application_added,
    f.ApplicationRejected: PartitionState._on_application_rejected,
    f.ApplicationStateChanged: PartitionState._on_application_state_changed,
    f.ApplicationLinked: PartitionState._on_application_linked,
    f.ApplicationCrowded: PartitionState._on_application_crowded,
    f.ApplicationRemoved: PartitionState._on_application_removed,
    f.ApplicationSummarized: PartitionState._on_application_summarized,
    f.ApplicationForgotten: PartitionState._on_application_forgotten,
    f.TimerArmed: PartitionState._on_timer_armed,
    f.TimerCancelled: PartitionState._on_timer_cancelled,
    f.AskAdded: work_changes.ask_added,
    f.AskReplaced: work_changes.ask_replaced,
    f.AskRemoved: work_changes.ask_removed,
    f.AskReported: work_changes.ask_reported,
    f.AskRefused: work_changes.ask_refused,
    f.AskShortageChanged: work_changes.ask_shortage_changed,
    f.AllocationCommitted: work_changes.allocation_committed,
    f.AllocationRecovered: work_changes.allocation_recovered,
    f.GangAdmitted: gang_changes.gang_admitted,
    f.GangLapsed: gang_changes.gang_lapsed,
    f.AskParked: gang_changes.ask_parked,
    f.PlaceholderCancelled: gang_changes.placeholder_cancelled,
    f.AskUnparked: gang_changes.ask_unparked,
    f.SwapCompleted: work_changes.swap_completed,
    f.ReservationMade: work_changes.reservation_made,
    f.ReservationDropped: work_changes.reservation_dropped,
    f.AllocationResized: work_changes.allocation_resized,
    f.ReleaseRequested: work_changes.release_requested,
    f.ConfirmationMissed: work_changes.confirmation_missed,
    f.AllocationReleased: work_changes.allocation_released,
    f.PreemptionFailed: preemption_changes.preemption_failed,
    f.PreemptionDecided: preemption_changes.preemption_decided,
    f.VictimMarked: preemption_changes.victim_marked,
    f.QuotaPreemptionArmed: preemption_changes.quota_preemption_armed,
    f.QuotaPreemptionCleared: preemption_changes.quota_preemption_cleared,
    f.ForeignAllocationPut: node_changes.foreign_put,
    f.ForeignAllocationRemoved: node_changes.foreign_removed,
}
