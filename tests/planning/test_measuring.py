"""Many queues are measured in several plans, and nothing is decided before the last of them."""

import pytest
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.planning import planner

LEAVES = ", ".join(f"{{name: q{number}}}" for number in range(10))
CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    + LEAVES
    + "]}]}]"
)
QUEUES = 11
STEPS = 4 * QUEUES


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "STEPS_IN_ONE", 6)


def _lab(topology: TopologyName) -> Lab:
    lab = Lab(topology=topology, config=CONFIG)
    lab.nodes(n1=1)
    lab.submit("app-1", queue="root.q3")
    lab.settle()
    return lab


def _cycles(lab: Lab) -> int:
    """Handle everything; say how many plans that took."""
    cycles = 0
    while lab.simulator.step():
        cycles += isinstance(lab.simulator.last.message, RunCycle)
    return cycles


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_all_is_measured_before_anything_is_decided(topology: TopologyName) -> None:
    lab = _lab(topology)
    lab.ask("a")
    lab.settle()
    lab.ask("b")
    _cycles(lab)
    assert lab.running() == ["a"]
    # It has room for both now, and root allows no more than was measured.
    lab.node("n1", si.ActionFromRM.UPDATE, 2)
    assert _cycles(lab) > STEPS // 6
    assert lab.running() == ["a", "b"]


def test_a_change_meanwhile_has_everything_measured_at_once() -> None:
    lab = _lab("fused")
    planner, marks = lab.planner, lab.planner.requeue.measures
    planner.requeue.cluster_changed()
    assert [] == planner.plan(100, 1)
    assert marks.is_stale
    assert planner.has_work
    planner.requeue.cluster_changed()
    planner.plan(100, 2)
    assert not marks.is_stale


def test_a_queue_that_comes_meanwhile_is_measured_too() -> None:
    lab = _lab("fused")
    planner, marks = lab.planner, lab.planner.requeue.measures
    planner.requeue.cluster_changed()
    planner.plan(100, 1)
    new = planner.model.tree.queues.pop("root.q0")
    planner.model.tree.queues["root.q0"] = new
    new.due = {"vcore": -1}
    planner.plan(100, 2)
    assert not marks.is_stale
    assert new.due != {"vcore": -1}
