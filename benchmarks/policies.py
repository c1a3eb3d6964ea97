"""What policies in Python cost: W2 with an application order and a node score of a program's own.

`python -m benchmarks.policies W2 --rounds 5` makes each run in a process of its own, one with what
is built in and one with both policies in turn, and prints medians of the processor time. Both sort
applications by their arrival and nodes by what is free of their cpus.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any, get_args

from msgspec.structs import asdict, replace

from benchmarks.cluster import Cluster
from benchmarks.load import Load
from benchmarks.run import measure
from benchmarks.workloads import WORKLOADS
from yunikorn_actors import SchedulerCore
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.runtime.core_arguments import CoreDriver
from yunikorn_actors.si import RegisterResourceManagerRequest

WAYS = ("built-in", "own")


class Oldest:
    """Who came first."""

    def application_key(self, app: Any) -> int:  # noqa: ANN401 - as users write it
        submitted_ns: int = app.submitted_ns
        return submitted_ns


class Emptiest:
    """The node with the smallest share of its cpus in use."""

    def score(self, node: Any, _: Any) -> float:  # noqa: ANN401 - as users write it
        share: float = node.free["vcore"] / node.capacity["vcore"]
        return -share


def with_policies(request: RegisterResourceManagerRequest) -> RegisterResourceManagerRequest:
    config = json.loads(request.config)
    (partition,) = config["partitions"]
    partition["nodesortpolicy"]["type"] = "emptiest"
    waiting = list(partition["queues"])
    while waiting:
        queue = waiting.pop()
        waiting += queue.get("queues", ())
        if not queue.get("queues"):
            queue.setdefault("properties", {})["application.sort.policy"] = "oldest"
    return replace(request, config=json.dumps(config))


class OwnCluster(Cluster, frozen=True, kw_only=True):
    """As it was, with a configuration that names the policies."""

    def registration(self) -> RegisterResourceManagerRequest:
        return with_policies(super().registration())


def one(name: str, way: str, topology: Any, driver: CoreDriver) -> dict[str, Any]:  # noqa: ANN401
    own = way == "own"
    policies = {"oldest": Oldest, "emptiest": Emptiest} if own else None
    with SchedulerCore(driver=driver, topology=topology, policies=policies) as core:
        workload = WORKLOADS[name]
        if own:
            workload = replace(workload, cluster=OwnCluster(**asdict(workload.cluster)))
        return measure(workload, Load(core))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    parser.add_argument("--driver", choices=get_args(CoreDriver), default="threads")
    parser.add_argument("--one", choices=WAYS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(one(options.workload, options.one, options.topology, options.driver)))
        return 0
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            words = [options.workload, "--topology", options.topology, "--driver", options.driver]
            command = [sys.executable, "-m", "benchmarks.policies", *words, "--one", way]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            found[way].append(json.loads(done.stdout)["cpu_s"])
    for way in WAYS:
        print(f"{way:10} {median(found[way]):.3f} CPU s")
    ratios = [own / built_in for built_in, own in zip(*found.values(), strict=True)]
    print(f"own / built-in {median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
