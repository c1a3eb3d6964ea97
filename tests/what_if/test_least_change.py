"""The least change: each is done on a live core, and one less than it does not do."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from support import RM

from tests.what_if.test_simulate import SECOND, asks, busy, node
from yunikorn_actors import InvalidRequest, VirtualCore, si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.values.tags import GPU_DEVICES, GPU_MODEL, TAG_REQUIRED_NODE
from yunikorn_actors.what_if import Reconfigure, least_change
from yunikorn_actors.what_if.changes import carry_out
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import LeastChange, Option, Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate
from yunikorn_actors.what_if.text import fit_lines

Cluster = runpy.run_path(str(Path(__file__).parents[2] / "docs/situations.py"))["Cluster"]
both = pytest.mark.parametrize("topology", TOPOLOGIES)
Made = Callable[[TopologyName], VirtualCore]


def least(core: VirtualCore, wanted: si.AllocationRequest) -> LeastChange:
    return least_changes(state_of(core._simulator), Wanted((wanted,)))


def done(core: VirtualCore, option: Option, wanted: si.AllocationRequest) -> bool:
    """Make the change on the live core, then ask; say whether it was placed in time."""
    for change in option.changes:
        carry_out(core._simulator, change)
    core.update_allocation(wanted)
    core.run_until_idle()
    core.advance_to(core.now_ns + round(option.after_s * SECOND))
    return all(not core.explain("app", ask.allocation_key).waits for ask in wanted.asks)


@both
def test_a_quota_and_a_limit_are_raised_together_and_no_further(topology: TopologyName) -> None:
    found = least(busy(topology), asks("3"))
    raise_, wait = found.options
    assert raise_.text == (
        "raise vcore in root.a from 4 to 6 and vcore of ann in root.a from 4 to 6"
    )
    assert (wait.kind, wait.after_s) == ("wait", 90.0)
    assert done(busy(topology), raise_, asks("3"))
    for one in raise_.changes:
        assert isinstance(one, Reconfigure)
        core = busy(topology)
        for other in raise_.changes:
            assert isinstance(other, Reconfigure)
            amount = other.max["vcore"] - (other is one)
            carry_out(
                core._simulator,
                Reconfigure(queue=other.queue, user=other.user, max={"vcore": amount}),
            )
        assert not done(core, Option("raise", ""), asks("3"))


@both
def test_a_node_of_the_size_that_is_missing(topology: TopologyName) -> None:
    core = busy(topology)
    carry_out(core._simulator, Reconfigure(queue="root.a", max={"vcore": 20_000}))
    carry_out(core._simulator, Reconfigure(queue="root.a", user="ann", max={"vcore": 20_000}))
    (found,) = least(core, asks("3", vcore=5_000)).options
    assert (found.kind, found.text) == ("node", "add a node with vcore 5")
    assert done(core, found, asks("3", vcore=5_000))


@both
def test_what_fits_needs_nothing_and_what_nobody_asks_for_is_refused(
    topology: TopologyName,
) -> None:
    core = busy(topology)
    release = si.AllocationReleasesRequest(
        allocations_to_release=(si.AllocationRelease(application_id="app", allocation_key="1"),)
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=release))
    core.run_until_idle()
    assert least(core, asks("3")).fits
    with pytest.raises(InvalidRequest, match="name an ask that is to start"):
        least_changes(state_of(core._simulator), Wanted((node("n9", 1),)))


def cluster(topology: TopologyName, **nodes: int) -> tuple[VirtualCore, Any]:
    core = VirtualCore(topology=topology)
    core.start()
    made = Cluster(core, core.run_until_idle, lambda s: core.advance_to(core.now_ns + s * SECOND))
    made.queues("{name: batch}")
    made.nodes(**nodes)
    made.submit("old", "older", "job")
    return core, made


def texts(core: VirtualCore, wanted: tuple[str, str]) -> dict[str, str]:
    found = least_changes(state_of(core._simulator), Wanted((), (wanted,)))
    return {it.kind: it.text for it in found.options}


@both
def test_less_may_do_where_others_take_what_is_more(topology: TopologyName) -> None:
    """A node of seven would be taken by an older ask, which is larger; one of twenty would do."""
    core, made = cluster(topology, node_1=4_000)
    made.ask("old", "load", 4_000)
    made.ask("old", "first", 2_000)
    made.ask("older", "large", 5_000, max_allocations=3)
    assert texts(core, made.ask("job", "task", 4_000))["node"] == "add a node with vcore 6"


@both
def test_what_waits_of_the_same_application_takes_its_part_first(topology: TopologyName) -> None:
    def waiting() -> VirtualCore:
        core, made = cluster(topology, node_1=2_000)
        made.submit("app")
        made.ask("old", "load", 2_000)
        made.ask("app", "waits", 2_000)
        return core

    (ask,) = asks("3").asks
    wanted = si.AllocationRequest(rm_id=RM, asks=(msgspec.structs.replace(ask, priority=5),))
    node_, release, *_ = found = least(waiting(), wanted).options
    assert node_.text == "add a node with vcore 4"
    assert (release.kind, release.is_together) == ("release", True)
    for option in found:
        core = waiting()
        for change in option.changes:
            carry_out(core._simulator, change)
            if not option.is_together:
                core.run_until_idle()
        assert done(core, Option("", ""), wanted), option.text


@both
def test_a_raise_need_not_lift_the_quota_of_all_that_waits(topology: TopologyName) -> None:
    """With any larger raise the urgent one takes what is free."""
    core = VirtualCore(topology=topology)
    core.start()
    made = Cluster(core, core.run_until_idle, core.advance_to)
    made.queues("{name: batch, resources: {max: {vcore: 4}}}")
    made.nodes(node_1=8_000)
    made.submit("old", "urgent", "job")
    made.ask("old", "load", 3_000)
    made.ask("urgent", "large", 5_000, priority=9)
    found = texts(core, made.ask("job", "task", 2_000))
    assert found["raise"] == "raise vcore in root.batch from 4 to 5"


@both
def test_the_least_work_to_release_may_be_of_several(topology: TopologyName) -> None:
    core, made = cluster(topology, node_1=6_000, node_2=2_000)
    made.ask("old", "one", 2_000)
    made.ask("older", "few", 2_000, max_allocations=3)
    found = texts(core, made.ask("job", "task", 4_000))["release"]
    assert found.count("(vcore 2)") == 2, found
    assert found.count("node-1") + found.count("old/one") == 2, found


@both
def test_single_work_goes_before_a_member_of_a_gang(topology: TopologyName) -> None:
    core, made = cluster(topology, node_1=6_000)
    gang = si.Resource.of({"vcore": 4_000})
    made.submit("gang", placeholder_ask=gang, gang_scheduling_style="Hard")
    made.ask("gang", "a-1", 2_000, placeholder=True, task_group_name="tg")
    made.ask("gang", "a-2", 2_000, placeholder=True, task_group_name="tg")
    made.submit("later")
    made.ask("later", "single", 2_000)
    found = texts(core, made.ask("job", "task", 2_000))
    assert found["release"] == "release later/single (vcore 2)"


@both
def test_what_is_released_together_is_one_request_and_nothing_ends_twice(
    topology: TopologyName,
) -> None:
    """What waits of the application takes the room of the first that is released alone."""

    def full() -> VirtualCore:
        core, made = cluster(topology, node_1=2_000)
        made.submit("app")
        for key in ("k1", "k2", "k3"):
            made.ask("old", key, 1_000)
        return core

    found = least(full(), asks("task"))
    (release,) = (it for it in found.options if it.kind == "release")
    assert release.text == "release old and what waits of it (vcore 2)"
    assert len(release.changes) == 1
    assert not release.is_together
    core = full()
    carry_out(core._simulator, release.changes[0])
    core.run_until_idle()
    assert done(core, Option("", ""), asks("task"))


@both
def test_as_few_drained_nodes_as_do_take_work_again(topology: TopologyName) -> None:
    core, made = cluster(topology, node_1=2_000, node_2=1_000, node_3=2_000)
    for node_id in ("node-1", "node-2", "node-3"):
        made.drain(node_id)
    wanted = made.ask("job", "task", 2_000, max_allocations=2)
    assert texts(core, wanted)["open"] == "let node-1 and node-3 take work again"


def test_a_search_ends_in_time_and_names_what_it_has_not_searched() -> None:
    """Each look at the time takes a second of it; the run that is to come counts as well."""
    state = state_of(busy("proposing")._simulator)
    wanted = Wanted((asks("3"),))
    whole = least_changes(state, wanted)
    assert whole.unsearched == ()
    seconds = iter(range(20, -1_000, -1))
    found = least_changes(state, wanted, left_s=lambda: next(seconds))
    assert found.unsearched
    assert found.trials < whole.trials
    # What was found can be done, and helps; it may be more than the least.
    assert found.options
    for option in found.options:
        answer = simulate(state, *option.changes, *wanted.changes, until=option.after_s)
        assert [it.key for it in answer.course.placed] == ["3"]
    assert any(line.startswith("not searched to the end") for line in fit_lines(found))


@both
def test_of_very_much_work_what_makes_room_by_arithmetic_is_tried_first(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quota of the queue is short, and one node has to be free enough."""
    monkeypatch.setattr(least_change, "SETS_MAX", 1)
    state = state_of(two_are_missing(topology)._simulator)
    found = least_changes(state, Wanted((), (("job", "task"),)))
    (release,) = (it for it in found.options if it.kind == "release")
    # One of the queue, and one more on its node.
    (request,) = release.changes
    assert isinstance(request, si.AllocationRequest)
    assert request.releases is not None
    ends = request.releases.allocations_to_release
    assert len(ends) == 2, release.text
    assert release.text.count("old/first on node-") >= 1
    assert found.trials < 40
    for some in (ends, ends[1:], ends[:1]):
        core = two_are_missing(topology)
        releases = si.AllocationReleasesRequest(allocations_to_release=some)
        core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        core.run_until_idle()
        assert core.explain("job", "task").waits == (len(some) < 2)


