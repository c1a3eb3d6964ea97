"""Interrupts (Ctrl-C) that wait for the end of what must not be done by half.

Python raises them in the main thread, between any two steps. A program that has a handler of its
own for SIGINT decides for itself when it is interrupted.
"""

import _signal  # type: ignore[import-not-found]
import signal
import threading
from types import TracebackType
from typing import Self


class DeferredInterrupt:
    """In a `with`: an interrupt that comes meanwhile is raised at its end."""

    has_come = False
    _is_deferred = False

    def __enter__(self) -> Self:
        # As `signal` has them they make enumerations of what they are given: 15 times the cost, and
        # this is paid at every call of the main thread.
        if _signal.getsignal(signal.SIGINT) is signal.default_int_handler and is_main():
            self._is_deferred = True
            _signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        self.has_come = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_deferred:
            return
        # A hook of the embedder may have set another one.
        if _signal.getsignal(signal.SIGINT) == self._note:
            _signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.has_come:
            raise KeyboardInterrupt


def is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident
