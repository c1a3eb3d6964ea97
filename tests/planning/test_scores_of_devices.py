"""Node scores for shared devices, and the devices that a policy chooses."""

import pytest
from devices import free_on, gpu_ask, gpu_node, placed
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.policies import Policies
from yunikorn_actors.policies.fgd import Fgd, Kind, typical
from yunikorn_actors.policies.places import NodeScore
from yunikorn_actors.policies.shipped import BestFit
from yunikorn_actors.values.devices import Devices


def scored(policy: NodeScore) -> Lab:
    """The planner of the one partition has this policy for its nodes."""
    lab = Lab(topology="fused")
    model = lab.planner.model
    model.deciders._policies = Policies({"mine": lambda: policy})
    model.nodes.own, model.nodes.own_devices = model.deciders.of_nodes("mine")
    return lab


def test_fragments_decide_the_node_and_the_device() -> None:
    """Asks for whole devices are typical, so what is broken is filled up first."""
    lab = scored(Fgd(typical([Kind(1, 1000)])))
    gpu_node(lab, "n1", 2)
    gpu_node(lab, "n2", 2)
    lab.submit(APP)
    lab.settle()
    lab.report(
        si.Allocation(
            allocation_key="r",
            application_id=APP,
            node_id="n2",
            resource_per_alloc=si.Resource.of({"vcore": 1, "gpu": 300}),
            allocation_tags={si.constants.GPU_DEVICES: "1"},
        )
    )
    gpu_ask(lab, "a", gpu=300)
    lab.settle()
    assert ("n2", (1,)) == placed(lab)["a"]
    gpu_ask(lab, "b", gpu=500)
    lab.settle()
    assert ("n1", (0,)) == placed(lab)["b"]
    assert [500, 1000] == free_on(lab, "n1")


def test_best_fit_takes_the_node_with_the_least_left() -> None:
    lab = scored(BestFit(vcore=100, gpu=8000))
    gpu_node(lab, "n1", 8)
    gpu_node(lab, "n2", 1)
    lab.submit(APP)
    gpu_ask(lab, "a", "b", gpu=500)
    gpu_ask(lab, "c", gpu=1000)
    lab.settle()
    assert {"a": ("n2", (0,)), "b": ("n2", (0,)), "c": ("n1", (0,))} == placed(lab)


def test_devices_that_a_policy_makes_up_are_not_taken() -> None:
    class Wild(BestFit):
        def devices(self, *_: object) -> Devices | None:
            return (7, 7)

    lab = scored(Wild())
    gpu_node(lab, "n1", 2)
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=500)
    lab.settle()
    assert {"a": ("n1", (0,))} == placed(lab)


def test_typical_kinds_make_up_most_of_a_workload() -> None:
    """Of two that are as frequent the larger counts; what is beyond 95 of 100 does not."""
    kinds = [Kind(1, 500)] * 60 + [Kind(2, 0)] * 20 + [Kind(3, 0)] * 15 + [Kind(9, 9)] * 5
    found = typical(kinds)
    assert found == pytest.approx({Kind(1, 500): 60 / 95, Kind(2, 0): 20 / 95, Kind(3, 0): 15 / 95})
    assert [Kind(2, 5), Kind(1, 900)] == list(typical([Kind(1, 900), Kind(2, 5)]))


def test_shares_are_divided_as_the_authors_divide_them() -> None:
    """Of the whole workload first: the last bit decides between nodes that are as good."""
    found = typical([Kind(1, 500)] * 60 + [Kind(2, 0)] * 20 + [Kind(3, 0)] * 15 + [Kind(9, 9)] * 5)
    assert {0.6 / 0.95, 0.2 / 0.95, 0.15 / 0.95} == set(found.values())
    assert 0.2 / 0.95 != 20 / 95


CONFIG = (
    "partitions: [{name: default, nodesortpolicy: {type: best-fit}, "
    "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)


def test_a_partition_may_sort_its_nodes_by_best_fit() -> None:
    lab = Lab(config=CONFIG)
    gpu_node(lab, "n1", 8)
    gpu_node(lab, "n2", 1)
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=500)
    lab.settle()
    assert ("n2", (0,)) == placed(lab)["a"]
    lab.configure(CONFIG.replace("best-fit", "fair"))
    gpu_ask(lab, "b", gpu=500)
    lab.settle()
    assert ("n1", (0,)) == placed(lab)["b"]
