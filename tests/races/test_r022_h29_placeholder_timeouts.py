"""R-022 to R-026, R-028, R-029, R-033, H-09, H-21, H-29: the placeholders of a gang time out.

The handler of the timer withdraws placeholders that wait. Those that are allocated are asked back
and stay charged until that is confirmed. A swap that is under way goes on.
"""

from typing import Any

import pytest
import ranges
from ganging import (
    GROUP,
    TIMED_OUT,
    TIMEOUT_S,
    Firings,
    application,
    ask_members,
    ask_placeholders,
    assert_swapping,
    both_ways,
    confirm,
    counts,
    fire_amid,
    gang_lab,
    placeholders,
    states,
    swapped,
    told,
    topologies,
    used,
)
from support import Lab

from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.applications import ApplicationState

styles = pytest.mark.parametrize("style", ["Hard", "Soft"])
LARGE = 50
"""No node holds it."""


def _half_placed(number: int = 1, *, style: str, topology: TopologyName, **made_with: Any) -> Lab:
    """Some stand, `late` finds no node; the gang is incomplete."""
    lab = gang_lab(number, expected=number + LARGE, style=style, topology=topology, **made_with)
    ask_placeholders(lab, "late", vcore=LARGE)
    lab.settle()
    assert (["late"], "Accepted") == (lab.waiting(), application(lab).state), "vacuous: complete"
    return lab


def _used_by_all(lab: Lab) -> int:
    return lab.state.queues["root"].allocated.get("vcore", 0)


@topologies
@styles
def test_r022_half_a_gang_gives_back_what_it_holds(topology: TopologyName, style: str) -> None:
    lab = _half_placed(style=style, topology=topology)
    lab.advance(TIMEOUT_S - 0.001)
    assert [("new", "n1")] == told(lab, "ph-1"), "vacuous: something else ended it"
    lab.advance(0.001)
    assert [("new", "n1"), ("released", "TIMEOUT")] == told(lab, "ph-1")
    assert [("withdrawn", "TIMEOUT")] == told(lab, "late")
    passing, end = ("Failing", "Failed") if style == "Hard" else ("Resuming", "Accepted")
    assert passing == application(lab).state
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert ["Accepted", passing, end] == states(lab)
    assert (0, 0) == (_used_by_all(lab), lab.state.allocation_count)
    assert lab.leftovers() == {}


@topologies
@styles
def test_r023_room_that_comes_too_late(topology: TopologyName, style: str) -> None:
    lab = _half_placed(style=style, topology=topology)
    lab.advance(TIMEOUT_S)
    lab.nodes(n3=LARGE)
    lab.settle()
    assert ("released", "TIMEOUT") == told(lab, "ph-1")[-1], "vacuous: no release is outstanding"
    assert [("withdrawn", "TIMEOUT")] == told(lab, "late")
    assert {} == lab.state.nodes["n3"].allocations
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert [] == lab.running()
    assert lab.leftovers() == {}


@ranges.seeds(150)
def test_r023_room_comes_with_the_timeout(seeds: range) -> None:
    """The node and the firing meet: what is placed just before is asked back as well."""
    placed = withdrawn = 0
    for seed in seeds:
        lab = _half_placed(style="Hard", topology="proposing", seed=seed)
        lab.nodes(n3=LARGE)
        fire_amid(lab, seed % 12)
        lab.settle()
        heard = told(lab, "late")
        assert heard in ([("withdrawn", "TIMEOUT")], [("new", "n3"), ("released", "TIMEOUT")])
        placed += len(heard) == 2
        withdrawn += len(heard) == 1
        confirm(lab, "ph-1", "late", type_=TIMED_OUT)
        lab.settle()
        assert [] == lab.running()
        assert lab.leftovers() == {}
    assert min(placed, withdrawn) > 0, "vacuous: one of them was always first"


@topologies
@styles
def test_r024_r026_r033_the_last_confirmation_decides(topology: TopologyName, style: str) -> None:
    """Confirmations are taken in any state, and nothing is over before the last of them."""
    lab = _half_placed(3, style=style, topology=topology)
    lab.advance(TIMEOUT_S)
    passing = application(lab).state
    for number, key in enumerate(placeholders(3)):
        assert passing is application(lab).state
        assert 3 - number == used(lab)["leaf"], "vacuous: it is not charged any more"
        lab.advance(3600)
        confirm(lab, key, type_=TIMED_OUT)
        lab.settle()
    assert 0 == _used_by_all(lab)
    assert ("Failed" if style == "Hard" else "Accepted") == states(lab)[-1]
    if style == "Soft":
        ask_members(lab, "real")
        lab.settle()
        assert [("new", "n1")] == told(lab, "real")
    assert lab.leftovers() == {}


@topologies
@both_ways
def test_r025_the_timeout_of_a_complete_gang_in_the_middle_of_a_swap(
    topology: TopologyName, crosses: bool
) -> None:
    lab = gang_lab(2, *([("real", "n1")] if crosses else []), topology=topology)
    ask_members(lab, "real")
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    key = swapped(lab)
    (unused,) = set(placeholders(2)) - {key}
    lab.advance(TIMEOUT_S)
    assert ("released", "TIMEOUT") == told(lab, unused)[-1], "vacuous: the timer did not fire"
    assert [("new", "n1"), ("released", "PLACEHOLDER_REPLACED")] == told(lab, key)
    assert_swapping(lab, crosses=crosses)
    confirm(lab, key)
    confirm(lab, unused, type_=TIMED_OUT)
    lab.settle()
    assert ["real"] == lab.running()
    assert (2, 1, 1) == counts(lab)
    assert ApplicationState.RUNNING is application(lab).state
    assert lab.leftovers() == {}


