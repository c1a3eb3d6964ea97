"""Victims of a quota: which work goes where a queue is above a maximum that was lowered.

The plan of a queue is what it uses above its maximum, as far as it does not come below its
guarantee. The guarantees of queues above it protect those from others, and what is taken here
leaves its room to the siblings. A parent shares its plan among its children in proportion to what
each uses above its own guarantee, rounded down. A leaf gives what fits into its share, and all
leaves together never more than the plan: of a type in which a leaf has no share it may give what is
left.
"""

from collections.abc import Container, Iterable, Iterator
from operator import itemgetter

from yunikorn_actors.planning.preemption.victim_rules import (
    ExpectedUsage,
    is_movable,
    may_be_preempted,
    may_give,
)
from yunikorn_actors.planning.preemption.victim_units import Part, Units
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import HOUR
from yunikorn_actors.values.resource import Resource, charge, discharge

Order = tuple[bool, bool, Part, int, int, int, int, float, int, str]


def plan_of(queue: Queue, usage: ExpectedUsage) -> Resource:
    """Return how much is to go, in the types of which too much is used."""
    used, above = usage.of(queue), _above_guarantee(queue, usage)
    over = {
        # The smaller of both: how far above the maximum, and how far above the guarantee.
        kind: min(used.get(kind, 0) - size, above.get(kind, 0))
        for kind, size in (queue.spec.max or {}).items()
    }
    return {kind: amount for kind, amount in over.items() if amount > 0}


def _above_guarantee(queue: Queue, usage: ExpectedUsage) -> Resource:
    guaranteed = queue.spec.guaranteed or {}
    return {
        kind: quantity - guaranteed.get(kind, 0)
        for kind, quantity in usage.of(queue).items()
        if quantity > guaranteed.get(kind, 0)
    }


def _weight(child: Queue, usage: ExpectedUsage) -> Resource:
    """What it uses above its guarantee, in the guaranteed types; all usage if it has no guarantee.

    A shortfall adds no weight, and a child that is nowhere above its guarantee gives nothing.
    """
    above = _above_guarantee(child, usage)
    if not child.spec.guaranteed:
        return above
    return {kind: quantity for kind, quantity in above.items() if kind in child.spec.guaranteed}


def may_be_victim(allocation: Allocation, plan: Resource) -> bool:
    sizes = allocation.resource
    return may_be_preempted(allocation, plan) and any(sizes.get(kind, 0) > 0 for kind in plan)


def units_for(plan: Resource, gone: Container[str] = ()) -> Units:
    """Of what a gang does not need, that goes which may, in the order of the rule."""

    def rank(app: Application, allocation: Allocation) -> tuple[bool, Order]:
        order = _order(app, allocation, Part.SURPLUS, plan)
        return not may_be_victim(allocation, plan), order

    return Units(gone, first=rank)


def keeps_guarantees(
    queue: Queue, leaf: Queue, victim: Resource, plan: Resource, usage: ExpectedUsage
) -> bool:
    """Whether neither the queue with the quota nor one below it gives what it is guaranteed."""
    # From the leaf up to the queue with the quota; those above keep what they are guaranteed
    # anyway.
    below = leaf.lineage[: leaf.lineage.index(queue) + 1]
    return all(may_give(level, usage.of(level), victim, plan) for level in below)


