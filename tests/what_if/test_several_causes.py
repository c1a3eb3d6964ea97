"""Asks that wait for several things at once: each change is done on cores, and less does not do."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from tests.docs.test_would_it_fit import SCRIPT, started
from tests.what_if.test_more_misfits import ONLY, POLICY, for_s, waiting
from yunikorn_actors import InvalidRequest, si
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.scenario.drivers import Played, ServiceDriver
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Reconfigure, changed
from yunikorn_actors.what_if.core_state import CoreState, state_of
from yunikorn_actors.what_if.least_change import LeastChange, Option, Wanted, least_changes
from yunikorn_actors.what_if.text import way_lines

RM = "rm-1"


class BobFirst:
    """An order of one's own: what bob wants goes first."""

    def application_key(self, app: Any) -> tuple[bool]:
        return (app.user != "bob",)


POLICIES = {"bob-first": BobFirst}
Arranged = Callable[[Any], Wanted]


def user_below_group_and_wildcards(cluster: Any) -> Wanted:
    limits = (
        "{limit: '', users: [ann], maxresources: {vcore: 3}}, "
        "{limit: '', users: ['*'], maxresources: {vcore: 5}}, "
        "{limit: '', groups: [dev], maxresources: {vcore: 4}}, "
        "{limit: '', groups: ['*'], maxresources: {vcore: 6}}"
    )
    cluster.queues(f"{{name: batch, limits: [{limits}]}}")
    cluster.nodes(node_1=16_000)
    cluster.submit("job", groups=("dev",))
    cluster.submit("peer", user="bob", groups=("dev",))
    cluster.ask("peer", "first", 2_000, tags=for_s(300))
    cluster.ask("job", "first", 2_000, tags=for_s(600))
    return _waiting(cluster.ask("job", "task", 2_000))


def wildcards_alone(cluster: Any) -> Wanted:
    limits = (
        "{limit: '', users: ['*'], maxresources: {vcore: 3}}, "
        "{limit: '', groups: [qa], maxresources: {vcore: 9}}, "
        "{limit: '', groups: ['*'], maxresources: {vcore: 4}}"
    )
    cluster.queues(f"{{name: batch, limits: [{limits}]}}")
    cluster.nodes(node_1=16_000)
    cluster.submit("job", user="cid", groups=("ops",))
    cluster.submit("peer", user="bob", groups=("hr",))
    cluster.ask("peer", "first", 2_000, tags=for_s(300))
    cluster.ask("job", "first", 2_000, tags=for_s(600))
    return _waiting(cluster.ask("job", "task", 2_000))


def parent_and_leaf(cluster: Any) -> Wanted:
    cluster.queues(
        "{name: team, resources: {max: {vcore: 8}}, queues: "
        "[{name: a, resources: {max: {vcore: 4}}}, {name: b}]}"
    )
    cluster.nodes(node_1=16_000)
    cluster.submit("job", queue="root.team.a")
    cluster.submit("other", queue="root.team.b")
    cluster.ask("job", "first", 3_000, tags=for_s(600))
    cluster.ask("other", "first", 4_000, tags=for_s(300))
    return _waiting(cluster.ask("job", "task", 2_000))


def gang_of_two_sizes_behind_a_reservation(cluster: Any) -> Wanted:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=6_000, node_2=4_000)
    cluster.submit("nightly", "large")
    cluster.ask("nightly", "one", 3_000, tags=ONLY | for_s(600))
    second = {si.constants.TAG_REQUIRED_NODE: "node-2"}
    cluster.ask("nightly", "two", 3_000, tags=second | for_s(900))
    cluster.ask("large", "whole", 4_000, tags=for_s(600))
    cluster.pass_time(10)
    new = _application("gang", placeholder_ask=si.Resource.of({"vcore": 4_000}))
    asks = tuple(
        si.AllocationAsk(
            application_id="gang", allocation_key=group, task_group_name=group, placeholder=True,
            resource_ask=si.Resource.of({"vcore": size}), max_allocations=count,
        )
        for group, size, count in (("driver", 2_000, 1), ("worker", 1_000, 2))
    )  # fmt: skip
    return Wanted((new, si.AllocationRequest(asks=asks)))


