"""Asks that were rejected, or withdrawn by the core, for as long as they are remembered.

Nothing is decided by this, so it is no part of the truth: it is kept only to be asked about. The
bound is that of rejected applications; the oldest go first.
"""

from itertools import islice
from typing import NamedTuple

from yunikorn_actors.planning.why.reasons import Cause, Obstacle, Why


class Rejection(NamedTuple):
    reason: str
    at_ns: int
    was_taken: bool


class Rejections:
    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[str, str], Rejection] = {}

    def __len__(self) -> int:
        return len(self._known)

    def note(
        self, application_id: str, key: str, reason: str, at_ns: int, *, was_taken: bool = False
    ) -> None:
        name = (application_id, key)
        self._known.pop(name, None)
        self._known[name] = Rejection(reason, at_ns, was_taken)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def forget(self, application_id: str, key: str) -> None:
        """The ask came again and was taken."""
        self._known.pop((application_id, key), None)

    def explain(self, application_id: str, key: str, now_ns: int) -> Why | None:
        name = (application_id, key)
        return _why(name, self._known[name], now_ns) if name in self._known else None

    def newest(self, count: int, now_ns: int) -> tuple[Why, ...]:
        known = islice(reversed(self._known.items()), count)
        return tuple(_why(name, rejection, now_ns) for name, rejection in known)


def _why(name: tuple[str, str], rejection: Rejection, now_ns: int) -> Why:
    how = "the core withdrew it" if rejection.was_taken else "it was rejected"
    return Why(
        application_id=name[0],
        key=name[1],
        repeats=0,
        since_ns=rejection.at_ns,
        reserved=(),
        obstacle=Obstacle(cause=Cause.REJECTED, text=f"{how}: {rejection.reason}"),
        at_ns=now_ns,
    )
