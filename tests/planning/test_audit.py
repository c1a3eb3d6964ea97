"""The audit of the planner speaks up: one corruption of a sound view for each line it can say."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.config import LimitConfig
from yunikorn_actors.planning.model.limits import LimitView
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.values.resource import Resource

Corrupt: TypeAlias = Callable[[Planner], object]


@pytest.fixture
def planner() -> Planner:
    """Two queues with asks, two applications in one of them, and a proposal on its way."""
    written = Written("root.default")
    written.queue("root.other", limits=(LimitConfig(users=("bob",), max_resources={"vcore": 9}),))
    written.node("n1", vcore=10)
    written.node("n2", vcore=20)
    written.add(APP, "app-2")
    written.add("app-3", queue="root.other")
    written.ask("a", vcore=3)
    assert len(written.plan(1)) == 1
    written.ask("b", vcore=4)
    written.ask("c", vcore=4)
    written.ask("d", "app-2", vcore=4)
    written.ask("f", "app-2", vcore=5)
    written.ask("e", "app-3", vcore=1)
    written.planner.measurer.plan(0, 0)
    return written.planner


def _shown(planner: Planner, path: str) -> None:
    planner.model.tree.queues[path].entry = None


def _rank(planner: Planner, priority: int) -> None:
    planner.model.tree.queues["root.other"].priority = priority


def _close_lane(planner: Planner) -> None:
    leaf = planner.model.tree.queues["root.default"]
    leaf.open_lanes.clear()


def _empty_pile(planner: Planner) -> None:
    view = next(iter(planner.model.apps.values()))
    for pile in view.piles.values():
        pile._blocks[0].clear()


def _reverse_piles(planner: Planner) -> None:
    for pile in next(iter(planner.model.apps.values())).piles.values():
        pile._blocks[0].reverse()


def _reverse_lanes(planner: Planner) -> None:
    for lane in planner.model.tree.queues[LEAF].lanes.values():
        lane.apps.reverse()


def _swap_places(planner: Planner) -> None:
    """The first of two lanes is taken for the second."""
    leaf = planner.model.tree.queues[LEAF]
    leaf.open_lanes.first()
    first, second = leaf.open_lanes._order[0][2], leaf.open_lanes._order[1][2]
    first.number = 0
    assert first is not second


def _hide_room(planner: Planner) -> None:
    """Something is in flight of which the sum is not told."""
    limit = next(limit for app in planner.model.apps.values() for limit in app.limits)

    class Blind(LimitView):
        __slots__ = ()

        def used(self) -> Resource:
            return {}

    limit.__class__ = Blind
    limit.in_flight["vcore"] = 9


CORRUPTIONS: list[tuple[str, Corrupt]] = [
    ("the planner knows nodes", lambda p: p.model.nodes.views.pop("n2")),
    ("free of node n1", lambda p: p.model.nodes.views["n1"].free.update(vcore=8)),
    ("node n1 is in the order", lambda p: setattr(p.state.nodes["n1"], "drained", True)),
    ("node n1 is to be kept 1 times", lambda p: setattr(p.model.nodes.views["n1"], "keeping", 1)),
    (
        "of node n1 are to be taken, should be []",
        lambda p: setattr(p.model.nodes.views["n1"], "coming", (((0,), 1),)),
    ),
    ("nodes are out of order", lambda p: p.model.nodes.runs._runs[0].reverse()),
    ("the planner knows queues", lambda p: p.model.tree.queues.pop("root.other")),
    ("used of queue root.default", lambda p: p.model.tree.queues[LEAF].used.update(vcore=4)),
    ("used of queue root ", lambda p: p.model.flights.placements.clear()),
    (
        "queue root.default allows {vcore: 1}",
        lambda p: setattr(p.model.tree.queues[LEAF], "limit", {"vcore": 1}),
    ),
    ("limit of user bob in root.other has room", _hide_room),
    ("9 wait in queue root.default", lambda p: setattr(p.model.tree.queues[LEAF], "waiting", 9)),
    (
        "app-1 places 1 placeholders",
        lambda p: setattr(next(iter(p.model.apps.values())), "placing", 1),
    ),
    ("ask b: 2 may be tried", lambda p: setattr(_ask(p, "b"), "open", 2)),
    ("ask a: 0 may be tried, 1 wait, 0 in flight", lambda p: setattr(_ask(p, "a"), "inflight", 0)),
    ("queue root.default has something to try and is not shown", lambda p: _shown(p, LEAF)),
    ("another ask than the first is tried in root.default", _swap_places),
    ("has piles by priority", lambda p: next(iter(p.model.apps.values())).heads.update({7: 1})),
    ("children of root are out of order", lambda p: p.model.tree.queues["root"].children.reverse()),
    (
        "queue root.other stands by",
        lambda p: setattr(p.model.tree.queues["root.other"], "waiting", 9),
    ),
    ("queue root.other shows priority 5", lambda p: _rank(p, 5)),
    (
        "queue root counts priorities",
        lambda p: p.model.tree.queues["root"].priorities.change(NO_PRIORITY, 5),
    ),
    ("a lane of root.default is open and not tried", _close_lane),
    ("applications of root.default are out of order", _reverse_lanes),
    ("app-1 stands in a lane without an ask of its shape", _empty_pile),
    ("asks of app-1 are out of order", _reverse_piles),
]


def _ask(planner: Planner, key: str) -> object:
    return next(iter(planner.model.apps.values())).asks[key]


def test_a_sound_view_has_nothing_to_say(planner: Planner) -> None:
    assert [] == audit(planner)


@pytest.mark.parametrize(("words", "corrupt"), CORRUPTIONS)
def test_a_corruption_is_named(words: str, corrupt: Corrupt, planner: Planner) -> None:
    corrupt(planner)
    found = audit(planner)
    assert any(words in line for line in found), found