def drained_node_and_a_quota(cluster: Any) -> Wanted:
    """The one node with such a device is drained, and the queue is full."""
    cluster.queues("{name: batch, resources: {max: {vcore: 3}}}")
    _node(cluster.core, "node-1", {"vcore": 8_000, "nvidia.com/gpu": 2})
    _node(cluster.core, "node-2", {"vcore": 8_000})
    cluster.rest()
    cluster.drain("node-1")
    cluster.submit("job")
    cluster.ask("job", "first", 1_000)
    size = {"vcore": 3_000, "nvidia.com/gpu": 1}
    return _waiting(cluster.ask("job", "task", 0, size=size))


def drained_node_and_a_type_no_node_has(cluster: Any) -> Wanted:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=8_000, node_2=2_000)
    cluster.drain("node-1")
    cluster.submit("job")
    size = {"vcore": 4_000, "nvidia.com/gpu": 1}
    return _waiting(cluster.ask("job", "task", 0, size=size))


def running_applications_of_queue_and_user(cluster: Any) -> Wanted:
    cluster.queues(
        "{name: batch, maxapplications: 2, limits: [{limit: '', users: [ann], maxapplications: 1}]}"
    )
    cluster.nodes(node_1=8_000)
    cluster.submit("first")
    cluster.submit("second", user="bob")
    cluster.ask("first", "task", 1_000, tags=for_s(120))
    cluster.ask("second", "task", 1_000, tags=for_s(240))
    cluster.submit("job")
    return _waiting(cluster.ask("job", "task", 1_000))


def order_of_ones_own(cluster: Any) -> Wanted:
    """What came later goes first, because it is bob's."""
    cluster.queues(
        "{name: batch, properties: {application.sort.policy: bob-first}, "
        "resources: {max: {vcore: 4}}}"
    )
    cluster.nodes(node_1=16_000)
    cluster.submit("nightly", "job")
    cluster.ask("nightly", "load", 4_000, tags=for_s(600))
    wanted = _waiting(cluster.ask("job", "task", 3_000))
    cluster.submit("late", user="bob")
    cluster.ask("late", "task", 4_000, tags=for_s(300))
    return wanted


def placed_elsewhere_than_it_names(cluster: Any) -> Wanted:
    """A rule places what bob submits to root.batch below root.users, which is full."""
    cluster.queues(
        "{name: users, parent: true, resources: {max: {vcore: 2}}}, {name: batch}",
        ", placementrules: [{name: user, create: true, parent: {name: fixed, value: root.users}}]",
    )
    cluster.nodes(node_1=8_000)
    cluster.submit("first")
    cluster.ask("first", "task", 2_000, tags=for_s(300))
    size = si.Resource.of({"vcore": 1_000})
    ask = si.AllocationAsk(application_id="job", allocation_key="task", resource_ask=size)
    return Wanted((_application("job", user="bob"), si.AllocationRequest(asks=(ask,))))


def draining_queue(cluster: Any) -> Wanted:
    """Nobody may come to a queue that drains, whatever is raised."""
    cluster.queues("{name: batch}, {name: old, resources: {max: {vcore: 4}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("first", queue="root.old")
    cluster.ask("first", "task", 2_000, tags=for_s(90))
    queues = "{name: root, submitacl: '*', queues: [{name: batch}]}"
    config = f"partitions: [{{name: default, queues: [{queues}]}}]"
    cluster.core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=config))
    cluster.rest()
    size = si.Resource.of({"vcore": 1_000})
    ask = si.AllocationAsk(application_id="job", allocation_key="task", resource_ask=size)
    new = _application("job", queue="root.old")
    return Wanted((new, si.AllocationRequest(asks=(ask,))))


def another_partition(cluster: Any) -> Wanted:
    """The same names are in both partitions, and only one of them is full."""
    root = "{name: root, submitacl: '*', queues: [{name: batch, resources: {max: {vcore: %d}}}]}"
    parts = ", ".join(
        f"{{name: {name}, queues: [{root % most}]}}" for name, most in (("default", 4), ("gpu", 2))
    )
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=f"partitions: [{parts}]")
    cluster.core.register_resource_manager(request, si.ResourceManagerCallback())
    cluster.nodes(node_1=8_000)
    _node(cluster.core, "gpu-1", {"vcore": 3_000}, partition="gpu")
    cluster.submit("first", "job", partition_name="gpu")
    cluster.ask("first", "task", 2_000, tags=for_s(300), partition_name="gpu")
    return _waiting(cluster.ask("job", "task", 2_000, partition_name="gpu"))