def two_are_missing(topology: TopologyName) -> VirtualCore:
    core = VirtualCore(topology=topology)
    core.start()
    made = Cluster(core, core.run_until_idle, core.advance_to)
    made.queues("{name: batch, resources: {max: {vcore: 6}}}, {name: other}")
    made.nodes(node_1=4_000, node_2=4_000, node_3=4_000)
    made.submit("old", "job")
    made.submit("others", queue="root.other")
    made.ask("old", "first", 1_000, max_allocations=5)
    made.ask("others", "load", 1_000, max_allocations=7)
    made.ask("job", "task", 2_000)
    return core


PLACED = """
partitions:
- name: default
  placementrules: [{name: provided, create: true}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: made
      parent: true
      childtemplate: {resources: {max: {vcore: 4}}}
"""


@both
def test_the_quota_of_a_template_is_raised_for_a_queue_that_is_not_there(
    topology: TopologyName,
) -> None:
    def empty() -> VirtualCore:
        core = VirtualCore(topology=topology).start()
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=PLACED)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        core.update_node(node("n1", 9_000))
        core.run_until_idle()
        return core

    core = empty()
    app = si.AddApplicationRequest(
        application_id="app", queue_name="root.made.new", ugi=si.UserGroupInformation(user="ann")
    )
    new, ask = si.ApplicationRequest(rm_id=RM, new=(app,)), asks("1", vcore=5_000)
    state = state_of(core._simulator)
    (raise_,) = least_changes(state, Wanted((new, ask))).options
    assert raise_.text == "raise vcore in queues created below root.made from 4 to 5"
    core.update_application(new)
    core.run_until_idle()
    # What has been made by the template is raised by nothing that is written.
    assert least(core, ask).options == ()
    core = empty()
    (change,) = raise_.changes
    assert change == Reconfigure(
        queue="root.made", template=True, max={"vcore": 5_000}, rm_id=RM, partition="default"
    )
    carry_out(core._simulator, change)
    core.update_application(new)
    assert done(core, Option("raise", ""), ask)


