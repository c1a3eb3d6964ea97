"""The back-off of a leaf: an application rests when too many of its asks find no node."""

from itertools import pairwise

import pytest
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning.reasons import Cause

topologies = pytest.mark.parametrize("topology", TOPOLOGIES)
CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: default
      properties: {application.unschedasks.backoff: "%s", application.unschedasks.backoff.delay: 30s}
"""


def lab_with(topology: TopologyName, threshold: int = 2, seed: int = 0) -> Lab:
    """Two nodes of four: eight are free, and no ask for five finds a node."""
    lab = Lab(seed=seed, topology=topology, config=CONFIG % threshold)
    lab.nodes(n1=4, n2=4)
    lab.submit(APP)
    lab.settle()
    return lab


def rests(lab: Lab, *keys: str) -> bool:
    """Whether each of them waits for the same reason: the back-off, or another one."""
    (cause,) = {lab.simulator.explain(APP, key).obstacle.cause is Cause.BACKING_OFF for key in keys}
    return cause


@topologies
def test_exactly_as_many_as_the_threshold_end_the_pass_before_it_counts(
    topology: TopologyName,
) -> None:
    lab = lab_with(topology)
    lab.ask("a", "b", vcore=5)
    lab.settle()
    assert not rests(lab, "a", "b")
    lab.nodes(n3=5)
    lab.settle()
    assert ["a"] == lab.running()


@topologies
def test_the_next_entry_makes_it_rest(topology: TopologyName) -> None:
    lab = lab_with(topology)
    lab.ask("a", "b", vcore=5)
    lab.ask("c", vcore=1)
    lab.settle()
    assert ([], True) == (lab.running(), rests(lab, "a", "b", "c"))
    lab.advance(20)
    lab.nodes(n3=5)
    lab.ask("urgent", vcore=1, priority=9)
    lab.settle()
    assert ([], True) == (lab.running(), rests(lab, "urgent"))
    lab.advance(9.9)
    assert [] == lab.running()
    lab.advance(0.1)
    assert ["a", "c", "urgent"] == lab.running()
    assert lab.leftovers() == {}


def test_a_rest_that_goes_on_without_a_threshold_counts_no_asks() -> None:
    lab = lab_with("proposing")
    lab.ask("a", "b", "c", vcore=5)
    lab.settle()
    lab.configure(CONFIG % 0)
    lab.settle()
    assert rests(lab, "a")
    assert "rests, because too many of its asks" in lab.simulator.explain(APP, "a").obstacle.text


@topologies
def test_it_rests_again_where_nothing_has_changed(topology: TopologyName) -> None:
    lab = lab_with(topology)
    lab.ask("a", "b", "c", vcore=5)
    lab.settle()
    until = [lab.simulator.explain(APP, "a").obstacle.until_ns]
    for _ in range(3):
        lab.advance(30)
        until.append(lab.simulator.explain(APP, "a").obstacle.until_ns)
    assert [30 * 10**9] * 3 == [late - early for early, late in pairwise(until)]


@topologies
def test_an_entry_that_runs_counts_as_the_next_one_when_it_is_younger(
    topology: TopologyName,
) -> None:
    lab = lab_with(topology, threshold=1)
    lab.ask("runs", vcore=1)
    lab.settle()
    lab.advance(1)
    lab.ask("a", vcore=5)
    lab.settle()
    assert not rests(lab, "a")
    lab.ask("above", vcore=5, priority=1)
    lab.settle()
    assert rests(lab, "a", "above")


@topologies
def test_what_a_quota_refuses_does_not_count(topology: TopologyName) -> None:
    lab = lab_with(topology, threshold=1)
    lab.configure(CONFIG % 1 + "      resources: {max: {vcore: 4m}}\n")
    lab.ask("a", "b", vcore=5)
    lab.ask("c", vcore=1)
    lab.settle()
    assert ["c"] == lab.running()
    assert not rests(lab, "a", "b")


@topologies
def test_others_go_first_meanwhile(topology: TopologyName) -> None:
    lab = lab_with(topology, threshold=1)
    lab.ask("a", "b", vcore=5)
    lab.submit("small")
    lab.ask("s", app="small", vcore=4)
    lab.settle()
    assert ["s"] == lab.running()


@topologies
def test_without_the_property_nobody_rests(topology: TopologyName) -> None:
    lab = lab_with(topology, threshold=0)
    lab.ask("a", "b", "c", vcore=5)
    lab.ask("d", vcore=1)
    lab.settle()
    assert ["d"] == lab.running()
    assert {} == lab.planner.requeue.passes


@topologies
def test_one_that_rests_may_go(topology: TopologyName) -> None:
    lab = lab_with(topology, threshold=1)
    lab.ask("a", "b", vcore=5)
    lab.settle()
    assert rests(lab, "a", "b")
    lab.remove(APP)
    lab.advance(60)
    assert ({}, {}) == (lab.planner.backoff.resting, lab.planner.model.tree.blocked.by)
    lab.submit(APP)
    lab.ask("c", vcore=1)
    lab.settle()
    assert ["c"] == lab.running()


@topologies
def test_a_reload_is_read_at_the_next_pass(topology: TopologyName) -> None:
    lab = lab_with(topology, threshold=1)
    lab.ask("a", "b", vcore=5)
    lab.settle()
    lab.configure(CONFIG % 0)
    lab.node("n3", si.ActionFromRM.CREATE, 5)
    lab.advance(30)
    assert ["a"] == lab.running()
