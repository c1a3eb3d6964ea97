"""What an operator is told where several things stand in the way, or change under way.

Each case says what is asked about and every line that matters of the answer.
"""

import runpy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pages import REPOSITORY

from yunikorn_actors import UnknownAsk, si
from yunikorn_actors.core import questions
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines import planning_loop
from yunikorn_actors.machines import planning_loop as explaining
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.reasons import Why
from yunikorn_actors.planning.why import inquiry
from yunikorn_actors.planning.why import waiting_counts as waiting
from yunikorn_actors.planning.why.survey import Survey, survey
from yunikorn_actors.values.durations import SECOND

SCRIPT = runpy.run_path(str(REPOSITORY / "docs/situations.py"))
RM = SCRIPT["RM"]
PUSHY = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
GANG = {"task_group_name": "workers"}
Whom = tuple[str, str]


class Cluster(SCRIPT["Cluster"]):  # type: ignore[misc] - of a script
    """With what changes under way."""

    core: Simulator

    def configure(self, queues: str) -> None:
        config = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{queues}]}}]}}]"
        self.core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=config))
        self.rest()

    def foreign(self, key: str, node: str, vcore: int) -> None:
        item = si.Allocation(
            application_id="", allocation_key=key, node_id=node,
            resource_per_alloc=si.Resource.of({"vcore": vcore}),
            allocation_tags={si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT},
        )  # fmt: skip
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, allocations=(item,)))
        self.rest()


def cluster(topology: TopologyName, **settings: Any) -> Cluster:
    core = Simulator(Topology(topology, settings=Settings(**settings), instance="core"))
    return Cluster(core, core.settle, lambda seconds: core.advance(seconds * SECOND))


def _everything(it: Cluster) -> Whom:
    limit = "limits: [{limit: '', users: [ann], maxresources: {vcore: 7}}]"
    batch = f"{{name: batch, resources: {{max: {{vcore: 8}}}}, {limit}}}"
    it.queues(f"{{name: team, resources: {{max: {{vcore: 10}}}}, queues: [{batch}]}}")
    it.nodes(n1=4_000, n2=4_000, n3=4_000)
    it.submit("job", queue="root.team.batch")
    for key in ("a", "b", "c"):
        it.ask("job", key, 2_000)
    it.drain("n3")
    return it.ask("job", "large", 9_000)


def _lowered(it: Cluster) -> Whom:
    it.queues("{name: batch, resources: {max: {vcore: 8}}}")
    it.nodes(n1=10_000)
    it.submit("job")
    it.ask("job", "runs", 6_000)
    it.configure("{name: batch, resources: {max: {vcore: 4}}}")
    return it.ask("job", "more", 1_000)


def _foreign(it: Cluster) -> Whom:
    it.queues("{name: batch}")
    it.nodes(n1=4_000, n2=4_000)
    it.foreign("daemon", "n1", 3_000)
    it.foreign("other", "n2", 3_500)
    it.submit("job")
    return it.ask("job", "task", 2_000)


def _returning(it: Cluster) -> Whom:
    """Its node went and came back drained."""
    it.queues("{name: batch}")
    it.nodes(n1=4_000)
    it.submit("job")
    whom = it.ask("job", "task", 5_000)
    it._node("n1", si.ActionFromRM.DECOMISSION)
    size = si.Resource.of({"vcore": 6_000})
    it._node("n1", si.ActionFromRM.CREATE_DRAIN, schedulable_resource=size)
    return whom


def _nothing(it: Cluster) -> Whom:
    it.queues("{name: batch}")
    it.submit("job")
    return it.ask("job", "task", 1_000)


def _victims(it: Cluster, also: str = "") -> None:
    poor = "{name: poor, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}"
    top = f"{{name: top, queues: [{{name: rich}}, {poor}]{also}}}"
    it.queues(top, ", preemption: {enabled: true}")
    it.nodes(n1=4_000)
    it.submit("r", queue="root.top.rich")
    it.submit("p", queue="root.top.poor")
    for key in ("v1", "v2"):
        it.ask("r", key, 2_000, preemption_policy=PUSHY)
    it.ask("p", "want", 2_000, preemption_policy=PUSHY)


