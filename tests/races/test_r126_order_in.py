"""R-126, G26: requests about one object take effect in the order in which they were sent."""

import ranges
from support import APP, CONFIG, Lab, labs

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.rm_events import RMUpdateAllocation

seeded = ranges.seeds(200)


def _ready(lab: Lab) -> Lab:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    return lab


@seeded
def test_ask_then_withdraw(seeds: range) -> None:
    before = after = 0
    for lab in labs(seeds):
        _ready(lab).ask("k")
        lab.withdraw("k")
        lab.settle()
        assert (lab.running(), lab.waiting()) == ([], [])
        before += lab.races.refusals["ASK_GONE"]
        after += len(lab.rm.told("released"))
        assert lab.leftovers() == {}
    assert before > 0, "vacuous: the withdrawal never came before the commit"
    assert after > 0, "vacuous: the withdrawal never came after the commit"


@seeded
def test_ask_withdraw_and_ask_again(seeds: range) -> None:
    """The proposal for the first ask does not serve the second, which has its own size."""
    lost = 0
    for lab in labs(seeds):
        _ready(lab).ask("k", vcore=1)
        lab.withdraw("k")
        lab.ask("k", vcore=4)
        lab.settle()
        assert lab.running() == ["k"]
        assert lab.state.nodes["n1"].allocated == {"vcore": 4}
        lost += lab.races.refusals["ASK_GONE"]
    assert lost > 0, "vacuous: no proposal for the first ask met the second"


@seeded
def test_ask_then_release_then_ask_again_within_one_request_each(seeds: range) -> None:
    for lab in labs(seeds):
        _ready(lab)
        for _ in range(3):
            lab.ask("k")
            lab.release("k")
        lab.ask("k", "j")
        lab.settle()
        assert lab.running() == ["j", "k"]


@seeded
def test_remove_then_submit(seeds: range) -> None:
    """In this order the application lives; with both in one request the removal is the last."""
    for lab in labs(seeds):
        _ready(lab).ask("k")
        lab.remove(APP)
        lab.submit(APP)
        lab.settle()
        assert list(lab.state.applications) == [APP]
        assert (lab.running(), lab.waiting()) == ([], [])


@seeded
def test_create_then_decommission(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.ask("k")
        lab.settle()
        lab.nodes(n1=10)
        lab.decommission("n1")
        lab.settle()
        assert lab.state.nodes == {}
        # What ran there has ended, what was only proposed still waits.
        assert lab.running() == []
        lost += lab.races.refusals["NODE_GONE"]
    assert lost > 0, "vacuous: no proposal met the node's end"


# -- requests that are handled together


class Joined:
    """Counts requests by how they were handled: together with the one before them, or not."""

    def __init__(self) -> None:
        self.joined = self.alone = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, RMUpdateAllocation):
            self.joined += delivery.joined
            self.alone += not delivery.joined


LIMITED = CONFIG.replace("{name: default}", "{name: default, resources: {max: {vcore: 3m}}}")


@seeded
def test_limits_hold_for_asks_that_are_handled_together(seeds: range) -> None:
    """G22, G23: the room that a release leaves is given away once, however much is taken at once."""
    assert LIMITED != CONFIG
    joined, alone = 0, 0
    for seed in seeds:
        for topology in TOPOLOGIES:
            watch = Joined()
            lab = Lab(seed=seed, topology=topology, config=LIMITED, checkers=(watch,))
            _ready(lab).ask("a", "b", "c")
            lab.settle()
            lab.release("a")
            lab.ask("d")
            lab.release("b")
            lab.ask("e", "f")
            lab.settle()
            assert ["c", "d", "e"] == lab.running()
            assert ["f"] == lab.waiting()
            joined += watch.joined
            alone += watch.alone > 2
    assert joined > 0, "vacuous: no requests were handled together"
    assert alone > 0, "vacuous: all requests were handled together"


@seeded
def test_each_key_is_told_in_its_order_when_requests_are_handled_together(seeds: range) -> None:
    """G27: what a later request leads to never comes before what an earlier one led to."""
    joined = 0
    for seed in seeds:
        watch = Joined()
        lab = Lab(seed=seed, topology="fused", checkers=(watch,))
        _ready(lab).ask("k")
        lab.settle()
        # A release, then a rejection: in one batch the rejection would be told first.
        lab.release("k")
        lab.ask("k", vcore=0)
        lab.report(si.Allocation(application_id=APP, allocation_key="r", node_id="nowhere"))
        lab.settle()
        told = [line[:2] for line in lab.rm.heard if line[0] in {"new", "released", "rejected"}]
        assert [("new", "k"), ("released", "k"), ("rejected", "k"), ("rejected", "r")] == told
        joined += watch.joined
    assert joined > 0, "vacuous: no requests were handled together"


@seeded
def test_an_ask_that_is_taken_back_at_once_is_never_decided(seeds: range) -> None:
    before = after = 0
    for seed in seeds:
        watch = Joined()
        lab = Lab(seed=seed, topology="fused", checkers=(watch,))
        _ready(lab).ask("k")
        lab.withdraw("k")
        lab.settle()
        assert ([], []) == (lab.running(), lab.waiting())
        before += watch.joined
        after += len(lab.rm.told("new"))
        assert not (watch.joined and lab.rm.told("new"))
        assert lab.leftovers() == {}
    assert before > 0, "vacuous: the two were never handled together"
    assert after > 0, "vacuous: the ask was never decided before it was taken back"
