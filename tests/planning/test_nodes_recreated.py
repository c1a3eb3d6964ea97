"""A node leaves and comes back under its name: entries of its two lives never meet."""

import pytest
import ranges
from support import APP, CONFIG, Lab, labs

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

BINPACKING = (
    "partitions: [{name: default, nodesortpolicy: {type: binpacking}, "
    "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)
ALL_MAY_BE_KEPT = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
    "properties: {reservation.max.nodes.percent: '100'}, queues: [{name: default}]}]}]"
)
CLUSTERS = pytest.mark.parametrize(
    ("config", "number"), [(ALL_MAY_BE_KEPT, 6), (CONFIG, 80)], ids=["6", "80"]
)
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


def test_a_node_comes_back_under_its_name() -> None:
    lab = Lab(config=BINPACKING)
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.decommission("n1")
    lab.nodes(n1=10)
    lab.ask("b")
    lab.settle()
    assert lab.running() == ["b"]


def _busy(lab: Lab, *names: str) -> None:
    """Three of four cpus are taken."""
    for name in names:
        taken = si.Resource.of({"vcore": 3})
        lab.node(name, si.ActionFromRM.CREATE, 4, occupied_resource=taken)


def _one_is_kept(config: str, number: int, topology: TopologyName) -> Lab:
    """All nodes are equal, the first is kept for an ask, the second would be next."""
    lab = Lab(config=config, topology=topology)
    _busy(lab, *(f"n{index:02}" for index in range(number)))
    lab.submit(APP)
    lab.ask("first", vcore=4)
    lab.advance(3)
    assert ["n00"] == _kept(lab)
    return lab


def _kept(lab: Lab) -> list[str]:
    return [node.id for node in lab.state.nodes.values() if node.reservations]


@CLUSTERS
@topologies
def test_the_next_to_be_kept_comes_back(config: str, number: int, topology: TopologyName) -> None:
    lab = _one_is_kept(config, number, topology)
    lab.decommission("n01")
    _busy(lab, "n01")
    lab.ask("second", vcore=4)
    lab.advance(3)
    assert ["n00", "n01"] == sorted(_kept(lab))


@CLUSTERS
@topologies
def test_a_node_that_has_gone_is_not_kept(config: str, number: int, topology: TopologyName) -> None:
    """Nobody proposes it, so nobody has to refuse it."""
    lab = _one_is_kept(config, number, topology)
    lab.decommission("n01")
    lab.ask("second", vcore=4)
    lab.advance(3)
    assert ["n00", "n02"] == _kept(lab)
    assert {} == lab.races.refusals


@ranges.seeds(40)
def test_it_comes_back_while_its_reservation_is_on_its_way(seeds: range) -> None:
    """The reservation holds for the second life, which is as free as any when it ends."""
    met = 0
    for lab in labs(seeds):
        _busy(lab, "n1")
        lab.submit(APP)
        lab.ask("large", vcore=4)
        lab.let_timers_fire(3)
        while not lab.planner.reserver.in_flight:
            assert lab.simulator.step()
        lab.decommission("n1")
        _busy(lab, "n1")
        lab.settle()
        met += bool(_kept(lab)) and not lab.races.refusals
        lab.withdraw("large")
        lab.ask("small")
        lab.settle()
        assert ["small"] == lab.running()
    assert met > 0, "vacuous: no reservation for the first life met the second"
