"""The lease: room on a node, until it is released, lost, or wanted back for too long."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self

from yunikorn_actors import si

LeaseState = Literal["held", "wanted back", "released", "lost"]


@dataclass(frozen=True, kw_only=True)
class Running:
    """Work that runs already: what `add_node(running=...)` needs to know to go on with it.

    `lease.running` is the one of a lease. Keep it as JSON with `dataclasses.asdict`, and after a
    restart make it again with `Running(**item)`.
    """

    application: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    node_id: str
    """Id of the node where it runs."""
    resources: Mapping[str, si.Amount] = field(default_factory=dict)
    """As people write them: `{"vcore": "500m", "memory": "2Gi"}`."""
    group: str = ""
    """Of a gang, the group that it is a member of."""
    priority: int = 0
    """As the ask's."""
    preemptible: bool = True
    """Whether its room may be taken for others."""
    devices: Sequence[int] = ()
    """The numbers of its devices, if its node tells them apart."""
    spread: str = ""
    """As the ask's: others of its application are spread over the nodes with regard to it."""
    apart_from: Mapping[str, str] = field(default_factory=dict)
    """As the ask's: attributes of nodes, each with the name of those that are to be apart."""
    originator: bool = False
    """As the ask's: of its application it goes late."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """As the ask's, which tell how long it runs as well."""


class BaseLease:
    """What `Lease` and `AsyncLease` have in common."""

    def __init__(self, running: Running, release: Callable[[], None]) -> None:
        """Made for an ask that was placed, and for what runs already."""
        self.running: Final = running
        """All that a restarted program needs to go on with this work."""
        self.state: LeaseState = "held"
        """`held`, `wanted back`, `released` by the program, or `lost` to it."""
        self.reason = ""
        """Why the lease is wanted back, or why it is lost."""
        self._due_s = 0.0
        self._release = release

    @property
    def application(self) -> str:
        """The id of its application."""
        return self.running.application

    @property
    def key(self) -> str:
        """The key of its ask."""
        return self.running.key

    @property
    def node_id(self) -> str:
        """The node where the room is."""
        return self.running.node_id

    @property
    def resources(self) -> Mapping[str, si.Amount]:
        """How much room there is, as in `Running`."""
        return self.running.resources

    @property
    def devices(self) -> tuple[int, ...]:
        """The numbers of the devices that it has on its node, from 0; empty if it has none."""
        return tuple(self.running.devices)

    @property
    def seconds_left(self) -> float | None:
        """How long it may still be held; None unless it is wanted back.

        A queue with `preemption.grace` says so of what is preempted; else the grace time of the
        scheduler counts.
        """
        if self.state != "wanted back":
            return None
        return max(0.0, self._due_s - time.monotonic())

    @property
    def lost(self) -> bool:
        """Whether the room is gone: with its node, its application, after the grace time."""
        return self.state == "lost"

    def release(self) -> None:
        """Give the room back: the work has ended, or has not begun. Again, it does nothing."""
        self._release()

    def _want_back(self) -> None:
        """Have the program notice; never waits."""
        raise NotImplementedError

    def __repr__(self) -> str:
        what = f"{self.key} of {self.application} on {self.node_id}: {self.state}"
        return f"<{type(self).__name__} {what}{', ' if self.reason else ''}{self.reason}>"


class _WantedBack(threading.Event):
    """Set by the core, so a wait for it inside the core would never end."""

    check_may_wait: Callable[[str], None]
    """Set when it is made."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lease is wanted back; raise where that cannot be noticed."""
        # Inside the core nothing could set it.
        if not self.is_set():
            self.check_may_wait("wanted_back.wait")
        return super().wait(timeout)


class Lease(BaseLease):
    """Room on a node that an ask got. Leave its `with` block, or call `release`, to give it back.

    When `wanted_back` is set, end the work and release the lease: it was preempted, timed out, or
    lost with its node; `reason` says which. A lease that is wanted back and not released is lost
    when the grace time of its scheduler is over: then its room is given to others.

    `wanted_back` is a `threading.Event`, `running` what to keep for a restart.
    """

    def __init__(
        self,
        running: Running,
        release: Callable[[], None],
        check_may_wait: Callable[[str], None],
    ) -> None:
        """Made for an ask that was placed, and for what runs already."""
        super().__init__(running, release)
        event = _WantedBack()
        event.check_may_wait = check_may_wait
        self.wanted_back: Final[threading.Event] = event
        """Set when the work is to end; wait for it, or look at it now and then."""

    def _want_back(self) -> None:
        self.wanted_back.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
