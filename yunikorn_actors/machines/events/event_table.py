"""Which event records a fact gives rise to.

A record is built only when it is read. A fact is turned into builders, one for each record,
and the ring keeps the fact and the builders. How many records there are is known at once, so they
can be numbered; what they say is worked out from the fact alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from yunikorn_actors.machines.events import applications, nodes, preemption, queues
from yunikorn_actors.machines.events import asks as requests
from yunikorn_actors.machines.events.allocations import (
    count_of_run,
    node_alloc,
    of_commitment,
    of_recovery,
    of_release,
    of_resize,
)
from yunikorn_actors.machines.events.gangs import lapsed, of_swap, too_small, unconfirmed
from yunikorn_actors.machines.events.record import Builder
from yunikorn_actors.si import ChangeType
from yunikorn_actors.state import facts as f


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    kind = type(fact)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    chosen = _CHOSEN.get(kind)
    return () if chosen is None else chosen(fact)


def count_of(fact: f.Fact) -> int:
    """Say how many records this fact has."""
    kind = type(fact)
    count = _COUNTS.get(kind)
    if count is not None:
        return count
    count_of = _RUNS.get(kind)
    return len(_CHOSEN[kind](fact)) if count_of is None else count_of(fact)


_FIXED: dict[type, tuple[Builder, ...]] = {
    f.AskAdded: (requests.ask_added,),
    f.AskReplaced: (requests.ask_added,),
    f.AskRefused: (requests.ask_refused,),
    f.AskRemoved: (requests.ask_removed,),
    f.ApplicationAdded: (applications.app_new, applications.queue_app_added),
    f.ApplicationRejected: (applications.app_new, applications.app_rejected),
    f.ApplicationSummarized: (applications.app_summary,),
    f.NodeAdded: (nodes.node_added, nodes.node_schedulable),
    f.NodeRemoved: (nodes.node_removed,),
    f.NodeActionRefused: (nodes.node_action_refused,),
    f.ReservationMade: (partial(nodes.reservation, ChangeType.ADD),),
    f.ReservationDropped: (partial(nodes.reservation, ChangeType.REMOVE),),
    f.ForeignAllocationPut: (partial(node_alloc, ChangeType.ADD),),
    f.ForeignAllocationRemoved: (partial(node_alloc, ChangeType.REMOVE),),
    f.ClusterResized: (queues.root_max,),
    f.QueueStateChanged: (queues.queue_state,),
    f.MachineReplaced: (queues.machine_replaced,),
    f.ConfigurationRefused: (queues.configuration_refused,),
    f.PolicyFailed: (queues.policy_failed,),
    f.AdministratorActed: (queues.administrator_acted,),
    f.QueueRemoved: (queues.queue_removed,),
    f.VictimMarked: (preemption.victim,),
    f.PreemptionFailed: (preemption.no_victim,),
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
    f.AskReported: requests.of_report,
    f.AskShortageChanged: requests.of_shortage,
    f.ApplicationStateChanged: applications.of_state_change,
    f.ApplicationRemoved: applications.of_removal,
    f.NodeResized: nodes.of_resize,
    f.NodeScheduleChanged: nodes.of_schedule_change,
    f.PreemptionDecided: preemption.of_decision,
    f.SchedulingHeld: queues.of_suspension,
    f.QueueAdded: queues.of_queue_added,
    f.QueueReconfigured: queues.of_queue_change,
    f.ApplicationLinked: applications.of_link,
    f.ApplicationCrowded: applications.of_run_limit,
}
_RUNS: dict[type, Callable[[Any], int]] = {
    f.AllocationsCommitted: count_of_run,
    f.AsksAdded: lambda fact: len(fact.specs) * len(_FIXED[f.AskAdded]),
}
"""How many records the parts have together: those are built from the parts."""
_COUNTS: dict[type, int] = {
    kind: len(_FIXED.get(kind, ()))
    for kind in get_args(f.Fact)
    if kind not in _CHOSEN and kind not in _RUNS
}
"""Of the facts that always have the same number of records, most of them none."""
