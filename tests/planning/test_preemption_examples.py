"""Preemption worked out by hand: small clusters, and how much each queue has in the end."""

import json
from typing import Any

import pytest
from confirming import PREEMPTED, Victims, confirming_lab, policy
from support import Lab

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state import facts as f

PUSHY = {"preemption_policy": policy()}
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


def queue(
    name: str, *below: dict[str, Any], guaranteed: int = 0, most: int = 0, **properties: str
) -> dict[str, Any]:
    named = {key.replace("__", "."): value for key, value in properties.items()}
    sizes = {"guaranteed": guaranteed, "max": most}
    resources = {what: {"vcore": f"{size}m"} for what, size in sizes.items() if size}
    return {
        "name": name,
        "properties": {"preemption.delay": "1s", **named},
        "resources": resources,
        **({"queues": list(below)} if below else {}),
    }


def config(*queues: dict[str, Any], **preemption: bool) -> str:
    root = {"name": "root", "submitacl": "*", "queues": list(queues)}
    return json.dumps(
        {"partitions": [{"name": "default", "queues": [root], "preemption": preemption}]}
    )


def fill(lab: Lab, path: str, count: int, vcore: int = 1, **fields: Any) -> None:
    """Ask for so many equal allocations in a leaf, by an application named like the leaf."""
    name = path.rpartition(".")[2]
    if name not in lab.state.applications:
        lab.submit(name, queue=path)
    made = len(lab.state.applications[name].asks) if name in lab.state.applications else 0
    keys = [f"{name}-{number}" for number in range(made, made + count)]
    lab.ask(*keys, app=name, vcore=vcore, **{**PUSHY, **fields})


def used(lab: Lab, *paths: str) -> list[int]:
    return [lab.state.queues[path].allocated.get("vcore", 0) for path in paths]


@topologies
def test_a_queue_takes_up_to_its_guarantee_where_the_parent_is_full(topology: TopologyName) -> None:
    """The nodes have room; the maximum of the parent is what lacks, and fences the search in."""
    shared = {"guaranteed": 5, "most": 10}
    parent = queue("parent", queue("q1", **shared), queue("q2", **shared), most=12)
    lab = confirming_lab(config(parent, queue("far")), topology=topology)
    lab.nodes(n1=10, n2=10)
    fill(lab, "root.far", 5)
    fill(lab, "root.parent.q1", 10)
    lab.settle()
    fill(lab, "root.parent.q2", 10)
    lab.advance(30)
    assert [7, 5, 5] == used(lab, "root.parent.q1", "root.parent.q2", "root.far")
    assert lab.leftovers() == {}


@topologies
def test_nobody_goes_where_the_quota_would_still_be_full(topology: TopologyName) -> None:
    """Only one may go, as the others are more important; the ask needs two, so that one stays."""
    q1, q2 = queue("q1", guaranteed=2), queue("q2", guaranteed=1)
    lab = confirming_lab(config(queue("parent", q1, q2, most=4)), topology=topology)
    lab.nodes(n1=10)
    fill(lab, "root.parent.q2", 1)
    lab.settle()
    fill(lab, "root.parent.q2", 3, priority=10)
    lab.settle()
    fill(lab, "root.parent.q1", 1, vcore=2)
    lab.advance(60)
    assert [0, 4] == used(lab, "root.parent.q1", "root.parent.q2")
    fill(lab, "root.parent.q1", 1)
    lab.advance(60)
    assert [1, 3] == used(lab, "root.parent.q1", "root.parent.q2"), "vacuous: nobody may go"


@topologies
def test_opted_out_work_stays_while_others_are_willing(topology: TopologyName) -> None:
    shared = {"guaranteed": 3, "most": 8}
    leaves = (queue(name, **shared) for name in ("q1", "q2", "q3"))
    lab = confirming_lab(config(queue("parent", *leaves, most=16)), topology=topology)
    lab.nodes(n1=20)
    fill(lab, "root.parent.q1", 8)
    fill(lab, "root.parent.q2", 8, preemption_policy=policy(willing=False))
    lab.settle()
    fill(lab, "root.parent.q3", 5)
    lab.advance(30)
    assert [5, 8, 3] == used(lab, "root.parent.q1", "root.parent.q2", "root.parent.q3")


