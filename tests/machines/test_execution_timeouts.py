"""The time of an application runs from its first run on, whatever becomes of it meanwhile."""

import pytest
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.applications import ApplicationState

LIMIT_MS = 20_000
"""Less than an application stays in Completing."""


def completing(topology: TopologyName) -> Lab:
    lab = Lab(topology=topology)
    lab.nodes(n1=10)
    lab.submit(APP, execution_timeout_milli_seconds=LIMIT_MS)
    lab.ask("a")
    lab.advance(1)
    lab.release("a")
    lab.settle()
    assert lab.state.applications[APP].state is ApplicationState.COMPLETING
    return lab


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_time_that_is_up_while_completing_is_up_for_who_comes_back(topology: TopologyName) -> None:
    lab = completing(topology)
    lab.advance(21)
    assert lab.state.applications[APP].state is ApplicationState.COMPLETING
    lab.ask("b", "c", vcore=6)
    lab.settle()
    assert ("b", "n1") in lab.rm.told("new")
    lab.advance(0)
    assert lab.state.applications[APP].state is ApplicationState.FAILING
    assert ("b", "TIMEOUT") in lab.rm.told("released")
    assert [] == lab.waiting()
    lab.release("b", termination_type=si.TerminationType.TIMEOUT)
    lab.settle()
    assert APP not in lab.state.applications
    assert lab.leftovers() == {}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_who_comes_back_in_time_has_the_rest_of_it(topology: TopologyName) -> None:
    lab = completing(topology)
    lab.advance(10)
    lab.ask("b")
    lab.advance(8)
    assert lab.state.applications[APP].state is ApplicationState.RUNNING
    lab.advance(2)
    assert lab.state.applications[APP].state is ApplicationState.FAILING


def test_one_that_does_not_come_back_completes() -> None:
    lab = completing("proposing")
    lab.advance(31)
    assert [(APP, "Completed")] == lab.rm.told("state")[-1:]
    assert lab.leftovers() == {}
