"""Machines without threads of their own: their messages wait in one line, and callers work it off.

Whoever has left a message runs the machines until nothing is left: a caller, a callback that has
called or answered, the timers. One thread does so at a time; the others leave their message and go
on. A machine never waits for anybody, so neither does the thread that runs it.

No thread is kept for ever by what others bring. After so many messages, or when it is interrupted,
what is left is handed over to a thread of the core. An interrupt (Ctrl-C) waits until the message
in hand is handled, because half a handler is half a truth; then it is raised in the call. Whatever
else breaks into a handler, as a handler of signals that raises, fails the core: nothing acts on
what was left there.
"""

import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.messages.base import Envelope
from yunikorn_actors.runtime.shell import Promises, Station, System

RUN_MAX: Final = 1000
"""Messages that one thread handles before it hands over."""


class Line:
    def __init__(self, hand_over: Callable[[], None]) -> None:
        """With `hand_over` a thread of the core is told to run the line."""
        self._hand_over = hand_over
        self._waiting: deque[tuple[StationInLine, Envelope]] = deque()
        self._lock = threading.RLock()
        """Guards what waits, and the counts of the stations; held for a moment only."""
        self._is_closed = False
        self._busy = threading.Lock()
        self._runner: int | None = None
        self._is_interrupted = False

    @property
    def is_mine(self) -> bool:
        """Whether this thread is running the machines at this moment."""
        return self._runner == threading.get_ident()

    def put(self, station: "StationInLine", envelope: Envelope) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            # Counted before it can be taken out: the count of handled messages is never ahead.
            station.count += 1
            self._waiting.append((station, envelope))
        return True

    def run(self) -> None:
        """Handle what waits; if another thread is at it already, that thread handles this too."""
        if not self._waiting or self._busy.locked():
            return
        if not _may_be_interrupted():
            self._run()
            return
        # As `signal` has them they make enumerations of what they are given: 15 times the cost, and
        # this is paid at every call of the main thread.
        _signal.signal(signal.SIGINT, self._interrupt)
        try:
            self._run()
        finally:
            # A hook of the embedder may have set another one.
            if _signal.getsignal(signal.SIGINT) == self._interrupt:
                _signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        self._is_interrupted = True

    def _run(self) -> None:
        # Looked at again after each release: what came in between was left by a thread that found
        # the line busy.
        while self._waiting and self._busy.acquire(blocking=False):
            is_done = False
            try:
                self._runner = threading.get_ident()
                is_done = self._work_off()
            finally:
                self._runner = None
                self._busy.release()
                if not is_done:
                    self._hand_over()
            if not is_done:
                return

    def _work_off(self) -> bool:
        """Handle one after the other; False if something may be left."""
        for _ in range(RUN_MAX):
            # The flag is the main thread's: somebody else may be at it meanwhile.
            if self._is_interrupted and _is_main():
                return False
            try:
                station, envelope = self._waiting.popleft()
            except IndexError:
                return True
            station.handle(envelope)
        return False

    def look(self, station: "StationInLine") -> Envelope | None:
        """Return what is next in the line, if it is for this station; asked by who runs it."""
        if not self._waiting or self._waiting[0][0] is not station:
            return None
        return self._waiting[0][1]

    def take_out(self) -> None:
        self._waiting.popleft()

    def close(self, timeout: float) -> None:
        """Wait for the one who runs the machines, and drop what is left; the stations are deaf."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        # Not given back: nobody runs the machines any more.
        self._busy.acquire(timeout=timeout)
        while self._waiting:
            station, envelope = self._waiting.popleft()
            station.handle(envelope)


class StationInLine(Station):
    def __init__(
        self, line: Line, system: System, address: str, holder: Machine, step: int
    ) -> None:
        super().__init__(system, address, holder, step)
        self.count = 0
        self._line = line
        self._has_ended = False

    @property
    def received(self) -> int:
        return self.count

    def put(self, envelope: Envelope, promises: Promises | None = None) -> bool:  # noqa: ARG002
        return self._line.put(self, envelope)

    def launch(self) -> None:
        """Whoever puts something here runs it."""

    def handle(self, envelope: Envelope) -> None:
        try:
            self._receive(envelope)
        finally:
            self.handled += self._taken

    def _look(self) -> Envelope | None:
        return self._line.look(self)

    def _take_out(self) -> None:
        self._line.take_out()

    def end(self) -> None:
        self.deaf = self._has_ended = True

    def join(self, timeout: float) -> None:
        self._line.close(timeout)

    @property
    def is_alive(self) -> bool:
        return not self._has_ended or self.handled < self.count

    def give_up(self) -> None:
        """Nobody knows of it."""

    def _hand_on(self, error: BaseException) -> None:
        """Only on the main thread it may be a signal that raised, and not the machine."""
        if not isinstance(error, Exception) and _is_main():
            raise error


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _may_be_interrupted() -> bool:
    """Python raises an interrupt in the main thread; a program with a handler of its own knows."""
    return _is_main() and _signal.getsignal(signal.SIGINT) is signal.default_int_handler
