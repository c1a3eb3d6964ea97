"""A resource manager in one file: it registers, adds nodes and an application, and asks.

Run it with `python examples/embedding.py`. The core runs on threads of this process; the calls
return at once, and what the core decides arrives at the callback.
"""

from queue import SimpleQueue

from yunikorn_actors import ResourceManagerCallback, SchedulerCore, si

RM = "rm-1"
TASKS = 6

# One parent with two leaves. In a configuration a bare vcore is a whole cpu.
QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: batch
      resources: {max: {vcore: 4}}
    - name: web
"""


class Cluster(ResourceManagerCallback):
    """Override what you care about. The core calls on a thread of its own, one call at a time."""

    def __init__(self) -> None:
        self.placed: SimpleQueue[si.Allocation] = SimpleQueue()

    def update_application(self, response: si.ApplicationResponse) -> None:
        for rejected in response.rejected:
            print(f"{rejected.application_id} was rejected: {rejected.reason}")

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for allocation in response.new:
            self.placed.put(allocation)
        for refused in response.rejected:
            print(f"{refused.allocation_key} was rejected: {refused.reason}")


def nodes() -> si.NodeRequest:
    """Two nodes of four cpus; in messages amounts are base units, so a cpu is 1000."""
    capacity = si.Resource.of({"vcore": 4_000, "memory": 8 << 30})
    return si.NodeRequest(
        rm_id=RM,
        nodes=tuple(
            si.NodeInfo(
                node_id=f"node-{number}",
                action=si.ActionFromRM.CREATE,
                schedulable_resource=capacity,
            )
            for number in (1, 2)
        ),
    )


def application() -> si.ApplicationRequest:
    return si.ApplicationRequest(
        rm_id=RM,
        new=(
            si.AddApplicationRequest(
                application_id="app-1",
                queue_name="root.batch",
                ugi=si.UserGroupInformation(user="ann", groups=("dev",)),
            ),
        ),
    )


def asks() -> si.AllocationRequest:
    """One request may hold many asks; each is answered by itself."""
    return si.AllocationRequest(
        rm_id=RM,
        asks=tuple(
            si.AllocationAsk(
                application_id="app-1",
                allocation_key=f"task-{number}",
                resource_ask=si.Resource.of({"vcore": 500, "memory": 1 << 30}),
            )
            for number in range(1, TASKS + 1)
        ),
    )


def main() -> None:
    cluster = Cluster()
    # Leaving the block stops the core and joins its threads. Had the core failed, it would raise.
    with SchedulerCore() as core:
        # This call waits for its answer, and raises if the configuration is refused.
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=RM, config=QUEUES), cluster
        )
        # These return at once. Requests of one resource manager are handled in the order sent,
        # so the asks find their application and the application finds its queue.
        core.update_node(nodes())
        core.update_application(application())
        core.update_allocation(asks())
        placed = [cluster.placed.get(timeout=10) for _ in range(TASKS)]
        # A question about the state waits for its answer too.
        partition = core.state_dump()["partitions"]["[rm-1]default"]
    for allocation in sorted(placed, key=lambda item: item.allocation_key):
        print(f"{allocation.allocation_key} runs on {allocation.node_id} as {allocation.uuid}")
    print(f"root.batch uses {partition['queues']['root.batch']['allocated']}")


if __name__ == "__main__":
    main()
