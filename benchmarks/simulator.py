"""How fast the simulator runs, and what its checks cost.

`python -m benchmarks.simulator` runs each load on one thread: without recording or checks, with the
digest of all deliveries, with the safety invariants after every message, and with every oracle of
the race laboratory. It prints messages a second. The columns are measured in turn, round after
round, so that a computer that slows down slows all of them. With `--calls` it prints which
functions one column calls.
"""

import argparse
import cProfile
import gc
import pstats
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from benchmarks import calibrate
from benchmarks.cluster import Cluster
from benchmarks.cycle import Holder
from benchmarks.workloads import ASK
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import Chooser, Fifo, Seeded
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.codec import TraceDigest
from yunikorn_actors.scenario.resource_manager import SimulatedResourceManager
from yunikorn_actors.values.durations import SECOND

RM_ID: Final = "rm-benchmark"
MEMBERS: Final = 4
"""Of each gang."""
COMPLETING: Final = 40 * SECOND
"""Longer than an application waits in Completing."""

Make = Callable[[Chooser], Simulator]


def plain(topology: TopologyName) -> Make:
    return lambda chooser: Simulator(_built(topology), chooser=chooser)


def with_digest(topology: TopologyName) -> Make:
    return lambda chooser: Simulator(
        _built(topology), chooser=chooser, recorders=(TraceDigest().add,)
    )


def with_invariants(topology: TopologyName) -> Make:
    return lambda chooser: Simulator(_built(topology), chooser=chooser, checkers=default_checkers())


def with_oracles(topology: TopologyName) -> Make:
    return lambda chooser: Simulator(_built(topology), chooser=chooser, checkers=oracles())


COLUMNS: Final = {
    "unchecked": plain,
    "digest": with_digest,
    "safety invariants": with_invariants,
    "all oracles": with_oracles,
}


def _built(topology: TopologyName) -> Topology:
    return Topology(topology, settings=Settings(), instance="simulator")


# -- the loads: each returns the messages that it took


def gang_lives(make: Make, rounds: int) -> int:
    """Run a core from the registration to the end of its only gang, again and again."""
    return sum(_gang_life(make(Seeded(1 + number))) for number in range(rounds))


def _gang_life(core: Simulator) -> int:
    cluster = Cluster(
        rm_id=RM_ID, nodes=2, leaves=2, applications=1,
        placeholder_ask={kind: MEMBERS * size for kind, size in ASK.items()},
    )  # fmt: skip
    _set_up(core, cluster, SimulatedResourceManager(core, RM_ID, "auto"))
    (id_,) = cluster.application_ids()
    for number in range(MEMBERS):
        _ask(core, id_, f"placeholder-{number}", group="members", placeholder=True)
    core.settle()
    for number in range(MEMBERS):
        _ask(core, id_, f"member-{number}", group="members")
    core.settle()
    _release(core, id_)
    core.advance(COMPLETING)
    return core.delivered


def flood(make: Make, rounds: int) -> int:
    """Let ten applications in ten leaves ask for a hundred places each, all at once."""
    return sum(_flood(make(Fifo())) for _ in range(rounds))


def _flood(core: Simulator) -> int:
    cluster = Cluster(rm_id=RM_ID, nodes=50, leaves=10, applications=10)
    _set_up(core, cluster, Holder())
    for number in range(100):
        for id_ in cluster.application_ids():
            _ask(core, id_, f"{id_}-{number}")
    core.settle()
    return core.delivered


def fifo(make: Make, rounds: int) -> int:
    """Ask and release in turn, one after the other, on twenty nodes."""
    return sum(_cycles(make(Fifo())) for _ in range(rounds))


def _cycles(core: Simulator) -> int:
    cluster = Cluster(rm_id=RM_ID, nodes=20, leaves=4, applications=4)
    _set_up(core, cluster, Holder())
    for number in range(10):
        for id_ in cluster.application_ids():
            _ask(core, id_, f"{id_}-{number}")
            core.settle()
            _release(core, id_)
    return core.delivered


LOADS: Final = {"gang": gang_lives, "flood": flood, "fifo": fifo}


def _set_up(core: Simulator, cluster: Cluster, callback: si.ResourceManagerCallback) -> None:
    core.register_resource_manager(cluster.registration(), callback)
    for nodes in cluster.node_requests():
        core.update_node(nodes)
    for applications in cluster.application_requests():
        core.update_application(applications)
    core.settle()


def _ask(
    core: Simulator, id_: str, key: str, *, group: str = "", placeholder: bool = False
) -> None:
    ask = si.AllocationAsk(
        application_id=id_,
        allocation_key=key,
        resource_ask=si.Resource.of(ASK),
        task_group_name=group,
        placeholder=placeholder,
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=(ask,)))


def _release(core: Simulator, id_: str) -> None:
    """Release whatever runs of an application."""
    stopped = si.AllocationRelease(
        application_id=id_, termination_type=si.TerminationType.STOPPED_BY_RM
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(stopped,))
    core.update_allocation(si.AllocationRequest(rm_id=RM_ID, releases=releases))
    core.settle()


# -- the figures


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    topologies = [options.topology] if options.topology else TOPOLOGIES
    loads: list[str] = [options.load] if options.load else [*LOADS]
    if options.calls:
        _print_calls(loads[0], COLUMNS[options.calls](topologies[0]), options.rounds)
        return
    for load in loads:
        for topology in topologies:
            for line in told(load, topology, options.rounds):
                print(line)
    print(f"calibration {calibrate.measure():.2f}")


def told(load: str, topology: TopologyName, rounds: int) -> Iterator[str]:
    """Say how many messages a second each column reaches, and how many runs a minute."""
    each = LOADS[load](plain(topology), 1)
    for column, speed in _speeds(load, topology, rounds).items():
        runs = 60 * speed / each
        yield f"{load:5}  {topology:9}  {column:17}  {speed:7,.0f} /s  {runs:7,.0f} runs/min"


def _speeds(load: str, topology: TopologyName, rounds: int) -> dict[str, float]:
    """Measure processor time, in short pieces; the median passes over what disturbed some."""
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for _ in range(rounds):
        for name, column in COLUMNS.items():
            gc.collect()
            began = time.thread_time()
            messages = LOADS[load](column(topology), 1)
            found[name].append(messages / (time.thread_time() - began))
    return {name: median(each) for name, each in found.items()}


def _print_calls(load: str, make: Make, rounds: int) -> None:
    profile = cProfile.Profile()
    profile.runcall(LOADS[load], make, rounds)
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("load", nargs="?", choices=LOADS, help="all, if not given")
    parser.add_argument("--topology", choices=TOPOLOGIES, help="both, if not given")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", choices=COLUMNS, help="print which functions are called")
    return parser


if __name__ == "__main__":
    main()
