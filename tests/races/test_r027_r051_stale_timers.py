"""R-027 and R-051: a timer has fired, and what it was for is over before the firing is handled.

A firing names the life of its application and its own generation, so it may come late, and to the
next application of the same id, without any effect.
"""

import ranges
from support import APP, Lab, labs

from yunikorn_actors.state.applications import ApplicationState

COMPLETING_S = 30


def _completing(lab: Lab) -> None:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.release("a")
    lab.settle()
    assert lab.state.applications[APP].state is ApplicationState.COMPLETING


@ranges.seeds(200)
def test_a_new_ask_against_the_completing_timer(seeds: range) -> None:
    """Whoever is handled first decides: the ask keeps the application, or comes too late."""
    stale = rejected = 0
    for lab in labs(seeds):
        _completing(lab)
        lab.let_timers_fire(COMPLETING_S)
        lab.ask("b")
        lab.settle()
        if APP in lab.state.applications:
            assert lab.running() == ["b"]
            assert lab.state.applications[APP].state is ApplicationState.RUNNING
            stale += lab.races.stale_timers
        else:
            assert lab.running() == []
            ((key, reason),) = lab.rm.told("rejected")
            assert "b" == key
            assert reason.startswith(f"failed to find application {APP}: it is Completed")
            rejected += 1
        assert lab.leftovers() == {}
    assert stale > 0, "vacuous: no ask came between a firing and its handling"
    assert rejected > 0, "vacuous: no firing came first"


@ranges.seeds(200)
def test_the_timer_of_a_former_life(seeds: range) -> None:
    """Removed and submitted again: the firing belongs to an application that is no more."""
    stale = 0
    for lab in labs(seeds):
        _completing(lab)
        lab.let_timers_fire(COMPLETING_S)
        lab.remove(APP)
        lab.submit(APP)
        lab.settle()
        assert lab.state.applications[APP].state is ApplicationState.NEW
        assert lab.state.applications[APP].serial == 2
        lab.ask("b")
        lab.settle()
        assert lab.running() == ["b"]
        stale += lab.races.stale_timers
    assert stale > 0, "vacuous: no firing met the second life"


@ranges.seeds(200)
def test_the_timer_of_a_former_stay_in_the_state(seeds: range) -> None:
    """Completing, running again, completing again: the first firing must not end the second stay."""
    stale = 0
    for lab in labs(seeds):
        _completing(lab)
        lab.let_timers_fire(COMPLETING_S)
        lab.ask("b")
        lab.release("b")
        lab.settle()
        app = lab.state.applications.get(APP)
        if app is not None:
            assert app.state is ApplicationState.COMPLETING
            assert lab.simulator.now_ns + COMPLETING_S * 10**9 == app.timers["state"].due_ns
            stale += lab.races.stale_timers
        assert lab.leftovers() == {}
    assert stale > 0, "vacuous: no firing came late"
