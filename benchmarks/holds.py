"""How long each route holds the loop that answers: `python -m benchmarks.rest holds`.

A cluster of 10,000 nodes, 2,000 queues and 12,000 allocations, with an application that has very
many asks, is served in this process and then left alone. Each route of the table is asked for,
several times. Meanwhile a ticker on the loop takes the longest time between two of its turns, which
is how long everybody else has waited, and the most that the loop's thread has worked between two:
that is what is left of it on a computer that nobody else uses. Then some routes are asked for by
several at once, by one that reads nothing and by one that leaves in the middle. The live page is
open all the time.
"""

import asyncio
import http.client
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from benchmarks.cli import HOME
from benchmarks.cluster import Cluster
from benchmarks.garbage import frozen
from benchmarks.load import Load
from benchmarks.workloads import ASK
from yunikorn_actors import SchedulerCore
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.rest.http_server import all_routes
from yunikorn_actors.service.rest.in_process import RestPart

TICK_S: Final = 0.001
CLUSTER: Final = Cluster(nodes=10_000, parents=20, leaves=100, applications=2_000, users=100)
ASKS_EACH: Final = 6
LARGE: Final = "app-0"
"""This application has so many asks more, of which none has room."""
LARGE_ASKS: Final = 20_000
TOO_MUCH: Final = {"vcore": 64_000, "memory": 1 << 30, "pods": 1}
TAGS: Final = {"kubernetes.io/meta/namespace": "n", "api-token": "of nothing"}
ROUNDS: Final = 3
PATIENCE_S: Final = 120.0
STREAMS: Final = ("/ws/v1/events/stream", "/ws/v1/x/overview")
LISTEN_S: Final = 3.0
NAMES: Final = {
    "partition": "default",
    "queue": "root",
    "application": LARGE,
    "node": "node-00000",
    "user": "user-0",
    "group": "nobody",
    "manager": "nobody",
    "state": "active",
}
DUMP: Final = "/debug/fullstatedump"
NODES: Final = "/ws/v1/partition/default/nodes"
METRICS: Final = "/ws/v1/metrics"
MORE: Final = (
    "/ws/v1/partition/default/queue/root?subtree",
    "/ws/v1/partition/default/applications/completed",
    f"/ws/v1/x/why?application={LARGE}&key={LARGE}-more-0",
    "/ws/v1/x/partition/default/asks?text=more",
    "/ws/v1/x/partition/default/applications?text=app",
    "/ws/v1/events/stream?count=10000",
)


class Found(NamedTuple):
    hold_ms: float
    work_ms: float
    """Processor time of the loop's thread."""
    took_ms: float
    size: int
    status: int


class Ticker:
    """Takes the longest time between two turns of a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.worst_s = self.busiest_s = 0.0
        self._task = asyncio.run_coroutine_threadsafe(self._tick(), loop)

    async def _tick(self) -> None:
        last, last_work = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(TICK_S)
            now, work = time.perf_counter(), time.thread_time()
            self.worst_s = max(self.worst_s, now - last - TICK_S)
            self.busiest_s = max(self.busiest_s, work - last_work)
            last, last_work = now, work

    def taken_ms(self) -> tuple[float, float]:
        # A turn that is under way counts when it has ended.
        turns = asyncio.run_coroutine_threadsafe(asyncio.sleep(TICK_S * 5), self._loop)
        turns.result(PATIENCE_S)
        taken = self.worst_s * 1e3, self.busiest_s * 1e3
        self.worst_s = self.busiest_s = 0.0
        return taken

    def stop(self) -> None:
        self._task.cancel()


def paths() -> Iterator[tuple[str, str, bytes | None]]:
    for route in all_routes():
        path = route.path
        for name, value in NAMES.items():
            path = path.replace(f"{{{name}}}", value)
        yield route.method, path, b"partitions: []" if route.method == "POST" else None
    for path in MORE:
        yield "GET", path, None


def asked(address: str, method: str, path: str, body: bytes | None) -> tuple[int, int]:
    """Ask, and read all of it; of a stream what comes in a while."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body=body, headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        if not path.startswith(STREAMS):
            return response.status, len(response.read())
        size, end_s = 0, time.perf_counter() + LISTEN_S
        assert connection.sock is not None
        connection.sock.settimeout(0.2)
        while time.perf_counter() < end_s:
            try:
                size += len(response.read1(1 << 20))
            except (TimeoutError, OSError):
                break
        return response.status, size
    finally:
        connection.close()


