"""The front of a service does what the front of a core does."""

import asyncio
from collections.abc import Callable

import hosting
import pytest

pytest.importorskip("grpc")
from probes import PATIENCE_S, wait_until

from yunikorn_actors import (
    Cause,
    DeadlinePassed,
    Expected,
    StillWaiting,
    UnknownAsk,
    WouldBlock,
    connect,
    connect_async,
)
from yunikorn_actors.service.service import Serving

assert hosting

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: batch}
    - {name: web, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1ms}}
"""
PAIR = {"w": {"count": 2, "vcore": 2, "priority": 3}}


def test_on_threads(serve: Callable[..., Serving]) -> None:
    with connect(serve().parts["grpc"].address, QUEUES, grace=0.01) as s:
        s.add_node("n1", vcore=4)
        batch = s.application("etl", queue="root.batch", user="ann")
        taken = [it.result(PATIENCE_S) for it in batch.ask("long", vcore=2, count=2)]
        web = s.application("g", queue="root.web", user="bob", gang=PAIR)
        members = [it.result(PATIENCE_S) for it in web.ask("m", group="w", count=2)]
        assert [3, 3] == [it.running.priority for it in members]
        wait_until(lambda: all(it.lost for it in taken))
        future = batch.ask("big", vcore=5)
        wait_until(lambda: batch.explain("big").why)
        with pytest.raises(StillWaiting, match="all nodes together are smaller"):
            future.result(0.01)
        with pytest.raises(DeadlinePassed, match="all nodes together are smaller"):
            batch.ask("late", vcore=5, deadline=0.05).result(PATIENCE_S)
        wait_until(
            lambda: (
                [(Cause.CLUSTER_FULL, "root.batch", {"vcore": 5_000}, 1)]
                == [(it.cause, it.queue, it.size, it.count) for it in s.waiting()]
            )
        )
        assert ({"vcore": 4_000}, None) == (s.nodes["n1"].used, s.nodes["n1"].idle_since)
        assert s.applications["g"] is web
        s.nodes["n1"].resize(vcore=9)
        assert "big" == future.result(PATIENCE_S).key
        assert () == s.waiting()
        future = batch.ask("larger", vcore=50)
        blocked: list[bool] = []

        def fits(_: str) -> bool:
            try:
                future.result()
            except WouldBlock:
                blocked.append(True)
            return True

        members[0].release()
        batch.ask("t", vcore=1, fits=fits).result(PATIENCE_S).release()
        assert blocked


def test_on_a_loop(serve: Callable[..., Serving]) -> None:
    async def run() -> None:
        async with connect_async(serve().parts["grpc"].address, QUEUES) as s:
            await s.add_node("n1", vcore=4)
            app = await s.application("g", queue="root.web", user="bob", gang=PAIR)
            members = await asyncio.gather(*app.ask("m", group="w", count=2))
            assert [3, 3] == [it.running.priority for it in members]
            with pytest.raises(DeadlinePassed, match="all nodes together are smaller"):
                await app.ask("late", vcore=5, deadline=0.05)
            asked = app.ask("waits", vcore=5)
            sums = await s.waiting()
            while not sums:
                await asyncio.sleep(0.001)
                sums = await s.waiting()
            assert [(Cause.CLUSTER_FULL, 1)] == [(it.cause, it.count) for it in sums]
            s.nodes["n1"].resize(vcore=9)
            assert "waits" == (await asked).key

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


HOUR = {"yunikorn-actors/runtime": "3600"}


def test_when_what_waits_will_start(serve: Callable[..., Serving]) -> None:
    """The same from afar as in the process of the core, on both fronts."""
    address = serve().parts["grpc"].address

    async def on_a_loop() -> Expected:
        async with connect_async(address, QUEUES, rm_id="rm-2") as s:
            await s.add_node("n2", vcore=4)
            app = await s.application("b", queue="root.batch", user="bob", tags=HOUR)
            await app.ask("runs", vcore=4)
            app.ask("waits", vcore=4)
            found = None
            while found is None:
                await asyncio.sleep(0.01)
                found = await app.expected("waits")
            assert await app.expected("runs") is None
            return found

    with connect(address, QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann", tags=HOUR)
        app.ask("runs", vcore=4).result(PATIENCE_S)
        asks = [app.ask(name, vcore=4) for name in ("first", "second")]
        wait_until(lambda: app.expected("second"))
        found = [app.expected(name) for name in ("first", "second")]
        assert [(1, 2), (2, 2)] == [(it.position, it.waiting) for it in found if it is not None]
        assert found[1] is not None
        assert found[1].earliest_ns is not None
        assert found[1].latest_ns is not None
        assert found[1].earliest_ns < (found[1].likely_ns or 0) < found[1].latest_ns
        assert app.expected("runs") is None
        with pytest.raises(UnknownAsk, match="nobody asked for 'nope'"):
            app.expected("nope")
        theirs = asyncio.run(asyncio.wait_for(on_a_loop(), PATIENCE_S))
        assert ("b", 1, 1) == (theirs.application_id, theirs.position, theirs.waiting)
        assert ["first", "second"] == [it.key for it in s.core.expected("a")]
        assert () == s.core.expected("a", partition="[rm-2]default")
        for ask in asks:
            ask.cancel()
        wait_until(lambda: not s.core.expected("a"))


def test_a_gang_over_grpc_is_one_event_with_its_time(serve: Callable[..., Serving]) -> None:
    queues = QUEUES.replace("{name: batch}", "{name: batch, properties: {preemption.grace: 30s}}")
    rank = {"r": {"count": 2, "vcore": 2}}
    with connect(serve().parts["grpc"].address, queues, grace=1) as s:
        s.add_node("n1", vcore=4)
        app = s.application("t", queue="root.batch", user="ann", gang=rank, gang_style="Hard")
        leases = [it.result(PATIENCE_S) for it in app.ask("m", group="r", count=2)]
        assert [None] * 2 == [it.seconds_left for it in leases]
        with s.events("application_wanted_back") as heard:
            waiting = s.application("web", queue="root.web", user="ann").ask("w", vcore=1)
            wait_until(lambda: all(it.wanted_back.is_set() for it in leases))
            assert all(20 < (it.seconds_left or 0) <= 30 for it in leases)
            for lease in leases:
                lease.release()
            waiting.result(PATIENCE_S).release()
        assert [("t", set(leases))] == [(it.application, set(it.leases)) for it in heard]
