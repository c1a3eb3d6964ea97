"""Which channel delivers next: the only freedom in a simulated run.

A channel keeps the order of its messages, so the choice is between the first messages of channels.
Every draw uses `random()` of Python's generator, because no other of its methods promises the same
sequence in every version.
"""

from random import Random
from typing import Protocol


class Chooser(Protocol):
    def choose(self, arrivals: list[int]) -> int:
        """Pick an index; each number tells when the first message of that channel was sent."""
        ...


class Fifo:
    """Deliver in the order of sending, as one thread with one queue would."""

    def choose(self, arrivals: list[int]) -> int:
        return arrivals.index(min(arrivals))


class Seeded:
    """Give every channel the same chance."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable schedule, no secret

    def choose(self, arrivals: list[int]) -> int:
        return int(self._random.random() * len(arrivals))


def chooser_of(seed: int) -> Chooser:
    """Seed 0 is plain first in, first out."""
    return Seeded(seed) if seed else Fifo()
