"""Devices at the front door: asked for by number or share, held by a lease, kept over a restart."""

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from fronting import PATIENCE_S, raised
from probes import wait_until

from yunikorn_actors import AsyncScheduler, InvalidRequest, Running, Scheduler


def test_a_share_and_whole_ones() -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=8, gpus=4, gpu_model="V100")
        app = s.application("a", user="ann", stays=True)
        shares = [it.result(PATIENCE_S) for it in app.ask("s", gpu=0.5, count=3)]
        assert [(0,), (0,), (1,)] == [it.devices for it in shares]
        assert {"gpu": 500} == shares[0].resources
        whole = app.ask("w", vcore=1, gpu=2, gpu_model="A100|V100").result(PATIENCE_S)
        assert (2, 3) == whole.devices
        assert () == app.ask("c", vcore=1).result(PATIENCE_S).devices
        shares[0].release()
        waits = app.ask("x", gpu=1)
        wait_until(lambda: "1 GPUs are free, but there is no idle" in app.explain("x").report())
        shares[1].release()
        assert (0,) == waits.result(PATIENCE_S).devices


def test_where_no_node_has_such_devices_a_larger_one_is_no_remedy() -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=8, gpus=4, gpu_model="V100")
        app = s.application("a", user="ann")
        app.ask("k", gpu=1, gpu_model="A100")
        app.ask("b", gpu=1, gpu_model="A100", required_node="n1")
        wait_until(lambda: "NO_NODE" in app.explain("b").report())
        said = app.explain("k").report()
        assert "it wants devices of model A100" in said
        assert "add a node with such devices" in said
        assert "ask for less" not in said
        assert "give it such devices" in app.explain("b").report()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"gpu": 1.5}, "ask: gpu: 1.5 is neither a share of one"),
        ({"gpu": -1}, "ask: gpu: -1 is neither"),
        ({"gpu": 0.0001}, "ask: gpu: 0.0001 is neither"),
        ({"gpu": True}, "ask: gpu: True is neither"),
        ({"gpu": "half"}, "ask: gpu: 'half' is neither"),
        ({"gpu": float("nan")}, "ask: gpu: nan is neither"),
        ({"gpu": 1, "resources": {"gpu": 5}}, "ask: gpu is given twice"),
        ({"gpu": 1, "gpu_model": 7}, "ask: gpu_model: must be a model"),
        ({"vcore": 1, "gpu_model": "A100"}, "ask: gpu_model: 'A100' of no devices: give gpu= as"),
    ],
)
def test_what_is_no_amount_of_devices(said: dict[str, Any], why: str) -> None:
    with Scheduler() as s:
        app = s.application("a", user="ann")
        assert why in raised(lambda: app.ask("k", **said), InvalidRequest)


def test_a_node_counts_its_devices() -> None:
    with Scheduler() as s:
        wrong: Any = 1.5
        said = raised(lambda: s.add_node("n1", vcore=1, gpus=wrong), InvalidRequest)
        assert "add_node: gpus: must be a whole number, not 1.5" == said
        assert "is neither" in raised(lambda: s.add_node("n1", vcore=1, gpus=-1), InvalidRequest)
        said = raised(lambda: s.add_node("n1", vcore=1, gpu_model="A100"), InvalidRequest)
        assert said == "add_node: gpu_model: 'A100' of no devices: give gpus= as well"


def test_a_group_counts_the_devices_whose_model_it_names() -> None:
    group = {"count": 2, "vcore": 1, "gpu_model": "A100"}
    with Scheduler() as s:
        said = raised(lambda: s.application("a", user="ann", gang={"g": group}), InvalidRequest)
        assert "gpu_model: 'A100' of no devices: give 'gpu': as well" in said


def test_members_of_a_gang_have_the_devices_of_their_placeholders() -> None:
    group = {"count": 4, "vcore": 1, "gpu": 0.5, "gpu_model": "A100"}
    with Scheduler() as s:
        s.add_node("n1", vcore=8, gpus=2, gpu_model="T4")
        s.add_node("n2", vcore=8, gpus=2, gpu_model="A100")
        app = s.application("g", user="ann", gang={"w": group})
        leases = [it.result(PATIENCE_S) for it in app.ask("m", group="w", count=4)]
        assert {"n2"} == {it.node_id for it in leases}
        assert [(0,), (0,), (1,), (1,)] == sorted(it.devices for it in leases)


def test_work_that_runs_keeps_its_devices() -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=8, gpus=3)
        app = s.application("a", user="ann")
        first = app.ask("first", gpu=1).result(PATIENCE_S)
        second = app.ask("second", gpu=1).result(PATIENCE_S)
        first.release()
        assert (1,) == second.devices
        kept = json.dumps(dataclasses.asdict(second.running))
    with Scheduler() as s:
        running = Running(**json.loads(kept))
        app = s.application("a", user="ann", running=[running])
        (lease,) = s.add_node("n1", vcore=8, gpus=3, running=[running])
        assert (1,) == lease.devices
        assert (0, 2) == app.ask("third", gpu=2).result(PATIENCE_S).devices


def test_devices_on_a_loop() -> None:
    async def run() -> tuple[int, ...]:
        async with AsyncScheduler() as s:
            await s.add_node("n1", vcore=8, gpus=2, gpu_model="V100")
            app = await s.application("a", user="ann")
            return (await app.ask("k", gpu=2, gpu_model="V100")).devices

    assert (0, 1) == asyncio.run(run())
