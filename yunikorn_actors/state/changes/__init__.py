"""The only way to change a partition: `apply` takes one fact and brings every book up to date.

It is dumb on purpose: who writes a fact has checked it, and every holder of a `PartitionState`
(Context, the replica of a scheduler, a replay) goes through the same code. The modules of this
package say what each fact changes, a module for each part of the domain.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.changes import allocations as work
from yunikorn_actors.state.changes import applications, gangs, nodes, preemption, queues
from yunikorn_actors.state.partition import PartitionState


def apply(state: PartitionState, fact: f.Fact) -> None:
    state.revision += 1
    _APPLY[type(fact)](state, fact)
    if state.folds is not None:
        state.folds.observe(state, fact)


_APPLY: dict[type, Callable[[PartitionState, Any], None]] = {
    f.PartitionConfigured: queues.configured,
    f.SchedulingHeld: queues.scheduling_suspended,
    f.LongWorkStarted: queues.long_work_started,
    f.LongWorkEnded: queues.long_work_ended,
    f.MachineReplaced: queues.machine_replaced,
    f.ConfigurationRefused: queues.configuration_refused,
    f.PolicyFailed: queues.policy_failed,
    f.AdministratorActed: queues.administrator_acted,
    f.QueueAdded: queues.queue_added,
    f.QueueReconfigured: queues.queue_reconfigured,
    f.QueueStateChanged: queues.queue_state_changed,
    f.QueueRemoved: queues.queue_removed,
    f.NodeAdded: nodes.node_added,
    f.NodeResized: nodes.node_resized,
    f.NodeAttributesReplaced: nodes.node_attributes_replaced,
    f.NodeScheduleChanged: nodes.node_schedule_changed,
    f.NodeRemoved: nodes.node_removed,
    f.ClusterResized: nodes.cluster_resized,
    f.NodeActionRefused: nodes.node_action_refused,
    f.ApplicationAdded: applications.application_added,
    f.ApplicationRejected: applications.application_rejected,
    f.ApplicationStateChanged: applications.application_state_changed,
    f.ApplicationLinked: applications.application_linked,
    f.ApplicationCrowded: applications.run_limit_met,
    f.ApplicationRemoved: applications.application_removed,
    f.ApplicationSummarized: applications.application_summarized,
    f.ApplicationForgotten: applications.application_forgotten,
    f.TimerArmed: applications.timer_armed,
    f.TimerCancelled: applications.timer_cancelled,
    f.AskAdded: work.ask_added,
    f.AsksAdded: work.asks_added,
    f.AskReplaced: work.ask_replaced,
    f.AskRemoved: work.ask_removed,
    f.AskReported: work.ask_reported,
    f.AskRefused: work.ask_refused,
    f.AskShortageChanged: work.ask_shortage_changed,
    f.AllocationCommitted: work.allocation_committed,
    f.AllocationsCommitted: work.allocations_committed,
    f.AllocationRecovered: work.allocation_recovered,
    f.GangAdmitted: gangs.gang_admitted,
    f.GangLapsed: gangs.gang_lapsed,
    f.AskParked: gangs.ask_parked,
    f.PlaceholderCancelled: gangs.placeholder_cancelled,
    f.AskUnparked: gangs.ask_unparked,
    f.SwapCompleted: work.swap_completed,
    f.ReservationMade: work.reservation_made,
    f.ReservationDropped: work.reservation_dropped,
    f.AllocationResized: work.allocation_resized,
    f.ReleaseRequested: work.release_requested,
    f.ConfirmationMissed: work.confirmation_missed,
    f.AllocationReleased: work.allocation_released,
    f.PreemptionFailed: preemption.preemption_failed,
    f.PreemptionDecided: preemption.preemption_decided,
    f.VictimMarked: preemption.victim_marked,
    f.QuotaPreemptionArmed: preemption.quota_preemption_armed,
    f.QuotaPreemptionCleared: preemption.quota_preemption_cleared,
    f.ForeignAllocationPut: nodes.foreign_put,
    f.ForeignAllocationRemoved: nodes.foreign_removed,
}
