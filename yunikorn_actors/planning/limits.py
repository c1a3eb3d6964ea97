"""A limit of one user or group in one queue, as the planner sees it.

Its usage is that of the replica plus what is in flight. Lanes and applications wait here for room
or for a place, as they do at a queue.
"""

from typing import TYPE_CHECKING, ClassVar

from yunikorn_actors.domain.application import Crowd
from yunikorn_actors.domain.limits import Limit
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.queue import NO_BOUND
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.domain.user import Usage
from yunikorn_actors.planning.held import Held
from yunikorn_actors.planning.shape import Wanted, shortfall

if TYPE_CHECKING:
    from yunikorn_actors.planning.views import AppView, Lane

NO_SERIAL = 0
LimitKey = tuple[str, str, bool]


class LimitView:
    crowd: ClassVar[Crowd] = Crowd.QUOTA
    __slots__ = ("held", "in_flight", "limit", "members", "starting", "state", "waiters")

    def __init__(self, state: PartitionState, limit: Limit) -> None:
        self.state = state
        self.limit = limit
        self.in_flight: Resource = {}
        self.starting: dict[int, int] = {}
        """Decisions in flight for applications that do not count as running yet."""
        self.waiters: dict[Lane, None] = {}
        self.held = Held()
        self.members = 0

    @property
    def is_quota(self) -> bool:
        return True

    @property
    def name(self) -> str:
        kind = "group" if self.limit.of_group else "user"
        return f"limit of {kind} {self.limit.owner} in {self.limit.path}"

    def _usage(self) -> Usage:
        owners = self.state.groups if self.limit.of_group else self.state.users
        return owners[self.limit.owner][self.limit.path]

    def room_for(self, wanted: Wanted) -> bool:
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
        used = dict(self._usage().amounts)
        charge(used, self.in_flight)
        return shortfall(wanted, self.limit.max_resources or {}, used)

    def room(self) -> Resource:
        """What is left of each type that it names; less than nothing where more was forced in."""
        amounts, in_flight = self._usage().amounts, self.in_flight
        return {
            kind: size - amounts.get(kind, 0) - in_flight.get(kind, 0)
            for kind, size in (self.limit.max_resources or {}).items()
        }

    def may_start(self, app: "AppView") -> bool:
        most = self.limit.max_applications
        if not most or app.app.serial in self._usage().running:
            return True
        return self.places(app.app.serial) > 0

    def places(self, serial: int = NO_SERIAL) -> int:
        """How many more applications may start; one that is on its way itself leaves its own."""
        most = self.limit.max_applications
        if not most:
            return NO_BOUND
        running = self._usage().running
        others = [other for other in self.starting if other != serial and other not in running]
        return most - len(running) - len(others)

    def take(self, app: "AppView", amount: Resource) -> None:
        charge(self.in_flight, amount)
        serial = app.app.serial
        self.starting[serial] = self.starting.get(serial, 0) + 1

    def settle(self, app: "AppView", amount: Resource) -> None:
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
        key = (limit.path, limit.owner, limit.of_group)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = LimitView(self._state, limit)
        view.limit = limit
        view.members += 1
        return view

    def part(self, view: LimitView) -> None:
        view.members -= 1
        if not view.members:
            limit = view.limit
            del self._views[limit.path, limit.owner, limit.of_group]
