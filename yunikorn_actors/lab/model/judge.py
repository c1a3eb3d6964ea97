"""Follows what the core announces, and judges it by the model.

Each decision is judged on the cluster as it stood then: do the rules allow it, and was another ask
first? At rest: does something wait that must go on? What cannot be seen from outside is counted as
undecided. What the resource manager is notified of is judged by `checks/owed.py`.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.lab.model import cluster_facts, sums
from yunikorn_actors.lab.model.judged_cluster import Ask, Cluster
from yunikorn_actors.lab.model.judging import (
    applications,
    at_rest,
    gangs,
    placements,
    preemption,
    quotas,
)
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f

CHECKS: dict[type, Callable[[JudgedRun, Any], None]] = {
    f.AllocationCommitted: placements.check_commit,
    f.GangAdmitted: gangs.check_admission,
    f.GangLapsed: gangs.check_lapse,
    f.AskParked: gangs.check_swap,
    f.PlaceholderCancelled: gangs.check_cancelled,
    f.ReservationMade: placements.check_reservation,
    f.ReservationDropped: placements.note_dropped,
    f.ReleaseRequested: applications.check_release,
    f.AskRemoved: applications.check_withdrawal,
    f.PreemptionDecided: preemption.check_preemption,
    f.ApplicationStateChanged: applications.check_state,
    f.ApplicationLinked: applications.check_group,
    f.QuotaPreemptionArmed: quotas.check_armed,
}
"""What each fact is judged by, right before it changes the cluster."""


class Judge:
    def __init__(self, settings: Settings, *, is_fused: bool = False) -> None:
        self.run = JudgedRun(settings)
        self.run.plan.is_fused = is_fused

    @property
    def cluster(self) -> Cluster:
        return self.run.cluster

    def begin(self, as_of: int | None = None, *, is_stale: bool = False) -> None:
        """A message begins to be handled; a plan may have been made before other news."""
        self.run.plan.begin(self.cluster.revision, as_of, is_stale=is_stale)
        self.cluster.ending.clear()

    def follow(self, fact: f.Fact) -> None:
        run, cluster = self.run, self.cluster
        cluster.revision += 1
        if isinstance(fact, f.NodeAdded):
            run.plan.came[fact.node_id] = cluster.revision
        if isinstance(fact, f.AllocationReleased):
            came = cluster.placed[fact.uuid].came
            run.last_rest.work_ended |= came > run.last_rest.revision
        check = CHECKS.get(type(fact))
        if check is not None:
            check(run, fact)
        cluster_facts.apply(cluster, fact)
        if isinstance(fact, f.AllocationCommitted | f.ReservationMade | f.AskParked):
            cluster.ending.clear()
        cluster.owed = [ask for ask in cluster.owed if ask.left and self._is_owed(ask)]

    def _is_owed(self, ask: Ask) -> bool:
        mine = sums.allocations_of(self.cluster, ask.app)
        return any(placed.leaving == "PLACEHOLDER_REPLACED" for placed in mine)

    def rest(self) -> None:
        """Nothing is on its way: whatever waits must have a reason."""
        self.begin()
        at_rest.check_rest(self.run)
