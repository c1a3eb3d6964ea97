"""How far the tests go: each range begins in every run, and its rest is for `-m slow`."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

USUAL = 10


def seeds(last: int, *, first: int = 1, usual: int = USUAL) -> pytest.MarkDecorator:
    """Run a test on the usual range of `seeds`, and slowly on the others up to the last.

    They begin at 1: as a schedule 0 would be plain first in, first out.
    """
    middle = first + usual
    rest = pytest.param(range(middle, last + 1), id="rest", marks=pytest.mark.slow)
    parts = [pytest.param(range(first, middle), id="usual"), rest]
    return pytest.mark.parametrize("seeds", parts)


def each(name: str, many: int, *, usual: int) -> pytest.MarkDecorator:
    """Run a test once for each number below `many`; those that are not usual are slow."""
    rest = (pytest.param(number, marks=pytest.mark.slow) for number in range(usual, many))
    return pytest.mark.parametrize(name, [*range(usual), *rest])


def first(items: Sequence[object], usual: int) -> list[object]:
    """Return `items` as parameters; those behind the first so many are slow."""
    rest = (pytest.param(it, marks=pytest.mark.slow) for it in items[usual:])
    return [*items[:usual], *rest]


def one_each(items: Sequence[object], ways: Sequence[object], *, step: int = 1) -> list[object]:
    """Return each item with each way as parameters: usual is one way for each item, in turn.

    With a step it is one way for an item in so many.
    """
    return [
        pytest.param(
            item,
            way,
            marks=()
            if number % step == 0 and number // step % len(ways) == turn
            else pytest.mark.slow,
        )
        for number, item in enumerate(items)
        for turn, way in enumerate(ways)
    ]


def from_(number: int, numbers: Iterable[int]) -> Iterator[int]:
    """Yield `numbers`, and before all of them the one in which the thing that is looked for was seen.

    Where worlds are drawn in another way it is seen in another one: that takes longer and no more.
    """
    yield number
    yield from (it for it in numbers if it != number)


def examples(usual: int, many: int) -> pytest.MarkDecorator:
    """Run a test on so many `examples`, and slowly on many."""
    return pytest.mark.parametrize("examples", [usual, pytest.param(many, marks=pytest.mark.slow)])
