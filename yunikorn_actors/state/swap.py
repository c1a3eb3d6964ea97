"""Swaps and task groups: what is remembered of placeholders and of the swaps in flight.

A placeholder is an allocation that a real ask of the same task group takes over. The swap is in
flight from the moment the placeholder is asked back until that is confirmed; the real ask is
*parked* meanwhile, neither pending nor allocated. If the real ask goes to another node, that node
is charged at once, and everything else keeps the placeholder's charge.
"""

from msgspec import Struct

from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.resource import Resource


class TaskGroup(Struct, kw_only=True, gc=False):
    """How the placeholders of one group of an application fared (G17)."""

    count: int = 0
    replaced: int = 0
    timed_out: int = 0
    """Those that ended in any other way than a swap."""

    @property
    def alive(self) -> int:
        """Placeholders that wait or stand; members of the group wait for them."""
        return self.count - self.replaced - self.timed_out


class Swap(Struct, frozen=True, kw_only=True, gc=False):
    """One repeat of a real ask is parked until its placeholder is gone."""

    placeholder: str
    """The UUID of the placeholder."""
    key: str
    node_id: str
    crosses: bool
    """The real one goes to another node, which is charged already."""


class Incoming(Struct, frozen=True, kw_only=True, gc=False):
    """Room on a node that a parked ask holds until its placeholder elsewhere is gone."""

    application_id: str
    resource: Resource
    devices: Devices = ()
