"""Whether a message is about an item: brings it, ends it, takes it for something else.

What a message is about are names, and an item is looked for by names. So of hundreds that were
handled together, the one that is about an item is found at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Delivery, Message
from yunikorn_actors.state.proposals import CancelPlaceholder, Preempt, Replace
from yunikorn_actors.trace.origins.items import Item, Part, items_in, manager_in
from yunikorn_actors.trace.origins.message_parts import texts_in

_Name = tuple[str, ...]


def of_application(message: Message, item: Item) -> bool:
    return item.application_id in texts_in(message)


def taken(proposal: object) -> set[str]:
    match proposal:
        case Preempt(victims=victims):
            return {it.uuid for it in victims}
        case Replace(placeholder=uuid) | CancelPlaceholder(placeholder=uuid):
            return {uuid}
    return set()


# -- by which names a message is found, and by which an item is looked for


def _asked_in(_: Message, items: Sequence[Item]) -> Iterator[_Name]:
    return ((it.application_id, it.key) for it in items if it.part is Part.ASK)


def _as_asked(item: Item) -> tuple[_Name, ...]:
    return ((item.application_id, item.key),)


def _ended_in(_: Message, items: Sequence[Item]) -> Iterator[_Name]:
    for it in items:
        if it.part is Part.END:
            yield "any", it.application_id, it.key
            yield ("uuid", it.application_id, it.uuid) if it.uuid else (
                "key", it.application_id, it.key,
            )  # fmt: skip


def _as_ended(item: Item) -> tuple[_Name, ...]:
    """An empty name means all; a UUID decides where both have one."""
    kind = "key" if item.uuid else "any"
    whose = ("", item.application_id)
    by_key = tuple((kind, id_, key) for id_ in whose for key in ("", item.key))
    return (*by_key, *(("uuid", id_, item.uuid) for id_ in whose)) if item.uuid else by_key


def _taken_in(message: Message, _: Sequence[Item]) -> Iterator[_Name]:
    if isinstance(message, s.ProposeAllocations):
        yield from ((uuid,) for it in message.proposals for uuid in taken(it))


def _as_taken(item: Item) -> tuple[_Name, ...]:
    return ((item.uuid,),)


def _texts_in(message: Message, _: Sequence[Item]) -> Iterator[_Name]:
    return zip(texts_in(message))


def _as_application(item: Item) -> tuple[_Name, ...]:
    return ((item.application_id,),)


class _Level(NamedTuple):
    """A way in which a message may be about an item."""

    names_in: Callable[[Message, Sequence[Item]], Iterator[_Name]]
    names_of: Callable[[Item], tuple[_Name, ...]]


_ASKS = _Level(_asked_in, _as_asked)
_ENDS = _Level(_ended_in, _as_ended)
_TAKES = _Level(_taken_in, _as_taken)
_OF_APPLICATION = _Level(_texts_in, _as_application)
_LEVELS: dict[Part, tuple[_Level, ...]] = {
    Part.ASK: (_ASKS,),
    Part.END: (_TAKES, _ENDS, _ASKS, _OF_APPLICATION),
    Part.APPLICATION: (_OF_APPLICATION,),
}
"""How a message may be about an item, the surest first."""


class Together(Sequence[Delivery]):
    """Messages that were handled together, or one alone."""

    __slots__ = ("_deliveries", "_found", "_items_of", "_of_managers")

    def __init__(
        self,
        deliveries: Iterable[Delivery],
        items_of: Callable[[Message], Sequence[Item]] = items_in,
    ) -> None:
        self._deliveries = tuple(deliveries)
        self._items_of = items_of
        self._found: dict[_Level, dict[_Name, int]] = {}
        self._of_managers: dict[str, Together] | None = None

    @overload
    def __getitem__(self, place: int) -> Delivery: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Delivery]: ...
    def __getitem__(self, place: int | slice) -> Delivery | Sequence[Delivery]:
        return self._deliveries[place]

    def __len__(self) -> int:
        return len(self._deliveries)

    def has(self, delivery: Delivery) -> bool:
        """Whether a message stands between the first and the last of them."""
        first, last = self._deliveries[0], self._deliveries[-1]
        is_same = delivery.mailbox == first.mailbox
        return is_same and first.step <= delivery.step <= last.step

    def of_manager(self, manager: str) -> "Together":
        """Return those that may be of a resource manager; all, if none is."""
        if self._of_managers is None:
            self._of_managers = {}
        if manager not in self._of_managers:
            own = [it for it in self if manager_in(it) in {"", manager}]
            found = Together(own, self._items_of) if own and len(own) < len(self) else self
            self._of_managers[manager] = found
        return self._of_managers[manager]

    def asks(self, item: Item) -> bool:
        return self._last(_ASKS, item) is not None

    def ends(self, item: Item) -> bool:
        """Whether it ends the item: by its UUID, by its key, or all of an application."""
        return self._last(_ENDS, item) is not None

    def takes(self, item: Item) -> bool:
        """Whether it proposes that the item goes for something else."""
        return self._last(_TAKES, item) is not None

    @property
    def ends_anything(self) -> bool:
        return bool(self._index(_ENDS))

    def speaks_of(self, name: str) -> bool:
        return (name,) in self._index(_OF_APPLICATION)

    def that_ends(self, item: Item) -> Delivery | None:
        """Return the last one that ends an item."""
        return self._last(_ENDS, item)

    def about(self, item: Item) -> Delivery | None:
        """Return the last one that is about an item in the surest way."""
        for level in _LEVELS[item.part]:
            found = self._last(level, item)
            if found is not None:
                return found
        return None

    def _last(self, level: _Level, item: Item) -> Delivery | None:
        index = self._index(level)
        if not index:
            return None
        places = [index[name] for name in level.names_of(item) if name in index]
        return self._deliveries[max(places)] if places else None

    def _index(self, level: _Level) -> dict[_Name, int]:
        """Return the last place of each name."""
        found = self._found.get(level)
        if found is None:
            items_of = self._items_of
            found = self._found[level] = {
                name: place
                for place, it in enumerate(self._deliveries)
                for name in level.names_in(it.message, items_of(it.message))
            }
        return found
