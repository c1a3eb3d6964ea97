"""What an ask waits for, and what wakes it."""

from typing import Any

from written import APP, LEAF, Decision, Written

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.state.applications import ApplicationState


def _waiting(**queue: Any) -> Written:
    """An ask for 3, of which something is short."""
    written = Written()
    written.reconfigure(LEAF, **queue)
    written.add(APP)
    return written


def _decides(written: Written) -> list[Decision]:
    assert written.planner.has_work
    return written.decide()


def test_a_new_node() -> None:
    written = _waiting()
    written.node("small", vcore=2)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    assert not written.planner.has_work
    written.node("large", vcore=3)
    assert [(APP, "a", "large")] == _decides(written)


def test_a_released_allocation() -> None:
    written = _waiting()
    written.node("n1", vcore=4)
    written.ask("first", vcore=3)
    written.ask("a", vcore=3)
    uuid = written.allocate("first", "n1")
    assert [] == _decides(written)
    written.release(uuid)
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_higher_limit() -> None:
    written = _waiting(max={"vcore": 2})
    written.node("n1", vcore=10)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    assert not written.planner.has_work
    written.reconfigure(LEAF, max={"vcore": 3})
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_limit_that_is_lifted() -> None:
    written = _waiting(max={"vcore": 0})
    written.node("n1", vcore=10)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    written.reconfigure(LEAF)
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_node_that_opens() -> None:
    written = _waiting()
    written.node("n1", vcore=10)
    written.schedule("n1", drained=True)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    written.schedule("n1", ready=False)
    assert [] == _decides(written)
    written.schedule("n1")
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_foreign_allocation_that_ends() -> None:
    written = _waiting()
    written.node("n1", vcore=4)
    written.foreign("f", "n1", vcore=2)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    written.remove_foreign("f")
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_smaller_ask() -> None:
    written = _waiting()
    written.node("n1", vcore=2)
    written.ask("a", vcore=3)
    assert [] == _decides(written)
    written.replace("a", vcore=2)
    assert [(APP, "a", "n1")] == _decides(written)


def test_an_application_that_may_be_scheduled_again() -> None:
    written = _waiting()
    written.node("n1", vcore=10)
    written.ask("a", vcore=3)
    written.ask_back(written.recover("r", "n1", vcore=1))
    written.move(APP, ApplicationState.FAILING)
    assert [] == written.decide()
    written.move(APP, ApplicationState.RUNNING)
    assert [(APP, "a", "n1")] == _decides(written)


def test_a_refused_proposal_is_decided_again() -> None:
    written = _waiting()
    written.node("n1", vcore=3)
    written.ask("a", vcore=3)
    (proposal,) = written.plan(10)
    assert not written.planner.has_work
    written.planner.reject(proposal.proposal_id)
    (again,) = written.plan(10)
    assert (proposal.key, proposal.node_id) == (again.key, again.node_id)
    assert proposal.proposal_id < again.proposal_id


def test_a_refused_proposal_frees_its_node_for_others() -> None:
    """The ask has gone meanwhile: whoever waits for room on a node has it now."""
    written = _waiting()
    written.node("n1", vcore=9)
    written.node("small", vcore=2)
    written.ask("gone", vcore=6)
    (proposal,) = written.plan()
    written.ask("a", vcore=4)
    assert [] == _decides(written)
    written.withdraw("gone")
    assert not written.planner.has_work, "nothing has come free yet"
    written.planner.reject(proposal.proposal_id)
    assert [(APP, "a", "n1")] == _decides(written)


def test_what_is_in_flight_is_taken() -> None:
    """Of nodes, of limits, and of the repeats of an ask."""
    written = _waiting(max={"vcore": 5})
    written.node("n1", vcore=4)
    written.node("n2", vcore=4)
    written.ask("a", vcore=2, repeats=2)
    written.ask("b", vcore=1, repeats=5)
    assert len(written.plan(10)) == 3
    assert [] == written.plan(10)
    assert {"vcore": 5} == written.planner.model.tree.queues[LEAF].used
    assert [] == audit(written.planner)


def test_an_application_that_has_started_counts_once() -> None:
    """It runs while more of it is on its way: that leaves a place for another one."""
    written = _waiting(max_applications=2)
    written.node("n1", vcore=9)
    written.add("app-2")
    written.ask("first", vcore=1, repeats=2)
    (first, _) = written.plan()
    written.commit(first)
    written.move(APP, ApplicationState.RUNNING)
    written.ask("a", app="app-2", vcore=1)
    assert ["a"] == [proposal.key for proposal in written.plan()]


def test_a_reservation_serves_once() -> None:
    """While one repeat is on its way to the node that was kept, the next waits its turn."""
    written = _waiting()
    written.node("n1", vcore=4)
    written.ask("a", vcore=2, repeats=2)
    written.reserve("a", "n1")
    assert ["n1"] == [proposal.node_id for proposal in written.plan()]
    assert [] == written.plan()
