"""Worlds that are played one after the other leave the collector little to walk."""

import gc
from contextlib import suppress

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab import run_schedule
from yunikorn_actors.lab.workers import process_pool
from yunikorn_actors.lab.workers.process_pool import seldom_collecting


def test_what_was_there_is_passed_over_and_all_is_as_before() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collecting():
        assert gc.get_threshold()[0] >= 10_000
        assert gc.get_threshold()[1:] == before[1:]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == frozen, "what the program had frozen stays so"


def test_what_others_have_frozen_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count it takes longer than a small world where a program has a million objects."""
    counted: list[int] = []

    def count() -> int:
        counted.append(before())
        return counted[-1]

    before = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", count)
    monkeypatch.setattr(process_pool._Others, "have_frozen", False)
    for _ in range(3):
        with seldom_collecting():
            pass
    assert len(counted) == 1
    assert counted[0] > 0, "vacuous: nothing is frozen"


def test_what_was_not_frozen_is_not_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool._Others, "have_frozen", False)
    gc.unfreeze()
    before = gc.get_threshold()
    gc.set_threshold(700)
    try:
        with suppress(KeyboardInterrupt), seldom_collecting():
            assert gc.get_freeze_count() > 0
            assert gc.get_threshold()[0] == 10_000
            raise KeyboardInterrupt
        assert gc.get_freeze_count() == 0
        assert gc.get_threshold()[0] == 700
    finally:
        gc.set_threshold(*before)
        gc.freeze()


def test_the_command_plays_so(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = run_schedule.run

    def noting(world: object) -> object:
        seen.append(gc.get_threshold()[0])
        return run(world)

    monkeypatch.setattr(run_schedule, "run", noting)
    before = gc.get_threshold()
    gc.set_threshold(700)
    try:
        assert main(["lab", "run", small, "--runs", "3"]) == 0
    finally:
        gc.set_threshold(*before)
    assert {*seen} == {10_000}
