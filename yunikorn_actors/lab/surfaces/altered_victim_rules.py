"""What rules about victims say of a state whose queues have other properties than they have.

Which work may go is decided by a few plain functions. A world comes to each of their branches only
where fences, budgets, lower maxima and asks that may claim meet. So here they are asked
directly, of the work that runs, with properties and maxima that are made up for the moment.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.config import PreemptionPolicy
from yunikorn_actors.config.properties import PreemptionBudget, PreemptionUnit
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.planning.preemption.quota import Enforcement, keeps_guarantees, plan_of
from yunikorn_actors.planning.preemption.required_node import victims_on
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import (
    ExpectedUsage,
    bounds_of,
    guards,
    is_named_by,
    may_give,
    reach_of,
    share_a_guarantee,
)
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource

_TIMES_NS: Final = (0, SECOND, 5 * SECOND, 20 * SECOND, 60 * SECOND)
_BUDGETS: Final = (
    PreemptionBudget(), PreemptionBudget(0, window_ns=SECOND),
    PreemptionBudget(1, window_ns=20 * SECOND), PreemptionBudget(2, window_ns=60 * SECOND),
    PreemptionBudget(50, is_share=True, window_ns=60 * SECOND),
)  # fmt: skip
_POLICIES: Final = (PreemptionPolicy.DEFAULT,) * 4 + (*PreemptionPolicy,)
"""Where most queues keep their asks to themselves, no rule is asked of the others."""
_ROUNDS: Final = 2


@contextmanager
def _made_up(state: PartitionState, draw: Draw) -> Iterator[None]:
    """Give each queue other properties, guarantees and maxima, and take them away again."""
    before = [(it, it.spec, it.properties) for it in state.queues.values()]
    for queue, spec, properties in before:
        used = queue.allocated
        queue.properties = replace(
            properties,
            preemption_policy=draw.one_of(_POLICIES),
            preemption_unit=draw.one_of((None, *PreemptionUnit)),
            preemption_budget=draw.one_of(_BUDGETS),
            preemption_cooldown_ns=draw.one_of(_TIMES_NS),
            priority_fence=draw.once_in(3),
            priority_offset=draw.whole(-1, 1),
        )
        queue.spec = replace(
            spec,
            guaranteed=_part_of(draw, used),
            max=_part_of(draw, used) if draw.once_in(3) else spec.max,
        )
    try:
        yield
    finally:
        for queue, spec, properties in before:
            queue.spec, queue.properties = spec, properties


def _part_of(draw: Draw, used: Resource) -> Resource | None:
    """Draw a bound about as large as what is used, in all types or in one."""
    kinds = [kind for kind in used if not draw.once_in(3)]
    bound = {kind: max(0, used[kind] // 1000 + draw.whole(-2, 1)) * 1000 for kind in kinds}
    return None if draw.once_in(3) or not bound else bound


def ruled(state: PartitionState, now_ns: int, draw: Draw) -> Iterator[str]:
    """Yield what each rule says, with properties of several kinds."""
    leaves = [it for it in state.queues.values() if it.is_leaf and it.applications]
    specs = [ask.spec for app in state.applications.values() for ask in app.asks.values()]
    for _ in range(_ROUNDS if leaves and specs else 0):
        with _made_up(state, draw):
            leaf, spec = draw.one_of(leaves), draw.one_of(specs)
            spec = replace(spec, priority=spec.priority + draw.whole(-1, 2))
            yield from _of_guarantees(state, leaf, spec)
            yield from _of_quotas(state, leaf, draw)
            yield from _of_throttle(state, leaf, now_ns + draw.one_of(_TIMES_NS))
            for node in [*state.nodes.values()][:2]:
                bound = replace(spec, required_node=node.id)
                victims = victims_on(state, node, bound, dict(node.available))
                uuids = None if victims is None else [it.uuid for it in victims]
                yield f"{node.id} for {spec.key} by {uuids}"


def _of_guarantees(state: PartitionState, leaf: Queue, spec: AskSpec) -> Iterator[str]:
    usage, wanted = ExpectedUsage(), spec.resource
    usage.add(leaf, wanted)
    bounds = bounds_of(leaf, wanted)
    yield f"{spec.key} of {leaf.path} by {bounds} in {reach_of(leaf, spec, usage, bounds)}"
    for other in state.queues.values():
        guarding = guards(leaf, other)
        yield f"{other.path} gives {[it.path for it in guarding]} " + str(
            (
                may_give(other, usage.of(other), wanted, wanted),
                is_named_by(guarding, wanted, wanted),
                share_a_guarantee(leaf, other),
            )
        )


def _of_quotas(state: PartitionState, leaf: Queue, draw: Draw) -> Iterator[str]:
    usage, queue = ExpectedUsage(), draw.one_of(leaf.lineage)
    plan = plan_of(queue, usage)
    kept = {
        it.uuid: keeps_guarantees(queue, leaf, it.resource, plan, usage)
        for id_ in leaf.applications.values()
        for it in state.applications[id_].allocations.values()
    }
    going = [it.uuid for it in Enforcement(state, usage, ()).victims_of(queue)]
    yield f"{queue.path} has {plan} too much: {going} go, {kept}"


def _of_throttle(state: PartitionState, leaf: Queue, now_ns: int) -> Iterator[str]:
    throttle = Throttle(state, now_ns)
    for id_ in leaf.applications.values():
        running = [*state.applications[id_].allocations.values()]
        is_cool = not running or throttle.are_cooled(leaf, running)
        throttle.take(leaf, 1)
        lost = [throttle.may_lose(leaf, count) for count in (1, 2)]
        yield f"{id_} is cool: {is_cool}, loses {lost}, again at {throttle.again_ns}"
