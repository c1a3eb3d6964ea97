"""H-02 to H-05, H-08, H-10, H-15, H-16, H-30, H-31: something happens in the middle of a swap.

The placeholder was asked back, the member is parked, and the resource manager says something else
than the confirmation. Whatever it is, the member is told, waits again, or is gone; never lost.
"""

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import pytest
from ganging import (
    GROUP,
    PREEMPTED,
    REPLACED,
    STOPPED,
    TIMED_OUT,
    Manager,
    application,
    ask_members,
    ask_placeholders,
    assert_swapping,
    both_ways,
    confirm,
    counts,
    gang_lab,
    states,
    swapping_lab,
    told,
    topologies,
    used,
)
from support import APP, Lab, report, settled

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.applications import ApplicationState


@topologies
@both_ways
@pytest.mark.parametrize("type_", [STOPPED, TIMED_OUT, PREEMPTED])
def test_h02_h03_any_end_of_the_placeholder_ends_the_swap(
    topology: TopologyName, crosses: bool, type_: si.TerminationType
) -> None:
    """The pod was deleted, or the answer is of another type; a late confirmation does nothing."""
    lab = swapping_lab(crosses=crosses, topology=topology)
    confirm(lab, "ph-1", type_=type_)
    lab.settle()
    target = "n2" if crosses else "n1"
    assert [("new", target)] == told(lab, "real")
    assert (1, 1, 0) == counts(lab)
    before = settled(lab.state)
    confirm(lab, "ph-1")
    lab.settle()
    assert before == settled(lab.state)
    assert ["real"] == lab.running()
    assert {"n1": 1, "n2": 0, "leaf": 1, "real": 1, "ph": 0} | (
        {"n1": 0, "n2": 1} if crosses else {}
    ) == used(lab)
    assert lab.leftovers() == {}


