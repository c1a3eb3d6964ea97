"""Twice as much to do is twice as many steps: nothing is looked for among all there is.

Steps are calls and lines, each turn of a loop for itself, counted by the interpreter: they are the
same on every machine. What is counted is the handling alone, without the checkers.
"""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import ranges
from support import APP, CONFIG, PARTITION, Lab, ask, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore

SMALL = 150
PART = 3
"""Of them is enough where each takes many steps."""
SLACK = 1.03
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


def _lab(topology: TopologyName, config: str = CONFIG) -> Lab:
    lab = Lab(topology=topology, config=config)
    lab.simulator.checkers.set(())
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


def _each_in_a_leaf_of_its_own(topology: TopologyName, number: int) -> Lab:
    """Each ask has a priority of its own too, and brings its leaf to the top of them all."""
    number //= PART
    lab = _lab(topology, _config([{"name": app} for app in _apps(number)]))
    lab.nodes(n1=number)
    lab.settle()
    for index, app in enumerate(_apps(number)):
        lab.submit(app, queue=f"root.{app}")
        lab.ask("k", app=app, priority=index)
    return lab


def _each_of_a_user_with_limits(topology: TopologyName, number: int) -> Lab:
    number //= PART
    users = [f"user-{index}" for index in range(number)]
    limits = [{"users": [user], "groups": [user], "maxapplications": 2} for user in users]
    lab = _lab(topology, _config([{"name": "default"}], limits=limits))
    lab.nodes(n1=number)
    lab.settle()
    for app, user in zip(_apps(number), users, strict=True):
        lab.submit(app, user=user, groups=(user,))
        lab.ask("k", app=app)
    return lab


def _config(leaves: list[dict[str, Any]], **of_root: Any) -> str:
    root = {"name": "root", "submitacl": "*", "queues": leaves, **of_root}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]})


LOADS = {
    "leaves of their own": _each_in_a_leaf_of_its_own,
    "users with limits": _each_of_a_user_with_limits,
    "repeats released": _repeats_released,
    "many sizes": _of_many_sizes,
    "many sizes withdrawn": _of_many_sizes_withdrawn,
    "reported with their nodes": _reported_with_nodes,
    "reported alone": _reported_alone,
    "released by UUID": _released_by_uuid,
}


@pytest.mark.parametrize(("name", "topology"), ranges.one_each([*LOADS], TOPOLOGIES))
def test_twice_as_much_is_twice_the_work(name: str, topology: TopologyName) -> None:
    load = LOADS[name]
    small, large = (_steps(load(topology, n).settle) for n in (SMALL, 2 * SMALL))
    assert SMALL < small, "vacuous: next to nothing was done"
    assert large < 2 * SLACK * small


def test_twice_as_much_is_twice_the_work_of_restoring_it() -> None:
    """As many applications as nodes: a replica that starts looks through neither for each other."""
    small, large = (_steps_of_restoring(number) for number in (SMALL, 2 * SMALL))
    assert large < 2 * SLACK * small


def _steps_of_restoring(number: int) -> int:
    lab = _reported_with_nodes("fused", number)
    lab.settle()
    image, again = image_of(lab.state), PartitionState(PARTITION)
    steps = _steps(lambda: restore(again, image))
    assert number == again.allocation_count
    return steps
