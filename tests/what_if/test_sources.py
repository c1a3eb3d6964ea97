"""A state from a dump, a journal or a recording leads to what the core itself would do."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as with_fields
from support import RM

from tests.what_if.test_least_change import cluster
from tests.what_if.test_simulate import CONFIG, SECOND, asks, busy, node
from yunikorn_actors import InvalidRequest, JournalError, SchedulerCore, VirtualCore, si
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.policies.folds import runtime_of
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.trace.filters import moment_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.state_at import state_from_trace
from yunikorn_actors.values.tags import APP_TAG_NAMESPACE_RESOURCE_QUOTA
from yunikorn_actors.what_if.core_state import Copy, CoreState, work_of
from yunikorn_actors.what_if.dump_parts import PREDICATES
from yunikorn_actors.what_if.dumps import state_from_dump, state_from_journal
from yunikorn_actors.what_if.simulation import simulate

both = pytest.mark.parametrize("topology", TOPOLOGIES)
PARTITION = f"[{RM}]default"


@both
def test_a_dump_of_a_core(topology: TopologyName) -> None:
    core = busy(topology)
    core.update_allocation(asks("3"))
    core.run_until_idle()
    state = state_from_dump(json.loads(json.dumps(core.state_dump())), topology=topology)
    assert "tags of asks, such as run times and required nodes" not in state.lacks
    release = si.AllocationReleasesRequest(
        allocations_to_release=(si.AllocationRelease(application_id="app", allocation_key="1"),)
    )
    answer = simulate(state, si.AllocationRequest(rm_id=RM, releases=release), until=0)
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=release))
    core.run_until_idle()
    (placed,) = answer.course.placed
    assert core.explain("app", "3").placed == {placed.node: 1}


@both
def test_managers_of_a_dump_that_share_a_policy_group(topology: TopologyName) -> None:
    """A configuration that one of them brings holds for the other as well."""

    def config(vcore: int) -> str:
        queue = f"{{name: a, resources: {{max: {{vcore: {vcore}}}}}}}"
        root = f"{{name: root, submitacl: '*', queues: [{queue}]}}"
        return f"partitions: [{{name: default, queues: [{root}]}}]"

    core = VirtualCore(topology=topology)
    core.start()
    for rm_id in ("rm-1", "rm-2"):
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(
                rm_id=rm_id, policy_group="together", config=config(1)
            ),
            si.ResourceManagerCallback(),
        )
        core.update_node(with_fields(node(f"node-{rm_id}", 4_000), rm_id=rm_id))
        ann = si.UserGroupInformation(user="ann")
        app = si.AddApplicationRequest(application_id=f"app-{rm_id}", queue_name="root.a", ugi=ann)
        core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(app,)))
        ask = si.AllocationAsk(
            application_id=f"app-{rm_id}", allocation_key="task",
            resource_ask=si.Resource.of({"vcore": 3_000}),
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=(ask,)))
    core.run_until_idle()
    state = state_from_dump(json.loads(json.dumps(core.state_dump())), topology=topology)
    change = si.UpdateConfigurationRequest(rm_id="rm-2", policy_group="together", config=config(3))
    answer = simulate(state, change, until=0)
    core.update_configuration(change)
    core.run_until_idle()
    assert {it.application for it in answer.course.placed} == {"app-rm-1", "app-rm-2"}
    for rm_id in ("rm-1", "rm-2"):
        assert core.explain(f"app-{rm_id}", "task").placed == {f"node-{rm_id}": 1}


@both
def test_what_could_start_already_starts_behind_the_changes_of_that_moment(
    topology: TopologyName,
) -> None:
    """A dump, or a replica of a core at work, may hold what is about to be decided."""
    core = busy(topology)
    core.update_allocation(asks("3"))
    core.run_until_idle()
    dump = json.loads(json.dumps(core.state_dump()))
    (part,) = dump["partitions"].values()
    part["queues"]["root.a"] |= {"max": {}, "limits": []}
    state = state_from_dump(dump, topology=topology)
    assert [it.key for it in simulate(state, until=0).course.placed] == ["3"]
    drained = tuple(
        si.NodeInfo(node_id=node_id, action=si.ActionFromRM.DRAIN_NODE) for node_id in part["nodes"]
    )
    answer = simulate(state, si.NodeRequest(nodes=drained), until=0)
    assert answer.course.placed == ()
    assert [(it.key, it.what) for it in answer.differences] == [("3", "does not start")]


@both
def test_what_runs_under_the_key_of_an_ask_counts_for_it(topology: TopologyName) -> None:
    core = busy(topology)
    (ask,) = asks("many").asks
    release = si.AllocationRelease(application_id="app", allocation_key="1")
    core.update_allocation(
        si.AllocationRequest(
            rm_id=RM, asks=(msgspec.structs.replace(ask, max_allocations=3),),
            releases=si.AllocationReleasesRequest(allocations_to_release=(release,)),
        )
    )  # fmt: skip
    core.run_until_idle()
    assert _waiting(core.state_dump()) == {"many": 2}
    assert _waiting(_dump_again(core.state_dump())) == {"many": 2}


@both
def test_a_dump_has_what_asks_declared_and_its_time(topology: TopologyName) -> None:
    core = busy(topology)
    only = {si.constants.TAG_REQUIRED_NODE: "n2"}
    spared = si.PreemptionPolicy(allow_preempt_self=False, allow_preempt_other=True)
    (ask,) = asks("3").asks
    ask = msgspec.structs.replace(ask, tags={**ask.tags, **only}, preemption_policy=spared)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
    core.advance_to(core.now_ns + 20 * SECOND)
    dump = json.loads(json.dumps(core.state_dump()))
    state = state_from_dump(dump, topology=topology)
    assert state.at_ns == core.now_ns
    (app,) = state.images["[rm-1]default"]["applications"]
    spec = app["asks"]["3"]["spec"]
    assert (spec["required_node"], spec["allow_preempt_other"]) == ("n2", True)
    assert not spec["allow_preempt_self"]
    found, known = simulate(state, until=500).course, core.simulate(until=500).course
    assert [(it.key, it.node, it.at_s, it.ends_s) for it in found.placed] == [("3", "n2", 70, 170)]
    assert [it.at_s for it in found.placed] == [it.at_s for it in known.placed]
    # Those of earlier versions have none of that, and are read on.
    former = _without_declarations(dump)
    former_state = state_from_dump(former, topology=topology)
    assert "tags of asks, such as run times and required nodes" in former_state.lacks
    assert simulate(former_state, until=500).course.placed == ()


def _without_declarations(dump: dict[str, Any]) -> dict[str, Any]:
    former = json.loads(json.dumps(dump))
    del former["at_ns"]
    for app in _part(former)["applications"].values():
        for it in (*app["asks"], *app["allocations"]):
            it.pop("tags", None)
            it.pop("allow_preempt_self", None)
            it.pop("allow_preempt_other", None)
    return former  # type: ignore[no-any-return]


def _configured(config: str) -> si.UpdateConfigurationRequest:
    return si.UpdateConfigurationRequest(rm_id=RM, config=config)


def _dump_again(dump: dict[str, Any]) -> dict[str, Any]:
    return Copy(state_from_dump(json.loads(json.dumps(dump)))).state_dump()


def _part(dump: dict[str, Any]) -> dict[str, Any]:
    return dump["partitions"]["[rm-1]default"]  # type: ignore[no-any-return]


def _waiting(dump: dict[str, Any]) -> dict[str, int]:
    return {it["key"]: it["repeats"] for it in _part(dump)["applications"]["app"]["asks"]}


def _as_its_queues(dump: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the books say, and which application is which."""
    names = ("state", "leaf", "dynamic", "max", "guaranteed", "max_applications", "properties")
    return {path: [it[name] for name in names] for path, it in _part(dump)["queues"].items()}


