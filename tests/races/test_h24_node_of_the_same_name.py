"""H-24 for nodes: one leaves and another of its name comes while decisions for it are on their way.

A decision names the node by its id, so the next node of that name may serve it. Then it is charged
to that one in every view, and what the former one held is nowhere.
"""

import ranges
from support import APP, Lab, labs

seeded = ranges.seeds(150, usual=50)


def _again(lab: Lab, vcore: int) -> None:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("a", "b", vcore=4)
    while not lab.keys_in_flight():
        assert lab.simulator.step()
    lab.decommission("n1")
    lab.nodes(n1=vcore)
    lab.settle()


@seeded
def test_the_next_node_serves_the_decision(seeds: range) -> None:
    served = 0
    for lab in labs(seeds):
        _again(lab, 8)
        assert [] == lab.waiting()
        kept = len(lab.running())
        assert {"vcore": 4 * kept} == {"vcore": 0} | lab.state.nodes["n1"].allocated
        served += kept == 2 and not lab.races.refusals
        lab.ask("c", "d", vcore=4)
        lab.settle()
        assert 2 == len(lab.running()), "the view of the scheduler does not show what is used"
        assert lab.leftovers() == {}
    assert served > 0, "vacuous: no decision for the former node was taken for the next one"


@seeded
def test_the_next_node_is_too_small_for_both(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        _again(lab, 5)
        assert len(lab.running()) + len(lab.waiting()) + len(lab.rm.told("released")) == 2
        lost += lab.races.refusals["NODE_FULL"]
        lab.nodes(n2=10)
        lab.settle()
        assert [] == lab.waiting()
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no decision for the former node was refused by the next one"
