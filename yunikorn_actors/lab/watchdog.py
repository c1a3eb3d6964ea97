"""Ends a program that computes or waits for ever: no event happens, so no bound on events ends it.

Real time is looked at here alone, and by another thread: how fast a machine is must not change a
run, so the limit is far above what a program computes between two events.

Only the main thread is watched, where pytest runs its tests: a signal reaches no other one, and
`PyThreadState_SetAsyncExc` neither ends the waiting for a lock nor, while a profile function is
set, can be taken back without the interpreter spinning for ever (CPython 3.11).
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from yunikorn_actors.lab.nondeterminism_guard import is_debugged, place_of
from yunikorn_actors.policies.guard import FromOutside

STUCK_S: Final = 10.0
"""After so long without an event a program counts as stuck."""
_LOOKS: Final = 10
"""So often it is looked at meanwhile."""
_known: Final[dict[str, None]] = {}
"""Where programs were stuck for all that time: there the next one is after one look."""


class Stuck(FromOutside):
    """Raised into the program; its own handlers of exceptions should not catch it."""


class Watchdog:
    """Watches the run of one program at a time, in the main thread."""

    def __init__(self, events: Callable[[], int]) -> None:
        self.is_interrupted = False
        """Whether ctrl-C came: a KeyboardInterrupt is not the program's own then."""
        self.place = ""
        """Where the program was when it was ended; empty if it was not."""
        self._events = events
        self._thread = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._is_over = False
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="lab-watchdog", daemon=True)
        self._usual: Any = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        if not self._is_main:
            yield
            return
        self._usual = signal.signal(signal.SIGINT, self._on_interrupt)
        self._watcher.start()
        try:
            yield
        finally:
            # First of all: raised within `Event.set`, Stuck would leave its lock taken.
            self._is_over = True
            self._stop()

    def _stop(self) -> None:
        self._over.set()
        self._watcher.join()
        signal.signal(signal.SIGINT, self._usual)

    def _watch(self) -> None:
        seen, looks = self._events(), 0
        while not self._over.wait(STUCK_S / _LOOKS):
            before, seen = seen, self._events()
            looks = looks + 1 if before == seen else 0
            frame = sys._current_frames()[self._thread]
            if looks and not is_debugged(frame) and (looks >= _LOOKS or self._is_known(frame)):
                self._end(place_of(frame))
                looks = 0

    def _is_known(self, frame: FrameType) -> bool:
        """One look is enough at a known place; a program that was ended has its time to leave."""
        return not self.place and place_of(frame) in _known

    def _end(self, place: str) -> None:
        """Raise Stuck in the program; again and again, as it may catch everything."""
        self.place = self.place or place
        _known[self.place] = None
        # A signal also ends the waiting for a lock.
        signal.pthread_kill(self._thread, signal.SIGINT)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.place:
            if not self._is_over:
                raise Stuck
            return
        self.is_interrupted = True
        if callable(self._usual):
            self._usual(number, frame)
