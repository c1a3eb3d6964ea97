"""What the resource manager is told of asks that wait: by a quota, a limit, or for want of a node.

A quota goes first: only an ask that every quota allows has failed to find a node.
"""

import pytest
from listening import Listening
from support import APP, RM, Lab, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

pytestmark = pytest.mark.parametrize("topology", TOPOLOGIES)


def _lab(topology: TopologyName, *leaves: str, root: str = "") -> Lab:
    config = (
        f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', {root}"
        f"queues: [{', '.join(leaves)}]}}]}}]"
    )
    lab = Lab(config=config, topology=topology, rm=Listening())
    lab.nodes(n1=10)
    lab.submit(APP, "app-2")
    lab.settle()
    return lab


def _states(lab: Lab, key: str) -> list[str]:
    lab.settle()
    return [state for told, state in lab.rm.told("container") if told == key]


ONE = "{name: default, maxapplications: 1}"
AWARE = "{name: default, properties: {application.sort.policy: stateaware}}"
OF_BOB = "{name: default, limits: [{limit: one, users: [bob], maxapplications: 1}]}"


@pytest.mark.parametrize("leaf", [ONE, AWARE, OF_BOB])
def test_as_many_applications_run_as_may(topology: TopologyName, leaf: str) -> None:
    lab = _lab(topology, leaf)
    lab.ask("a")
    lab.settle()
    lab.ask("b", app="app-2")
    assert ["SKIPPED"] == _states(lab, "b")
    lab.ask("late", app="app-2")
    assert ["SKIPPED"] == _states(lab, "late"), "it came to one that is held back already"
    lab.remove(APP)
    assert ["SKIPPED", "SCHEDULED"] == _states(lab, "b")
    assert ["SKIPPED", "SCHEDULED"] == _states(lab, "late")


@pytest.mark.parametrize("leaf", [ONE, AWARE, OF_BOB])
def test_held_back_before_it_waits_for_a_node(topology: TopologyName, leaf: str) -> None:
    """Another application waits for the same size of node already."""
    lab = _lab(topology, leaf)
    lab.ask("a")
    lab.settle()
    lab.ask("large", vcore=99)
    assert ["FAILED"] == _states(lab, "large")
    lab.ask("b", app="app-2", vcore=99)
    assert ["SKIPPED"] == _states(lab, "b")
    lab.remove(APP)
    assert ["SKIPPED", "FAILED"] == _states(lab, "b")


def test_a_gang_where_as_many_applications_run_as_may(topology: TopologyName) -> None:
    lab = _lab(topology, ONE)
    lab.ask("a")
    lab.settle()
    lab.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2}))
    lab.ask("p", app="gang", vcore=2, placeholder=True, task_group_name="g")
    assert ["SKIPPED"] == _states(lab, "p")
    lab.remove(APP)
    assert ["SKIPPED", "SCHEDULED"] == _states(lab, "p")


TIGHT = "{name: tight, resources: {max: {vcore: 15m}}}"
BOBS = "{name: tight, limits: [{limit: few, users: [bob], maxresources: {vcore: 15m}}]}"


@pytest.mark.parametrize("leaf", [TIGHT, BOBS])
@pytest.mark.parametrize("comes_first", ["other", "tight"])
def test_a_quota_goes_before_the_want_of_a_node(
    topology: TopologyName, leaf: str, comes_first: str
) -> None:
    """A shape that another leaf found no node for is refused by a quota here."""
    lab = _lab(topology, "{name: default}", leaf)
    lab.nodes(n2=8)
    lab.submit("app-3", queue="root.tight")
    lab.ask("fills", "too", vcore=4, app="app-3")
    lab.settle()
    for name in ("other", "tight") if comes_first == "other" else ("tight", "other"):
        lab.ask(f"in-{name}", vcore=9, app=APP if name == "other" else "app-3")
        if comes_first == "tight":
            lab.settle()
    assert ["FAILED"] == _states(lab, "in-other")
    assert ["SKIPPED"] == _states(lab, "in-tight")
    lab.ask("again", vcore=9, app="app-3")
    assert ["SKIPPED"] == _states(lab, "again"), "the shape waits for a node already"
    lab.release("fills", app="app-3")
    assert ["SKIPPED", "FAILED"] == _states(lab, "in-tight")
    assert ["SKIPPED", "FAILED"] == _states(lab, "again")
    lab.nodes(n3=9, n4=9)
    assert ["FAILED", "SCHEDULED"] == _states(lab, "in-other")


@pytest.mark.parametrize("leaf", [TIGHT, BOBS])
def test_a_quota_that_others_use_up_meanwhile_is_no_news(topology: TopologyName, leaf: str) -> None:
    """It is not tried, so nothing refuses it; all that wait here would hear of each change."""
    lab = _lab(topology, "{name: default}", leaf)
    lab.nodes(n2=8)
    lab.submit("app-3", queue="root.tight")
    lab.ask("one", "two", vcore=4, app="app-3")
    lab.ask("wide", vcore=7, app="app-3")
    assert ["FAILED"] == _states(lab, "wide")
    for _ in range(2):
        lab.ask("more", vcore=4, app="app-3")
        lab.settle()
        assert "more" in lab.running()
        lab.release("more", app="app-3")
    assert ["FAILED"] == _states(lab, "wide")
    lab.nodes(n3=9)
    assert ["FAILED", "SCHEDULED"] == _states(lab, "wide")


def test_a_limit_goes_before_the_size_of_the_cluster(topology: TopologyName) -> None:
    lab = _lab(topology, BOBS.replace("tight", "default"))
    lab.ask("fills", vcore=8)
    lab.settle()
    lab.ask("more", vcore=8)
    assert ["SKIPPED"] == _states(lab, "more")
    lab.release("fills")
    assert ["SKIPPED", "SCHEDULED"] == _states(lab, "more")


def _comes_with_its_node(lab: Lab, key: str, vcore: int) -> None:
    running = report(key, "n2", vcore)
    node = si.NodeInfo(
        node_id="n2",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 99}),
        existing_allocations=(running,),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))


@pytest.mark.parametrize("has_failed", [False, True])
def test_what_comes_with_its_node_is_no_news(topology: TopologyName, has_failed: bool) -> None:
    """The resource manager knows; only what it was told before is put right."""
    lab = _lab(topology, "{name: default}")
    lab.ask("a", vcore=50)
    if has_failed:
        lab.settle()
    _comes_with_its_node(lab, "a", 50)
    assert (["FAILED", "SCHEDULED"] if has_failed else []) == _states(lab, "a")
    assert ["a"] == [item.spec.key for item in lab.state.applications[APP].allocations.values()]
    assert [] == lab.rm.told("new")
