"""Answers that grow with the cluster, made a little at a time.

A read side works on one event loop. What looks at every node or every ask is a generator here: it
pauses now and then with a `yield`, and returns its value at the end. Between two pauses the loop
serves others. The loop that runs it keeps the state as it is until it has ended.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Pauses, and at the end the value."""
LOOKS: Final = 256
"""Things that are looked at between two pauses."""
AT_ONCE: Final = 64
"""A list with no more items is made at once."""
SORTED_AT_ONCE: Final = 2_000


class Each:
    """A list of which each item is made when it is written, and dropped then."""

    def __init__(self, make: Callable[[Any], Any], items: Iterable[Any]) -> None:
        self._make = make
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, self._items)


def each(make: Callable[[T], Any], items: Collection[T]) -> "list[Any] | Each":
    """List what is made of each; of many it is made when the list is written."""
    return [make(it) for it in items] if len(items) <= AT_ONCE else Each(make, items)


def at_once(steps: "Steps[T]") -> T:
    """Make all of it without a pause, where nobody else has to be served."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def gathered(items: Iterable[T]) -> "Steps[list[T]]":
    """Make a list of what comes, however much that is."""
    found: list[T] = []
    rest = iter(items)
    # A piece at a time, so that even a very long list lets others be served.
    while some := list(islice(rest, LOOKS)):
        found += some
        yield
    return found


def in_order(items: Sequence[T], key: Callable[[T], Any]) -> "Steps[Iterator[T]]":
    """Sort very many: piece by piece, and the pieces are merged as they are read."""
    pieces: list[list[T]] = []
    for begin in range(0, len(items), SORTED_AT_ONCE):
        pieces.append(sorted(items[begin : begin + SORTED_AT_ONCE], key=key))
        yield
    return merge(*pieces, key=key)


class Pauses:
    """Says when it is time for a pause: `if pauses.due: yield`."""

    def __init__(self) -> None:
        self._left = LOOKS

    @property
    def due(self) -> bool:
        self._left -= 1
        if self._left:
            return False
        self._left = LOOKS
        return True
