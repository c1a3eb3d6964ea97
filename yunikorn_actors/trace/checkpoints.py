"""Where a replay of a recording has been, so that the next one need not begin at the beginning.

A checkpoint holds the machines, packed, in the memory of this process. It is written to no file,
and nothing is ever unpacked that was not packed here: what lies beside a recording comes from
anywhere. Checkpoints count only for the very files that were read; for others, and for those that
have grown, the replay begins anew.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from yunikorn_actors.trace.records.source import FileId

EVERY: Final = 25_000
"""So many messages are between two checkpoints: to handle them again takes about a second."""
BYTES_MAX: Final = 64 * 2**20
"""So much is kept; behind the last checkpoint that has room a replay takes as long as it takes."""


class Checkpoint(NamedTuple):
    """After the record of some message, before the next."""

    record: int
    segment: int
    """Of the recording, in which that record stands."""
    steps: dict[str, int]
    """How many messages each mailbox had received."""
    latest_ns: int
    """The latest time of any message up to here."""
    packed: bytes


class Checkpoints:
    """All checkpoints of one recording."""

    def __init__(self, every: int = EVERY) -> None:
        self.every = every
        self._of: tuple[tuple[FileId, ...], dict[int, Checkpoint]] = (), {}

    def of(self, files: tuple[FileId, ...]) -> dict[int, Checkpoint]:
        """Return the checkpoints in these files, by their records; forget those in others."""
        if self._of[0] != files:
            self._of = files, {}
        return self._of[1]


def newest(
    checkpoints: dict[int, Checkpoint], is_before: Callable[[Checkpoint], bool]
) -> Checkpoint | None:
    # A copy: another thread may ask the same recording.
    found = filter(is_before, tuple(checkpoints.values()))
    return max(found, key=lambda checkpoint: checkpoint.record, default=None)


def has_room(checkpoints: dict[int, Checkpoint]) -> bool:
    return sum(len(checkpoint.packed) for checkpoint in tuple(checkpoints.values())) < BYTES_MAX
