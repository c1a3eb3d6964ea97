"""R-126, G26: requests about one object take effect in the order in which they were sent."""

import ranges
from support import APP, Lab, labs

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
