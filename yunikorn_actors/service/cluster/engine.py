"""Ray: it places the hosts, notices when one is gone, and starts it again.

Each host is a named actor that does not end with the portal that made it. So several portals have
the same ones, and a portal that starts again finds them. No other module knows of Ray.
"""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RaySystemError, RayTaskError

from yunikorn_actors.errors import JournalError
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.service.address import parted
from yunikorn_actors.service.cluster.local import LOCAL
from yunikorn_actors.service.cluster.manager_channel import HostAway
from yunikorn_actors.service.cluster.partition_host import Host

NAMESPACE: Final = "yunikorn-actors"
ANSWER_S: Final = 60.0
"""Longer than a core takes to say that it does not answer."""
TAKEOVER_S: Final = 30.0
"""How long a host waits for the former one to leave its journal."""
CALLS_MAX: Final = 10_000
"""Calls that wait at one host at a time: two for each resource manager of each portal."""
CONNECT_S: Final = 10.0
STORE_BYTES: Final = 100_000_000
"""Of shared memory, for a cluster of our own: messages to hosts are small."""


class PartitionActor(Host):
    """A host as an actor: where its core fails, its process ends, and Ray starts another one."""

    def __init__(self, partition: str, journal: str | None, topology: TopologyName) -> None:
        deadline = time.monotonic() + TAKEOVER_S
        while True:
            try:
                super().__init__(partition, journal, topology, lambda _: os._exit(1))
            except JournalError:
                # A computer that Ray has given up may not have ended its processes yet.
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
            else:
                return


class RayHost:
    def __init__(self, partition: str, handle: Any) -> None:  # noqa: ANN401 - Ray has no types
        self._partition = partition
        self._handle = handle

    def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of any method
        # What the method raised is raised here; everything else means that the host is away.
        try:
            return ray.get(getattr(self._handle, method).remote(*arguments), timeout=ANSWER_S)
        except RayTaskError as error:
            raise error.cause from None
        except (RayActorError, RaySystemError, GetTimeoutError) as error:
            why = str(error).partition(". ")[0]
            raise HostAway(f"partition {self._partition} cannot be reached: {why}") from None


class _UnreachableError(ConnectionError):
    """Nothing listens at the address, or no packet comes back from there."""


def _reach(address: str) -> None:
    """Raise where nothing listens: Ray itself would try for minutes, and then end the process."""
    found = parted(address.rpartition("://")[2])
    if found is None:
        return  # Such as `auto`: Ray knows where that is.
    try:
        socket.create_connection(found, CONNECT_S).close()
    except OSError as error:
        raise _UnreachableError(error.strerror or str(error)) from None


def _remedy(error: Exception) -> str:
    if isinstance(error, _UnreachableError):
        return "give the address of a Ray cluster that runs"
    return "RAY_AUTH_MODE, the token and the version of Ray have to be those of the cluster"


class RayEngine:
    """Where the hosts are: a Ray cluster, or one of our own for `local`."""

    def __init__(self, address: str, journal: Path | None, topology: TopologyName) -> None:
        """Connect; raise ConnectionError where that is impossible."""
        self._arguments = (None if journal is None else str(journal.resolve()), topology)
        shared: dict[str, Any] = {
            "namespace": NAMESPACE,
            "log_to_driver": False,
            "logging_level": "warning",
        }
        try:
            if address == LOCAL:
                own = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
                ray.init(LOCAL, **own, **shared)
            else:
                _reach(address)
                ray.init(address, **shared)
        except (RayError, ConnectionError, RuntimeError, ValueError) as error:
            why = str(error).strip().partition("\n")[0]
            raise ConnectionError(f"--cluster {address}: {why}: {_remedy(error)}") from None

    def hosts(self, partitions: tuple[str, ...]) -> Mapping[str, RayHost]:
        """Find the host of each partition, or have it started."""
        return {it: RayHost(it, self._actor(it)) for it in partitions}

    def _actor(self, partition: str) -> Any:  # noqa: ANN401 - Ray has no types
        make = ray.remote(PartitionActor).options(
            name=partition,
            namespace=NAMESPACE,
            # Not with this portal: another one, or this one after a restart, finds it again.
            lifetime="detached",
            get_if_exists=True,
            # Restarted without end; no call is repeated by Ray, as the portal repeats it itself.
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=CALLS_MAX,
        )
        return make.remote(partition, *self._arguments)

    def close(self) -> None:
        """Disconnect; a cluster of our own ends."""
        ray.shutdown()
