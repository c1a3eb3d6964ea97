"""A walk over the calls of a core is the same each time, and much comes of it."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from yunikorn_actors.lab.observed_run import Observation
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.core_walks import walk_awaited, walk_virtual
from yunikorn_actors.lab.surfaces.front_walk import Heard
from yunikorn_actors.runtime.responses import Inbox
from yunikorn_actors.runtime.virtual_core import VirtualCore

Walk = Callable[[Draw], Iterator[Heard]]
WALKS = (walk_virtual, walk_awaited)
RUNS = range(1, 9)


def walked(walk: Walk) -> list[bytes]:
    return [Observation(*it).digest() for run in RUNS for it in walk(Draw(9, run))]


@cache
def _unspoilt(walk: Walk) -> list[bytes]:
    return walked(walk)


@pytest.mark.parametrize("walk", WALKS)
def test_it_is_the_same_each_time(walk: Walk) -> None:
    assert _unspoilt(walk) == walked(walk)


@pytest.mark.parametrize("walk", WALKS)
def test_much_comes_of_it(walk: Walk) -> None:
    text = " ".join(str(Observation(*it)) for run in range(1, 17) for it in walk(Draw(9, run)))
    for words in (
        '"new":[{"allocationKey"', '"accepted":[{"nodeID"', "updated", "released", "rejected",
        "UnknownResourceManager", "ConfigError", "Why(", "eventChangeType", "after its end",
    ):  # fmt: skip
        assert words in text, words


@pytest.mark.parametrize(
    ("walk", "of", "name"),
    [(walk_awaited, Inbox, "update_node"), (walk_virtual, VirtualCore, "update_node")],
)
def test_what_a_core_does_otherwise_is_seen(
    walk: Walk, of: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [*_unspoilt(walk)]

    def nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(of, name, nothing)
    assert before != walked(walk)