def another_manager(cluster: Any) -> Wanted:
    cluster.queues("{name: batch, resources: {max: {vcore: 1}}}")
    cluster.nodes(node_1=8_000)
    core, rm = cluster.core, {"rm_id": "rm-2"}
    root = "{name: root, submitacl: '*', queues: [{name: batch, resources: {max: {vcore: 4}}}]}"
    config = f"partitions: [{{name: default, queues: [{root}]}}]"
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(**rm, policy_group="rm-2", config=config),
        si.ResourceManagerCallback(),
    )
    _node(core, "node-2", {"vcore": 5_000}, **rm)
    for app, vcore, tags in (("other", 3_000, for_s(300)), ("job", 3_000, {})):
        core.update_application(with_fields(_application(app), **rm))
        size = si.Resource.of({"vcore": vcore})
        ask = si.AllocationAsk(
            application_id=app, allocation_key="task", resource_ask=size, tags=tags
        )
        core.update_allocation(si.AllocationRequest(asks=(ask,), **rm))
        cluster.rest()
    return _waiting(("job", "task"))


def budget_that_is_used_up(cluster: Any) -> Wanted:
    """One victim in ten minutes may be taken from this queue, and one was."""
    cluster.queues(
        "{name: batch, properties: {preemption.budget: '1/10m'}}, "
        "{name: prod, resources: {guaranteed: {vcore: 6}}, properties: {preemption.delay: 1s}}"
    )
    cluster.nodes(node_1=8_000)
    cluster.submit("nightly")
    cluster.submit("first", "job", queue="root.prod")
    for key in "1234":
        cluster.ask("nightly", key, 2_000, preemption_policy=POLICY, tags=for_s(3600))
    cluster.ask("first", "task", 2_000, preemption_policy=POLICY)
    cluster.pass_time(5)
    return _waiting(cluster.ask("job", "task", 2_000, preemption_policy=POLICY))


def fence_and_a_quota(cluster: Any) -> Wanted:
    """Behind its fence there is nothing to preempt, and its queue is too small as well."""
    cluster.queues(
        "{name: out}, {name: team, properties: {preemption.policy: fence}, queues: "
        "[{name: x, resources: {guaranteed: {vcore: 2}, max: {vcore: 2}}}, {name: y}]}"
    )
    cluster.nodes(node_1=4_000)
    cluster.submit("other", queue="root.out")
    cluster.submit("job", queue="root.team.x")
    cluster.ask("other", "task", 4_000, preemption_policy=POLICY, tags=for_s(500))
    return _waiting(cluster.ask("job", "task", 3_000, preemption_policy=POLICY))


def raise_that_others_take(cluster: Any) -> Wanted:
    """Room by a release goes to what matters most; a configuration is decided by before."""
    cluster.queues("{name: batch, limits: [{limit: '', users: [ann], maxresources: {vcore: 2}}]}")
    cluster.nodes(node_1=3_000)
    cluster.submit("old", "other", "job")
    cluster.ask("old", "task", 2_000)
    cluster.ask("other", "task", 1_000, max_allocations=20)
    return _waiting(cluster.ask("job", "task", 3_000, priority=5))


FOUND: dict[Arranged, set[str]] = {
    raise_that_others_take: {
        "raise vcore of ann in root.batch from 2 to 6 and add a node with vcore 3"
    },
    user_below_group_and_wildcards: {
        "raise vcore of ann in root.batch from 3 to 4 and vcore of dev in root.batch from 4 to 6",
        "wait for 600 s",
    },
    wildcards_alone: {
        (
            "raise vcore of every other user (*) in root.batch from 3 to 4 and vcore of all other "
            "groups (*) in root.batch from 4 to 6"
        ),
        "wait for 600 s",
    },
    parent_and_leaf: {
        "raise vcore in root.team from 8 to 9 and vcore in root.team.a from 4 to 5",
        "wait for 600 s",
    },
    gang_of_two_sizes_behind_a_reservation: {
        "add a node with vcore 3",
        "release nightly (vcore 6)",
        "wait for 890 s",
    },
    drained_node_and_a_quota: {
        "raise vcore in root.batch from 3 to 4 and add a node with nvidia.com/gpu 1, vcore 3",
        "raise vcore in root.batch from 3 to 4 and let node-1 take work again",
    },
    drained_node_and_a_type_no_node_has: {"add a node with nvidia.com/gpu 1, vcore 4"},
    running_applications_of_queue_and_user: {
        (
            "raise applications in root.batch from 2 to 3 and applications of ann in root.batch "
            "from 1 to 2"
        ),
        "release first/task (vcore 1)",
        "wait for 120 s",
    },
    order_of_ones_own: {"raise vcore in root.batch from 4 to 7", "wait for 900 s"},
    placed_elsewhere_than_it_names: {
        "raise vcore in root.users from 2 to 3",
        "release first/task (vcore 2)",
        "wait for 300 s",
    },
    draining_queue: set(),
    another_partition: {
        (
            "raise vcore in root.batch of partition gpu from 2 to 4 and add a node with vcore 2 to "
            "partition gpu"
        ),
        "release first/task (vcore 2)",
        "wait for 300 s",
    },
    another_manager: {
        "raise vcore in root.batch from 4 to 6 and add a node with vcore 3",
        "release other/task (vcore 3)",
        "wait for 300 s",
    },
    budget_that_is_used_up: {
        "add a node with vcore 2",
        "release nightly/1 (vcore 2)",
        "wait for 596 s",
    },
    fence_and_a_quota: {
        "raise vcore in root.team.x from 2 to 3 and add a node with vcore 3",
        "raise vcore in root.team.x from 2 to 3 and release other/task (vcore 4)",
    },
}


