"""What led to a message, and what it led to.

A message with items is followed by them, from message to message: see `origins`. What a message led
to are those whose items lead back to it, and what it set off.
"""

from heapq import heapify, heappop, heappush
from pathlib import Path

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.trace.origins.cause_index import CauseIndex, InFile
from yunikorn_actors.trace.origins.item_origins import Origin, before, origins, within
from yunikorn_actors.trace.origins.items import Item, Part, item_of, items_in
from yunikorn_actors.trace.origins.origin_queries import PAIRING
from yunikorn_actors.values.close_names import did_you_mean


class Link(Struct, frozen=True, kw_only=True):
    """A message of the chain, and how many messages lead to it in the chain."""

    depth: int
    delivery: Delivery
    is_wanted: bool = False
    """Whether it is the one that was asked about."""
    about: str = ""
    """The item by which the chain goes on here: a key, or an application."""
    others: int = 0
    """How many more items the message has."""
    together: int = 1
    """How many messages were handled together, this one among them."""
    set_off_by: Cause | None = None
    """Its cause, if that is not the link before it."""


class NotThere(LookupError):
    """The recording has no such step, or the step is not about such an item; it says which."""


def upwards(step: Cause, path: Path, about: str = "") -> list[Link]:
    """Return what led to a step, from outside down to it; by the item that is named, or the first.

    A message without items is followed by causes.
    """
    index = CauseIndex(path)
    recorded = InFile(path, index)
    last = recorded.at(step)
    if last is None:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    item = _item(last, about)
    if item is None:
        return _by_causes(step, index, recorded)
    way = origins(recorded, last, item)
    set_off = [None, *(it.set_off_by for it in way[:-1])]
    return [
        Link(
            depth=depth,
            delivery=it.delivery,
            is_wanted=it.delivery is last,
            about=it.item.name,
            others=len(items_in(it.delivery.message)) - 1,
            together=it.together,
            set_off_by=set_off_by,
        )
        for depth, (it, set_off_by) in enumerate(zip(way, set_off, strict=True))
    ]


def _item(delivery: Delivery, about: str) -> Item | None:
    items = items_in(delivery.message)
    if not about:
        return items[0] if items else None
    for it in items:
        if about in {*it.names, f"{it.application_id}/{it.key}"}:
            return it
    for it in items:
        if about == it.application_id:
            return it
    near = did_you_mean(about, {name for it in items for name in it.names})
    raise NotThere(f"{delivery.mailbox}/{delivery.step} is not about {about!r:.80}{near}")


def by_causes(step: Cause, path: Path) -> list[Link]:
    """Return what led to a step by causes alone, from outside down to it."""
    index = CauseIndex(path)
    if index.record(step) is None:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    return _by_causes(step, index, InFile(path, index))


def _by_causes(step: Cause, index: CauseIndex, recorded: InFile) -> list[Link]:
    records = [index.record(it) for it in index.up(step)]
    found = recorded.read([record for record in records if record is not None])
    return [
        Link(depth=depth, delivery=it, is_wanted=depth == len(found) - 1)
        for depth, it in enumerate(found)
    ]


def downwards(step: Cause, path: Path, about: str = "") -> list[Link]:
    """Return a step and all that it led to, each behind that of which it came.

    It is followed by the item that is named, or by all that it has. What it set off is there as
    well, unless that may have been set off by others that were handled together with it.
    """
    index = CauseIndex(path)
    recorded = InFile(path, index)
    wanted = recorded.at(step)
    if wanted is None:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    item = _item(wanted, about) if about else None
    return _Below(index, recorded, wanted, [item] if item else items_in(wanted.message)).links()


class _Below:
    """Goes through what may have come of a message, in the order of the recording."""

    def __init__(
        self, index: CauseIndex, recorded: InFile, wanted: Delivery, items: list[Item]
    ) -> None:
        self._index = index
        self._recorded = recorded
        self._names = _related(recorded, {name for it in items for name in it.names})
        self._first = Link(depth=0, delivery=wanted, is_wanted=True)
        self._links: dict[Cause, Link] = {}
        """By each step that leads on: those of what was handled together end with the last one."""
        self._followed: dict[Cause, list[Item]] = {}
        """By which items a message is followed."""
        self._below: dict[Cause, list[Link]] = {}
        begin = index.record(_step(wanted)) or 0
        self._seen = {begin}
        named = map(index.record, map(_step, recorded.speaking_of(self._names)))
        self._rest = [it for it in named if it is not None and it > begin]
        heapify(self._rest)
        self._add(self._first, items)

    def links(self) -> list[Link]:
        while self._rest:
            record = heappop(self._rest)
            if record not in self._seen:
                self._seen.add(record)
                for delivery in self._recorded.read([record]):
                    self._take(delivery)
        return _in_order(self._first, self._below)

    def _take(self, delivery: Delivery) -> None:
        items = items_in(delivery.message)
        # An ask that is placed brings its application into another state.
        own = [
            it
            for it in items
            if it.part is Part.APPLICATION or not it.names.isdisjoint(self._names)
        ]
        came = [(it, found) for it in own if (found := self._by_item(delivery, it)) is not None]
        if came:
            _, first = came[0]
            link = Link(
                depth=self._links[_step(first.delivery)].depth + 1,
                delivery=delivery,
                set_off_by=first.set_off_by,
            )
            self._below.setdefault(_step(first.delivery), []).append(link)
            self._add(link, [it for it, _ in came])
            return
        above = self._links.get(delivery.cause)
        if above is not None and not (items and self._index.is_mixed(_step(delivery))):
            link = Link(depth=above.depth + 1, delivery=delivery)
            self._below.setdefault(_step(above.delivery), []).append(link)
            self._add(link, items)

    def _by_item(self, delivery: Delivery, item: Item) -> Origin | None:
        """Return from where an item came, if that is followed."""
        found = before(within(self._recorded, delivery), Origin(delivery, item))
        if found is None:
            return None
        followed = self._followed.get(_step(found.delivery), ())
        return found if any(_is_of(found.item, it) for it in followed) else None

    def _add(self, link: Link, items: list[Item]) -> None:
        step = _step(link.delivery)
        last = self._index.last_with(step)
        self._links[step] = link
        self._links.setdefault(last, link)
        self._followed[step] = items
        for record in {*self._index.led_by(step), *self._index.led_by(last)}:
            heappush(self._rest, record)


def _step(delivery: Delivery) -> Cause:
    return Cause(delivery.mailbox, delivery.step)


def _is_of(item: Item, other: Item) -> bool:
    """Whether an item is a part of another: that may be all of an application, or everything."""
    if other.key or other.uuid:
        return not item.names.isdisjoint(other.names)
    return other.application_id in {"", item.application_id}


def _related(recorded: InFile, names: set[str]) -> set[str]:
    """Add what the facts say that these became, what goes for them, and what they go for."""
    found: set[str] = set()
    while new := names - found:
        found |= new
        facts = [fact for _, fact in recorded.written(new)]
        items = [it for it in map(item_of, facts) if it is not None]
        placeholders = {fact.placeholder for fact in facts if isinstance(fact, PAIRING)}
        names = names.union(placeholders, *(it.names for it in items if it.key))
    return found


def _in_order(first: Link, below: dict[Cause, list[Link]]) -> list[Link]:
    found: list[Link] = []
    rest = [first]
    while rest:
        link = rest.pop()
        found.append(link)
        at = Cause(link.delivery.mailbox, link.delivery.step)
        rest.extend(reversed(below.get(at, ())))
    return found
