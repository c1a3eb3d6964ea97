"""The books of a partition, fact by fact.

`Written` derives the whole state again after every fact, so what stands here are the values
themselves, and what no book shows.
"""

from typing import get_args

import pytest
from support import Lab
from written import APP, LEAF, Written

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import STATE_LOG_MAX, ApplicationSpec, ApplicationState
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue, QueueState
from yunikorn_actors.values.resource import Resource


@pytest.fixture
def written() -> Written:
    written = Written()
    written.node("n1", vcore=10, memory=100)
    written.add(APP)
    return written


def _amounts(book: Resource) -> Resource:
    return {kind: quantity for kind, quantity in book.items() if quantity}


def _allocated(state: PartitionState) -> list[Resource]:
    """What one allocation is charged to: node, application, queues, user."""
    app = state.applications[APP]
    books: list[Resource] = [
        state.nodes["n1"].allocated,
        {
            kind: app.allocated.get(kind, 0) + app.placeholders.get(kind, 0)
            for kind in ("vcore", "memory")
        },
        *(queue.allocated for queue in state.queues.values()),
        *(usage.amounts for usage in state.users["bob"].values()),
    ]
    return [_amounts(book) for book in books]


def test_every_fact_changes_the_state_in_its_own_way() -> None:
    assert [it for it in get_args(f.Fact) if "change" not in vars(it)] == []


def test_the_union_names_every_fact() -> None:
    own = {it for it in f.Base.__subclasses__() if it.__module__.startswith("yunikorn_actors.")}
    assert set(get_args(f.Fact)) == own


def test_one_allocation_through_all_books(written: Written) -> None:
    written.ask("a", vcore=3)
    assert {"vcore": 3} == _amounts(written.application().pending)
    uuid = written.allocate("a", "n1")
    assert [{"vcore": 3}] * 6 == _allocated(written.state)
    assert ({}, 1) == (_amounts(written.state.root.pending), written.state.allocation_count)
    assert {"vcore": 7, "memory": 100} == written.state.nodes["n1"].available
    written.release(uuid)
    assert [{}] * 6 == _allocated(written.state)
    assert {} == written.application().asks
    assert 0 == written.state.allocation_count


def test_placeholders_count_apart_in_the_application_alone(written: Written) -> None:
    written.ask("p", vcore=2, placeholder=True, task_group="g")
    written.allocate("p", "n1")
    assert ({}, {"vcore": 2}) == (
        _amounts(written.application().allocated),
        _amounts(written.application().placeholders),
    )
    assert [{"vcore": 2}] * 6 == _allocated(written.state)


def test_repeats_of_one_ask(written: Written) -> None:
    written.ask("a", vcore=2, repeats=3)
    assert {"vcore": 6} == _amounts(written.state.root.pending)
    first = written.allocate("a", "n1")
    second = written.allocate("a", "n1")
    assert [first, second] == list(written.application().asks["a"].uuids)
    assert {"vcore": 2} == _amounts(written.state.root.pending)
    written.withdraw("a")
    assert {} == _amounts(written.state.root.pending)
    written.release(first)
    assert [second] == list(written.application().asks["a"].uuids)
    written.release(second)
    assert {} == written.application().asks


def test_an_ask_sent_again_keeps_its_age_and_what_is_allocated(written: Written) -> None:
    written.ask("a", vcore=1, repeats=3, created_ns=77)
    written.allocate("a", "n1")
    written.replace("a", memory=5, repeats=2)
    ask = written.application().asks["a"]
    assert (77, 1) == (ask.created_ns, ask.remaining)
    assert {"memory": 5} == _amounts(written.state.root.pending)
    assert {"vcore": 1} == _amounts(written.state.root.allocated)


def test_a_resize_moves_all_books(written: Written) -> None:
    written.ask("a", vcore=3)
    uuid = written.allocate("a", "n1")
    written.resize(uuid, memory=50)
    assert [{"memory": 50}] * 6 == _allocated(written.state)
    written.release(uuid)
    assert [{}] * 6 == _allocated(written.state)


def test_what_runs_may_exceed_its_node(written: Written) -> None:
    written.recover("r", "n1", vcore=11)
    assert {"vcore": -1, "memory": 100} == written.state.nodes["n1"].available
    written.resize_node("n1", vcore=2)
    assert {"vcore": -9} == written.state.nodes["n1"].available
    assert {"vcore": 2} == written.state.capacity


def test_occupied_is_what_was_reported_and_what_is_foreign(written: Written) -> None:
    written.resize_node("n1", {"vcore": 1}, vcore=10)
    written.foreign("f", "n1", vcore=4)
    assert {"vcore": 5} == written.state.nodes["n1"].occupied
    written.node("n2", vcore=10)
    written.foreign("f", "n2", vcore=3)
    assert {"vcore": 1} == written.state.nodes["n1"].occupied
    assert {"vcore": 3} == written.state.nodes["n2"].occupied
    written.resize_node("n2", {}, vcore=8)
    assert {"vcore": 5} == written.state.nodes["n2"].available
    written.remove_foreign("f")
    assert {"vcore": 8} == written.state.nodes["n2"].available


def test_foreign_allocations_do_not_outlive_their_node(written: Written) -> None:
    """Hazard H-20: the node comes back, and what it held is put again as if it were new."""
    written.foreign("f", "n1", vcore=4)
    written.remove_node("n1")
    assert {} == written.state.foreign
    written.node("n1", vcore=10)
    written.foreign("f", "n1", vcore=4)
    assert {"vcore": 6} == written.state.nodes["n1"].available


