"""The ways of all items in a picture: of each, from which message it came, and as what.

A way is that of `trace chain`. Ways of many messages come together, so each stage is there once.
What the filters have left out of the picture is a stage all the same, and has no message.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.trace.items import Item, items_in, manager_in
from yunikorn_actors.trace.origins import Origin, before, came_of_a_step, within
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


_Stage = tuple[int, Item, str]
"""The place of a message, an item of it, and the resource manager that the way concerns."""


def ways_of(
    recorded: Recorded,
    deliveries: Sequence[Delivery],
    takes: Callable[[Item], bool],
    number_of: Callable[[str], int],
) -> Ways:
    """Follow the items that are taken of each message."""
    places = {Cause(it.mailbox, it.step): place for place, it in enumerate(deliveries)}
    return _Following(recorded, places, number_of).ways(deliveries, takes)


class _Following:
    def __init__(
        self, recorded: Recorded, places: dict[Cause, int], number_of: Callable[[str], int]
    ) -> None:
        self._recorded = recorded
        self._places = places
        """What is not in the picture has a place below zero."""
        self._number_of = number_of
        self._within: dict[str, Recorded] = {}
        self._stages: dict[_Stage, int] = {}
        self._rest: list[tuple[Delivery, Item, str]] = []
        self._own: dict[tuple[int, str, str], int] = {}
        """The items of each message by their names; one without a key means all."""
        self._of_steps: dict[tuple[int, Item, str, str], int] = {}
        """The stage before an item that Context has sent in a step, to several receivers."""
        self._ways = Ways()

    def ways(self, deliveries: Sequence[Delivery], takes: Callable[[Item], bool]) -> Ways:
        ways = self._ways
        for it in deliveries:
            ways.first.append(len(self._rest))
            items = items_in(it.message)
            if items:
                manager = manager_in(it)
                if manager not in self._within:
                    self._within[manager] = within(self._recorded, it)
                place = self._place(it)
                for item in filter(takes, items):
                    stage = self._stage(it, place, item, manager)
                    for name in _own_names(item):
                        self._own.setdefault((place, *name), stage)
        ways.first.append(len(self._rest))
        # Each one may add the stage before it, behind all that are there already.
        for stage, (delivery, item, manager) in enumerate(self._rest):
            ways.before.append(self._before(delivery, item, manager))
            ways.part_of.append(self._whole(stage, self._place(delivery), item))
            if not (item.key or item.uuid):
                ways.wide.append(stage)
        return ways

    def _before(self, delivery: Delivery, item: Item, manager: str) -> int:
        if not came_of_a_step(delivery, item):
            return self._found_before(delivery, item, manager)
        step = delivery.cause.step, item, manager, manager_in(delivery)
        if step not in self._of_steps:
            self._of_steps[step] = self._found_before(delivery, item, manager)
        return self._of_steps[step]

    def _found_before(self, delivery: Delivery, item: Item, manager: str) -> int:
        found = before(self._within[manager], Origin(delivery, item))
        if found is None:
            return NOWHERE
        return self._stage(found.delivery, self._place(found.delivery), found.item, manager)

    def _place(self, delivery: Delivery) -> int:
        at = Cause(delivery.mailbox, delivery.step)
        return self._places.setdefault(at, NOWHERE - len(self._places))

    def _stage(self, delivery: Delivery, place: int, item: Item, manager: str) -> int:
        number = self._stages.setdefault((place, item, manager), len(self._rest))
        if number == len(self._rest):
            self._rest.append((delivery, item, manager))
            self._ways.message.append(max(place, NOWHERE))
            self._ways.item.append(self._number_of(item.name))
        return number

    def _whole(self, stage: int, place: int, item: Item) -> int:
        for name in (*_own_names(item), (item.application_id, ""), ("", "")):
            whole = self._own.get((place, *name))
            if whole is not None and whole != stage:
                return whole
        return NOWHERE


def _own_names(item: Item) -> list[tuple[str, str]]:
    by_uuid = [("", item.uuid)] if item.uuid else []
    by_key = [(item.application_id, item.key)] if item.key or not item.uuid else []
    return by_uuid + by_key
