"""H-07, H-23, H-32: what becomes of a victim before its end is confirmed."""

from collections.abc import Callable

import pytest
import ranges
from confirming import PREEMPTED, Confirming, Victims, confirming_lab, policy
from support import Lab, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    "{name: rich}, "
    "{name: poor, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}}]}]}]"
)
PUSHY = {"preemption_policy": policy()}
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


def preempting(topology: TopologyName = "proposing", seed: int = 0) -> tuple[Lab, Confirming]:
    """`r1` was asked back for `p`; the resource manager has not answered yet."""
    rm = Confirming(at_once=False)
    lab = confirming_lab(CONFIG, seed=seed, topology=topology, rm=rm, checkers=(Victims(),))
    lab.nodes(n1=4, n2=1)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.ask("r0", app="rich", vcore=2)
    lab.settle()
    lab.ask("r1", app="rich", vcore=2)
    lab.settle()
    lab.ask("p", app="poor", vcore=2, **PUSHY)
    lab.advance(2)
    assert ["r1"] == [item.allocation_key for item in rm.outstanding]
    assert {"vcore": 2} == _positive(lab, "preempting"), "vacuous: nothing is on its way out"
    assert {"vcore": 2} == _positive(lab, "leaving")
    return lab, rm


def _positive(lab: Lab, book: str) -> dict[str, int]:
    amounts = getattr(lab.state.queues["root.rich"], book)
    return {kind: quantity for kind, quantity in amounts.items() if quantity}


def _end_by_itself(lab: Lab) -> None:
    lab.release("r1", app="rich", termination_type=si.TerminationType.STOPPED_BY_RM)


def _end_with_another_type(lab: Lab) -> None:
    lab.release("r1", app="rich", termination_type=si.TerminationType.TIMEOUT)


def _lose_its_application(lab: Lab) -> None:
    lab.remove("rich")


def _lose_its_node(lab: Lab) -> None:
    lab.decommission("n1")
    lab.nodes(n3=2)


ENDS = {
    "by itself": _end_by_itself,
    "with another type": _end_with_another_type,
    "with its application": _lose_its_application,
    "with its node": _lose_its_node,
}


@topologies
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_victim_ends_in_another_way(end: Callable[[Lab], None], topology: TopologyName) -> None:
    """Marks and amounts go with it, the ask gets its room, and the late word does nothing."""
    lab, rm = preempting(topology)
    end(lab)
    lab.settle()
    assert {} == _positive(lab, "preempting") == _positive(lab, "leaving")
    assert "p" in _keys(lab)
    before = lab.state.revision
    rm.confirm_all()
    lab.settle()
    assert before == lab.state.revision
    assert 1 == len([key for key, type_ in rm.told("released") if type_ == PREEMPTED.name])
    assert lab.leftovers() == {}


def _keys(lab: Lab) -> list[str]:
    apps = lab.state.applications.values()
    return sorted(item.spec.key for app in apps for item in app.allocations.values())


def _withdraw(lab: Lab) -> None:
    lab.withdraw("p", app="poor")


def _remove(lab: Lab) -> None:
    lab.remove("poor")


def _place_elsewhere(lab: Lab) -> None:
    lab.nodes(n3=2)


GONE = {"withdrawn": _withdraw, "removed": _remove, "placed elsewhere": _place_elsewhere}


@topologies
@pytest.mark.parametrize("leave", GONE.values(), ids=GONE)
def test_the_ask_needs_the_room_no_more(
    leave: Callable[[Lab], None], topology: TopologyName
) -> None:
    """Its reservation and its claim go at once; the victim was told and goes all the same."""
    lab, rm = preempting(topology)
    leave(lab)
    lab.settle()
    assert {} == lab.state.nodes["n1"].reservations
    assert not any(lab.state.root.earmarked.values())
    assert {"vcore": 2} == _positive(lab, "preempting")
    rm.confirm_all()
    lab.settle()
    assert {} == _positive(lab, "preempting")
    assert {"vcore": 2} == lab.state.nodes["n1"].allocated
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("size", [1, 3])
def test_h32_a_victim_is_resized(size: int, topology: TopologyName) -> None:
    lab, rm = preempting(topology)
    uuid = rm.outstanding[0].uuid
    lab.report(report("r1", "n1", size, app="rich", uuid=uuid))
    lab.settle()
    assert {"vcore": size} == _positive(lab, "preempting") == _positive(lab, "leaving")
    rm.confirm_all()
    lab.settle()
    assert {} == _positive(lab, "preempting")
    assert "p" in _keys(lab)
    assert lab.leftovers() == {}


@ranges.seeds(299)
def test_h23_a_victim_that_is_asked_back_meanwhile(seeds: range) -> None:
    """Its time is up while the decision is on its way: all of that is refused, nothing is told."""
    lost = 0
    for seed in seeds:
        rm = Confirming(at_once=False)
        lab = confirming_lab(CONFIG, seed=seed, rm=rm)
        lab.nodes(n1=4)
        lab.submit("rich", queue="root.rich")
        lab.submit("poor", queue="root.poor")
        lab.settle()
        lab.ask("r0", "r1", app="rich", vcore=2, execution_timeout_milli_seconds=1_000)
        lab.ask("p", app="poor", vcore=3, **PUSHY)
        lab.let_timers_fire(1)
        lab.settle()
        lab.advance(1)
        types = [(key, type_) for key, type_ in rm.told("released")]
        assert len(types) == len({key for key, _ in types}), f"seed {seed}: asked back twice"
        lost += lab.races.refusals["VICTIM_GONE"]
        rm.confirm_all()
        lab.settle()
        assert "p" in _keys(lab)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no victim was lost to its timeout"


def test_h07_a_placeholder_that_was_preempted_leaves_with_its_node() -> None:
    """Nothing stays behind of it: it was counted as on its way out, and goes with the node."""
    lab, rm = preempting()
    lab.decommission("n1")
    lab.settle()
    assert {} == _positive(lab, "preempting")
    assert rm.outstanding, "vacuous: it was confirmed before"
    rm.confirm_all()
    lab.settle()
    assert {} == _positive(lab, "leaving")


@topologies
def test_a_node_is_not_kept_for_ever_for_an_ask_that_has_lost_its_quota(
    topology: TopologyName,
) -> None:
    """Its room was made when its maximum was lowered; after an hour others may have the node."""
    lab, rm = preempting(topology)
    lab.configure(CONFIG.replace("{guaranteed: {vcore: 4m}}", "{max: {vcore: 1m}}"))
    rm.confirm_all()
    lab.settle()
    assert ["p"] == lab.waiting()
    assert [("poor", "p")] == list(lab.state.nodes["n1"].reservations)
    lab.advance(3_590)
    assert [("poor", "p")] == list(lab.state.nodes["n1"].reservations)
    lab.advance(20)
    assert {} == lab.state.nodes["n1"].reservations
    assert lab.leftovers() == {}
