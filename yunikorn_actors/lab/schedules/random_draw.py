"""Choices that can be repeated."""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

_T = TypeVar("_T")

RUNS_MAX: Final = 1 << 32
"""Every seed has so many runs."""


class Draw:
    """The choices of one run; of Python's generator `random()` alone is the same everywhere."""

    def __init__(self, seed: int, run: int = 0) -> None:
        self._random = Random(seed * RUNS_MAX + run)  # noqa: S311 - repeatable, no secret
        self.share = self._random.random
        """Return a number from 0 to 1."""

    def number(self, below: int) -> int:
        return int(self._random.random() * below)

    def whole(self, low: int, high: int) -> int:
        return low + self.number(high - low + 1)

    def once_in(self, times: int) -> bool:
        return self._random.random() * times < 1

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.number(len(choices))]