PLACED = """
partitions:
- name: default
  placementrules: [{name: provided, create: true}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: old}
    - name: spaces
      parent: true
      childtemplate: {properties: {application.sort.policy: fair}, resources: {max: {vcore: 9}}}
"""
QUOTA_TAG = json.dumps({"resources": {"vcore": {"value": 3_000}}})


def placed() -> VirtualCore:
    """One queue has the quota of a tag, one the template of before, one drains, one is empty."""
    core = VirtualCore().start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=PLACED)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 8_000))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    new = tuple(
        si.AddApplicationRequest(application_id=id_, queue_name=queue, ugi=ugi, tags=tags)
        for id_, queue, tags in (
            ("app", "root.old", {}),
            ("tagged", "root.spaces.tagged", {APP_TAG_NAMESPACE_RESOURCE_QUOTA: QUOTA_TAG}),
            ("former", "root.spaces.former", {}),
            ("empty", "root.spaces.empty", {}),
        )
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    core.update_allocation(asks("1"))
    remove = si.RemoveApplicationRequest(application_id="empty")
    core.update_application(si.ApplicationRequest(rm_id=RM, remove=(remove,)))
    core.run_until_idle()
    core.update_configuration(
        _configured(PLACED.replace("    - {name: old}\n", "").replace("fair", "fifo"))
    )
    core.run_until_idle()
    return core


def test_queues_are_as_the_dump_says_whatever_made_them() -> None:
    dump = placed().state_dump()
    queues = _as_its_queues(dump)
    assert queues["root.old"][0] == "Draining"
    assert queues["root.spaces.tagged"][3] == {"vcore": 3_000}
    assert "root.spaces.empty" in queues
    assert _as_its_queues(_dump_again(dump)) == queues


def test_queues_are_as_a_dump_of_yunikorn_says_whatever_made_them() -> None:
    dump = json.loads(GO.read_text())
    (root, *_) = dump["queues"]
    root["children"] = [
        {
            "queuename": "root.spaces", "status": "Active", "isLeaf": False, "isManaged": False,
            "partition": "", "children": [
                {
                    "queuename": "root.spaces.x", "status": "Active", "isLeaf": True,
                    "isManaged": False, "maxResource": {"vcore": 3_000}, "maxRunningApps": 2,
                    "guaranteedResource": None, "properties": None, "children": None,
                }
            ],
        }
    ]  # fmt: skip
    queues = {path: spec for path, spec, *_ in _queues_of(state_from_dump(dump))}
    assert queues["root.spaces.x"].max == {"vcore": 3_000}
    assert queues["root.spaces.x"].max_applications == 2
    assert not queues["root.spaces"].leaf


def _queues_of(state: CoreState) -> list[Any]:
    return state.images["[mycluster]default"]["queues"]  # type: ignore[no-any-return]


def test_what_is_no_dump_is_refused_with_the_remedy() -> None:
    for wrong in ({}, {"partitions": {"x": {}}}, {"partitions": [], "timestamp": "now"}):
        with pytest.raises(InvalidRequest, match=r"dump: .* take /debug/fullstatedump"):
            state_from_dump(wrong)
    for route in ({"queuename": "root"}, {"partitionName": "default", "nodesInfo": []}):
        with pytest.raises(InvalidRequest, match=r"the answer of another route"):
            state_from_dump(route)


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (("applications", 0, "allocations", 0, "resource", "vcore"), 10**30, "a wrong form"),
        (("nodes", 0, "nodesInfo", 0, "allocations", 0, "priority"), float("inf"), "infinity"),
        (("applications", 0, "user"), "\ud800", "surrogates not allowed"),
        (("timestamp",), None, "'timestamp' is missing"),
        (("config", "Partitions", 0, "Queues", 0, "Queues", 0, "Limits", 0, "Users"), ["o'neil"],
         "its configuration cannot be loaded: root.batch: invalid user name"),
    ],
)  # fmt: skip
def test_a_part_that_nobody_could_decide_by(place: Any, value: object, complaint: str) -> None:
    dump = json.loads(GO.read_text())
    part = dump
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(InvalidRequest, match=rf"^day\.json: .*{complaint}"):
        state_from_dump(dump, where="day.json")


