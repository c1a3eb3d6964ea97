"""After a restart a node takes no work of any kind before its resource manager has reported it.

What a core knew of a node says nothing of how the node is now: it may be gone. An ask that requires
its node passes a drain and a node that is not ready, but not this.
"""

import pytest
from ganging import (
    REPLACED,
    STOPPED,
    TIMED_OUT,
    application,
    ask_members,
    assert_swapping,
    both_ways,
    confirm,
    gang_lab,
    submit_gang,
    swapping_lab,
    used,
)
from restarting import Restarted
from support import APP, RM, Lab, report

from yunikorn_actors import si
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.values.tags import TAG_REQUIRED_NODE

RETURN_S = Settings().paused_timeout_ns / 1e9
EVERY = pytest.mark.parametrize("topology", TOPOLOGIES)
MAY = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
SINCE = pytest.mark.parametrize("begins_after", [False, True], ids=["before", "after"])
ENDS = pytest.mark.parametrize("type_", [REPLACED, STOPPED, TIMED_OUT], ids=lambda it: it.name)
HERE = {"tags": {TAG_REQUIRED_NODE: "n1"}}


def restarted(topology: TopologyName, size: int = 4) -> Restarted:
    """A core that knows one node, and an application that has come back; nothing runs."""
    former = Lab(topology=topology)
    former.nodes(n1=size)
    former.submit(APP)
    former.settle()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.settle()
    return lab


def full(topology: TopologyName) -> tuple[Lab, Restarted]:
    """As `restarted`, with work on the node that may have to go."""
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("low", vcore=4)
    former.settle()
    assert ["low"] == former.running()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.settle()
    return former, lab


def of_low(former: Lab) -> si.Allocation:
    [(uuid, _)] = former.rm.running.items()
    return report("low", "n1", 4, uuid=uuid)


@EVERY
def test_an_ask_that_requires_the_node_waits_for_its_report(topology: TopologyName) -> None:
    lab = restarted(topology)
    lab.ask("daemon", **HERE)
    lab.settle()
    lab.advance(60)
    assert [] == lab.rm.told("new")
    lab.report_node("n1")
    lab.settle()
    assert [("daemon", "n1")] == lab.rm.told("new")
    assert [] == violations(lab.state)