def _search_is_to_come(it: Cluster) -> Whom:
    _victims(it)
    return "p", "want"


def _victims_go(it: Cluster) -> Whom:
    _victims(it)
    it.pass_time(3)
    return "p", "want"


def _one_victim_of_two_is_gone(it: Cluster) -> Whom:
    """Its own room is secured on the node, and that of nobody else."""
    _victims(it)
    it.ask("p", "large", 4_000, preemption_policy=PUSHY, priority=9)
    it.pass_time(5)
    gone = si.AllocationRelease(
        application_id="r", allocation_key="v1",
        termination_type=si.TerminationType.PREEMPTED_BY_SCHEDULER,
    )  # fmt: skip
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    it.core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    it.rest()
    return "p", "large"


def _victim(it: Cluster) -> Whom:
    _victims_go(it)
    return "r", "v2"


def _behind_a_promise(it: Cluster) -> Whom:
    _victims(it, ", resources: {max: {vcore: 4}}")
    it.pass_time(3)
    return it.ask("r", "more", 1_000)


def _one_of_two(it: Cluster, second: int = 2_000) -> Whom:
    it.queues("{name: batch}")
    it.nodes(n1=3_000, n2=1_500)
    it.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2_000 + second}))
    it.ask("gang", "hold-1", 2_000, placeholder=True, **GANG)
    it.ask("gang", "hold-2", second, placeholder=True, **GANG)
    return it.ask("gang", "worker", 2_000, **GANG)


def _one_never(it: Cluster) -> Whom:
    return _one_of_two(it, 3_500)


def _refused_member(it: Cluster) -> Whom:
    it.queues("{name: batch}")
    it.nodes(n1=4_000)
    it.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2_000}))
    it.ask("gang", "hold-1", 2_000, placeholder=True, **GANG)
    return it.ask("gang", "choosy", 2_000, **GANG)


def _timed_out(it: Cluster) -> Whom:
    """The soft gang goes on as a plain application when its placeholders are gone."""
    it.queues("{name: batch}")
    it.nodes(n1=3_000)
    it.submit(
        "gang",
        placeholder_ask=si.Resource.of({"vcore": 4_000}),
        execution_timeout_milli_seconds=10_000,
    )
    for key in ("hold-1", "hold-2"):
        it.ask("gang", key, 2_000, placeholder=True, **GANG)
    it.pass_time(11)
    return "gang", "hold-2"


def _stateaware(it: Cluster) -> Whom:
    it.queues("{name: batch, properties: {application.sort.policy: stateaware}}")
    it.nodes(n1=4_000)
    it.submit("first", "second")
    it.ask("first", "task", 5_000)
    return it.ask("second", "task", 1_000)


def _required(it: Cluster) -> Whom:
    it.queues("{name: batch}")
    it.nodes(n1=4_000)
    it.submit("job")
    return it.ask("job", "agent", 9_000, tags={si.constants.TAG_REQUIRED_NODE: "n1"})


def _away(it: Cluster) -> Whom:
    """Waiting for the resource manager would not help this one."""
    it.queues("{name: batch}")
    it.nodes(n1=4_000)
    it.submit("job")
    whom: Whom = it.ask("job", "large", 5_000)
    it.core.resource_manager_lost(RM)
    it.rest()
    return whom


