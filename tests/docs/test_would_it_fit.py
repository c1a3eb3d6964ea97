"""The ten situations of the page: every change that is found helps on a core that runs."""

import runpy
from collections import Counter
from pathlib import Path

import pytest

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, manager_of
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import Option, Wanted, least_changes
from yunikorn_actors.what_if.run import Manager, Run

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "docs/fits.py"))


def arranged(number: int, topology: TopologyName) -> tuple[Simulator, Wanted]:
    simulator = Simulator(Topology(topology, settings=Settings(), instance="t"))
    cluster = SCRIPT["Cluster"](
        simulator, simulator.settle, lambda seconds: simulator.advance(seconds * SECOND)
    )
    return simulator, SCRIPT["MISFITS"][number].arrange(cluster)


def context_of(simulator: Simulator) -> Context:
    context = simulator.machines[CONTEXT]
    assert isinstance(context, Context)
    return context


def done(simulator: Simulator, wanted: Wanted, option: Option) -> set[tuple[str, str]]:
    """Do it on the live core, whose resource manager has its work end; return what started."""
    return {*started(simulator, wanted, option)}


def started(simulator: Simulator, wanted: Wanted, option: Option) -> Counter[tuple[str, str]]:
    """Return how many repeats of each ask start if it is done."""
    changes = [*option.changes, *(it for it in wanted.changes if not isinstance(it, Change))]
    run = Run(simulator, [Change(it) for it in changes])
    known = {it.registration.rm_id: it for it in context_of(simulator).registered.managers}
    for address in tuple(simulator.callbacks):
        rm_id = manager_of(address)
        manager = Manager(rm_id, known[rm_id].registration.capabilities, run)
        simulator.callbacks[address] = manager
    course = run.go(simulator.now_ns + round(option.after_s * SECOND))
    return Counter((it.application, it.key) for it in course.placed)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=it.what, marks=[pytest.mark.slow] * ("behind a gang" in it.what))
        for number, it in enumerate(SCRIPT["MISFITS"])
    ],
)
def test_each_change_helps(number: int, topology: TopologyName) -> None:
    simulator, wanted = arranged(number, topology)
    found = least_changes(state_of(simulator), wanted)
    assert not found.fits
    assert found.options
    names = wanted.asks or tuple(
        (ask.application_id, ask.allocation_key)
        for it in wanted.changes
        if isinstance(it, si.AllocationRequest)
        for ask in it.asks
    )
    for option in found.options:
        live, again = arranged(number, topology)
        assert set(names) <= done(live, again, option), option


def test_without_a_change_none_of_them_starts() -> None:
    for number in range(10):
        live, wanted = arranged(number, "fused")
        assert not set(wanted.asks) & done(live, wanted, Option("nothing", ""))