class Enforcement:
    def __init__(self, state: PartitionState, usage: ExpectedUsage, taken: Container[str]) -> None:
        self._state = state
        self._usage = usage
        self._taken = taken
        self._queue: Queue
        """Whose quota is enforced."""
        self._plan: Resource = {}
        self._left: Resource = {}
        """Of the plan, after the victims so far."""

    def victims_of(self, queue: Queue) -> tuple[Allocation, ...]:
        """Return the victims, least important first; there may be none."""
        self._queue = queue
        self._plan = plan_of(queue, self._usage)
        self._left = dict(self._plan)
        return tuple(self._gather(queue, self._plan)) if self._plan else ()

    def _gather(self, queue: Queue, share: Resource) -> Iterator[Allocation]:
        if queue.is_leaf:
            yield from self._pick(queue, share)
            return
        # All shares are worked out before any victim is taken, or the first child would change
        # them.
        shares = [(child, self._share(queue, child, share)) for child in _in_order(queue)]
        for child, part in shares:
            if any(part.values()):
                yield from self._gather(child, part)

    def _share(self, parent: Queue, child: Queue, plan: Resource) -> Resource:
        """Every child gives in proportion to its weight in a type; rounded down that may be 0."""
        totals: Resource = {}
        for sibling in parent.children.values():
            charge(totals, _weight(sibling, self._usage))
        weight = _weight(child, self._usage)
        return {
            kind: amount * weight[kind] // totals[kind]
            for kind, amount in plan.items()
            if kind in weight
        }

    def _pick(self, leaf: Queue, share: Resource) -> Iterator[Allocation]:
        left, picked = dict(share), dict[str, None]()
        for unit in self._units(leaf, {kind: amount for kind, amount in share.items() if amount}):
            # Its surplus may have gone before the rest of an application that goes as one.
            rest = [it for it in unit if it.uuid not in picked]
            resource = together(rest)
            bounds = (*left.items(), *self._left.items())
            # Whole allocations only: what is larger than what is left of the share stays.
            fits = all(resource.get(kind, 0) <= amount for kind, amount in bounds)
            if fits and keeps_guarantees(self._queue, leaf, resource, self._plan, self._usage):
                self._usage.take(leaf, resource)
                for bound in (left, self._left):
                    discharge(bound, {kind: resource.get(kind, 0) for kind in bound})
                picked.update(dict.fromkeys([it.uuid for it in rest]))
                yield from rest

    def _units(self, leaf: Queue, plan: Resource) -> Iterator[tuple[Allocation, ...]]:
        """Yield what may go, in order: allocations, or units where the leaf makes them one."""
        units, seen = units_for(plan, self._taken), dict[str, None]()
        for app, allocation in self._candidates(leaf, plan, units):
            if allocation.uuid in seen:
                continue
            unit = units.with_it(app, allocation)
            # An application that goes as one stands here once, with its first candidate.
            seen.update(dict.fromkeys(units.bound(app, unit)))
            # Empty if it may not go at all, for instance while one of its placeholders is in a
            # swap.
            if unit and all(map(is_movable, unit)):
                yield unit

    def _candidates(
        self, leaf: Queue, plan: Resource, units: Units
    ) -> list[tuple[Application, Allocation]]:
        found = [
            (_order(app, allocation, units.harm_of(app, allocation), plan), app, allocation)
            for app in (self._state.applications[id_] for id_ in leaf.applications.values())
            for allocation in app.allocations.values()
            if may_be_victim(allocation, plan) and allocation.uuid not in self._taken
        ]
        found.sort(key=itemgetter(0))
        return [(app, allocation) for _, app, allocation in found]


def together(unit: Iterable[Allocation]) -> Resource:
    total: Resource = {}
    for allocation in unit:
        charge(total, allocation.resource)
    return total


def _in_order(queue: Queue) -> list[Queue]:
    return [child for _, child in sorted(queue.children.items())]


def _order(app: Application, allocation: Allocation, part: Part, plan: Resource) -> Order:
    """Opted-out work last of all, originators before it; then what hurts gangs least.

    Then the better match of types. Among equals the less important is preempted, of whole gangs
    the newer gang, then the newer by whole hours, then the smaller.
    """
    resource, leaf, ask = allocation.resource, app.queue, app.asks[allocation.spec.key]
    share = 0.0
    # The share of its maximum that the queue would get back, by the largest type.
    for kind in plan:
        size = (leaf.spec.max or {}).get(kind, 0)
        quantity = resource.get(kind, 0)
        share = max(share, quantity / size if size > 0 else float(quantity))
    return (
        not allocation.spec.allow_preempt_self,
        allocation.spec.originator,
        part,
        -sum(1 for kind in plan if kind in resource),
        allocation.spec.priority,
        -app.serial if part is Part.OF_WHOLE else 0,
        -(ask.created_ns // HOUR),
        share,
        -ask.sequence,
        allocation.uuid,
    )
