"""H-33: a node is drained, or stops being ready, while decisions for it are on their way."""

from typing import Any

import pytest
import ranges
from support import APP, labs

from yunikorn_actors import si

DRAIN: dict[str, Any] = {"action": si.ActionFromRM.DRAIN_NODE}
NOT_READY: dict[str, Any] = {
    "action": si.ActionFromRM.UPDATE,
    "attributes": {si.constants.NODE_READY_ATTRIBUTE: "false"},
}
OPEN: dict[str, Any] = {"action": si.ActionFromRM.DRAIN_TO_SCHEDULABLE}
READY: dict[str, Any] = {
    "action": si.ActionFromRM.UPDATE,
    "attributes": {si.constants.NODE_READY_ATTRIBUTE: "true"},
}


@pytest.mark.parametrize(("shut", "open_again"), [(DRAIN, OPEN), (NOT_READY, READY)])
@ranges.seeds(200)
def test_a_drained_node_takes_nothing_more(
    shut: dict[str, Any], open_again: dict[str, Any], seeds: range
) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", "b")
        lab.node("n1", **shut)
        lab.settle()
        # What was committed before stays; the rest waits until the node is open again.
        assert sorted(lab.running() + lab.waiting()) == ["a", "b"]
        lost += lab.races.refusals["NODE_DRAINING"]
        lab.node("n1", **open_again)
        lab.settle()
        assert (lab.running(), lab.waiting()) == (["a", "b"], [])
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way to the drained node"