def with_devices(topology: TopologyName) -> VirtualCore:
    """A node with one device, of which six tenths are used."""
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=PLACED)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(devices("n1", 1, "V100"))
    app = si.AddApplicationRequest(
        application_id="app", queue_name="root.gpu", ugi=si.UserGroupInformation(user="ann")
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    core.update_allocation(shares("first"))
    core.run_until_idle()
    return core


def devices(name: str, count: int, model: str) -> si.NodeRequest:
    room = si.Resource.of({"gpu": 1_000 * count})
    info = si.NodeInfo(
        node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=room,
        attributes={GPU_DEVICES: str(count), GPU_MODEL: model},
    )  # fmt: skip
    return si.NodeRequest(rm_id=RM, nodes=(info,))


def shares(key: str, count: int = 1, tags: dict[str, str] | None = None) -> si.AllocationRequest:
    ask = asks(key, runtime="").asks[0]
    size = si.Resource.of({"gpu": 600})
    shared = structs.replace(ask, resource_ask=size, max_allocations=count, tags=tags or {})
    return si.AllocationRequest(rm_id=RM, asks=(shared,))


@both
@pytest.mark.parametrize(
    ("wanted", "text", "wait"),
    [
        (shares("k", 3), "add a node with gpu 3000", ""),
        (
            shares("k", tags={GPU_MODEL: "A100|B200"}),
            "add a node with gpu 1000, devices of model A100",
            "it wants devices of model A100 or B200",
        ),
        (shares("k", tags={TAG_REQUIRED_NODE: "n1"}), "enlarge n1 by gpu 1000", ""),
    ],
)
def test_a_node_has_whole_devices_of_a_model_that_will_do(
    topology: TopologyName, wanted: si.AllocationRequest, text: str, wait: str
) -> None:
    found = least(with_devices(topology), wanted)
    option = next(it for it in found.options if it.kind == "node")
    assert option.text == text
    assert wait in found.waits[0].text
    assert done(with_devices(topology), option, wanted)
    # One device less does not do.
    (change,) = option.changes
    assert isinstance(change, si.NodeRequest)
    (info,) = change.nodes
    count = int(info.attributes[GPU_DEVICES])
    less = structs.replace(
        info, attributes={**info.attributes, GPU_DEVICES: str(count - 1)},
        schedulable_resource=si.Resource.of({"gpu": 1_000 * (count - 1)}),
    )  # fmt: skip
    smaller = Option("node", "", (structs.replace(change, nodes=(less,)),))
    assert not done(with_devices(topology), smaller, wanted)


@both
def test_nothing_is_done_in_partitions_of_others(topology: TopologyName) -> None:
    """Another resource manager may be away, and then makes no change."""
    core = busy(topology)
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=PLACED, policy_group="two")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    theirs = structs.replace(node("n9", 4_000), rm_id="rm-2")
    drained = structs.replace(theirs.nodes[0], action=si.ActionFromRM.CREATE_DRAIN)
    core.update_node(structs.replace(theirs, nodes=(drained,)))
    core.run_until_idle()
    core.resource_manager_lost("rm-2")
    core.run_until_idle()
    assert [it.kind for it in least(core, asks("3")).options] == ["raise", "wait"]


@both
def test_an_ask_that_waits_in_several_partitions_is_named_with_its_own(
    topology: TopologyName,
) -> None:
    root = "{name: root, submitacl: '*', queues: [{name: a}]}"
    parts = ", ".join(f"{{name: {it}, queues: [{root}]}}" for it in ("default", "gpu"))
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=f"partitions: [{parts}]")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    for partition, vcore in (("default", 2_000), ("gpu", 3_000)):
        app = si.AddApplicationRequest(
            application_id="app", queue_name="root.a", partition_name=partition,
            ugi=si.UserGroupInformation(user="ann"),
        )  # fmt: skip
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        (ask,) = asks("1", vcore=vcore).asks
        asked = structs.replace(ask, partition_name=partition)
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(asked,)))
    core.run_until_idle()
    state = state_of(core._simulator)
    known = rf"name it as \[{RM}\]default/app/1 or \[{RM}\]gpu/app/1"
    with pytest.raises(InvalidRequest, match=known):
        least_changes(state, Wanted((), (("app", "1"),)))
    (option,) = least_changes(state, Wanted((), ((f"[{RM}]gpu/app", "1"),))).options
    assert option.text == "add a node with vcore 3 to partition gpu"