def test_a_dump_with_any_one_part_changed_is_a_state_or_refused() -> None:
    """Whatever stands in one place: a number, a list, nothing."""
    source, draw = json.loads(GO.read_text()), Random(20_26)  # noqa: S311
    values = (None, "", 0, -1, 1.5, 10**30, float("inf"), "x", True, [], {}, [None], {"a": None})
    places, refused = list(_places(source)), 0
    for place in draw.sample(places, 75):
        dump = part = copy.deepcopy(source)
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = draw.choice(values)
        with suppress(InvalidRequest):
            simulate(state_from_dump(dump), until=0)
            continue
        refused += 1
    assert 15 < refused < 65


def test_a_dump_of_a_core_with_any_one_part_changed_is_a_state_or_refused() -> None:
    """What contradicts itself is refused before anything is simulated."""
    source, draw = json.loads(json.dumps(_swapping().state_dump())), Random(20_26)  # noqa: S311
    values = (None, "", 0, -1, 1.5, 10**30, "x", True, [], {}, [None], {"a": None})
    places, refused = list(_places(source)), 0
    for place in draw.sample(places, 100):
        dump = part = copy.deepcopy(source)
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = draw.choice(values)
        with suppress(InvalidRequest):
            state = state_from_dump(dump)
            simulate(state, until=0)
            continue
        refused += 1
    assert 12 < refused < 92


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("at_ns",), "x"), (("managers", RM, "build_info"), None),
        (("partitions", PARTITION, "revision"), None), (("partitions", PARTITION, "revision"), "x"),
        (("partitions", PARTITION, "config", "user_group_resolver"), "x"),
        (("partitions", PARTITION, "applications", "job", "group"), -7),
        # Nothing of that is taken in silence.
        (("partitions", PARTITION, "nodes", "node-1", "ready"), "false"),
        (("partitions", PARTITION, "nodes", "node-1", "drained"), "false"),
        (("partitions", PARTITION, "nodes", "node-1", "capacity", "vcore"), 1.5),
        (("partitions", PARTITION, "nodes", "node-1", "capacity", "vcore"), -7),
        (("partitions", PARTITION, "applications", "job", "asks", 0, "repeats"), -1),
        (("partitions", PARTITION, "applications", "job", "asks", 0, "resource", "vcore"), -1),
    ],
)  # fmt: skip
def test_a_part_of_a_dump_of_a_core_that_is_of_another_kind(
    place: tuple[Any, ...], value: object
) -> None:
    dump = part = json.loads(json.dumps(_swapping().state_dump()))
    for step in place[:-1]:
        part = part[step]
    assert place[-1] in part or isinstance(part, list), "vacuous: there is no such place"
    part[place[-1]] = value
    with pytest.raises(InvalidRequest, match=r"^day\.json: .* a wrong form: "):
        state_from_dump(dump, where="day.json")


