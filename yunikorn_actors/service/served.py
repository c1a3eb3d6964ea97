"""What the parts of a service want of the core behind them, wherever that is."""

from collections.abc import Callable
from typing import Any, Protocol

from yunikorn_actors import si
from yunikorn_actors.domain.why import Why
from yunikorn_actors.errors import CoreFailed
from yunikorn_actors.gateway import Follower
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.runtime.clock import Clock
from yunikorn_actors.runtime.streams import Feed


class ServedCore(Protocol):
    """`SchedulerCore` is one; what is private there is for parts of a service as well."""

    @property
    def clock(self) -> Clock: ...

    @property
    def failure(self) -> CoreFailed | None: ...

    @property
    def _topology(self) -> Topology: ...

    @property
    def _when_over(self) -> list[Callable[[], None]]: ...

    def start(self) -> Any: ...  # noqa: ANN401 - itself

    def stop(self, timeout: float) -> None: ...

    def is_settled(self) -> bool: ...

    def _check_running(self) -> None: ...

    # -- the scheduler interface

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse: ...

    def update_allocation(self, request: si.AllocationRequest) -> None: ...

    def update_application(self, request: si.ApplicationRequest) -> None: ...

    def update_node(self, request: si.NodeRequest) -> None: ...

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None: ...

    def _administer(self, text: str, by: str = "") -> None: ...

    def resource_manager_lost(self, rm_id: str) -> None: ...

    def unregister_resource_manager(self, rm_id: str) -> None: ...

    def _has_room(self, rm_id: str) -> bool: ...

    def _when_room(self, rm_id: str, call: Callable[[], None]) -> None: ...

    # -- questions

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why: ...

    def state_dump(self) -> dict[str, Any]: ...

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound: ...

    def _open_feed(self, feed: Feed, history: int) -> Callable[[], None]: ...

    # -- for a read side

    def _measure(self) -> None: ...

    def _follow(self, follower: Follower) -> str: ...

    def _unfollow(self, address: str) -> None: ...
