"""The ways of all items in a picture: of each, from which message it came, and as what.

A way is that of `trace chain`. Ways of many messages come together, so each stage is there once.
What the filters have left out of the picture is a stage all the same, and has no message.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.trace.items import Item, manager_in
from yunikorn_actors.trace.origins import Origin, before_each, within
from yunikorn_actors.trace.recorded import Recorded

NOWHERE: Final = -1


class Ways(Struct, kw_only=True):
    """An entry of each list but `first` is about a stage: an item, as it stands in a message."""

    message: list[int] = []
    """NOWHERE if the message is not in the picture."""
    item: list[int] = []
    """What it is called there, a number of `texts`."""
    before: list[int] = []
    """The stage of which it came; NOWHERE if the way begins here."""
    part_of: list[int] = []
    """The stage of the same message that it is a part of, or that is the same by another name."""
    wide: list[int] = []
    """The stages, of those, that stand for all of an application, or for everything."""
    first: list[int] = []
    """Of each message the first of its own stages; they go up to the first one of the next."""


def ways_of(
    recorded: Recorded,
    deliveries: Sequence[Delivery],
    takes: Callable[[Item], bool] | None,
    number_of: Callable[[str], int],
    tell: Callable[[int], None],
) -> Ways:
    """Follow the items that are taken of each message, all of them if nothing is asked for."""
    return _Following(recorded, deliveries, takes, number_of).ways(tell)


class _OfManager(NamedTuple):
    """What is followed for one resource manager."""

    recorded: Recorded
    others: dict[tuple[int, Item], int]
    """The stages that are not items of their message under that very name."""


class _Own:
    """The items of a message that are followed from there."""

    __slots__ = ("_names", "_stages", "first", "items", "manager")

    def __init__(self, first: int, items: Sequence[Item], manager: _OfManager) -> None:
        self.first = first
        """The stage of the first of them."""
        self.items = items
        self.manager = manager
        self._stages: dict[Item, int] | None = None
        self._names: dict[_Name, int] | None = None

    def stage(self, item: Item) -> int | None:
        if len(self.items) == 1:
            return self.first if self.items[0] == item else None
        if self._stages is None:
            self._stages = {it: stage for stage, it in enumerate(self.items, self.first)}
        return self._stages.get(item)

    def whole(self, stage: int, item: Item) -> int:
        """Return the stage of which one is a part, or that is the same by another name."""
        if len(self.items) == 1 and stage == self.first:
            return NOWHERE
        if self._names is None:
            self._names = {}
            for own, it in enumerate(self.items, self.first):
                for name in _own_names(it):
                    self._names.setdefault(name, own)
        for name in (*_own_names(item), (item.application_id, ""), ("", "")):
            whole = self._names.get(name, stage)
            if whole != stage:
                return whole
        return NOWHERE


class _Following:
    def __init__(
        self,
        recorded: Recorded,
        deliveries: Sequence[Delivery],
        takes: Callable[[Item], bool] | None,
        number_of: Callable[[str], int],
    ) -> None:
        self._recorded = recorded
        self._deliveries = deliveries
        self._takes = takes
        self._number_of = number_of
        self._places = {(it.mailbox, it.step): place for place, it in enumerate(deliveries)}
        """What is not in the picture has a place below zero."""
        self._managers: dict[str, _OfManager] = {}
        self._own: list[_Own] = []
        """Of each message."""
        self._others: list[tuple[Delivery, int, Item, _OfManager]] = []
        """Messages, their places, and what was found there of the ways of other ones."""
        self._ways = Ways()

    def ways(self, tell: Callable[[int], None]) -> Ways:
        ways = self._ways
        for it in self._deliveries:
            self._begin(it)
        ways.first.append(len(ways.item))
        for place, (it, own) in enumerate(zip(self._deliveries, self._own, strict=True)):
            tell(place + 1)
            if own.items:
                self._follow(it, place, own.items, own.manager)
        # Each one may add the stage before it, behind all that are there already.
        for delivery, place, item, manager in self._others:
            self._follow(delivery, place, (item,), manager)
        return ways

    def _begin(self, delivery: Delivery) -> None:
        """Number the items of a message."""
        ways, number_of, place = self._ways, self._number_of, len(self._own)
        items = self._recorded.items_of(delivery.message)
        if self._takes is not None:
            items = [*filter(self._takes, items)]
        first = len(ways.item)
        ways.first.append(first)
        self._own.append(_Own(first, items, self._manager(delivery)))
        for item in items:
            ways.message.append(place)
            ways.item.append(number_of(item.name))

    def _manager(self, delivery: Delivery) -> _OfManager:
        name = manager_in(delivery)
        if name not in self._managers:
            self._managers[name] = _OfManager(within(self._recorded, delivery), {})
        return self._managers[name]

    def _follow(
        self, delivery: Delivery, place: int, items: Sequence[Item], manager: _OfManager
    ) -> None:
        """Add what was before items of a message, and what they are parts of there."""
        ways = self._ways
        own = self._own[place] if place >= 0 else None
        for item, found in zip(items, before_each(manager.recorded, delivery, items), strict=True):
            stage = len(ways.before)
            ways.before.append(NOWHERE if found is None else self._stage(found, manager))
            ways.part_of.append(NOWHERE if own is None else own.whole(stage, item))
            if not (item.key or item.uuid):
                ways.wide.append(stage)

    def _stage(self, at: Origin, manager: _OfManager) -> int:
        delivery, item = at.delivery, at.item
        step = delivery.mailbox, delivery.step
        place = self._places.setdefault(step, NOWHERE - len(self._places))
        if place >= 0:
            own = self._own[place]
            stage = own.stage(item) if own.manager is manager else None
            if stage is not None:
                return stage
        ways = self._ways
        stage = manager.others.setdefault((place, item), len(ways.item))
        if stage == len(ways.item):
            self._others.append((delivery, place, item, manager))
            ways.message.append(max(place, NOWHERE))
            ways.item.append(self._number_of(item.name))
        return stage


_Name = tuple[str, str]


def _own_names(item: Item) -> list[_Name]:
    by_uuid = [("", item.uuid)] if item.uuid else []
    by_key = [(item.application_id, item.key)] if item.key or not item.uuid else []
    return by_uuid + by_key