def _swapping() -> VirtualCore:
    """A member takes the place of its placeholder, work runs, and something waits."""
    core, made = cluster("fused", node_1=2_000, node_2=2_000)
    made.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2_000}))
    for key in ("hold-1", "hold-2"):
        made.ask("gang", key, 1_000, placeholder=True, task_group_name="tg")
    made.ask("gang", "member", 500, task_group_name="tg")
    made.submit("job")
    for key in ("1", "2", "3"):
        made.ask("job", key, 1_500)
    return core


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    named = value.items() if isinstance(value, dict) else enumerate(value)
    for name, below in named:
        yield (name,)
        if isinstance(below, dict | list):
            yield from ((name, *it) for it in _places(below))


GO = Path(__file__).parent / "yunikorn-statedump.json"
"""As Apache YuniKorn writes one: two partitions, a gang, a reservation, a limit, and nulls."""


def test_the_full_state_dump_of_the_go_core() -> None:
    dump = json.loads(GO.read_text())
    state = state_from_dump(dump)
    assert not [line for line in state.lacks if "does not take" in line]
    assert any("reservations" in line for line in state.lacks)
    default, gpu = (state.images[f"[mycluster]{name}"] for name in ("default", "gpu"))
    assert {it["node_id"]: sorted(it["allocations"]) for it in default["nodes"]}.keys() == {
        "n1",
        "n2",
    }
    apps = {it["spec"]["application_id"]: it for it in default["applications"]}
    assert apps.keys() == {"spark-1", "gang-1", "idle-1"}
    assert {key for key, it in apps["gang-1"]["asks"].items() if it["remaining"]} == {"tg-hold-1"}
    assert [it["node_id"] for it in gpu["nodes"] if it["drained"]] == ["g2"]
    # It wants two of a quota of six, of which five are used; the queue of the other one is full.
    answer = simulate(state, until=3)
    waits = [it.cause for it in answer.course.waits if it.application == "spark-1"]
    assert waits == ["QUEUE_LIMIT"]
    more = si.AllocationRequest(
        asks=(
            si.AllocationAsk(
                partition_name="gpu", application_id="train-1", allocation_key="train-1",
                resource_ask=si.Resource.of({"vcore": 1_000}),
            ),
        )
    )  # fmt: skip
    (wait,) = [it for it in simulate(state, more, until=0).course.waits if it.queue == "root.ml"]
    assert "queue root.ml has no room for it, vcore 1 short" in wait.text


