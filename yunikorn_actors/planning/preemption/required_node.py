"""Victims on one node, for an ask that can run there alone.

No guarantee, policy of a queue or delay counts here: on its node such an ask comes before all work
that is not more important. What is on its way out counts as gone, except a placeholder in a swap.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from yunikorn_actors.planning.preemption.device_room import freed, keep, targets
from yunikorn_actors.planning.preemption.victim_rules import is_movable
from yunikorn_actors.planning.preemption.victim_units import Part, Units, is_set_to_go_as_one
from yunikorn_actors.state.allocations import (
    Allocation,
    AskSpec,
    Beneficiary,
    PreemptionRule,
    ReservationKey,
)
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.device_fit import has_devices, promised_devices
from yunikorn_actors.state.eligibility import check_open
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import claimants, has_victims_going
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in, match_any

Order = tuple[bool, bool, Part, int, int, int, int, int, str]
Unit = tuple[Allocation, ...]


def beneficiary_of(state: PartitionState, spec: AskSpec) -> Beneficiary:
    return Beneficiary(
        rule=PreemptionRule.REQUIRED_NODE,
        queue=state.applications[spec.application_id].queue.path,
        application_id=spec.application_id,
        key=spec.key,
    )


def victims_on(
    state: PartitionState, node: Node, spec: AskSpec, free: Resource, gone: Container[str] = ()
) -> tuple[Allocation, ...] | None:
    """Return the victims; empty if the ask only has to wait, None if nothing helps.

    `gone` are victims for other asks; their room is free already.
    """
    # One preemption at a time: asking again before those are gone would take more than is needed.
    if is_dying_for(node, beneficiary_of(state, spec)):
        return ()
    # On a closed node, or on one without such devices, no victim helps.
    if check_open(node, spec) is not None or not has_devices(node, spec):
        return None
    # The list is used once for each choice of devices, so it must not be an iterator.
    room, units = room_left_for(state, node, spec, free), list(_units(state, node, spec, gone))

    def here() -> list[Allocation]:
        return [it for unit in units for it in unit if it.node_id == node.id]

    choices = [
        _victims({**spec.resource, **devices}, node, units, dict(room))
        # A node that tells its devices apart may serve the ask in several ways: the fewest victims
        # win.
        for devices in targets(room, spec.resource, here)
    ]
    return min((found for found in choices if found is not None), key=len, default=None)


def _victims(
    wanted: Resource, node: Node, units: list[Unit], room: Resource
) -> tuple[Allocation, ...] | None:
    picked: list[Unit] = []
    taken: dict[str, None] = {}
    for unit in units:
        # In order until there is room, so that the least important go first; the rest is left
        # alone.
        if fits_in(wanted, room):
            break
        rest = [it for it in unit if it.uuid not in taken]
        comes_free = _on(rest, node)
        # What frees nothing of what is short stays, even where it is less important.
        if _helps(comes_free, wanted, room):
            if len(rest) < len(unit):
                # The surplus of an application stands before all of it, and stays part of that.
                whole = {it.uuid for it in unit}
                picked = [it for it in picked if it[0].uuid not in whole]
            picked.append(unit)
            taken.update(dict.fromkeys([it.uuid for it in rest]))
            charge(room, comes_free)
    if not fits_in(wanted, room):
        return None
    # Later ones may be large enough to make earlier ones unnecessary.
    return tuple(it for unit in _without_needless(picked, node, wanted, room) for it in unit)


def is_dying_for(node: Node, beneficiary: Beneficiary) -> bool:
    """The ask has caused a preemption here that is not confirmed yet (R-077)."""
    return any(item.beneficiary == beneficiary for item in node.allocations.values())


def may_be_victim(allocation: Allocation, spec: AskSpec) -> bool:
    return may_go_along(allocation, spec) and match_any(allocation.resource, spec.resource)


def may_go_along(allocation: Allocation, spec: AskSpec) -> bool:
    """Whether it may go as a part of its application, of use itself or not."""
    return is_movable(allocation) and allocation.spec.priority <= spec.priority


Claims = dict[ReservationKey, Resource]
"""Room for which victims went, or are to go, by the ask that requires its node."""


def is_refused_beside(
    state: PartitionState, app: Application, wanted: Resource, own: Container[str], more: Claims
) -> bool:
    """Whether a maximum or a limit has no room for it when others have what victims went for.

    Of those that require their nodes: room that was promised for a guarantee is counted elsewhere.
    `own` are the asks that want this, and `more` is decided and not done yet.
    """
    # Nothing bounds it: the common case costs no walk over the reservations.
    limits = [*limits_of(app.queue, app.spec.user, app.group)]
    if not limits and all(level.spec.max is None for level in app.queue.lineage):
        return False
    of_levels: dict[str, Resource] = {level.path: dict(wanted) for level in app.queue.lineage}
    of_limits = [dict(wanted) for _ in limits]
    # Each claim is added to the wanted room: all of them have to fit under one maximum.
    for (application_id, key), amount in (_claims_in(state) | more).items():
        other = state.applications[application_id]
        if other is app and key in own:
            # It is in `wanted`, and would count twice.
            continue
        for level in other.queue.lineage:
            if level.path in of_levels:
                charge(of_levels[level.path], amount)
        for limit, coming in zip(limits, of_limits, strict=True):
            if limit in limits_of(other.queue, other.spec.user, other.group):
                charge(coming, amount)
    # Of a type that is not wanted a queue may be over: that is not the fault of this ask.
    kinds = [kind for kind, size in wanted.items() if size > 0]
    return any(
        not has_room(level.quota(), level.allocated, _of(of_levels[level.path], kinds))
        for level in app.queue.lineage
    ) or any(
        not has_room(limit.max_resources, state.usage_of(limit).amounts, _of(coming, kinds))
        for limit, coming in zip(limits, of_limits, strict=True)
    )


def _claims_in(state: PartitionState) -> Claims:
    return {
        holder: node.reservations[holder].due
        # The amount of the earmark if there is one; before that what the ask wants.
        or state.applications[holder[0]].asks[holder[1]].spec.resource
        for node in state.nodes.values()
        if node.reservations
        for holder in claimants(node)
    }


def _of(amounts: Resource, kinds: Iterable[str]) -> list[tuple[str, int]]:
    return [(kind, amounts[kind]) for kind in kinds]


def would_end_itself(app: Application, spec: AskSpec) -> bool:
    """Whether an ask would have its own application go whole, or its own gang break."""
    if app.id != spec.application_id:
        return False
    return is_set_to_go_as_one(app) or (spec.placeholder and app.spec.is_gang)


def room_left_for(state: PartitionState, node: Node, spec: AskSpec, free: Resource) -> Resource:
    """Return the room that the ask can count on without victims of its own.

    Room that other asks here have preempted, or are about to have, is theirs. What is free tells
    devices apart as types of their own, if the node does.
    """
    room, has_devices = dict(free), node.parts is not None
    for allocation in node.allocations.values():
        # What is on its way out will be free; the ask waits for it instead of asking for more.
        if allocation.frees_node:
            charge(room, freed(allocation) if has_devices else allocation.resource)
    for kept in node.reservations.values():
        app = state.applications[kept.application_id]
        other = app.asks[kept.key].spec
        # An ask that could run elsewhere keeps no room from one that is bound to this node.
        if other is spec or not kept.required:
            continue
        # All of it: victims are on their way out for it, and their room must not be used twice.
        if has_victims_going(node, kept):
            discharge(room, other.resource)
        else:
            discharge(room, kept.secured)
        for amount in promised_devices(kept):
            keep(room, amount)
    return room


def candidates(
    state: PartitionState, node: Node, spec: AskSpec, gone: Container[str] = ()
) -> list[Allocation]:
    units = units_for(spec, gone)
    found = [
        (_order(app, item, units.harm_of(app, item), spec), item)
        for item in node.allocations.values()
        if may_be_victim(item, spec) and item.uuid not in gone
        for app in (state.applications[item.spec.application_id],)
        if not would_end_itself(app, spec)
    ]
    return [item for _, item in sorted(found, key=itemgetter(0))]


def _units(
    state: PartitionState, node: Node, spec: AskSpec, gone: Container[str]
) -> Iterator[Unit]:
    """Yield what may go, in order: allocations, or whole units where the leaf makes them one."""
    units, seen = units_for(spec, gone), dict[str, None]()
    for allocation in candidates(state, node, spec, gone):
        if allocation.uuid in seen:
            continue
        app = state.applications[allocation.spec.application_id]
        unit = units.with_it(app, allocation)
        seen.update(dict.fromkeys(units.bound(app, unit)))
        if unit and all(may_go_along(item, spec) for item in unit):
            yield unit


def units_for(spec: AskSpec, gone: Container[str] = ()) -> Units:
    """Of what a gang does not need, that goes which may, on the node, in the order of the rule."""

    def rank(app: Application, allocation: Allocation) -> tuple[bool, Order]:
        is_here = allocation.node_id == spec.required_node
        order = _order(app, allocation, Part.SURPLUS, spec)
        return not (is_here and may_be_victim(allocation, spec)), order

    return Units(gone, first=rank)


def _on(unit: Iterable[Allocation], node: Node) -> Resource:
    comes_free: Resource = {}
    for allocation in unit:
        if allocation.node_id == node.id:
            charge(comes_free, freed(allocation))
    return comes_free


def _order(app: Application, allocation: Allocation, part: Part, spec: AskSpec) -> Order:
    """Plain work first, then opted-out, originators last; of these what hurts gangs least.

    Then the less important, of whole gangs the newer gang, the newer, the smaller.
    """
    victim, ask = allocation.spec, app.asks[allocation.spec.key]
    size = 0
    for kind in spec.resource:
        size += allocation.resource.get(kind, 0)
    return (
        victim.originator,
        not victim.allow_preempt_self,
        part,
        victim.priority,
        -app.serial if part is Part.OF_WHOLE else 0,
        -ask.created_ns,
        size,
        -ask.sequence,
        allocation.uuid,
    )


def _helps(comes_free: Resource, wanted: Resource, room: Resource) -> bool:
    return any(
        quantity > room.get(kind, 0) and comes_free.get(kind, 0) > 0
        for kind, quantity in wanted.items()
    )


def _without_needless(
    picked: list[Unit], node: Node, wanted: Resource, room: Resource
) -> list[Unit]:
    # From the last in order: what hurts most is spared first.
    kept = list(picked)
    for unit in reversed(picked):
        comes_free = _on(unit, node)
        discharge(room, comes_free)
        if fits_in(wanted, room):
            kept.remove(unit)
        else:
            charge(room, comes_free)
    return kept


class Bound(NamedTuple):
    """Victims for a placeholder that can run on one node alone: for all of its gang, or for none.

    Each has its own node, so what is decided for one says nothing about the others. Without the
    others its victims would go in vain (G31).
    """

    key: str
    node_id: str
    victims: tuple[Allocation, ...]
    """For all of its repeats that wait; empty if their room is there or on its way."""


def room_for_bound(
    state: PartitionState,
    app: Application,
    waiting: Mapping[str, int],
    free_on: Callable[[Node], Resource],
) -> list[Bound] | None:
    """Return what goes for the waiting repeats of these asks; None if one finds no room."""
    found: list[Bound] = []
    gone: dict[str, Allocation] = {}
    served: dict[str, list[Resource]] = {}
    """What the repeats before have of each node."""
    for key, repeats in waiting.items():
        spec = app.asks[key].spec
        # After a restart nothing is known of it until it is reported.
        node = state.nodes.get(spec.required_node)
        if node is None or node.awaited:
            return None
        picked: list[Allocation] = []
        here = served.setdefault(node.id, [])
        for _ in range(repeats):
            # Worked out anew: what goes for the repeats before is room, and what they take is not.
            free = dict(free_on(node))
            for allocation in gone.values():
                if allocation.node_id == node.id:
                    charge(free, freed(allocation))
            for resource in here:
                discharge(free, resource)
                keep(free, amount_of(resource))
            victims = victims_on(state, node, spec, free, gone)
            if victims is None:
                return None
            picked += victims
            gone.update((it.uuid, it) for it in victims)
            here.append(spec.resource)
        found.append(Bound(key, node.id, tuple(picked)))
    return found
