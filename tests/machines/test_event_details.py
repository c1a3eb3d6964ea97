"""Where each detail of the interface comes from.

A story is something that happens to a small cluster; a row says which story gives rise to which
record. Every detail has its place.
"""

from collections.abc import Callable
from typing import Any

import pytest
from support import AFTER_HISTORY_NS, APP, CONFIG, QUEUE, RM, Lab, Recorder, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.si import ChangeDetail as Detail
from yunikorn_actors.si import ChangeType, EventType

ADD, SET, REMOVE, NONE = ChangeType.ADD, ChangeType.SET, ChangeType.REMOVE, ChangeType.NONE
REQUEST, APPLICATION, NODE = EventType.REQUEST, EventType.APP, EventType.NODE
QUEUE_, OWNER = EventType.QUEUE, EventType.USERGROUP
_T = si.TerminationType
TEAM = si.UserGroupInformation(user="bob", groups=("team",))


def _root(leaf: str, settings: str = "") -> str:
    return CONFIG.replace("{name: default}", leaf).replace(
        "name: default,", f"name: default, {settings}", 1
    )


def _quota(vcore: int) -> str:
    return _root(
        f"{{name: default, properties: {{quota.preemption.delay: 10s}}, "
        f"resources: {{max: {{vcore: {vcore}m}}}}}}",
        "preemption: {quotapreemptionenabled: true},",
    )


LIMITED = _root(
    "{name: default, limits: [{limit: a, users: [bob], maxresources: {vcore: 9m}}, "
    "{limit: b, groups: [team], maxresources: {vcore: 9m}}]}"
)
SIZED = _root("{name: default, resources: {guaranteed: {vcore: 1m}, max: {vcore: 5m}}}")
GROWN = _root("{name: default, queues: [{name: inner}]}")
DYNAMIC = _root("{name: default}", "placementrules: [{name: provided, create: true}],")
AWARE = _root("{name: default, properties: {application.sort.policy: stateaware}}")
ONE_AT_A_TIME = _root("{name: default, maxapplications: 1}")
ONE_OF_BOB = _root("{name: default, limits: [{limit: a, users: [bob], maxapplications: 1}]}")


TO_CONFIRM = frozenset({_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED})


