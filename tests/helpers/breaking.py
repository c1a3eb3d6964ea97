"""A service behind a proxy, whose connections break in three ways."""

from pathlib import Path
from typing import Any, Protocol

from cutting import Cutter
from probes import wait_until

from yunikorn_actors import Connection, SchedulerCore, Settings
from yunikorn_actors.service.service import Serving

LONG_S = 100_000_000_000
"""Nothing completes by itself meanwhile."""
BREAKS = ("cut", "restarted", "forgotten")
"""The service is alive, resumes from its journal, or has forgotten everything."""


class Front(Protocol):
    """On threads or on a loop."""

    @property
    def connection(self) -> Connection: ...


class Place:
    """A service behind a proxy, which may be broken in three ways."""

    def __init__(self, way: str, folder: Path) -> None:
        self.way = way
        self._folder = folder
        self.serving = self._start()
        self.proxy = Cutter(self._address)

    def _start(self) -> Serving:
        journal = self._folder / "journal" if self.way == "restarted" else None
        settings = Settings(completing_timeout_ns=LONG_S, predicate_timeout_ns="1m")
        core = SchedulerCore(settings=settings, journal=journal)
        return Serving(core, {"grpc": "127.0.0.1:0"}).start()

    @property
    def _address(self) -> str:
        return self.serving.parts["grpc"].address

    @property
    def core(self) -> Any:
        return self.serving.core

    def end(self) -> None:
        """Cut all connections; none is made before `begin`."""
        self.proxy.target = None
        self.proxy.cut()
        if self.way != "cut":
            self.serving.stop()

    def begin(self) -> None:
        if self.way != "cut":
            self.serving = self._start()
        self.proxy.target = self._address

    def close(self) -> None:
        self.proxy.close()
        self.serving.stop()

    # -- what it knows

    def placed(self, application: str = "app") -> dict[str, str]:
        """Return the node of each allocation, by key."""
        found: dict[str, str] = {}
        for it in self.applications().get(application, {"allocations": []})["allocations"]:
            assert it["key"] not in found, "placed twice"
            found[it["key"]] = it["node"]
        return found

    def asks(self, application: str = "app") -> list[str]:
        return [it["key"] for it in self.applications()[application]["asks"]]

    def applications(self) -> Any:
        partitions = self.core.state_dump()["partitions"]
        return partitions.get("[rm-1]default", {"applications": {}})["applications"]

    def used(self, node_id: str = "n1", rm_id: str = "rm-1") -> int:
        partition = self.core.state_dump()["partitions"].get(f"[{rm_id}]default")
        if partition is None or node_id not in partition["nodes"]:
            return -1
        amount: int = partition["nodes"][node_id]["allocated"].get("vcore", 0)
        return amount


def state(s: Front) -> str:
    return s.connection.state


def broken(place: Place, s: Front) -> None:
    """Have the service be away and come back."""
    place.end()
    wait_until(lambda: state(s) == "away")
    place.begin()
    wait_until(lambda: state(s) == "connected")
