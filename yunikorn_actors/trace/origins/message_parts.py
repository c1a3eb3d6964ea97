"""What is in a message: its facts, each by itself, and every text."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Literal, cast, overload

from msgspec import Struct

from yunikorn_actors.messages.base import Delivery, Message
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import Fact, parts_of, revisions_of


def facts_of(message: Struct) -> Iterable[Fact]:
    """Return the facts in a message, each by itself also where it came in a run."""
    if not isinstance(message, FactsAppended):
        return ()
    return chain.from_iterable(map(parts_of, message.facts))


_NO_TEXT: Final = frozenset({int, bool, float, bytes, type(None)})


def texts_in(part: object) -> list[str]:
    """Return every text in a payload: the values, and the keys of maps."""
    found: list[str] = []
    rest: list[object] = [part]
    while rest:
        value = rest.pop()
        kind = type(value)
        if kind is str:
            found.append(cast("str", value))
        elif kind in _NO_TEXT:
            continue
        elif kind in _readers:
            rest += _readers[kind](value)
        elif isinstance(value, str):
            found.append(value)
        elif isinstance(value, Struct):
            _readers[kind] = _reader(value.__struct_fields__)
            rest.append(value)
        elif isinstance(value, dict):
            rest += value
            rest += value.values()
        elif isinstance(value, list | tuple | frozenset):
            rest += value
    return found


_readers: dict[type, Callable[[Any], Iterable[object]]] = {}
"""Reads all fields of a struct at once: a payload may have a million of them."""


def _reader(names: tuple[str, ...]) -> Callable[[Any], Iterable[object]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda part: [getattr(part, name) for name in names]


# What is new in a message: facts, each once, and the asks that an item is about.
#
# The same facts go to schedulers and to the event publisher.


class News:
    """Says of facts whether they were seen already."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], int] = {}
        """The highest revision, for each life of a partition."""

    def are_new(self, message: FactsAppended) -> bool:
        life = (message.partition, message.epoch)
        last = message.first_revision + revisions_of(message.facts) - 1
        if self._seen.get(life, 0) >= last:
            return False
        self._seen[life] = last
        return True


class Copies:
    """Facts go to several receivers: of equal messages all of them get the first one here."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, int, int], FactsAppended] = {}

    def of(self, message: Message) -> Message:
        if not isinstance(message, FactsAppended):
            return message
        news = message.partition, message.epoch, message.first_revision
        first = self._first.setdefault(news, message)
        return first if first == message else message


@overload
def new_facts_in(deliveries: Iterable[Delivery]) -> Iterator[tuple[Delivery, Fact]]: ...
@overload
def new_facts_in(
    deliveries: Iterable[Delivery], *, with_messages: Literal[True]
) -> Iterator[tuple[Delivery, Fact | None]]: ...
def new_facts_in(
    deliveries: Iterable[Delivery], *, with_messages: bool = False
) -> Iterator[tuple[Delivery, Fact | None]]:
    """Yield each fact with the message that brought it first; before it the message if wanted.

    A run is one fact: `parts_of` takes it apart.
    """
    news = News()
    for delivery in deliveries:
        message = delivery.message
        if with_messages:
            yield delivery, None
        if isinstance(message, FactsAppended) and news.are_new(message):
            yield from ((delivery, fact) for fact in message.facts)


def keys_in(message: Struct) -> Iterator[tuple[str, str]]:
    """Yield the applications and keys of all items in a request or an answer."""
    rest: list[object] = [message]
    while rest:
        value = rest.pop()
        if isinstance(value, Struct):
            key = getattr(value, "allocation_key", getattr(value, "key", None))
            if key is not None:
                yield getattr(value, "application_id", ""), key
            rest.extend(getattr(value, name) for name in value.__struct_fields__)
        elif isinstance(value, tuple | list):
            rest.extend(value)
