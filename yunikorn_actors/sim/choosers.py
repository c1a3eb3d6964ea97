"""Who is next: the one source of freedom in a simulated run.

Channels keep their own order, so a choice is only between the heads of channels. Of Python's
generator `random()` alone gives the same sequence in every version, so every draw is made of it.
"""

from random import Random
from typing import Protocol


class Chooser(Protocol):
    def choose(self, arrivals: list[int]) -> int:
        """Pick an index; each number tells when the head of that channel was sent."""
        ...


class Fifo:
    """The order of sending: what one thread with one queue would do."""

    def choose(self, arrivals: list[int]) -> int:
        return arrivals.index(min(arrivals))


class Seeded:
    """Any channel with the same chance."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable schedule, no secret

    def choose(self, arrivals: list[int]) -> int:
        return int(self._random.random() * len(arrivals))


def chooser_of(seed: int) -> Chooser:
    """Seed 0 is plain first in, first out."""
    return Seeded(seed) if seed else Fifo()
