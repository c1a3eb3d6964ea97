"""Objections to victims: what stands against each allocation, and what those that go would lose."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from yunikorn_actors.planning.preemption import quota, required_node
from yunikorn_actors.planning.preemption.claimant import Claimant, Victim, victims_of
from yunikorn_actors.planning.preemption.gang_choice import run_time_ns
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage, is_movable
from yunikorn_actors.planning.preemption.victim_units import Part, Units
from yunikorn_actors.planning.reasons import PreemptionCost, PreemptionVictim
from yunikorn_actors.state.allocations import Allocation, AskSpec
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource, match_any

LOOKED_AT_MAX: Final = 10_000
"""Allocations that are looked at, at most: those of the first nodes."""

NOT_NEEDED: Final = "not needed"
NO_USE: Final = "of no use to it"
MORE_IMPORTANT: Final = "more important"
FOR_GUARANTEE: Final = "needed for a guarantee of its queue"
OF_WHOLE: Final = "of an application that goes whole, and a part of it may not go"

Objection = Callable[[Application, Allocation], str]
"""By one of the three rules; empty where nothing stands against it."""

PARTS: Final = {
    Part.OF_BROKEN: "of a gang that is not whole",
    Part.SURPLUS: "its gang is whole without it",
    Part.ALONE: "it goes by itself",
    Part.OF_WHOLE: "it goes with its whole application",
    Part.FROM_WHOLE: "its gang was whole and is broken: a node or a quota needs just so much",
}


def goes(
    state: PartitionState, victims: Iterable[Allocation], now_ns: int
) -> tuple[PreemptionVictim, ...]:
    return tuple(
        PreemptionVictim(
            key=it.spec.key,
            application_id=it.spec.application_id,
            queue=victim.leaf.path,
            node_id=it.node_id,
            unit=PARTS[victim.part],
            priority=it.spec.priority,
            ran_s=_ran_s(it, now_ns),
            resource=it.resource,
        )
        for victim in _units_of(state, victims)
        for it in victim.allocations
    )


def cost(state: PartitionState, victims: Iterable[Allocation], now_ns: int) -> PreemptionCost:
    units = _units_of(state, victims)
    lost: Resource = {}
    for victim in units:
        for it in victim.allocations:
            app = state.applications[it.spec.application_id]
            # What it declared, or what it has run: the work that would be lost.
            run_s = run_time_ns(app, it, now_ns) // SECOND
            for kind, quantity in it.resource.items():
                lost[kind] = lost.get(kind, 0) + quantity * run_s
    return PreemptionCost(
        allocations=sum(len(victim.allocations) for victim in units),
        applications=sum(victim.is_whole for victim in units),
        lost=lost,
    )


def _units_of(state: PartitionState, victims: Iterable[Allocation]) -> list[Victim]:
    """Put them together as they were decided, also where they have been asked back since."""
    named = tuple(victims)
    # Also those asked back already: together they are the unit that was decided.
    return victims_of(state, named, back=frozenset(it.uuid for it in named))


def _ran_s(allocation: Allocation, now_ns: int) -> int:
    return max(0, now_ns - allocation.allocated_ns) // SECOND


def against(state: PartitionState, objection: Objection, going: Iterable[str]) -> dict[str, int]:
    """Count the allocations that stay, by the objection to each, before anything goes."""
    named = frozenset(going)
    counts: Counter[str] = Counter()
    for app, allocation in islice(_all(state), LOOKED_AT_MAX):
        # Who goes stands nowhere against anybody.
        if allocation.uuid not in named:
            counts[_of_itself(allocation) or objection(app, allocation) or NOT_NEEDED] += 1
    return dict(sorted(counts.items()))


def _all(state: PartitionState) -> Iterator[tuple[Application, Allocation]]:
    for node in state.nodes.values():
        for allocation in node.allocations.values():
            yield state.applications[allocation.spec.application_id], allocation


def _of_itself(allocation: Allocation) -> str:
    """Say why it is a victim of nobody."""
    # Of all three rules the same: such work is chosen by none of them.
    if not allocation.may_be_released:
        return "on its way out already"
    return "bound to its node" if allocation.spec.required_node else ""


class OfGuarantee:
    """What stands against a victim of an ask whose queue is below its guarantee."""

    def __init__(self, state: PartitionState, claimant: Claimant, throttle: Throttle) -> None:
        self._state = state
        self._claimant = claimant
        self._throttle = throttle
        self._units = Units()

    def __call__(self, app: Application, allocation: Allocation) -> str:
        return self._of_rules(app, allocation) or self._of_unit(app, allocation)

    def _of_rules(self, app: Application, allocation: Allocation) -> str:
        claimant, leaf = self._claimant, app.queue
        if leaf is claimant.leaf:
            return "of the same queue"
        if leaf.path not in claimant.reach:
            return "out of its reach: fenced off, or of a queue that gives nothing"
        if not match_any(allocation.resource, claimant.wanted):
            return NO_USE
        limit = claimant.reach[leaf.path]
        if limit is not None and allocation.spec.priority > limit:
            return MORE_IMPORTANT
        if not self._throttle.are_cooled(leaf, (allocation,)):
            return "in the cooldown of its queue"
        return ""

    def _of_unit(self, app: Application, allocation: Allocation) -> str:
        state, claimant, units = self._state, self._claimant, self._units
        victim = Victim(state, (allocation,), units.part_of(app, allocation))
        # By itself it may not go; with its whole application it may.
        if victim.part is Part.OF_WHOLE and not units.could_be_surplus(app, allocation):
            whole = units.whole(app)
            if not whole:
                return "of an application that goes whole, and a part of it cannot go now"
            victim = Victim(state, whole, Part.OF_WHOLE)
            if not claimant.may_be_victim(victim):
                return OF_WHOLE
        if not self._throttle.may_lose(victim.leaf, len(victim.allocations)):
            return "over the budget of its queue"
        if not claimant.may_take(victim):
            return FOR_GUARANTEE
        return ""


class OfRequiredNode:
    """What stands against a victim of an ask that can run on one node alone."""

    def __init__(self, spec: AskSpec) -> None:
        self._spec = spec
        self._units = required_node.units_for(spec)

    def __call__(self, app: Application, allocation: Allocation) -> str:
        spec = self._spec
        if allocation.node_id != spec.required_node:
            return "on another node"
        if not match_any(allocation.resource, spec.resource):
            return NO_USE
        if allocation.spec.priority > spec.priority:
            return MORE_IMPORTANT
        if required_node.would_end_itself(app, spec):
            return "of its own application, which would end with it"
        unit = self._units.with_it(app, allocation)
        goes = unit and all(required_node.may_go_along(it, spec) for it in unit)
        return "" if goes else OF_WHOLE


class OfQuota:
    """What stands against a victim of a queue that uses more than its maximum."""

    def __init__(self, queue: Queue, usage: ExpectedUsage) -> None:
        self._queue = queue
        self._usage = usage
        self._plan = quota.plan_of(queue, usage)
        self._units = quota.units_for(self._plan)

    def __call__(self, app: Application, allocation: Allocation) -> str:
        queue, plan = self._queue, self._plan
        if queue not in app.queue.lineage:
            return "of another queue"
        if not quota.may_be_victim(allocation, plan):
            return NO_USE
        unit = self._units.with_it(app, allocation)
        if not unit or not all(map(is_movable, unit)):
            return OF_WHOLE
        keeps = quota.keeps_guarantees(queue, app.queue, quota.together(unit), plan, self._usage)
        return "" if keeps else FOR_GUARANTEE
