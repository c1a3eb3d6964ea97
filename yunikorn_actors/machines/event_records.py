"""Which event records a fact gives rise to.

A record is built only when somebody reads it. A fact is turned into builders, one for each record,
and the ring keeps the fact and the builders. How many records there are is known at once, so they
can be numbered; what they say is worked out from the fact alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.machines import (
    application_records,
    node_records,
    preemption_records,
    queue_records,
    request_records,
)
from yunikorn_actors.machines.allocation_records import (
    node_alloc,
    of_commitment,
    of_recovery,
    of_release,
    of_resize,
)
from yunikorn_actors.machines.event_record import Builder
from yunikorn_actors.machines.gang_records import lapsed, of_swap, too_small, unconfirmed
from yunikorn_actors.si import ChangeType


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    kind = type(fact)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    chosen = _CHOSEN.get(kind)
    return () if chosen is None else chosen(fact)


_FIXED: dict[type, tuple[Builder, ...]] = {
    f.AskAdded: (request_records.ask_added,),
    f.AskReplaced: (request_records.ask_added,),
    f.AskRefused: (request_records.ask_refused,),
    f.AskRemoved: (request_records.ask_removed,),
    f.ApplicationAdded: (application_records.app_new, application_records.queue_app_added),
    f.ApplicationRejected: (application_records.app_new, application_records.app_rejected),
    f.ApplicationSummarized: (application_records.app_summary,),
    f.NodeAdded: (node_records.node_added, node_records.node_schedulable),
    f.NodeRemoved: (node_records.node_removed,),
    f.NodeActionRefused: (node_records.node_action_refused,),
    f.ReservationMade: (partial(node_records.reservation, ChangeType.ADD),),
    f.ReservationDropped: (partial(node_records.reservation, ChangeType.REMOVE),),
    f.ForeignAllocationPut: (partial(node_alloc, ChangeType.ADD),),
    f.ForeignAllocationRemoved: (partial(node_alloc, ChangeType.REMOVE),),
    f.ClusterResized: (queue_records.root_max,),
    f.QueueStateChanged: (queue_records.queue_state,),
    f.MachineReplaced: (queue_records.machine_replaced,),
    f.QueueRemoved: (queue_records.queue_removed,),
    f.VictimMarked: (preemption_records.victim,),
    f.PreemptionFailed: (preemption_records.no_victim,),
    f.GangLapsed: (lapsed,),
    f.PlaceholderCancelled: (too_small,),
    f.ConfirmationMissed: (unconfirmed,),
}
_CHOSEN: dict[type, Callable[[Any], tuple[Builder, ...]]] = {
    f.AllocationCommitted: of_commitment,
    f.AllocationRecovered: of_recovery,
    f.AllocationReleased: of_release,
    f.AllocationResized: of_resize,
    f.SwapCompleted: of_swap,
    f.AskReported: request_records.of_report,
    f.AskShortageChanged: request_records.of_shortage,
    f.ApplicationStateChanged: application_records.of_state_change,
    f.ApplicationRemoved: application_records.of_removal,
    f.NodeResized: node_records.of_resize,
    f.NodeScheduleChanged: node_records.of_schedule_change,
    f.PreemptionDecided: preemption_records.of_decision,
    f.SchedulingHeld: queue_records.of_hold,
    f.QueueAdded: queue_records.of_queue_added,
    f.QueueReconfigured: queue_records.of_queue_change,
    f.ApplicationLinked: application_records.of_link,
    f.ApplicationCrowded: application_records.of_crowd,
}