def test_run_times_count_from_when_it_was_placed_and_not_from_the_dump() -> None:
    dump = json.loads(GO.read_text())
    (part, *_) = dump["nodes"]
    running = next(it for node in part["nodesInfo"] for it in node["allocations"])
    running["allocationTags"] = {"yunikorn-actors/runtime": "600"}
    running["allocationTime"] = dump["timestamp"] - 22 * 60 * SECOND
    over = simulate(state_from_dump(dump))
    assert "1 allocation has run longer than declared: it does not end" in over.assumptions
    running["allocationTime"] = dump["timestamp"] - 5 * SECOND
    state = state_from_dump(dump)
    began = [
        it["allocated_ns"] - state.at_ns
        for image in state.images.values()
        for app in image["applications"]
        for it in app["allocations"].values()
        if it["spec"]["key"] == running["allocationKey"]
    ]
    assert began == [-5 * SECOND]
    copy = Copy(state)
    (end_ns,) = (
        it.allocated_ns + runtime_of(app, it.spec)
        for _, app, it in work_of(copy)
        if "yunikorn-actors/runtime" in it.spec.tags
    )
    assert end_ns == state.at_ns + 595 * SECOND


def test_what_waits_is_as_old_as_in_the_dump() -> None:
    dump = json.loads(GO.read_text())
    waiting = [(app, it) for app in dump["applications"] for it in app.get("requests") or ()]
    state = state_from_dump(dump)
    apps = {
        it["spec"]["application_id"]: it
        for image in state.images.values()
        for it in image["applications"]
    }
    assert waiting, "vacuous: nothing waits in the dump"
    for app, it in waiting:
        made = apps[app["applicationID"]]
        assert made["submitted_ns"] == app["submissionTime"]
        assert made["asks"][it["allocationKey"]]["created_ns"] == it["requestTime"]


def test_what_the_go_core_has_preempted_is_on_its_way_out() -> None:
    """So its room comes free, as it does there when the resource manager confirms."""
    dump = json.loads(GO.read_text())
    node = next(it for part in dump["nodes"] for it in part["nodesInfo"] if it["allocations"])
    victim = node["allocations"][0]
    victim["preempted"] = True
    state = state_from_dump(dump)
    (image,) = [it for it in state.images.values() if it["unconfirmed"]]
    assert list(image["unconfirmed"].values()) == [victim["applicationId"]]
    found = [
        (it["spec"]["key"], it["node_id"], it["releasing"])
        for app in image["applications"]
        for it in app["allocations"].values()
        if it["releasing"] is not None
    ]
    why = si.TerminationType.PREEMPTED_BY_SCHEDULER
    assert found == [(victim["allocationKey"], node["nodeID"], why)]
    answer = simulate(state, until=0)
    assert "1 release under way is confirmed at once" in answer.assumptions


