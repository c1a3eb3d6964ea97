"""What partitions on a cluster bring: asks a second of 1, 2 and 4, beside the core in process.

`python -m benchmarks.partitions` starts a Ray cluster on this computer for each count. All asks
come from one resource manager through one portal, in requests of a hundred, each for one partition.
As everything shares this computer, its cores bound the sum.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final

from benchmarks.rpc import IN_ONE, RM_ID, Counting
from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.service.cluster.local import ENVIRONMENT, LOCAL
from yunikorn_actors.service.cluster.portal import ClusterCore
from yunikorn_actors.service.served import ServedCore
from yunikorn_actors.values.tags import NODE_PARTITION

COUNTS: Final = (1, 2, 4)
QUEUES: Final = "queues: [{name: root, submitacl: '*', queues: [{name: work}]}]"


def names(count: int) -> list[str]:
    return [f"part-{n}" for n in range(count)]


def config(count: int) -> str:
    return f"partitions: [{', '.join(f'{{name: {name}, {QUEUES}}}' for name in names(count))}]"


@contextmanager
def in_process(partitions: int) -> Iterator[ServedCore]:
    with SchedulerCore(config=config(partitions)) as core:
        yield core


@contextmanager
def on_ray(partitions: int) -> Iterator[ServedCore]:
    os.environ.update(ENVIRONMENT)
    from yunikorn_actors.service.cluster.engine import (  # noqa: PLC0415 - after the environment
        RayEngine,
    )

    engine = RayEngine(LOCAL, None, "proposing")
    core = ClusterCore(config(partitions), engine.hosts)
    try:
        yield core.start()
    finally:
        core.stop()
        engine.close()


def rate(core: ServedCore, partitions: int, count: int) -> float:
    """Place so many asks, a share in each partition; return how many a second."""
    heard = Counting()
    request = si.RegisterResourceManagerRequest(rm_id=RM_ID, policy_group=RM_ID)
    core.register_resource_manager(request, heard)
    for name in names(partitions):
        node = si.NodeInfo(
            node_id=f"node-{name}",
            action=si.ActionFromRM.CREATE,
            attributes={NODE_PARTITION: name},
            schedulable_resource=si.Resource.of({"vcore": count}),
        )
        core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=(node,)))
        new = si.AddApplicationRequest(
            application_id=name,
            queue_name="root.work",
            partition_name=name,
            ugi=si.UserGroupInformation(user="ann"),
        )
        core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=(new,)))
    heard.await_more(2 * partitions)
    requests = [asks(names(partitions)[turn % partitions], turn) for turn in range(count // IN_ONE)]
    began = time.perf_counter()
    for it in requests:
        core.update_allocation(it)
    heard.await_more(IN_ONE * len(requests))
    return IN_ONE * len(requests) / (time.perf_counter() - began)


def asks(partition: str, turn: int) -> si.AllocationRequest:
    size = si.Resource.of({"vcore": 1})
    return si.AllocationRequest(
        rm_id=RM_ID,
        asks=tuple(
            si.AllocationAsk(
                allocation_key=f"{turn}-{n}",
                application_id=partition,
                partition_name=partition,
                resource_ask=size,
            )
            for n in range(IN_ONE)
        ),
    )


PLACES: Final = {"in process": in_process, "on Ray": on_ray}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each (default: 3)")
    parser.add_argument("--asks", type=int, default=20_000, help="in a round (default: 20000)")
    options = parser.parse_args(arguments)
    print(f"asks/s on {os.cpu_count()} processors\n{'partitions':12}", end="")
    print("".join(f"{count:>8}" for count in COUNTS))
    for name, place in PLACES.items():
        row = []
        for count in COUNTS:
            with place(count) as core:
                row.append(median(rate(core, count, options.asks) for _ in range(options.rounds)))
        print(f"{name:12}" + "".join(f"{it:8.0f}" for it in row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