def ask_each(address: str, ticker: Ticker) -> Iterator[tuple[str, Found]]:
    for method, path, body in paths():
        held: list[tuple[float, float]] = []
        times: list[float] = []
        status = size = 0
        for _ in range(ROUNDS):
            ticker.taken_ms()
            begin = time.perf_counter()
            status, size = asked(address, method, path, body)
            times.append((time.perf_counter() - begin) * 1e3)
            held.append(ticker.taken_ms())
        hold_ms, work_ms = (statistics.median(it) for it in zip(*held, strict=True))
        found = Found(hold_ms, work_ms, statistics.median(times), size, status)
        yield f"{method} {path}", found


# -- those who make it hard


def at_once(address: str, path: str, count: int) -> int:
    """Have several ask, in another process; say how many were answered."""
    child = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-m", "benchmarks.holds", address, path, str(count)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=HOME,
    )  # fmt: skip
    return int(child.stdout)


def ask_at_once(address: str, path: str, count: int) -> int:
    told: list[int] = []
    threads = [
        threading.Thread(target=lambda: told.append(asked(address, "GET", path, None)[0]))
        for _ in range(count)
    ]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    return sum(it == http.client.OK for it in told)


def begun(address: str, path: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    asking = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    asking.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    asking.recv(1000)
    return asking


def hard(address: str, ticker: Ticker) -> Iterator[tuple[str, Found]]:
    for path, count in ((DUMP, 4), (NODES, 8), (METRICS, 8)):
        ticker.taken_ms()
        begin = time.perf_counter()
        good = at_once(address, path, count)
        took_ms = (time.perf_counter() - begin) * 1e3
        name = f"{path}, {count} at once, {good} answered"
        yield name, Found(*ticker.taken_ms(), took_ms, 0, http.client.OK)
    for path in (DUMP, NODES):
        ticker.taken_ms()
        begin = time.perf_counter()
        with begun(address, path):
            pass
        time.sleep(1.0)
        took_ms = (time.perf_counter() - begin) * 1e3
        yield f"{path}, left in the middle", Found(*ticker.taken_ms(), took_ms, 0, 0)
        ticker.taken_ms()
        with begun(address, path):
            time.sleep(2.0)
        yield f"{path}, not read", Found(*ticker.taken_ms(), 2e3, 0, 0)


@contextmanager
def served(cluster: Cluster, asks_each: int, large_asks: int) -> Iterator[RestPart]:
    """Serve it on a thread of this process."""
    with SchedulerCore() as core:
        part = RestPart(Site(core, "127.0.0.1:0", Standing()))
        part.start()
        try:
            load = Load(core, patience_s=PATIENCE_S)
            load.set_up(cluster)
            for id_ in cluster.application_ids():
                keys = [f"{id_}-{number}" for number in range(asks_each)]
                load.submit(id_, keys, ASK, tags=TAGS)
            load.receive_all()
            load.submit(LARGE, [f"{LARGE}-more-{it}" for it in range(large_asks)], TOO_MUCH)
            load.waiting.clear()
            load.settle()
            # What the load and the core have made is not what is looked at.
            with frozen():
                yield part
        finally:
            part.stop(5.0)


def holds(
    cluster: Cluster = CLUSTER, asks_each: int = ASKS_EACH, large_asks: int = LARGE_ASKS
) -> Iterator[tuple[str, Found]]:
    with served(cluster, asks_each, large_asks) as part:
        ticker = Ticker(part._loop)
        time.sleep(1.0)
        yield "nobody asks", Found(*ticker.taken_ms(), 1e3, 0, 0)
        with begun(part.address, "/ws/v1/x/overview"):
            yield from ask_each(part.address, ticker)
            yield from hard(part.address, ticker)
        ticker.stop()


def lines(found: Sequence[tuple[str, Found]]) -> Iterator[str]:
    yield "longest hold ms  work ms  took ms  status      bytes  route"
    for name, it in found:
        times = f"{it.hold_ms:15.1f} {it.work_ms:8.1f} {it.took_ms:8.0f}"
        yield f"{times} {it.status:7} {it.size:10,}  {name}"


def main() -> None:
    found: list[tuple[str, Found]] = []
    for name, it in holds():
        found.append((name, it))
        print(json.dumps({"route": name, **it._asdict()}), flush=True)
    print(*lines(found), sep="\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        server, asked_for, number = sys.argv[1:]
        print(ask_at_once(server, asked_for, int(number)))
    else:
        main()
