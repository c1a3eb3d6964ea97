"""The calls that a program may rely on, wherever its core is."""

from abc import abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from yunikorn_actors import si
from yunikorn_actors.core.entry import Update
from yunikorn_actors.errors import CoreError
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.runtime.event_streams import EventStream, Feed


class AnyCore(si.SchedulerAPI, Protocol):
    """The calls of every core, wherever it runs."""

    @property
    def failure(self) -> CoreError | None:
        """Why the core takes nothing more, None while it does."""
        ...

    def start(self) -> Any:  # noqa: ANN401 - itself
        """Start it, or connect to it."""
        ...

    def stop(self, timeout: float = ...) -> None:
        """Stop it, or leave it."""
        ...

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        ...

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        ...

    def state_dump(self) -> dict[str, Any]:
        """Return everything that the core knows, as plain values."""
        ...

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits, or what has become of it."""
        ...

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size."""
        ...

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of an application or of all: places and intervals."""
        ...

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        ...

    @property
    def when_over(self) -> list[Callable[[], None]]:
        """Called when the core was stopped or has failed; none may block."""
        ...

    def check_running(self) -> None:
        """Raise if the core takes nothing more."""
        ...

    def has_room(self, rm_id: str) -> bool:
        """Whether a request of this resource manager would be taken without waiting."""
        ...

    def open_feed(self, feed: Feed, history: int) -> Callable[[], None]:
        """Feed it event records from now on; what is returned ends that."""
        ...


@runtime_checkable
class Core(AnyCore, Protocol):
    """The calls that `SchedulerCore`, in this process, and `RemoteCore`, in another one, share."""

    def event_stream(self, history: int = 0) -> EventStream:
        """Hear every event record from now on, after the last `history` ones."""
        ...

    # -- for what is built upon it

    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""
        ...

    def is_inside(self) -> bool:
        """Whether this is a thread of the core, which may not wait for it."""
        ...

    def submit_checked(self, request: Update) -> None:
        """As the three updates, of a request whose form was checked."""
        ...


class ScopedCore:
    """Started at the beginning of the block, stopped at its end, and sound by then."""

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        # What the block raised says more than what the core failed with because of it.
        if error is None:
            self.check_sound()
