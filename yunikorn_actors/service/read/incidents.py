"""The incidents of one partition, the newest of them: refusals, preemption, timeouts and losses.

Which facts are incidents, and in which words, stands with the facts. What happens to asks and
allocations is counted for their application, so that a thousand of them are one line, with a count
and the one that came last. The list is bounded, and a kind that has most of it loses its oldest
line: a storm of one kind leaves the lines of the others where they are.
"""

from collections import Counter
from typing import Final

from msgspec import Struct

from yunikorn_actors.state import facts as f

LISTED_MAX: Final = 100


class IncidentLine(Struct, kw_only=True):
    """As the live page gets it."""

    kind: str
    whom: str
    what: str
    such_as: str
    """Key of the last ask or allocation."""
    count: int
    last_ns: int


class Incidents:
    """Of one partition."""

    def __init__(self) -> None:
        self._by_line: dict[tuple[str, str, str], IncidentLine] = {}

    def note(self, fact: f.Fact) -> None:
        for incident in fact.incidents():
            self._count(incident, fact.at_ns)  # type: ignore[union-attr] # incidents have a time

    def _count(self, incident: f.Incident, at_ns: int) -> None:
        kind, whom, what, such_as = incident
        known = self._by_line.pop((kind, whom, what), None)
        count = 1 if known is None else known.count + 1
        self._by_line[kind, whom, what] = IncidentLine(
            kind=kind, whom=whom, what=what, such_as=such_as, count=count, last_ns=at_ns
        )
        if len(self._by_line) > LISTED_MAX:
            self._drop_one()

    def _drop_one(self) -> None:
        """Drop the oldest line of the kind that has most of them."""
        kinds = Counter(kind for kind, _, _ in self._by_line)
        most = max(kinds.values())
        oldest = next(it for it in self._by_line if kinds[it[0]] == most)
        del self._by_line[oldest]

    def newest(self) -> list[IncidentLine]:
        return list(reversed(self._by_line.values()))
