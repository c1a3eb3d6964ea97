"""How much may be spent on making something small."""

import time
from typing import Final

PLAYS_MAX: Final = 3_000
"""So often something is played at most while it is made smaller."""
PLAYS_STUCK_MAX: Final = 30
"""The same where a play that fails takes long, as it has no end of its own."""


class Effort:
    """Counts plays. With an end in time the result depends on the machine, else it does not."""

    def __init__(self, plays: int = PLAYS_MAX, seconds: float | None = None) -> None:
        self._plays_max = plays
        self._until = None if seconds is None else time.monotonic() + seconds
        self.plays = 0

    def allows(self, plays: int) -> bool:
        """Whether there may be so many more plays."""
        is_over = self._until is not None and time.monotonic() > self._until
        return not is_over and self.plays + plays <= self._plays_max

    def spend(self) -> bool:
        """Count one more play; False if it may not be."""
        if not self.allows(1):
            return False
        self.plays += 1
        return True
