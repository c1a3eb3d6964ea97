"""R-078: several asks count on room that is on its way, each on its own share of it."""

from collections.abc import Callable

import pytest
import ranges
from confirming import PREEMPTED, Confirming, Victims, confirming_lab, policy
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    "{name: rich}, "
    "{name: poor, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}}]}]}]"
)
PUSHY = {"preemption_policy": policy()}
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


def promised(topology: TopologyName = "proposing", seed: int = 0) -> tuple[Lab, Confirming]:
    """`r0` and `r1` of 3 each go for `p0`, `p1` and `p2` of 2, 1 and 1; nobody is confirmed."""
    rm = Confirming(at_once=False)
    lab = confirming_lab(CONFIG, seed=seed, topology=topology, rm=rm, checkers=(Victims(),))
    lab.nodes(n1=3, n2=3, n3=3)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.ask("r0", "r1", "r2", app="rich", vcore=3)
    lab.settle()
    lab.ask("p0", app="poor", vcore=2, **PUSHY)
    lab.ask("p1", "p2", app="poor", vcore=1, **PUSHY)
    lab.advance(2)
    assert 2 == len(rm.outstanding), "vacuous: so many did not go"
    assert 3 == lab.state.reservation_count, "vacuous: not all of them have a promise"
    return lab, rm


def _promises(lab: Lab) -> dict[str, int]:
    return {
        id_: node.promised["vcore"]
        for id_, node in lab.state.nodes.items()
        if any(node.promised.values())
    }


def _keys(lab: Lab) -> set[str]:
    return {item.spec.key for item in lab.state.applications["poor"].allocations.values()}


def _victims(rm: Confirming) -> list[str]:
    return sorted(key for key, type_ in rm.told("released") if type_ == PREEMPTED.name)


def _confirm_first(rm: Confirming) -> str:
    """Answer the first alone; return the node that this frees."""
    item, *later = rm.outstanding
    rm.outstanding[:] = [item]
    node = rm.lab.state.applications["rich"].allocations[item.uuid].node_id
    rm.confirm_all()
    rm.outstanding[:] = later
    return node


@topologies
def test_the_resource_manager_never_confirms(topology: TopologyName) -> None:
    """Everybody keeps what was promised, and nobody else is told to go, however long it takes."""
    lab, rm = promised(topology)
    before, told = _promises(lab), _victims(rm)
    lab.advance(7_200)
    assert (before, told) == (_promises(lab), _victims(rm))
    assert set() == _keys(lab)
    rm.confirm_all()
    lab.settle()
    assert {"p0", "p1", "p2"} == _keys(lab)
    assert lab.leftovers() == {}


@topologies
def test_the_resource_manager_confirms_one_of_two(topology: TopologyName) -> None:
    """Whoever was promised that room has it; the others wait on."""
    lab, rm = promised(topology)
    freed = _confirm_first(rm)
    lab.settle()
    placed = _keys(lab)
    assert 0 < len(placed) < 3, "vacuous: the other victim made no difference"
    assert freed not in _promises(lab)
    lab.advance(60)
    assert placed == _keys(lab)
    assert 2 == len(_victims(rm)), "others went in vain"
    rm.confirm_all()
    lab.settle()
    assert {"p0", "p1", "p2"} == _keys(lab)
    assert lab.leftovers() == {}


@topologies
def test_the_node_of_a_victim_leaves(topology: TopologyName) -> None:
    """Its promises go with it, and their asks have others go at once; the late word is nothing."""
    lab, rm = promised(topology)
    former = set(_promises(lab))
    lab.decommission("n1" if "n1" in former else "n2")
    lab.settle()
    assert 3 == lab.state.reservation_count
    assert 3 == len(_victims(rm)), "vacuous: nobody lost a promise"
    assert former != set(_promises(lab))
    rm.confirm_all()
    lab.settle()
    assert {"p0", "p1", "p2"} == _keys(lab)
    assert lab.leftovers() == {}


@topologies
def test_a_promise_that_was_given_up_serves_the_next(topology: TopologyName) -> None:
    """The ask is cancelled; its room is on its way all the same, and nobody goes for another."""
    lab, rm = promised(topology)
    lab.withdraw("p0", app="poor")
    lab.settle()
    assert 2 == lab.state.reservation_count, "vacuous: it had no promise"
    lab.ask("p3", app="poor", vcore=2, **PUSHY)
    lab.advance(2)
    assert 3 == lab.state.reservation_count
    assert 2 == len(_victims(rm)), "somebody went in vain"
    rm.confirm_all()
    lab.settle()
    assert {"p1", "p2", "p3"} == _keys(lab)
    assert lab.leftovers() == {}


def _grow(lab: Lab) -> None:
    lab.ask("p1", app="poor", vcore=2, **PUSHY)


