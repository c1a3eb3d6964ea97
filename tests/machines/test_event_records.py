"""What event records say and when: once, on change, in order, and with the amounts."""

from collections.abc import Callable
from typing import Any

import pytest
from eventful import (
    LIMITED,
    ONE_AT_A_TIME,
    ONE_OF_BOB,
    TEAM,
    a_life,
    lab_of,
    reloaded,
    root_with,
)
from support import AFTER_HISTORY_NS, APP, CONFIG, QUEUE, RM, Lab, ask, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.si import ChangeDetail as Detail
from yunikorn_actors.si import ChangeType, EventType
from yunikorn_actors.state.termination import BY_RM

NODE, QUEUE_, OWNER = EventType.NODE, EventType.QUEUE, EventType.USERGROUP


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(("config", "kind"), [(ONE_AT_A_TIME, "QUEUE"), (ONE_OF_BOB, "QUOTA")])
def test_who_may_not_run_is_told_on_change_only(
    config: str, kind: str, topology: TopologyName
) -> None:
    """However often it is let go and held back again; whoever goes first was never held back."""
    lab = lab_of(config, topology)
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


@pytest.mark.parametrize("type_", sorted(BY_RM))
def test_a_resource_manager_that_gives_no_reason(type_: si.TerminationType) -> None:
    """It cancels; only a node that leaves takes its work along."""
    lab = lab_of(CONFIG, "proposing")
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


@pytest.mark.parametrize("type_", sorted(BY_RM))
def test_an_ask_goes_with_the_last_of_its_allocations(type_: si.TerminationType) -> None:
    lab = lab_of(CONFIG, "proposing")
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
    lab = lab_of(CONFIG, "proposing")
    lab.ask("a", vcore=6, max_allocations=2)
    lab.ask("b")
    lab.settle()
    lab.withdraw("a")
    lab.remove(APP)
    assert ["a", "b"] == _cancelled_asks(lab)


def test_an_ask_is_not_cancelled_with_its_node() -> None:
    lab = lab_of(CONFIG, "proposing")
    lab.ask("a")
    lab.settle()
    lab.decommission("n1")
    assert [] == _cancelled_asks(lab)


def _times(lab: Lab) -> list[int]:
    return [record.timestamp_nano for record in lab.simulator.events().records]


def test_records_stand_in_the_order_of_time() -> None:
    lab = lab_of(CONFIG, "proposing")
    a_life(lab)
    lab.settle()
    assert sorted(_times(lab)) == _times(lab)
    assert lab.simulator.now_ns == _times(lab)[-1]


@pytest.mark.parametrize("letter", ["x", "é", "日", "🦄"])
def test_a_long_message_is_cut(letter: str) -> None:
    """Bytes count, and a character of several stays whole or goes."""
    lab = lab_of(CONFIG, "proposing")
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
    lab = lab_of(CONFIG, "proposing")
    a_life(lab)
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
        (reloaded(CONFIG), ["SET", "REMOVE"]),
        (lambda lab: (_completing(lab), lab.configure(CONFIG)), ["SET", "REMOVE"]),
        (lambda lab: (lab.configure(CONFIG), _completing(lab)), ["SET", "REMOVE"]),
    ],
    ids=["completing", "back", "removed", "reloaded", "completing-reloaded", "reloaded-completing"],
)
def test_an_application_parts_from_its_group_once(
    ends: Callable[[Lab], object], told: list[str], topology: TopologyName
) -> None:
    lab = lab_of(LIMITED, topology)
    lab.ask("a")
    lab.settle()
    ends(lab)
    lab.advance(60)
    assert [(APP, change) for change in told] == _links(lab)


