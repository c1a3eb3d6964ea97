"""Nodes: capacity = allocated + occupied + available, type by type, at all times (G01).

`available` may be negative: a capacity update, a recovered allocation or foreign work may exceed a
node, and nothing is evicted for it. A node is schedulable if it is ready, not drained, and reported
to this core by its resource manager.
"""

from typing import Self

from msgspec import Struct

from yunikorn_actors.state.allocations import Allocation, ForeignAllocation, Reservation
from yunikorn_actors.state.applications import Incoming
from yunikorn_actors.values import devices as dev
from yunikorn_actors.values.resource import Resource, charge, discharge, pruned
from yunikorn_actors.values.tags import GPU_MODEL, INSTANCE_TYPE

UNKNOWN_INSTANCE = "UNKNOWN"


class Node(Struct, kw_only=True, eq=False, gc=False):
    """What a partition knows of one node.

    Nothing in it leads back to it, so collections of garbage may pass over it: it is one of ten
    thousand.
    """

    id: str
    drained: bool
    ready: bool
    awaited: bool = False
    """Known from before a restart, and not reported since: it takes no work of any kind."""
    capacity: Resource = {}
    occupied: Resource = {}
    """What others use of it: as it was reported, and foreign work."""
    attributes: dict[str, str] = {}
    instance_type: str = UNKNOWN_INSTANCE
    occupied_reported: Resource = {}
    available: Resource = {}
    allocated: Resource = {}
    allocations: dict[str, Allocation] = {}
    reservations: dict[tuple[str, str], Reservation] = {}
    promised: Resource = {}
    """The sum of the earmarks: room, free or coming, that is kept from others."""
    secured: Resource = {}
    """The sum of what is secured for its reservations."""
    foreign: dict[str, ForeignAllocation] = {}
    incoming: dict[str, Incoming] = {}
    """What parked asks hold here, by the UUID of the placeholder elsewhere; charged (G05)."""
    parts: list[int] | None = None
    """What is free of each of its devices; None if it does not tell them apart."""
    model: str = ""
    """Of its devices."""

    @classmethod
    def reported(
        cls,
        id: str,  # noqa: A002
        *,
        capacity: Resource,
        occupied: Resource,
        attributes: dict[str, str],
        drained: bool,
        ready: bool,
    ) -> Self:
        """Make a node from a report, and work out its sums.

        This is no `__post_init__`, which would run for a copy too: a copy has its sums already, and
        its foreign work would count twice.
        """
        node = cls(id=id, drained=drained, ready=ready)
        node.describe(attributes)
        node.set_sizes(capacity, occupied)
        return node

    @property
    def is_schedulable(self) -> bool:
        return self.ready and not self.drained and not self.awaited

    @property
    def is_open(self) -> bool:
        """It takes work, of whomever."""
        return self.is_schedulable and not self.reservations

    def describe(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.instance_type = attributes.get(INSTANCE_TYPE, "") or UNKNOWN_INSTANCE
        self.model = attributes.get(GPU_MODEL, "")
        count = dev.read_count(attributes)
        # A node that reports no count, now or before, has devices as an amount only.
        if count is not None or self.parts is not None:
            self._count_devices(count)

    def _count_devices(self, count: int | None) -> None:
        """Take another number of devices; work stays, also on those that are gone."""
        self.parts = None if count is None else [dev.WHOLE] * count
        for allocation in self.allocations.values():
            self.take_devices(allocation.devices, allocation.resource)
        for incoming in self.incoming.values():
            self.take_devices(incoming.devices, incoming.resource)

    # Charged here at once, and in no queue: there the placeholder still counts (G05).
    def take_in(self, placeholder: str, incoming: Incoming) -> None:
        """A parked ask holds room here until its placeholder elsewhere is gone."""
        self.incoming[placeholder] = incoming
        charge(self.allocated, incoming.resource)
        discharge(self.available, incoming.resource)
        if incoming.devices:
            self.take_devices(incoming.devices, incoming.resource)

    def let_out(self, placeholder: str) -> None:
        incoming = self.incoming.pop(placeholder)
        discharge(self.allocated, incoming.resource)
        charge(self.available, incoming.resource)
        if incoming.devices:
            self.give_devices_back(incoming.devices, incoming.resource)

    def take_devices(self, devices: dev.Devices, resource: Resource) -> None:
        if devices and self.parts is not None:
            dev.take(self.parts, devices, dev.amount_of(resource))

    def give_devices_back(self, devices: dev.Devices, resource: Resource) -> None:
        if devices and self.parts is not None:
            dev.give_back(self.parts, devices, dev.amount_of(resource))

    def set_sizes(self, capacity: Resource, occupied_reported: Resource) -> None:
        """Take a new capacity and a new reported occupied amount; work on the node stays."""
        # All sums anew: a type may have gone from any of the amounts.
        self.capacity = pruned(capacity)
        self.occupied_reported = occupied_reported
        self.occupied = dict(occupied_reported)
        for foreign in self.foreign.values():
            # Foreign work is occupied and not allocated: it counts in no queue.
            charge(self.occupied, foreign.resource)
        self.available = dict(self.capacity)
        discharge(self.available, self.occupied)
        discharge(self.available, self.allocated)
