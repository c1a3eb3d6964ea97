"""A core with a journal and a little work, and what of its truth outlives a restart."""

from pathlib import Path
from typing import Any

from probes import wait_until
from support import APP, CONFIG, PARTITION, RM, Recorder, ask

from yunikorn_actors import si
from yunikorn_actors.journal.compaction import fold
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.runtime.scheduler_core import SchedulerCore


def node(name: str, vcore: int, *running: si.Allocation) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": vcore}),
        existing_allocations=running,
    )
    return si.NodeRequest(rm_id=RM, nodes=(info,))


def begin(
    core: SchedulerCore, rm: Recorder, *running: si.Allocation, vcore: int = 4, **extra: str
) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG, extra_config=extra)
    core.register_resource_manager(request, rm)
    add_application(core)
    core.update_node(node("n1", vcore, *running))


def add_application(core: SchedulerCore) -> None:
    ugi = si.UserGroupInformation(user="bob")
    app = si.AddApplicationRequest(application_id=APP, queue_name="root.default", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))


def place(core: SchedulerCore, rm: Recorder, *keys: str, size: int = 2) -> None:
    """Ask, and wait until that was told."""
    before = len(rm.running)
    asks = tuple(ask(key, size) for key in keys)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
    wait_until(lambda: len(rm.running) == before + len(keys) and core.is_settled())


def truth_of(core: SchedulerCore) -> dict[str, Any]:
    """Leave out what a restart changes: nodes take no work, and nothing is decided."""
    partition = core.state_dump()["partitions"][PARTITION]
    return {name: partition[name] for name in ("queues", "applications", "users", "finished")}


def truth_in(folder: Path) -> dict[str, Any]:
    """What the next core has."""
    with SchedulerCore(journal=folder) as core:
        return truth_of(core)


def release(core: SchedulerCore, rm: Recorder, *keys: str) -> None:
    """Say that these have ended, and wait until that was taken."""
    gone = tuple(si.AllocationRelease(application_id=APP, allocation_key=key) for key in keys)
    releases = si.AllocationReleasesRequest(allocations_to_release=gone)
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    wait_until(lambda: not set(keys) & set(rm.running.values()) and core.is_settled())


class SnapshotAtOnce:
    """Makes a snapshot in this process, where a service has another one for it."""

    is_at_work = False

    def __init__(self, folder: Folder, number: int) -> None:
        former = folder.last_snapshot
        fold(folder.path, number)
        folder.adopt(number)
        folder.drop_before(former)

    def stop(self, _: float | None) -> bool:
        return True
