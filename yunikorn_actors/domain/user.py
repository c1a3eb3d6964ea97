"""What a user has in use, queue by queue.

A usage exists as long as an application of that user is attached to a queue at or below it, so
applications can hold on to it; an empty one is not shown.
"""

from yunikorn_actors.domain.queue import NO_BOUND, has_place
from yunikorn_actors.domain.resource import Resource


class Usage:
    __slots__ = ("amounts", "attached", "reserving", "running")

    def __init__(self) -> None:
        self.amounts: Resource = {}
        self.running: dict[int, None] = {}
        """Serials of the applications that have been given something and are not ending."""
        self.reserving: dict[int, None] = {}
        """Those that were given nothing yet and have a node kept for them: they take a place."""
        self.attached = 0

    def may_start(self, serial: int, most: int, starting: int = 0) -> bool:
        """Whether this one may be among `most`, `starting` others being on their way."""
        if serial in self.running:
            return True
        has_one = has_place(self._left(most), self.reserving, serial)
        return has_one or self.places(most, starting) > 0

    def places(self, most: int, starting: int = 0) -> int:
        """How many more applications may run."""
        return self._left(most) - len(self.reserving) - starting

    def _left(self, most: int) -> int:
        return most - len(self.running) if most else NO_BOUND

    def is_empty(self) -> bool:
        return not self.running and not any(self.amounts.values())
