"""Looks how long `fits` takes: while it does not return the core delivers nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from yunikorn_actors.front.books import Deal
from yunikorn_actors.recording.logs import alarm

STUCK_S: Final = 60.0
"""Nobody waits that long for an answer; a core with `patient_settings` takes it for a no then."""


class _Question(NamedTuple):
    deal: Deal[Any]
    node_id: str
    since_s: float


class Watch:
    """A question that has no answer after `STUCK_S` is reported once.

    There is one question at a time, as the core asks on one thread, and at most one timer for all
    of them: a quick answer costs none.
    """

    def __init__(self, later: Callable[[float, Callable[[], None]], None]) -> None:
        """`later` makes a call after so many seconds."""
        self._later = later
        self._lock = threading.Lock()
        self._question: _Question | None = None
        self._is_timed = False

    @contextmanager
    def over(self, deal: Deal[Any], node_id: str) -> Iterator[None]:
        with self._lock:
            self._question = _Question(deal, node_id, time.monotonic())
            if not self._is_timed:
                self._time(STUCK_S)
        try:
            yield
        finally:
            with self._lock:
                self._question = None

    def _time(self, seconds: float) -> None:
        self._is_timed = True
        self._later(seconds, self._look)

    def _look(self) -> None:
        with self._lock:
            self._is_timed = False
            question = self._question
            if question is None:
                return
            rest = question.since_s + STUCK_S - time.monotonic()
            if rest > 0:
                self._time(rest)
                return
        deal, node_id, _ = question
        alarm(
            f"fits of {deal.key!r} of {deal.account.id!r} was asked about {node_id!r} and has "
            f"not returned for {STUCK_S:g} s; until it does the core delivers nothing"
        )
