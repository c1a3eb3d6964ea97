"""Sorted collections: piles of asks, and priorities with counts.

Taking one of a million asks out moves a thousand of them and not the million. A queue may have a
thousand leaves, and a priority comes or goes with nearly each application that has something to
try; so priorities are counted, and no change walks past all the others.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

from yunikorn_actors.values.resource import INT32_MIN

BLOCK_MAX: Final = 1_000
"""A block that grows beyond this is split, or followed by another one at the end."""


class Ordered(Protocol):
    """Stands in a pile; no two have the same order."""

    @property
    def order(self) -> Any: ...  # noqa: ANN401 - whatever compares


ItemT = TypeVar("ItemT", bound=Ordered)
_order = attrgetter("order")


class OrderedItems(Generic[ItemT]):
    """Items by their order. The usual moves search nothing: adding at the end, taking the first.

    No block is empty but the only one of an empty pile.
    """

    __slots__ = ("_blocks", "head")

    def __init__(self) -> None:
        self.head: list[ItemT] = []
        """The first block, to be read: the first item is asked for at each turn of an ask."""
        self._blocks = [self.head]

    def __bool__(self) -> bool:
        return bool(self.head)

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[ItemT]:
        return chain.from_iterable(self._blocks)

    @property
    def second(self) -> ItemT | None:
        if len(self.head) > 1:
            return self.head[1]
        return self._blocks[1][0] if len(self._blocks) > 1 else None

    def add(self, item: ItemT) -> None:
        blocks = self._blocks
        block = blocks[-1]
        # At the end: asks come in the order of their age.
        if not block or block[-1].order < item.order:
            if len(block) < BLOCK_MAX:
                block.append(item)
            else:
                blocks.append([item])
            return
        number = self._block_of(item)
        block = blocks[number]
        block.insert(bisect_left(block, item.order, key=_order), item)
        # Halved, so that it takes hundreds of inserts before it is split again.
        if len(block) > BLOCK_MAX:
            half = len(block) // 2
            blocks.insert(number + 1, block[half:])
            del block[half:]

    def remove(self, item: ItemT) -> None:
        """Take out what stands here."""
        blocks = self._blocks
        block, number = blocks[0], 0
        # The first: that is the ask that was just decided.
        if block[0] is item:
            del block[0]
        else:
            number = self._block_of(item)
            block = blocks[number]
            del block[bisect_left(block, item.order, key=_order)]
        # The only block of an empty pile stays, so `head` always is one.
        if not block and len(blocks) > 1:
            del blocks[number]
            self.head = blocks[0]

    def _block_of(self, item: ItemT) -> int:
        """Return which block an item belongs to that does not come behind all others."""
        return bisect_left(self._blocks, item.order, key=_last_order)


def _last_order(block: list[Any]) -> Any:  # noqa: ANN401 - whatever compares
    return block[-1].order


NO_PRIORITY = INT32_MIN
"""Of what has nothing to try; it counts nowhere."""


class Priorities:
    """How many of those below a queue have which priority: it shows the highest of them."""

    __slots__ = ("_counts", "_order", "highest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._order: list[int] = []
        """Those that a queue below has, each once, ascending."""
        self.highest = NO_PRIORITY

    @property
    def counts(self) -> dict[int, int]:
        return self._counts

    def change(self, old: int, new: int) -> None:
        """A queue below has another priority now."""
        counts, order = self._counts, self._order
        if new != NO_PRIORITY:
            if new not in counts:
                counts[new] = 0
                insort(order, new)
            counts[new] += 1
        if old != NO_PRIORITY:
            counts[old] -= 1
            if not counts[old]:
                del counts[old], order[bisect_left(order, old)]
        self.highest = order[-1] if order else NO_PRIORITY
