"""What a user has in use, queue by queue.

A usage exists as long as an application of that user is attached to a queue at or below it, so
applications can hold on to it; an empty one is not shown.
"""

from yunikorn_actors.state.gates import Places
from yunikorn_actors.values.resource import Resource


class Usage:
    __slots__ = ("amounts", "attached", "reserving", "running")

    def __init__(self) -> None:
        self.amounts: Resource = {}
        self.running: dict[int, None] = {}
        """Serials of the applications that have been given something and are not ending."""
        self.reserving: dict[int, None] = {}
        """Those that were given nothing yet and have a node kept for them: they take a place."""
        self.attached = 0

    def places(self, most: int) -> Places:
        return Places(most, len(self.running), self.running, self.reserving)

    def is_empty(self) -> bool:
        return not self.running and not any(self.amounts.values())
