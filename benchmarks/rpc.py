"""What gRPC costs: the same calls to a core in this process and to a served one, in turn.

`python -m benchmarks.rpc` prints, for both, how many asks a second are placed and told in requests
of a hundred, and how long it takes from a release to the allocation that it makes room for. The
service is `yunikorn-actors serve` in a process of its own; its client shares the computer with it.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Final, NamedTuple

from yunikorn_actors import Core, RemoteCore, ResourceManagerCallback, SchedulerCore, si

RM_ID: Final = "rm-benchmark"
APP: Final = "app"
IN_ONE: Final = 100
CONFIG: Final = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: work}]
"""
PATIENCE_S: Final = 60.0


class Figures(NamedTuple):
    asks_per_s: float
    p50_ms: float
    p99_ms: float


class Counting(ResourceManagerCallback):
    """Counts what it hears, for one who waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._add(len(response.new))

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._add(len(response.accepted))

    def update_node(self, response: si.NodeResponse) -> None:
        self._add(len(response.accepted))

    def _add(self, count: int) -> None:
        with self._changed:
            self._count += count
            self._changed.notify_all()

    def await_more(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._count >= count, PATIENCE_S)
            self._count -= count


def set_up(core: Core, vcore: int) -> Counting:
    """Register anew, with one node of this size and an application."""
    heard = Counting()
    request = si.RegisterResourceManagerRequest(rm_id=RM_ID, policy_group=RM_ID, config=CONFIG)
    core.register_resource_manager(request, heard)
    size = si.Resource.of({"vcore": vcore})
    create = si.ActionFromRM.CREATE
    node = si.NodeInfo(node_id="node", action=create, schedulable_resource=size)
    core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=(node,)))
    ugi = si.UserGroupInformation(user="ann")
    new = si.AddApplicationRequest(application_id=APP, queue_name="root.work", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=(new,)))
    heard.await_more(2)
    return heard


def asks(first: int, count: int) -> si.AllocationRequest:
    size = si.Resource.of({"vcore": 1})
    return si.AllocationRequest(
        rm_id=RM_ID,
        asks=tuple(
            si.AllocationAsk(allocation_key=f"{n}", application_id=APP, resource_ask=size)
            for n in range(first, first + count)
        ),
    )


def rate(core: Core, count: int) -> float:
    heard = set_up(core, count)
    requests = [asks(first, IN_ONE) for first in range(0, count, IN_ONE)]
    began = time.perf_counter()
    for request in requests:
        core.update_allocation(request)
    heard.await_more(IN_ONE * len(requests))
    return IN_ONE * len(requests) / (time.perf_counter() - began)


def waits_ms(core: Core, count: int) -> list[float]:
    """From each release to the allocation that takes its place."""
    heard = set_up(core, 1)
    core.update_allocation(asks(0, count + 1))
    heard.await_more(1)
    waits = []
    for n in range(count):
        stopped = si.TerminationType.STOPPED_BY_RM
        release = si.AllocationRelease(
            application_id=APP, allocation_key=f"{n}", termination_type=stopped
        )
        releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
        began = time.perf_counter()
        core.update_allocation(si.AllocationRequest(rm_id=RM_ID, releases=releases))
        heard.await_more(1)
        waits.append((time.perf_counter() - began) * 1000)
    return waits


def measured(core: Core, count: int, releases: int) -> Figures:
    waits = waits_ms(core, releases)
    return Figures(rate(core, count), median(waits), quantiles(waits, n=100)[98])


@contextmanager
def in_process() -> Iterator[Core]:
    with SchedulerCore() as core:
        yield core


@contextmanager
def by_grpc() -> Iterator[Core]:
    command = [sys.executable, "-m", "yunikorn_actors", "serve", "--grpc", "127.0.0.1:0"]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [*command, "--rest", "off"], stdout=subprocess.PIPE, stderr=nowhere, text=True
    ) as service:
        assert service.stdout is not None
        try:
            with RemoteCore(service.stdout.readline().split()[-1]) as core:
                yield core
        finally:
            service.terminate()


PLACES: Final = {"in process": in_process, "by gRPC": by_grpc}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rpc", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each in turn (default: 3)")
    parser.add_argument("--asks", type=int, default=20_000, help="in a round (default: 20000)")
    parser.add_argument("--releases", type=int, default=1_000, help="in a round (default: 1000)")
    options = parser.parse_args(arguments)
    found: dict[str, list[Figures]] = {name: [] for name in PLACES}
    for _ in range(options.rounds):
        for name, place in PLACES.items():
            with place() as core:
                found[name].append(measured(core, options.asks, options.releases))
    print(f"{'':12} {'asks/s':>8} {'p50 ms':>8} {'p99 ms':>8}  release to allocation")
    for name, figures in found.items():
        asks_per_s, p50, p99 = (median(column) for column in zip(*figures, strict=True))
        print(f"{name:12} {asks_per_s:8.0f} {p50:8.2f} {p99:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
