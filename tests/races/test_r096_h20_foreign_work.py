"""R-096, R-097, R-135, H-20: work of others on a node.

Each piece is known by its key, so it is counted once however often and in whatever way it is told;
and it ends with its node.
"""

from typing import Any

import pytest
import ranges
from support import APP, RM, Lab, labs, report

from yunikorn_actors import si

FOREIGN = {si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}


def _foreign(key: str, node: str, vcore: int) -> si.Allocation:
    return report(key, node, vcore, app="", allocation_tags=FOREIGN)


def _occupied(lab: Lab, node: str = "n1") -> dict[str, int]:
    return {kind: amount for kind, amount in lab.state.nodes[node].occupied.items() if amount}


@ranges.seeds(60)
def test_r096_told_twice_and_told_anew(seeds: range) -> None:
    """A create that looks like an update, and the reverse, are the same thing."""
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10, n2=10)
        lab.settle()
        lab.ask("a", "b", vcore=7)
        lab.report(_foreign("f", "n1", 2), _foreign("f", "n1", 2))
        lab.report(_foreign("f", "n1", 5), _foreign("g", "n2", 1))
        lab.settle()
        assert ({"vcore": 5}, {"vcore": 1}) == (_occupied(lab), _occupied(lab, "n2"))
        lost += lab.races.refusals["NODE_FULL"]
        lab.report(_foreign("f", "n2", 4))
        lab.settle()
        assert ({}, {"vcore": 5}) == (_occupied(lab), _occupied(lab, "n2"))
        for key in ("f", "f", "never seen", "g"):
            lab.release(key, app="")
        lab.settle()
        assert ({}, {}) == (_occupied(lab), _occupied(lab, "n2"))
        assert lab.rm.told("released") == []
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal met the work of others"


@pytest.mark.parametrize("uuid", ["", "u-7"])
@pytest.mark.parametrize("first", ["with the node", "by itself"])
def test_r097_listed_and_told_is_counted_once(first: str, uuid: str) -> None:
    """The same work comes in the list of its node and by itself."""
    lab = Lab()
    lab.submit(APP)
    item = report("k", "n1", 3, uuid=uuid)
    existing: dict[str, Any] = {"existing_allocations": (item,)}
    if first == "with the node":
        lab.node("n1", si.ActionFromRM.CREATE, 10, **existing)
        lab.report(item)
    else:
        lab.node("n1", si.ActionFromRM.CREATE, 10)
        lab.report(item)
        lab.node("n1", si.ActionFromRM.CREATE, 10, **existing)
    lab.settle()
    assert (1, {"vcore": 3}) == (lab.state.allocation_count, lab.state.nodes["n1"].allocated)
    assert len(lab.rm.told("new")) == (first == "by itself")
    lab.release("k")
    lab.settle()
    assert lab.leftovers() == {}


@ranges.seeds(60)
def test_h20_foreign_work_ends_with_its_node(seeds: range) -> None:
    """Told again for the next node of that name it counts in full, and nothing is over-committed."""
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.report(_foreign("f", "n1", 5))
        lab.settle()
        lab.decommission("n1")
        lab.nodes(n1=10)
        lab.ask("a", vcore=7)
        lab.simulator.step()
        lab.report(_foreign("f", "n1", 5))
        lab.settle()
        node = lab.state.nodes["n1"]
        assert {"vcore": 5} == _occupied(lab)
        # What was committed before the second report stays; nothing is committed after it.
        told = lab.rm.told("new")
        assert ({"vcore": 5} if not told else {"vcore": -2}) == node.available
        lost += lab.races.refusals["NODE_FULL"]
        lab.release("f", app="")
        lab.settle()
        assert lab.running() == ["a"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal met the second report"


def test_h20_a_release_after_the_node_has_gone() -> None:
    for lab in labs(20):
        lab.nodes(n1=10)
        lab.report(_foreign("f", "n1", 5))
        lab.decommission("n1")
        lab.release("f", app="")
        lab.nodes(n1=10)
        lab.settle()
        assert ({}, {}) == (_occupied(lab), lab.state.foreign)
        assert {"vcore": 10} == lab.state.nodes["n1"].available


def test_negative_foreign_work_is_refused() -> None:
    lab = Lab()
    lab.nodes(n1=10)
    lab.simulator.update_allocation(
        si.AllocationRequest(rm_id=RM, allocations=(_foreign("f", "n1", -3),))
    )
    lab.settle()
    assert [("f", "allocation contains negative resources")] == lab.rm.told("rejected")
    assert {"vcore": 10} == lab.state.nodes["n1"].available