def test_what_goes_on_in_another_state_than_in_the_dump_is_named() -> None:
    dump = json.loads(GO.read_text())
    dump["applications"][0]["applicationState"] = "Failing"
    name = dump["applications"][0]["applicationID"]
    lacks = f"how far {name} came while Failing: they go on as if they were not"
    assert lacks in state_from_dump(dump).lacks


def test_versions_of_before_write_the_names_at_the_top_as_go_has_them() -> None:
    dump = json.loads(GO.read_text())
    former = {name[:1].upper() + name[1:]: it for name, it in dump.items()}
    assert state_from_dump(former).images == state_from_dump(dump).images


def test_a_journal_that_a_core_writes(tmp_path: Path) -> None:
    with SchedulerCore(journal=tmp_path / "journal") as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        core.update_node(node("n1", 4_000))
        ugi = si.UserGroupInformation(user="ann", groups=("staff",))
        app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        core.update_allocation(asks("1", "2", "3"))
        while core.state_dump()["partitions"]["[rm-1]default"]["allocations"] < 2:
            pass
        state = state_from_journal(tmp_path / "journal")
        (placed,) = simulate(state, compare=False).course.placed
        assert placed.key == "3"
        assert 99 < placed.at_s <= 100
    with pytest.raises(JournalError, match="there is no such folder"):
        state_from_journal(tmp_path / "elsewhere")


@both
def test_a_recording(topology: TopologyName, tmp_path: Path) -> None:
    file = tmp_path / "run.trace"
    core = VirtualCore(topology=topology, trace=file).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 4_000))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    core.update_allocation(asks("1", "2"))
    core.run_until_idle()
    core.advance_to(core.now_ns + 30 * SECOND)
    core.update_allocation(asks("late"))
    core.run_until_idle()
    core.stop()
    with TraceReader(file) as trace:
        state = state_from_trace(trace, moment_of("29s"))
    assert state is not None
    # Not that of the next message, a second later, which asks for more.
    assert state.at_ns == EPOCH_NS + 29 * SECOND
    assert "late" not in state.images["[rm-1]default"]["applications"][0]["asks"]
    (placed,) = simulate(state, asks("new"), compare=False).course.placed
    assert (placed.key, placed.at_s) == ("new", 71.0)
    with TraceReader(file) as trace:
        assert state_from_trace(trace, moment_of("1000s")) is None
    with TraceReader(file) as trace:
        state = state_from_trace(trace, moment_of("30s"))
    assert state is not None
    assert "late" in state.images["[rm-1]default"]["applications"][0]["asks"]


def test_a_folder_that_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal in it: name the folder of one"):
        state_from_journal(tmp_path)


def _go(**parts: Any) -> dict[str, Any]:
    return {**json.loads(GO.read_text()), **parts}


def test_the_place_in_a_dump_where_something_is_wrong() -> None:
    wrong = _go()
    (part, *_) = wrong["nodes"]
    running = next(it for node in part["nodesInfo"] for it in node["allocations"])
    running["resource"]["vcore"] = "x"
    place = f"node {running['nodeId']}, allocation {running['allocationKey']}: "
    with pytest.raises(InvalidRequest, match=f"{place}.*vcore is no whole number: 'x'; write one"):
        state_from_dump(wrong)
    with pytest.raises(InvalidRequest, match=r"config: 'partitions' is missing; write one"):
        state_from_dump(_go(config={}))
    with pytest.raises(InvalidRequest, match=r"config: .* must be an object, and is a str"):
        state_from_dump(_go(config="partitions: []"))
    with pytest.raises(InvalidRequest, match=r"timestamp is no whole number: 'now'"):
        state_from_dump(_go(timestamp="now"))
    nameless = _go()
    del nameless["applications"][0]["partition"]
    name = nameless["applications"][0]["applicationID"]
    with pytest.raises(InvalidRequest, match=f"application {name}: 'partition' is missing"):
        state_from_dump(nameless)
    ours = busy("fused").state_dump()
    del _part(ours)["applications"]["app"]["allocations"][0]["resource"]
    with pytest.raises(InvalidRequest, match=r"application app, allocation .: 'resource' is mis"):
        state_from_dump(ours)


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (("nodes", 0, "nodesInfo", 0, "nodeID"), None, "node 1 of the list: 'nodeID' is missing"),
        (("applications", 0, "applicationID"), None, "application 1 of the list: 'applicationID'"),
        (("nodes",), [{"nodeID": "n1"}], "nodes: 'partitionName' is missing"),
        (("applications", 0), "app", "it must be an object in applications, and is a str"),
        (("nodes", 0, "nodesInfo"), {"n1": {}}, "nodes: .*must be a list: nodesInfo, and is a dict"),
        (("partitions",), [], "partitions: .* there is none, so nothing is known of a cluster"),
        (("nodes",), "n1", "json: nodes: .* must be a list: nodes, and is a str"),
        (("applications",), {}, "json: applications: .* must be a list: applications"),
        (("queues", 0, "children"), [{"queuename": "root.x"}], "queue root.x: 'isManaged' is miss"),
    ],
)  # fmt: skip
def test_each_part_of_a_dump_is_called_by_its_own_name(
    place: Any, value: object, complaint: str
) -> None:
    dump = part = _go()
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(InvalidRequest, match=complaint):
        state_from_dump(dump, where="day.json")


