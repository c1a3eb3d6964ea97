"""The waiting asks of one shape: a sorted list from which nothing takes long to be taken."""

import random
from bisect import insort
from typing import NamedTuple

import pytest

from yunikorn_actors.planning.model.sorted_collections import BLOCK_MAX, OrderedItems


class Item(NamedTuple):
    order: int


@pytest.mark.parametrize("seed", range(20))
def test_a_pile_is_a_sorted_list_whatever_comes_and_goes(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - a seed, no secret
    pile: OrderedItems[Item] = OrderedItems()
    plain: list[Item] = []
    fresh = list(range(3 * BLOCK_MAX * (1 + seed % 3)))
    if seed % 2:
        choice.shuffle(fresh)
    adds = choice.choice((0.2, 0.6, 0.9))
    for order in fresh:
        item = Item(order)
        pile.add(item)
        insort(plain, item)
        while plain and choice.random() > adds:
            gone = choice.choice((plain[0], plain[-1], choice.choice(plain)))
            plain.remove(gone)
            pile.remove(gone)
            assert bool(pile) is bool(plain)
            assert not plain or (pile.head[0] is plain[0])
            assert pile.second is (plain[1] if len(plain) > 1 else None)
        assert len(pile) == len(plain)
    assert list(pile) == plain
    choice.shuffle(plain)
    for item in plain:
        pile.remove(item)
    assert not pile
    pile.add(Item(1))
    assert list(pile) == [Item(1)]


@pytest.mark.parametrize("where", ["first", "last", "middle"])
def test_no_block_grows_with_the_pile(where: str) -> None:
    """What is moved for one that comes or goes is bounded by a block."""
    pile: OrderedItems[Item] = OrderedItems()
    orders = list(range(20 * BLOCK_MAX))
    if where == "first":
        orders.reverse()
    elif where == "middle":
        orders = [order * (-1) ** order for order in orders]
    for order in orders:
        pile.add(Item(order))
    assert max(map(len, pile._blocks)) <= BLOCK_MAX
