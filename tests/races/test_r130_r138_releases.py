"""R-130, R-131, R-138: work ends at an awkward moment, and may be wanted again."""

import pytest
import ranges
from support import APP, Lab, Recorder, labs, report

from yunikorn_actors import si
from yunikorn_actors.state.applications import ApplicationState

seeded = ranges.seeds(100)


@seeded
def test_r130_released_by_key_before_it_was_heard_of(seeds: range) -> None:
    """The resource manager has no UUID yet, so it names the key."""
    crossed = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("k")
        while not lab.state.allocation_count:
            assert lab.simulator.step()
        crossed += not lab.rm.running
        lab.release("k")
        lab.settle()
        heard = [line for line in lab.rm.heard if line[1] == "k"]
        assert [("new", "k", "n1"), ("released", "k", "STOPPED_BY_RM")] == heard
        assert ([], []) == (lab.running(), lab.waiting())
        assert lab.leftovers() == {}
    assert len(seeds) == crossed, "vacuous: it had been heard of already"


class Failing(Recorder):
    """The first binding of each key fails: the allocation is given back and asked for again."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        before = {key for key, _ in self.told("new")}
        super().update_allocation(response)
        for new in response.new:
            if new.allocation_key not in before:
                self.lab.release(new.allocation_key)
                self.lab.ask(new.allocation_key)


def test_r131_given_back_and_asked_for_again() -> None:
    """It is announced a second time, as another allocation of the same key."""
    for seed in range(1, 41):
        rm = Failing()
        lab = rm.lab = Lab(seed=seed, rm=rm)
        lab.submit(APP)
        lab.nodes(n1=2)
        lab.ask("a", "b")
        lab.settle()
        assert lab.running() == ["a", "b"]
        assert ["a", "a", "b", "b"] == sorted(key for key, _ in rm.told("new"))
        assert ["a", "b"] == sorted(key for key, _ in rm.told("released"))
        assert {"vcore": 2} == lab.state.nodes["n1"].allocated
        assert lab.leftovers() == {}


def _new(lab: Lab) -> None:
    lab.submit(APP)


def _accepted(lab: Lab) -> None:
    _new(lab)
    lab.ask("other", vcore=99)


def _running(lab: Lab) -> None:
    _new(lab)
    lab.report(report("other", "n1"))


def _completing(lab: Lab) -> None:
    _running(lab)
    lab.release("other")


STATES = {
    "New": (_new, "Completing"),
    "Accepted": (_accepted, "Accepted"),
    "Running": (_running, "Running"),
    "Completing": (_completing, "Completing"),
}


@pytest.mark.parametrize("start", STATES)
@pytest.mark.parametrize("form", ["ask release", "release"])
def test_r138_a_waiting_ask_is_taken_back_in_any_state(start: str, form: str) -> None:
    """It was too large for every node, or was on its way; it waits for nothing any more."""
    prepare, end = STATES[start]
    lost = 0
    for lab in labs(20):
        lab.nodes(n1=10)
        prepare(lab)
        lab.settle()
        assert ApplicationState(start) is lab.state.applications[APP].state
        lab.ask("k", "large", vcore=3 if lab.seed % 2 else 50)
        take_back = lab.withdraw if form == "ask release" else lab.release
        take_back("k", "large")
        lab.settle()
        assert "k" not in lab.waiting() + lab.running()
        ran = start == "Accepted" and lab.rm.told("new")
        state = ApplicationState.RUNNING if ran else ApplicationState(end)
        assert state is lab.state.applications[APP].state
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: the ask was never on its way"
