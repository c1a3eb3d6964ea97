"""What is Failing while everything of its resource manager goes: no allocation outlives it.

An application is Failing for as long as something of it is not confirmed. When its partition goes
nobody confirms any more: what it holds goes with it, whatever was on its way.
"""

from collections.abc import Callable

import pytest
from confirming import Confirming, confirming_lab, policy
from ganging import TIMEOUT_S, Manager, ask_members, gang_lab
from support import APP, CONFIG, PARTITION, RM, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.applications import ApplicationState

OTHER = CONFIG.replace("name: default, queues: [{name: root", "name: other, queues: [{name: root")
GUARANTEE = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}, "
    "{name: poor, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}}]}]}]"
)
LIMIT_S = 20


def _out_of_time(topology: TopologyName) -> Lab:
    lab = Lab(topology=topology, rm=Manager())
    lab.nodes(n1=10, n2=10)
    lab.submit(APP, execution_timeout_milli_seconds=LIMIT_S * 1000)
    lab.ask("a", "b", "c")
    lab.ask("waits", vcore=99)
    lab.advance(LIMIT_S)
    return lab


def _gang_that_never_came_together(topology: TopologyName) -> Lab:
    """One placeholder had been asked back for a member before."""
    lab = gang_lab(2, expected=3, style="Hard", topology=topology)
    ask_members(lab, "real")
    lab.settle()
    assert lab.state.applications[APP].swaps, "vacuous: no swap is in flight"
    lab.advance(TIMEOUT_S)
    return lab


def _swap_to_another_node(topology: TopologyName) -> Lab:
    lab = gang_lab(2, ("real", "n1"), expected=3, style="Hard", topology=topology)
    ask_members(lab, "real")
    lab.settle()
    assert lab.state.nodes["n2"].incoming, "vacuous: nothing is on its way to the other node"
    lab.advance(TIMEOUT_S)
    return lab


def _victim(topology: TopologyName) -> Lab:
    """A part of it was asked back for somebody else, the rest because its time is up."""
    rm = Confirming(at_once=False)
    lab = confirming_lab(GUARANTEE, topology=topology, rm=rm)
    lab.nodes(n1=4)
    lab.submit(APP, execution_timeout_milli_seconds=LIMIT_S * 1000)
    lab.submit("poor", queue="root.poor")
    lab.ask("r0", "r1", vcore=2)
    lab.settle()
    lab.ask("p", app="poor", vcore=2, preemption_policy=policy())
    lab.advance(2)
    assert 1 == len(rm.outstanding), "vacuous: nothing is on its way out"
    lab.advance(LIMIT_S)
    return lab


SITUATIONS = {
    "its time is up": _out_of_time,
    "a gang with a swap in flight": _gang_that_never_came_together,
    "a gang with a swap to another node": _swap_to_another_node,
    "a victim": _victim,
}


def _unregister(lab: Lab) -> None:
    lab.simulator.unregister_resource_manager(RM)
    lab.settle()
    lab.register(Recorder())


def _register_anew(lab: Lab) -> None:
    lab.register(Recorder())


def _lose(lab: Lab) -> None:
    lab.simulator.resource_manager_lost(RM)
    lab.advance(301)
    assert PARTITION not in lab.context.partitions
    lab.register(Recorder())


def _reload(lab: Lab) -> None:
    expected = {a.uuid for a in lab.state.applications[APP].allocations.values()}
    lab.rm.heard.clear()
    lab.configure(OTHER)
    assert PARTITION not in lab.context.partitions
    assert len(expected) == len([1 for _, type_ in lab.rm.told("released")])
    assert [] == [state for id_, state in lab.rm.told("state") if (id_, state) == (APP, "Failed")]
    lab.configure(CONFIG)


ENDS = {
    "unregistered": _unregister,
    "registered anew": _register_anew,
    "lost past its time": _lose,
    "its partition is described no more": _reload,
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("make", SITUATIONS.values(), ids=SITUATIONS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_everything_of_it_goes(
    end: Callable[[Lab], None], make: Callable[[TopologyName], Lab], topology: TopologyName
) -> None:
    lab = make(topology)
    app = lab.state.applications[APP]
    assert app.state is ApplicationState.FAILING
    assert any(a.releasing for a in app.allocations.values()), "vacuous: all is confirmed"
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", policy_group="others", config=CONFIG)
    lab.simulator.register_resource_manager(request, Recorder())
    end(lab)
    lab.settle()
    assert ({}, {}) == (lab.state.applications, lab.state.nodes)
    assert 0 == lab.state.allocation_count
    assert [] == lab.simulator.callback_errors
    lab.nodes(n1=10)
    lab.submit(APP)
    lab.ask("again")
    lab.settle()
    assert [("again", "n1")] == lab.rm.told("new")[-1:]
