"""R-063: the last node that offers a type of resource leaves while work of that type is decided.

Then the type is unknown again, which is not a limit of zero: nothing that asks for none of it is
held back, and what asks for some waits for a node that has it.
"""

import ranges
from support import APP, RM, Lab, ask, labs

from yunikorn_actors import si


def _create(lab: Lab, name: str, **amounts: int) -> None:
    info = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of(amounts),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))


def _ask(lab: Lab, key: str, **amounts: int) -> None:
    lab.request(asks=(ask(key, resource_ask=si.Resource.of(amounts)),))


@ranges.seeds(60)
def test_the_type_is_unknown_again(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        _create(lab, "n1", vcore=10)
        _create(lab, "n2", vcore=10, gpu=2)
        lab.settle()
        assert {"vcore": 20, "gpu": 2} == lab.state.capacity
        _ask(lab, "g", vcore=1, gpu=1)
        lab.decommission("n2")
        lab.settle()
        assert {"vcore": 10} == lab.state.capacity
        lost += lab.races.refusals["NODE_GONE"]
        _ask(lab, "none of it", vcore=1, gpu=0)
        lab.settle()
        assert "none of it" in lab.running()
        _create(lab, "n3", gpu=0, vcore=5)
        lab.settle()
        assert {"vcore": 15} == lab.state.capacity
        _ask(lab, "h", gpu=2)
        lab.settle()
        assert "h" in lab.waiting()
        _create(lab, "n4", gpu=4, vcore=1)
        lab.settle()
        assert [] == lab.waiting()
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: nothing was on its way to the node"
