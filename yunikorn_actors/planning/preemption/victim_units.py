"""The unit of a victim: a single allocation, or a whole application.

A hard gang is of use only while it is whole. So nothing of it is a victim by itself, with two
exceptions: what it has beyond its `placeholder_ask` (the surplus), and all of it where it is not
whole in any case (it is broken). `preemption.unit` of its leaf says otherwise, for gangs of any
style and for work of no gang: where it is `application`, what is broken goes as one as well. The
planner that chooses and Context that checks ask the same functions.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final

from yunikorn_actors.config import PreemptionUnit
from yunikorn_actors.planning.preemption.victim_rules import Order, order_of
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gangs import is_member
from yunikorn_actors.values.resource import Resource, charge, discharge


class Part(IntEnum):
    """What an allocation is to its application; what hurts least is preempted first."""

    OF_BROKEN = 0
    """Of a gang that is not whole: nothing useful is lost."""
    SURPLUS = 1
    """The gang stays whole without it."""
    ALONE = 2
    """It goes by itself: of no gang, or of one whose members go one by one."""
    OF_WHOLE = 3
    """It goes with its application only."""
    FROM_WHOLE = 4
    """Taken alone all the same, for a required node or a quota: its gang is not whole any more."""


def goes_as_one(app: Application) -> bool:
    """Whether the application is the unit of a victim, as far as it is whole."""
    unit = app.queue.properties.preemption_unit
    # Without a word of the leaf only hard gangs go as one: a soft one goes on without some members.
    if unit is None:
        return app.spec.is_gang and app.spec.is_hard
    return unit is PreemptionUnit.APPLICATION


def is_set_to_go_as_one(app: Application) -> bool:
    """Whether its leaf makes it go as one, which holds for required nodes and quotas as well."""
    return app.queue.properties.preemption_unit is PreemptionUnit.APPLICATION


def units_among(
    applications: Mapping[str, Application], victims: Iterable[Allocation]
) -> list[list[Allocation]]:
    """Return the units of a decision: an application that goes as one stays together."""
    units: dict[str, list[Allocation]] = {}
    for allocation in victims:
        id_ = allocation.spec.application_id
        is_one = is_set_to_go_as_one(applications[id_])
        units.setdefault(id_ if is_one else allocation.uuid, []).append(allocation)
    return list(units.values())


def staying_of(
    app: Application, gone: Container[str] = (), back: Container[str] = ()
) -> list[Allocation]:
    """Return what stays of an application once `gone` and all that was asked back have ended.

    A placeholder in a swap counts: its member takes its place. `back` count as if they had not
    been asked back.
    """
    return [
        it
        for it in app.allocations.values()
        if (not it.comes_free or it.uuid in back) and it.uuid not in gone
    ]


def is_whole(app: Application, allocations: Iterable[Allocation]) -> bool:
    """Whether with these alone the gang would have all of its members, or their placeholders."""
    return all(quantity >= 0 for quantity in _beyond_need(app, allocations).values())


def kind_of(app: Application, allocations: Iterable[Allocation]) -> Part:
    """Return what is hurt if all that stays of an application goes as one, a whole gang or not."""
    if not app.spec.is_gang:
        return Part.ALONE
    return Part.OF_WHOLE if is_whole(app, allocations) else Part.OF_BROKEN


def _beyond_need(app: Application, allocations: Iterable[Allocation]) -> Resource:
    """Return what members have beyond what their gang needs; negative is what it lacks."""
    # What makes it whole is less by what its members did not need of their placeholders.
    beyond = dict(app.spared)
    discharge(beyond, app.spec.placeholder_ask)
    for allocation in allocations:
        # Work outside the task groups adds nothing to what the gang needs.
        if is_member(app, allocation.spec):
            charge(beyond, allocation.resource)
    return beyond


def may_go_together(app: Application, victims: Collection[str], gone: Container[str] = ()) -> bool:
    """Whether exactly these may go in one decision, of an application that goes as one.

    Those that are `gone` go in a decision before it.
    """
    staying = staying_of(app, gone)
    left = [it for it in staying if it.uuid not in victims]
    # All of it goes: nothing is left that could be broken.
    if not left:
        return True
    # No gang, and it goes as one: a part of it alone may not go.
    if not app.spec.is_gang:
        return False
    # It is broken already, so any part of it may go, unless the leaf wants all or nothing.
    if not is_whole(app, staying):
        return not is_set_to_go_as_one(app)
    # The originator starts the others: without it the gang would come to an end.
    originators = any(it.spec.originator for it in staying if it.uuid in victims)
    return not originators and is_whole(app, left)


Rank = Callable[[Application, Allocation], Any]
"""By which of the members that a gang does not need go first."""
_UNKNOWN: Final[dict[str, Part]] = {}


class Units:
    """What each allocation is to its application, with some gone already, or not yet."""

    def __init__(
        self,
        gone: Container[str] = (),
        back: Container[str] = (),
        *,
        first: Rank | None = None,
        spare: dict[int, Resource] | None = None,
    ) -> None:
        """Of members of which a gang does not need all, those are surplus that rank first.

        Without a rank these are the newest. `spare` is what the gangs have left beyond their need
        while some of it is taken, by the serial of the application: several searches of one plan
        share it.
        """
        self._gone = gone
        self._back = back
        self._first = first
        self._spare = {} if spare is None else spare
        self._parts: dict[int, dict[str, Part] | None] = {}
        """Of each application by its serial: worked out once. None if it does not go as one."""
        self._beyond: dict[int, Resource] = {}
        """What each gang that is whole has beyond its need, of the types that it needs."""

    def part_of(self, app: Application, allocation: Allocation) -> Part:
        # Looked up first: a search asks this of each allocation on each node.
        parts = self._parts.get(app.serial, _UNKNOWN)
        if parts is _UNKNOWN:
            parts = self._parts_of(app) if goes_as_one(app) else None
            self._parts[app.serial] = parts
        # What was asked back since is a victim of nobody.
        return Part.ALONE if parts is None else parts.get(allocation.uuid, Part.OF_WHOLE)

    def harm_of(self, app: Application, allocation: Allocation) -> Part:
        """As `part_of`; for an allocation whose application goes as one, the part of all of it."""
        part = self.part_of(app, allocation)
        # Only under `preemption.unit` it takes the others with it; by itself it hurts as it is.
        if part is not Part.OF_WHOLE or not is_set_to_go_as_one(app):
            return part
        return kind_of(app, staying_of(app, self._gone, self._back))

    def with_it(self, app: Application, allocation: Allocation) -> tuple[Allocation, ...]:
        """Return what goes with an allocation where guarantees do not count, itself included.

        The allocation alone, unless its leaf says otherwise; empty if it may not go.
        """
        if is_set_to_go_as_one(app) and self.part_of(app, allocation) is Part.OF_WHOLE:
            return self.whole(app)
        return (allocation,)

    def bound(self, app: Application, unit: Iterable[Allocation]) -> list[str]:
        """Return which of a unit go in it only; a surplus may go by itself as well."""
        return [it.uuid for it in unit if self.part_of(app, it) is Part.OF_WHOLE]

    def whole(self, app: Application) -> tuple[Allocation, ...]:
        """Return all that goes with a whole application; nothing if it cannot go as one."""
        if not goes_as_one(app):
            return ()
        staying = staying_of(app, self._gone, self._back)
        # What is being swapped, or is bound to its node, would stay.
        if not staying or not all(self._may_go(it) for it in staying):
            return ()
        # A broken gang goes one by one, unless its leaf says that all goes together.
        if app.spec.is_gang and not (is_set_to_go_as_one(app) or is_whole(app, staying)):
            return ()
        staying.sort(key=lambda it: order_of(it, app.asks[it.spec.key]))
        return tuple(staying)

    # -- surplus

    def could_be_surplus(self, app: Application, allocation: Allocation) -> bool:
        """Whether its gang is whole, and would be without it as well."""
        if self.part_of(app, allocation) is Part.SURPLUS:
            return True
        # None where the gang is not whole, or where the question was never asked of it.
        beyond = self._beyond.get(app.serial)
        return beyond is not None and self._is_surplus(app, allocation, beyond)

    def surplus_among(self, app: Application, those: Iterable[Allocation]) -> list[Allocation]:
        """Return which of those may go together and leave the gang whole, the first in order."""
        found: list[Allocation] = []
        # Left is shared by those that go together: each takes its part of the surplus.
        left = dict(self._beyond[app.serial])
        able = [it for it in those if self._is_surplus(app, it, left)]
        for allocation in sorted(able, key=lambda it: self._rank(app, it)):
            # Those before it have used up what the gang has beyond its need.
            if self._is_surplus(app, allocation, left):
                found.append(allocation)
                if is_member(app, allocation.spec):
                    discharge(left, _of_types(allocation.resource, left))
        return found

    def spare_of(self, app: Application, allocation: Allocation) -> Resource | None:
        """Return what the gang of a surplus has left, less what was taken; None if it is no member.

        Work on several nodes may be surplus where not all of it can go.
        """
        if not is_member(app, allocation.spec):
            return None
        return self._spare.setdefault(app.serial, dict(self._beyond[app.serial]))

    def _may_go(self, allocation: Allocation) -> bool:
        return allocation.may_be_released or allocation.uuid in self._back

    def _parts_of(self, app: Application) -> dict[str, Part]:
        staying = staying_of(app, self._gone, self._back)
        if not app.spec.is_gang:
            # No gang, and its leaf has it go as one: there is no surplus to part with.
            return {it.uuid: Part.OF_WHOLE for it in staying}
        beyond = _beyond_need(app, staying)
        # Nothing of a broken gang is surplus: it lacks already what would be left.
        if any(quantity < 0 for quantity in beyond.values()):
            part = Part.OF_WHOLE if is_set_to_go_as_one(app) else Part.OF_BROKEN
            return dict.fromkeys([it.uuid for it in staying], part)
        # Also the types that are needed less of: what is beyond the need is counted in them, too.
        self._beyond[app.serial] = _of_types(beyond, {**app.spec.placeholder_ask, **app.spared})
        parts = dict.fromkeys([it.uuid for it in staying], Part.OF_WHOLE)
        for allocation in self.surplus_among(app, staying):
            parts[allocation.uuid] = Part.SURPLUS
        return parts

    def _rank(self, app: Application, allocation: Allocation) -> tuple[object, Order]:
        first = None if self._first is None else self._first(app, allocation)
        return first, order_of(allocation, app.asks[allocation.spec.key])

    def _is_surplus(self, app: Application, allocation: Allocation, beyond: Resource) -> bool:
        """Whether a gang that is whole is whole without it, and it may go."""
        # One of no task group does not count, so the gang is whole without it.
        if is_member(app, allocation.spec) and not fits_beyond(allocation.resource, beyond):
            return False
        return not allocation.spec.originator and self._may_go(allocation)


def fits_beyond(size: Resource, beyond: Resource) -> bool:
    """Whether a gang has so much beyond its need; types that it does not need are nothing to it."""
    return all(size.get(kind, 0) <= left for kind, left in beyond.items())


def _of_types(amounts: Resource, kinds: Iterable[str]) -> Resource:
    return {kind: amounts.get(kind, 0) for kind in kinds}