def test_keys_that_a_newer_yunikorn_writes_are_left_out_and_named() -> None:
    dump = _go()
    (part, *_) = dump["config"]["Partitions"]
    part["StateDumpFilePath"] = "/tmp/dump"  # noqa: S108
    part["Queues"][0] |= {"Weight": 3, "Properties": {"Any.Name": "x"}}
    part["Preemption"]["Depth"] = {"Max": 1}
    dump["config"]["FutureKnob"] = dump["nodes"][0]["nodesInfo"][0]["zone"] = {"a": [1]}
    state = state_from_dump(dump)
    assert [it for it in state.lacks if "keys of the configuration" in it] == [
        "what these keys of the configuration mean, which are left out: depth, weight"
    ]
    waits = [simulate(it, until=3).course.waits for it in (state, state_from_dump(_go()))]
    assert waits[0] == waits[1] != ()


def test_a_dump_says_its_revision_and_what_its_manager_wants() -> None:
    core = busy("fused")
    extra = {"rm.pausedTimeout": "1s"}
    core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, extra_config=extra))
    core.run_until_idle()
    dump = json.loads(json.dumps(core.state_dump()))
    state = state_from_dump(dump)
    assert state.revisions == {f"[{RM}]default": _part(dump)["revision"]}
    assert state.registered.managers[0].registration.extra_config == extra


def test_a_dump_says_who_registered_first_and_what_each_is_asked() -> None:
    core = VirtualCore().start()
    plain, choosy = si.ResourceManagerCallback(), cluster("fused", node_1=1)[0]
    (asked,) = choosy._simulator.callbacks.values()
    for rm_id, callback in (("rm-2", asked), ("rm-1", plain)):
        core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id=rm_id), callback)
    dump = json.loads(json.dumps(core.state_dump()))
    managers = [it.registration for it in state_from_dump(dump).registered.managers]
    known = [(it.rm_id, it.capabilities.has_predicates) for it in managers]
    assert known == [("rm-2", True), ("rm-1", False)]
    assert PREDICATES not in state_from_dump(dump).lacks
    del dump["managers"]["rm-2"]["capabilities"]
    assert PREDICATES in state_from_dump(dump).lacks


@pytest.mark.parametrize("name", ["applications", "nodes", "queues"])
def test_a_part_that_a_dump_does_not_have_is_named(name: str) -> None:
    assert any(it.startswith(f"{name}: ") for it in state_from_dump(_go(**{name: None})).lacks)
    assert not any(it.startswith(f"{name}: ") for it in state_from_dump(_go()).lacks)