CASES: dict[str, tuple[Callable[[Cluster], Whom], list[str]]] = {
    "everything at once": (_everything, [
        ("1. QUEUE_LIMIT: queue root.team.batch can never hold it: it asks for vcore 9, "
        "and the maximum is vcore 8"),
        ("2. QUEUE_LIMIT: queue root.team has no room for it, vcore 5 short: vcore 6 "
        "of vcore 10 are used"),
        ("3. CLUSTER_FULL: the whole cluster has no room for it, vcore 3 short: "
        "vcore 6 of vcore 12 are used"),
        ("4. USER_LIMIT: limit of user ann in root.team.batch can never hold it: it asks for "
        "vcore 9, and the maximum is vcore 7"),
        ("5. NO_NODE: none of 3 nodes could hold it even when empty; n1 is nearest, "
        "vcore 5 short"),
    ]),
    "a quota that was lowered": (_lowered, [
        ("1. QUEUE_LIMIT: queue root.batch has no room for it, vcore 3 short: vcore 6 "
        "of vcore 4 are used"),
        "nodes with room for it now: 1",
    ]),
    "foreign work": (_foreign, [
        ("1. NO_NODE: of 2 nodes: 2 too full (short of vcore on 2); n1 is nearest, "
        "vcore 1 short (others use vcore 3 there)"),
    ]),
    "a node that came back drained": (_returning, [
        "1. NO_NODE: of 1 node: 1 taking no work",
        "let nodes take work that are drained or not ready (1 would do), or add a node that has room",
    ]),
    "no node at all": (_nothing, ["1. NO_NODE: there is no node", "add a node"]),
    "a search for victims is to come": (_search_is_to_come, [
        "preemption: no victims have been looked for yet (the next search may begin in 1 s)",
    ]),
    "victims on their way": (_victims_go, [
        "1. NODE_KEPT: n1 is reserved for it and is vcore 2 short",
        "reserved for it: n1",
        "preemption: victims are preempted for it; their end is not confirmed yet",
    ]),
    "one victim of two is gone": (_one_victim_of_two_is_gone, [
        "1. NODE_KEPT: n1 is reserved for it and is vcore 2 short",
        "reserved for it: n1",
    ]),
    "a victim": (_victim, [
        "1. PLACED: it runs on n1; asked back: 1 of 1 (PREEMPTED_BY_SCHEDULER for want of p)",
    ]),
    "behind room that is promised": (_behind_a_promise, [
        ("1. QUEUE_LIMIT: queue root.top has no room for it, vcore 3 short: vcore 4 of "
        "vcore 4 are used, and vcore 2 are promised to others"),
        "3. NO_NODE: of 1 node: 1 reserved for others (n1 for want of p)",
    ]),
    "one placeholder of two": (_one_of_two, [
        ("1. GANG_WAITS: 1 of 2 placeholders of its gang are placed; hold-2 waits: of 2 nodes: 1 "
        "too small, 1 too full (short of vcore on 2); n1 is nearest, vcore 1 short"),
    ]),
    "one placeholder of two, and the other never": (_one_never, [
        ("1. GANG_WAITS: 1 of 2 placeholders of its gang are placed; hold-2 waits: none of 2 nodes "
        "could hold it even when empty; n1 is nearest, vcore 500m short"),
    ]),
    "a member that may not take over": (_refused_member, [
        ("1. GANG_WAITS: it may not take over a placeholder: n1 (is in another zone); no other node "
        "has room"),
    ]),
    "a placeholder that was withdrawn": (_timed_out, [
        "1. REJECTED: the core withdrew it: releasing pending placeholders on placeholder timeout",
    ]),
    "an application that is to start first": (_stateaware, [
        "1. STATEAWARE_BUSY: queue root.batch starts one application at a time, before it: first",
    ]),
    "a required node that is too small": (_required, [
        "1. NO_NODE: node n1 could not hold it even when empty; it is vcore 5 short",
        "make it larger, or ask for less",
    ]),
    "a resource manager that is away": (_away, [
        "1. RM_PAUSED: its resource manager is away, so its partitions are suspended",
        ("2. CLUSTER_FULL: all nodes together are smaller: it asks for vcore 5, and they have "
        "vcore 4"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("case", CASES)
def test_what_is_told(case: str, topology: TopologyName) -> None:
    arrange, expected = CASES[case]
    it = cluster(topology)
    lines = [line.strip() for line in it.core.explain(*arrange(it)).lines()]
    assert expected == [line for line in lines if line in expected], "\n".join(lines)


DECISIVE = {
    "a resource manager that is away": "CLUSTER_FULL",
    "one placeholder of two, and the other never": "GANG_WAITS",
    "a quota that was lowered": "QUEUE_LIMIT",
}


@pytest.mark.parametrize("case", DECISIVE)
def test_what_to_look_at_first(case: str) -> None:
    it = cluster("fused")
    why: Why = it.core.explain(*CASES[case][0](it))
    assert DECISIVE[case] == why.decisive.cause
    assert (case != "a quota that was lowered") is why.decisive.never
    assert str(why.decisive) in str(why)


def test_a_line_says_that_victims_go() -> None:
    it = cluster("fused")
    assert str(it.core.explain(*_victims_go(it))).endswith("their end is not confirmed yet")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_ask_is_found_in_the_partition_that_has_it(topology: TopologyName) -> None:
    it = cluster(topology)
    root = "queues: [{name: root, submitacl: '*', queues: [{name: batch}]}]"
    config = f"partitions: [{{name: default, {root}}}, {{name: gpu, {root}}}]"
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
    it.core.register_resource_manager(request, si.ResourceManagerCallback())
    it.submit("job", partition_name="gpu")
    it.ask("job", "task", 1_000, partition_name="gpu")
    it.ask("job", "lost", 1_000, partition_name="default")
    assert "NO_NODE" == it.core.explain("job", "task").obstacle.cause
    lost = it.core.explain("job", "lost", partition="[rm-1]default")
    assert "it was rejected: failed to find application job" == lost.obstacle.text
    with pytest.raises(UnknownAsk):
        it.core.explain("job", "task", partition="[rm-1]default")


def test_many_sizes_are_counted_without_a_look_at_all_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list of all asks has a bound on its work; the causes are right all the same."""
    it = cluster("fused")
    it.queues("{name: batch}")
    it.nodes(n1=1_000, n2=8_000)
    it.submit("job")
    it.ask("job", "runs", 8_000)
    for number in range(1, 5):
        it.ask("job", f"task-{number}", 1_000 + number)
    it.nodes(n3=500, n4=900)
    every = it.core.state_dump()["waiting"]["[rm-1]default"]
    monkeypatch.setattr(questions, "LOOKS_MAX", 8)
    some = it.core.state_dump()["waiting"]["[rm-1]default"]
    looked = [sum("nodes" in ask["obstacle"] for ask in it["asks"]) for it in (every, some)]
    assert [4, 2] == looked
    assert [0, 0, None, None] == [ask["nodes_with_room"] for ask in some["asks"]]
    assert {"NO_NODE": 4} == every["causes"] == some["causes"]


def test_a_list_of_all_is_made_in_parts_of_one_look_at_all_nodes_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planner that looks at 10,000 nodes for each of many sizes would place nothing meanwhile."""
    it = cluster("fused")
    it.queues("{name: batch}")
    it.nodes(n1=1_000, n2=8_000, n3=500)
    it.submit("job")
    it.ask("job", "runs", 8_000)
    for number in range(1, 7):
        it.ask("job", f"task-{number}", 1_000 + number)
    it.ask("job", "task-7", 1_001)
    (before,) = it.core.state_dump()["waiting"].values()
    looks: list[int] = []
    answered = explaining.explanation

    def looked(*arguments: Any) -> Any:
        looks.append(0)
        return answered(*arguments)

    def look(ask: AskView, nodes: Sequence[NodeView]) -> Survey:
        looks[-1] += len(nodes)
        return survey(ask, nodes)

    monkeypatch.setattr(planning_loop, "explanation", looked)
    monkeypatch.setattr(inquiry, "survey", look)
    monkeypatch.setattr(waiting, "SURVEYED_MAX", 3, raising=False)
    (parts,) = it.core.state_dump()["waiting"].values()
    assert before == parts
    assert 7 == parts["total"] == len(parts["asks"])
    assert parts["is_complete"]
    assert 3 == max(looks)
    assert len(looks) > 6


def test_rejections_are_remembered_up_to_a_number() -> None:
    it = cluster("fused", rejected_max=2)
    it.queues("{name: batch}")
    for key in ("a", "b", "c"):
        it.ask("ghost", key, 1_000)
    assert ["c", "b"] == [
        a["key"] for a in it.core.state_dump()["waiting"]["[rm-1]default"]["rejected"]
    ]
    with pytest.raises(UnknownAsk, match="failed to find application ghost"):
        it.core.explain("ghost", "a")
