"""R-061, H-11: a node leaves while decisions for it are on their way.

It is first out of scheduling, then empty, then gone, all in one step; what was proposed for it is
refused and decided again, and nothing of it stays in any book.
"""

import ranges
from support import APP, Lab, labs

from yunikorn_actors import si

seeded = ranges.seeds(250)


def _ask_and_decommission(lab: Lab) -> None:
    lab.submit(APP)
    lab.nodes(n1=10, n2=10)
    lab.settle()
    lab.ask("a", "b", "c", "d")
    lab.decommission("n1")
    lab.settle()


@seeded
def test_nothing_leaks(seeds: range) -> None:
    lost = released = 0
    for lab in labs(seeds):
        _ask_and_decommission(lab)
        ended = [key for key, _ in lab.rm.told("released")]
        assert sorted({"a", "b", "c", "d"} - set(ended)) == lab.running()
        assert lab.waiting() == []
        assert {"vcore": len(lab.running())} == lab.state.nodes["n2"].allocated
        assert lab.state.capacity == {"vcore": 10}
        lost += lab.races.refusals["NODE_GONE"]
        released += len(ended)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way to the node that left"
    assert released > 0, "vacuous: the node never held anything"


@seeded
def test_the_same_id_comes_back(seeds: range) -> None:
    """A proposal for the first node of that name may serve the second one, if it has room."""
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", vcore=4)
        lab.decommission("n1")
        lab.nodes(n1=3)
        lab.settle()
        assert lab.running() == []
        assert lab.state.capacity == {"vcore": 3}
        lab.node("n1", si.ActionFromRM.UPDATE, 4)
        lab.settle()
        ended = [key for key, _ in lab.rm.told("released")]
        assert ([] if ended else ["a"]) == lab.running()
        assert lab.leftovers() == {}
