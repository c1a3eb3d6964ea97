"""A core is simulated whatever its policies hold beside what they decide by."""

import json
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from support import RM

from tests.what_if.test_simulate import asks, node
from yunikorn_actors import SchedulerCore, VirtualCore, si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.policies.registry import MissingPolicy, PolicyChanged
from yunikorn_actors.recording.packed import packed, unpacked
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.core_state import CoreState
from yunikorn_actors.what_if.dumps import state_from_dump, state_from_journal
from yunikorn_actors.what_if.least_change import Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate

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
    fill(core, name)
    core.run_until_idle()
    return core


def fill(core: VirtualCore | SchedulerCore, name: str) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % name)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 8_000))
    core.update_node(node("n2", 8_000))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    core.update_allocation(asks("1", "2"))


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


class LikesTheSecond:
    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
        return float(node.id != "n2")


class LikesTheFirst:
    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
        return float(node.id != "n1")


def dump_source(_: Path, topology: TopologyName) -> CoreState:
    dump = core_with(topology, "second", {"second": LikesTheSecond}).state_dump()
    return state_from_dump(json.loads(json.dumps(dump)), topology=topology, where="dump.json")


def journal_source(tmp_path: Path, topology: TopologyName) -> CoreState:
    policies = {"second": LikesTheSecond}
    with SchedulerCore(journal=tmp_path / "journal", policies=policies) as core:
        fill(core, "second")
        while core.state_dump()["partitions"]["[rm-1]default"]["allocations"] < 2:
            pass
    return state_from_journal(tmp_path / "journal", topology=topology)


Source = Callable[[Path, TopologyName], CoreState]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("source", [dump_source, journal_source])
def test_a_state_that_another_policy_made_is_not_simulated_without_it(
    source: Source, topology: TopologyName, tmp_path: Path
) -> None:
    state = source(tmp_path, topology)
    with pytest.raises(MissingPolicy, match="decided by policy 'second', which is not given: "):
        simulate(state, asks("3"))
    with pytest.raises(MissingPolicy, match="decided by policy 'second', which is not given: "):
        least_changes(state, Wanted((Change(asks("3")),)))
    answer = simulate(state, asks("3"), policies={"second": LikesTheSecond})
    assert [(it.key, it.node) for it in answer.course.placed] == [("3", "n2")]


@pytest.mark.parametrize("source", [dump_source, journal_source])
def test_another_policy_of_the_same_name_is_warned_of(source: Source, tmp_path: Path) -> None:
    state = source(tmp_path, "proposing")
    with pytest.warns(PolicyChanged, match="policy 'second' is not the one that decided then"):
        simulate(state, asks("3"), policies={"second": LikesTheFirst})


def test_a_policy_that_no_queue_names_is_not_missed() -> None:
    core = core_with("proposing", "binpacking", {"second": LikesTheSecond})
    assert simulate(state_from_dump(core.state_dump()), asks("3")).course.placed


class Raises:
    """Breaks with the first question."""

    def application_key(self, app: object) -> int:
        raise ValueError(f"no key for {app!r:.0}")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_answer_says_which_policy_has_failed(topology: TopologyName) -> None:
    core = VirtualCore(topology=topology, policies={"raises": Raises}).start()
    fill(core, "fair")
    core.run_until_idle()
    queues = CONFIG.replace("{name: a}", "{name: a, properties: {application.sort.policy: raises}}")
    changed = si.UpdateConfigurationRequest(rm_id=RM, config=queues % "fair")
    answer = core.simulate(changed, asks("3", vcore=20_000), until=5)
    told = [it for it in answer.assumptions if "policy raises of root.a failed: " in it]
    assert len(told) == 1, answer.assumptions
    assert told[0].endswith("what is built in decides there")
    assert "policy raises" not in str(core.simulate(asks("3"), until=5).assumptions)
