"""Calls into the program that nobody waits for: each has a thread as soon as it comes.

A done callback may block or raise. So none runs on a thread of the core, and none waits for another
one: there is always one thread that is ready for the next call, and it appoints its successor
before it makes a call. Threads that have had nothing to do for a while end.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Final

from yunikorn_actors.recording.logs import alarm

IDLE_S: Final = 5.0

Call = Callable[[], object]


class Callers:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: deque[Call] = deque()
        self._ready = 0
        """Threads that are about to take a call."""
        self._is_closed = False

    def call(self, call: Call) -> None:
        """Have the call made; callable from anywhere, under any lock."""
        with self._changed:
            self._calls.append(call)
            self._changed.notify()
            needed = self._appoint()
        if needed:
            self._start()

    def close(self) -> None:
        """Let threads end that have nothing to do; calls that come later are made all the same."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _appoint(self) -> bool:
        """Have what waits taken by a thread; return whether one must be started."""
        if self._ready or not self._calls:
            return False
        self._ready = 1
        return True

    def _start(self) -> None:
        threading.Thread(target=self._work, name="yunikorn-actors-done", daemon=True).start()

    def _work(self) -> None:
        while (call := self._take()) is not None:
            _make(call)
            with self._changed:
                self._ready += 1

    def _take(self) -> Call | None:
        with self._changed:
            while not self._calls:
                # One that is ready beside this one is enough.
                is_spare = self._ready > 1 or self._is_closed
                has_news = not is_spare and self._changed.wait(IDLE_S)
                if not has_news and not self._calls:
                    self._ready -= 1
                    return None
            call = self._calls.popleft()
            self._ready -= 1
            needed = self._appoint()
        if needed:
            self._start()
        return call


def _make(call: Call) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - the edge: it is the program's, and it is reported
        told = "".join(traceback.format_exception(error)).rstrip()
        alarm(f"a done callback raised\n{told}")