@topologies
@both_ways
@pytest.mark.parametrize("by", ["ask release", "release"])
def test_h04_the_member_is_cancelled(topology: TopologyName, crosses: bool, by: str) -> None:
    lab = swapping_lab(crosses=crosses, topology=topology)
    if by == "ask release":
        lab.withdraw("real")
    else:
        lab.release("real")
    lab.settle()
    assert {} == application(lab).swaps
    assert {"n1": 1, "n2": 0, "leaf": 1, "real": 0, "ph": 1} == used(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert [] == told(lab, "real")
    assert ([], []) == (lab.running(), lab.waiting())
    assert (1, 0, 1) == counts(lab)
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h05_the_application_is_removed(topology: TopologyName, crosses: bool) -> None:
    lab = swapping_lab(crosses=crosses, topology=topology)
    lab.remove(APP)
    confirm(lab, "ph-1")
    lab.settle()
    assert [] == told(lab, "real")
    assert [("released", "STOPPED_BY_RM")] == told(lab, "ph-1")[2:]
    for node in lab.state.nodes.values():
        assert ({}, 10) == (node.incoming, node.available["vcore"])
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h08_the_completing_time_passes_before_the_confirmation(
    topology: TopologyName, crosses: bool
) -> None:
    """The first member ends while the second one's swap is under way: nothing completes."""
    lab = gang_lab(2, *([("real", "n1")] if crosses else []), topology=topology)
    ask_members(lab, "first")
    lab.settle()
    confirm(lab, "ph-1")
    ask_members(lab, "real")
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    lab.release("first")
    lab.settle()
    assert not any(application(lab).allocated.values()), "vacuous: something real still runs"
    lab.advance(40)
    assert ApplicationState.RUNNING is application(lab).state
    confirm(lab, "ph-2")
    lab.settle()
    assert ["real"] == lab.running()
    lab.release("real")
    lab.advance(40)
    assert ["Running", "Completing", "Completed"] == states(lab)[-3:]
    assert lab.leftovers() == {}


class Flipping(Manager):
    """Says no to a node the first time, and yes from then on."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        reason = super().predicates(args)
        self.denied.discard((args.allocation_key, args.node_id))
        return reason


@topologies
@pytest.mark.parametrize("spare", [0, 10], ids=["no other node", "another node"])
def test_h10_another_node_is_never_the_placeholders_own(topology: TopologyName, spare: int) -> None:
    """The answer about its node turns into a yes while other nodes are looked for."""
    rm = Flipping(("real", "n1"))
    lab = gang_lab(rm=rm, spare=spare, topology=topology)
    ask_members(lab, "real")
    lab.settle()
    asked = [(node, allocate) for key, node, allocate in rm.asked if key == "real"]
    assert ("n1", False) == asked[0], "vacuous: its own node was not asked about first"
    assert set() == rm.denied, "vacuous: the answer did not turn"
    assert ([("n2", True)] if spare else []) == asked[1:]
    if not spare:
        assert ({}, ["real"]) == (application(lab).swaps, lab.waiting())
        lab.submit("any request has it asked again")
        lab.settle()
    assert_swapping(lab, crosses=bool(spare))
    confirm(lab, "ph-1")
    lab.settle()
    assert 1 == used(lab)["n1"] + used(lab)["n2"]
    assert ["real"] == lab.running()
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h15_the_member_is_resized_and_still_fits(topology: TopologyName, crosses: bool) -> None:
    lab = swapping_lab(crosses=crosses, vcore=4, real=1, topology=topology)
    ask_members(lab, "real", vcore=2)
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    assert {"leaf": 4, "real": 0, "ph": 4, "n1": 4, "n2": 2 if crosses else 0} == used(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert (2, 2, 0) == (used(lab)["leaf"], used(lab)["real"], used(lab)["ph"])
    assert {"vcore": 8} == lab.state.nodes["n2" if crosses else "n1"].available
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h15_the_member_grows_beyond_its_placeholder(topology: TopologyName, crosses: bool) -> None:
    lab = swapping_lab(crosses=crosses, vcore=2, real=1, topology=topology)
    ask_members(lab, "real", vcore=5)
    lab.settle()
    assert ({}, ["real"]) == (application(lab).swaps, lab.waiting())
    assert {"n1": 2, "n2": 0, "leaf": 2, "real": 0, "ph": 2} == used(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert ["real"] == lab.running()
    assert (5, 5, 0) == (used(lab)["leaf"], used(lab)["real"], used(lab)["ph"])
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h15_the_member_becomes_a_placeholder(topology: TopologyName, crosses: bool) -> None:
    """It takes nobody's place over any more, although it would fit there."""
    lab = swapping_lab(crosses=crosses, topology=topology)
    ask_placeholders(lab, "real")
    lab.settle()
    assert {} == application(lab).swaps
    confirm(lab, "ph-1")
    lab.settle()
    assert (["real"], []) == (lab.running(), lab.waiting())
    assert (1, 0, 1) == (used(lab)["leaf"], used(lab)["real"], used(lab)["ph"])
    assert lab.leftovers() == {}


@topologies
@both_ways
@pytest.mark.parametrize("size", [3, 1])
def test_h16_the_placeholder_is_resized(topology: TopologyName, crosses: bool, size: int) -> None:
    """It is booked as a placeholder's; one that has become too small ends the swap."""
    lab = swapping_lab(crosses=crosses, vcore=2, real=2, topology=topology)
    lab.report(report("ph-1", "n1", size, task_group_name=GROUP, placeholder=True))
    lab.settle()
    assert (size, 0, size) == (used(lab)["leaf"], used(lab)["real"], used(lab)["ph"])
    assert (size >= 2) == bool(application(lab).swaps)
    confirm(lab, "ph-1")
    lab.settle()
    assert ["real"] == lab.running()
    assert (2, 2, 0) == (used(lab)["leaf"], used(lab)["real"], used(lab)["ph"])
    assert (1, 1, 0) == counts(lab) if size > 1 else (1, 0, 1) == counts(lab)
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("kind", ["unused", "too small", "ordinary"])
def test_h30_a_confirmation_of_a_swap_that_there_is_not(topology: TopologyName, kind: str) -> None:
    """It is taken for a plain release of what there is, and answered by nothing."""
    lab = gang_lab(topology=topology)
    key = "ph-1"
    if kind == "too small":
        ask_members(lab, "real", vcore=5)
    elif kind == "ordinary":
        key = "plain"
        lab.ask(key)
    lab.settle()
    heard = told(lab, key)
    assert ({}, True) == (application(lab).swaps, bool(heard)), "vacuous: there is a swap"
    confirm(lab, key, type_=REPLACED)
    lab.settle()
    assert heard == told(lab, key)
    assert all(item.spec.key != key for item in application(lab).allocations.values())
    assert used(lab)["n1"] + used(lab)["n2"] == used(lab)["leaf"]
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_h31_the_member_is_reported_as_running(topology: TopologyName, crosses: bool) -> None:
    """What runs is true: the swap is undone, the placeholder ends like any other."""
    lab = swapping_lab(crosses=crosses, topology=topology)
    here = "n1" if crosses else "n2"
    lab.report(report("real", here, task_group_name=GROUP))
    lab.settle()
    assert {} == application(lab).swaps
    assert [("new", here)] == told(lab, "real")
    confirm(lab, "ph-1")
    lab.settle()
    assert [("new", here)] == told(lab, "real")
    assert ["real"] == lab.running()
    assert (1, 0, 1) == counts(lab)
    assert (1, 1) == (used(lab)[here], used(lab)["leaf"])
    assert lab.leftovers() == {}


DISTURBANCES: dict[str, Callable[[Lab], None]] = {
    "confirm": lambda lab: confirm(lab, "ph-1"),
    "cancel": lambda lab: lab.withdraw("real"),
    "grow": lambda lab: ask_members(lab, "real", vcore=3),
    "delete": lambda lab: lab.release("ph-1"),
    "decommission": lambda lab: lab.decommission("n1"),
}


@both_ways
def test_any_two_of_these_and_a_late_confirmation(crosses: bool) -> None:
    """All invariants hold throughout; the member runs, or was taken back, and nothing is left."""
    ends: Counter[int] = Counter()
    for words in permutations(DISTURBANCES, 2):
        lab = swapping_lab(crosses=crosses, vcore=2, real=1)
        for word in (*words, "confirm"):
            DISTURBANCES[word](lab)
        lab.settle()
        assert ({}, []) == (application(lab).swaps, lab.waiting())
        ends[lab.running().count("real")] += 1
        assert lab.leftovers() == {}
    assert {0, 1} == set(ends), "vacuous: all orders came to the same end"
