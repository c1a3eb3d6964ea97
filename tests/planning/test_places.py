"""A reservation takes the place of its application among those that run, as an allocation does."""

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.proposals import Allocate, Reserve, Unreserve
from yunikorn_actors.state.reserved_nodes import WAIT_NS

AGE_NS = 1_000
LIMITS = {
    "of a queue": {"max_applications": 1},
    "of a user": {"limits": (LimitConfig(users=("bob",), max_applications=1),)},
}
of_each = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)


def with_nodes(limit: dict[str, object]) -> Written:
    """Two applications, `large` of the first fits in the cluster and on no node."""
    written = Written(reservation_delay_ns=AGE_NS)
    written.reconfigure(LEAF, **limit)
    for name in ("n1", "n2"):
        written.node(name, {"vcore": 5}, vcore=10)
    written.add(APP, "second")
    written.ask("large", vcore=8)
    return written


def starts(written: Written) -> list[str]:
    return [key for _, key, _ in written.decide()]


def serial(written: Written, app: str = APP) -> int:
    return written.application(app).serial


@of_each
def test_nobody_else_starts(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    written.reserve("large", "n1")
    written.ask("small", "second", vcore=1)
    assert [] == starts(written)
    why = explain(written.planner, "second", "small", 0)
    assert why is not None
    assert why.obstacle.text.endswith("1 of 1: app-1 (a node is reserved for it)")
    assert 0 == written.state.root.running_apps
    written.drop("large", "n1")
    assert written.planner.has_work
    assert ["small"] == starts(written)


@of_each
def test_the_place_is_taken_while_the_reservation_is_on_its_way(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    (made,) = written.planner.plan(9, written.now_ns + 2 * AGE_NS)
    assert isinstance(made, Reserve)
    written.ask("small", "second", vcore=1)
    assert [] == starts(written)
    written.planner.reject(made.proposal_id)
    assert ["small"] == starts(written)


@of_each
def test_two_applications_do_not_reserve_for_one_place(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    written.ask("large-too", "second", vcore=8)
    proposals = written.planner.plan(9, written.now_ns + 2 * AGE_NS)
    assert ["large"] == [made.key for made in proposals if isinstance(made, Reserve)]


@of_each
def test_an_allocation_takes_the_place_before_a_reservation(limit: dict[str, object]) -> None:
    """Both are decided in one plan."""
    written = with_nodes(limit)
    written.ask("small", "second", vcore=1)
    proposals = written.planner.plan(9, written.now_ns + 2 * AGE_NS)
    assert ["small"] == [getattr(made, "key", None) for made in proposals]


@of_each
def test_who_has_the_place_starts_on_any_node(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    written.ask("small", "second", vcore=1)
    written.reserve("large", "n1")
    written.node("n3", vcore=10)
    assert ["large"] == starts(written)


def test_the_books() -> None:
    """Queue and user count it by the reservation until it holds something, or the node is free."""
    written = with_nodes(LIMITS["of a queue"])
    usage, leaf = written.state.users["bob"]["root"], written.state.queues[LEAF]
    written.ask("twice", vcore=8, repeats=2)
    written.reserve("twice", "n1")
    written.reserve("twice", "n2")
    assert [serial(written)] == list(leaf.reserving) == list(usage.reserving)
    assert ({}, {}) == (leaf.allocating, usage.running)
    written.drop("twice", "n1")
    assert [serial(written)] == list(leaf.reserving) == list(usage.reserving)
    uuid = written.recover("runs", "n1", vcore=1)
    assert ({}, {}) == (leaf.reserving, usage.reserving)
    assert [serial(written)] == list(leaf.allocating) == list(usage.running)
    written.release(uuid)
    assert [serial(written)] == list(leaf.reserving), "the other node is kept"
    assert ({}, [serial(written)]) == (usage.reserving, list(usage.running))
    written.move(APP, ApplicationState.RUNNING)
    assert ({}, 1) == (leaf.reserving, leaf.running_apps)


@of_each
def test_too_few_places_are_left(limit: dict[str, object]) -> None:
    """A reload takes one away: who came first keeps it, the other may not start."""
    written = with_nodes({})
    written.ask("large-too", "second", vcore=8)
    written.reserve("large-too", "n2", "second")
    written.reserve("large", "n1")
    written.reconfigure(LEAF, **limit)
    written.resize_node("n1", {"vcore": 0}, vcore=10)
    assert [] == starts(written), "its place went to the other one"
    written.drop("large-too", "n2", "second")
    assert written.planner.has_work
    assert ["large"] == starts(written)


def given_up(written: Written) -> list[str]:
    proposals = written.planner.plan(99, written.now_ns + WAIT_NS)
    return [made.key for made in proposals if isinstance(made, Unreserve)]


@of_each
def test_who_may_not_start_any_more_gives_the_node_up(limit: dict[str, object]) -> None:
    written = with_nodes({})
    written.reserve("large", "n1")
    written.recover("forced", "n2", "second", vcore=1)
    assert [] == given_up(written)
    written.reconfigure(LEAF, **limit)
    assert written.planner.has_work
    assert [] == written.planner.plan(99, written.now_ns)
    assert written.planner.due_ns < written.now_ns + WAIT_NS
    assert ["large"] == given_up(written)


@of_each
def test_work_that_is_recovered_takes_the_place(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    written.reserve("large", "n1")
    assert [] == written.planner.plan(99, written.now_ns)
    written.recover("forced", "n2", "second", vcore=1)
    assert written.planner.has_work
    assert ["large"] == given_up(written)


def test_who_is_overtaken_in_a_stateaware_leaf() -> None:
    written = with_nodes({"properties": {"application.sort.policy": "stateaware"}})
    written.reserve("large", "n1")
    written.add("third")
    assert [] == written.planner.plan(99, written.now_ns)
    written.ask("old", "third", vcore=99, created_ns=1)
    assert written.planner.has_work
    assert ["large"] == given_up(written)


@of_each
def test_held_back_with_a_reservation_and_let_go(limit: dict[str, object]) -> None:
    """It was tried in vain while another one ran by force; that one's end is enough."""
    written = with_nodes(limit)
    written.reserve("large", "n1")
    uuid = written.recover("forced", "n2", "second", vcore=1)
    written.move("second", ApplicationState.RUNNING)
    written.node("n3", vcore=10)
    assert [] == starts(written)
    assert [] == starts(written)
    written.release(uuid, "second")
    written.move("second", ApplicationState.COMPLETING)
    assert written.planner.has_work
    assert ["large"] == starts(written)


@of_each
def test_room_on_the_kept_node_and_then_the_place(limit: dict[str, object]) -> None:
    written = with_nodes(limit)
    written.reserve("large", "n1")
    uuid = written.recover("forced", "n2", "second", vcore=1)
    written.move("second", ApplicationState.RUNNING)
    written.resize_node("n1", {"vcore": 0}, vcore=10)
    assert [] == starts(written)
    written.release(uuid, "second")
    written.move("second", ApplicationState.COMPLETING)
    assert written.planner.has_work
    assert [(APP, "large", "n1")] == written.decide()


# -- giving up what only decisions on their way stand against


def outrun() -> tuple[Written, Allocate]:
    """A small ask on its way leaves too little of the quota for one that has an old reservation."""
    written = with_nodes({"max": {"vcore": 9}})
    written.reserve("large", "n1")
    written.ask("small", "second", vcore=2)
    (small,) = written.planner.plan(99, written.now_ns + WAIT_NS)
    assert isinstance(small, Allocate)
    assert [] == given_up(written), "Context knows of nothing that stands against it"
    assert not written.planner.has_work, "it would propose again and again"
    return written, small


def test_a_node_is_given_up_when_what_was_on_its_way_has_come() -> None:
    written, small = outrun()
    written.commit(small)
    assert written.planner.has_work
    assert ["large"] == given_up(written)


def test_a_node_stays_kept_when_what_was_on_its_way_is_refused() -> None:
    written, small = outrun()
    written.withdraw("small", "second")
    written.planner.reject(small.proposal_id)
    assert [] == given_up(written)
    assert not written.planner.has_work
