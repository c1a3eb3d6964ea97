"""Nodes: capacity = allocated + occupied + available, type by type, at all times.

`available` may be negative: a capacity update, a recovered allocation or foreign work may exceed a
node, and nothing is evicted for it. A node is schedulable when it is neither drained nor not ready.
"""

from yunikorn_actors.domain.allocation import Allocation, ForeignAllocation, Reservation
from yunikorn_actors.domain.resource import Resource, charge, discharge, pruned
from yunikorn_actors.domain.swap import Incoming
from yunikorn_actors.si.constants import INSTANCE_TYPE

UNKNOWN_INSTANCE = "UNKNOWN"


class Node:
    __slots__ = (
        "allocated",
        "allocations",
        "attributes",
        "available",
        "capacity",
        "drained",
        "foreign",
        "id",
        "incoming",
        "instance_type",
        "occupied",
        "occupied_reported",
        "promised",
        "ready",
        "reservations",
    )

    def __init__(
        self,
        node_id: str,
        *,
        capacity: Resource,
        occupied: Resource,
        attributes: dict[str, str],
        drained: bool,
        ready: bool,
    ) -> None:
        self.id = node_id
        self.describe(attributes)
        self.drained = drained
        self.ready = ready
        self.allocated: Resource = {}
        self.allocations: dict[str, Allocation] = {}
        self.reservations: dict[tuple[str, str], Reservation] = {}
        self.promised: Resource = {}
        """The sum of the earmarks: room, free or coming, that is kept from others."""
        self.foreign: dict[str, ForeignAllocation] = {}
        self.incoming: dict[str, Incoming] = {}
        """What parked asks hold here, by the UUID of the placeholder elsewhere; charged (G05)."""
        self.set_sizes(capacity, occupied)

    @property
    def is_schedulable(self) -> bool:
        return self.ready and not self.drained

    @property
    def is_open(self) -> bool:
        """It takes work, of whomever."""
        return self.is_schedulable and not self.reservations

    def describe(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.instance_type = attributes.get(INSTANCE_TYPE, "") or UNKNOWN_INSTANCE

    def set_sizes(self, capacity: Resource, occupied_reported: Resource) -> None:
        """Take a new capacity and a new reported occupied amount; work on the node stays."""
        self.capacity = pruned(capacity)
        self.occupied_reported = occupied_reported
        self.occupied = dict(occupied_reported)
        for foreign in self.foreign.values():
            charge(self.occupied, foreign.resource)
        self.available = dict(self.capacity)
        discharge(self.available, self.occupied)
        discharge(self.available, self.allocated)
