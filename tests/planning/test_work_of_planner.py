"""Each guard of a step of the plan, and what has the planner called when it opens.

A step behind a guard that nothing announces would wait for the next fact: a lost wake-up. So each
guard stands here, and the source of the planner is read for those that do not.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from written import Written

from yunikorn_actors.planning.planner import Planner

Guard = tuple[str, str]
"""The step, and one alternative of the condition that it stands behind."""

NOW_NS = 10**9


def _mark(path: str, value: Any) -> Callable[[Planner], None]:
    """Set one mark, as its part or the wakes would."""
    *owners, name = path.split(".")

    def raise_it(planner: Planner) -> None:
        owner: Any = planner
        for each in owners:
            owner = getattr(owner, each)
        setattr(owner, name, value)

    return raise_it


SOME = {object(): None}
MARKED: dict[Guard, Callable[[Planner], None]] = {
    ("denials.plan", "self.denials.due_ns <= now_ns"): _mark("denials.due_ns", NOW_NS),
    ("backoff.plan", "self.backoff.due_ns <= now_ns"): _mark("backoff.due_ns", NOW_NS),
    ("measurer.plan", "measures.is_stale"): _mark("requeue.measures.is_stale", True),
    ("placer.place_first", "gangs.first"): _mark("requeue.gangs.first", [object()]),
    ("swapper.plan", "gangs.looking"): _mark("requeue.gangs.looking", SOME),
    ("placer.plan", "requeue.places"): _mark("requeue.places", SOME),
    ("placer.plan", "admitter.lapsed"): _mark("admitter.lapsed", SOME),
    ("placer.plan", "root is not None and root.children"): _mark(
        "model.tree.root", SimpleNamespace(children=SOME, open_lanes=())
    ),
    ("backoff.end_passes", "requeue.passes"): _mark("requeue.passes", SOME),
    ("backoff.begin_rests", "requeue.passes"): _mark("requeue.passes", SOME),
    ("preemptor.plan", "preemptor.has_work"): _mark("preemptor._allowance.is_cut_short", True),
    ("preemptor.plan", "preemptor.due_ns <= now_ns"): _mark("preemptor._due_ns", NOW_NS),
    ("reserver.plan", "requeue.reserving.is_stale"): _mark("requeue.reserving.is_stale", True),
    ("reserver.plan", "reserver.due_ns <= now_ns"): _mark("reserver.due_ns", NOW_NS),
    ("explainer.plan", "requeue.explaining.asks"): _mark("requeue.explaining.asks", SOME),
    ("explainer.plan", "requeue.explaining.apps"): _mark("requeue.explaining.apps", SOME),
    ("explainer.plan", "self.explainer.left"): _mark("explainer.left", SOME),
}
"""By guard what opens it: work then, or due."""
STANDING: dict[Guard, str] = {
    ("measurer.plan", "measures.leaves"): "the order of leaves matters when something is placed",
    ("placer.place_reserved", "model.reserved_nodes"): "who holds one is a candidate of the tree",
    ("admitter.plan", "gangs.room_has_changed"): "work only while gangs await admission",
    ("admitter.plan", "admitter.commitments is not None"): "room that others must leave alone",
    ("gatekeeper.plan", "model.deciders.gated"): "work only while the passes are stale",
    ("gatekeeper.plan", "self.gatekeeper.passes"): "to be ended when no leaf is gated any more",
}
"""Guards of what stands for long: something else announces the work, and says so here."""


def _idle() -> Planner:
    written = Written()
    written.node("n1", vcore=1)
    written.decide()
    planner: Planner = written.planner
    assert not planner.has_work, "vacuous: it has work before a mark is set"
    assert planner.due_ns > NOW_NS, "vacuous: something is due before a mark is set"
    return planner


def _guards() -> Iterator[Guard]:
    """Read them from the source: an `if` with the `yield` of one step in it."""
    for function in (Planner._first, Planner._next, Planner._last):
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            if isinstance(node, ast.If):
                (yielded,) = (it for it in ast.walk(node) if isinstance(it, ast.Yield))
                assert yielded.value is not None
                step = ast.unparse(yielded.value).removeprefix("self.")
                test = node.test
                is_either = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
                for term in test.values if is_either else [test]:  # type: ignore[attr-defined]
                    yield step, ast.unparse(term)


def _yields() -> int:
    sources = (inspect.getsource(it) for it in (Planner._first, Planner._next, Planner._last))
    trees = (ast.parse(textwrap.dedent(it)) for it in sources)
    return sum(isinstance(node, ast.Yield) for tree in trees for node in ast.walk(tree))


def test_each_guard_is_known() -> None:
    guards = list(_guards())
    assert len({step for step, _ in guards}) == _yields(), "a step without a guard, or two in one"
    assert sorted(guards) == sorted([*MARKED, *STANDING])


@pytest.mark.parametrize("guard", MARKED, ids=" if ".join)
def test_an_open_guard_is_work_or_due(guard: Guard) -> None:
    planner = _idle()
    MARKED[guard](planner)
    part, _, step = guard[0].partition(".")
    opened = {
        (it.__self__, it.__name__)  # type: ignore[attr-defined]
        for steps in (planner._first, planner._next, planner._last)
        for it in steps(NOW_NS)
    }
    assert (getattr(planner, part), step) in opened, "vacuous: the mark does not open the guard"
    assert planner.has_work or planner.due_ns <= NOW_NS