def test_a_failing_application_parts_from_its_group() -> None:
    lab = lab_of(LIMITED, "proposing")
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
    lab = lab_of(CONFIG, "proposing")
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


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_configuration_of_a_queue_is_told_to_its_end(topology: TopologyName) -> None:
    """It changes, drains, comes back, drains again and goes."""
    lab = lab_of(root_with("{name: default}, {name: leaving}"), topology)
    for leaf in (
        "{name: leaving, maxapplications: 1}",
        "{name: other}",
        "{name: leaving, maxapplications: 1}",
        "{name: other}",
    ):
        lab.configure(root_with(f"{{name: default}}, {leaf}"))
    lab.advance(10)
    told = [
        (it.event_change_type, it.event_change_detail, it.message)
        for it in lab.simulator.events().records
        if it.object_id == "root.leaving"
    ]
    draining = (ChangeType.SET, Detail.QUEUE_CONFIG, "queue state: Draining")
    assert [
        (ChangeType.ADD, Detail.DETAILS_NONE, ""),
        (ChangeType.SET, Detail.QUEUE_CONFIG, ""),
        draining,
        (ChangeType.SET, Detail.QUEUE_CONFIG, "queue state: Active"),
        draining,
        (ChangeType.REMOVE, Detail.QUEUE_CONFIG, ""),
    ] == told


def test_an_action_that_makes_no_sense_is_told() -> None:
    lab = lab_of(CONFIG, "proposing")
    lab.node("ghost", si.ActionFromRM.DRAIN_NODE)
    lab.settle()
    (record,) = [r for r in lab.simulator.events().records if r.object_id == "ghost"]
    assert (NODE, Detail.DETAILS_NONE) == (record.type, record.event_change_detail)
    assert "Node action DRAIN_NODE refused: unknown node" == record.message


def test_a_new_size_is_told_as_usage() -> None:
    """Both ways: what grows is added, what shrinks is taken away."""
    lab = lab_of(LIMITED, "proposing")
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
    lab = lab_of(CONFIG, topology)
    a_life(lab)
    lab.simulator.advance(AFTER_HISTORY_NS)
    assert (APP, "Expired") == lab.rm.told("state")[-1]
    assert {} == lab.state.finished


def test_the_end_of_a_former_life_is_not_told_of_the_next() -> None:
    """The resource manager knows an application by its id alone."""
    lab = lab_of(CONFIG, "proposing")
    a_life(lab)
    lab.submit(APP)
    lab.ask("b")
    lab.simulator.advance(AFTER_HISTORY_NS)
    assert ["b"] == lab.running()
    assert "Expired" not in [state for _, state in lab.rm.told("state")]
    assert Detail.APP_EXPIRED in [
        record.event_change_detail for record in lab.simulator.events().records
    ]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_time_that_counts_as_none_is_told_once(topology: TopologyName) -> None:
    """Whether the asks come one by one or together, and however many plans follow."""
    lab = lab_of(CONFIG, topology)
    tag = "yunikorn-actors/runtime"
    lab.submit("app-2", tags={tag: "a day"})
    lab.ask("alone", tags={tag: "soon"})
    lab.settle()
    texts = {"a": "-1", "b": "60", "c": "inf", "d": ""}
    lab.request(asks=tuple(ask(key, tags={tag: text}) for key, text in texts.items()))
    lab.ask("e", app="app-2")
    lab.settle()
    lab.ask("large", vcore=99, tags={tag: "60"})
    lab.settle()
    lab.ask("large", vcore=99, tags={tag: "1e300"})
    lab.advance(30)
    events = lab.simulator.events()
    told = [it for it in events.records if "counts as none" in it.message]
    assert [
        ("app-2", "", "a day"), (APP, "alone", "soon"), (APP, "a", "-1"), (APP, "c", "inf"),
        (APP, "large", "1e300"),
    ] == [(it.object_id, it.reference_id, it.message.split("'")[3]) for it in told]  # fmt: skip
    kinds = [(it.type, it.event_change_type, it.event_change_detail) for it in told]
    added = EventType.APP, ChangeType.ADD
    assert [(*added, Detail.APP_NEW), *[(*added, Detail.APP_REQUEST)] * 4] == kinds
    assert told[1].message == (
        f"the run time of request 'alone' counts as none: 'soon' in {tag} is no number of seconds "
        "from 0 to 292 years"
    )
    assert len(events.records) == events.highest_id + 1, "as many as were counted"
