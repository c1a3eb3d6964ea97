"""R-006 to R-009, R-011, R-012, H-06: each placeholder ends once, replaced or timed out.

What is left of a group decides which member waits for a swap and which is placed plainly, so a
placeholder that is counted twice or not at all keeps somebody waiting for ever.
"""

from collections.abc import Callable

import pytest
from ganging import (
    PREEMPTED,
    TIMED_OUT,
    TIMEOUT_S,
    application,
    ask_members,
    ask_placeholders,
    both_ways,
    confirm,
    counts,
    gang_lab,
    placeholders,
    preempt_for_daemon,
    states,
    swapped,
    swapping_lab,
    told,
    topologies,
    used,
)
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.dump import snapshot


@topologies
@both_ways
def test_r006_replaced_given_up_and_deleted(topology: TopologyName, crosses: bool) -> None:
    """A smaller member, a confirmation without a member, and a placeholder deleted."""
    lab = swapping_lab(3, crosses=crosses, vcore=2, real=1, topology=topology)
    key = swapped(lab)
    assert (3, 0, 0) == counts(lab)
    confirm(lab, key)
    lab.settle()
    assert (3, 1, 0) == counts(lab)
    given_up, deleted = (other for other in placeholders(3) if other != key)
    confirm(lab, given_up)
    lab.settle()
    assert (3, 1, 1) == counts(lab)
    lab.release(deleted)
    lab.settle()
    assert (3, 1, 2) == counts(lab)
    assert ["real"] == lab.running()
    assert lab.leftovers() == {}


def _half_placed(lab: Lab) -> None:
    """Two stand, and the third finds no node."""
    ask_placeholders(lab, "ph-3", vcore=50)
    lab.settle()
    assert ["ph-3"] == lab.waiting(), "vacuous: the gang is not half placed"


@topologies
def test_r007_r009_the_timeout_of_a_gang_that_is_half_placed(topology: TopologyName) -> None:
    """One counts as timed out at once, the others when that is confirmed, which has no echo."""
    lab = gang_lab(2, expected=52, topology=topology)
    _half_placed(lab)
    lab.advance(TIMEOUT_S)
    assert [("withdrawn", "TIMEOUT")] == told(lab, "ph-3")
    assert (3, 0, 1) == counts(lab)
    lab.nodes(n3=100)
    lab.settle()
    assert [("withdrawn", "TIMEOUT")] == told(lab, "ph-3")
    for number, key in enumerate(placeholders(2)):
        confirm(lab, key, type_=TIMED_OUT)
        lab.settle()
        assert (3, 0, 2 + number) == counts(lab)
        assert [("new", "n1"), ("released", "TIMEOUT")] == told(lab, key)
    assert [] == lab.running()
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("type_", [si.TerminationType.STOPPED_BY_RM, PREEMPTED])
def test_r008_a_placeholder_that_is_deleted_holds_nobody_back(
    topology: TopologyName, type_: si.TerminationType
) -> None:
    lab = gang_lab(2, topology=topology)
    confirm(lab, "ph-1", type_=type_)
    lab.settle()
    assert (2, 0, 1) == counts(lab)
    ask_members(lab, "swaps", "plain")
    lab.settle()
    assert ["swaps"] == [swap.key for swap in application(lab).swaps.values()]
    assert ["plain"] == lab.waiting(), "vacuous: the second one did not wait for the swap's end"
    confirm(lab, "ph-2")
    lab.settle()
    assert ["plain", "swaps"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_r011_more_members_than_placeholders(topology: TopologyName) -> None:
    """The one that finds none is placed plainly as soon as the last swap is through."""
    lab = gang_lab(topology=topology)
    ask_members(lab, "real-1", "real-2")
    lab.settle()
    assert (1, ["real-2"]) == (len(application(lab).swaps), lab.waiting())
    confirm(lab, "ph-1")
    lab.settle()
    assert ["real-1", "real-2"] == lab.running()
    assert ["ph-1"] == [key for key, _ in lab.rm.told("released")]
    assert lab.leftovers() == {}


def _preempt(lab: Lab) -> None:
    """An ask that can run there alone needs the room of the newest."""
    preempt_for_daemon(lab, 10)
    lab.settle()
    assert ("released", "PREEMPTED_BY_SCHEDULER") == told(lab, "ph-1")[-1], "vacuous: no victim"
    confirm(lab, "ph-1", type_=PREEMPTED)


LEAVES: dict[str, Callable[[Lab], None]] = {
    "preempted": _preempt,
    "its node leaves": lambda lab: lab.decommission("n1"),
}


@topologies
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_r012_a_member_does_not_wait_for_what_is_gone(
    topology: TopologyName, leaves: Callable[[Lab], None]
) -> None:
    lab = gang_lab(topology=topology)
    leaves(lab)
    lab.settle()
    assert (1, 0, 1) == counts(lab)
    ask_members(lab, "real")
    lab.settle()
    assert [("new", "n2")] == told(lab, "real")
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("number", [1, 3])
def test_h06_r043_an_application_with_placeholders_is_removed(
    topology: TopologyName, number: int
) -> None:
    """What the placeholders used is given back, and nobody looks for members any more."""
    lab = gang_lab(number, topology=topology)
    assert number == used(lab)["leaf"], "vacuous: nothing is used"
    lab.remove(APP)
    lab.settle()
    assert sorted(placeholders(number)) == sorted(key for key, _ in lab.rm.told("released"))
    dump = snapshot(lab.state)
    assert ({}, {}) == (dump["queues"]["root"]["allocated"], dump["users"])
    assert not lab.planner.has_work
    assert not lab.planner.requeue.gangs.looking
    assert not lab.planner.admitter.lapsed
    assert ([], 0) == (lab.running(), lab.state.allocation_count)
    assert ["Accepted", "Running"] == states(lab)
    assert lab.leftovers() == {}
