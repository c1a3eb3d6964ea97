"""Twice as much to do is twice as many steps: nothing is looked for among all there is.

Steps are calls and lines, each turn of a loop for itself, counted by the interpreter: they are the
same on every machine. What is counted is the handling alone, without the checkers.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from support import APP, Lab, ask, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

SMALL = 150
SLACK = 1.1
Trace = Callable[[FrameType, str, Any], Any]


def _steps(handle: Callable[[], None]) -> int:
    count = 0

    def note(_: FrameType, event: str, __: object) -> Trace:
        nonlocal count
        count += event in {"call", "line"}
        return note

    former = sys.gettrace()
    sys.settrace(note)
    try:
        handle()
    finally:
        sys.settrace(former)
    return count


def _apps(number: int) -> list[str]:
    return [f"app-{index}" for index in range(number)]


def _lab(topology: TopologyName) -> Lab:
    lab = Lab(topology=topology)
    lab.simulator._checkers = ()
    return lab


def _reported_with_nodes(topology: TopologyName, number: int) -> Lab:
    """As many applications as nodes, so that looking through all of either would show."""
    lab = _lab(topology)
    lab.submit(*_apps(number))
    lab.settle()
    for index, app in enumerate(_apps(number)):
        running = (report("k", "", app=app, uuid=f"u-{index}"),)
        lab.node(f"n{index}", si.ActionFromRM.CREATE, 4, existing_allocations=running)
    return lab


def _reported_alone(topology: TopologyName, number: int) -> Lab:
    lab = _lab(topology)
    lab.submit(*_apps(number))
    lab.nodes(**{f"n{index}": 4 for index in range(number)})
    lab.settle()
    for index, app in enumerate(_apps(number)):
        lab.report(report("k", f"n{index}", app=app, uuid=f"u-{index}"))
    return lab


def _released_by_uuid(topology: TopologyName, number: int) -> Lab:
    """The resource manager names neither application nor key."""
    lab = _reported_alone(topology, number)
    lab.settle()
    for index in range(number):
        lab.release("", app="", uuid=f"u-{index}")
    return lab


def _repeats_released(topology: TopologyName, number: int) -> Lab:
    lab = _lab(topology)
    lab.submit(APP)
    lab.nodes(n1=number)
    lab.ask("k", max_allocations=number)
    lab.settle()
    for uuid in lab.state.applications[APP].allocations:
        lab.release("k", uuid=uuid)
    return lab


def _of_many_sizes(topology: TopologyName, number: int) -> Lab:
    """None fits anywhere, and each waits for room of its own."""
    lab = _lab(topology)
    lab.submit(APP)
    lab.nodes(n1=1)
    lab.settle()
    lab.request(asks=tuple(ask(f"k{index}", 2 + index) for index in range(number)))
    return lab


def _of_many_sizes_withdrawn(topology: TopologyName, number: int) -> Lab:
    lab = _of_many_sizes(topology, number)
    lab.settle()
    lab.withdraw(*(f"k{index}" for index in range(number)))
    return lab


LOADS = {
    "repeats released": _repeats_released,
    "many sizes": _of_many_sizes,
    "many sizes withdrawn": _of_many_sizes_withdrawn,
    "reported with their nodes": _reported_with_nodes,
    "reported alone": _reported_alone,
    "released by UUID": _released_by_uuid,
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_twice_as_much_is_twice_the_work(
    load: Callable[[TopologyName, int], Lab], topology: TopologyName
) -> None:
    small, large = (_steps(load(topology, n).settle) for n in (SMALL, 2 * SMALL))
    assert SMALL < small, "vacuous: next to nothing was done"
    assert large < 2 * SLACK * small
