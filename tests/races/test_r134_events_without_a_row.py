"""R-134: an event that meets a state without a row for it changes nothing, and is told to nobody."""

from collections import Counter

import pytest
import ranges
from support import APP, Lab, facts_of

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.scheduling import ApplicationTimerDue
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState, next_state


class Rows:
    """Every change of a state that was written down is a row of the table."""

    def __init__(self) -> None:
        self.states: dict[int, ApplicationState] = {}
        self.changes = 0
        self.without_a_row = 0
        """Timers that fired and found a state that they do not end."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT:
            return
        before = self.changes
        for fact in facts_of(simulator, delivery):
            if isinstance(fact, f.ApplicationStateChanged):
                state = self.states.get(fact.serial, ApplicationState.NEW)
                assert fact.state == next_state(state, fact.event, stateaware=False)
                self.states[fact.serial] = fact.state
                self.changes += 1
        is_timer = isinstance(delivery.message, ApplicationTimerDue)
        self.without_a_row += is_timer and self.changes == before


@pytest.mark.parametrize("topology", TOPOLOGIES)
@ranges.seeds(60, usual=20)
def test_the_time_of_an_application_that_ends_is_up(topology: TopologyName, seeds: range) -> None:
    """It has nothing left and is completing, or fails first: one end, whichever came first."""
    without_a_row = 0
    ends: Counter[str] = Counter()
    for seed in seeds:
        rows = Rows()
        lab = Lab(seed=seed, topology=topology, checkers=(rows,))
        lab.nodes(n1=9)
        lab.submit(APP, execution_timeout_milli_seconds=20_000)
        lab.ask("a", "b")
        lab.settle()
        lab.release("a")
        lab.let_timers_fire(20)
        for _ in range(seed % 3):
            lab.simulator.step()
        lab.release("b")
        lab.settle()
        lab.advance(31)
        told = [state for _, state in lab.rm.told("state")]
        assert rows.changes == len(told), "each change is told once, and nothing else is"
        (ended,) = lab.state.finished.values()
        ends[ended.state] += 1
        without_a_row += rows.without_a_row
        assert lab.leftovers() == {}
    assert {"Completed", "Failed"} == set(ends), "vacuous: one of the two always came first"
    assert without_a_row > 0, "vacuous: every timer met the state that it was for"
