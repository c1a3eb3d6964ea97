"""R-129: the resource manager takes back an ask that the core has allocated meanwhile.

It does not know yet, so it can only name the ask. The allocation is released, and told once.
"""

import ranges
from support import APP, labs

seeded = ranges.seeds(200)


@seeded
def test_the_allocation_goes_and_is_told_once(seeds: range) -> None:
    """The release is on its way while the announcement is."""
    crossed = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("k", "j")
        while not lab.keys_in_flight() and lab.simulator.step():
            pass
        lab.withdraw("k")
        crossed += ("new", "k", "n1") not in lab.rm.heard
        lab.settle()
        assert lab.running() == ["j"]
        told = [line for line in lab.rm.heard if line[1] == "k"]
        assert told in ([], [("new", "k", "n1"), ("released", "k", "STOPPED_BY_RM")])
        crossed -= not told
        lab.withdraw("k")
        lab.settle()
        assert told == [line for line in lab.rm.heard if line[1] == "k"]
        assert lab.leftovers() == {}
    assert crossed > 0, "vacuous: no withdrawal met an announcement on its way"


def test_one_of_several_repeats_stays() -> None:
    """Without the UUID it cannot be said which one is meant, so only what waits is taken back."""
    for lab in labs(20):
        lab.submit(APP)
        lab.nodes(n1=2)
        lab.ask("k", max_allocations=3)
        lab.settle()
        lab.withdraw("k")
        lab.settle()
        assert (lab.running(), lab.waiting()) == (["k", "k"], [])
        lab.withdraw("k")
        lab.settle()
        assert lab.running() == ["k", "k"]
