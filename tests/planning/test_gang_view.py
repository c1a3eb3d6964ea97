"""What the planner sees of gangs while its proposals are on their way."""

import pytest
from written import APP, Written

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.state.proposals import Replace


@pytest.fixture
def written() -> Written:
    """A placeholder stands, its member waits, and other work of the leaf has no room."""
    written = Written("root.default", "root.other")
    written.node("n1", vcore=6)
    written.add(APP)
    written.ask("ph", vcore=2, placeholder=True, task_group="g")
    written.allocate("ph", "n1")
    written.add("elsewhere", queue="root.other")
    written.ask("e", "elsewhere", vcore=3)
    written.ask("member", vcore=2, task_group="g")
    return written


def _swap(written: Written) -> Replace:
    (swap,) = [it for it in written.planner.plan(100, 0) if isinstance(it, Replace)]
    return swap


def test_a_swap_that_is_refused_after_its_placeholder_went(written: Written) -> None:
    """The member may be placed plainly now, so more waits in a queue that has other work."""
    written.add("busy")
    written.ask("b", "busy", vcore=1, repeats=3)
    (swap,) = written.planner.plan(1, 0)
    assert isinstance(swap, Replace)
    written.release(swap.placeholder)
    written.plan(1)
    written.planner.reject(swap.proposal_id)
    assert [] == audit(written.planner)
    assert "member" in [it.key for it in written.plan()]


def test_a_swap_that_is_refused_is_proposed_again(written: Written) -> None:
    swap = _swap(written)
    assert not written.planner.requeue.gangs.looking
    written.planner.reject(swap.proposal_id)
    assert swap.placeholder == _swap(written).placeholder


def test_a_placeholder_on_its_way_is_not_swapped_twice(written: Written) -> None:
    written.ask("second", vcore=2, task_group="g")
    swap = _swap(written)
    assert "member" == swap.key
    assert [] == [it for it in written.planner.plan(100, 0) if isinstance(it, Replace)]


def test_an_ask_that_became_a_placeholder_on_its_way_bars_the_others_when_it_is_refused(
    written: Written,
) -> None:
    """It was proposed as a plain ask, so nothing waited for it; now it waits as a placeholder."""
    written.node("n2", vcore=4)
    written.add("late")
    written.ask("first", "late", vcore=1)
    written.ask("second", "late", vcore=1)
    on_its_way = {it.key: it.proposal_id for it in written.planner.plan(100, 0)}
    written.planner.reject(on_its_way["first"])
    written.replace("second", "late", vcore=1, placeholder=True, task_group="tg")
    written.admit("late")
    assert [] == audit(written.planner)
    written.planner.reject(on_its_way["second"])
    assert [] == audit(written.planner)