def test_a_type_without_a_node_is_unknown_again(written: Written) -> None:
    """R-063: it is not left behind as a max of zero."""
    written.node("n2", gpu=2, vcore=1)
    assert {"vcore": 11, "memory": 100, "gpu": 2} == written.state.capacity
    written.remove_node("n2")
    assert {"vcore": 10, "memory": 100} == written.state.capacity
    written.resize_node("n1", vcore=10)
    assert {"vcore": 10} == written.state.capacity


def test_running_applications_are_counted_up_the_tree() -> None:
    written = Written("root.default", "root.other")
    written.add("a", "b")
    written.add("c", queue="root.other")
    for name in ("a", "c"):
        written.move(name, ApplicationState.RUNNING)
    written.move("b", ApplicationState.STARTING)
    counted = {path: queue.running_apps for path, queue in written.state.queues.items()}
    assert {"root": 3, "root.default": 2, "root.other": 1} == counted
    written.move("b", ApplicationState.COMPLETING)
    written.remove("a")
    counted = {path: queue.running_apps for path, queue in written.state.queues.items()}
    assert {"root": 1, "root.default": 0, "root.other": 1} == counted


def test_a_finished_application_leaves_everything_but_a_memory(written: Written) -> None:
    written.move(APP, ApplicationState.RUNNING)
    written.move(APP, ApplicationState.COMPLETING)
    serial = written.application().serial
    written.move(APP, ApplicationState.COMPLETED)
    assert ({}, {}) == (written.state.applications, written.state.users)
    assert {} == written.state.queues[LEAF].applications
    (finished,) = written.state.finished.values()
    assert (ApplicationState.COMPLETED, LEAF) == (finished.state, finished.queue)
    assert ["New", "Accepted", "Running", "Completing", "Completed"] == [
        it.state.value for it in finished.state_log.entries
    ]
    written.record(f.ApplicationForgotten(serial=serial, at_ns=1))
    assert {} == written.state.finished


def test_of_a_long_life_the_newest_states_are_kept(written: Written) -> None:
    """An application that idles between its tasks, more often than anybody wants to read."""
    written.move(APP, ApplicationState.RUNNING)
    for _ in range(STATE_LOG_MAX):
        written.move(APP, ApplicationState.COMPLETING)
        written.move(APP, ApplicationState.RUNNING)
    log = written.application().state_log
    assert (STATE_LOG_MAX, 3 + STATE_LOG_MAX) == (len(log.entries), log.dropped)
    assert ["Completing", "Running"] * (STATE_LOG_MAX // 2) == [
        it.state.value for it in log.entries
    ]
    times = [it.at_ns for it in log.entries]
    assert sorted(times) == times
    shown = snapshot(written.state)["applications"][APP]
    assert (STATE_LOG_MAX, log.dropped) == (len(shown["state_log"]), shown["state_log_dropped"])


def test_a_rejected_application_was_never_active(written: Written) -> None:
    spec = ApplicationSpec(application_id="bad")
    written.record(f.ApplicationRejected(spec=spec, serial=99, reason="why", at_ns=1))
    assert [APP] == list(written.state.applications)
    assert "why" == written.state.finished[99].message


def test_the_oldest_of_an_application_makes_it_older(written: Written) -> None:
    """R-101: after a restart the order is that of the first submission."""
    written.add("young")
    written.ask("a", "young", vcore=1, created_ns=1)
    assert 1 == written.application("young").submitted_ns


def test_users_are_counted_while_their_applications_run(written: Written) -> None:
    written.add("app-2", user="alice")
    written.ask("a", "app-2", vcore=1)
    uuid = written.allocate("a", "n1", "app-2")
    usage = written.state.users["alice"]["root"]
    assert [written.application("app-2").serial] == list(usage.running)
    written.move("app-2", ApplicationState.RUNNING)
    written.release(uuid, "app-2")
    written.move("app-2", ApplicationState.COMPLETING)
    assert {} == usage.running
    written.remove("app-2")
    assert ["bob"] == list(written.state.users)


def test_queues_come_and_go(written: Written) -> None:
    written.queue("root.parent", leaf=False)
    written.queue("root.parent.leaf")
    assert ["root", "root.default", "root.parent", "root.parent.leaf"] == [
        queue.path for queue in written.state.root.walk()
    ]
    written.reconfigure("root.parent.leaf", max={"vcore": 1})
    assert {"vcore": 1} == _queue(written, "ROOT.Parent.Leaf").spec.max
    written.drain_queue("root.parent.leaf")
    assert QueueState.DRAINING is _queue(written, "root.parent.leaf").state
    written.remove_queue("root.parent.leaf")
    assert {} == _queue(written, "root.parent").children


def _queue(written: Written, path: str) -> Queue:
    queue = written.state.queue(path)
    assert queue is not None
    return queue


def test_revisions_count_facts(written: Written) -> None:
    before = written.state.revision
    written.ask("a", vcore=1)
    written.withdraw("a")
    assert before + 2 == written.state.revision


def test_a_replica_is_equal_whatever_its_past() -> None:
    """The same facts, applied to another object, give the same plain values."""
    lab = Lab(seed=7)
    lab.nodes(n1=10, n2=5)
    lab.submit(APP, "app-2")
    lab.ask("a", "b", vcore=3)
    lab.ask("c", app="app-2", max_allocations=4)
    lab.release("a")
    lab.decommission("n1")
    lab.settle()
    assert snapshot(lab.state) == snapshot(lab.planner.state)
    assert lab.state is not lab.planner.state
