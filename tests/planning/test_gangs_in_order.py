"""Gangs in the order of their queue: what a plan has decided already counts in it."""

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.domain.proposals import Allocate, Proposal
from yunikorn_actors.planning.audit import contradictions

OLD, YOUNG = APP, "app-2"


def keys(proposals: list[Proposal]) -> list[str]:
    """Name what is decided, in order."""
    return [it.key if isinstance(it, Allocate) else type(it).__name__ for it in proposals]


def plan(written: Written, limit: int = 100) -> list[Proposal]:
    proposals = written.planner.plan(limit, written.now_ns)
    assert [] == contradictions(written.planner)
    return proposals


def ask_placeholder(written: Written, key: str, app: str = APP, **parts: object) -> None:
    written.ask(key, app, **{"vcore": 4, "placeholder": True, "task_group": "g", **parts})


# -- the real asks of an older gang


@pytest.fixture
def written() -> Written:
    """One placeholder of the older gang stands; the second, and its driver, wait."""
    written = Written()
    written.node("n1", vcore=4)
    written.add(OLD, YOUNG, placeholder_ask={"vcore": 8})
    written.admit(OLD)
    written.admit(YOUNG)
    ask_placeholder(written, "ph", repeats=2)
    written.allocate("ph", "n1")
    written.ask("driver", vcore=4)
    ask_placeholder(written, "yph", YOUNG, repeats=2)
    return written


def test_with_its_last_placeholder_a_real_ask_is_tried_at_its_own_turn(written: Written) -> None:
    written.node("n2", vcore=8)
    assert ["ph", "driver"] == keys(plan(written))


def test_when_the_placeholder_is_refused_the_real_ask_waits_again(written: Written) -> None:
    """Nothing is left of the decision: all is decided again, as before."""
    written.node("n2", vcore=8)
    placeholder, driver = plan(written)
    written.planner.reject(placeholder.proposal_id)
    assert [] == contradictions(written.planner)
    written.planner.reject(driver.proposal_id)
    assert [] == contradictions(written.planner)
    assert ["ph", "driver"] == keys(plan(written))


def test_a_real_ask_waits_for_the_other_placeholder(written: Written) -> None:
    ask_placeholder(written, "ph-3", vcore=40)
    written.node("n2", vcore=8)
    assert ["ph", "yph"] == keys(plan(written))


def test_a_placeholder_on_its_way_becomes_a_real_ask(written: Written) -> None:
    """It is no placeholder that is on its way any more, and the other one still waits."""
    ask_placeholder(written, "ph-3", vcore=40)
    written.node("n2", vcore=8)
    (first, _) = plan(written)
    written.replace("ph", vcore=4, repeats=2)
    assert [] == contradictions(written.planner)
    written.planner.reject(first.proposal_id)
    assert [] == contradictions(written.planner)


# -- what waits, in the tie of fair queues


def test_between_equal_queues_the_real_asks_of_a_gang_count_as_pending() -> None:
    written = Written("root.a", "root.b")
    written.add(OLD, queue="root.a")
    written.add(YOUNG, queue="root.b")
    ask_placeholder(written, "small", OLD, repeats=2, vcore=2)
    ask_placeholder(written, "large", YOUNG, vcore=3)
    written.ask("real", YOUNG, vcore=3)
    written.node("n1", vcore=3)
    assert ["large"] == keys(plan(written))


def test_a_member_counts_as_pending_until_its_swap_is_decided() -> None:
    written = Written()
    written.node("n1", vcore=3)
    written.add(OLD)
    ask_placeholder(written, "ph", vcore=3)
    written.allocate("ph", "n1")
    written.ask("real", vcore=3, task_group="g")
    leaf = written.planner.tree.queues[LEAF]
    assert 3 == leaf.waiting
    (swap,) = plan(written)
    assert 0 == leaf.waiting
    written.planner.reject(swap.proposal_id)
    assert 3 == leaf.waiting
