"""What "would it fit?" costs the read side: `python -m benchmarks.would_fit --nodes 10000`.

Ten allocations run on each node, in a hundred queues with quotas, and there is hardly any room.
A question is answered by a copy of this process, as the service does it. So this counts processor
time and the peak of memory of the copies, and how long an answer takes on this machine now.
"""

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Iterator

from yunikorn_actors import VirtualCore, si
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.scheduling import PartitionSnapshot
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import Asked
from yunikorn_actors.service.rest.simulate_route import Simulations
from yunikorn_actors.what_if.followed import Snapshots

RM = "rm-1"
QUEUES, RUNNING, APPS_A_QUEUE = 100, 10, 10
ROOM = si.Resource.of({"vcore": 10_500, "memory": 40 << 30})
SIZE = si.Resource.of({"vcore": 1_000, "memory": 4 << 30})
_QUEUES = ", ".join(f"{{name: q{n}, resources: {{max: {{vcore: 1001}}}}}}" for n in range(QUEUES))
CONFIG = f"""
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{_QUEUES}]
"""
NEW = "- add_app: {id: new, queue: root.q1, user: ann, groups: [ann]}"
ASK = "- ask: {app: new, key: k, resource: {vcore: %d}, tags: {yunikorn-actors/runtime: '600'}}"
QUESTIONS = {
    "would it fit now": {"steps": [NEW, ASK % 500], "until": 0},
    "would it fit now, and it does not": {"steps": [NEW, ASK % 2_000], "until": 0},
    "the least change": {"steps": [NEW, ASK % 2_000], "least": True},
}


def _cluster(topology: TopologyName, nodes: int) -> ReadSide:
    """Return the read side of a core whose nodes came with what runs on them."""
    settings = Settings()
    core = VirtualCore(topology=topology, settings=settings)
    with core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        new = tuple(
            si.AddApplicationRequest(
                application_id=f"app-{n}",
                queue_name=f"root.q{n % QUEUES}",
                ugi=si.UserGroupInformation(user=f"user-{n % 50}", groups=("staff",)),
            )
            for n in range(QUEUES * APPS_A_QUEUE)
        )
        core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
        core.update_node(si.NodeRequest(rm_id=RM, nodes=tuple(map(_node, range(nodes)))))
        core.run_until_idle()
        taken = Snapshots.of(core._simulator)
        side = ReadSide(settings=settings, instance="t", start_ns=core.now_ns, topology=topology)
        for described in taken.managers.values():
            side.handle(described, core.now_ns)
        for name, (epoch, image) in taken.images.items():
            snapshot = PartitionSnapshot(partition=name, epoch=epoch, image=image)
            side.handle(snapshot, core.now_ns)
    return side


def _node(number: int) -> si.NodeInfo:
    running = tuple(
        si.Allocation(
            allocation_key=f"{number}-{n}",
            application_id=f"app-{(number * RUNNING + n) % (QUEUES * APPS_A_QUEUE)}",
            node_id=f"node-{number}",
            resource_per_alloc=SIZE,
            allocation_tags={"yunikorn-actors/runtime": "3600"},
        )
        for n in range(RUNNING)
    )
    return si.NodeInfo(
        node_id=f"node-{number}",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=ROOM,
        existing_allocations=running,
    )


def _costs(side: ReadSide, question: object) -> Iterator[str]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    asked = Asked(body=json.dumps(question).encode())
    answer = Simulations().handle(side, asked)
    forked_s = time.monotonic() - begun
    found = json.loads(answer.content())
    took_s = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield f"{cpu_s:.2f} s of processors, {took_s:.1f} s, {forked_s * 1e3:.0f} ms to fork, "
    yield f"largest copy until now {after.ru_maxrss >> 10} MB"
    trials = found["answer"].get("trials")
    yield f", {trials} trials\n" if trials else "\n"
    yield from (f"      {line}\n" for line in found["lines"][:12])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.would_fit", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--topology", choices=TOPOLOGIES, action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=QUESTIONS, action="append")
    options = parser.parse_args()
    for topology in options.topology or TOPOLOGIES:
        side = _cluster(topology, options.nodes)
        gc.collect()
        gc.freeze()
        sys.stdout.write(
            f"{topology}, {options.nodes} nodes, {options.nodes * RUNNING} allocations\n"
        )
        for name in options.only or QUESTIONS:
            for _ in range(options.runs):
                sys.stdout.write(f"  {name}: {''.join(_costs(side, QUESTIONS[name]))}")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
