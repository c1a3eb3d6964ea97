"""A part of the service: one thing that listens, and what it is given to work with."""

from typing import NamedTuple, Protocol

from yunikorn_actors.runtime.system import SchedulerCore


class Part(Protocol):
    """Made before the core starts, so that it can listen to the core from its first message on.

    Parts start after the core, in the order of their table, and stop before it, the last one first.
    """

    @property
    def address(self) -> str:
        """Where it listens, with the port that it got if it asked for any (`127.0.0.1:0`)."""
        ...

    def start(self) -> None:
        """Listen; raise OSError where that is impossible."""

    def stop(self, grace: float) -> None:
        """Take nothing new, deliver what there is, and end within so many seconds."""


class Site(NamedTuple):
    """Where a part is to work."""

    core: SchedulerCore
    """Not started yet while parts are made."""
    address: str
    """Where to listen: `HOST:PORT`; port 0 is any that is free."""
