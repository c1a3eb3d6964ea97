"""A service on a Ray cluster of three workers, which are killed under load."""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("grpc")
from hosting import Bookkeeper, application, ask, node, partitions, placed, release
from probes import wait_until

from yunikorn_actors import RemoteCore, si
from yunikorn_actors.service.cluster.local import ENVIRONMENT

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(500),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed"),
]
NAMES = ("default", "gpu", "spot", "batch")
STORE_BYTES = 80_000_000


class Workers(NamedTuple):
    address: str
    process_of: Callable[[str], int]
    """By partition."""
    kill_computer: Callable[[], None]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    os.environ.update(ENVIRONMENT, RAY_AUTH_MODE="disabled")
    import ray  # noqa: PLC0415 - it reads them when it is imported
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": STORE_BYTES,
        },
    )
    computers = [cluster.add_node(num_cpus=4, object_store_memory=STORE_BYTES) for _ in range(3)]
    ray.init(cluster.address, namespace="yunikorn-actors", log_to_driver=False)

    def process_of(partition: str) -> int:
        return int(ray.get(ray.get_actor(partition).process.remote()))

    yield Workers(cluster.address, process_of, lambda: cluster.remove_node(computers[0], False))
    for name in ray.util.list_named_actors():
        ray.kill(ray.get_actor(name), no_restart=True)
    ray.shutdown()
    cluster.shutdown()


class Served(NamedTuple):
    rest: str
    grpc: str
    process: "subprocess.Popen[str]"


@pytest.fixture
def serve(workers: Workers, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    config = tmp_path / "queues.yaml"
    config.write_text(partitions(*NAMES))
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> Served:
        command = [sys.executable, "-m", "yunikorn_actors", "serve", "--cluster", workers.address]
        command += ["--config", str(config), "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(3)]
        assert ["REST", "gRPC"] == [it[0] for it in lines[:2]]
        return Served(lines[0][-1], lines[1][-1], process)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def begin(core: RemoteCore, rm: Bookkeeper) -> None:
    core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1"), rm)
    for name in NAMES:
        core.update_node(node(name, f"node-{name}"))
        core.update_application(application(name, name))
    wait_until(lambda: 4 == len(rm.nodes) == len(rm.applications))


def asked_of(served: Served, route: str) -> Any:
    with urllib.request.urlopen(f"http://{served.rest}/ws/v1/{route}", timeout=60) as answer:
        return json.load(answer)


def test_workers_are_killed_under_load_and_nothing_is_lost_or_told_twice(
    workers: Workers, serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, rm, dice = serve("--journal", str(tmp_path / "journal")), Bookkeeper(), random.Random(1)  # noqa: S311
    with RemoteCore(served.grpc) as core:
        begin(core, rm)
        released = set[str]()
        for step in range(2_000):
            home = NAMES[step % 4]
            core.update_allocation(ask(home, home, f"key-{step}"))
            running = [it for it in tuple(rm.running.values()) if it.uuid not in released]
            if running and dice.random() < 0.3:
                gone = running[int(dice.random() * len(running))]
                released.add(gone.uuid)
                core.update_allocation(release(gone.partition_name, gone.application_id, gone.uuid))
            if step in {300, 700, 1_100}:
                os.kill(workers.process_of(NAMES[step // 400]), signal.SIGKILL)
            if step == 1_500:
                workers.kill_computer()
        wait_until(lambda: 2_000 == len(rm.keys) and released <= rm.ended)
        wait_until(lambda: set(rm.running) == placed(core))
        assert released == rm.ended
        wait_until(lambda: set(NAMES) == {it["name"] for it in asked_of(served, "partitions")})
        told = asked_of(served, "partition/gpu/nodes")
        assert ["node-gpu"] == [it["nodeID"] for it in told]
    assert [] == rm.faults
    served.process.terminate()
    assert 0 == served.process.wait(60)


def test_another_portal_finds_what_the_first_one_has_left(serve: Callable[..., Served]) -> None:
    first, rm = serve(), Bookkeeper()
    core = RemoteCore(first.grpc).start()
    begin(core, rm)
    core.update_allocation(ask("gpu", "gpu", "a"))
    wait_until(lambda: 1 == len(rm.running))
    second = serve()
    wait_until(lambda: 4 == len(asked_of(second, "partitions")))
    route = "partition/gpu/applications/active"
    wait_until(lambda: ["gpu"] == [it["applicationID"] for it in asked_of(second, route)])
    first.process.kill()
    core.stop()

    again, [run] = Bookkeeper(), rm.running.values()
    with RemoteCore(second.grpc) as core:
        core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1"), again)
        core.update_application(application("gpu", "gpu"))
        [info] = node("gpu", "node-gpu").nodes
        reported = si.NodeInfo(
            node_id=info.node_id,
            action=info.action,
            attributes=info.attributes,
            schedulable_resource=info.schedulable_resource,
            existing_allocations=(run,),
        )
        core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(reported,)))
        core.update_allocation(ask("gpu", "gpu", "b"))
        wait_until(lambda: 1 == len(again.running))
        assert {run.uuid, *again.running} == placed(core)
    assert [] == rm.faults + again.faults


def test_the_benchmark_prints_a_figure_for_each_count_of_partitions() -> None:
    command = [sys.executable, "-m", "benchmarks.partitions", "--rounds", "1", "--asks", "400"]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    _, head, *rows = done.stdout.splitlines()
    assert ["partitions", "1", "2", "4"] == head.split()
    assert ["in process", "on Ray"] == [row[:12].strip() for row in rows]
    assert all(float(figure) > 0 for row in rows for figure in row[12:].split())
