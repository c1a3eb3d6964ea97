"""A gang in one file: an application like Spark's, with one driver and three executors.

Run it with `python examples/gang_spark.py`. A driver without executors is of no use, and two such
applications that each hold half a cluster wait for each other for ever. So the room for all four is
reserved first, by placeholders, and each process takes over the room of one of them when it starts.
"""

from collections.abc import Iterable
from queue import SimpleQueue

from yunikorn_actors import ResourceManagerCallback, SchedulerCore, Settings, si

RM = "rm-1"
APP = "spark-1"
CPU = 1_000
EXECUTORS = 3

# Gangs need a leaf in order of age, `fifo` (the default) or `stateaware`; `fair` refuses them. The
# whole gang must fit into the smallest max on the way from the leaf to the root.
QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: spark
      resources: {max: {vcore: 8}}
"""

# A task group is a name and a size. Here, that of the driver and that of the executors.
SIZES = {
    "driver": si.Resource.of({"vcore": CPU}),
    "executor": si.Resource.of({"vcore": 2 * CPU}),
}
WHOLE_GANG = si.Resource.of({"vcore": CPU + EXECUTORS * 2 * CPU})
"""All members together. The core is told the sum and not how many there are."""

# An application without work is given this long to ask again before it completes. Half a minute
# unless set otherwise: too long for a lesson.
SETTINGS = Settings(completing_timeout_ns=200_000_000)


class SparkOperator(ResourceManagerCallback):
    """Stops what it is told to stop, and says so; the rest is kept for the main thread."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self.placed: SimpleQueue[si.Allocation] = SimpleQueue()
        self.stopped: SimpleQueue[si.AllocationRelease] = SimpleQueue()
        self.states: SimpleQueue[si.UpdatedApplication] = SimpleQueue()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for refused in response.rejected:
            print(f"{refused.allocation_key} was rejected: {refused.reason}")
        for release in response.released:
            self._stop(release)
        for allocation in response.new:
            self.placed.put(allocation)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for rejected in response.rejected:
            print(f"{rejected.application_id} was rejected: {rejected.reason}")
        for updated in response.updated:
            self.states.put(updated)

    def _stop(self, release: si.AllocationRelease) -> None:
        """Answer what the core asks for.

        A release of type STOPPED_BY_RM is itself the answer to one of ours. Any other is the core's
        wish: here the process would be stopped, which may take a while. Until the release is sent
        back, with the same type, the core counts the room as used.
        """
        if release.termination_type is si.TerminationType.STOPPED_BY_RM:
            return
        self._core.update_allocation(releases(release))
        self.stopped.put(release)


def nodes() -> si.NodeRequest:
    return si.NodeRequest(
        rm_id=RM,
        nodes=tuple(
            si.NodeInfo(
                node_id=f"node-{number}",
                action=si.ActionFromRM.CREATE,
                schedulable_resource=si.Resource.of({"vcore": 4 * CPU}),
            )
            for number in (1, 2)
        ),
    )


def application() -> si.ApplicationRequest:
    """What makes it a gang is `placeholder_ask`.

    If the gang does not come together in time, style Soft means to go on without it, and Hard to
    fail. The time starts with the first placeholder; it is 15 minutes unless given.
    """
    gang = si.AddApplicationRequest(
        application_id=APP,
        queue_name="root.spark",
        ugi=si.UserGroupInformation(user="ann"),
        placeholder_ask=WHOLE_GANG,
        gang_scheduling_style="Soft",
        execution_timeout_milli_seconds=60_000,
    )
    return si.ApplicationRequest(rm_id=RM, new=(gang,))


def ask(key: str, group: str, *, placeholder: bool = False) -> si.AllocationAsk:
    """A placeholder and the process that takes it over differ by one flag."""
    return si.AllocationAsk(
        application_id=APP,
        allocation_key=key,
        resource_ask=SIZES[group],
        task_group_name=group,
        placeholder=placeholder,
    )


def asks(items: Iterable[si.AllocationAsk]) -> si.AllocationRequest:
    return si.AllocationRequest(rm_id=RM, asks=tuple(items))


def releases(*items: si.AllocationRelease) -> si.AllocationRequest:
    request = si.AllocationReleasesRequest(allocations_to_release=items)
    return si.AllocationRequest(rm_id=RM, releases=request)


def main() -> None:
    with SchedulerCore(settings=SETTINGS) as core:
        operator = SparkOperator(core)
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=RM, config=QUEUES), operator
        )
        core.update_node(nodes())

        # 1. Reserve. Nothing of the gang is placed before its queues have room for all of it; then
        # placeholders are placed like any other ask. With the last one the application is Running.
        core.update_application(application())
        members = [("driver", "driver")]
        members += [(f"executor-{number}", "executor") for number in range(1, EXECUTORS + 1)]
        core.update_allocation(
            asks(ask(f"hold-{key}", group, placeholder=True) for key, group in members)
        )
        for _ in members:
            held = operator.placed.get(timeout=10)
            print(f"{held.allocation_key} keeps room on {held.node_id}")
        wait_for(operator, "Running")

        # 2. Start the driver. It takes over the placeholder of its task group: we are asked to stop
        # that one, and the driver has the room as soon as we have said that it is gone.
        core.update_allocation(asks([ask("driver", "driver")]))
        running = [swapped(operator)]

        # 3. The driver has found work for two executors only.
        for key in ("executor-1", "executor-2"):
            core.update_allocation(asks([ask(key, "executor")]))
            running.append(swapped(operator))
        print(f"root.spark uses {used(core)}: three processes and the placeholder left over")

        # 4. All processes end. What has no work completes after a while, and on the way the core
        # asks for what nobody took over. An application is Completed once that is confirmed.
        core.update_allocation(releases(*map(ended, running)))
        wait_for(operator, "Completing")
        left_over = operator.stopped.get(timeout=10)
        print(f"{left_over.allocation_key} is given back: {left_over.message}")
        wait_for(operator, "Completed")
        print(f"root.spark uses {used(core)}")


def swapped(operator: SparkOperator) -> si.Allocation:
    """Wait for one swap: first the placeholder is stopped, then the real process is placed."""
    placeholder = operator.stopped.get(timeout=10)
    process = operator.placed.get(timeout=10)
    print(f"{process.allocation_key} runs on {process.node_id} instead of "
          f"{placeholder.allocation_key} ({placeholder.termination_type.name})")  # fmt: skip
    return process


def ended(process: si.Allocation) -> si.AllocationRelease:
    return si.AllocationRelease(
        application_id=APP,
        uuid=process.uuid,
        allocation_key=process.allocation_key,
        termination_type=si.TerminationType.STOPPED_BY_RM,
    )


def wait_for(operator: SparkOperator, state: str) -> None:
    while operator.states.get(timeout=10).state != state:
        pass
    print(f"{APP} is {state}")


def used(core: SchedulerCore) -> dict[str, int]:
    queues = core.state_dump()["partitions"]["[rm-1]default"]["queues"]
    amounts: dict[str, int] = queues["root.spark"]["allocated"]
    return amounts


if __name__ == "__main__":
    main()
