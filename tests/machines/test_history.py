"""What an application has used over its life, and the summary at its end."""

from typing import Any

import pytest
from eventful import TO_CONFIRM, Obliging
from support import APP, PARTITION, Lab

from yunikorn_actors import si
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.values.durations import SECOND

_T = si.TerminationType
NOTHING: dict[str, Any] = {"used": {}, "placeholder": {}, "preempted": {}}
QUOTA = (
    "partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: [{name: root,"
    " submitacl: '*', queues: [{name: default, properties: {quota.preemption.delay: 10s},"
    " resources: {max: {vcore: %dm}}}]}]}]"
)


ONLY_ONE = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: only}]}]}]"
)


def lab_with(topology: TopologyName = "proposing", **settings: Any) -> Lab:
    rm = Obliging()
    rm.lab = lab = Lab(topology=topology, rm=rm, **settings)
    for name, kind in (("n1", "m5"), ("n2", "")):
        lab.node(name, si.ActionFromRM.CREATE, 10, attributes={si.constants.INSTANCE_TYPE: kind})
    lab.settle()
    return lab


def history(lab: Lab, app: str = APP) -> Any:
    """Of the one that lives, else of the one that ended last."""
    partition = lab.simulator.state_dump()["partitions"][PARTITION]
    if app in partition["applications"]:
        return partition["applications"][app]["resource_seconds"]
    ended = [item for item in partition["finished"] if item["application"] == app]
    return ended[-1]["resource_seconds"]


def summaries(lab: Lab) -> list[str]:
    """As events tell them; the log has the same lines."""
    lab.settle()
    records = lab.simulator.events().records
    told = [it.message for it in records if it.message.startswith("YK_APP_SUMMARY: ")]
    assert told == lab.simulator.lines
    return told


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_amounts_times_seconds_by_type_of_node(topology: TopologyName) -> None:
    lab = lab_with(topology)
    lab.submit(APP)
    lab.ask("a", "b", vcore=6)
    lab.advance(30)
    assert NOTHING == history(lab), "an allocation is charged when it ends"
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.advance(10.9)
    lab.release("b", termination_type=_T.STOPPED_BY_RM)
    lab.settle()
    used = {"m5": {"vcore": 180}, "UNKNOWN": {"vcore": 240}}
    assert NOTHING | {"used": used} == history(lab)
    lab.advance(40)
    assert NOTHING | {"used": used} == history(lab), "it is remembered when it has ended"


def test_a_new_size_counts_from_when_it_came() -> None:
    """Whole seconds of the life: what is left over at the change is not lost."""
    lab = lab_with()
    lab.submit(APP)
    lab.ask("a", vcore=4)
    lab.advance(2.5)
    (running,) = lab.state.applications[APP].allocations.values()
    bigger = si.Allocation(
        application_id=APP,
        allocation_key="a",
        uuid=running.uuid,
        node_id=running.node_id,
        resource_per_alloc=si.Resource.of({"vcore": 6}),
    )
    lab.report(bigger)
    lab.advance(2.5)
    lab.remove(APP)
    (line,) = summaries(lab)
    assert f"ResourceUsage: TrackedResource{{m5:vcore={2 * 4 + 3 * 6}}}" in line


def test_the_type_of_the_node_is_what_it_was() -> None:
    lab = lab_with()
    lab.submit(APP)
    lab.ask("a")
    lab.advance(5)
    lab.node("n1", si.ActionFromRM.UPDATE, attributes={si.constants.INSTANCE_TYPE: "other"})
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.settle()
    assert {"m5": {"vcore": 5}} == history(lab)["used"]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_placeholders_count_apart(topology: TopologyName) -> None:
    """Until they are taken over, or go."""
    lab = lab_with(topology)
    lab.submit(APP, placeholder_ask=si.Resource.of({"vcore": 4}))
    lab.ask("ph-0", "ph-1", vcore=2, task_group_name="tg", placeholder=True)
    lab.advance(10)
    lab.ask("member", vcore=2, task_group_name="tg")
    lab.advance(5)
    assert {"vcore": 20} == _sum(history(lab)["placeholder"])
    lab.release("member", "ph-1", termination_type=_T.STOPPED_BY_RM)
    lab.settle()
    assert {"vcore": 50} == _sum(history(lab)["placeholder"])
    assert {"vcore": 10} == _sum(history(lab)["used"])


def _sum(part: dict[str, dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in part.values():
        for kind, quantity in amounts.items():
            total[kind] = total.get(kind, 0) + quantity
    return total


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_was_preempted_counts_apart(topology: TopologyName) -> None:
    assert _T.PREEMPTED_BY_SCHEDULER in TO_CONFIRM
    lab = lab_with(topology, config=QUOTA % 9)
    lab.submit(APP)
    lab.ask("a", "b")
    lab.settle()
    lab.configure(QUOTA % 1)
    lab.advance(20)
    assert {"vcore": 10} == _sum(history(lab)["preempted"])
    assert {} == history(lab)["used"]


def test_the_summary_at_the_end() -> None:
    lab = lab_with()
    lab.submit(APP)
    lab.advance(1)
    lab.ask("a", vcore=2)
    lab.advance(30)
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.settle()
    assert [] == summaries(lab), "it may still come back"
    start_ns = lab.state.applications[APP].started_ns
    lab.advance(30)
    second = 1_000_000_000
    (line,) = summaries(lab)
    assert line == (
        f"YK_APP_SUMMARY: ApplicationID: {APP}, SubmissionTime: {start_ns - second}, "
        f"StartTime: {start_ns}, FinishTime: {start_ns + 60 * second}, User: bob, "
        "Queue: root.default, State: Completed, RmID: rm-1, "
        "ResourceUsage: TrackedResource{m5:vcore=60}, PreemptedResource: TrackedResource{}, "
        "PlaceholderResource: TrackedResource{}"
    )
    (ended,) = lab.simulator.state_dump()["partitions"][PARTITION]["finished"]
    assert ("bob", start_ns - second, start_ns, start_ns + 60 * second) == (
        ended["user"],
        ended["submitted_ns"],
        ended["started_ns"],
        ended["finished_ns"],
    )


def test_who_fails_or_is_removed_is_summed_up_too_and_who_never_ran_is_not() -> None:
    lab = lab_with()
    lab.submit("late", execution_timeout_milli_seconds=5_000)
    lab.submit("gone", "idle", "refused", "refused")
    lab.ask("a", app="late")
    lab.ask("b", app="gone")
    lab.advance(6)
    lab.remove("gone", "idle")
    told = [line.split(", ")[0::6] for line in summaries(lab)]
    assert [
        ["YK_APP_SUMMARY: ApplicationID: late", "State: Failed"],
        ["YK_APP_SUMMARY: ApplicationID: gone", "State: Running"],
    ] == told


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_rejection_that_is_forgotten_early_leaves_the_earlier_life_of_its_name(
    topology: TopologyName,
) -> None:
    """It was the last end under that name, so the end of the earlier history finds none."""
    lab = lab_with(topology, config=ONLY_ONE, settings=Settings(rejected_max=1))
    lab.submit(APP, queue="root.only")
    lab.ask("a")
    lab.settle()
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.advance(31)
    lab.submit(APP, "other", queue="root.nowhere")
    lab.settle()
    assert [APP, "other"] == [item.spec.application_id for item in lab.state.finished.values()]
    lab.advance(Settings().history_ns / SECOND)
    assert {} == lab.state.finished
