"""What the parts of a service want of the core behind them, wherever that is."""

from collections.abc import Callable
from typing import Any, Protocol

from yunikorn_actors.core.driver import Follower
from yunikorn_actors.core.entry import OperatorCalls
from yunikorn_actors.core.questions import Questions
from yunikorn_actors.core.registered_managers import RegisteredManagers
from yunikorn_actors.drivers.live.clock import Clock
from yunikorn_actors.errors import CoreFailed
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.recording.recorder import FlightRecorder
from yunikorn_actors.runtime.core_api import AnyCore


class ServedCore(AnyCore, Protocol):
    """`SchedulerCore` is one: these calls are for parts of a service, beside those of embedders."""

    @property
    def clock(self) -> Clock: ...

    @property
    def failure(self) -> CoreFailed | None: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def is_administered(self) -> bool: ...

    def administer(self, text: str, by: str = "") -> None: ...

    def is_settled(self) -> bool: ...

    def when_room(self, rm_id: str, call: Callable[[], None]) -> None: ...

    # -- for a read side

    def measure(self) -> None: ...

    @property
    def followers(self) -> "FollowersOfCore": ...


class FollowersOfCore(Protocol):
    """Read sides of a core, wherever it is."""

    def follow(self, follower: Follower) -> str: ...

    def catch_up(self) -> None: ...

    def unfollow(self, address: str) -> None: ...


class QuestionedCore(ServedCore, Protocol):
    """A core in this process, which also answers what a read side cannot know."""

    @property
    def state(self) -> str: ...

    @property
    def trace_failure(self) -> OSError | None: ...

    @property
    def flight_recorder(self) -> FlightRecorder | None: ...

    @property
    def questions(self) -> Questions: ...

    @property
    def managers(self) -> RegisteredManagers: ...

    @property
    def operator(self) -> OperatorCalls: ...

    def mailbox_lengths(self) -> dict[str, int]: ...

    def metered(self) -> dict[str, Any] | None: ...
