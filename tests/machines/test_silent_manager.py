"""A resource manager that never confirms: it is reported, and holds up nobody else."""

from typing import Any

import pytest
from restarting import Restarted
from support import APP, CONFIG, Lab, report

from yunikorn_actors import si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

TEN_MINUTES_S = 600
MINUTE_NS = 60 * 10**9
ENOUGH = si.Resource.of({"vcore": 4})


def _swapping(topology: TopologyName, **extra: str) -> Lab:
    """The release of one of two placeholders was asked for, and nobody answers."""
    lab = Lab(topology=topology)
    lab.simulator.update_configuration(
        si.UpdateConfigurationRequest(rm_id="rm-1", config=CONFIG, extra_config=extra)
    )
    lab.nodes(n1=10)
    lab.submit(APP, placeholder_ask=ENOUGH)
    for group in ("a", "b"):
        lab.ask(f"ph-{group}", vcore=2, task_group_name=group, placeholder=True)
    lab.ask("member", vcore=2, task_group_name="a")
    lab.settle()
    assert [("ph-a", "PLACEHOLDER_REPLACED")] == lab.rm.told("released")
    return lab


def _reports(lab: Lab) -> list[str]:
    records = lab.simulator.events().records
    return [item.object_id for item in records if "is not confirmed" in item.message]


def _unhealthy(lab: Lab) -> list[str]:
    dump: Any = lab.simulator.state_dump()
    return [check.diagnosis for check in health_of(dump).checks if not check.succeeded]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_silence_is_reported_once(topology: TopologyName) -> None:
    lab = _swapping(topology)
    lab.advance(TEN_MINUTES_S - 1)
    assert ([], []) == (_reports(lab), _unhealthy(lab))
    lab.advance(2)
    assert ["ph-a"] == _reports(lab)
    (diagnosis,) = _unhealthy(lab)
    assert "waits for the end of ph-a" in diagnosis
    lab.advance(TEN_MINUTES_S)
    assert ["ph-a"] == _reports(lab)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_nobody_else_waits(topology: TopologyName) -> None:
    lab = _swapping(topology)
    lab.advance(TEN_MINUTES_S + 1)
    lab.submit("other")
    lab.ask("o", app="other", vcore=6)
    lab.settle()
    assert ("o", "n1") in lab.rm.told("new")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_late_confirmation_ends_it(topology: TopologyName) -> None:
    lab = _swapping(topology)
    lab.advance(TEN_MINUTES_S + 1)
    confirmed = si.TerminationType.PLACEHOLDER_REPLACED
    lab.release("ph-a", termination_type=confirmed)
    lab.settle()
    assert [] == _unhealthy(lab)
    assert ["member", "ph-b"] == lab.running()
    assert lab.leftovers() == {}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_release_has_its_own_time(topology: TopologyName) -> None:
    """The first is confirmed, the second waits from when it was asked for."""
    lab = _swapping(topology, **{"rm.confirmWarning": "1m"})
    lab.advance(40)
    lab.ask("second", vcore=2, task_group_name="b")
    lab.settle()
    lab.release("ph-a", termination_type=si.TerminationType.PLACEHOLDER_REPLACED)
    lab.advance(30)
    assert [] == _reports(lab)
    lab.advance(31)
    assert ["ph-b"] == _reports(lab)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_long_work_takes_nothing_of_the_time(topology: TopologyName) -> None:
    """The release is asked for in the first slice, and the last one is a minute later."""
    lab = Lab(topology=topology, settings=Settings(slice_max=1))
    lab.nodes(n1=4)
    lab.submit(APP, execution_timeout_milli_seconds=1_000)
    lab.ask("short")
    lab.settle()
    lab.let_timers_fire(1)
    while not lab.state.unconfirmed:
        lab.simulator.step()
    assert lab.state.long_work is not None, "vacuous: it was done in one slice"
    lab.simulator.now_ns += MINUTE_NS
    lab.settle()
    lab.advance(TEN_MINUTES_S - 61)
    assert [] == _reports(lab)
    lab.advance(2)
    assert ["short"] == _reports(lab)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_after_a_restart_there_is_the_whole_time_again(topology: TopologyName) -> None:
    former = _swapping(topology)
    former.advance(TEN_MINUTES_S - 1)
    lab = Restarted(former, topology)
    (ph_a,) = (it for it in former.state.nodes["n1"].allocations.values() if it.releasing)
    lab.come_back()
    lab.report_node("n1", report("ph-a", "n1", 2, uuid=ph_a.uuid), vcore=10)
    assert [("ph-a", "PLACEHOLDER_REPLACED")] == lab.rm.told("released")
    lab.advance(TEN_MINUTES_S - 1)
    assert [] == _reports(lab)
    lab.advance(2)
    assert ["ph-a"] == _reports(lab)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_is_confirmed_leaves_no_timer(topology: TopologyName) -> None:
    lab = _swapping(topology)
    assert [name for _, name in lab.simulator.timers if name.startswith("confirm/")]
    lab.release("ph-a", termination_type=si.TerminationType.PLACEHOLDER_REPLACED)
    lab.settle()
    assert [] == [name for _, name in lab.simulator.timers if name.startswith("confirm/")]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_whoever_asks_is_told(topology: TopologyName) -> None:
    lab = _swapping(topology)
    before = lab.simulator.explain(APP, "member")
    lab.advance(TEN_MINUTES_S + 1)
    after = lab.simulator.explain(APP, "member")
    assert "ph-a was not confirmed in time" not in before.obstacle.text
    assert "ph-a was not confirmed in time" in after.obstacle.text
