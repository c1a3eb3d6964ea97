"""The rules of a decision to preempt, from queues and victims (G12, G13, G19, G31 to G33)."""

import math
from collections.abc import Container, Iterator

from yunikorn_actors.config import PreemptionPolicy, PreemptionUnit
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, PreemptionRule
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import expected
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource, charge, discharge


def against_the_rules(
    state: PartitionState, fact: f.PreemptionDecided, _: Container[str]
) -> Iterator[str]:
    """Yield the rules that a preemption breaks, right before its victims are marked."""
    owners = [(uuid, state.owner_of(uuid)) for uuid in dict.fromkeys(fact.victims)]
    victims = [app.allocations[uuid] for uuid, app in owners if app is not None]
    if len(victims) < len(fact.victims):
        yield "G12: a victim is gone, or named twice"
    for victim in victims:
        if victim.releasing is not None:
            yield f"G12: victim {victim.spec.key} was asked back before, as {victim.releasing.name}"
    # One preemption at a time for such an ask: the node says whether one is on its way.
    if fact.beneficiary.rule is PreemptionRule.REQUIRED_NODE:
        node = state.nodes[fact.node_id]
        if any(item.beneficiary == fact.beneficiary for item in node.allocations.values()):
            yield "G13: others still go for this ask"
    # Each application once, however many of its allocations go.
    for app in {app.serial: app for _, app in owners if app is not None}.values():
        yield from _torn(app, fact)
    if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
        yield from _beyond_the_guarantees(state, fact, victims)
        yield from _for_a_part(state, fact, victims)
        yield from _over_budget_or_in_cooldown(state, fact, victims)


def _over_budget_or_in_cooldown(
    state: PartitionState, fact: f.PreemptionDecided, victims: list[Allocation]
) -> Iterator[str]:
    """No queue loses more within a time than its budget says, and nothing that has just begun."""
    going: dict[Queue, int] = {}
    for victim in victims:
        leaf = state.applications[victim.spec.application_id].queue
        going[leaf] = going.get(leaf, 0) + 1
        cooldown_ns = leaf.properties.preemption_cooldown_ns
        if cooldown_ns and fact.at_ns < victim.allocated_ns + cooldown_ns:
            yield f"G33: {victim.spec.key} goes in the cooldown of {leaf.path}"
    for leaf, number in going.items():
        budget = leaf.properties.preemption_budget
        if not budget.window_ns:
            continue
        since_ns = fact.at_ns - budget.window_ns
        gone = sum(n for at_ns, n in leaf.preempted.items() if at_ns > since_ns)
        apps = (state.applications[id_] for id_ in leaf.applications.values())
        runs = sum(not it.comes_free for app in apps for it in app.allocations.values())
        # A share is of those that run and those that went in that time.
        most = math.ceil((runs + gone) * budget.most / 100) if budget.is_share else budget.most
        if gone + number > most:
            yield f"G33: {gone + number} of {leaf.path} go within its time, and {most} may"


def _for_a_part(
    state: PartitionState, fact: f.PreemptionDecided, victims: list[Allocation]
) -> Iterator[str]:
    """No victim goes for a gang whose leaf is not guaranteed room for all that is to come of it."""
    whom = fact.beneficiary
    app = state.applications[whom.application_id]
    # Without victims nothing is taken, and single placeholders claim for themselves.
    if not victims or not app.spec.is_gang or not app.asks[whom.key].spec.placeholder:
        return
    coming = expected(app.queue)
    wanted: Resource = {}
    for ask in app.asks.values():
        # Those that require their nodes have a rule of their own.
        if ask.spec.placeholder and not ask.spec.required_node:
            waiting = {kind: n * ask.remaining for kind, n in ask.spec.resource.items()}
            charge(coming, waiting)
            charge(wanted, waiting)
    for node in state.nodes.values():
        for kept in node.reservations.values():
            if kept.application_id == app.id and app.asks[kept.key].spec.placeholder:
                # What is promised is in the expected usage and in what waits: once is enough.
                discharge(coming, kept.promised)
    for kind, most in (app.queue.spec.guaranteed or {}).items():
        if wanted.get(kind, 0) > 0 and coming.get(kind, 0) > most:
            yield f"G31: {app.id} may claim a part of its {kind} only, and others go for it"


