"""An ask is sent again with another node that it requires, while its reservation is on its way.

The reservation of the former node must not be made: the ask could not use it, and would be refused
the one that it wants, ever again.
"""

import ranges
from support import APP, Lab, labs

from yunikorn_actors import si

STEPS_MAX = 2_000


def _settle(lab: Lab) -> None:
    for _ in range(STEPS_MAX):
        if not lab.simulator.step():
            return
    raise AssertionError("it never comes to rest")


@ranges.seeds(200)
def test_the_former_node_is_not_kept(seeds: range) -> None:
    raced = 0
    for lab in labs(seeds):
        lab.nodes(n1=10, n2=10)
        lab.submit(APP)
        lab.ask("a", "b", vcore=10)
        lab.settle()
        for node in ("n1", "n2"):
            lab.ask("k", vcore=5, tags={si.constants.TAG_REQUIRED_NODE: node})
            for _ in range(lab.seed % 12):
                lab.simulator.step()
        _settle(lab)
        ask = lab.state.applications[APP].asks["k"]
        assert (ask.reserved, ask.spec.required_node) == (("n2",), "n2")
        raced += sum(lab.races.refusals.values())
    assert raced, "vacuous: no reservation was on its way"
