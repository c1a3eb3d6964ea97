"""For programs that grow and shrink a cluster: what waits for what, and what nodes do."""

import asyncio
import time
from typing import Any

import pytest
from fronting import PATIENCE_S, is_all_handled, raised
from looping import on_a_loop, until
from probes import wait_until

from yunikorn_actors import (
    AsyncScheduler,
    Cause,
    InvalidRequest,
    Node,
    QuantityError,
    Scheduler,
    SchedulerCore,
    UnknownName,
    WaitingSum,
    WouldBlock,
)
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning.waiting_sums import MARKS_MAX, WaitingSums

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a}
    - {name: small, resources: {max: {vcore: 1}}}
    - {name: one, maxapplications: 1}
    - name: limited
      limits: [{limit: x, users: ["*"], maxresources: {vcore: 1}}]
"""


def told(sums: "tuple[WaitingSum, ...]") -> dict[tuple[str, str, int], int]:
    return {(it.queue, it.cause.value, it.size["vcore"]): it.count for it in sums}


# -- what waits


def test_what_waits_is_added_up_by_cause_queue_and_size() -> None:
    with Scheduler(QUEUES) as s:
        assert () == s.waiting()
        s.add_node("n1", vcore=4)
        a = s.application("a", queue="root.a", user="ann")
        a.ask("runs", vcore=3).result(PATIENCE_S)
        a.ask("two", vcore=2, count=3)
        a.ask("three", vcore=3, count=2)
        a.ask("never", vcore=1, resources={"gpu": 1})
        s.application("b", queue="root.a", user="ann").ask("two", vcore=2, count=4)
        small = s.application("s", queue="root.small", user="ann").ask("k", vcore=1, count=3)
        s.application("l", queue="root.limited", user="ann").ask("k", vcore=2)
        expected = {
            ("root.a", "CLUSTER_FULL", 2_000): 7,
            ("root.a", "CLUSTER_FULL", 3_000): 2,
            ("root.a", "CLUSTER_FULL", 1_000): 1,
            ("root.small", "QUEUE_LIMIT", 1_000): 2,
            ("root.limited", "USER_LIMIT", 2_000): 1,
        }
        wait_until(lambda: told(s.waiting()) == expected)
        most = s.waiting()[0]
        assert (Cause.CLUSTER_FULL, "root.a", 7) == (most.cause, most.queue, most.count)
        assert {"vcore": 14_000} == most.resources
        for ask in small:
            ask.cancel()
        s.add_node("n2", vcore=64, resources={"gpu": 1})
        wait_until(lambda: told(s.waiting()) == {("root.limited", "USER_LIMIT", 2_000): 1})
        wait_until(lambda: not [it for it in small if not it.cancelled() and not it.done()])


def test_gangs_and_applications_that_may_not_start_are_told_apart() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=3)
        gang = {"w": {"count": 3, "vcore": 2}}
        app = s.application("g", queue="root.a", user="ann", gang=gang)
        app.ask("m", group="w", count=3)
        s.application("x", queue="root.one", user="ann").ask("k", vcore=1).result(PATIENCE_S)
        for name in "yz":
            s.application(name, queue="root.one", user="ann").ask("k", vcore=1, count=2)
        held = {"h": {"count": 2, "vcore": 1}}
        s.application("g2", queue="root.one", user="ann", gang=held)
        expected = {
            # Placeholders want room; their members wait for these, and want none of their own.
            ("root.a", "GANG_WAITS", 2_000): 3,
            ("root.a", "CLUSTER_FULL", 2_000): 2,
            ("root.one", "APP_LIMIT", 1_000): 4,
            ("root.one", "GANG_HELD", 1_000): 2,
        }
        wait_until(lambda: told(s.waiting()) == expected)


@pytest.mark.parametrize("sizes", [1, 300])
def test_ten_thousand_that_wait_are_added_up_in_a_millisecond(sizes: int) -> None:
    """Of the planner's time, as nobody waits for anybody else in here."""
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=1)
        for number in range(100):
            app = s.application(f"a{number}", queue="root.a", user="ann")
            # Each has a part of the sizes, and each size is in several of them.
            for one in range(min(sizes, 12)):
                app.ask(
                    f"t{one}", vcore=2 + (12 * number + one) % sizes, count=100 // min(sizes, 12)
                )
        waiting = 100 * 100 if sizes == 1 else 100 * 12 * 8
        wait_until(lambda: sum(it.count for it in s.waiting()) == waiting)
        took: list[float] = []
        for _ in range(50):
            begin = time.process_time()
            sums = s.waiting()
            took.append(time.process_time() - begin)
        assert sizes == len(sums)
        assert {Cause.CLUSTER_FULL} == {it.cause for it in sums}
        assert min(took) < 0.001


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_asks_that_each_require_a_node_are_one_sum(topology: TopologyName) -> None:
    """There may be as many of them as nodes: each has its own shape, and they are no more to say.

    What is on a node and what changes about one of them costs no look at the others.
    """
    with Scheduler(QUEUES, core=SchedulerCore(topology=topology, driver="direct")) as s:
        s.add_node("n1", vcore=1)
        app = s.application("a", queue="root.a", user="ann")
        app.ask("runs", vcore=1).result(PATIENCE_S)
        names = [f"n{number:04}" for number in range(1, 1_001)]
        asks = [app.ask(it, vcore=1, required_node=it, may_preempt=False) for it in names]
        app.ask("any", vcore=1)
        app.ask("x", vcore=2, required_node="n0007")
        s.application("s", queue="root.small", user="ann").ask("k", vcore=2, required_node="n1")
        expected = [
            (Cause.NO_NODE, "root.a", 1_000, 1_000, tuple(names)),
            (Cause.CLUSTER_FULL, "root.a", 1_000, 1, ()),
            (Cause.NO_NODE, "root.a", 2_000, 1, ("n0007",)),
            (Cause.QUEUE_LIMIT, "root.small", 2_000, 1, ("n1",)),
        ]

        def found() -> list[tuple[Cause, str, int, int, tuple[str, ...]]]:
            return [
                (it.cause, it.queue, it.size["vcore"], it.count, it.required_nodes)
                for it in s.waiting()
            ]

        wait_until(lambda: sorted(found(), key=str) == sorted(expected, key=str))
        took: list[float] = []
        for count, ask in enumerate(asks[::50], 1):
            ask.cancel()
            wait_until(lambda left=1_000 - count: found()[0][3] == left)  # type: ignore[misc]
            begin = time.process_time()
            s.waiting()
            took.append(time.process_time() - begin)
        assert min(took) < 0.001
        left = [it for number, it in enumerate(names) if number % 50]
        assert tuple(left) == found()[0][4]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_sums_are_kept_up_once_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, topology: TopologyName
) -> None:
    """A question after many changes finds little to count, also where much has ended."""
    marked: list[int] = []
    count_some = WaitingSums._count_some

    def noted(sums: WaitingSums) -> bool:
        marked.append(len(sums._model.requeue.recounts or ()))
        return count_some(sums)

    monkeypatch.setattr(WaitingSums, "_count_some", noted)
    with Scheduler(QUEUES, core=SchedulerCore(topology=topology)) as s:
        s.add_node("n1", vcore=1)
        assert () == s.waiting()
        apps = [s.application(f"a{number}", queue="root.a", user="ann") for number in range(200)]
        for app in apps:
            app.ask("t", vcore=2, count=5)
        wait_until(lambda: sum(it.count for it in s.waiting()) == 1_000)
        marked.clear()
        for app in apps[40:]:
            app.close()
        wait_until(lambda: is_all_handled(s))
        assert [200] == [it.count for it in s.waiting()]
        assert 1 == len(marked)
        assert marked[0] <= MARKS_MAX < 160


