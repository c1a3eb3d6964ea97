"""One run of one workload, in this process."""

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.check import check
from benchmarks.load import Load
from benchmarks.workloads import WORKLOADS, Outcome, Workload
from yunikorn_actors import SchedulerCore
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.runtime.core_arguments import CoreDriver

Run = dict[str, Any]
"""The JSON object of one run."""


def run(
    name: str,
    topology: TopologyName,
    calibration: float,
    cpu_calibration: float,
    driver: CoreDriver = "threads",
) -> Run:
    workload = WORKLOADS[name]
    with (
        _trace(workload) as trace,
        SchedulerCore(driver=driver, topology=topology, trace=trace) as core,
    ):
        figures = measure(workload, Load(core))
    return {
        "workload": name,
        "topology": topology,
        "driver": driver,
        **figures,
        "calibration": round(calibration, 3),
        "cpu_calibration": round(cpu_calibration, 3),
    }


def measure(workload: Workload, load: Load) -> Run:
    """Drive the load through a core that is running, check the result, and return the figures."""
    load.set_up(workload.cluster)
    outcome = workload.drive(load)
    figures = _figures(outcome)
    for each in (load, *outcome.beside):
        each.settle()
        check(each)
    return figures


def _figures(outcome: Outcome) -> Run:
    """Read the peak of memory here, before the check makes a copy of everything."""
    timing = outcome.timing
    p50, p99, highest = timing.latency_ms(50, 99, 100)
    return {
        "allocations": len(timing.latencies_s),
        "allocations_per_s": round(timing.allocations_per_s, 1),
        "latency_ms": {"p50": round(p50, 3), "p99": round(p99, 3), "max": round(highest, 3)},
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "cpu_s": round(timing.cpu_s, 3),
        "cpu_us_each": round(timing.cpu_s / len(timing.latencies_s) * 1e6, 2),
        "wall_s": round(timing.wall_s, 3),
        **{name: round(figure, 3) for name, figure in outcome.added.items()},
    }


@contextmanager
def _trace(workload: Workload) -> Iterator[Path | None]:
    if not workload.traced:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        yield Path(folder) / "run.trace"
