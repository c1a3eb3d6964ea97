"""How many nodes ordinary reservations may keep: never so many that the cluster freezes."""

from yunikorn_actors.domain.partition import PartitionState

RESERVED_NODES_MIN = 2


def reservations_max(state: PartitionState) -> int:
    """Two nodes, or a share of the schedulable ones, whichever is more."""
    percent = state.root.properties.reservation_max_nodes_percent
    return max(RESERVED_NODES_MIN, state.schedulable_count * percent // 100)