def _waiting(whom: tuple[str, str]) -> Wanted:
    wanted: Wanted = waiting(whom)
    return wanted


def _application(
    name: str, user: str = "ann", queue: str = "root.batch", **fields: Any
) -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user=user, groups=(user,))
    new = si.AddApplicationRequest(application_id=name, queue_name=queue, ugi=ugi, **fields)
    return si.ApplicationRequest(new=(new,))


def _node(
    core: Gateway, name: str, size: dict[str, int], partition: str = "", rm_id: str = RM
) -> None:
    attributes = {si.constants.NODE_PARTITION: partition} if partition else {}
    info = si.NodeInfo(
        node_id=name, action=si.ActionFromRM.CREATE, attributes=attributes,
        schedulable_resource=si.Resource.of(size),
    )  # fmt: skip
    core.update_node(si.NodeRequest(rm_id=rm_id, nodes=(info,)))


def arranged(arrange: Arranged, topology: TopologyName) -> tuple[Simulator, Wanted]:
    simulator = Simulator(_topology(topology))
    return simulator, arrange(_cluster(simulator, simulator.settle, simulator.advance))


def _topology(name: TopologyName) -> Topology:
    return Topology(name, settings=Settings(), instance="t", policies=Policies(POLICIES))


def _cluster(core: Gateway, rest: Any, advance: Any) -> Any:
    return SCRIPT["Cluster"](core, rest, lambda seconds: advance(seconds * SECOND))


def found_for(arrange: Arranged, topology: TopologyName) -> LeastChange:
    simulator, wanted = arranged(arrange, topology)
    return least_changes(state_of(simulator), wanted, policies=POLICIES)


def asked(wanted: Wanted) -> Counter[tuple[str, str]]:
    """Return how many repeats of each ask are to start."""
    new = (it.asks for it in wanted.changes if isinstance(it, si.AllocationRequest))
    brought = {
        (ask.application_id, ask.allocation_key): ask.max_allocations
        for asks in new
        for ask in asks
    }
    return Counter(dict.fromkeys(wanted.asks, 1) or brought)


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("arrange", FOUND, ids=lambda it: it.__name__)
def test_each_change_helps_and_less_does_not(arrange: Arranged, topology: TopologyName) -> None:
    found = found_for(arrange, topology)
    assert {it.text for it in found.options} == FOUND[arrange]
    for option in found.options:
        simulator, wanted = arranged(arrange, topology)
        assert asked(wanted) <= started(simulator, wanted, option), option
        for less in _less(option):
            try:
                others = started(*arranged(arrange, topology), less)
            except InvalidRequest:
                # Such as a maximum that would be below what its queue is guaranteed.
                continue
            assert not asked(wanted) <= others, less


def _less(option: Option) -> Iterator[Option]:
    """Yield the option without one of its changes, and with one amount of it a little less."""
    for number, change in enumerate(option.changes):
        others = option.changes[:number], option.changes[number + 1 :]
        for less in (None, *_smaller(change)):
            some = () if less is None else (less,)
            yield dataclasses.replace(option, changes=(*others[0], *some, *others[1]))
    if option.after_s:
        yield dataclasses.replace(option, after_s=option.after_s - 1)


