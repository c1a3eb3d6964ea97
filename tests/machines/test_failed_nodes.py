"""Which nodes were refused and have not been registered since: told for the health check."""

from typing import Any

from support import CONFIG, RM, Lab, Recorder

from yunikorn_actors import si


def node(lab: Lab, rm_id: str, name: str, vcore: int) -> None:
    info = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": vcore}),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=rm_id, nodes=(info,)))
    lab.settle()


def failed(lab: Lab) -> Any:
    return lab.simulator.state_dump()["failed_nodes"]


def two_managers() -> Lab:
    lab = Lab()
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=CONFIG)
    lab.simulator.register_resource_manager(request, Recorder())
    return lab


def test_a_node_of_another_resource_manager_is_another_node() -> None:
    lab = two_managers()
    node(lab, "rm-2", "n1", 1)
    node(lab, RM, "n1", -1)
    assert ["n1 of rm-1"] == failed(lab)
    node(lab, "rm-2", "n2", 1)
    node(lab, "rm-2", "n1", 1)
    assert ["n1 of rm-1"] == failed(lab)
    node(lab, RM, "n1", 1)
    assert [] == failed(lab)


def test_a_second_node_of_the_same_name_has_not_failed() -> None:
    lab = two_managers()
    node(lab, RM, "n1", 1)
    node(lab, RM, "n1", 1)
    assert [] == failed(lab)


def test_it_goes_with_its_resource_manager() -> None:
    lab = two_managers()
    node(lab, RM, "bad", -1)
    node(lab, "rm-2", "bad", -1)
    lab.register(Recorder())
    assert ["bad of rm-2"] == failed(lab)
    lab.simulator.unregister_resource_manager("rm-2")
    lab.settle()
    assert [] == failed(lab)