def test_models_of_devices_are_told_apart() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.a", user="ann")
        for model in ("", "A100", "A100|V100"):
            app.ask(f"k{model}", gpu=1, gpu_model=model, vcore=1, count=2)
        wait_until(lambda: sum(it.count for it in s.waiting()) == 6)
        found = {it.gpu_model: it.count for it in s.waiting()}
        assert {"": 2, "A100": 2, "A100|V100": 2} == found


def test_what_waits_is_not_asked_for_inside_fits() -> None:
    blocked: list[str] = []

    def fits(_: str) -> bool:
        blocked.append(raised(s.waiting, WouldBlock))
        return True

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=1)
        app = s.application("a", queue="root.a", user="ann")
        app.ask("t", vcore=1, fits=fits).result(PATIENCE_S).release()
    assert blocked


# -- nodes


def test_a_node_says_how_large_it_is_and_what_of_it_is_used() -> None:
    with Scheduler(QUEUES) as s:
        before = time.monotonic()
        s.add_node("n1", vcore=4, memory="8Gi", attributes={"zone": "a"})
        node = s.nodes["n1"]
        assert isinstance(node, Node)
        assert ({"vcore": 4_000, "memory": 8 << 30}, {}, False) == (
            node.capacity,
            node.used,
            node.drained,
        )
        assert "a" == node.attributes["zone"]
        assert node.idle_since is not None
        assert before <= node.idle_since <= time.monotonic()
        app = s.application("a", queue="root.a", user="ann")
        lease = app.ask("t", vcore="500m", memory="1Gi").result(PATIENCE_S)
        other = app.ask("u", vcore=1).result(PATIENCE_S)
        assert {"vcore": 1_500, "memory": 1 << 30} == node.used
        assert {"vcore": 2_500, "memory": 7 << 30} == node.free
        assert [lease, other] == node.leases
        assert node.idle_since is None
        began = time.monotonic()
        lease.release()
        assert node.idle_since is None
        other.release()
        assert node.idle_since is not None
        assert began <= node.idle_since
        assert {} == node.used
        node.drain()
        assert node.drained
        node.resume()
        assert not node.drained
        node.remove()
        assert "there is no node 'n1'" in raised(lambda: node.used, UnknownName)


