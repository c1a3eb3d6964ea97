"""What it costs a core to be looked at: `python -m benchmarks.rest W4 --rounds 3`.

A workload runs alone, with the core's meter, followed by a read side in a process of its own, with
the calls of YuniKorn's pages once a second (dashboard, queues, applications), with its page of
nodes, with metrics, and with the live page open: its stream, and its two lists once a second. The
modes take turns, so that a busy computer is busy for all of them. The
longest handler of Context is that of the meter, waiting for the processor included.
"""

import argparse
import http.client
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from benchmarks.load import Load
from benchmarks.run import Run, measure
from benchmarks.workloads import WORKLOADS
from yunikorn_actors import SchedulerCore
from yunikorn_actors.runtime.meter import Meter
from yunikorn_actors.service.part import Site, Standing
from yunikorn_actors.service.rest.process import ProcessPart

P = "/ws/v1/partition/default"
X = "/ws/v1/x/partition/default"
PAGES = (
    "/ws/v1/clusters",
    "/ws/v1/partitions",
    "/ws/v1/history/apps",
    "/ws/v1/history/containers",
    "/ws/v1/scheduler/node-utilizations",
    "/ws/v1/scheduler/healthcheck",
    f"{P}/queues",
    f"{P}/applications/active",
)
MODES: dict[str, tuple[str, ...] | None] = {
    "alone": None,
    "metered": None,
    "followed": (),
    "pages": PAGES,
    "nodes": (f"{P}/nodes",),
    "metrics": ("/ws/v1/metrics",),
    "live": (f"{X}/asks", f"{X}/applications"),
}
"""What is asked once a second; None where nobody follows."""
STREAMS = {"live": "/ws/v1/x/overview"}
"""What is followed all the time."""
EVERY_S = 1.0


@contextmanager
def looked_at(core: SchedulerCore, mode: str) -> Iterator[list[float]]:
    """Serve, and ask for what the mode says once a second; give how long each round took."""
    rounds: list[float] = []
    paths = MODES[mode]
    if paths is None:
        yield rounds
        return
    part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
    part.start()
    over = threading.Event()
    asking = threading.Thread(target=_ask, args=(part.address, paths, rounds, over))
    asking.start()
    following = threading.Thread(target=_follow, args=(part.address, STREAMS.get(mode)))
    following.start()
    try:
        yield rounds
    finally:
        over.set()
        asking.join()
        part.stop(5.0)
        following.join()


def _follow(address: str, path: str | None) -> None:
    """Read a stream to its end, which comes with that of the service."""
    if path is None:
        return
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.request("GET", path)
    with suppress(OSError, http.client.HTTPException):
        for _ in connection.getresponse():
            pass
    connection.close()


def _ask(address: str, paths: tuple[str, ...], rounds: list[float], over: threading.Event) -> None:
    while paths and not over.wait(EVERY_S):
        begin = time.perf_counter()
        for path in paths:
            connection = http.client.HTTPConnection(address, timeout=120)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        rounds.append(time.perf_counter() - begin)


def run(workload: str, mode: str) -> Run:
    with SchedulerCore() as core, looked_at(core, mode) as rounds:
        if mode == "metered":
            core._inside.meter = Meter()
        figures = measure(WORKLOADS[workload], Load(core))
        meter = core._inside.meter
        worst_ns = 0 if meter is None else meter.plain()["actors"]["context"]["worst_ns"]
    return {
        **figures,
        "context_worst_ms": round(worst_ns / 1e6, 1),
        "round_s": round(max(rounds, default=0.0), 2),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rest", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    options = parser.parse_args(arguments)
    found: dict[str, list[Run]] = {mode: [] for mode in options.modes}
    for _ in range(options.rounds):
        for mode, runs in found.items():
            runs.append(run(options.workload, mode))
    print("mode       allocations/s  CPU us each  p99 ms  worst of Context ms  worst round s")
    for mode, runs in found.items():
        rate = statistics.median(it["allocations_per_s"] for it in runs)
        cpu = statistics.median(it["cpu_us_each"] for it in runs)
        p99 = statistics.median(it["latency_ms"]["p99"] for it in runs)
        worst = max(it["context_worst_ms"] for it in runs)
        slowest = max(it["round_s"] for it in runs)
        print(f"{mode:10} {rate:13,.0f} {cpu:12.1f} {p99:7.0f} {worst:20.1f} {slowest:14.2f}")


if __name__ == "__main__":
    main()
