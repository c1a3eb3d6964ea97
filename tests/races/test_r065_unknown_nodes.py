"""R-065: an action on a node that is not known, any more or yet, does nothing but leave a trace."""

import pytest
import ranges
from support import APP, Lab, labs

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.si import ActionFromRM

ON_EXISTING = [
    ActionFromRM.UPDATE,
    ActionFromRM.DRAIN_NODE,
    ActionFromRM.DRAIN_TO_SCHEDULABLE,
    ActionFromRM.DECOMISSION,
    ActionFromRM.UNKNOWN_ACTION_FROM_RM,
]


def _without_refusals(lab: Lab) -> dict[str, object]:
    state = dict(lab.simulator.state_dump()["partitions"]["[rm-1]default"])
    del state["revision"], state["refused_node_actions"]
    return state


@pytest.mark.parametrize("action", ON_EXISTING)
def test_on_a_node_that_never_was(action: ActionFromRM) -> None:
    lab = Lab()
    before = _without_refusals(lab)
    lab.node("ghost", action, 5)
    lab.node("ghost", action, attributes={})
    lab.settle()
    assert before == _without_refusals(lab)
    assert (lab.state.refused_node_actions, lab.rm.told("node")) == (2, [])


@pytest.mark.parametrize("action", ON_EXISTING)
@ranges.seeds(150)
def test_on_a_node_that_has_just_left(action: ActionFromRM, seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a")
        lab.node("n1", ActionFromRM.DECOMISSION)
        lab.node("n1", action, 20)
        lab.settle()
        assert (lab.state.nodes, lab.state.capacity) == ({}, {})
        assert lab.state.refused_node_actions == 1
        assert lab.rm.told("node") == [("n1", "accepted")]
        lost += lab.races.refusals["NODE_GONE"]
    assert lost > 0, "vacuous: no proposal was on its way to the node"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ActionFromRM.DRAIN_NODE, ActionFromRM.DRAIN_NODE),
        (ActionFromRM.DRAIN_TO_SCHEDULABLE, ActionFromRM.DRAIN_TO_SCHEDULABLE),
        (ActionFromRM.UNKNOWN_ACTION_FROM_RM, ActionFromRM.UNKNOWN_ACTION_FROM_RM),
    ],
)
def test_what_makes_no_sense_is_refused(first: ActionFromRM, second: ActionFromRM) -> None:
    lab = Lab()
    lab.nodes(n1=10)
    lab.node("n1", first)
    lab.node("n1", second)
    lab.settle()
    assert lab.state.refused_node_actions in {1, 2}
    assert lab.rm.told("node") == [("n1", "accepted")]


def test_a_second_create_is_told() -> None:
    """Only creates are answered, each of them."""
    lab = Lab()
    create = si.NodeInfo(node_id="n1", action=ActionFromRM.CREATE)
    lab.simulator.update_node(si.NodeRequest(rm_id="rm-1", nodes=(create, create)))
    lab.settle()
    (accepted, refused) = lab.rm.told("node")
    assert accepted == ("n1", "accepted")
    assert refused[1].startswith("failure while adding new node, node rejected with error: \n")


@pytest.mark.parametrize("action", ON_EXISTING)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_in_a_partition_that_is_not_there(action: ActionFromRM, topology: TopologyName) -> None:
    """Nobody is told; an event, a counter and the recording say that it came."""
    lab = Lab(topology=topology)
    elsewhere = {si.constants.NODE_PARTITION: "gpu"}
    lab.node("n1", action, 5, attributes=elsewhere)
    lab.nodes(n2=1)
    lab.settle()
    dump = lab.simulator.state_dump()
    assert (1, 0) == (dump["refused_node_actions"], lab.state.refused_node_actions)
    assert ["n2"] == list(lab.state.nodes)
    assert [("n2", "accepted")] == lab.rm.told("node")
    (record,) = [it for it in lab.simulator.events().records if it.object_id == "n1"]
    assert f"Node action {action.name} refused: unknown partition [rm-1]gpu" == record.message
