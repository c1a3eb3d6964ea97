"""H-19: a resource manager registers again while everything of its first life is on its way.

The second registration is a clean slate. Proposals, timers and callbacks of the first life end
nowhere: they name an epoch, or a mailbox, that is gone.
"""

import ranges
from support import APP, Lab, Recorder, labs

seeded = ranges.seeds(200)


def _first_life(lab: Lab) -> Recorder:
    """An application that completes, one with asks on their way, and their announcements."""
    lab.submit(APP, "app-2")
    lab.nodes(n1=10)
    lab.ask("old")
    lab.settle()
    lab.release("old")
    lab.let_timers_fire(30)
    lab.ask("a", "b", app="app-2")
    return lab.rm


@seeded
def test_nothing_of_the_first_life_reaches_the_second(seeds: range) -> None:
    stale = silenced = 0
    for lab in labs(seeds):
        first = _first_life(lab)
        lab.register(Recorder())
        lab.settle()
        assert lab.state.applications == {}
        assert lab.state.nodes == {}
        assert lab.rm.heard == []
        heard = list(first.heard)
        lab.submit("app-2")
        lab.nodes(n1=10)
        lab.ask("a", app="app-2")
        lab.settle()
        assert lab.running() == ["a"]
        assert heard == first.heard
        stale += lab.stale_messages
        silenced += ("new", "a", "n1") not in first.heard
        assert lab.leftovers() == {}
    assert stale > 0, "vacuous: no proposal or timer of the first life came late"
    assert silenced > 0, "vacuous: every announcement arrived before the second registration"


@seeded
def test_an_unfinished_proposal_of_the_first_life_charges_nothing(seeds: range) -> None:
    stale = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a")
        while not lab.keys_in_flight():
            assert lab.simulator.step()
        lab.register(Recorder())
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        assert lab.running() == ["a"]
        assert lab.state.allocation_count == 1
        stale += lab.stale_messages
    assert stale > 0, "vacuous: the proposal always arrived before the second registration"