class Listening(Recorder):
    """Confirms what the core takes back; hears container states, so that those are worked out."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for item in response.released:
            if item.termination_type in TO_CONFIRM:
                self.lab.release(
                    item.allocation_key,
                    app=item.application_id,
                    termination_type=item.termination_type,
                )

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.heard.append(("container", request.allocation_key, request.state.name))


def _lab(config: str, topology: TopologyName) -> Lab:
    rm = Listening()
    rm.lab = lab = Lab(config=config, topology=topology, rm=rm)
    lab.nodes(n1=10)
    lab.simulator.update_application(
        si.ApplicationRequest(
            rm_id=RM,
            new=(si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=TEAM),),
        )
    )
    lab.settle()
    return lab


# -- stories


def _a_life(lab: Lab) -> None:
    lab.ask("a", vcore=2)
    lab.settle()
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.advance(30)


def _enforced(lab: Lab) -> None:
    lab.ask("b", "a")
    lab.settle()
    lab.configure(_quota(1))
    lab.advance(11)


def _rejected(lab: Lab) -> None:
    lab.submit("app-2", queue="root.nowhere.x", user="")


def _cancelled(lab: Lab) -> None:
    lab.ask("large", vcore=99)
    lab.settle()
    lab.withdraw("large")


def _out_of_time(lab: Lab) -> None:
    lab.submit("app-2", execution_timeout_milli_seconds=5_000)
    lab.ask("a", app="app-2")
    lab.ask("large", vcore=99, app="app-2")
    lab.advance(6)


def _starting(lab: Lab) -> None:
    lab.ask("a")


def _node_changes(lab: Lab) -> None:
    lab.ask("a", vcore=2)
    lab.settle()
    lab.node("n1", si.ActionFromRM.UPDATE, attributes={si.NODE_READY_ATTRIBUTE: "false"})
    lab.node("n1", si.ActionFromRM.UPDATE, 20, occupied_resource=si.Resource.of({"vcore": 1}))
    lab.decommission("n1")


def _reservation(lab: Lab) -> None:
    """There is room enough, and on no node; after a while one is kept."""
    lab.nodes(n2=10)
    lab.report(report("a", "n1", 8), report("b", "n2", 8))
    lab.ask("c", vcore=3)
    lab.advance(5)


def _one_at_a_time(lab: Lab) -> None:
    lab.submit("app-2")
    lab.ask("a")
    lab.ask("b", app="app-2")
    lab.settle()
    lab.remove(APP)


def _reloaded(to: str) -> Callable[[Lab], None]:
    return lambda lab: lab.configure(to)


def _dynamic(lab: Lab) -> None:
    lab.submit("app-2", queue="root.new")


def _gang(lab: Lab, style: str) -> None:
    enough = si.Resource.of({"vcore": 4})
    lab.submit("gang", placeholder_ask=enough, gang_scheduling_style=style)
    lab.ask("ph-a", app="gang", vcore=2, task_group_name="a", placeholder=True)
    lab.settle()


def _swap(lab: Lab) -> None:
    _gang(lab, "Hard")
    lab.ask("member", app="gang", vcore=2, task_group_name="a")


def _out_of_patience(lab: Lab) -> None:
    _gang(lab, "Soft")
    lab.advance(15 * 60)


Record = tuple[EventType, str, ChangeType, str]
"""Kind of object, its name, what happened to it, and the other object of the event."""
Story = tuple[str, Callable[[Lab], None]]
"""The configuration it begins under, and what happens."""
LIFE: Story = (LIMITED, _a_life)
TIME: Story = (CONFIG, _out_of_time)
NODES: Story = (CONFIG, _node_changes)
ENFORCED: Story = (_quota(9), _enforced)

ROWS: dict[Detail, tuple[Story, Record]] = {
    Detail.DETAILS_NONE: (LIFE, (NODE, "n1", ADD, "")),
    Detail.REQUEST_CANCEL: ((CONFIG, _cancelled), (APPLICATION, APP, REMOVE, "large")),
    Detail.REQUEST_ALLOC: (LIFE, (REQUEST, "a", SET, APP)),
    Detail.REQUEST_TIMEOUT: (TIME, (APPLICATION, "app-2", REMOVE, "large")),
    Detail.APP_ALLOC: (LIFE, (APPLICATION, APP, ADD, "a")),
    Detail.APP_REQUEST: (LIFE, (APPLICATION, APP, ADD, "a")),
    Detail.APP_REJECT: ((CONFIG, _rejected), (APPLICATION, "app-2", SET, "")),
    Detail.APP_NEW: (LIFE, (APPLICATION, APP, ADD, "")),
    Detail.APP_ACCEPTED: (LIFE, (APPLICATION, APP, SET, "")),
    Detail.APP_STARTING: ((AWARE, _starting), (APPLICATION, APP, SET, "")),
    Detail.APP_RUNNING: (LIFE, (APPLICATION, APP, SET, "")),
    Detail.APP_COMPLETING: (LIFE, (APPLICATION, APP, SET, "")),
    Detail.APP_COMPLETED: (LIFE, (APPLICATION, APP, SET, "")),
    Detail.APP_EXPIRED: (LIFE, (APPLICATION, APP, SET, "")),
    Detail.APP_FAILING: (TIME, (APPLICATION, "app-2", SET, "")),
    Detail.APP_FAILED: (TIME, (APPLICATION, "app-2", SET, "")),
    Detail.APP_CANNOTRUN_QUEUE: ((ONE_AT_A_TIME, _one_at_a_time), (APPLICATION, "app-2", NONE, "")),
    Detail.APP_RUNNABLE_QUEUE: ((ONE_AT_A_TIME, _one_at_a_time), (APPLICATION, "app-2", NONE, "")),
    Detail.APP_CANNOTRUN_QUOTA: ((ONE_OF_BOB, _one_at_a_time), (APPLICATION, "app-2", NONE, "")),
    Detail.APP_RUNNABLE_QUOTA: ((ONE_OF_BOB, _one_at_a_time), (APPLICATION, "app-2", NONE, "")),
    Detail.NODE_RESERVATION: ((CONFIG, _reservation), (NODE, "n1", ADD, "c")),
    Detail.NODE_DECOMISSION: (NODES, (NODE, "n1", REMOVE, "")),
    Detail.NODE_READY: (NODES, (NODE, "n1", SET, "")),
    Detail.NODE_SCHEDULABLE: (LIFE, (NODE, "n1", SET, "")),
    Detail.NODE_ALLOC: (LIFE, (NODE, "n1", REMOVE, "a")),
    Detail.NODE_CAPACITY: (NODES, (NODE, "n1", SET, "")),
    Detail.NODE_OCCUPIED: (NODES, (NODE, "n1", SET, "")),
    Detail.QUEUE_CONFIG: ((CONFIG, _reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_DYNAMIC: ((DYNAMIC, _dynamic), (QUEUE_, "root.new", ADD, "")),
    Detail.QUEUE_TYPE: ((CONFIG, _reloaded(GROWN)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_MAX: ((CONFIG, _reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_GUARANTEED: ((CONFIG, _reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_APP: (LIFE, (QUEUE_, QUEUE, REMOVE, APP)),
    Detail.QUEUE_ALLOC: (LIFE, (QUEUE_, QUEUE, ADD, APP)),
    Detail.ALLOC_CANCEL: (LIFE, (APPLICATION, APP, REMOVE, "a")),
    Detail.ALLOC_REPLACED: ((CONFIG, _swap), (APPLICATION, "gang", REMOVE, "ph-a")),
    Detail.APP_RESUMING: ((CONFIG, _out_of_patience), (APPLICATION, "gang", SET, "")),
    Detail.ALLOC_TIMEOUT: (TIME, (APPLICATION, "app-2", REMOVE, "a")),
    Detail.ALLOC_NODEREMOVED: (NODES, (APPLICATION, APP, REMOVE, "a")),
    Detail.ALLOC_PREEMPT: (ENFORCED, (APPLICATION, APP, REMOVE, "a")),
    Detail.QUEUE_PREEMPTION: (ENFORCED, (QUEUE_, QUEUE, SET, "")),
    Detail.UG_USER_LIMIT: ((CONFIG, _reloaded(LIMITED)), (OWNER, "bob", SET, QUEUE)),
    Detail.UG_GROUP_LIMIT: ((LIMITED, _reloaded(CONFIG)), (OWNER, "team", REMOVE, QUEUE)),
    Detail.UG_APP_LINK: (LIFE, (OWNER, "team", SET, APP)),
    Detail.UG_USER_RESOURCE: (LIFE, (OWNER, "bob", ADD, "root")),
    Detail.UG_GROUP_RESOURCE: (LIFE, (OWNER, "team", REMOVE, QUEUE)),
}  # fmt: skip


def _records(story: Story, topology: TopologyName) -> tuple[si.EventRecord, ...]:
    config, happens = story
    lab = _lab(config, topology)
    happens(lab)
    lab.settle()
    lab.simulator.advance(lab.context._estate.settings.history_ns)
    assert [] == lab.simulator.callback_errors
    return lab.simulator.events().records


def test_every_detail_has_its_place() -> None:
    assert sorted(Detail) == sorted(ROWS)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("detail", ROWS, ids=lambda detail: detail.name)
def test_where_a_detail_comes_from(detail: Detail, topology: TopologyName) -> None:
    story, wanted = ROWS[detail]
    found = [
        (it.type, it.object_id, it.event_change_type, it.reference_id)
        for it in _records(story, topology)
        if it.event_change_detail is detail
    ]
    assert wanted in found


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(("config", "kind"), [(ONE_AT_A_TIME, "QUEUE"), (ONE_OF_BOB, "QUOTA")])
def test_who_may_not_run_is_told_on_change_only(
    config: str, kind: str, topology: TopologyName
) -> None:
    """However often it is let go and held back again; whoever goes first was never held back."""
    lab = _lab(config, topology)
    lab.submit("app-2", "app-3")
    lab.ask("a")
    for app in ("app-2", "app-3"):
        lab.ask(f"of-{app}", app=app)
        lab.settle()
        lab.ask(f"more-of-{app}", app=app)
    lab.settle()
    lab.remove(APP)
    lab.settle()
    told = [
        (it.object_id, it.event_change_type, it.event_change_detail.name)
        for it in lab.simulator.events().records
        if "RUN_" in it.event_change_detail.name or "RUNNABLE" in it.event_change_detail.name
    ]
    assert [
        ("app-2", ChangeType.NONE, f"APP_CANNOTRUN_{kind}"),
        ("app-3", ChangeType.NONE, f"APP_CANNOTRUN_{kind}"),
        ("app-2", ChangeType.NONE, f"APP_RUNNABLE_{kind}"),
    ] == told
    assert ["more-of-app-2", "of-app-2"] == lab.running()


@pytest.mark.parametrize("type_", [_T.UNKNOWN_TERMINATION_TYPE, _T.STOPPED_BY_RM])
def test_a_resource_manager_that_gives_no_reason(type_: si.TerminationType) -> None:
    """It cancels; only a node that leaves takes its work along."""
    lab = _lab(CONFIG, "proposing")
    lab.ask("a")
    lab.settle()
    lab.release("a", termination_type=type_)
    lab.settle()
    details = [record.event_change_detail for record in lab.simulator.events().records]
    assert Detail.ALLOC_CANCEL in details
    assert Detail.ALLOC_NODEREMOVED not in details


def _cancelled_asks(lab: Lab) -> list[str]:
    lab.settle()
    return [
        it.reference_id
        for it in lab.simulator.events().records
        if it.event_change_detail is Detail.REQUEST_CANCEL and it.object_id == APP
    ]


@pytest.mark.parametrize("type_", [_T.UNKNOWN_TERMINATION_TYPE, _T.STOPPED_BY_RM])
def test_an_ask_goes_with_the_last_of_its_allocations(type_: si.TerminationType) -> None:
    lab = _lab(CONFIG, "proposing")
    lab.ask("a")
    lab.ask("b", max_allocations=2)
    lab.settle()
    lab.release("a", termination_type=type_)
    assert ["a"] == _cancelled_asks(lab)
    one, _ = lab.state.applications[APP].asks["b"].uuids
    lab.release("b", uuid=one, termination_type=type_)
    assert ["a"] == _cancelled_asks(lab), "another allocation of it lives"
    lab.release("b", termination_type=type_)
    assert ["a", "b"] == _cancelled_asks(lab)


def test_an_ask_goes_once() -> None:
    """Its waiting repeats were taken back before, or its application goes with everything."""
    lab = _lab(CONFIG, "proposing")
    lab.ask("a", vcore=6, max_allocations=2)
    lab.ask("b")
    lab.settle()
    lab.withdraw("a")
    lab.remove(APP)
    assert ["a", "b"] == _cancelled_asks(lab)


def test_an_ask_is_not_cancelled_with_its_node() -> None:
    lab = _lab(CONFIG, "proposing")
    lab.ask("a")
    lab.settle()
    lab.decommission("n1")
    assert [] == _cancelled_asks(lab)


def _times(lab: Lab) -> list[int]:
    return [record.timestamp_nano for record in lab.simulator.events().records]


def test_records_stand_in_the_order_of_time() -> None:
    lab = _lab(CONFIG, "proposing")
    _a_life(lab)
    lab.settle()
    assert sorted(_times(lab)) == _times(lab)
    assert lab.simulator.now_ns == _times(lab)[-1]


@pytest.mark.parametrize("letter", ["x", "é", "日", "🦄"])
def test_a_long_message_is_cut(letter: str) -> None:
    """Bytes count, and a character of several stays whole or goes."""
    lab = _lab(CONFIG, "proposing")
    size = len(letter.encode())
    lab.submit("app-2", queue="root." + letter * (1_000 // size))
    lab.settle()
    (record,) = [
        r for r in lab.simulator.events().records if r.event_change_detail is Detail.APP_REJECT
    ]
    ((_, told),) = [line for line in lab.rm.told("application") if line[0] == "app-2"]
    assert 1024 < len(told.encode())
    assert record.message.endswith("...")
    assert told.startswith(record.message.removesuffix("..."))
    assert len(record.message.encode()) in range(1025 - size, 1025)


def test_amounts_are_told() -> None:
    lab = _lab(CONFIG, "proposing")
    _a_life(lab)
    lab.settle()
    told: dict[Any, dict[str, int]] = {
        record.event_change_detail: record.resource.amounts()
        for record in lab.simulator.events().records
        if record.resource is not None
    }
    for detail in (Detail.APP_REQUEST, Detail.APP_ALLOC, Detail.NODE_ALLOC, Detail.ALLOC_CANCEL):
        assert {"vcore": 2} == told[detail]
    assert {} == told[Detail.APP_RUNNING]


def _told_of(lab: Lab, kind: EventType) -> list[tuple[Any, ...]]:
    return [
        (it.object_id, it.event_change_type.name, it.event_change_detail.name, it.reference_id)
        + ((it.resource.amounts(),) if it.resource is not None else ())
        for it in lab.simulator.events().records
        if it.type is kind
    ]


def _links(lab: Lab) -> list[tuple[str, str]]:
    """Say of which application each link to the group tells, and what."""
    return [
        (it.reference_id, it.event_change_type.name)
        for it in lab.simulator.events().records
        if it.event_change_detail is Detail.UG_APP_LINK and it.object_id == "team"
    ]


def _completing(lab: Lab) -> None:
    lab.release("a")


def _back_again(lab: Lab) -> None:
    lab.release("a")
    lab.ask("b")
    lab.settle()
    lab.remove(APP)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (_completing, ["SET", "REMOVE"]),
        (_back_again, ["SET", "REMOVE", "SET", "REMOVE"]),
        (lambda lab: lab.remove(APP), ["SET", "REMOVE"]),
        (_reloaded(CONFIG), ["SET", "REMOVE"]),
        (lambda lab: (_completing(lab), lab.configure(CONFIG)), ["SET", "REMOVE"]),
        (lambda lab: (lab.configure(CONFIG), _completing(lab)), ["SET", "REMOVE"]),
    ],
    ids=["completing", "back", "removed", "reloaded", "completing-reloaded", "reloaded-completing"],
)
def test_an_application_parts_from_its_group_once(
    ends: Callable[[Lab], object], told: list[str], topology: TopologyName
) -> None:
    lab = _lab(LIMITED, topology)
    lab.ask("a")
    lab.settle()
    ends(lab)
    lab.advance(60)
    assert [(APP, change) for change in told] == _links(lab)


def test_a_failing_application_parts_from_its_group() -> None:
    lab = _lab(LIMITED, "proposing")
    lab.simulator.update_application(
        si.ApplicationRequest(
            rm_id=RM,
            new=(
                si.AddApplicationRequest(
                    application_id="short",
                    queue_name=QUEUE,
                    ugi=TEAM,
                    execution_timeout_milli_seconds=5_000,
                ),
            ),
        )
    )
    lab.ask("a", app="short")
    lab.advance(6)
    assert [("short", "SET"), ("short", "REMOVE")] == _links(lab)


def test_the_size_of_the_cluster_is_the_maximum_of_the_root() -> None:
    """Told where it is another one, after what the node tells of itself."""
    lab = _lab(CONFIG, "proposing")
    lab.nodes(n2=5)
    lab.node("n2", si.ActionFromRM.DRAIN_NODE)
    lab.node("n2", si.ActionFromRM.UPDATE, 5, occupied_resource=si.Resource.of({"vcore": 1}))
    lab.node("n2", si.ActionFromRM.UPDATE, 7)
    lab.decommission("n2")
    lab.nodes(n3=0)
    lab.decommission("n1")
    lab.settle()
    assert [
        ("root", "SET", "QUEUE_MAX", "", amounts)
        for amounts in (
            {"vcore": 10},
            {"vcore": 15},
            {"vcore": 17},
            {"vcore": 10},
            {},
        )
    ] == [line for line in _told_of(lab, QUEUE_) if line[2] == "QUEUE_MAX"]
    kinds = [
        it.event_change_detail
        for it in lab.simulator.events().records
        if it.object_id in {"n2", "root"} and it.event_change_detail is not Detail.DETAILS_NONE
    ]
    assert [Detail.NODE_DECOMISSION, Detail.QUEUE_MAX, Detail.QUEUE_MAX] == kinds[-3:]


def test_an_action_that_makes_no_sense_is_told() -> None:
    lab = _lab(CONFIG, "proposing")
    lab.node("ghost", si.ActionFromRM.DRAIN_NODE)
    lab.settle()
    (record,) = [r for r in lab.simulator.events().records if r.object_id == "ghost"]
    assert (NODE, Detail.DETAILS_NONE) == (record.type, record.event_change_detail)
    assert "Node action DRAIN_NODE refused: unknown node" == record.message


def test_a_new_size_is_told_as_usage() -> None:
    """Both ways: what grows is added, what shrinks is taken away."""
    lab = _lab(LIMITED, "proposing")
    lab.report(report("a", "n1", resource_per_alloc=si.Resource.of({"vcore": 4, "memory": 1})))
    lab.settle()
    before = len(_told_of(lab, OWNER))
    lab.report(report("a", "n1", resource_per_alloc=si.Resource.of({"vcore": 1, "memory": 5})))
    lab.settle()
    expected = [
        (owner, change, f"UG_{kind}_RESOURCE", path, amounts)
        for change, amounts in (("ADD", {"memory": 4}), ("REMOVE", {"vcore": 3}))
        for owner, kind in (("bob", "USER"), ("team", "GROUP"))
        for path in ("root", QUEUE)
    ]
    assert expected == _told_of(lab, OWNER)[before:]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_end_of_a_history_is_told(topology: TopologyName) -> None:
    lab = _lab(CONFIG, topology)
    _a_life(lab)
    lab.simulator.advance(AFTER_HISTORY_NS)
    assert (APP, "Expired") == lab.rm.told("state")[-1]
    assert {} == lab.state.finished


def test_the_end_of_a_former_life_is_not_told_of_the_next() -> None:
    """The resource manager knows an application by its id alone."""
    lab = _lab(CONFIG, "proposing")
    _a_life(lab)
    lab.submit(APP)
    lab.ask("b")
    lab.simulator.advance(AFTER_HISTORY_NS)
    assert ["b"] == lab.running()
    assert "Expired" not in [state for _, state in lab.rm.told("state")]
    assert Detail.APP_EXPIRED in [
        record.event_change_detail for record in lab.simulator.events().records
    ]