@topologies
def test_offsets_say_who_may_take(topology: TopologyName) -> None:
    leaves = (
        queue(name, guaranteed=6, priority__offset=offset)
        for name, offset in (("high", "100"), ("norm", "0"), ("low", "-100"))
    )
    lab = confirming_lab(config(*leaves), topology=topology)
    lab.nodes(n1=9, n2=9)
    fill(lab, "root.norm", 6, vcore=3)
    lab.settle()
    fill(lab, "root.low", 6, vcore=3)
    fill(lab, "root.high", 6, vcore=3)
    lab.advance(30)
    assert [6, 12, 0] == used(lab, "root.high", "root.norm", "root.low")


@topologies
def test_a_fence_keeps_its_own_asks_in_and_nobody_out(topology: TopologyName) -> None:
    fence = {"preemption__policy": "fence"}
    tenants = (
        queue("ten-a", queue("q1"), queue("q2", **fence), guaranteed=10, most=15, **fence),
        queue("ten-b", guaranteed=10, most=15, **fence),
        queue("sys", guaranteed=10),
    )
    lab = confirming_lab(config(*tenants), topology=topology)
    lab.nodes(n1=10, n2=10, n3=10)
    fill(lab, "root.ten-a.q1", 15)
    fill(lab, "root.ten-b", 15)
    lab.settle()
    fill(lab, "root.ten-a.q2", 15)
    fill(lab, "root.sys", 15)
    lab.advance(60)
    assert [10, 0, 10, 10] == used(lab, "root.ten-a", "root.ten-a.q2", "root.ten-b", "root.sys")


@topologies
def test_an_offset_above_the_meeting_point_lifts_both_sides(topology: TopologyName) -> None:
    inner = (queue("rich"), queue("poor", guaranteed=4))
    lab = confirming_lab(config(queue("dept", *inner, priority__offset="100")), topology=topology)
    lab.nodes(n1=4)
    fill(lab, "root.dept.rich", 4, priority=5)
    lab.settle()
    fill(lab, "root.dept.poor", 4)
    lab.advance(30)
    assert [4, 0] == used(lab, "root.dept.rich", "root.dept.poor")


@topologies
def test_nobody_is_taken_who_must_not_be(topology: TopologyName) -> None:
    """Bound to its node, of another type alone, asked back already, or below the guarantee."""
    victims = Victims()
    lab = confirming_lab(
        config(queue("rich"), queue("poor", guaranteed=8)),
        topology=topology, at_once=False, checkers=(victims,),
    )  # fmt: skip
    lab.nodes(n1=4)
    lab.submit("rich", queue="root.rich")
    lab.ask("bound", app="rich", tags={"yunikorn.apache.org/requiredNode": "n1"})
    lab.ask("ends", app="rich", execution_timeout_milli_seconds=1)
    lab.ask("plain", app="rich", vcore=2)
    lab.settle()
    lab.advance(1)
    fill(lab, "root.poor", 4)
    lab.advance(30)
    # What times out makes room for one by itself; only `plain` may go, and it makes room for two.
    assert ["plain"] == victims.keys()


# -- quotas

DELAY = {"quota__preemption__delay": "10s"}


def quota(most: int, **others: Any) -> str:
    return config(queue("a", most=most, **DELAY, **others), quotapreemptionenabled=True)


@topologies
@pytest.mark.parametrize(("count", "vcore", "left"), [(10, 1, 6), (2, 5, 10)])
def test_a_lowered_quota_takes_what_fits_into_the_excess(
    count: int, vcore: int, left: int, topology: TopologyName
) -> None:
    """Ten of one come down to the maximum; two of five exceed the plan each, and stay for good."""
    lab = confirming_lab(quota(10, guaranteed=5), topology=topology)
    lab.nodes(n1=20)
    fill(lab, "root.a", count, vcore=vcore)
    lab.settle()
    lab.configure(quota(6, guaranteed=5))
    lab.advance(9)
    assert [10] == used(lab, "root.a")
    lab.advance(60)
    assert [left] == used(lab, "root.a")
    assert {} == lab.state.quotas


