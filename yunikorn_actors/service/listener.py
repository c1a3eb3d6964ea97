"""A part of the service: one thing that listens, and what it is given to work with."""

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from yunikorn_actors.service.access_policy import Tls
from yunikorn_actors.service.log_lines import LogStyle
from yunikorn_actors.service.served import ServedCore
from yunikorn_actors.service.tokens import CurrentTokens


class Part(Protocol):
    """Made before the core starts, so that it can listen to the core from its first message on.

    Parts take their addresses before the core starts. They start after it, in the order of their
    table, and stop before it, the last one first.
    """

    @property
    def address(self) -> str:
        """Where it listens; asked for port 0, it names the port that it got."""
        ...

    def listen(self) -> None:
        """Take the address, and answer nobody yet; raise OSError where that is impossible."""
        return

    def start(self) -> None:
        """Answer every caller; raise OSError where that is impossible."""

    def stop(self, grace: float) -> None:
        """Take nothing new, deliver what there is, and end within so many seconds."""

    def close(self) -> None:
        """Give the address back, whether it was started or not."""
        return


CONFIGURATION: Final = "configuration"
START_S: Final = 60.0
"""A computer that is very busy takes its time to start an interpreter."""
READ_SIDE: Final = "rest"
"""What may be at fault, by its name in health checks."""


class Standing:
    """What the service has to say of itself, beside the state of its core."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults = {CONFIGURATION: "", READ_SIDE: ""}
        self.follows = ""
        """The configuration file that is followed, if any."""
        self.simulate: Callable[[bytes], bytes] | None = None
        """The read side's answer to what would happen, for parts that follow nothing."""
        self._subscribers: list[Callable[[str, str], object]] = []

    @property
    def configuration_fault(self) -> str:
        """Why the configuration file is not in force as it stands; empty while it is."""
        return self._faults[CONFIGURATION]

    @property
    def read_side_fault(self) -> str:
        """Why nobody answers by REST, or may soon not do so; empty while all is well."""
        return self._faults[READ_SIDE]

    def subscribe(self, subscriber: Callable[[str, str], object]) -> None:
        """Call it with each fault now and whenever it changes; the subscriber does not block."""
        with self._lock:
            self._subscribers.append(subscriber)
            for topic, fault in self._faults.items():
                subscriber(topic, fault)

    def tell(self, fault: str, topic: str = CONFIGURATION) -> None:
        with self._lock:
            self._faults[topic] = fault
            for subscriber in self._subscribers:
                subscriber(topic, fault)


class Questions(Protocol):
    """What a read side cannot know, and whom it asks: the core itself, or a line to it."""

    def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        """Wait for the answer; raise CoreStopped, CoreFailed or NoReply if there is none."""


class Site(NamedTuple):
    """Where a part is to work."""

    core: ServedCore
    """Not started yet while parts are made."""
    address: str
    """Where to listen: `HOST:PORT`; port 0 is any that is free."""
    standing: Standing
    tls: Tls | None = None
    """How to encrypt, if at all."""
    tokens: CurrentTokens | None = None
    """What callers have to show, which changes while the service runs; None lets everybody in."""
    names: tuple[str, ...] = ()
    """By which it may be called over HTTP, beside its addresses and `localhost`."""
    cors: bool = True
    """Pages of other origins may read what YuniKorn's pages read."""
    questions: Questions | None = None
    """Who answers a read side, where the core is not in this process."""
    logs: LogStyle | None = None
    """How a process of its own writes its log, if it is to write any."""
