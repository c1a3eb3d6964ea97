"""Where each detail of the interface comes from.

A story is something that happens to a small cluster; a row says which story gives rise to which
record. Every detail has its place.
"""

from collections.abc import Callable

import pytest
from eventful import LIMITED, ONE_AT_A_TIME, ONE_OF_BOB, a_life, lab_of, reloaded, root_with
from support import APP, CONFIG, QUEUE, Lab, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.si import ChangeDetail as Detail
from yunikorn_actors.si import ChangeType, EventType

ADD, SET, REMOVE, NONE = ChangeType.ADD, ChangeType.SET, ChangeType.REMOVE, ChangeType.NONE
REQUEST, APPLICATION, NODE = EventType.REQUEST, EventType.APP, EventType.NODE
QUEUE_, OWNER = EventType.QUEUE, EventType.USERGROUP


def _quota(vcore: int) -> str:
    return root_with(
        f"{{name: default, properties: {{quota.preemption.delay: 10s}}, "
        f"resources: {{max: {{vcore: {vcore}m}}}}}}",
        "preemption: {quotapreemptionenabled: true},",
    )


SIZED = root_with("{name: default, resources: {guaranteed: {vcore: 1m}, max: {vcore: 5m}}}")
GROWN = root_with("{name: default, queues: [{name: inner}]}")
DYNAMIC = root_with("{name: default}", "placementrules: [{name: provided, create: true}],")
AWARE = root_with("{name: default, properties: {application.sort.policy: stateaware}}")


# -- stories


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
    lab.node("n1", si.ActionFromRM.UPDATE, attributes={si.constants.NODE_READY_ATTRIBUTE: "false"})
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
LIFE: Story = (LIMITED, a_life)
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
    Detail.QUEUE_CONFIG: ((CONFIG, reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_DYNAMIC: ((DYNAMIC, _dynamic), (QUEUE_, "root.new", ADD, "")),
    Detail.QUEUE_TYPE: ((CONFIG, reloaded(GROWN)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_MAX: ((CONFIG, reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_GUARANTEED: ((CONFIG, reloaded(SIZED)), (QUEUE_, QUEUE, SET, "")),
    Detail.QUEUE_APP: (LIFE, (QUEUE_, QUEUE, REMOVE, APP)),
    Detail.QUEUE_ALLOC: (LIFE, (QUEUE_, QUEUE, ADD, APP)),
    Detail.ALLOC_CANCEL: (LIFE, (APPLICATION, APP, REMOVE, "a")),
    Detail.ALLOC_REPLACED: ((CONFIG, _swap), (APPLICATION, "gang", REMOVE, "ph-a")),
    Detail.APP_RESUMING: ((CONFIG, _out_of_patience), (APPLICATION, "gang", SET, "")),
    Detail.ALLOC_TIMEOUT: (TIME, (APPLICATION, "app-2", REMOVE, "a")),
    Detail.ALLOC_NODEREMOVED: (NODES, (APPLICATION, APP, REMOVE, "a")),
    Detail.ALLOC_PREEMPT: (ENFORCED, (APPLICATION, APP, REMOVE, "a")),
    Detail.QUEUE_PREEMPTION: (ENFORCED, (QUEUE_, QUEUE, SET, "")),
    Detail.UG_USER_LIMIT: ((CONFIG, reloaded(LIMITED)), (OWNER, "bob", SET, QUEUE)),
    Detail.UG_GROUP_LIMIT: ((LIMITED, reloaded(CONFIG)), (OWNER, "team", REMOVE, QUEUE)),
    Detail.UG_APP_LINK: (LIFE, (OWNER, "team", SET, APP)),
    Detail.UG_USER_RESOURCE: (LIFE, (OWNER, "bob", ADD, "root")),
    Detail.UG_GROUP_RESOURCE: (LIFE, (OWNER, "team", REMOVE, QUEUE)),
}  # fmt: skip


def _records(story: Story, topology: TopologyName) -> tuple[si.EventRecord, ...]:
    config, happens = story
    lab = lab_of(config, topology)
    happens(lab)
    lab.settle()
    lab.simulator.advance(lab.context._partitions.settings.history_ns)
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
