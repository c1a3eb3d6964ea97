"""What is in a message: its facts, each by itself, and every text."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final

from msgspec import Struct

from yunikorn_actors.domain.facts import Fact, parts_of
from yunikorn_actors.messages.scheduling import FactsAppended


def facts_of(message: Struct) -> Iterable[Fact]:
    """Return the facts in a message, each by itself also where it came in a run."""
    if not isinstance(message, FactsAppended):
        return ()
    return chain.from_iterable(map(parts_of, message.facts))


_NO_TEXT: Final = frozenset({int, bool, float, bytes, type(None)})


def texts_in(part: object) -> Iterator[str]:
    """Yield every text in a payload: the values, and the keys of maps."""
    rest: list[object] = [part]
    while rest:
        value = rest.pop()
        kind = type(value)
        if kind in _NO_TEXT:
            continue
        if isinstance(value, str):
            yield value
        elif isinstance(value, Struct):
            rest += _values_of(value)
        elif isinstance(value, dict):
            rest += value
            rest += value.values()
        elif isinstance(value, list | tuple | frozenset):
            rest += value


_readers: dict[type, Callable[[Struct], tuple[object, ...]]] = {}


def _values_of(part: Struct) -> tuple[object, ...]:
    """Read all fields at once: a payload may have a million of them."""
    kind, names = type(part), part.__struct_fields__
    if kind not in _readers:
        _readers[kind] = attrgetter(*names) if len(names) > 1 else _one_by_one
    return _readers[kind](part)


def _one_by_one(part: Struct) -> tuple[object, ...]:
    return tuple(getattr(part, name) for name in part.__struct_fields__)
