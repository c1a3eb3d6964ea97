"""What is in a message: its facts, each by itself, and every text."""

from collections.abc import Callable, Iterable
from itertools import chain
from operator import attrgetter
from typing import Any, Final, cast

from msgspec import Struct

from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import Fact, parts_of


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
