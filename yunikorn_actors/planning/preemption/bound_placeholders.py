"""Victims for the placeholders of a gang that can run on one node alone: for all of them, or none.

Each has its own node, so what is decided for one says nothing about the others. Without the others
its victims would go in vain (G31).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from yunikorn_actors.planning.preemption.device_room import freed, keep
from yunikorn_actors.planning.preemption.required_node import victims_on
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge


class Bound(NamedTuple):
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
    """Return what goes for so many repeats of these asks; None if one of them finds no room."""
    found: list[Bound] = []
    gone: dict[str, Allocation] = {}
    served: dict[str, list[Resource]] = {}
    """What the repeats before have of each node."""
    for key, repeats in waiting.items():
        spec = app.asks[key].spec
        node = state.nodes.get(spec.required_node)
        if node is None or node.awaited:
            return None
        picked: list[Allocation] = []
        here = served.setdefault(node.id, [])
        for _ in range(repeats):
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
