"""How many nodes are kept at most, and which of them are given up first.

Ordinary reservations never keep so many nodes that the cluster freezes.
"""

from collections.abc import Iterator

from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.partition import PartitionState

RESERVED_NODES_MIN = 2
WAIT_NS = 3_600_000_000_000
"""A reservation of an ask that something else than room on nodes holds back ends after this."""


def reservations_max(state: PartitionState) -> int:
    """Two nodes, or a share of the schedulable ones, whichever is more."""
    percent = state.root.properties.reservation_max_nodes_percent
    return max(RESERVED_NODES_MIN, state.schedulable_count * percent // 100)


def used_up(state: PartitionState, ask: Ask, node_id: str) -> str | None:
    """Say which node is kept no more when a repeat of the ask is placed on this one (R-070).

    A node from which others have to go stays kept while a repeat is left for it.
    """
    if node_id in ask.reserved:
        return node_id
    ordinary = next(_ordinary(state, ask), None)
    if ordinary is not None or len(ask.reserved) < ask.remaining:
        return ordinary
    return ask.reserved[0]


def last_choice(state: PartitionState, ask: Ask) -> str:
    """A reservation that only waits is used up before an earmark."""
    return next(_ordinary(state, ask), ask.reserved[0])


def _ordinary(state: PartitionState, ask: Ask) -> Iterator[str]:
    key = (ask.spec.application_id, ask.spec.key)
    return (id_ for id_ in ask.reserved if state.nodes[id_].reservations[key].is_ordinary)
