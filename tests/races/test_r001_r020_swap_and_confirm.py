"""R-001 to R-005, R-018, R-020: a swap runs its course, and the confirmation comes.

From the moment the placeholder is asked back the member is parked: neither pending nor allocated.
The confirmation moves everything in one step.
"""

import pytest
from ganging import (
    GROUP,
    REPLACED,
    STOPPED,
    TIMED_OUT,
    Manager,
    application,
    ask_members,
    assert_swapping,
    both_ways,
    confirm,
    counts,
    gang_lab,
    states,
    submit_gang,
    swapping_lab,
    told,
    topologies,
    used,
)
from support import Lab, report, settled

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.applications import ApplicationState


@topologies
@both_ways
@pytest.mark.parametrize("again", [REPLACED, STOPPED, TIMED_OUT])
def test_r001_the_second_confirmation_does_nothing(
    topology: TopologyName, crosses: bool, again: si.TerminationType
) -> None:
    lab = swapping_lab(crosses=crosses, topology=topology)
    confirm(lab, "ph-1")
    lab.settle()
    assert ["real"] == lab.running(), "vacuous: the first confirmation ended no swap"
    before, heard = settled(lab.state), list(lab.rm.heard)
    confirm(lab, "ph-1", type_=again)
    lab.settle()
    assert (before, heard) == (settled(lab.state), lab.rm.heard)
    assert lab.leftovers() == {}


@topologies
def test_r002_a_larger_member_waits_until_its_placeholder_is_gone(topology: TopologyName) -> None:
    lab = gang_lab(vcore=2, topology=topology)
    ask_members(lab, "real", vcore=5)
    lab.settle()
    assert [("new", "n1"), ("released", "TIMEOUT")] == told(lab, "ph-1")
    assert ({}, ["real"]) == (application(lab).swaps, lab.waiting())
    assert [] == told(lab, "real"), "vacuous: the member did not wait for the placeholder's end"
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert ["real"] == lab.running()
    assert (1, 0, 1) == counts(lab)
    assert (5, 5) == (used(lab)["leaf"], used(lab)["n1"] + used(lab)["n2"])
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_r002_r003_what_a_smaller_member_leaves_is_given_back(
    topology: TopologyName, crosses: bool
) -> None:
    """Until the confirmation everything is charged with the placeholder's size."""
    lab = swapping_lab(crosses=crosses, vcore=4, real=1, topology=topology)
    on_n2 = 1 if crosses else 0
    assert {"n1": 4, "n2": on_n2, "leaf": 4, "real": 0, "ph": 4} == used(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert {"n1": 1 - on_n2, "n2": on_n2, "leaf": 1, "real": 1, "ph": 0} == used(lab)
    for node in lab.state.nodes.values():
        assert 10 == node.allocated.get("vcore", 0) + node.available["vcore"]
    assert {"vcore": 1} == lab.state.users["bob"]["root.default"].amounts
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_r004_a_gang_of_one_never_completes_by_its_swap(
    topology: TopologyName, crosses: bool
) -> None:
    lab = swapping_lab(crosses=crosses, topology=topology)
    app = application(lab)
    assert not any(app.pending.values()), "vacuous: something waits beside the parked member"
    assert not any(app.allocated.values()), "vacuous: something real runs beside the swap"
    confirm(lab, "ph-1")
    lab.settle()
    lab.advance(40)
    assert ["Accepted", "Running"] == states(lab)
    assert ["real"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_r005_the_first_swap_after_a_recovery(topology: TopologyName) -> None:
    """A placeholder that was never asked for counts in its group like any other."""
    lab = Lab(rm=Manager(), topology=topology)
    submit_gang(lab, 1)
    standing = report("ph-1", "", task_group_name=GROUP, placeholder=True)
    lab.node("n1", si.ActionFromRM.CREATE, 10, existing_allocations=(standing,))
    lab.settle()
    assert (1, 0, 0) == counts(lab)
    assert [] == told(lab, "ph-1"), "vacuous: it was announced, so it was not recovered"
    ask_members(lab, "real")
    lab.settle()
    assert_swapping(lab, crosses=False)
    confirm(lab, "ph-1")
    lab.settle()
    assert (1, 1, 0) == counts(lab)
    assert ApplicationState.RUNNING is application(lab).state
    assert [("new", "n1")] == told(lab, "real")
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_r018_one_way_and_one_order_of_telling(topology: TopologyName, crosses: bool) -> None:
    """The member is told once, after its placeholder was asked back and confirmed."""
    lab = swapping_lab(crosses=crosses, topology=topology)
    assert ("released", "ph-1", "PLACEHOLDER_REPLACED") == lab.rm.heard[-1]
    confirm(lab, "ph-1")
    lab.settle()
    target = "n2" if crosses else "n1"
    assert [("released", "PLACEHOLDER_REPLACED")] == told(lab, "ph-1")[1:]
    assert [("new", target)] == told(lab, "real")
    assert ("new", "real", target) == lab.rm.heard[-1]


@topologies
@both_ways
def test_r020_only_the_nodes_hold_more_while_a_swap_is_under_way(
    topology: TopologyName, crosses: bool
) -> None:
    lab = swapping_lab(crosses=crosses, topology=topology)
    books = used(lab)
    more = books["n1"] + books["n2"] - books["leaf"]
    assert (1 if crosses else 0) == more
    confirm(lab, "ph-1")
    lab.settle()
    books = used(lab)
    assert books["n1"] + books["n2"] == books["leaf"] == 1
    assert lab.leftovers() == {}
