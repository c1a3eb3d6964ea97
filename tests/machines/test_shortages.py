"""Events say when what is left of a queue, or of a user's quota, is too little for an ask."""

import pytest
from listening import Listening
from support import APP, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

pytestmark = pytest.mark.parametrize("topology", TOPOLOGIES)


def _config(leaf: str, *, limit: str = "") -> str:
    return (
        f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', {limit}"
        f"queues: [{{name: default, {leaf}}}]}}]}}]"
    )


def _max(vcore: int) -> str:
    return _config(f"resources: {{max: {{vcore: {vcore}m}}}}")


def _lab(topology: TopologyName, config: str, rm: Recorder | None = None) -> Lab:
    lab = Lab(config=config, topology=topology, rm=rm or Recorder())
    lab.nodes(n1=10)
    lab.submit(APP)
    lab.settle()
    return lab


def _told(lab: Lab, *keys: str) -> list[str]:
    """Return what was said of these asks, and that they were allocated."""
    lab.settle()
    return [
        it.message.removeprefix("Request ") or "allocated"
        for it in lab.simulator.events().records
        if it.type is si.EventType.REQUEST and it.object_id in keys
    ]


@pytest.mark.parametrize("rm", [Recorder, Listening])
def test_a_queue(topology: TopologyName, rm: type[Recorder]) -> None:
    lab = _lab(topology, _max(3), rm())
    lab.ask("a", vcore=2)
    lab.settle()
    lab.ask("b", vcore=2)
    refused = (
        "'b' does not fit in queue 'root.default' (requested {vcore: 2}, available {vcore: 1})"
    )
    assert [refused] == _told(lab, "b")
    lab.ask("c", vcore=1)
    lab.settle()
    lab.release("c")
    assert [refused] == _told(lab, "b"), "on change only"
    lab.release("a")
    again = "'b' has become schedulable in queue 'root.default'"
    assert [refused, again, "allocated"] == _told(lab, "b")


@pytest.mark.parametrize("rm", [Recorder, Listening])
@pytest.mark.parametrize("together", [True, False])
def test_several_that_wait(
    topology: TopologyName,
    rm: type[Recorder],
    together: bool,
) -> None:
    """Each is told when it came, and when it is placed; those who still wait are told nothing."""
    lab = _lab(topology, _max(2), rm())
    lab.ask("a", "b")
    lab.settle()
    waiting = ("c", "d", "e")
    for keys in (waiting,) if together else ((key,) for key in waiting):
        lab.ask(*keys)
        lab.settle()
    lab.release("a")
    for key in waiting:
        told = [line.split(" (")[0] for line in _told(lab, key)]
        refused = [f"'{key}' does not fit in queue 'root.default'"]
        fits = [f"'{key}' has become schedulable in queue 'root.default'", "allocated"]
        assert told == (refused + fits if key in lab.running() else refused)
    assert 2 == len(lab.running())


def test_a_user(topology: TopologyName) -> None:
    limit = "limits: [{limit: one, users: [bob], maxresources: {vcore: 3m}}], "
    lab = _lab(topology, _config("submitacl: '*'", limit=limit))
    lab.ask("a", vcore=2)
    lab.settle()
    lab.ask("b", vcore=2)
    refused = "'b' exceeds the available user quota (requested {vcore: 2}, available {vcore: 1})"
    assert [refused] == _told(lab, "b")
    lab.release("a")
    fits = "'b' fits in the available user quota"
    assert [refused, fits, "allocated"] == _told(lab, "b")


def test_the_cluster(topology: TopologyName) -> None:
    """It is the root queue; its free size is no quota, so the ask has failed all the same."""
    lab = _lab(topology, _config("submitacl: '*'"), Listening())
    lab.ask("a", vcore=8)
    lab.settle()
    lab.ask("b", vcore=4)
    refused = (
        "'b' does not fit in queue 'root.default' (requested {vcore: 4}, available {vcore: 2})"
    )
    assert [refused] == _told(lab, "b")
    assert [("b", "FAILED")] == [line for line in lab.rm.told("container") if line[0] == "b"]
    lab.nodes(n2=10)
    assert "'b' has become schedulable in queue 'root.default'" in _told(lab, "b")


def test_the_lowest_of_the_path(topology: TopologyName) -> None:
    """A type that nothing names is not bounded; what is left is the least of all levels."""
    lab = _lab(topology, _max(3))
    lab.ask("a", resource_ask=si.Resource.of({"vcore": 1, "gpu": 1}))
    (refused,) = _told(lab, "a")
    assert refused.endswith("(requested {gpu: 1, vcore: 1}, available {gpu: 0, vcore: 3})")


def test_room_in_the_queue_and_on_no_node(topology: TopologyName) -> None:
    lab = _lab(topology, _max(9))
    lab.nodes(n2=10)
    lab.ask("x", "y", vcore=4)
    lab.settle()
    lab.ask("b", vcore=8)
    lab.settle()
    lab.configure(_max(30))
    refused = (
        "'b' does not fit in queue 'root.default' (requested {vcore: 8}, available {vcore: 1})"
    )
    again = "'b' has become schedulable in queue 'root.default'"
    assert [refused, again] == _told(lab, "b")[:2]
    assert "allocated" not in _told(lab, "b")


def test_repeats(topology: TopologyName) -> None:
    """As long as one of them waits there is not room for all."""
    lab = _lab(topology, _max(1))
    lab.ask("a", max_allocations=3)
    refused = (
        "'a' does not fit in queue 'root.default' (requested {vcore: 1}, available {vcore: 0})"
    )
    assert ["allocated", refused] == _told(lab, "a")
    lab.configure(_max(2))
    assert ["allocated", refused, "allocated"] == _told(lab, "a")
    lab.configure(_max(3))
    again = "'a' has become schedulable in queue 'root.default'"
    assert ["allocated", refused, "allocated", again, "allocated"] == _told(lab, "a")
