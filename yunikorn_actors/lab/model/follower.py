"""Hands what a simulated run does to the judge."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.drivers.simulator.simulator import Simulator
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
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Cause, Delivery
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations, ReportWaiting
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts import Fact, parts_of

# Follows what the core announces, and judges it by the model.
#
# Each decision is judged on the cluster as it stood then: do the rules allow it, and was another
# ask first? At rest: does something wait that must go on? What cannot be seen from outside is
# counted as undecided. What the resource manager is notified of is judged by `checks/owed.py`.

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


class FollowedByModel:
    """Has the model judge one run, by the settings of its core; the oracles judge the answers.

    A world that is made smaller has other settings than the one that was drawn.
    """

    def __init__(self) -> None:
        self._follower: Follower | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if self._follower is None:
            judge = Judge(simulator.topology.settings, is_fused=simulator.topology.name == "fused")
            self._follower = Follower(judge)
        self._follower.delivered(simulator, delivery)


class Follower:
    """Hands the facts to the judge, in their order, and tells it when the core is at rest."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._news = 0
        """The planner must have seen this revision to know all that no proposal made."""
        self._since_rest = False
        self._waiting: list[int] = []
        """What the plans know that wait until long work is done."""
        self._undone: set[int] = set()
        """What was proposed, and Context has not done so far."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            self._follow(simulator, delivery)
        if not simulator.channels and self._since_rest:
            self._since_rest = False
            self.judge.cluster.now = simulator.now_ns
            self.judge.rest()

    def _follow(self, simulator: Simulator, delivery: Delivery) -> None:
        judge, message = self.judge, delivery.message
        judge.cluster.now = simulator.now_ns
        self._since_rest = True
        is_plan = isinstance(message, ProposeAllocations | ReportWaiting)
        plan = message if isinstance(message, ProposeAllocations) else None
        as_of = plan.as_of if plan is not None else None
        news = _appended(simulator, Cause(delivery.mailbox, delivery.step))
        if self._waiting:
            # A slice of long work may be one of these plans: which one cannot be seen.
            judge.begin(min(self._waiting), is_stale=True)
        else:
            is_stale = as_of is not None and as_of < self._news
            judge.begin(as_of, is_stale=is_stale or _refused(plan, news))
        self._note_waiting(simulator, as_of)
        for appended in news:
            judge.cluster.revision = appended.first_revision - 1
            for fact in _parts(appended):
                judge.follow(fact)
            if not is_plan:
                self._news = max(self._news, judge.cluster.revision)
        if plan is not None:
            self._undone.update(it.proposal_id for it in plan.proposals)
        if self._undone:
            self._undone -= _done(news)
        if self._undone and not self._waiting:
            self._undone.clear()
            # The planner hears of it after what was done of the plan, and until then it counts
            # the refused decision as made; so only a plan that knows of more is sure to know it.
            self._news = judge.cluster.revision + 1

    def _note_waiting(self, simulator: Simulator, as_of: int | None) -> None:
        """A plan that comes in the middle of long work is carried out behind it."""
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if context.is_at_rest:
            self._waiting.clear()
        elif as_of is not None:
            self._waiting.append(as_of)


def _refused(plan: ProposeAllocations | None, news: list[FactsAppended]) -> bool:
    """Whether a part of a plan was refused: what comes behind it was decided as if it were done."""
    proposed = () if plan is None else plan.proposals
    return not {it.proposal_id for it in proposed} <= _done(news)


def _done(news: list[FactsAppended]) -> set[int]:
    """Return which proposals Context has carried out."""
    return {getattr(fact, "proposal_id", 0) for appended in news for fact in _parts(appended)}


def _parts(appended: FactsAppended) -> list[Fact]:
    """A run is judged part by part: it has to be what one decision after the other would be."""
    return [part for fact in appended.facts for part in parts_of(fact)]


def _appended(simulator: Simulator, cause: Cause) -> list[FactsAppended]:
    """Return what Context recorded while it handled the message that is the cause."""
    return [
        envelope.message
        for (_, to), queue in simulator.channels.items()
        if to == EVENT_PUBLISHER
        for _, envelope in queue
        if envelope.cause == cause and isinstance(envelope.message, FactsAppended)
    ]
