"""Decisions on their way to Context, as far as they hold amounts."""

from collections.abc import Iterator

from msgspec import Struct

from yunikorn_actors.planning.model.limits import LimitView
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.state.allocations import Allocation, ReservationKey
from yunikorn_actors.values.devices import Devices, amount_of
from yunikorn_actors.values.resource import Resource, charge


class Place(Struct):
    """A place among the running applications, taken by a decision that brings nothing yet."""

    app: AppView
    limits: tuple[LimitView, ...]


class InFlight(Struct):
    """One decision on its way to Context, with all that it holds.

    The size is its own: the ask may be sent again with another one meanwhile.
    """

    ask: AskView
    node: NodeView
    resource: Resource
    limits: tuple[LimitView, ...]
    is_placeholder: bool
    """The ask may be sent again as another kind."""
    devices: Devices = ()
    goes_first: bool = False
    """The room that was freed for it is kept from others until it has been tried everywhere."""


class SwapInFlight(Struct):
    """A swap, or the end of a placeholder, on its way to Context."""

    ask: AskView
    placeholder: Allocation
    node: NodeView | None
    """Where room is taken; None on the placeholder's own node, and where nothing is taken."""
    resource: Resource
    is_swap: bool
    devices: Devices = ()

    @property
    def is_leaving(self) -> bool:
        """Whether the placeholder is to go, and its own node has its room back then."""
        placeholder = self.placeholder
        # By identity: it may have gone, and another may be there under its UUID after a restart.
        stands = self.ask.app.app.allocations.get(placeholder.uuid) is placeholder
        leaves = not self.is_swap or self.node is not None
        return leaves and stands and placeholder.may_be_released


class Flights:
    """Nothing else holds amounts beside the replica: empty when everything has been resolved."""

    def __init__(self) -> None:
        self.placements: dict[int, InFlight] = {}
        self.swaps: dict[int, SwapInFlight] = {}
        self.admissions: dict[int, AppView] = {}
        self.serving: dict[tuple[AskView, str], int] = {}
        """How many decisions in flight use a reservation, by ask and node."""
        self.serving_for: dict[ReservationKey, dict[tuple[AskView, str], None]] = {}
        """Which of these there are by the key under which a node knows the ask."""
        self.serving_on: dict[str, dict[ReservationKey, int]] = {}
        """The same by node, and by the key under which the node knows the ask."""

    def coming_to(self, node: NodeView) -> Iterator[Resource]:
        """Yield what decisions in flight take of a node."""
        for flight in self.placements.values():
            if flight.node is node:
                yield flight.resource
        for swap in self.swaps.values():
            if swap.node is node:
                yield swap.resource

    def devices_to(self, node: NodeView) -> Iterator[tuple[Devices, int]]:
        """Yield the devices that decisions in flight take of a node, with the amounts."""
        for flight in self.placements.values():
            if flight.node is node and flight.devices:
                yield flight.devices, amount_of(flight.resource)
        for swap in self.swaps.values():
            if swap.node is node and swap.devices:
                yield swap.devices, amount_of(swap.resource)

    def used_by(self, app: AppView) -> Resource:
        """Return what an application uses: what is allocated, and what is on its way."""
        used = dict(app.app.allocated)
        for flight in self.placements.values():
            if flight.ask.app is app and not flight.is_placeholder:
                charge(used, flight.resource)
        return used

    def count_of(self, ask: AskView) -> int:
        return sum(1 for flight in self.placements.values() if flight.ask is ask)

    def serve(self, ask: AskView, node: NodeView) -> None:
        """Placing the ask there ends a reservation of it."""
        key = (ask, node.id)
        # Several repeats of one ask may have a reservation on one node, so they are counted.
        self.serving[key] = self.serving.get(key, 0) + 1
        there, holder = self.serving_on.setdefault(node.id, {}), _holder(ask)
        there[holder] = there.get(holder, 0) + 1
        self.serving_for.setdefault(holder, {})[key] = None

    def served(self, flight: InFlight) -> bool:
        """The decision is in flight no longer; say whether it used a reservation."""
        key = (flight.ask, flight.node.id)
        if key not in self.serving:
            return False
        there, holder = self.serving_on[flight.node.id], _holder(flight.ask)
        self.serving[key] -= 1
        if not self.serving[key]:
            del self.serving[key]
            del self.serving_for[holder][key]
            if not self.serving_for[holder]:
                del self.serving_for[holder]
        there[holder] -= 1
        if not there[holder]:
            del there[holder]
        if not there:
            del self.serving_on[flight.node.id]
        return True


def _holder(ask: AskView) -> ReservationKey:
    return ask.app.app.id, ask.ask.spec.key
