"""Worlds of a baseline are chosen: together they touch as much of the core as so few can."""

from itertools import islice
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab import baseline_choice
from yunikorn_actors.lab.baseline import read_baseline
from yunikorn_actors.lab.baseline_choice import Touched, chosen, touched_in
from yunikorn_actors.lab.mutants import edits


def touched(*worlds: str) -> list[Touched]:
    """Name edits by letters."""
    return [Touched(number, frozenset(letters)) for number, letters in enumerate(worlds, 1)]


@pytest.fixture(autouse=True)
def _none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_choice, "WHOLE", 0)


@pytest.mark.parametrize(
    ("worlds", "size", "numbers"),
    [
        (touched("a", "abc", "bc"), 1, [2]),
        (touched("abc", "abcd", "e", "ab"), 2, [2, 1]),
        (touched("abcd", "abc", "efg"), 2, [1, 3]),
        (touched("ab", "ab", "c", "c"), 4, [1, 2, 3, 4]),
        (touched("a", "b"), 9, [1, 2]),
    ],
    ids=["most", "rare ones", "what is new", "all", "too few"],
)
def test_the_one_that_adds_most_comes_next(
    worlds: list[Touched], size: int, numbers: list[int]
) -> None:
    assert numbers == chosen(worlds, size)


def test_half_are_worlds_in_which_all_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_choice, "WHOLE", 2)
    worlds = touched("a", "", "ab", "abc", "abcd")
    assert [5, 1, 2] == chosen(worlds, 3)
    assert [1] == chosen(worlds, 1)


def test_what_many_worlds_have_touched_is_worth_nothing() -> None:
    worlds = touched(*("a" * 1,) * 7, "b")
    assert 8 in chosen(worlds, 2)
    assert [8] != chosen(worlds, 7)[-1:]


def test_worlds_are_watched_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "ROOMS", ("values",))
    first, second = islice(touched_in(range(3, 9)), 2)
    assert (3, 4) == (first.number, second.number)
    assert first.edits & second.edits
    assert all(it.startswith("values.") for it in first.edits)


def test_chosen_worlds_are_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(edits, "ROOMS", ("values",))
    file = tmp_path / "a.msgpack"
    assert 0 == main(["lab", "baseline", "choose", str(file), "--drawn", "2", "--runs", "1"])
    assert "1 world chosen of 2 and recorded in" in capsys.readouterr().out
    worlds = [*read_baseline(file).worlds]
    assert 1 == len(worlds)
    assert {*worlds} < {1, 2}
    assert 0 == main(["lab", "baseline", "compare", str(file)])
