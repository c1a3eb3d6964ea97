"""A resource manager is lost while decisions for it are on their way.

What was committed before stays; nothing more is until it registers again, with a clean slate.
"""

import ranges
from support import APP, RM, Lab, Recorder, labs


def _keys(lab: Lab) -> list[str]:
    app = lab.state.applications[APP]
    return sorted(item.spec.key for item in app.allocations.values())


@ranges.seeds(200)
def test_nothing_is_committed_for_a_lost_manager(seeds: range) -> None:
    lost = kept = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", "b")
        lab.simulator.resource_manager_lost(RM)
        lab.settle()
        committed = _keys(lab)
        assert sorted(committed + lab.waiting()) == ["a", "b"]
        lab.advance(60)
        assert committed == _keys(lab)
        lost += lab.races.refusals["RM_PAUSED"]
        kept += len(committed)
        lab.register(Recorder())
        lab.settle()
        assert ({}, {}) == (lab.state.applications, lab.state.nodes)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way when the manager was lost"
    assert kept > 0, "vacuous: nothing was ever committed before"
