"""What must hold of placeholders and of swaps in flight (G10, G11, G17), derived from scratch."""

from collections.abc import Iterator

from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.swap import Swap
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.resource import fits_in


def links(state: PartitionState) -> Iterator[str]:
    """Every parked repeat has one released placeholder, and what it holds on a node is known."""
    for app in state.applications.values():
        yield from links_of(state, app)
    for node in state.nodes.values():
        for uuid, item in node.incoming.items():
            owner = state.applications.get(item.application_id)
            if owner is None or uuid not in owner.swaps:
                yield f"node {node.id} holds room for {uuid}, which is in no swap"


def links_of(state: PartitionState, app: Application) -> Iterator[str]:
    for uuid, swap in app.swaps.items():
        yield from _link(state, app, uuid, swap)
    linked: dict[str, int] = {}
    for swap in app.swaps.values():
        linked[swap.key] = linked.get(swap.key, 0) + 1
    for key, ask in app.asks.items():
        if ask.parked != linked.get(key, 0):
            yield f"ask {key} has {ask.parked} repeats parked, {linked.get(key, 0)} are linked"


def _link(state: PartitionState, app: Application, uuid: str, swap: Swap) -> Iterator[str]:
    placeholder, ask = app.allocations.get(uuid), app.asks.get(swap.key)
    if placeholder is None or not placeholder.spec.placeholder:
        yield f"{swap.key} is parked for {uuid}, which is no placeholder"
    elif placeholder.releasing is not TerminationType.PLACEHOLDER_REPLACED:
        yield f"{swap.key} is parked for a placeholder that was not asked back for it"
    elif ask is None or ask.spec.task_group != placeholder.spec.task_group:
        yield f"{swap.key} is parked for a placeholder of another task group"
    elif not fits_in(ask.spec.resource, placeholder.resource):
        yield f"{swap.key} is parked for a placeholder that is smaller"
    elif swap.crosses is (swap.node_id == placeholder.node_id):
        # In place means the same node, and across another one.
        where = placeholder.node_id
        yield f"{swap.key} is parked for node {swap.node_id}, its placeholder is on {where}"
    node = state.nodes.get(swap.node_id)
    if node is None or (uuid in node.incoming) is not swap.crosses:
        yield f"{swap.key} is parked for node {swap.node_id}, which does not know it"


def placeholders(state: PartitionState) -> Iterator[str]:
    """Every placeholder that was asked for waits, stands, was replaced or timed out."""
    for app in state.applications.values():
        alive: dict[str, int] = {}
        for item in app.allocations.values():
            if item.spec.placeholder:
                alive[item.spec.task_group] = alive.get(item.spec.task_group, 0) + 1
        waiting = 0
        for ask in app.asks.values():
            if ask.spec.placeholder and ask.remaining:
                alive[ask.spec.task_group] = alive.get(ask.spec.task_group, 0) + ask.remaining
                waiting += ask.remaining
        counted = {name: group.alive for name, group in app.task_groups.items() if group.alive > 0}
        if alive != counted:
            yield f"{app.id} has placeholders {alive}, its groups count {counted}"
        if waiting != app.waiting_placeholders:
            yield f"{app.id} counts {app.waiting_placeholders} waiting placeholders, not {waiting}"
