"""The audit of what changed and the audit of everything agree, on sound runs and on corrupted ones.

As in `test_watch.py`; a corruption is made right after a planner has observed a fact, in its view of
the application that the fact is about.
"""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.checks.model_audit import Audit
from yunikorn_actors.checks.touched import Touched, touched_by
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AppView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.state import facts as f

sys.path.insert(0, str(Path(__file__).parent.parent))

from searching import Run

SEEDS = range(1, 9)
SEEDS_MAX = 60
OBSERVE = Planner.observe


class Found(Exception):
    """Both have found something."""


class Both(Audit):
    parts = 0
    """How often not everything was looked at."""

    def look(self, touched: Touched | None = None) -> list[str]:
        fast, full = super().look(touched), Audit(self.planner).look()
        Both.parts += not self.is_whole
        # No assertion: where something is planted, one of the core may fail, and is passed over.
        if bool(fast) is not bool(full) or self.mistaken:
            pytest.fail(f"after {touched} one says {full}, the other {fast}")
        if full:
            raise Found(full)
        return []


@pytest.fixture(autouse=True)
def _both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_actors.drivers.simulator.checkers.Audit", Both)
    monkeypatch.setattr(Both, "parts", 0)


@pytest.mark.parametrize("preempts", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_both_are_content_with_sound_runs(seed: int, preempts: bool) -> None:
    Run(seed, preempts=preempts).play()
    assert Both.parts


Views = Callable[[Planner, Touched], Iterable[Any]]


def _apps(planner: Planner, touched: Touched) -> Iterable[AppView]:
    apps = filter(None, map(planner.state.applications.get, touched[0]))
    return [planner.model.apps[app.serial] for app in apps]


def _nodes(planner: Planner, touched: Touched) -> Iterable[NodeView]:
    return [*filter(None, map(planner.model.nodes.views.get, touched[1]))]


def _any(items: Iterable[Any]) -> Any:
    """Return the first; without one there is nothing to corrupt."""
    for item in items:
        return item
    raise LookupError


def _reverse(app: AppView) -> None:
    _any(pile for pile in app.piles.values() if len(pile) > 1)._blocks[0].reverse()


def _more(of: Any, name: str) -> None:
    setattr(of, name, getattr(of, name) + 1)


CORRUPTIONS: dict[str, tuple[str, Callable[[AppView], object]]] = {
    "open": ("may be tried", lambda app: _more(_any(app.asks.values()), "open")),
    "in flight": (
        "in flight",
        lambda app: _more(_any(ask for ask in app.asks.values() if ask.open), "inflight"),
    ),
    "waiting": ("wait in queue", lambda app: _more(app.leaf, "waiting")),
    "placing": ("should be", lambda app: _more(app, "placing")),
    "heads": ("counts", lambda app: app.heads.pop(_any(app.heads))),
    "order": ("are out of order", _reverse),
    "used": ("used of queue", lambda app: app.leaf.used.update(vcore=99)),
    "priority": ("counts priorities", lambda app: _more(app, "priority")),
    "lanes": (
        "is open and not tried",
        lambda app: app.leaf.open_lanes.pop(_any(app.leaf.open_lanes)),
    ),
}

OF_NODES: dict[str, tuple[str, Callable[[NodeView], object]]] = {
    "free": ("free of node", lambda node: setattr(node, "free", {"vcore": 99})),
    "keeping": ("is to be kept", lambda node: _more(node, "keeping")),
    "out of the order": ("in the order although", lambda node: setattr(node, "entry", None)),
}


@pytest.mark.parametrize("kind", [*CORRUPTIONS, *OF_NODES])
def test_both_find_a_corruption_at_the_same_message(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, corrupt = (CORRUPTIONS | OF_NODES)[kind]
    for seed in range(1, SEEDS_MAX):
        _plant(corrupt, seed % 3, monkeypatch, _nodes if kind in OF_NODES else _apps)
        with suppress(LookupError, ValueError, AssertionError, InvariantViolation):
            # The core itself may fall over what was planted, before anybody can look.
            try:
                Run(seed, preempts=bool(seed % 2)).play()
            except Found as found:
                if words in str(found):
                    return
    pytest.fail("nothing was there to be corrupted")


def _plant(
    corrupt: Callable[[Any], object], chances: int, monkeypatch: pytest.MonkeyPatch, views: Views
) -> None:
    """Corrupt once, after so many chances."""
    left = [None] * (chances + 1)

    def corrupting(planner: Planner, fact: f.Fact) -> None:
        OBSERVE(planner, fact)
        for view in views(planner, touched_by((fact,)) or ({}, {})):
            if len(left) == 1:
                with suppress(LookupError):
                    corrupt(view)
                    left.clear()
            elif left:
                left.pop()

    monkeypatch.setattr(Planner, "observe", corrupting)
