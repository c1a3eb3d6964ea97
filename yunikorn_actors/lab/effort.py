"""How much may be spent on making something small."""

import time
from typing import Final

PLAYS_MAX: Final = 3_000
"""So often something is played at most while it is made smaller."""


class Effort:
    """Counts plays. With an end in time the result depends on the machine, else it does not."""

    def __init__(self, plays: int = PLAYS_MAX, seconds: float | None = None) -> None:
        self._left = plays
        self._until = None if seconds is None else time.monotonic() + seconds
        self.plays = 0

    def spend(self) -> bool:
        """Count one more play; False if it may not be."""
        if self.plays >= self._left:
            return False
        if self._until is not None and time.monotonic() > self._until:
            return False
        self.plays += 1
        return True
