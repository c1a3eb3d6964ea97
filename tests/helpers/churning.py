"""A resource manager with a full house: for each allocation that ends it asks for another.

It keeps its own books, by what it was told, and goes on with them when the scheduler was killed and
another one took its place. An ask is made under a key that is never used again, so whatever is told
twice shows.
"""

import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from probes import wait_until
from support import CONFIG, RM

from yunikorn_actors import RemoteCore, si
from yunikorn_actors.errors import CoreError

NODES = [f"n{number}" for number in range(10)]
APPS = [f"app-{number}" for number in range(4)]
ROOM = si.Resource.of({"vcore": 100})
ONE = si.Resource.of({"vcore": 1})
BURST = 20


class Churner(si.ResourceManagerCallback):
    def __init__(self, held: int) -> None:
        self.held = held
        self.waiting: dict[str, str] = {}
        """Asks without an answer: key to application."""
        self.running: dict[str, si.Allocation] = {}
        """What was told and has not ended, by UUID, the oldest first."""
        self.told: dict[str, str] = {}
        """All that ever was: key to UUID."""
        self.faults: list[str] = []
        self._accepted: set[str] = set()
        self._ended: dict[str, si.Allocation] = {}
        """The releases of these may not have arrived."""
        self._keys = (f"k{number}" for number in count())
        self._lock = threading.Lock()

    # -- what it hears

    def update_allocation(self, response: si.AllocationResponse) -> None:
        with self._lock:
            for new in response.new:
                if new.allocation_key in self.told:
                    self.faults.append(f"{new.allocation_key} was told twice")
                self.told[new.allocation_key] = new.uuid
                self.waiting.pop(new.allocation_key, None)
                self.running[new.uuid] = new
            for gone in response.released:
                if gone.uuid in self.running:
                    self.faults.append(f"{gone.allocation_key} was taken away: {gone.message}")
            self.faults.extend(f"refused: {it.reason}" for it in response.rejected)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._accepted.update(it.application_id for it in response.accepted)
        self.faults.extend(f"refused: {it.reason}" for it in response.rejected)

    def update_node(self, response: si.NodeResponse) -> None:
        self._accepted.update(it.node_id for it in response.accepted)
        self.faults.extend(f"refused: {it.reason}" for it in response.rejected)

    # -- what it says

    def register(self, core: RemoteCore) -> None:
        """Come, or come back with all that runs and all that waits."""
        self._accepted.clear()
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), self
        )
        ugi = si.UserGroupInformation(user="bob")
        apps = tuple(
            si.AddApplicationRequest(application_id=it, queue_name="root.default", ugi=ugi)
            for it in APPS
        )
        core.update_application(si.ApplicationRequest(rm_id=RM, new=apps))
        wait_until(lambda: set(APPS) <= self._accepted)
        core.update_node(si.NodeRequest(rm_id=RM, nodes=tuple(map(self._node, NODES))))
        wait_until(lambda: set(NODES) <= self._accepted)
        with self._lock:
            ended, waiting = tuple(self._ended.values()), dict(self.waiting)
        self._say(core, waiting, ended)

    def _node(self, node_id: str) -> si.NodeInfo:
        runs = tuple(it for it in self.running.values() if it.node_id == node_id)
        return si.NodeInfo(
            node_id=node_id,
            action=si.ActionFromRM.CREATE,
            schedulable_resource=ROOM,
            existing_allocations=runs,
        )

    def _say(
        self, core: RemoteCore, waiting: dict[str, str], ended: tuple[si.Allocation, ...]
    ) -> None:
        asks = tuple(
            si.AllocationAsk(allocation_key=key, application_id=app, resource_ask=ONE)
            for key, app in waiting.items()
        )
        gone = tuple(
            si.AllocationRelease(
                application_id=it.application_id, allocation_key=it.allocation_key, uuid=it.uuid
            )
            for it in ended
        )
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks, releases=releases))

    def churn(self, core: RemoteCore) -> None:
        """End the oldest and ask for others, until nobody is there any more."""
        while core.failure is None:
            with self._lock:
                ended = tuple(islice(self._surplus(), BURST))
                for it in ended:
                    self._ended[it.uuid] = self.running.pop(it.uuid)
                wanted = self.held - len(self.running) - len(self.waiting)
                keys = list(islice(self._keys, max(0, min(BURST, wanted))))
                new = {key: APPS[int(key[1:]) % len(APPS)] for key in keys}
                self.waiting.update(new)
            if not new and not ended:
                time.sleep(0.001)
                continue
            try:
                self._say(core, new, ended)
            except CoreError:
                return

    def _surplus(self) -> Iterator[si.Allocation]:
        """As long as not too many wait."""
        if len(self.waiting) < BURST:
            yield from tuple(self.running.values())[: len(self.running) - self.held + BURST]

    # -- its books, and those of the core

    def check(self, core: RemoteCore) -> None:
        """Wait until all is told, and compare."""
        wait_until(lambda: not self.waiting or self.faults)
        assert [] == self.faults
        wait_until(lambda: self.running.keys() == uuids_of(core))
        partition = partition_of(core)
        for where in (partition["queues"]["root"], partition["queues"]["root.default"]):
            assert {"vcore": len(self.running)} == where["allocated"]
            assert not where["pending"]
        for name, node in partition["nodes"].items():
            here = sum(it.node_id == name for it in self.running.values())
            assert here == node["allocated"].get("vcore", 0)


def partition_of(core: RemoteCore) -> dict[str, Any]:
    partition: dict[str, Any] = core.state_dump()["partitions"][f"[{RM}]default"]
    return partition


def uuids_of(core: RemoteCore) -> set[str]:
    apps = partition_of(core)["applications"].values()
    return {it["uuid"] for app in apps for it in app["allocations"]}
