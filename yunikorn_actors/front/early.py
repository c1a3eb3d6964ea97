"""What the core placed before the program asked for it.

A core that begins from its journal still knows the asks that waited, and goes on placing them when
the nodes are back. The program that comes back asks for the same again, and may do so later.
"""

from typing import Final

from yunikorn_actors import si

EARLY_MAX: Final = 100_000
FORMER_MAX: Final = 10_000


class Early:
    """By application and key, until the program asks or the core takes it back.

    What the core still says of an application that the program has closed is not for the next one
    of that id, so nothing of it is kept.
    """

    def __init__(self) -> None:
        self._placed: dict[tuple[str, str], si.Allocation] = {}
        self._former: dict[str, None] = {}

    def keep(self, new: si.Allocation) -> None:
        if new.application_id not in self._former and len(self._placed) < EARLY_MAX:
            self._placed[new.application_id, new.allocation_key] = new

    def take(self, application_id: str, core_key: str) -> si.Allocation | None:
        return self._placed.pop((application_id, core_key), None)

    def on(self, node_id: str) -> list[si.Allocation]:
        return [it for it in self._placed.values() if it.node_id == node_id]

    def close(self, application_id: str) -> None:
        """The program had this application, so what the core placed for it has been heard."""
        for key in [it for it in self._placed if it[0] == application_id]:
            del self._placed[key]
        self._former[application_id] = None
        if len(self._former) > FORMER_MAX:
            del self._former[next(iter(self._former))]
