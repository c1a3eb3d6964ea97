"""Where the time of bulk scheduling goes: the flood of a workload, on one thread.

`python -m benchmarks.flood W2 --topology fused` prints what each machine spends on each kind of
message, for one ask; with `--calls` it prints which functions are called, as cProfile counts them.
As in `benchmarks.cycle` the simulator drives the machines. All requests come before the first plan,
as they do on threads when a program asks for much at once, and the collector is off.
"""

import argparse
import cProfile
import gc
import pstats
from collections.abc import Sequence

from benchmarks.cluster import RM_ID
from benchmarks.cycle import Holder, Timed, told
from benchmarks.workloads import ASK, WORKLOADS, Flood
from yunikorn_actors import si
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName


class Floods:
    """A cluster on which nothing runs yet, and all that its applications ask for."""

    def __init__(self, workload: Flood, topology: TopologyName) -> None:
        cluster = workload.cluster
        self.core = Timed(Topology(topology, settings=Settings(), instance="flood"))
        self.core.register_resource_manager(cluster.registration(), Holder())
        for nodes in cluster.node_requests():
            self.core.update_node(nodes)
        for applications in cluster.application_requests():
            self.core.update_application(applications)
        self.core.settle()
        self.core.spent.clear()
        self._ids, self._each = cluster.application_ids(), workload.asks_each
        self.asks = len(self._ids) * self._each

    def run(self) -> None:
        size = si.Resource.of(ASK)
        for id_ in self._ids:
            asks = tuple(
                si.AllocationAsk(
                    application_id=id_, allocation_key=f"{id_}-{number}", resource_ask=size
                )
                for number in range(self._each)
            )
            self.core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=asks))
        self.core.settle()


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    workload = WORKLOADS[options.workload]
    assert isinstance(workload, Flood)
    load = Floods(workload, options.topology)
    gc.disable()
    try:
        if options.calls:
            profile = cProfile.Profile()
            profile.runcall(load.run)
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)
            return
        load.run()
    finally:
        gc.enable()
    for line in told(load.core, load.asks):
        print(line)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flood", description=__doc__)
    floods = [name for name, workload in WORKLOADS.items() if type(workload) is Flood]
    parser.add_argument("workload", choices=floods)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="fused")
    parser.add_argument("--calls", action="store_true", help="print which functions are called")
    return parser


if __name__ == "__main__":
    main()
