"""R-036 for an ask of several allocations: those that are committed stay, the rest is gone."""

import ranges
from support import APP, Lab, labs

from yunikorn_actors.machines.settings import Settings

REPEATS = 3


def _play(lab: Lab) -> None:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("k", max_allocations=REPEATS)
    lab.withdraw("k")
    lab.settle()


@ranges.seeds(400, usual=200)
def test_a_withdrawal_takes_what_is_not_committed(seeds: range) -> None:
    """One proposal at a time, so that the withdrawal falls between two repeats of one ask."""
    settled: set[int] = set()
    lost = 0
    for lab in labs(seeds, settings=Settings(inflight_max=1)):
        _play(lab)
        running = lab.running()
        assert lab.waiting() == []
        assert lab.keys_in_flight() == []
        settled.add(len(running))
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert {0, 1, 2, 3} == settled, "vacuous: the withdrawal was not seen at every moment"
    assert lost > 0, "vacuous: no proposal lost against the withdrawal"


@ranges.seeds(400, usual=200)
def test_a_release_takes_the_ask_and_all_its_allocations(seeds: range) -> None:
    announced: set[int] = set()
    lost = 0
    for lab in labs(seeds, settings=Settings(inflight_max=1)):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("k", max_allocations=REPEATS)
        lab.release("k")
        lab.settle()
        assert (lab.running(), lab.waiting()) == ([], [])
        assert len(lab.rm.told("new")) == len(lab.rm.told("released"))
        announced.add(len(lab.rm.told("new")))
        lost += lab.races.refusals["ASK_GONE"]
    assert {0, 1, 2, 3} == announced, "vacuous: the release was not seen at every moment"
    assert lost > 0, "vacuous: no proposal lost against the release"
