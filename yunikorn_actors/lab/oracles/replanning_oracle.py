"""At rest a planner that begins with nothing but the state finds nothing to decide.

What a planner keeps from one plan to the next says what need not be tried again. A planner that is
made anew has nothing of that and tries everything, so whatever it decides at rest is something
that the one at work has not been woken for: a placement, an admission, a swap, a node to be kept or
given free, victims.

What is not in the state counts as far as it is sound: applications may rest until their back-off is
over, what Context or a resource manager refuses is left alone, a search for victims that found
nothing has a pause, and whom a gate holds is for the oracle of gates.
"""

from collections.abc import Iterator, Sequence
from typing import (
    Final,
    NamedTuple,
)

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.planning_loop import delays_in
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preemption.agenda import PAUSE_NS
from yunikorn_actors.planning.stages.denials import LONGEST_DELAY_NS, Denied
from yunikorn_actors.state.allocations import PreemptionRule
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Allocate, Preempt, Proposal

_PLANS_MAX: Final = 3
"""The first plan may end when everything is measured."""
_Life = tuple[str, int]
"""A partition, and which of its lives."""


class _Searched(NamedTuple):
    by: Planner
    since_ns: dict[str, int]
    """Since when victims could be found for these asks, at each look."""


class Replanning(Oracle):
    receivers: Final = frozenset[str]()

    def __init__(self) -> None:
        self._looked_at: dict[_Life, tuple[int, int]] = {}
        """The revision and the time at which a partition was looked at last."""
        self._searches: dict[_Life, _Searched] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if simulator.is_at_rest:
            where = f"after {type(delivery.message).__name__} to {delivery.mailbox}, at rest"
            self._look(simulator, where)

    def patience_ns(self) -> int:
        return PAUSE_NS + 1 if any(it.since_ns for it in self._searches.values()) else 0

    def waited(self, world: World) -> None:
        self._look(world.simulator, "in the end")

    def _look(self, simulator: Simulator, where: str) -> None:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for partition in context.partitions.values():
            life = partition.name, partition.epoch
            moment = partition.state.revision, simulator.now_ns
            if self._looked_at.get(life) == moment:
                continue
            self._looked_at[life] = moment
            found = tuple(self._undone(simulator, partition))
            if found:
                raise InvariantViolation(f"{where}: {'; '.join(found)}")

    def _undone(self, simulator: Simulator, partition: PartitionContext) -> Iterator[str]:
        life = partition.name, partition.epoch
        state, searched = partition.state, self._searches.pop(life, None)
        at_work = planner_at_work(simulator, partition)
        if at_work is None or not _has_something_to_do(state):
            return
        if is_still_to_come(simulator, partition):
            return
        # The pause after a search is that of the planner which searched. One that took its place,
        # after a restart for instance, has a pause of its own.
        before = searched.since_ns if searched is not None and searched.by is at_work else {}
        searches = _Searched(at_work, {})
        self._searches[life] = searches
        planner = _made_anew(simulator, state, at_work)
        plan = _plan(planner, simulator.now_ns)
        together = _searched_together(plan)
        for proposal in plan:
            subject = _subject(proposal)
            if isinstance(proposal, Preempt):
                if not proposal.victims:
                    # It says that nobody may go.
                    continue
                rule = proposal.beneficiary.rule
                if rule is PreemptionRule.GUARANTEE or proposal.gang in together:
                    since_ns = before.get(subject, simulator.now_ns)
                    searches.since_ns[subject] = since_ns
                    if simulator.now_ns <= since_ns + PAUSE_NS:
                        continue
            if _is_held_by_gate(at_work, proposal, simulator.now_ns):
                continue
            yield f"G30: a planner made anew has {type(proposal).__name__} for {subject}"


def _searched_together(plan: Sequence[Proposal]) -> frozenset[int]:
    """Return the gangs for which a search found victims, whatever the rules for its placeholders.

    One that is bound to a node waits with the others of its gang for the next search.
    """
    return frozenset(
        it.gang
        for it in plan
        if isinstance(it, Preempt) and it.gang and it.beneficiary.rule is PreemptionRule.GUARANTEE
    )


def _is_held_by_gate(at_work: Planner, proposal: Proposal, now_ns: int) -> bool:
    """Whether a gate holds it that is to be asked again when something happens, or later."""
    if not isinstance(proposal, Allocate):
        return False
    ask = at_work.model.ask_of(proposal.application_id, proposal.key)
    hold = None if ask is None else ask.app.leaf.holds.get(ask)
    return hold is not None and not 0 < hold.until_ns <= now_ns


def planner_at_work(simulator: Simulator, partition: PartitionContext) -> Planner | None:
    """Return the one that plans now."""
    if partition.planner is not None:
        return partition.planner
    for address in partition.schedulers.values():
        scheduler = simulator.machines[address]
        assert isinstance(scheduler, Scheduler)
        if scheduler.loop.has_token:
            return scheduler.planner
    return None


def is_still_to_come(simulator: Simulator, partition: PartitionContext) -> bool:
    """Whether its planner is to be woken for a moment that has passed: that timer is late."""
    name = f"planning/{partition.name}#{partition.epoch}"
    addresses = (CONTEXT, *partition.schedulers.values())
    due_ns = (simulator.timers.dues(address).get(name) for address in addresses)
    return any(it is not None and it <= simulator.now_ns for it in due_ns)


def _has_something_to_do(state: PartitionState) -> bool:
    if state.decides_nothing or "root" not in state.queues:
        return False
    return any(state.root.pending.values()) or bool(state.quotas)


def _made_anew(simulator: Simulator, state: PartitionState, at_work: Planner) -> Planner:
    planner = Planner(
        state, policies=simulator.topology.policies, **delays_in(simulator.topology.settings)
    )
    planner.adopt()
    _have_rest(planner, at_work, simulator.now_ns)
    _have_refused(planner, at_work, simulator.now_ns)
    return planner


def _have_refused(planner: Planner, at_work: Planner, now_ns: int) -> None:
    """What a resource manager has refused it is asked again when the time for that comes."""
    for former, denial in at_work.denials.by_ask.items():
        spec = former.ask.spec
        ask = planner.model.ask_of(spec.application_id, spec.key)
        if ask is None or not now_ns < denial.due_ns <= now_ns + LONGEST_DELAY_NS:
            continue
        for use, refused in denial.refused.items():
            for node_id, reason in refused.items():
                place = spec.application_id, spec.key, ask.ask.sequence, node_id
                planner.denials.add(ask, Denied(*place, reason, use), now_ns)


def _have_rest(planner: Planner, at_work: Planner, now_ns: int) -> None:
    """Those that rest do so until their time is over, whatever their leaf says meanwhile."""
    for former, until_ns in at_work.backoff.resting.items():
        app = planner.model.apps.get(former.app.serial)
        if app is not None and until_ns > now_ns:
            planner.backoff.resting[app] = until_ns
            planner.model.participants.hold(app, planner.backoff)


def _plan(planner: Planner, now_ns: int) -> list[Proposal]:
    for _ in range(_PLANS_MAX):
        proposals = planner.plan(1_000, now_ns)
        if proposals or not planner.has_work:
            return proposals
    return []


def _subject(proposal: Proposal) -> str:
    if isinstance(proposal, Preempt):
        whom = proposal.beneficiary
        return f"{whom.application_id}/{whom.key}" if whom.key else whom.queue
    return f"{proposal.application_id}/{getattr(proposal, 'key', '')}"
