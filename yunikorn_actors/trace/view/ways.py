"""The ways of all items in a picture: of each, from which message it came, and as what.

A way is that of `trace chain`. Ways of many messages come together, so each stage is there once.
What the filters have left out of the picture is a stage all the same, and has no message.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.origins.item_origins import Origin, before_each, passed_on, within
from yunikorn_actors.trace.origins.items import Item, manager_in
from yunikorn_actors.trace.origins.origin_queries import Recorded

NOWHERE: Final = -1


class Ways(Struct, kw_only=True):
    """A stage is an item, as it stands in a message; those of one message follow each other.

    First come the items of all messages, and then what the ways of others meet in a message by
    another name, or where the message is not in the picture.
    """

    first: list[int] = []
    """Of each message the first of its own stages; they go up to the first one of the next."""
    message: list[int] = []
    """Of each stage behind those; NOWHERE if the message is not in the picture."""
    item: list[int] = []
    """What each stage is called there, a number of `texts`."""
    before: list[int] = []
    """The stage of which it came; NOWHERE if the way begins here."""
    parts: list[tuple[int, int]] = []
    """Stages, and that of the same message which one is a part of, or the same by another name."""
    wide: list[int] = []
    """The stages that stand for all of an application, or for everything."""


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

    __slots__ = ("_names", "_stages", "first", "items", "manager", "parts")

    def __init__(self, first: int, items: Sequence[Item], manager: _OfManager) -> None:
        self.first = first
        """The stage of the first of them."""
        self.items = items
        self.manager = manager
        self.parts: Sequence[tuple[int, int]] = ()
        """The places of items that are parts of others, and of those."""
        self._stages: dict[Item, int] | None = None
        self._names: dict[_Name, int] | None = None

    def stage(self, item: Item) -> int | None:
        if len(self.items) == 1:
            return self.first if self.items[0] == item else None
        if self._stages is None:
            self._stages = {it: stage for stage, it in enumerate(self.items, self.first)}
        return self._stages.get(item)

    def whole(self, stage: int, item: Item) -> int | None:
        """Return the stage of which one is a part, or that is the same by another name."""
        if self._names is None:
            self._names = {}
            for own, it in enumerate(self.items, self.first):
                for name in _own_names(it):
                    self._names.setdefault(name, own)
        for name in (*_own_names(item), (item.application_id, ""), ("", "")):
            whole = self._names.get(name, stage)
            if whole != stage:
                return whole
        return None

    def find_parts(self) -> None:
        if len(self.items) > 1:
            wholes = (self.whole(stage, it) for stage, it in enumerate(self.items, self.first))
            self.parts = [
                (place, whole - self.first)
                for place, whole in enumerate(wholes)
                if whole is not None
            ]


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
        self._others: list[tuple[Delivery, Item, _OfManager]] = []
        """What was found in messages of the ways of other ones."""
        self._first: dict[tuple[int, Cause], _Own] = {}
        """The first of those to whom Context has sent the same facts."""
        self._ways = Ways()

    def ways(self, tell: Callable[[int], None]) -> Ways:
        ways = self._ways
        for it in self._deliveries:
            self._begin(it)
        ways.first.append(len(ways.item))
        for place, it in enumerate(self._deliveries):
            tell(place + 1)
            self._follow_own(it, self._own[place])
        # Each one may add the stage before it, behind all that are there already.
        for delivery, item, manager in self._others:
            self._follow(delivery, (item,), manager)
        return ways

    def _begin(self, delivery: Delivery) -> None:
        """Number the items of a message."""
        ways, number_of = self._ways, self._number_of
        items = self._recorded.items_of(delivery.message)
        if self._takes is not None:
            items = [*filter(self._takes, items)]
        ways.first.append(len(ways.item))
        self._own.append(_Own(len(ways.item), items, self._manager(delivery)))
        for item in items:
            if not (item.key or item.uuid):
                ways.wide.append(len(ways.item))
            ways.item.append(number_of(item.name))

    def _manager(self, delivery: Delivery) -> _OfManager:
        name = manager_in(delivery)
        if name not in self._managers:
            self._managers[name] = _OfManager(within(self._recorded, delivery), {})
        return self._managers[name]

    def _follow_own(self, delivery: Delivery, own: _Own) -> None:
        if not own.items:
            return
        before = self._ways.before
        source = self._sent_on(delivery, own)
        like = source or self._copied(delivery, own)
        if like is None:
            self._follow(delivery, own.items, own.manager)
            own.find_parts()
        else:
            stages = range(like.first, like.first + len(own.items))
            before.extend(stages if source else map(before.__getitem__, stages))
            own.parts = like.parts
        self._ways.parts.extend((own.first + one, own.first + other) for one, other in own.parts)

    def _sent_on(self, delivery: Delivery, own: _Own) -> _Own | None:
        """Return the message with the very same items that was sent on as this one."""
        found = passed_on(own.manager.recorded, delivery)
        place = None if found is None else self._places.get((found.mailbox, found.step))
        if place is None or place < 0:
            return None
        return self._own[place] if self._own[place].manager is own.manager else None

    def _copied(self, delivery: Delivery, own: _Own) -> _Own | None:
        """Return the same message to another receiver, sent in the same step."""
        if not isinstance(delivery.message, FactsAppended):
            return None
        first = self._first.setdefault((id(delivery.message), delivery.cause), own)
        return first if first is not own and first.manager is own.manager else None

    def _follow(self, delivery: Delivery, items: Sequence[Item], manager: _OfManager) -> None:
        stages = self._ways.before
        for found in before_each(manager.recorded, delivery, items):
            stages.append(NOWHERE if found is None else self._stage(found, manager))

    def _stage(self, at: Origin, manager: _OfManager) -> int:
        delivery, item = at.delivery, at.item
        step = delivery.mailbox, delivery.step
        place = self._places.get(step)
        if place is None:
            place = self._places[step] = NOWHERE - len(self._places)
        own = self._own[place] if place >= 0 else None
        stage = own.stage(item) if own is not None and own.manager is manager else None
        if stage is not None:
            return stage
        ways = self._ways
        stage = manager.others.setdefault((place, item), len(ways.item))
        if stage == len(ways.item):
            self._others.append((delivery, item, manager))
            ways.message.append(max(place, NOWHERE))
            ways.item.append(self._number_of(item.name))
            if not (item.key or item.uuid):
                ways.wide.append(stage)
            whole = None if own is None else own.whole(stage, item)
            if whole is not None:
                ways.parts.append((stage, whole))
        return stage


_Name = tuple[str, str]


def _own_names(item: Item) -> list[_Name]:
    by_uuid = [("", item.uuid)] if item.uuid else []
    by_key = [(item.application_id, item.key)] if item.key or not item.uuid else []
    return by_uuid + by_key
