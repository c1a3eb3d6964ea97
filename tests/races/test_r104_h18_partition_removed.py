"""R-104, H-18: a configuration without the partition, while decisions for it are on their way.

The partition goes as a whole, its scheduler too; described again it is another life, with one
scheduler, and nothing of the former one reaches it.
"""

import pytest
import ranges
from support import APP, CONFIG, PARTITION, Lab

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

OTHER = CONFIG.replace("name: default, queues: [{name: root", "name: other, queues: [{name: root")


def _schedulers(lab: Lab) -> list[str]:
    return [address for address in lab.simulator.machines if address.startswith("scheduler:")]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@ranges.seeds(60)
def test_removed_and_described_again(topology: TopologyName, seeds: range) -> None:
    stale = 0
    for seed in seeds:
        lab = Lab(seed=seed, topology=topology)
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        lab.release("a")
        lab.let_timers_fire(30)
        lab.ask("b", "c")
        for _ in range(seed % 8):
            lab.simulator.step()
        lab.configure(OTHER)
        assert ["[rm-1]other"] == list(lab.context.partitions)
        lab.configure(CONFIG)
        lab.settle()
        assert [PARTITION] == list(lab.context.partitions)
        assert len(_schedulers(lab)) == (topology == "proposing")
        assert ({}, {}) == (lab.state.applications, lab.state.nodes)
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("b")
        lab.settle()
        assert lab.running() == ["b"]
        stale += lab.stale_messages
        assert lab.leftovers() == {}
    assert stale > 0, "vacuous: nothing of the removed partition came late"


def test_removed_twice_and_kept_away() -> None:
    """What is still said about it is answered, one by one."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.configure(OTHER)
    lab.configure(OTHER)
    assert [("a", "STOPPED_BY_RM")] == lab.rm.told("released")
    lab.rm.heard.clear()
    lab.submit("app-2")
    lab.ask("b", app="app-2")
    lab.nodes(n2=10)
    lab.release("a")
    lab.remove(APP)
    lab.settle()
    kinds = [(kind, id_) for kind, id_, _ in lab.rm.heard]
    assert sorted([("application", "app-2"), ("rejected", "b"), ("node", "n2")]) == sorted(kinds)