@topologies
def test_r028_the_timeout_of_an_application_that_is_completing(topology: TopologyName) -> None:
    """It is asked back what is left; the state follows when it should, not by that."""
    firings = Firings()
    lab = gang_lab(2, topology=topology, checkers=(firings,))
    ask_members(lab, "real")
    lab.settle()
    key = swapped(lab)
    (unused,) = set(placeholders(2)) - {key}
    confirm(lab, key)
    lab.advance(TIMEOUT_S - 10)
    lab.release("real")
    lab.settle()
    assert ApplicationState.COMPLETING is application(lab).state
    lab.advance(10)
    assert ["placeholder"] == firings.kinds, "vacuous: the gang's timer did not come first"
    assert [("new", "n1"), ("released", "TIMEOUT")] == told(lab, unused)
    assert ApplicationState.COMPLETING is application(lab).state
    lab.advance(3600)
    assert ApplicationState.COMPLETING is application(lab).state
    confirm(lab, unused, type_=TIMED_OUT)
    lab.settle()
    assert ["Running", "Completing", "Completed"] == states(lab)[-3:]
    assert lab.leftovers() == {}


@topologies
def test_r029_the_placeholder_that_waits_is_cancelled(topology: TopologyName) -> None:
    lab = _half_placed(style="Soft", topology=topology)
    lab.withdraw("late")
    lab.settle()
    lab.advance(TIMEOUT_S - 1)
    assert ["Accepted"] == states(lab)
    assert ["ph-1"] == lab.running()
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("asks_first", [False, True])
def test_r030_cancelled_and_released_in_any_order(topology: TopologyName, asks_first: bool) -> None:
    lab = _half_placed(2, style="Soft", topology=topology)
    if asks_first:
        lab.withdraw("late")
    lab.release("ph-1")
    lab.release("ph-2")
    lab.settle()
    if not asks_first:
        assert ApplicationState.ACCEPTED is application(lab).state
        lab.withdraw("late")
        lab.settle()
    assert ["Accepted", "Completing"] == states(lab)
    lab.advance(30)
    assert "Completed" == states(lab)[-1]
    assert lab.leftovers() == {}


@topologies
@styles
@pytest.mark.parametrize("group", ["", GROUP, "unknown"])
def test_h09_an_ordinary_ask_waits_at_the_timeout(
    topology: TopologyName, style: str, group: str
) -> None:
    """The placeholders go; a real ask goes with a failed gang and stays with a resumed one."""
    lab = _half_placed(style=style, topology=topology)
    lab.ask("plain", task_group_name=group)
    lab.settle()
    assert ["late", "plain"] == lab.waiting(), "vacuous: it does not wait"
    lab.advance(TIMEOUT_S)
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert [("withdrawn", "TIMEOUT")] == told(lab, "late")
    heard = [("withdrawn", "TIMEOUT")] if style == "Hard" else [("new", "n1")]
    assert heard == told(lab, "plain")
    assert (2, 0, 2) == counts(lab) if style == "Soft" else lab.state.finished
    assert lab.leftovers() == {}


@topologies
def test_h21_an_ask_for_an_application_that_fails(topology: TopologyName) -> None:
    lab = _half_placed(style="Hard", topology=topology)
    lab.advance(TIMEOUT_S)
    assert ApplicationState.FAILING is application(lab).state, "vacuous: it does not fail"
    lab.ask("k")
    ask_placeholders(lab, "ph-9")
    lab.settle()
    assert ["k", "ph-9"] == [key for key, _ in lab.rm.told("rejected")]
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert ([], "Failed") == (lab.running(), states(lab)[-1])
    assert lab.leftovers() == {}


@topologies
@both_ways
@styles
@pytest.mark.parametrize("as_timeout", [False, True])
def test_h29_the_timeout_of_an_incomplete_gang_in_the_middle_of_a_swap(
    topology: TopologyName, crosses: bool, style: str, as_timeout: bool
) -> None:
    """Its placeholder is asked back once. A hard end takes the member, a soft one lets it swap."""
    denied = [("real", "n1")] if crosses else []
    lab = gang_lab(2, *denied, expected=2 + LARGE, style=style, topology=topology)
    ask_members(lab, "real")
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    key = swapped(lab)
    (unused,) = set(placeholders(2)) - {key}
    ask_placeholders(lab, "late", vcore=LARGE)
    lab.settle()
    assert ApplicationState.ACCEPTED is application(lab).state, "vacuous: the gang is complete"
    lab.advance(TIMEOUT_S)
    assert [("new", "n1"), ("released", "PLACEHOLDER_REPLACED")] == told(lab, key)
    assert ("released", "TIMEOUT") == told(lab, unused)[-1]
    hard = style == "Hard"
    assert ([("withdrawn", "TIMEOUT")] if hard else []) == told(lab, "real")
    assert hard is not bool(application(lab).swaps)
    confirm(lab, unused, type_=TIMED_OUT)
    confirm(lab, key, **({"type_": TIMED_OUT} if as_timeout else {}))
    lab.settle()
    if hard:
        assert ([], "Failed") == (lab.running(), states(lab)[-1])
    else:
        assert [("new", "n2" if crosses else "n1")] == told(lab, "real")
        assert (["real"], "Running") == (lab.running(), states(lab)[-1])
    assert lab.leftovers() == {}
