"""H-22, R-031, R-032: when the clock of a gang runs, and when it does no longer.

It runs from the first placeholder and as long as one stands. A firing that meets the last one on
its way out, or the first one on its way in, ends well whichever is taken first.
"""

from collections import Counter

import pytest
import ranges
from ganging import (
    GROUP,
    TIMED_OUT,
    TIMEOUT_S,
    Firings,
    Manager,
    application,
    ask_members,
    ask_placeholders,
    confirm,
    fire_amid,
    gang_lab,
    states,
    submit_gang,
    told,
    topologies,
)
from support import Lab, report

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, Fifo
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.values.durations import SECOND

seeded = ranges.seeds(150)


@seeded
@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_h22_the_timer_fires_as_the_last_placeholder_goes(seeds: range, style: str) -> None:
    """A stale firing does nothing; nobody is left failing, or resuming, with nothing to wait for."""
    stale = fired = 0
    for seed in seeds:
        lab = gang_lab(expected=2, style=style, seed=seed)
        lab.let_timers_fire(TIMEOUT_S)
        lab.release("ph-1")
        lab.settle()
        ends = [why for _, why in told(lab, "ph-1")[1:]]
        if ends == ["STOPPED_BY_RM"]:
            assert ["Accepted", "Completing"] == states(lab)
            stale += lab.races.stale_timers
        else:
            assert ["TIMEOUT", "STOPPED_BY_RM"] == ends
            assert ("Failed" if style == "Hard" else "Accepted") == states(lab)[-1]
            fired += 1
        assert lab.leftovers() == {}
    assert stale > 0, "vacuous: no firing came after its placeholder"
    assert fired > 0, "vacuous: no firing came first"


class NewestFirst(Fifo):
    """Whatever was sent last is next, so a firing waits for all that follows from later requests."""

    def choose(self, channels: Channels) -> Channel:
        return max(channels, key=lambda channel: channels[channel][0][0])


@topologies
def test_h22_another_placeholder_has_its_own_time(topology: TopologyName) -> None:
    """The firing for the one that went is not taken for that of the one that came."""
    lab = gang_lab(expected=2, topology=topology)
    lab.let_timers_fire(TIMEOUT_S)
    lab.simulator._chooser = NewestFirst()
    lab.release("ph-1")
    ask_placeholders(lab, "ph-2")
    while not any(key == "ph-2" for key, _ in lab.rm.told("new")):
        assert lab.simulator.step()
    assert 0 == lab.races.stale_timers, "vacuous: the firing came before the second placeholder"
    lab.settle()
    assert 1 == lab.races.stale_timers
    assert ["ph-2"] == lab.running()
    due_ns = application(lab).timers["placeholder"].due_ns
    assert lab.simulator.now_ns + TIMEOUT_S * SECOND == due_ns
    assert lab.leftovers() == {}


@topologies
def test_h22_the_last_swap_stops_the_clock(topology: TopologyName) -> None:
    firings = Firings()
    lab = gang_lab(topology=topology, checkers=(firings,))
    assert "placeholder" in application(lab).timers, "vacuous: no clock runs"
    ask_members(lab, "real")
    lab.settle()
    confirm(lab, "ph-1")
    lab.settle()
    assert {} == application(lab).timers
    lab.advance(2 * TIMEOUT_S)
    assert [] == firings.kinds
    assert ["real"] == lab.running()


def _recovered(topology: TopologyName, age_s: int, firings: Firings) -> Lab:
    """The gang came together before a restart, so long ago; one placeholder stands, one waits."""
    lab = Lab(rm=Manager(), topology=topology, checkers=(firings,))
    created = lab.simulator.now_ns // SECOND - age_s
    submit_gang(lab, 51, tags={si.constants.APP_TAG_CREATION_TIME: str(created)})
    standing = report("ph-1", "", task_group_name=GROUP, placeholder=True)
    lab.node("n1", si.ActionFromRM.CREATE, 10, existing_allocations=(standing,))
    ask_placeholders(lab, "late", vcore=50)
    lab.settle()
    return lab


@topologies
@pytest.mark.parametrize("age_s", [0, 50, 59])
def test_r031_a_restart_in_the_middle_of_the_time(topology: TopologyName, age_s: int) -> None:
    firings = Firings()
    lab = _recovered(topology, age_s, firings)
    assert ["late"] == lab.waiting(), "vacuous: the gang is complete"
    lab.advance(TIMEOUT_S - age_s - 0.001)
    assert ([], []) == (firings.kinds, told(lab, "late"))
    lab.advance(0.001)
    assert ["placeholder"] == firings.kinds
    assert [("released", "TIMEOUT")] == told(lab, "ph-1")
    assert [("withdrawn", "TIMEOUT")] == told(lab, "late")
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert "Accepted" == states(lab)[-1]
    assert lab.leftovers() == {}


@topologies
def test_r032_the_time_is_over_before_the_restart(topology: TopologyName) -> None:
    firings = Firings()
    lab = _recovered(topology, 3600, firings)
    lab.advance(0.001)
    assert ["placeholder"] == firings.kinds, "vacuous: the time was not up"
    assert [("withdrawn", "TIMEOUT")] == told(lab, "late")
    confirm(lab, "ph-1", type_=TIMED_OUT)
    lab.settle()
    assert [] == lab.running()
    assert lab.leftovers() == {}


@ranges.seeds(150, usual=25)
def test_r032_the_timer_fires_in_the_instant_of_the_first_placeholder(seeds: range) -> None:
    """The others are on their way: withdrawn, placed and asked back, or late for that gang."""
    ends: Counter[str] = Counter()
    refused = 0
    for seed in seeds:
        lab = Lab(rm=Manager(), seed=seed)
        lab.nodes(n1=1, n2=1, n3=1)
        submit_gang(lab, 4)
        lab.settle()
        ask_placeholders(lab, "ph-1")
        while not lab.state.allocation_count:
            assert lab.simulator.step()
        ask_placeholders(lab, "ph-2", "ph-3")
        fire_amid(lab, seed % 24)
        lab.settle()
        late = [key for key in ("ph-2", "ph-3") if not told(lab, key)]
        asked_back = [key for key, why in lab.rm.told("released")]
        ends += Counter(late=len(late), back=len(asked_back) - 1)
        ends["withdrawn"] += len(lab.rm.told("withdrawn"))
        refused += lab.races.refusals["ASK_GONE"] + lab.races.refusals["APP_STATE"]
        confirm(lab, *asked_back, type_=TIMED_OUT)
        lab.settle()
        assert "ph-1" in asked_back
        assert late == lab.running()
        assert "Accepted" == states(lab)[-1]
        assert lab.leftovers() == {}
    assert min(ends[end] for end in ("late", "back", "withdrawn")) > 0, f"vacuous: {ends}"
    assert refused > 0, "vacuous: no decision was on its way"
