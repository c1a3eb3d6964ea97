"""Who has most of what an ask lacks."""

from collections.abc import Iterable, Iterator
from typing import Final

from yunikorn_actors.planning.reasons import Cause, Obstacle
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.quantity import readable
from yunikorn_actors.values.resource import Resource, add

SHOWN_MAX: Final = 3
"""Of those that an answer has, a line of text names so many."""


def holders(state: PartitionState, application_id: str, obstacle: Obstacle) -> tuple[str, ...]:
    """Name the applications that have most of what is missing, and how much."""
    missing = _missing(obstacle)
    if obstacle.holders or not missing:
        return obstacle.holders[:SHOWN_MAX]
    kind = missing[0]
    held: dict[str, int] = {}
    for id_, resource in _held(state, application_id, obstacle):
        held[id_] = held.get(id_, 0) + resource.get(kind, 0)
    most = sorted(held, key=lambda id_: (-held[id_], id_))[:SHOWN_MAX]
    return tuple(f"{id_} {readable({kind: held[id_]})}" for id_ in most if held[id_])


def _missing(obstacle: Obstacle) -> list[str]:
    near = obstacle.near_miss
    return sorted(obstacle.lacks if near is None else near.lacks)


def _held(
    state: PartitionState, application_id: str, obstacle: Obstacle
) -> Iterator[tuple[str, Resource]]:
    """Yield who has something there, and how much."""
    near = obstacle.near_miss
    node = state.nodes.get(obstacle.where if near is None else near.node_id)
    if node is not None:
        yield from _on(node.allocations.values())
        return
    own = state.applications[application_id]
    for app in state.applications.values():
        if _counts(app, own, obstacle):
            yield app.id, add(app.allocated, app.placeholders)


def _on(allocations: Iterable[Allocation]) -> Iterator[tuple[str, Resource]]:
    for allocation in allocations:
        yield allocation.spec.application_id, allocation.resource


def _counts(app: Application, own: Application, obstacle: Obstacle) -> bool:
    """Whether what it has counts against the same limit."""
    path = obstacle.where
    is_below = app.queue.path == path or app.queue.path.startswith(f"{path}.")
    if obstacle.cause is not Cause.USER_LIMIT:
        return is_below
    return is_below and (app.spec.user == own.spec.user or app.group == own.group != "")
