"""A run that touches a mutant nowhere is the same with it, and one that does is noticed."""

from collections.abc import Sequence

import pytest

from yunikorn_actors.lab.mutants.corpus import PLAYED
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.mutants.touching import Watch
from yunikorn_actors.lab.mutants.tries import Tries


def share(items: list[int], limit: int) -> int:
    """Do a little of everything that a mutant may change."""
    total = 0
    for item in items:
        if item > limit:
            total += 1
            continue
        total += item
    seen = total
    items.append(seen)
    while total > 100:
        total -= 100
    return total


def mutant(id_: str, old: str, new: str) -> Mutant:
    return Mutant(id=id_, source="", wrong="", where=share, old=old, new=new)


MUTANTS = (
    mutant("condition", "item > limit", "item >= limit"),
    mutant("added", "total += 1", "total += 1 + (limit == 7)"),
    mutant("source", "in items:", "in items[:3]:"),
    mutant("value", "seen = total", "seen = max(total, 5)"),
    mutant("loop", "total > 100", "total > 110"),
    mutant("result", "return total", "return total % 60"),
    mutant("raises", "return total", "return total if total != 9 else items[99]"),
    mutant("left out", "            continue\n", ""),
    mutant("put in", "            continue\n", "            limit += 1\n            continue\n"),
    mutant("under", "items.append(seen)", "if seen < 50:\n        items.append(seen)"),
    mutant("another", "items.append(seen)", "items.insert(0, seen)"),
    mutant("without else", "    total += item", "    pass"),
)


def touched(items: list[int], limit: int) -> set[str]:
    with Watch(MUTANTS).noting() as ids:
        right = share([*items], limit)
    assert share([*items], limit) == right
    return ids


@pytest.mark.parametrize(
    ("items", "limit", "ids"),
    [
        ([3, 3], 9, set()),
        ([2, 2], 9, {"value"}),
        ([3, 6], 6, {"condition", "raises"}),
        ([3, 4], 7, set()),
        ([3, 8, 3], 7, {"added", "left out", "put in"}),
        ([1, 1, 1, 3], 9, {"source"}),
        ([90, 15], 99, {"loop", "under"}),
        ([70, 5], 99, {"result", "under"}),
    ],
)
def test_what_makes_a_difference_is_noticed(items: list[int], limit: int, ids: set[str]) -> None:
    everywhere = {"another", "without else"}
    assert ids == touched(items, limit) - everywhere


def test_other_statements_are_touched_by_coming_there() -> None:
    assert "another" in touched([], 9)
    assert "without else" not in touched([9], 1)
    assert "without else" in touched([1], 9)


def test_the_function_is_as_before() -> None:
    code, names = share.__code__, set(share.__globals__)
    with Watch(MUTANTS).noting():
        assert share.__code__ is not code
    assert share.__code__ is code
    assert names == set(share.__globals__)


def compare_all(mutants: Sequence[Mutant], runs: int, seed: int) -> int:
    """Play each run with each mutant that it does not touch; count them."""
    tries = Tries(mutants, seed, runs)
    count = 0
    for tried in [*tries][-runs:]:
        right = tries.play(tried).digest()
        for it in mutants:
            if it.id not in tried.touched:
                with it.applied():
                    assert right == tries.play(tried).digest(), (it.id, tries.tape(tried).line())
                count += 1
    return count


def test_what_is_not_touched_makes_no_difference() -> None:
    assert compare_all(PLAYED[::8], 1, seed=1) > 3


@pytest.mark.slow
def test_what_is_not_touched_makes_no_difference_in_many_runs() -> None:
    assert compare_all(PLAYED, 60, seed=2) > 2000