def _shrink(lab: Lab) -> None:
    lab.ask("p0", app="poor", vcore=1, **PUSHY)


@topologies
@pytest.mark.parametrize(
    ("send_again", "expected"), [(_grow, {"p0", "p1"}), (_shrink, {"p0", "p1", "p2"})]
)
def test_an_ask_is_sent_again_with_another_size(
    send_again: Callable[[Lab], None], expected: set[str], topology: TopologyName
) -> None:
    """It loses its promise and is looked at anew, within the guarantee, and nobody goes in vain."""
    lab, rm = promised(topology)
    if send_again is _grow:
        lab.withdraw("p2", app="poor")
    send_again(lab)
    lab.settle()
    lab.advance(20)
    assert len(expected) == lab.state.reservation_count
    assert 2 == len(_victims(rm)), "somebody went in vain"
    rm.confirm_all()
    lab.settle()
    assert expected == _keys(lab)
    assert lab.leftovers() == {}


@topologies
def test_the_guarantee_is_lowered_while_victims_go(topology: TopologyName) -> None:
    """They were told and go, so what was promised is kept; nobody goes for anybody else."""
    lab, rm = promised(topology)
    before = _promises(lab)
    lab.configure(CONFIG.replace("4m", "1m"))
    lab.ask("p3", app="poor", vcore=1, **PUSHY)
    lab.advance(60)
    assert before == _promises(lab)
    assert 2 == len(_victims(rm))
    rm.confirm_all()
    lab.settle()
    assert {"p0", "p1", "p2"} <= _keys(lab)
    assert lab.leftovers() == {}


def _occupy(lab: Lab, name: str) -> None:
    """Foreign work takes all that is free."""
    node = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.UPDATE,
        occupied_resource=si.Resource.of({"vcore": 1}),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))


@topologies
def test_foreign_work_takes_room_that_was_promised(topology: TopologyName) -> None:
    """As much as is left keeps its promise; whoever lost it finds room at once, or waits."""
    lab, rm = promised(topology)
    full = next(name for name, size in _promises(lab).items() if size == 3)
    _occupy(lab, full)
    lab.settle()
    assert 2 == _promises(lab)[full], "vacuous: nothing was taken"
    assert 3 == lab.state.reservation_count
    assert 2 == len(_victims(rm)), "the other victim had room to spare"
    rm.confirm_all()
    lab.settle()
    assert {"p0", "p1", "p2"} == _keys(lab)
    assert lab.leftovers() == {}


@ranges.seeds(199)
def test_a_decision_that_counts_on_another_which_is_refused(seeds: range) -> None:
    """The first victim's time is up meanwhile: nobody keeps a promise of what it would leave."""
    lost = 0
    for seed in seeds:
        rm = Confirming(at_once=False)
        lab = confirming_lab(CONFIG, seed=seed, rm=rm)
        lab.nodes(n1=4)
        lab.submit("rich", queue="root.rich")
        lab.submit("poor", queue="root.poor")
        lab.settle()
        lab.ask("r0", app="rich", vcore=4, execution_timeout_milli_seconds=1_000)
        lab.settle()
        lab.ask("p0", "p1", app="poor", vcore=2, **PUSHY)
        lab.let_timers_fire(1)
        lab.settle()
        lab.advance(1)
        assert 1 == len(list(rm.told("released"))), f"seed {seed}: asked back twice"
        lost += lab.races.refusals["VICTIM_GONE"]
        rm.confirm_all()
        lab.settle()
        assert {"p0", "p1"} == _keys(lab)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no victim was lost to its timeout"


@ranges.seeds(199)
def test_an_ask_is_cancelled_while_the_decision_for_it_is_on_its_way(seeds: range) -> None:
    """The other one's decision stands by itself, or is made anew; nothing is promised to nobody."""
    crossed = 0
    for seed in seeds:
        rm = Confirming(at_once=False)
        lab = confirming_lab(CONFIG, seed=seed, rm=rm)
        lab.nodes(n1=4)
        lab.submit("rich", queue="root.rich")
        lab.submit("poor", queue="root.poor")
        lab.settle()
        lab.ask("r0", "r1", app="rich", vcore=2)
        lab.settle()
        lab.ask("p0", "p1", app="poor", vcore=1, **PUSHY)
        lab.let_timers_fire(1)
        lab.withdraw("p0", app="poor")
        lab.settle()
        lab.advance(2)
        crossed += lab.races.refusals["ASK_GONE"]
        assert {"n1": 1} == _promises(lab), f"seed {seed}"
        rm.confirm_all()
        lab.settle()
        assert {"p1"} == _keys(lab)
        assert lab.leftovers() == {}
    assert crossed > 0, "vacuous: the decision was never on its way"