def _smaller(change: Any) -> Iterator[Any]:
    if isinstance(change, Reconfigure):
        for kind, amount in change.max.items():
            yield dataclasses.replace(change, max={kind: amount - 1})
    elif isinstance(change, si.NodeRequest) and change.nodes[0].schedulable_resource is not None:
        (node,) = change.nodes
        size = node.schedulable_resource.amounts()
        for kind, amount in size.items():
            room = si.Resource.of({**size, kind: amount - 1})
            yield with_fields(change, nodes=(with_fields(node, schedulable_resource=room),))


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("arrange", FOUND, ids=lambda it: it.__name__)
def test_each_change_of_now_helps_on_threads(arrange: Arranged, topology: TopologyName) -> None:
    """The same on a core in service, which gets the very requests; there work does not end."""
    simulator, _ = arranged(arrange, topology)
    state = state_of(simulator)
    for option in found_for(arrange, topology).options:
        if not option.after_s:
            driver = ServiceDriver(driver="threads", topology=_topology(topology), trace=None)
            try:
                wanted = arrange(_cluster(driver.core, driver.settle, driver.advance))
                _confirm(driver)
                _make(driver, state, [*option.changes, *wanted.changes])
                assert asked(wanted) <= _placed(driver), option
            finally:
                driver.close()


def _make(driver: Played, state: CoreState, changes: list[Any]) -> None:
    core: Any = driver.core
    calls = {
        si.NodeRequest: core.update_node,
        si.ApplicationRequest: core.update_application,
        si.AllocationRequest: core.update_allocation,
    }
    configs = {it.registration.rm_id: it for it in state.registered.managers}
    raised: dict[str, Any] = {}
    for change in changes:
        rm_id = change.rm_id or RM
        if isinstance(change, Reconfigure):
            group = configs[rm_id].registration.policy_group
            raised[rm_id] = changed(raised.get(rm_id) or state.config_of(group), change)
            update = si.UpdateConfigurationRequest(rm_id=rm_id, policy_group=group)
            core.managers.configure(update, raised[rm_id])
        else:
            calls[type(change)](with_fields(change, rm_id=rm_id))
        driver.settle()


def _confirm(driver: Any) -> None:
    """Give back what was preempted while the situation was set up."""
    part = driver.core.state_dump()["partitions"][f"[{RM}]default"]
    gone = tuple(
        si.AllocationRelease(
            application_id=id_, allocation_key=it["key"], uuid=it["uuid"],
            termination_type=si.TerminationType[it["releasing"]],
        )
        for id_, app in part["applications"].items()
        for it in app["allocations"]
        if it["releasing"]
    )  # fmt: skip
    if gone:
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        driver.core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        driver.settle()


def _placed(driver: Any) -> Counter[tuple[str, str]]:
    return Counter(
        (id_, it["key"])
        for part in driver.core.state_dump()["partitions"].values()
        for id_, app in part["applications"].items()
        for it in app["allocations"]
    )


def test_what_keeps_it_away_is_named_with_its_remedy() -> None:
    """An operator reads this alone: who is in the way, and what would mend it."""
    lines = {
        it: list(way_lines(found_for(it, "fused"))) for it in (draining_queue, wildcards_alone)
    }
    assert lines[draining_queue] == [
        (
            "not taken: failed to place application job: application rejected: no placement rule "
            "matched: queue root.old is draining"
        ),
        "no single change of these lets it start: a raise, a node, a release, waiting",
    ]
    assert lines[wildcards_alone][0].startswith(
        "job/task waits: limit of user cid in root.batch has no room for it, vcore 1 short"
    )


def test_an_ask_that_runs_is_no_question() -> None:
    simulator, _ = arranged(parent_and_leaf, "fused")
    with pytest.raises(InvalidRequest, match="ask job/first: it neither waits nor is brought"):
        least_changes(state_of(simulator), _waiting(("job", "first")))


def test_the_ask_that_waits_is_meant_where_two_partitions_have_its_name() -> None:
    simulator, wanted = arranged(another_partition, "fused")
    cluster = _cluster(simulator, simulator.settle, simulator.advance)
    cluster.submit("job")
    cluster.ask("job", "task", 1_000)
    found = least_changes(state_of(simulator), wanted)
    assert not found.fits
    assert {it.text for it in found.options} >= {"wait for 300 s"}
