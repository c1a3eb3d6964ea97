"""Where the time of one ask goes: ask, allocation and release, one after the other on one thread.

`python -m benchmarks.cycle --topology fused` prints what each machine spends on each kind of
message, for one ask; with `--calls` it prints which functions are called, as cProfile counts them.
The simulator drives the machines, so no lock and no switch of threads is in these figures: `python
-m benchmarks W8` has those as well.
"""

import argparse
import cProfile
import pstats
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice

from benchmarks.cluster import RM_ID, Cluster
from benchmarks.workloads import ASK
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import Effect, Machine
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import Envelope

WARM_UP = 500


class Timed(Simulator):
    """Adds up what handlers take, by machine and message."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        self.spent: dict[tuple[str, str], tuple[int, int]] = {}

    def _effects(self, address: str, machine: Machine, envelope: Envelope) -> list[Effect]:
        began = time.thread_time_ns()
        effects = super()._effects(address, machine, envelope)
        took = time.thread_time_ns() - began
        key = (address.partition(":")[0], type(envelope.message).__name__)
        times, total = self.spent.get(key, (0, 0))
        self.spent[key] = (times + 1, total + took)
        return effects


class Holder(si.ResourceManagerCallback):
    """Keeps what was announced, the oldest first."""

    def __init__(self) -> None:
        self.held: deque[si.Allocation] = deque()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.held.extend(response.new)


class Cycle:
    """A cluster in which each application holds as many allocations as `held` says."""

    def __init__(self, topology: TopologyName, held: int) -> None:
        built = Topology(topology, settings=Settings(), instance="cycle")
        self.core, self._rm = Timed(built), Holder()
        cluster = Cluster(nodes=1_000, leaves=10, applications=10)
        self.core.register_resource_manager(cluster.registration(), self._rm)
        for nodes in cluster.node_requests():
            self.core.update_node(nodes)
        for applications in cluster.application_requests():
            self.core.update_application(applications)
        self._serial, self._applications = count(), cycle(cluster.application_ids())
        for application_id in islice(self._applications, held * cluster.applications):
            self._ask(application_id)

    def run(self, rounds: int) -> None:
        for application_id in islice(self._applications, rounds):
            self._ask(application_id)
            self._release(self._rm.held.popleft())

    def _ask(self, application_id: str) -> None:
        ask = si.AllocationAsk(
            application_id=application_id,
            allocation_key=f"ask-{next(self._serial)}",
            resource_ask=si.Resource.of(ASK),
        )
        self.core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=(ask,)))
        self.core.settle()

    def _release(self, allocation: si.Allocation) -> None:
        release = si.AllocationRelease(
            application_id=allocation.application_id,
            uuid=allocation.uuid,
            termination_type=si.TerminationType.STOPPED_BY_RM,
        )
        releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
        self.core.update_allocation(si.AllocationRequest(rm_id=RM_ID, releases=releases))
        self.core.settle()


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    load = Cycle(options.topology, options.held)
    load.run(min(WARM_UP, options.rounds))
    load.core.spent.clear()
    if options.calls:
        profile = cProfile.Profile()
        profile.runcall(load.run, options.rounds)
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return
    load.run(options.rounds)
    for line in told(load.core, options.rounds):
        print(line)


def told(core: Timed, asks: int) -> Iterator[str]:
    """Say what each machine has spent on each message, for one of so many asks."""
    for (machine, message), (times, total) in sorted(core.spent.items()):
        each, microseconds = times / asks, total / asks / 1e3
        yield f"{machine:16} {message:24} {each:6.2f} an ask {microseconds:8.2f} us"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycle", description=__doc__)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="fused")
    parser.add_argument("--held", type=int, default=0, help="allocations of each application")
    parser.add_argument("--rounds", type=int, default=3_000)
    parser.add_argument("--calls", action="store_true", help="print which functions are called")
    return parser


if __name__ == "__main__":
    main()