SAID = {
    ApplicationSpec: {
        "application_id", "queue_name", "user", "groups", "placeholder_ask", "created_ns",
    },
    AskSpec: {
        "application_id", "key", "resource", "priority", "task_group", "placeholder", "originator",
        "required_node", "gpu_model", "created_ns", "tags",
    },
}  # fmt: skip
LACKING = {
    (ApplicationSpec, "tags"): "tags of applications",
    (ApplicationSpec, "timeout_ms"): "time limits of applications",
    (ApplicationSpec, "gang_style"): "styles and timeouts of gangs",
    (AskSpec, "timeout_ms"): "and of asks: nothing ends",
    (AskSpec, "max_allocations"): "how often an ask repeats",
    (AskSpec, "allow_preempt_self"): "what runs may be preempted",
    (AskSpec, "allow_preempt_other"): "what waits preempts nothing of others",
}
UNNEEDED = {(AskSpec, "later_form"), (ApplicationSpec, "unresolved")}
"""By these nothing is decided of what is there."""


def test_what_a_dump_of_the_go_core_lacks_is_named() -> None:
    """Each field is in the dump, or what is assumed instead stands in the answer."""
    for kind, names in SAID.items():
        missing = {it for of, it in (*LACKING, *UNNEEDED) if of is kind}
        assert names | missing == {*kind.__struct_fields__}
    lacks = " ".join(state_from_dump(_go()).lacks)
    under_way = "swaps and releases under way"
    assert [it for it in (*LACKING.values(), under_way) if it not in lacks] == []


def test_what_is_of_a_partition_that_a_dump_does_not_describe_is_named() -> None:
    dump = _go()
    parts = {it["name"]: it for it in dump["partitions"]}
    parts["default"]["name"] = "[mycluster]default"
    assert state_from_dump(dump).images == state_from_dump(_go()).images
    dump["applications"][0]["partition"] = dump["nodes"][0]["partitionName"] = "gone"
    names = [dump["applications"][0]["applicationID"]]
    names += [it["nodeID"] for it in dump["nodes"][0]["nodesInfo"]]
    lacks = state_from_dump(dump).lacks
    (line,) = [it for it in lacks if it.startswith("what is of a partition that it does not")]
    assert all(f"{name} of gone" in line for name in names)


def test_a_dump_of_the_go_core_has_no_revision() -> None:
    state = state_from_dump(_go())
    assert set(simulate(state, until=0).revisions.values()) == {0}
    assert "revisions: each is 0" in state.lacks


def test_what_a_dump_says_and_no_core_can_be_given_is_named() -> None:
    dump = _go()
    (node, *_) = dump["nodes"][0]["nodesInfo"]
    del node["capacity"]
    dump["partitions"][0]["state"] = "Draining"
    app = next(it for it in dump["applications"] if it["applicationState"] == "Running")
    app["allocations"] = [{"allocationKey": "gone"}]
    below = {"queuename": "root.old", "isLeaf": True, "isManaged": True, "status": "Draining"}
    dump["queues"][0]["children"] = [below]
    lacks = state_from_dump(dump).lacks
    for line in (
        f"nodes without a capacity, and what runs there: {node['nodeID']}",
        f"that these partitions drain: {dump['partitions'][0]['name']}",
        f"work that an application lists and no node has: {app['applicationID']}/gone",
        f"limits of queues that drain: {below['queuename']}",
    ):
        assert line in lacks
        assert line not in state_from_dump(_go()).lacks


@pytest.mark.parametrize(
    "change",
    ["resources: {max: {vcore: 1}}", "properties: {application.sort.policy: fair}"],
)
def test_a_gang_is_in_a_dump_though_its_queue_would_take_it_no_more(change: str) -> None:
    config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [%s]}]}]"
    core = VirtualCore().start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=config % "{name: a}")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 1_000))
    gang = si.AddApplicationRequest(
        application_id="app", queue_name="root.a", ugi=si.UserGroupInformation(user="ann"),
        placeholder_ask=si.Resource.of({"vcore": 4_000}),
    )  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(gang,)))
    core.update_allocation(asks("many", vcore=2_000))
    core.run_until_idle()
    core.update_configuration(_configured(config % f"{{name: a, {change}}}"))
    core.run_until_idle()
    assert _waiting(core.state_dump()) == {"many": 1}
    again = _dump_again(core.state_dump())
    assert _waiting(again) == {"many": 1}
    assert _as_its_queues(again) == _as_its_queues(core.state_dump())
