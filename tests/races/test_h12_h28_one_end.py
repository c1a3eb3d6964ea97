"""H-12, H-28: two reasons to end one allocation, and a commit for an application that is gone.

The first reason takes the allocation out of every book at once; the second finds nothing. The end
is told once, and only if the allocation was announced.
"""

from itertools import permutations

import pytest
import ranges
from support import APP, QUEUE, Lab, labs

ENDS = {
    "release": lambda lab: lab.release("a"),
    "node": lambda lab: lab.decommission("n1"),
    "application": lambda lab: lab.remove(APP),
}
ORDERS = list(permutations(ENDS))


def _lab(lab: Lab) -> Lab:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    return lab


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@ranges.seeds(40)
def test_h12_three_ends_of_one_allocation(order: tuple[str, ...], seeds: range) -> None:
    for lab in labs(seeds):
        _lab(lab).ask("a", vcore=4)
        lab.settle()
        assert {"vcore": 4} == lab.state.queues[QUEUE].allocated
        for name in order:
            ENDS[name](lab)
        lab.settle()
        assert [("a", "STOPPED_BY_RM")] == lab.rm.told("released")
        assert 0 == lab.state.allocation_count
        assert [] == [q for q in lab.state.queues.values() if any(q.allocated.values())]
        assert lab.leftovers() == {}


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@ranges.seeds(40)
def test_h12_while_it_is_decided(order: tuple[str, ...], seeds: range) -> None:
    """Between the request and the commit, or after it."""
    lost = told = 0
    for lab in labs(seeds):
        _lab(lab).ask("a", vcore=4)
        for _ in range(lab.seed % 7):
            lab.simulator.step()
        for name in order:
            ENDS[name](lab)
        lab.settle()
        heard = [line for line in lab.rm.heard if line[1] == "a"]
        assert heard in ([], [("new", "a", "n1"), ("released", "a", "STOPPED_BY_RM")])
        assert 0 == lab.state.allocation_count
        lost += lab.races.refusals.total()
        told += bool(heard)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way"
    assert told > 0, "vacuous: nothing was ever committed"


@ranges.seeds(40)
def test_h28_the_application_goes_in_between(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        _lab(lab).ask("a", "b", "c")
        while not lab.keys_in_flight():
            assert lab.simulator.step()
        lab.remove(APP)
        lab.settle()
        new, released = lab.rm.told("new"), lab.rm.told("released")
        assert sorted(key for key, _ in new) == sorted(key for key, _ in released)
        assert 0 == lab.state.allocation_count
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: every proposal was committed before the application went"
