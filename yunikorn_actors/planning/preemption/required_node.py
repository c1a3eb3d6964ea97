"""Victims for an ask that can run on one node alone.

No guarantee, fence, policy of a queue or delay counts here: on its node such an ask comes before
all work that is not more important. What is on its way out counts as gone, except a placeholder
in a swap.
"""

from yunikorn_actors.planning.preemption.victim_rules import may_be_preempted
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec
from yunikorn_actors.state.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import has_victims_going
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in

Order = tuple[bool, bool, int, int, int, int, str]


def beneficiary_of(state: PartitionState, spec: AskSpec) -> Beneficiary:
    return Beneficiary(
        rule=PreemptionRule.REQUIRED_NODE,
        queue=state.applications[spec.application_id].queue.path,
        application_id=spec.application_id,
        key=spec.key,
    )


def victims_on(
    state: PartitionState, node: Node, spec: AskSpec, free: Resource
) -> tuple[Allocation, ...] | None:
    """Return the victims; empty if the ask only has to wait, None if nothing helps."""
    if is_dying_for(node, beneficiary_of(state, spec)):
        return ()
    room = room_left_for(state, node, spec, free)
    picked: list[Allocation] = []
    for allocation in candidates(state, node, spec):
        if fits_in(spec.resource, room):
            break
        if _helps(allocation, spec.resource, room):
            picked.append(allocation)
            charge(room, allocation.resource)
    return _without_needless(picked, spec, room) if fits_in(spec.resource, room) else None


def is_dying_for(node: Node, beneficiary: Beneficiary) -> bool:
    """The ask has caused a preemption here that is not confirmed yet (R-077)."""
    return any(item.beneficiary == beneficiary for item in node.allocations.values())


def may_be_victim(allocation: Allocation, spec: AskSpec) -> bool:
    return may_be_preempted(allocation, spec.resource) and allocation.spec.priority <= spec.priority


def room_left_for(state: PartitionState, node: Node, spec: AskSpec, free: Resource) -> Resource:
    """Return the room that the ask can count on without victims of its own.

    Room that other asks here have preempted, or are about to have, is theirs.
    """
    room = dict(free)
    for allocation in node.allocations.values():
        if allocation.frees_node:
            charge(room, allocation.resource)
    for kept in node.reservations.values():
        app = state.applications[kept.application_id]
        other = app.asks[kept.key].spec
        if other is spec or not kept.required:
            continue
        if has_victims_going(node, kept):
            discharge(room, other.resource)
        else:
            discharge(room, kept.secured)
    return room


def candidates(state: PartitionState, node: Node, spec: AskSpec) -> list[Allocation]:
    found = [item for item in node.allocations.values() if may_be_victim(item, spec)]
    return sorted(found, key=lambda item: _order(item, _ask_of(state, item), spec))


def _ask_of(state: PartitionState, allocation: Allocation) -> Ask:
    return state.applications[allocation.spec.application_id].asks[allocation.spec.key]


def _order(allocation: Allocation, ask: Ask, spec: AskSpec) -> Order:
    """Plain work first, then opted-out, originators last; the less important, newer, smaller."""
    victim = allocation.spec
    size = 0
    for kind in spec.resource:
        size += allocation.resource.get(kind, 0)
    return (
        victim.originator,
        not victim.allow_preempt_self,
        victim.priority,
        -ask.created_ns,
        size,
        -ask.sequence,
        allocation.uuid,
    )


def _helps(allocation: Allocation, wanted: Resource, room: Resource) -> bool:
    return any(
        quantity > room.get(kind, 0) and allocation.resource.get(kind, 0) > 0
        for kind, quantity in wanted.items()
    )


def _without_needless(
    picked: list[Allocation], spec: AskSpec, room: Resource
) -> tuple[Allocation, ...]:
    kept = list(picked)
    for allocation in reversed(picked):
        discharge(room, allocation.resource)
        if fits_in(spec.resource, room):
            kept.remove(allocation)
        else:
            charge(room, allocation.resource)
    return tuple(kept)
