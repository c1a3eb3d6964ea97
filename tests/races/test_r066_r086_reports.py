"""R-066, R-067, R-086, R-093: the resource manager reports work that runs already.

A report is taken at any time, is answered once however often it is repeated (R-136), and belongs to the
life of the node in which it arrives.
"""

from itertools import permutations

import pytest
import ranges
from support import APP, Lab, Recorder, labs, report

from yunikorn_actors import si


def _ready(lab: Lab) -> Lab:
    lab.submit(APP)
    lab.nodes(n1=10, n2=10)
    lab.settle()
    return lab


@ranges.seeds(60)
def test_r066_a_report_for_a_node_that_has_work(seeds: range) -> None:
    """It is taken whatever the scheduler is about to do with the room."""
    lost = 0
    for lab in labs(seeds):
        _ready(lab).ask("a", "b", vcore=6)
        lab.report(report("late", "n1", 6))
        lab.settle()
        assert "late" in lab.running()
        assert sorted(lab.running() + lab.waiting()) == ["a", "b", "late"]
        lost += lab.races.refusals["NODE_FULL"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal lost its room to the report"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (report("k", "ghost"), "failed to find node ghost"),
        (report("k", "n1", app="ghost"), "failed to find application ghost"),
    ],
)
def test_r066_a_report_for_nothing_is_rejected(item: si.Allocation, reason: str) -> None:
    lab = _ready(Lab())
    lab.report(item)
    lab.settle()
    assert [("k", reason)] == lab.rm.told("rejected")
    assert [] == lab.running()


@ranges.seeds(100)
def test_r067_the_node_flaps_under_an_announced_allocation(seeds: range) -> None:
    """Reported for the new node it is a new life, although it has the UUID of the old one."""
    crossed = 0
    for lab in labs(seeds):
        _ready(lab).ask("k", vcore=4)
        while not lab.rm.running and lab.simulator.step():
            pass
        (uuid,) = lab.rm.running
        node = lab.state.applications[APP].allocations[uuid].node_id
        lab.decommission(node)
        lab.nodes(**{node: 10})
        lab.report(report("k", node, 4, uuid=uuid))
        crossed += ("released", "k", "STOPPED_BY_RM") not in lab.rm.heard
        lab.settle()
        assert lab.running() == ["k"]
        assert {"vcore": 4} == lab.state.nodes[node].allocated
        lab.release("k")
        lab.settle()
        assert lab.running() == []
        assert lab.leftovers() == {}
    assert crossed > 0, "vacuous: the end of the first life was always told before"


@ranges.seeds(60)
def test_r086_a_report_is_acknowledged_once(seeds: range) -> None:
    """Repeated, and crossing an ask of the same key."""
    lost = 0
    for lab in labs(seeds):
        _ready(lab).ask("k")
        for _ in range(3):
            lab.report(report("k", "n2"))
        lab.settle()
        lab.report(report("k", "n2"))
        lab.settle()
        ((key, node),) = lab.rm.told("new")
        # What was committed before the first report stays where it is.
        assert ("k", "n2" if lab.races.refusals else node) == (key, node)
        assert lab.running() == ["k"]
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: the ask was never on its way elsewhere"


def test_r093_reported_and_ended_at_once() -> None:
    """In whatever order the three arrive, what was said last holds."""
    ended = 0
    for order in permutations(("report", "release", "ask")):
        for lab in labs(20):
            _ready(lab)
            for what in order:
                _SAY[what](lab)
            lab.settle()
            # A release for nothing is forgotten at once.
            last = order[-1] != "release"
            assert (["k"] if last else []) == sorted(lab.running() + lab.waiting())
            ended += lab.rm.told("released") == [("k", "STOPPED_BY_RM")]
            assert lab.leftovers() == {}
    assert ended > 0, "vacuous: no report was ended"


_SAY = {
    "report": lambda lab: lab.report(report("k", "n1")),
    "release": lambda lab: lab.release("k"),
    "ask": lambda lab: lab.ask("k"),
}


def test_r093_ended_from_inside_the_callback() -> None:
    """The work is over by the time the acknowledgement arrives."""
    for seed in range(1, 31):
        rm = Ending()
        lab = rm.lab = Lab(seed=seed, rm=rm)
        _ready(lab).report(report("k", "n1"))
        lab.settle()
        assert [("k", "n1")] == rm.told("new")
        assert [("k", "STOPPED_BY_RM")] == rm.told("released")
        assert lab.leftovers() == {}


class Ending(Recorder):
    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for new in response.new:
            self.lab.release(new.allocation_key)
