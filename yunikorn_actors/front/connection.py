"""Where the core of a front is, and whether it can be reached."""

import time
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Whether the core can be reached; a core in this process always can, while it is open."""

    state: Literal["connected", "away", "closed"]
    """`away`: the front tries to come back, and what is asked meanwhile waits."""
    address: str = ""
    """Of the service; empty where the core is in this process."""
    reason: str = ""
    """Why it is away or closed: what the last attempt has come to."""
    attempts: int = 0
    """While it is away: how often the front has tried to come back."""
    since: float = field(default_factory=time.monotonic)
    """Since when it is so, as `time.monotonic()` has it."""

    def __str__(self) -> str:
        where = f" with the service at {self.address}" if self.address else ""
        tried = f" after {self.attempts} attempts" if self.attempts else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.state}{where}{tried}{why}"
