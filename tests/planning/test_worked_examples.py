"""Worked examples: priorities of queues, headroom, the gate of running applications, nodes."""

import pytest
from written import APP, Written

from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY
from yunikorn_actors.state.applications import ApplicationState

WAITING = {
    "root.system.normal": (10, 2),
    "root.system.high": (1,),
    "root.system.low": (3,),
    "root.tenants.a.one": (8, 5),
    "root.tenants.a.two": (6, 4),
    "root.tenants.b.one": (9, 7),
    "root.tenants.b.two": (8,),
}
SHOWN = {
    "root.system": 1001,
    "root.system.normal": 10,
    "root.system.high": 1001,
    "root.system.low": -997,
    "root.tenants": 0,
    "root.tenants.a": 10,
    "root.tenants.a.one": 8,
    "root.tenants.a.two": 6,
    "root.tenants.b": 0,
    "root.tenants.b.one": 9,
    "root.tenants.b.two": 8,
    "root.tenants.c": NO_PRIORITY,
}
ORDER = [
    *("high/1", "normal/10", "normal/2", "one/8", "two/6", "one/5", "two/4"),
    *("one/9", "two/8", "one/7", "low/3"),
]


def _company() -> Written:
    """Tenants are fenced in, and one of them stands higher than the others."""
    written = Written("root.default")
    offsets = {"root.system.high": "1000", "root.system.low": "-1000", "root.tenants.a": "10"}
    fences = ("root.tenants", "root.tenants.a", "root.tenants.b", "root.tenants.c")
    parents = ("root.system", "root.tenants", "root.tenants.a", "root.tenants.b")
    for path in (*parents, *WAITING, "root.tenants.c"):
        properties = {"priority.offset": offsets.get(path, "0")}
        if path in fences:
            properties["priority.policy"] = "fence"
        written.queue(path, leaf=path not in parents, properties=properties)
    for path, priorities in WAITING.items():
        written.add(path, queue=path)
        for priority in priorities:
            key = f"{path.rpartition('.')[2]}/{priority}"
            written.ask(key, path, priority=priority, vcore=1)
    return written


def test_priorities_of_queues() -> None:
    written = _company()
    queues = written.planner.model.tree.queues
    assert SHOWN == {path: queues[path].priority for path in SHOWN}
    written.node("n1", vcore=20)
    assert ORDER == [proposal.key for proposal in written.plan()]


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        ({"vcore": 3, "memory": 4}, {"vcore": 2, "memory": 6}, True),
        ({"vcore": 3, "memory": 4}, {"vcore": 3}, False),
        ({"vcore": 3, "memory": 4}, {"memory": 7}, False),
        ({"vcore": 7}, {"vcore": 1}, False),
        ({"vcore": 7}, {"memory": 1}, True),
    ],
)
def test_headroom(used: dict[str, int], wanted: dict[str, int], fits: bool) -> None:
    """Of the queue and of the root; a type that the queue does not name is the root's alone."""
    written = Written("root.q", "root.other")
    written.reconfigure("root.q", max={"vcore": 5})
    written.node("n1", vcore=10, memory=10)
    written.add(APP, queue="root.q")
    written.recover("r", "n1", **used)
    if used["vcore"] == 3:
        written.add("other", queue="root.other")
        written.recover("o", "n1", "other", vcore=5)
    written.plan()
    queue = written.planner.model.tree.queues["root.q"]
    assert fits is (queue.refusing(tuple(wanted.items())) is None)


def test_the_gate_of_running_applications() -> None:
    """Two may run: one runs, one is Accepted and holds something; a third one waits."""
    written = Written()
    written.reconfigure("root.default", max_applications=2)
    written.node("n1", vcore=10)
    written.add("a", "b", "c")
    for name in ("a", "b", "c"):
        written.ask(name, name, vcore=1)
    written.move("c", ApplicationState.RUNNING)
    written.recover("held", "n1", "a", vcore=1)
    assert ["a", "c"] == sorted(proposal.key for proposal in written.plan())


@pytest.mark.parametrize(
    ("policy", "weights", "order"),
    [
        ("fair", {"vcore": 1.0, "memory": 1.0}, ["n2", "n1"]),
        ("binpacking", {"vcore": 1.0, "memory": 1.0}, ["n1", "n2"]),
        ("fair", {"vcore": 1.0}, ["n2", "n1"]),
        ("fair", {"memory": 1.0}, ["n1", "n2"]),
        ("fair", {"gpu": 1.0}, ["n1", "n2"]),
    ],
)
def test_the_order_of_nodes(policy: str, weights: dict[str, float], order: list[str]) -> None:
    """By the mean of what is used; by name where that is equal."""
    written = Written()
    written.node("n1", {"vcore": 5}, vcore=10, memory=10)
    written.node("n2", {"memory": 4}, vcore=10, memory=10)
    written.planner.model.nodes.set_order(NODE_ORDERS[policy], weights)
    assert order == [node.id for node in written.planner.model.nodes.in_order()]


@pytest.mark.parametrize(
    ("policy", "weights", "order"),
    [
        ("binpacking", {"vcore": 1.0, "memory": 1.0}, ["even", "odd", "out", "wide"]),
        ("least-fragmentation", {"vcore": 1.0, "memory": 1.0}, ["out", "odd", "even", "wide"]),
        ("least-fragmentation", {"vcore": 1.0, "memory": 0.5}, ["out", "odd", "even", "wide"]),
        ("least-fragmentation", {"memory": 1.0}, ["even", "odd", "out", "wide"]),
        ("least-fragmentation", {"vcore": 1.0, "memory": 0.0}, ["out", "odd", "even", "wide"]),
        ("least-fragmentation", {"gpu": 1.0}, ["even", "odd", "out", "wide"]),
    ],
)
def test_what_is_free_of_one_type_alone_is_little(
    policy: str, weights: dict[str, float], order: list[str]
) -> None:
    """The mean of what is free is 45 %, 50 %, 50 % and 100 %; the product 20 %, 9 %, 0 and 100 %."""
    written = Written()
    written.node("even", {"vcore": 50, "memory": 60}, vcore=100, memory=100)
    written.node("odd", {"vcore": 90, "memory": 10}, vcore=100, memory=100)
    written.node("out", {"vcore": 100}, vcore=100, memory=100)
    written.node("wide", vcore=100, memory=100)
    written.planner.model.nodes.set_order(NODE_ORDERS[policy], weights)
    assert order == [node.id for node in written.planner.model.nodes.in_order()]
