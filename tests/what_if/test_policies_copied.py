"""A core is simulated whatever its policies hold beside what they decide by."""

import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import pytest
from support import RM

from tests.what_if.test_simulate import asks, node
from yunikorn_actors import VirtualCore, si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.recording.packed import packed, unpacked

CONFIG = """
partitions:
- name: default
  nodesortpolicy: {type: %s}
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: a}]
"""


def core_with(
    topology: TopologyName, name: str, policies: dict[str, Any] | None = None
) -> VirtualCore:
    """Two asks run on the second node, the one that the policy likes."""
    core = VirtualCore(topology=topology, policies=policies).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % name)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 8_000))
    core.update_node(node("n2", 8_000))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    core.update_allocation(asks("1", "2"))
    core.run_until_idle()
    return core


def _numbers() -> Iterator[int]:
    yield from range(1_000_000)


class Likes:
    def __init__(self, held: object) -> None:
        self.held = held
        self.cached = lru_cache(maxsize=8)(self._score)

    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
        return self.cached(node.id)

    def _score(self, node_id: str) -> float:
        assert self.held is not None
        return float(node_id != "n2")


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(
    "made",
    [threading.Lock, lambda: memoryview(b"x"), _numbers, list],
    ids=["lock", "view of memory", "generator", "cache"],
)
def test_what_cannot_be_copied_is_shared(
    topology: TopologyName, made: Callable[[], object]
) -> None:
    held = made()
    core = core_with(topology, "likes", {"likes": lambda: Likes(held)})
    assert {it.node for it in core.simulate(asks("3")).course.placed} == {"n2"}
    core.update_allocation(asks("3"))
    core.run_until_idle()
    placed = core.state_dump()["partitions"]["[rm-1]default"]["applications"]["app"]["allocations"]
    assert {it["node"] for it in placed} == {"n2"}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", ["fgd", "best-fit"])
def test_the_shipped_ones(topology: TopologyName, name: str) -> None:
    core = core_with(topology, name)
    assert [it.key for it in core.simulate(asks("3")).course.placed] == ["3"]


class Emptiest:
    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
        return -float(node.free.get("vcore", 0))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_a_score_sees_in_a_copy_changes_with_the_copy(topology: TopologyName) -> None:
    core = core_with(topology, "emptiest", {"emptiest": Emptiest})
    nodes = [it.node for it in core.simulate(asks("3", "4", "5", "6")).course.placed]
    assert {nodes.count("n1"), nodes.count("n2")} == {2}, nodes


class EmptiestByLock:
    """Takes the node with most room; what it holds cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
        with self.lock:
            return -float(node.free.get("vcore", 0))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_policy_is_shown_the_amounts_of_the_copy(topology: TopologyName) -> None:
    """Beside what cannot be copied the views of the original were shared: nothing moved there."""
    core = core_with(topology, "emptiest", {"emptiest": EmptiestByLock})
    core.update_allocation(asks("3"))
    core.run_until_idle()
    answer = core.simulate(asks("4", "5", "6", "7"), until=0)
    simulated = [(it.key, it.node) for it in answer.course.placed]
    core.update_allocation(asks("4", "5", "6", "7"))
    core.run_until_idle()
    done = [(key, node) for key, _ in simulated for node in core.explain("app", key).placed]
    assert {node for _, node in simulated} == {"n1", "n2"}
    assert simulated == done


def test_a_view_is_of_what_is_copied_with_it() -> None:
    free = {"vcore": 1}
    copied, shown, _ = unpacked(packed((free, MappingProxyType(free), threading.Lock())))
    copied["vcore"] = 2
    assert shown == copied
