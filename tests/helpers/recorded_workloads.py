"""Small runs of the workloads of the benchmarks, recorded."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.load import Load
from benchmarks.run import measure
from benchmarks.workloads import ASK, WORKLOADS
from yunikorn_actors import SchedulerCore, TraceSettings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.trace.read import TraceReader

TEN = {name: 10 * amount for name, amount in ASK.items()}
SMALL: dict[str, dict[str, Any]] = {
    "W5": {"running": 50, "pairs": 300},
    "W6": {"groups": 2, "members": 5},
    "W10": {"asks": 10},
}
CLUSTERS: dict[str, dict[str, Any]] = {
    "W5": {"nodes": 20, "applications": 10},
    "W6": {"nodes": 20, "applications": 10, "placeholder_ask": TEN},
    "W10": {"nodes": 10, "applications": 4},
}


def recorded(name: str, topology: TopologyName, path: Path) -> Path:
    workload = WORKLOADS[name]
    cluster = replace(workload.cluster, **CLUSTERS[name])
    small = replace(workload, cluster=cluster, **SMALL[name])
    # Requests are handled together where threads let them wait; nothing else needs threads here.
    driver: CoreDriver = "threads" if name == "W5" else "direct"
    with SchedulerCore(driver=driver, topology=topology, trace=TraceSettings(path=path)) as core:
        measure(small, Load(core))
    return path


def deliveries_of(path: Path) -> list[Delivery]:
    with TraceReader(path) as trace:
        return list(trace)
