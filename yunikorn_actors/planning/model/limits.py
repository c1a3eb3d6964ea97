"""Limit views: a limit of one user or group in one queue, as the planner sees it.

Its usage is that of the replica plus what is in flight. It refuses asks and holds applications back
as a queue does.
"""

from typing import ClassVar, Protocol

from yunikorn_actors.planning.model.shape import Wanted
from yunikorn_actors.state.applications import Application, Usage
from yunikorn_actors.state.gates import GateKind, Places, room_left, shortfall
from yunikorn_actors.state.limits import Limit, LimitKey
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource, charge, discharge


class Starting(Protocol):
    """An application that may start: nothing but its record counts here."""

    app: Application


class LimitView:
    kind: ClassVar[GateKind] = GateKind.QUOTA
    __slots__ = ("in_flight", "limit", "members", "starting", "state")

    def __init__(self, state: PartitionState, limit: Limit) -> None:
        self.state = state
        self.limit = limit
        self.in_flight: Resource = {}
        self.starting: dict[int, int] = {}
        """Decisions in flight for applications that do not count as running yet."""
        self.members = 0

    @property
    def is_quota(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return self.limit.name

    # Looked up each time: the books of a user come and go with its applications.
    def _usage(self) -> Usage:
        return self.state.usage_of(self.limit)

    def used(self) -> Resource:
        used = dict(self._usage().amounts)
        charge(used, self.in_flight)
        return used

    def room_for(self, wanted: Wanted) -> bool:
        """Say what `has_room` says of what is used.

        To add up both parts of that first would cost a dictionary for each try; the audit compares.
        """
        sizes = self.limit.max_resources
        if sizes is None:
            return True
        amounts, in_flight = self._usage().amounts, self.in_flight
        for kind, quantity in wanted:
            size = sizes.get(kind)
            if size is not None and quantity > size - amounts.get(kind, 0) - in_flight.get(kind, 0):
                return False
        return True

    def lacks(self, wanted: Wanted) -> Resource:
        """Say how much more room it would take."""
        return shortfall(self.limit.max_resources, self.used(), wanted)

    def room(self) -> Resource:
        return room_left(self.limit.max_resources, self.used())

    @property
    def reserving(self) -> dict[int, None]:
        """Applications with a place by a reservation; a user without work may have no books."""
        owners = self.state.groups if self.limit.of_group else self.state.users
        usage = owners.get(self.limit.owner, {}).get(self.limit.path)
        return {} if usage is None else usage.reserving

    @property
    def with_place(self) -> tuple[int, ...]:
        """Applications that have a place, and may be blocked all the same."""
        return tuple(self.reserving)

    def may_start(self, app: Starting) -> bool:
        return not self.limit.max_applications or self._places().may_start(
            app.app.serial, self.starting
        )

    def counts(self, app: Starting) -> bool:
        """Whether it has one of the places, other than by a reservation."""
        serial = app.app.serial
        return serial in self._usage().running or serial in self.starting

    def places(self) -> int:
        """How many more applications may start."""
        return self._places().free(self.starting)

    def _places(self) -> Places:
        return self._usage().places(self.limit.max_applications)

    def take(self, app: Starting, amount: Resource) -> None:
        charge(self.in_flight, amount)
        serial = app.app.serial
        # By serial: several decisions for one application take one place.
        self.starting[serial] = self.starting.get(serial, 0) + 1

    def resolve(self, app: Starting, amount: Resource) -> None:
        discharge(self.in_flight, amount)
        serial = app.app.serial
        self.starting[serial] -= 1
        if not self.starting[serial]:
            del self.starting[serial]


def refusing_limit(limits: tuple[LimitView, ...], wanted: Wanted) -> LimitView | None:
    """Return the first of them that has no room, if any."""
    for limit in limits:
        if not limit.room_for(wanted):
            return limit
    return None


class LimitViews:
    """The limits that count for any application of the partition, each once."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._views: dict[LimitKey, LimitView] = {}

    def join(self, limit: Limit) -> LimitView:
        view = self._views.get(limit.key)
        if view is None:
            view = self._views[limit.key] = LimitView(self._state, limit)
        # The configuration may say another amount by now; what is in flight stays.
        view.limit = limit
        view.members += 1
        return view

    def get(self, limit: Limit) -> LimitView | None:
        return self._views.get(limit.key)

    def part(self, view: LimitView) -> None:
        # A limit without members is forgotten, with nothing in flight below it.
        view.members -= 1
        if not view.members:
            del self._views[view.limit.key]
