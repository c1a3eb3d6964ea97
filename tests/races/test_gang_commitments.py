"""A commitment lapses: its timer against the first placeholder, the end of the last one, the gang's.

A gang is admitted and no node has room for it; after its placeholder timeout it is held again.
"""

from typing import Any

import pytest
from ganging import (
    TIMEOUT_S,
    Firings,
    application,
    ask_placeholders,
    placeholders,
    submit_gang,
    topologies,
)
from support import CONFIG, Lab, facts_of

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.durations import SECOND

STEPS = 24
QUOTA = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
    "queues: [{name: default, resources: {max: {vcore: 4m}}}]}]}]"
)


NOTED = (f.GangAdmitted, f.GangLapsed, f.ReservationMade, f.ReservationDropped)


class Lapses:
    """Notes what became of the commitment of the gang, and that its timer is armed as it should."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.lab: Lab | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        for fact in facts_of(simulator, delivery):
            if isinstance(fact, NOTED):
                self.seen.append(type(fact).__name__)
        if self.lab is not None:
            state = self.lab.state
            for app in state.applications.values():
                is_idle = app.serial in state.admitted and not app.has_placeholders
                assert is_idle is ("commitment" in app.timers)


def committed(number: int = 4, *, vcore: int = 1, **made_with: Any) -> tuple[Lab, Lapses]:
    """A gang of 4 is admitted, and its only node holds nothing of it."""
    lapses = Lapses()
    checkers = (*made_with.pop("checkers", ()), lapses)
    lab = Lab(checkers=checkers, **{"config": QUOTA, **made_with})
    lapses.lab = lab
    lab.nodes(n0=0)
    submit_gang(lab, 4)
    ask_placeholders(lab, *placeholders(number), vcore=vcore)
    lab.settle()
    assert application(lab).is_admitted, "vacuous: it was never admitted"
    assert [] == lab.running()
    return lab, lapses


def _fire_amid_placing(lab: Lab, steps: int) -> None:
    """A node comes in the last second; after so many more messages the time is up."""
    lab.advance(TIMEOUT_S - 1)
    lab.nodes(n1=4)
    for _ in range(steps):
        lab.simulator.step()
    lab.simulator.now_ns += SECOND
    lab.simulator._fire_due()
    lab.settle()


@topologies
def test_it_lapses_and_is_admitted_again_at_once(topology: TopologyName) -> None:
    """Nobody else wants the room; the resource manager hears nothing."""
    lab, lapses = committed(topology=topology)
    heard = len(lab.rm.heard)
    lab.advance(TIMEOUT_S - 0.001)
    assert ["GangAdmitted"] == lapses.seen
    lab.advance(0.001)
    assert ["GangAdmitted", "GangLapsed", "GangAdmitted"] == lapses.seen
    assert lab.rm.heard[heard:] == []
    lab.nodes(n1=4)
    lab.settle()
    assert placeholders(4) == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_it_gives_way_to_a_gang_that_waits(topology: TopologyName) -> None:
    """And is admitted again when that has gone."""
    lab, lapses = committed(1, vcore=4, topology=topology)
    lab.submit("other", placeholder_ask=si.Resource.of({"vcore": 3}))
    keys = ["o-1", "o-2", "o-3"]
    lab.ask(*keys, app="other", task_group_name="g", placeholder=True)
    lab.nodes(n1=3)
    lab.advance(TIMEOUT_S - 1)
    assert [] == lab.running(), "vacuous: the commitment keeps nobody back"
    lab.advance(1)
    assert keys == lab.running()
    assert ["GangAdmitted", "GangLapsed", "GangAdmitted"] == lapses.seen
    assert not application(lab).is_admitted
    lab.remove("other")
    lab.settle()
    assert application(lab).is_admitted


@pytest.mark.parametrize("steps", range(STEPS))
def test_the_time_is_up_amid_the_first_placeholder(steps: int) -> None:
    """Whoever comes first, all of it runs in the end, and the timer that lost does nothing."""
    lab, lapses = committed(seed=steps)
    _fire_amid_placing(lab, steps)
    assert placeholders(4) == lab.running()
    assert lapses.seen.count("GangLapsed") == lapses.seen.count("GangAdmitted") - 1
    assert lab.leftovers() == {}


def test_both_orders_of_the_timer_and_the_first_placeholder_happen() -> None:
    seen, refused = set(), 0
    for steps in range(STEPS):
        lab, lapses = committed(seed=steps)
        _fire_amid_placing(lab, steps)
        seen.add(len(lapses.seen))
        refused += lab.races.refusals["GANG_HELD"]
    assert {1, 3} <= seen, "vacuous: one of them always came first"
    assert refused > 0, "vacuous: no placeholder was on its way when the time was up"


@topologies
def test_the_time_begins_anew_with_the_end_of_the_last_placeholder(topology: TopologyName) -> None:
    lab, lapses = committed(topology=topology)
    lab.nodes(n1=1)
    lab.settle()
    assert 1 == len(lab.running())
    lab.advance(TIMEOUT_S - 1)
    (key,) = lab.running()
    lab.release(key, termination_type=si.TerminationType.STOPPED_BY_RM)
    lab.decommission("n1")
    lab.advance(TIMEOUT_S - 0.001)
    assert ["GangAdmitted"] == lapses.seen
    lab.advance(0.001)
    assert ["GangAdmitted", "GangLapsed", "GangAdmitted"] == lapses.seen


@topologies
def test_with_its_asks_the_commitment_ends(topology: TopologyName) -> None:
    """Nothing of it is to come, so no timer is left to fire."""
    firings = Firings()
    lab, lapses = committed(topology=topology, checkers=(firings,))
    lab.withdraw(*placeholders(4))
    lab.advance(2 * TIMEOUT_S)
    assert ["GangAdmitted"] == lapses.seen
    assert "commitment" not in firings.kinds


@topologies
def test_a_reservation_of_the_gang_ends_with_its_commitment(topology: TopologyName) -> None:
    lab, lapses = committed(1, vcore=4, topology=topology, config=CONFIG)
    lab.submit("plain")
    lab.ask("p", app="plain", priority=9)
    lab.settle()
    lab.nodes(n1=4)
    lab.settle()
    lab.nodes(n2=3)
    lab.settle()
    assert ["p"] == lab.running()
    lab.advance(TIMEOUT_S - 1)
    assert ["GangAdmitted", "ReservationMade"] == lapses.seen, "vacuous: no node was kept"
    lab.advance(1)
    assert ["GangLapsed", "ReservationDropped", "GangAdmitted"] == lapses.seen[2:5]


@topologies
def test_an_event_says_it_once(topology: TopologyName) -> None:
    lab, _ = committed(topology=topology)
    lab.advance(TIMEOUT_S + 10)
    said = [record.message for record in lab.rm.records if "lapses" in record.message]
    message = (
        "Gang of application 'app-1' had no placeholder for 60 s: its commitment of '{vcore: 4}' "
        "in queue root.default lapses, and the gang awaits admission again"
    )
    assert said == [message]