def _torn(app: Application, fact: f.PreemptionDecided) -> Iterator[str]:
    """A whole hard gang goes as a whole, or stays whole; so does what its queue binds together."""
    unit = app.queue.properties.preemption_unit
    bound = unit is PreemptionUnit.APPLICATION
    if fact.beneficiary.rule is PreemptionRule.GUARANTEE and unit is None:
        bound = app.spec.gang_style.lower() == "hard" and any(app.spec.placeholder_ask.values())
    stays = [it for it in app.allocations.values() if not it.comes_free]
    left = [it for it in stays if it.uuid not in fact.victims]
    if bound and left:
        # Broken before: what is left of it is of no use as a gang.
        broken = unit is None and any(_lacking(app, stays).values())
        lost = any(it.spec.originator for it in stays if it not in left)
        if not broken and (lost or not app.spec.is_gang or any(_lacking(app, left).values())):
            names = sorted(it.spec.key for it in left)
            yield f"G32: {app.id} is whole, and {names} of it stay without the rest"


def _lacking(app: Application, present: list[Allocation]) -> Resource:
    """Say how much of its members and placeholders a gang lacks with these alone."""
    has: Resource = {}
    # Before all placeholders have come it is not known which groups there are.
    some_are_unknown = any(
        n > app.placed.get(kind, 0) for kind, n in app.spec.placeholder_ask.items()
    )
    for it in present:
        group = it.spec.task_group
        if group in app.task_groups or (group and some_are_unknown):
            charge(has, it.resource)
    needs = {kind: n - app.spared.get(kind, 0) for kind, n in app.spec.placeholder_ask.items()}
    return {kind: max(0, n - has.get(kind, 0)) for kind, n in needs.items()}


def _beyond_the_guarantees(
    state: PartitionState, fact: f.PreemptionDecided, victims: list[Allocation]
) -> Iterator[str]:
    asking = state.queues[fact.beneficiary.queue]
    wanted = state.applications[fact.beneficiary.application_id].asks[fact.beneficiary.key]
    taken: dict[Queue, Resource] = {}
    # Without a fence the root is one: every queue is below it.
    fence = next((level for level in asking.lineage if _is_fence(level)), asking.lineage[-1])
    for victim in victims:
        leaf = state.applications[victim.spec.application_id].queue
        if fence is asking or fence not in leaf.lineage:
            yield f"G19: victim {victim.spec.key} is behind the fence of {fence.path}"
        for level in leaf.lineage:
            # Above the point where both meet the guarantees are those of both.
            if level not in asking.lineage and level.spec.guaranteed:
                charge(taken.setdefault(level, {}), victim.resource)
    for queue, gone in taken.items():
        yield from _below_guarantee(queue, gone, wanted.spec.resource)


def _is_fence(queue: Queue) -> bool:
    return queue.properties.preemption_policy is PreemptionPolicy.FENCE


def _below_guarantee(queue: Queue, gone: Resource, wanted: Resource) -> Iterator[str]:
    before = expected(queue)
    guaranteed = queue.spec.guaranteed or {}
    named = [kind for kind in guaranteed if gone.get(kind, 0) > 0]
    # The types that are wanted, if the guarantee names any of them.
    asked = [kind for kind in named if wanted.get(kind, 0) > 0] or named
    if named and not any(before.get(kind, 0) > guaranteed[kind] for kind in asked):
        yield f"G19: {queue.path} gives, and is not above its guarantee"
    for kind in named:
        # Taken from at or above it to below; what was below stays allowed.
        if before.get(kind, 0) >= guaranteed[kind] > before.get(kind, 0) - gone[kind]:
            yield f"G19: {queue.path} is taken below its guarantee of {kind}"
