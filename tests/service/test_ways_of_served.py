"""In the recording of a service, what each client was told of begins at its own call."""

import asyncio
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import ranges

pytest.importorskip("grpc")
from commands import Running, starting
from recorded_workloads import deliveries_of
from ways import faults

from yunikorn_actors import connect, connect_async
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

ASKS = 30
PATIENCE_S = 60.0
PAGES = ("/ws/v1/partitions", "/ws/v1/clusters", "/ws/v1/scheduler/healthcheck")


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    with starting() as start:
        yield start


def work(address: str, rm_id: str) -> None:
    """Ask, hold, and give back; the ids are those of all the others."""
    with connect(address, rm_id=rm_id) as s:
        s.add_node("node", vcore=ASKS, memory="64Gi")
        app = s.application("app", user="ann")
        leases = [it.result(PATIENCE_S) for it in [app.ask(f"k{n}", vcore=1) for n in range(ASKS)]]
        for lease in leases[::2]:
            lease.release()
        for lease in [app.ask(f"k{n}", vcore=1) for n in range(ASKS, ASKS + 10)]:
            lease.result(PATIENCE_S).release()


async def work_on_a_loop(address: str, rm_id: str) -> None:
    async with connect_async(address, rm_id=rm_id) as s:
        await s.add_node("node", vcore=ASKS, memory="64Gi")
        app = await s.application("app", user="ann")
        for number in range(ASKS):
            async with await app.ask(f"k{number}", vcore=1):
                pass


def browse(rest: str) -> None:
    for page in PAGES * 5:
        with urllib.request.urlopen(f"http://{rest}{page}") as answer:
            assert answer.read()


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_each_item_of_a_service_begins_at_the_call_of_its_client(
    topology: TopologyName, run: Callable[..., Running], tmp_path: Path
) -> None:
    flight = str(tmp_path / "failed.trace")
    running = run("--flight-recorder", flight, "--topology", topology, rest=True)
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(work, running.address, f"rm-{n}") for n in range(3)]
        jobs.append(pool.submit(asyncio.run, work_on_a_loop(running.address, "rm-async")))
        jobs.append(pool.submit(browse, running.rest))
        for job in jobs:
            job.result(PATIENCE_S)
    with urllib.request.urlopen(f"http://{running.rest}/ws/v1/x/trace") as answer:
        path = tmp_path / "run.trace"
        path.write_bytes(answer.read())
    seen: Counter[str] = Counter()
    assert [] == faults(deliveries_of(path), seen)
    assert seen["ASK"] >= 4 * ASKS
    assert seen["END"] > 0
