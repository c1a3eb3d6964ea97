"""What a handler of Context wrote goes with it: nothing waits for the garbage collector."""

import gc

import pytest
from support import APP, Lab

from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, Work
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_work_and_no_turn_outlives_its_handler(topology: TopologyName) -> None:
    gc.collect()
    gc.disable()
    try:
        lab = Lab(topology=topology)
        lab.nodes(n1=10)
        lab.submit(APP)
        lab.ask("a", "b")
        lab.settle()
        left = [it for it in gc.get_objects() if isinstance(it, Work | UnitOfWork)]
    finally:
        gc.enable()
    assert [] == left
    assert lab.running() == ["a", "b"]