@EVERY
def test_one_that_waited_before_the_restart_does_too(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("k", vcore=4)
    former.settle()
    former.ask("daemon", vcore=4, **HERE)
    former.settle()
    assert ["daemon"] == former.waiting()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.release("k")
    lab.settle()
    assert ([], ["daemon"]) == (lab.running(), lab.waiting())
    lab.report_node("n1")
    lab.settle()
    assert [("daemon", "n1")] == lab.rm.told("new")


@EVERY
@pytest.mark.parametrize("ask", [{}, HERE], ids=["anywhere", "required"])
@pytest.mark.parametrize("change", ["ready", "undrained", "resized"])
def test_no_change_of_it_stands_for_its_report(
    topology: TopologyName, ask: dict[str, dict[str, str]], change: str
) -> None:
    lab = restarted(topology)
    lab.ask("k", **ask)
    if change == "ready":
        lab.node("n1", si.ActionFromRM.UPDATE, 4, attributes={"ready": "true"})
    elif change == "undrained":
        lab.node("n1", si.ActionFromRM.DRAIN_NODE)
        lab.node("n1", si.ActionFromRM.DRAIN_TO_SCHEDULABLE)
    else:
        lab.node("n1", si.ActionFromRM.UPDATE, 8)
    lab.settle()
    assert [] == lab.rm.told("new")
    lab.report_node("n1")
    lab.settle()
    assert [("k", "n1")] == lab.rm.told("new")


@EVERY
def test_a_report_that_was_rejected_may_be_repeated(topology: TopologyName) -> None:
    lab = restarted(topology)
    lab.ask("k")
    lab.report_node("n1", vcore=-1)
    lab.settle()
    assert [] == lab.rm.told("new")
    lab.report_node("n1")
    lab.settle()
    assert [("k", "n1")] == lab.rm.told("new")


@EVERY
def test_one_whose_only_report_was_rejected_leaves_in_the_end(topology: TopologyName) -> None:
    lab = restarted(topology)
    lab.report_node("n1", vcore=-1)
    lab.advance(RETURN_S)
    assert {} == lab.state.nodes


@EVERY
def test_it_is_not_kept_for_an_ask_before_its_report(topology: TopologyName) -> None:
    former, lab = full(topology)
    lab.ask("daemon", vcore=4, **HERE)
    lab.settle()
    assert 0 == lab.state.reservation_count
    lab.report_node("n1", of_low(former))
    lab.settle()
    assert 1 == lab.state.reservation_count


@EVERY
def test_nothing_goes_there_for_an_ask_before_its_report(topology: TopologyName) -> None:
    former, lab = full(topology)
    lab.ask("daemon", vcore=4, priority=10, preemption_policy=MAY, **HERE)
    lab.settle()
    assert {} == lab.state.unconfirmed
    lab.report_node("n1", of_low(former))
    lab.settle()
    assert ["low"] == [key for key, _ in lab.rm.told("released")]


@EVERY
def test_a_reservation_of_before_takes_nothing_before_its_report(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.nodes(n1=4)
    former.submit(APP)
    former.ask("low", vcore=4, priority=20)
    former.settle()
    former.ask("daemon", vcore=4, priority=10, preemption_policy=MAY, **HERE)
    former.settle()
    assert (1, {}) == (former.state.reservation_count, former.state.unconfirmed)
    lab = Restarted(former, topology)
    lab.come_back()
    lab.submit(APP)
    lab.ask("daemon", vcore=4, priority=30, preemption_policy=MAY, **HERE)
    lab.settle()
    assert {} == lab.state.unconfirmed
    lab.report_node("n1", of_low(former))
    lab.settle()
    assert ["low"] == [key for key, _ in lab.rm.told("released")]


@EVERY
def test_a_node_is_as_it_was_but_for_that(topology: TopologyName) -> None:
    lab = restarted(topology)
    shown = lab.simulator.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"]
    assert (True, True, False) == (shown["awaited"], shown["ready"], shown["schedulable"])
    lab.report_node("n1")
    shown = lab.simulator.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"]
    assert ("awaited" in shown, shown["schedulable"]) == (False, True)


@EVERY
def test_one_that_was_not_ready_is_as_it_is_reported(topology: TopologyName) -> None:
    former = Lab(topology=topology)
    former.node("n1", si.ActionFromRM.CREATE, 4, attributes={"ready": "false"})
    former.settle()
    lab = Restarted(former, topology)
    lab.come_back()
    lab.node("n1", si.ActionFromRM.CREATE, 4)
    lab.submit(APP)
    lab.ask("k")
    lab.settle()
    assert ({}, ["k"]) == (lab.state.nodes["n1"].attributes, lab.running())


@EVERY
def test_a_core_that_ends_once_more_awaits_it_still(topology: TopologyName) -> None:
    again = Restarted(restarted(topology), topology)
    again.come_back()
    again.submit(APP)
    again.ask("daemon", **HERE)
    again.settle()
    assert [] == again.rm.told("new")
    again.report_node("n1")
    again.settle()
    assert ["daemon"] == again.running()


@EVERY
def test_why_it_waits_names_the_report(topology: TopologyName) -> None:
    lab = restarted(topology)
    lab.ask("daemon", **HERE)
    lab.settle()
    why = str(lab.simulator.explain(APP, "daemon"))
    assert "node n1, which it requires, is not reported since the restart" in why


def swapping(topology: TopologyName, *, crosses: bool, begins_after: bool = False) -> Restarted:
    """A member takes the place of ph-1 on n1, or moves to n2; neither node is reported yet."""
    if begins_after:
        former = gang_lab(topology=topology)
    else:
        former = swapping_lab(crosses=crosses, topology=topology)
    lab = Restarted(former, topology)
    lab.come_back()
    submit_gang(lab, 1)
    ask_members(lab, "real")
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    return lab


def assert_waits(lab: Lab) -> None:
    assert ([], ["real"]) == (lab.rm.told("new"), lab.waiting())
    assert ({}, {}) == (application(lab).swaps, lab.state.owners)
    assert {"n1": 0, "n2": 0, "leaf": 0, "real": 0, "ph": 0} == used(lab)


@EVERY
@SINCE
@ENDS
def test_no_swap_ends_there_before_its_report(
    topology: TopologyName, begins_after: bool, type_: si.TerminationType
) -> None:
    """The placeholder may have ended because its node is gone, so the member finds another."""
    lab = swapping(topology, crosses=False, begins_after=begins_after)
    confirm(lab, "ph-1", type_=type_)
    lab.settle()
    assert_waits(lab)
    lab.report_node("n2")
    lab.settle()
    assert [("real", "n2")] == lab.rm.told("new")
    lab.advance(RETURN_S)
    assert (["n2"], ["real"]) == (list(lab.state.nodes), lab.running())
    assert [] == violations(lab.state)
    assert {} == lab.leftovers()


@EVERY
@ENDS
def test_no_swap_moves_there_before_its_report(
    topology: TopologyName, type_: si.TerminationType
) -> None:
    lab = swapping(topology, crosses=True)
    lab.report_node("n1", report("ph-1", "n1"))
    confirm(lab, "ph-1", type_=type_)
    lab.settle()
    assert [("real", "n1")] == lab.rm.told("new"), "the member takes the room of its placeholder"
    assert {"n1": 1, "n2": 0, "leaf": 1, "real": 1, "ph": 0} == used(lab)
    assert [] == violations(lab.state)
    assert {} == lab.leftovers()


@EVERY
def test_no_swap_moves_there_when_the_node_of_its_placeholder_leaves(
    topology: TopologyName,
) -> None:
    lab = swapping(topology, crosses=True)
    lab.decommission("n1")
    lab.settle()
    assert ([], ["real"], {}) == (lab.rm.told("new"), lab.waiting(), application(lab).swaps)
    lab.report_node("n2")
    lab.settle()
    assert [("real", "n2")] == lab.rm.told("new")
    assert {} == lab.leftovers()


@EVERY
@both_ways
def test_a_swap_goes_on_when_its_node_is_reported(topology: TopologyName, crosses: bool) -> None:
    lab = swapping(topology, crosses=crosses)
    lab.report_node("n1", report("ph-1", "n1"))
    lab.report_node("n2")
    assert [("ph-1", "PLACEHOLDER_REPLACED")] == lab.rm.told("released")
    confirm(lab, "ph-1")
    lab.settle()
    assert [("real", "n2" if crosses else "n1")] == lab.rm.told("new")
    assert {} == lab.leftovers()


@EVERY
@pytest.mark.parametrize("uuid", ["", "u"], ids=["unnamed", "named"])
def test_work_is_reported_before_its_node(topology: TopologyName, uuid: str) -> None:
    """Its resource manager says itself that it runs there; without the node it goes in the end."""
    lab = restarted(topology)
    lab.report(report("k", "n1", uuid=uuid))
    lab.settle()
    assert ([("k", "n1")], ["k"]) == (lab.rm.told("new"), lab.running())
    lab.advance(RETURN_S)
    assert [("k", "STOPPED_BY_RM")] == lab.rm.told("released")
    assert ({}, {}) == (lab.state.nodes, lab.state.owners)


def test_an_announcement_on_a_node_that_is_not_reported_is_found() -> None:
    """Not what was reported there, though."""
    record = RmRecord(RM, was_restored=True)
    told = report("k", "n1", uuid="u")
    record.requested(si.AllocationRequest(rm_id=RM, allocations=(report("k", "n2", uuid="u"),)))
    [fault] = record.notified(si.AllocationResponse(new=(told,)))
    assert fault.endswith("node n1 is none of its own")
    other = RmRecord(RM, was_restored=True)
    other.requested(si.AllocationRequest(rm_id=RM, allocations=(told,)))
    assert [] == other.notified(si.AllocationResponse(new=(told,)))
