"""A portal with hosts of partitions in this process, and what its resource managers say and hear."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from yunikorn_actors import si
from yunikorn_actors.lab.surfaces.local_hosts import NearHost
from yunikorn_actors.service.cluster.portal import ClusterCore
from yunikorn_actors.values.tags import NODE_PARTITION

QUEUES = "queues: [{name: root, submitacl: '*', queues: [{name: work}]}]"


def partitions(*names: str) -> str:
    """Return a configuration with these partitions, each with one leaf."""
    return f"partitions: [{', '.join(f'{{name: {name}, {QUEUES}}}' for name in names)}]"


@contextmanager
def portal(
    *names: str, journal: Path | None = None
) -> Iterator[tuple[ClusterCore, Mapping[str, NearHost]]]:
    """Have a portal with a host for each of these partitions."""
    hosts = {name: NearHost(name, journal) for name in names}
    core = ClusterCore(partitions(*names), lambda _: hosts).start()
    try:
        yield core, hosts
    finally:
        core.stop()
        for host in hosts.values():
            host.close()


def node(partition: str, node_id: str, vcore: int = 1_000_000) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=node_id,
        action=si.ActionFromRM.CREATE,
        attributes={NODE_PARTITION: partition},
        schedulable_resource=si.Resource.of({"vcore": vcore}),
    )
    return si.NodeRequest(rm_id="rm-1", nodes=(info,))


def application(partition: str, name: str) -> si.ApplicationRequest:
    new = si.AddApplicationRequest(
        application_id=name,
        queue_name="root.work",
        partition_name=partition,
        ugi=si.UserGroupInformation(user="ann", groups=("dev",)),
    )
    return si.ApplicationRequest(rm_id="rm-1", new=(new,))


def ask(partition: str, app: str, key: str, vcore: int = 1) -> si.AllocationRequest:
    item = si.AllocationAsk(
        application_id=app,
        partition_name=partition,
        allocation_key=key,
        resource_ask=si.Resource.of({"vcore": vcore}),
    )
    return si.AllocationRequest(rm_id="rm-1", asks=(item,))


def release(partition: str, app: str, uuid: str) -> si.AllocationRequest:
    item = si.AllocationRelease(
        partition_name=partition,
        application_id=app,
        uuid=uuid,
        termination_type=si.TerminationType.STOPPED_BY_RM,
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(item,))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


def remove(partition: str, app: str) -> si.ApplicationRequest:
    gone = si.RemoveApplicationRequest(application_id=app, partition_name=partition)
    return si.ApplicationRequest(rm_id="rm-1", remove=(gone,))


class Bookkeeper(si.ResourceManagerCallback):
    """A resource manager that notices whatever it is told twice, or of things that it has not."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.running: dict[str, si.Allocation] = {}
        self.ended: set[str] = set()
        self.keys: set[tuple[str, str]] = set()
        self.nodes: set[str] = set()
        self.applications: set[str] = set()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for refused in response.rejected + response.rejected_allocations:
            self.faults.append(f"{refused.allocation_key} was rejected: {refused.reason}")
        for gone in response.released:
            if self.running.pop(gone.uuid, None) is None:
                self.faults.append(f"{gone.uuid} ends and does not run: {gone.message}")
            self.ended.add(gone.uuid)
        for new in response.new:
            name = (new.application_id, new.allocation_key)
            if name in self.keys or new.uuid in self.running:
                self.faults.append(f"{name} is told twice")
            self.keys.add(name)
            self.running[new.uuid] = new

    def update_application(self, response: si.ApplicationResponse) -> None:
        for refused in response.rejected:
            self.faults.append(f"{refused.application_id} was rejected: {refused.reason}")
        for it in response.accepted:
            if it.application_id in self.applications:
                self.faults.append(f"{it.application_id} is accepted twice")
            self.applications.add(it.application_id)

    def update_node(self, response: si.NodeResponse) -> None:
        for refused in response.rejected:
            self.faults.append(f"{refused.node_id} was rejected: {refused.reason}")
        for it in response.accepted:
            if it.node_id in self.nodes:
                self.faults.append(f"{it.node_id} is accepted twice")
            self.nodes.add(it.node_id)


def placed(core: ClusterCore) -> set[str]:
    """Return what the cores believe to be running."""
    dump = core.state_dump()
    return {
        allocation["uuid"]
        for partition in dump["partitions"].values()
        for app in partition["applications"].values()
        for allocation in app["allocations"]
    }
