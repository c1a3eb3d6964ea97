"""The core starts again: what was true stays true, and what a resource manager reports is compared.

A `Lab` is ended at some moment, and another core gets its truth, as bytes. Its resource manager is
lost at first. What it says when it comes back is in the tests.
"""

import pytest
from restarting import Restarted
from support import APP, PARTITION, RM, Lab, report, settled

from yunikorn_actors import si
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.errors import UnknownResourceManager
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

RETURN_S = Settings().paused_timeout_ns / 1e9
EVERY = pytest.mark.parametrize("topology", TOPOLOGIES)


PREEMPTS = si.PreemptionPolicy(allow_preempt_other=True)
ENTITLED = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: serving, resources: {guaranteed: {vcore: 4m}}, properties: {preemption.delay: 5s}}
    - {name: batch}
    - {name: urgent, properties: {priority.offset: '5'}}
"""


def running_of(lab: Lab, node: str = "n1") -> list[si.Allocation]:
    return [
        report(it.spec.key, node, it.resource["vcore"], app=it.spec.application_id, uuid=it.uuid)
        for it in lab.state.nodes[node].allocations.values()
    ]


def busy(topology: TopologyName) -> Lab:
    """Two run on one node, and one more waits for room."""
    lab = Lab(topology=topology)
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("a", "b", "waits", vcore=2)
    lab.settle()
    assert (["a", "b"], ["waits"]) == (lab.running(), lab.waiting())
    return lab


@EVERY
def test_the_truth_is_the_same_and_its_manager_is_lost(topology: TopologyName) -> None:
    former = busy(topology)
    lab = Restarted(former, topology)
    before, now = settled(former.state), settled(lab.state)
    assert before["applications"] == now["applications"]
    assert before["queues"] == now["queues"]
    assert "Paused" == lab.simulator.state_dump()["managers"][RM]["state"]
    assert [] == violations(lab.state)
    with pytest.raises(UnknownResourceManager):
        lab.ask("more")
    lab.advance(RETURN_S)
    assert {} == lab.context.partitions, "it did not come back, so its partitions go"


@EVERY
def test_what_runs_keeps_its_uuid_and_what_waits_goes_on_waiting(topology: TopologyName) -> None:
    former = busy(topology)
    lab = Restarted(former, topology)
    uuids = set(former.rm.running)
    lab.come_back()
    lab.report_node("n1", *running_of(former))
    lab.submit(APP)
    lab.settle()
    assert [("node", "n1", "accepted"), ("application", APP, "accepted")] == lab.rm.heard
    assert (uuids, ["waits"]) == (set(lab.state.owners), lab.waiting())
    lab.release("a")
    lab.settle()
    assert ["b", "waits"] == lab.running()
    assert 1 == len(set(lab.rm.running) - uuids), "a new allocation has a new UUID"
    lab.advance(RETURN_S)
    assert ["b", "waits"] == lab.running(), "everything was reported, so nothing is dropped"
    assert {} == lab.leftovers()


@EVERY
def test_no_node_takes_work_before_it_is_reported(topology: TopologyName) -> None:
    former = busy(topology)
    former.release("a", "b")
    former.withdraw("waits")
    former.settle()
    former.rm.running.clear()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.ask("new")
    lab.settle()
    assert [] == lab.rm.told("new")
    lab.report_node("n1")
    assert [("new", "n1")] == lab.rm.told("new")


@EVERY
def test_what_was_not_reported_in_time_is_dropped_and_told(topology: TopologyName) -> None:
    former = busy(topology)
    former.nodes(n2=2)
    former.settle()
    assert ["a", "b", "waits"] == former.running()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1", *running_of(former)[:1])
    lab.advance(RETURN_S)
    released = {("b", "STOPPED_BY_RM"), ("waits", "STOPPED_BY_RM")}
    assert released == set(lab.rm.told("released"))
    assert (["a"], ["n1"]) == (lab.running(), list(lab.state.nodes))
    assert [] == violations(lab.state)


@EVERY
def test_a_placement_that_was_never_heard_of_is_told_when_it_is_asked_for_again(
    topology: TopologyName,
) -> None:
    former = busy(topology)
    [lost] = [uuid for uuid, key in former.rm.running.items() if key == "b"]
    lab = Restarted(former, topology)
    del lab.rm.running[lost]
    lab.come_back()
    lab.report_node("n1", *running_of(former)[:1])
    lab.submit(APP)
    lab.ask("b", "waits", vcore=2)
    lab.settle()
    assert [("b", "n1")] == lab.rm.told("new")
    assert lost in lab.rm.running
    lab.ask("b", vcore=2)
    lab.advance(RETURN_S)
    assert [("b", "n1")] == lab.rm.told("new"), "it is told once"
    assert (["a", "b"], ["waits"]) == (lab.running(), lab.waiting())


@EVERY
def test_a_placement_that_was_never_heard_of_is_told_with_its_node(topology: TopologyName) -> None:
    """Whether the ask or the node comes first: without the report nobody knows what runs there."""
    former = busy(topology)
    [lost] = [uuid for uuid, key in former.rm.running.items() if key == "b"]
    lab = Restarted(former, topology)
    del lab.rm.running[lost]
    lab.come_back()
    lab.submit(APP)
    lab.ask("b", "waits", vcore=2)
    lab.settle()
    assert [] == lab.rm.told("new")
    lab.report_node("n1", *running_of(former)[:1])
    assert [("b", "n1")] == lab.rm.told("new")
    lab.advance(RETURN_S)
    assert [("b", "n1")] == lab.rm.told("new"), "it is told once"
    assert [] == lab.rm.told("released")
    assert (["a", "b"], ["waits"]) == (lab.running(), lab.waiting())


@EVERY
def test_an_ask_waits_again_if_its_placement_was_never_heard_of_and_its_node_is_gone(
    topology: TopologyName,
) -> None:
    """It is placed elsewhere when the time to report the node is over, and nothing else is told."""
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("a", vcore=2)
    former.settle()
    lab = Restarted(former, topology)
    lab.rm.running.clear()
    lab.come_back()
    lab.submit(APP)
    lab.report_node("n2")
    lab.ask("a", vcore=2)
    lab.advance(RETURN_S)
    assert ([("a", "n2")], []) == (lab.rm.told("new"), lab.rm.told("released"))
    assert (["a"], ["n2"]) == (lab.running(), list(lab.state.nodes))
    assert "Running" == lab.state.applications[APP].state.value
    assert [] == violations(lab.state)
    assert {} == lab.leftovers()


@EVERY
def test_a_placement_that_was_never_heard_of_and_is_asked_back_has_ended(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    former.settle()
    [lost] = former.rm.running
    lab = Restarted(former, topology)
    lab.rm.running.clear()
    lab.come_back()
    lab.advance(2)
    assert [lost] == list(lab.state.unconfirmed), "its time is over before its node comes"
    assert [] == lab.rm.told("released")
    lab.report_node("n1")
    lab.submit(APP)
    lab.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    lab.settle()
    assert ([("short", "n1")], []) == (lab.rm.told("new"), lab.rm.told("released"))
    assert {} == lab.state.unconfirmed
    assert lost not in lab.state.owners, "it was placed anew"
    lab.advance(2)
    assert [("short", "TIMEOUT")] == lab.rm.told("released"), "in its own time"
    assert [] == violations(lab.state)


@EVERY
def test_members_take_the_place_of_placeholders_that_were_never_heard_of(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    gang = {"placeholder_ask": si.Resource.of({"vcore": 2})}
    former.submit(APP, **gang)
    placeholder = {"vcore": 2, "placeholder": True, "task_group_name": "g"}
    former.ask("p", **placeholder)
    former.settle()
    [lost] = former.rm.running
    lab = Restarted(former, topology)
    lab.rm.running.clear()
    lab.come_back()
    lab.submit(APP, **gang)
    lab.ask("member", vcore=2, task_group_name="g")
    lab.settle()
    assert [lost] == list(lab.state.unconfirmed), "a member is to take its place"
    lab.report_node("n1")
    assert [] == lab.rm.told("new")
    lab.ask("p", **placeholder)
    lab.settle()
    assert [("member", "n1"), ("p", "n1")] == lab.rm.told("new")
    assert ([], {}) == (lab.rm.told("released"), lab.state.unconfirmed)
    assert [] == violations(lab.state)


@EVERY
def test_a_repeat_that_was_never_heard_of_is_told_while_others_wait(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("many", vcore=2, max_allocations=3)
    former.settle()
    heard, lost = former.rm.running
    lab = Restarted(former, topology)
    del lab.rm.running[lost]
    lab.come_back()
    lab.report_node("n1", *(it for it in running_of(former) if it.uuid == heard))
    lab.submit(APP)
    lab.ask("many", vcore=2, max_allocations=3)
    lab.settle()
    assert [("many", "n1")] == lab.rm.told("new")
    assert {heard, lost} == set(lab.rm.running)
    lab.advance(RETURN_S)
    assert (["many", "many"], ["many"]) == (lab.running(), lab.waiting())


@EVERY
def test_a_report_without_a_uuid_is_known_by_its_key(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("many", vcore=2, max_allocations=3)
    former.settle()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1", report("many", "n1", 2), report("many", "n1", 2))
    lab.advance(RETURN_S)
    assert ["many", "many"] == lab.running()
    assert (set(former.rm.running), ["many"]) == (set(lab.state.owners), lab.waiting())


@EVERY
def test_what_was_asked_back_is_asked_back_again(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", vcore=2, tags={}, execution_timeout_milli_seconds=1_000)
    former.settle()
    known = dict(former.rm.running)
    former.advance(2)
    assert [("short", "TIMEOUT")] == former.rm.told("released")
    former.rm.running = known
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1", *running_of(former))
    assert [("short", "TIMEOUT")] == lab.rm.told("released")
    lab.release("short", termination_type=si.TerminationType.TIMEOUT)
    lab.settle()
    assert {} == lab.state.owners
    assert [] == violations(lab.state)


@EVERY
def test_the_room_of_victims_is_for_whom_they_went(topology: TopologyName) -> None:
    """Promised before the end of the core; others would have it, and as many would go again."""
    former = Lab(topology=topology, config=ENTITLED)
    former.nodes(n1=4)
    former.submit("rest", queue="root.batch")
    former.ask(*"abcd", app="rest")
    former.settle()
    former.submit("thief", queue="root.urgent")
    former.ask("t", "u", app="thief")
    former.submit("service", queue="root.serving")
    former.ask("p", "q", app="service", preemption_policy=PREEMPTS)
    former.settle()
    known = dict(former.rm.running)
    former.advance(6)
    victims = [key for key, _ in former.rm.told("released")]
    assert len(victims) == 2
    former.rm.running = known
    lab = Restarted(former, topology)
    assert len(lab.state.nodes["n1"].reservations) == 2
    lab.come_back(ENTITLED)
    for name, queue in (("rest", "batch"), ("thief", "urgent"), ("service", "serving")):
        lab.submit(name, queue=f"root.{queue}")
    lab.report_node("n1", *running_of(former))
    lab.ask("t", "u", app="thief")
    lab.ask("p", "q", app="service", preemption_policy=PREEMPTS)
    lab.settle()
    type_ = si.TerminationType.PREEMPTED_BY_SCHEDULER
    lab.release(*victims, app="rest", termination_type=type_)
    lab.advance(60)
    assert sorted(victims) == sorted(key for key, _ in lab.rm.told("released")), "nobody else goes"
    assert {("p", "n1"), ("q", "n1")} == set(lab.rm.told("new"))
    assert ["t", "u"] == lab.waiting()
    assert [] == violations(lab.state)


@EVERY
def test_what_is_placed_before_it_is_asked_for_again_may_end_unasked(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("big", vcore=4)
    former.ask("k", vcore=1)
    former.settle()
    [big] = former.rm.running
    lab = Restarted(former, topology)
    lab.rm.running.clear()
    lab.come_back()
    lab.report_node("n1", *running_of(former), vcore=5)
    lab.node("n1", si.ActionFromRM.UPDATE, 5)
    lab.settle()
    assert [("k", "n1")] == lab.rm.told("new"), "asked for before the restart"
    lab.submit(APP)
    lab.ask("k", vcore=1)
    lab.release("k", termination_type=si.TerminationType.TIMEOUT)
    lab.settle()
    [records] = (it for it in lab.simulator.checkers if isinstance(it, RecordChecker))
    assert [] == records.differences(lab.context)
    assert [big] == list(lab.state.owners)


@EVERY
def test_what_is_asked_back_before_it_is_reported_is_asked_back_once(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    former.settle()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.advance(2)
    assert list(lab.state.owners) == list(lab.state.unconfirmed)
    assert [] == lab.rm.told("released")
    lab.report_node("n1", *running_of(former))
    lab.advance(2)
    assert [("short", "TIMEOUT")] == lab.rm.told("released")


@EVERY
def test_the_end_of_what_was_asked_back_is_not_told_twice(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    former.settle()
    former.advance(2)
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1")
    lab.advance(RETURN_S)
    assert [] == lab.rm.told("released")
    assert {} == lab.state.owners


@EVERY
def test_what_was_asked_back_is_placed_anew_if_it_is_asked_for_before_its_node(
    topology: TopologyName,
) -> None:
    """It never heard of the placement, and would wait forever."""
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    former.settle()
    former.advance(2)
    [lost] = former.state.owners
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.ask("short", vcore=2, execution_timeout_milli_seconds=1_000)
    lab.report_node("n1")
    assert ([("short", "n1")], []) == (lab.rm.told("new"), lab.rm.told("released"))
    assert lost not in lab.state.owners, "it was placed anew"
    assert {} == lab.state.unconfirmed


@EVERY
def test_an_application_that_fails_before_its_node_is_back_takes_nothing_again(
    topology: TopologyName,
) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP, execution_timeout_milli_seconds=100_000)
    former.ask("short", vcore=2, execution_timeout_milli_seconds=60_000)
    former.settle()
    former.rm.running.clear()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.ask("short", vcore=2, execution_timeout_milli_seconds=60_000)
    lab.advance(101)
    assert "Failing" == lab.state.applications[APP].state.value
    lab.report_node("n1")
    assert [] == violations(lab.state)
    lab.advance(RETURN_S)
    assert {} == lab.state.owners
    assert [] == violations(lab.state)


@EVERY
def test_timers_go_on(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("short", execution_timeout_milli_seconds=60_000)
    former.settle()
    former.advance(50)
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1", *running_of(former))
    assert [] == lab.rm.told("released")
    lab.advance(10)
    assert [("short", "TIMEOUT")] == lab.rm.told("released")


@EVERY
def test_a_later_registration_is_a_clean_slate(topology: TopologyName) -> None:
    lab = Restarted(busy(topology), topology)
    lab.come_back()
    lab.come_back()
    assert ({}, {}) == (lab.state.nodes, lab.state.applications)
    assert not lab.simulator.state_dump()["partitions"][PARTITION]["allocations"]


@EVERY
def test_event_records_go_on_with_their_numbers(topology: TopologyName) -> None:
    former = busy(topology)
    before = former.simulator.events(0, 1_000)
    lab = Restarted(former, topology)
    after = lab.simulator.events(0, 1_000)
    assert before.records
    assert before.records == after.records[: len(before.records)]
    assert after.highest_id > before.highest_id


@EVERY
def test_a_core_that_is_restarted_while_managers_come_back(topology: TopologyName) -> None:
    former = busy(topology)
    lab = Restarted(former, topology)
    lab.come_back()
    lab.report_node("n1", *running_of(former)[:1])
    again = Restarted(lab, topology)
    again.come_back()
    again.report_node("n1", *running_of(former))
    again.advance(RETURN_S)
    assert (["a", "b"], ["waits"]) == (again.running(), again.waiting())
    assert {} == again.leftovers()
