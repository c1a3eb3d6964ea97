"""Ten ways more not to fit: what is found is done on a core, and with less of a raise it waits."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests.docs.test_would_it_fit import SCRIPT, done
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Reconfigure
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import Option, Wanted, least_changes

for_s, waiting = SCRIPT["for_s"], SCRIPT["waiting"]
POLICY = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
ONLY = {si.constants.TAG_REQUIRED_NODE: "node-1"}


def two_kinds(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, resources: {max: {vcore: 6, memory: 8}}}")
    _node(cluster, {"vcore": 16_000, "memory": 100})
    cluster.submit("nightly", "job")
    cluster.ask("nightly", "load", 0, size={"vcore": 5_000, "memory": 7}, tags=for_s(600))
    return _waiting(cluster.ask("job", "task", 0, size={"vcore": 2_000, "memory": 3}))


def limit_of_a_group(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, limits: [{limit: '', groups: [dev], maxresources: {vcore: 4}}]}")
    cluster.nodes(node_1=16_000)
    cluster.submit("job", groups=("dev",))
    cluster.submit("other", user="bob", groups=("dev",))
    cluster.ask("other", "first", 3_000, tags=for_s(60))
    return _waiting(cluster.ask("job", "task", 2_000))


def fenced_parent(cluster: Any) -> Wanted:
    cluster.queues(
        "{name: batch}, {name: team, properties: {preemption.policy: fence}, resources: {max: "
        "{vcore: 6}}, queues: [{name: a, resources: {guaranteed: {vcore: 4}}}, {name: b}]}"
    )
    cluster.nodes(node_1=8_000)
    cluster.submit("out")
    cluster.submit("in", queue="root.team.b")
    cluster.submit("job", queue="root.team.a")
    for app in ("out", "in"):
        for key in ("1", "2"):
            cluster.ask(app, key, 2_000, preemption_policy=POLICY, tags=for_s(3600))
    return _waiting(cluster.ask("job", "task", 3_000, preemption_policy=POLICY))


def gang_of_two_groups(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    new = si.AddApplicationRequest(
        application_id="gang", queue_name="root.batch", ugi=si.UserGroupInformation(user="ann"),
        placeholder_ask=si.Resource.of({"vcore": 10_000}),
    )  # fmt: skip
    asks = tuple(
        si.AllocationAsk(
            application_id="gang", allocation_key=group, task_group_name=group, placeholder=True,
            resource_ask=si.Resource.of({"vcore": size}), max_allocations=count,
        )
        for group, size, count in (("drivers", 4_000, 1), ("workers", 2_000, 3))
    )  # fmt: skip
    return Wanted((si.ApplicationRequest(new=(new,)), si.AllocationRequest(asks=asks)))


def too_many_applications(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, maxapplications: 1}")
    cluster.nodes(node_1=8_000)
    cluster.submit("first")
    cluster.ask("first", "a", 1_000, tags=for_s(120))
    cluster.submit("job")
    return _waiting(cluster.ask("job", "task", 1_000))


def placeholders_that_time_out(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, resources: {max: {vcore: 4}}}")
    cluster.nodes(node_1=8_000)
    size = si.Resource.of({"vcore": 4_000})
    cluster.submit("first", placeholder_ask=size, execution_timeout_milli_seconds=60_000)
    for key in ("1", "2"):
        cluster.ask("first", key, 2_000, placeholder=True, task_group_name="workers")
    cluster.submit("job")
    return _waiting(cluster.ask("job", "task", 2_000))


def required_node_is_full(cluster: Any) -> Wanted:
    cluster.queues("{name: batch}, {name: daemons}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("nightly")
    cluster.submit("agents", queue="root.daemons")
    for key in ("1", "2"):
        cluster.ask("nightly", key, 2_000, tags=ONLY | for_s(300))
    return _waiting(cluster.ask("agents", "agent", 1_000, tags=ONLY))


def queue_that_drains(cluster: Any) -> Wanted:
    cluster.queues("{name: batch}, {name: old, resources: {max: {vcore: 2}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job", queue="root.old")
    cluster.ask("job", "first", 2_000, tags=for_s(90))
    wanted = _waiting(cluster.ask("job", "task", 2_000))
    queues = "{name: root, submitacl: '*', queues: [{name: batch}]}"
    config = f"partitions: [{{name: default, queues: [{queues}]}}]"
    cluster.core.update_configuration(si.UpdateConfigurationRequest(rm_id="rm-1", config=config))
    cluster.rest()
    return wanted


def offsets_of_priority(cluster: Any) -> Wanted:
    cluster.queues(
        "{name: batch, properties: {priority.offset: '5'}}, "
        "{name: prod, properties: {priority.offset: '-5'}}"
    )
    cluster.nodes(node_1=4_000)
    cluster.submit("nightly")
    cluster.submit("job", queue="root.prod")
    cluster.ask("nightly", "run", 4_000, tags=for_s(100))
    wanted = _waiting(cluster.ask("job", "task", 4_000))
    cluster.ask("nightly", "next", 4_000, tags=for_s(200))
    return wanted


def share_of_a_device(cluster: Any) -> Wanted:
    cluster.queues("{name: batch}")
    _node(cluster, {"vcore": 8_000, "gpu": 2_000}, {"yunikorn-actors/gpu-devices": "2"})
    cluster.submit("nightly", "job")
    for key in ("1", "2"):
        cluster.ask("nightly", key, 0, size={"vcore": 1_000, "gpu": 700}, tags=for_s(400))
    return _waiting(cluster.ask("job", "task", 0, size={"vcore": 1_000, "gpu": 500}))


def _waiting(whom: tuple[str, str]) -> Wanted:
    wanted: Wanted = waiting(whom)
    return wanted


def _node(cluster: Any, size: dict[str, int], attributes: dict[str, str] | None = None) -> None:
    info = si.NodeInfo(
        node_id="node-1", action=si.ActionFromRM.CREATE, attributes=attributes or {},
        schedulable_resource=si.Resource.of(size),
    )  # fmt: skip
    cluster.core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
    cluster.rest()


FOUND: dict[Callable[[Any], Wanted], set[str]] = {
    two_kinds: {
        "raise vcore in root.batch from 6 to 7 and memory in root.batch from 8 to 10",
        "release nightly/load (memory 7, vcore 5)",
        "wait for 600 s",
    },
    limit_of_a_group: {
        "raise vcore of dev in root.batch from 4 to 5",
        "release other/first (vcore 3)",
        "wait for 60 s",
    },
    fenced_parent: {
        "raise vcore in root.team from 6 to 7 and add a node with vcore 3",
        "release in (vcore 4)",
        "wait for 30 s",
    },
    gang_of_two_groups: {"raise vcore in root.batch from 6 to 10 and add a node with vcore 2"},
    too_many_applications: {
        "raise applications in root.batch from 1 to 2",
        "release first/a (vcore 1)",
        "wait for 120 s",
    },
    placeholders_that_time_out: {
        "raise vcore in root.batch from 4 to 6",
        "release first/1 (vcore 2)",
        "wait for 60 s",
    },
    required_node_is_full: {
        "enlarge node-1 by vcore 1",
        "release nightly/1 (vcore 2)",
        "wait for 300 s",
    },
    queue_that_drains: {"wait for 90 s"},
    offsets_of_priority: {
        "add a node with vcore 8",
        "release nightly and what waits of it (vcore 4)",
        "wait for 300 s",
    },
    share_of_a_device: {
        "add a node with gpu 500, vcore 1",
        "release nightly/1 (gpu 700, vcore 1)",
        "wait for 400 s",
    },
}


def arranged(arrange: Callable[[Any], Wanted], topology: TopologyName) -> tuple[Simulator, Wanted]:
    simulator = Simulator(Topology(topology, settings=Settings(), instance="t"))
    cluster = SCRIPT["Cluster"](
        simulator, simulator.settle, lambda seconds: simulator.advance(seconds * SECOND)
    )
    return simulator, arrange(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("arrange", FOUND, ids=lambda it: it.__name__)
def test_each_change_helps_and_less_does_not(
    arrange: Callable[[Any], Wanted], topology: TopologyName
) -> None:
    simulator, wanted = arranged(arrange, topology)
    found = least_changes(state_of(simulator), wanted)
    assert {it.text for it in found.options} == FOUND[arrange]
    names = set(wanted.asks) or {("gang", "drivers"), ("gang", "workers")}
    for option in found.options:
        assert names <= done(*arranged(arrange, topology), option), option
        for less in _less(option):
            assert not names <= done(*arranged(arrange, topology), less), less


def _less(option: Option) -> list[Option]:
    """Raise one bound by one less."""
    return [
        dataclasses.replace(
            option,
            changes=tuple(
                dataclasses.replace(it, max={kind: amount - 1}) if it is change else it
                for it in option.changes
            ),
        )
        for change in option.changes
        if isinstance(change, Reconfigure)
        for kind, amount in change.max.items()
    ]


def test_a_required_node_that_is_enlarged_keeps_its_attributes() -> None:
    simulator = Simulator(Topology("fused", settings=Settings(), instance="t"))
    cluster = SCRIPT["Cluster"](simulator, simulator.settle, simulator.advance)
    cluster.queues("{name: batch}")
    _node(cluster, {"vcore": 1_000}, {"zone": "b"})
    cluster.submit("job")
    wanted = _waiting(cluster.ask("job", "task", 3_000, tags=ONLY))
    found = least_changes(state_of(simulator), wanted)
    (option,) = found.options
    (request,) = option.changes
    assert isinstance(request, si.NodeRequest)
    (node,) = request.nodes
    assert option.text == "enlarge node-1 by vcore 2"
    assert node.schedulable_resource == si.Resource.of({"vcore": 3_000})
    assert node.attributes["zone"] == "b"


def test_two_small_ones_on_two_nodes_are_less_work_than_a_large_one() -> None:
    simulator = Simulator(Topology("fused", settings=Settings(), instance="t"))
    cluster = SCRIPT["Cluster"](simulator, simulator.settle, simulator.advance)
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=2_000, node_2=2_000)
    cluster.submit("nightly", "job")
    for number in (1, 2):
        on_node = {si.constants.TAG_REQUIRED_NODE: f"node-{number}"}
        cluster.ask("nightly", f"large-{number}", 1_500, tags=on_node)
        cluster.ask("nightly", f"small-{number}", 500, tags=on_node)
    wanted = _waiting(cluster.ask("job", "task", 500, max_allocations=2))
    found = least_changes(state_of(simulator), wanted)
    assert [it.text for it in found.options if it.kind == "release"] == [
        "release nightly/small-1 (vcore 500m) and nightly/small-2 (vcore 500m)"
    ]