@pytest.mark.parametrize(
    ("max_vcore", "max_memory", "armed"),
    [(5, 10, True), (5, 20, False), (10, 10, False), (20, 20, False), (10, 9, False)],
)
def test_only_a_maximum_that_is_lowered_arms(max_vcore: int, max_memory: int, armed: bool) -> None:
    def sized(vcore: int, memory: int) -> str:
        limit = {"max": {"vcore": f"{vcore}m", "memory": memory}}
        leaf = {**queue("a", **DELAY), "resources": limit}
        return config(leaf, quotapreemptionenabled=True)

    lab = confirming_lab(sized(10, 10))
    lab.nodes(n1=20)
    fill(lab, "root.a", 10)
    lab.settle()
    lab.configure(sized(max_vcore, max_memory))
    lab.settle()
    assert armed is bool(lab.state.quotas)


@topologies
def test_a_parent_shares_its_plan_in_proportion_rounded_down(topology: TopologyName) -> None:
    def shared(most: int) -> str:
        parent = queue("p", queue("a", guaranteed=1), queue("b", guaranteed=1), most=most, **DELAY)
        return config(parent, quotapreemptionenabled=True)

    lab = confirming_lab(shared(22), topology=topology)
    lab.nodes(n1=30)
    fill(lab, "root.p.a", 16)
    fill(lab, "root.p.b", 6)
    lab.settle()
    lab.configure(shared(12))
    lab.advance(11)
    assert [9, 4] == used(lab, "root.p.a", "root.p.b")


def _armed(lab: Lab) -> dict[str, float]:
    now_ns = lab.simulator.now_ns
    return {path: (due_ns - now_ns) / 1e9 for path, due_ns in lab.state.quotas.items()}


def test_the_time_moves_with_the_delay_and_goes_with_its_reason() -> None:
    def delayed(most: int, seconds: int) -> str:
        leaf = queue("a", most=most, quota__preemption__delay=f"{seconds}s")
        return config(leaf, quotapreemptionenabled=True)

    lab = confirming_lab(delayed(10, 60))
    lab.nodes(n1=20)
    fill(lab, "root.a", 10)
    lab.settle()
    lab.configure(delayed(6, 60))
    lab.advance(10)
    assert {"root.a": 50} == _armed(lab)
    lab.configure(delayed(6, 90))
    lab.settle()
    assert {"root.a": 80} == _armed(lab)
    lab.configure(delayed(5, 30))
    lab.settle()
    assert {"root.a": 20} == _armed(lab)
    lab.configure(delayed(5, 0))
    lab.settle()
    assert {} == _armed(lab)
    lab.configure(delayed(5, 40))
    lab.settle()
    assert {"root.a": 40} == _armed(lab)
    lab.release(*(f"a-{number}" for number in range(5)), app="a")
    lab.settle()
    assert {} == _armed(lab)
    lab.advance(100)
    assert [5] == used(lab, "root.a")


@topologies
def test_a_quota_takes_opted_out_work_and_originators_last(topology: TopologyName) -> None:
    victims = Victims()
    lab = confirming_lab(quota(3), topology=topology, checkers=(victims,))
    lab.nodes(n1=3)
    lab.submit("a", queue="root.a")
    lab.ask("plain", app="a", priority=9)
    lab.ask("unwilling", app="a", preemption_policy=policy(willing=False))
    lab.ask("driver", app="a", originator=True)
    lab.settle()
    for number, last in enumerate(("plain", "driver", "unwilling")):
        lab.configure(
            quota(2 - number)
            if number < 2
            else config(
                {**queue("a", **DELAY), "resources": {"max": {"vcore": 0}}},
                quotapreemptionenabled=True,
            )
        )
        lab.advance(11)
        assert last == victims.keys()[-1]
        assert isinstance(victims.marked[-1], f.VictimMarked)
    assert 3 == len([1 for _, type_ in lab.rm.told("released") if type_ == PREEMPTED.name])
