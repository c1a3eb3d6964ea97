"""Machines that failed and were replaced: how many, and whether there are too many of them."""

from collections import Counter
from typing import Final

from yunikorn_actors.values.durations import MINUTE

WITHIN_NS: Final = MINUTE
REPLACED_MAX: Final = 3
"""So many failures within a minute are made good; the next one says that it does not help."""


class Failures:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._recent: list[int] = []

    def may_go_on(self, role: str, now_ns: int) -> bool:
        """Count one more failure; return whether to replace the machine."""
        self._counts[role] += 1
        self._recent = [at_ns for at_ns in self._recent if now_ns - at_ns < WITHIN_NS]
        self._recent.append(now_ns)
        return len(self._recent) <= REPLACED_MAX

    def canonical(self) -> dict[str, int]:
        return dict(sorted(self._counts.items()))
