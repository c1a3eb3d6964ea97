"""R-019, R-034, R-058 to R-060, H-01, H-07: a node leaves, or fills up, around a swap.

The node may be the placeholder's, the one the member moves to, or both; and it may go before the
swap is committed, or while the confirmation is awaited.
"""

import pytest
import ranges
from ganging import (
    PREEMPTED,
    REPLACED,
    application,
    ask_members,
    assert_swapping,
    both_ways,
    confirm,
    counts,
    gang_lab,
    placeholders,
    preempt_for_daemon,
    swapped,
    swapping_lab,
    told,
    topologies,
    used,
)
from support import Lab, report, settled

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName

seeded = ranges.seeds(150)
FOREIGN = {si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}


def _late_confirmation_does_nothing(lab: Lab, key: str = "ph-1") -> None:
    before, heard = settled(lab.state), list(lab.rm.heard)
    confirm(lab, key)
    lab.settle()
    assert (before, heard) == (settled(lab.state), lab.rm.heard)


@topologies
def test_r034_r058_the_node_of_both_leaves(topology: TopologyName) -> None:
    """The member waits again and finds another node, without a placeholder."""
    lab = swapping_lab(crosses=False, topology=topology)
    lab.decommission("n1")
    lab.settle()
    assert [("released", "PLACEHOLDER_REPLACED"), ("released", "STOPPED_BY_RM")] == told(
        lab, "ph-1"
    )[1:]
    assert [("new", "n2")] == told(lab, "real")
    assert (1, 0, 1) == counts(lab)
    _late_confirmation_does_nothing(lab)
    assert ["real"] == lab.running()
    assert {"n2": 1, "leaf": 1, "real": 1, "ph": 0} == used(lab)
    assert lab.leftovers() == {}


@topologies
def test_r059_h01_the_node_that_the_member_moves_to_leaves(topology: TopologyName) -> None:
    """Nothing is told of it; the placeholder stays charged, and its confirmation removes it."""
    lab = swapping_lab(crosses=True, topology=topology)
    heard = list(lab.rm.heard)
    lab.decommission("n2")
    lab.settle()
    assert heard == lab.rm.heard
    assert ({}, ["real"]) == (application(lab).swaps, lab.waiting())
    assert {"n1": 1, "leaf": 1, "real": 0, "ph": 1} == used(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert {"n1": 0, "leaf": 0, "real": 0, "ph": 0} == used(lab)
    assert [] == told(lab, "real"), "vacuous: a node took it before the confirmation"
    lab.nodes(n3=1)
    lab.settle()
    assert [("new", "n3")] == told(lab, "real")
    assert lab.leftovers() == {}


@topologies
def test_r060_h07_the_node_of_the_placeholder_leaves(topology: TopologyName) -> None:
    """The swap ends at once: the member runs where it was to go."""
    lab = swapping_lab(2, crosses=True, topology=topology)
    key = swapped(lab)
    lab.decommission("n1")
    lab.settle()
    assert {("released", "STOPPED_BY_RM")} == {told(lab, ph)[-1] for ph in placeholders(2)}
    assert [("new", "n2")] == told(lab, "real")
    assert (2, 1, 1) == counts(lab)
    assert {"n2": 1, "leaf": 1, "real": 1, "ph": 0} == used(lab)
    _late_confirmation_does_nothing(lab, key)
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_r060_the_node_leaves_with_the_confirmation_on_its_way(
    topology: TopologyName, crosses: bool
) -> None:
    """Both were sent; whichever is taken first ends the swap, the other one finds nothing."""
    for confirmed_first in (False, True):
        lab = swapping_lab(crosses=crosses, topology=topology)
        if confirmed_first:
            confirm(lab, "ph-1")
            lab.decommission("n1")
        else:
            lab.decommission("n1")
            confirm(lab, "ph-1")
        lab.settle()
        ends = told(lab, "real")
        lost = confirmed_first and not crosses
        assert ([("new", "n1"), ("released", "STOPPED_BY_RM")] if lost else [("new", "n2")]) == ends
        assert ([] if lost else ["real"]) == lab.running()
        assert lab.leftovers() == {}


@seeded
def test_r019_the_target_is_filled_while_the_swap_is_proposed(seeds: range) -> None:
    """Foreign work takes the room; the commit refuses, and no placeholder is asked back."""
    refused = 0
    for seed in seeds:
        lab = gang_lab(1, ("real", "n1"), seed=seed)
        ask_members(lab, "real")
        lab.report(report("f", "n2", 10, app="", allocation_tags=FOREIGN))
        lab.settle()
        full = lab.races.refusals["NODE_FULL"]
        if not application(lab).swaps:
            assert [("new", "n1")] == told(lab, "ph-1")
            assert (["real"], {"vcore": 0}) == (lab.waiting(), lab.state.nodes["n2"].available)
            lab.nodes(n3=1)
            lab.settle()
            refused += full
        (swap,) = application(lab).swaps.values()
        confirm(lab, "ph-1")
        lab.settle()
        assert [("new", swap.node_id)] == told(lab, "real")
        lab.release("f", app="")
        assert lab.leftovers() == {}
    assert refused > 0, "vacuous: the target was never filled behind the scheduler's back"


@seeded
@pytest.mark.parametrize("target", [False, True], ids=["its own node", "the other node"])
def test_r034_a_node_leaves_while_the_swap_is_proposed(seeds: range, target: bool) -> None:
    """Refused, or called off: the member finds the node that is left."""
    met = 0
    for seed in seeds:
        lab = gang_lab(1, *([("real", "n1")] if target else []), seed=seed)
        ask_members(lab, "real")
        lab.decommission("n2" if target else "n1")
        lab.settle()
        lost = lab.races.refusals
        met += lost["NODE_GONE"] if target else lost["PLACEHOLDER_GONE"]
        if target:
            lab.nodes(n3=10)
            lab.settle()
        confirm(lab, "ph-1")
        lab.settle()
        assert ["real"] == lab.running()
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no swap was on its way when the node left"


@topologies
@both_ways
def test_h07_the_node_leaves_with_a_swap_and_with_a_victim(
    topology: TopologyName, crosses: bool
) -> None:
    """One of its placeholders is being swapped, the other was preempted: nothing is left of both."""
    lab = swapping_lab(2, crosses=crosses, vcore=5, topology=topology)
    replaced = swapped(lab)
    (victim,) = {*placeholders(2)} - {replaced}
    # A swap to the other node frees its room here, so only a daemon that wants more needs a victim.
    preempt_for_daemon(lab, 10 if crosses else 5)
    lab.settle()
    leaf = application(lab).queue
    assert ("released", "PREEMPTED_BY_SCHEDULER") == told(lab, victim)[-1]
    assert 5 == leaf.preempting["vcore"], "vacuous: nobody is on the way out"
    assert_swapping(lab, crosses=crosses)
    lab.decommission("n1")
    lab.settle()
    assert not any(leaf.preempting.values())
    assert not any(leaf.leaving.values())
    assert {("released", "STOPPED_BY_RM")} == {told(lab, ph)[-1] for ph in placeholders(2)}
    assert [("new", "n2")] == told(lab, "real")
    assert {"n2": 1, "leaf": 1, "real": 1, "ph": 0} == used(lab)
    for key, type_ in ((replaced, REPLACED), (victim, PREEMPTED)):
        before = settled(lab.state)
        confirm(lab, key, type_=type_)
        lab.settle()
        assert before == settled(lab.state)
    assert lab.leftovers() == {}