def test_placeholders_and_what_ran_before_use_a_node() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        gang = {"w": {"count": 2, "vcore": 2}}
        app = s.application("g", queue="root.a", user="ann", gang=gang)
        wait_until(lambda: s.nodes["n1"].used == {"vcore": 4_000})
        assert not s.nodes["n1"].leases
        lease = app.ask("m", group="w").result(PATIENCE_S)
        assert {"vcore": 4_000} == s.nodes["n1"].used
        kept = [lease.running]
    with Scheduler(QUEUES) as s:
        s.application("g", queue="root.a", user="ann", running=kept)
        s.add_node("n1", vcore=4, running=kept)
        assert {"vcore": 2_000} == s.nodes["n1"].used
        assert s.nodes["n1"].idle_since is None


def test_nodes_are_a_mapping() -> None:
    with Scheduler(QUEUES) as s:
        assert [] == list(s.nodes)
        assert not s.nodes
        for name in ("n1", "n2"):
            s.add_node(name, vcore=4)
        assert ["n1", "n2"] == list(s.nodes)
        assert ["n1", "n2"] == [it.id for it in s.nodes.values()]
        assert "n1" in s.nodes
        assert "n3" not in s.nodes
        assert 5 not in s.nodes
        assert s.nodes.get("n3") is None
        assert 2 == len(s.nodes)
        for error in (UnknownName, KeyError, LookupError):
            assert "there is no node 'n3'" in raised(lambda: s.nodes["n3"], error)
        assert "<Node n1: vcore 0 of vcore 4>" == repr(s.nodes["n1"])


def test_a_node_is_resized_in_units() -> None:
    with Scheduler(QUEUES) as s, s.events("node") as events:
        s.add_node("n1", vcore=1, memory="1Gi")
        assert next(events)
        app = s.application("a", queue="root.a", user="ann")
        waits = app.ask("t", vcore=3)
        wait_until(s.waiting)
        s.nodes["n1"].resize(vcore=4)
        assert {"vcore": 4_000, "memory": 1 << 30} == s.nodes["n1"].capacity
        assert "n1" == waits.result(PATIENCE_S).node_id
        event = next(events)
        assert event.kind == "node"
        assert ("n1", "resized") == (event.node_id, event.state)
        s.nodes["n1"].resize(memory="4Gi", resources={"gpu": 2})
        wait_until(
            lambda: (
                s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"]["capacity"]
                == {"vcore": 4_000, "memory": 4 << 30, "gpu": 2}
            )
        )
        lease = app.ask("g", resources={"gpu": 2}).result(PATIENCE_S)
        assert "n1" == lease.node_id


@pytest.mark.parametrize(
    ("size", "kind", "words"),
    [
        ({}, InvalidRequest, "resize: say how large it is"),
        ({"vcore": 0.5}, QuantityError, "vcore: "),
        ({"resources": {"cpu": 4}}, InvalidRequest, "did you mean 'vcore'?"),
        ({"resources": {"k" * 2_000: 1}}, InvalidRequest, "resize: resources['"),
    ],
    ids=range(4),
)
def test_what_is_no_size_is_refused(size: Any, kind: type[Exception], words: str) -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=1)
        node = s.nodes["n1"]
        assert words in raised(lambda: node.resize(**size), kind)
        assert {"vcore": 1_000} == node.capacity
        s.remove_node("n1")
        assert "there is no node 'n1'" in raised(lambda: node.resize(vcore=1), UnknownName)


# -- applications


def test_applications_are_a_mapping() -> None:
    with Scheduler(QUEUES) as s:
        assert {} == dict(s.applications)
        app = s.application("a", queue="root.a", user="ann")
        assert {"a": app} == dict(s.applications)
        assert s.applications["a"] is app
        assert "there is no application 'b'" in raised(lambda: s.applications["b"], UnknownName)
        with pytest.raises(Exception, match="no queue"):
            s.application("b", queue="root.nope", user="ann")
        assert ["a"] == list(s.applications)
        app.close()
        assert [] == list(s.applications)
        again = s.application("a", queue="root.a", user="ann")
        assert s.applications["a"] is again


@on_a_loop
async def test_the_async_front_does_the_same() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=1)
        app = await s.application("a", queue="root.a", user="ann")
        assert s.applications["a"] is app
        ask = app.ask("t", vcore=2)
        sums: tuple[WaitingSum, ...] = ()
        while not sums:
            await asyncio.sleep(0.001)
            sums = await s.waiting()
        assert {("root.a", "CLUSTER_FULL", 2_000): 1} == told(sums)
        s.nodes["n1"].resize(vcore=2)
        lease = await ask
        assert ({"vcore": 2_000}, None) == (s.nodes["n1"].used, s.nodes["n1"].idle_since)
        assert [lease] == s.nodes["n1"].leases
        lease.release()
        await until(lambda: s.nodes["n1"].idle_since is not None)
        s.nodes["n1"].remove()
        assert [] == list(s.nodes)
