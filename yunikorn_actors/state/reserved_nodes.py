"""Reserved nodes: how many are kept at most, and which reservations are given up first.

Ordinary reservations never keep so many nodes that the cluster freezes (R-073).
"""

from collections.abc import Iterable, Iterator

from yunikorn_actors.state.allocations import Ask, Reservation
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import HOUR
from yunikorn_actors.values.resource import Resource

RESERVED_NODES_MIN = 2
WAIT_NS = HOUR
"""A reservation of an ask that something else than room on nodes holds back ends after this."""


def reservations_max(state: PartitionState) -> int:
    """Two nodes, or a share of the schedulable ones, whichever is more."""
    percent = state.root.properties.reservation_max_nodes_percent
    return max(RESERVED_NODES_MIN, state.schedulable_count * percent // 100)


def kept_count(nodes: Iterable[Node]) -> int:
    """Count the nodes that are kept for asks that only wait; just these are bounded."""
    # Required and earmarked ones are not counted: the one costs nobody a choice, the other is room
    # that comes anyway.
    return sum(any(kept.is_ordinary for kept in node.reservations.values()) for node in nodes)


def used_up(state: PartitionState, ask: Ask, node_id: str) -> str | None:
    """Say which node is kept no more when a repeat of the ask is placed on this one (R-070).

    A node from which others have to go stays kept while a repeat is left for it.
    """
    if node_id in ask.reserved:
        # One that only waits goes before an earmark, and nothing goes while a repeat is left that
        # could use it.
        return node_id
    waiting = next(ordinary(state, ask), None)
    if waiting is not None or len(ask.reserved) < ask.remaining:
        return waiting
    return ask.reserved[0]


def own_earmark(state: PartitionState, ask: Ask, node_id: str) -> Resource | None:
    """Return what was promised to the repeat that would be placed on this node."""
    kept = used_up(state, ask, node_id) if ask.reserved else None
    return None if kept is None else kept_for(state, ask, kept).earmark


def kept_for(state: PartitionState, ask: Ask, node_id: str) -> Reservation:
    """Return the reservation of a node that is kept for the ask."""
    return state.nodes[node_id].reservations[ask.spec.application_id, ask.spec.key]


def ordinary(state: PartitionState, ask: Ask) -> Iterator[str]:
    """Yield the nodes that are kept for the ask and only wait: they go before its earmarks."""
    return (id_ for id_ in ask.reserved if kept_for(state, ask, id_).is_ordinary)
