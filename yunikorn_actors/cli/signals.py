"""What the main thread of a service waits for: signals, and the failure of the core."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from yunikorn_actors.errors import CoreFailed

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
WANTING: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What they want is done, and the service goes on; a process that does not handle them ends."""
WAKES: Final = 4096
"""So many are taken together: signals that come faster are one."""


class Signals:
    """A pipe wakes the main thread.

    Of several signals at once the kernel gives some to other threads, where none interrupts what
    this one waits for; but on whichever thread it arrives, it is written to the pipe.
    """

    def __init__(self) -> None:
        self.failure: CoreFailed | None = None
        self._is_over = False
        self._wanted: set[int] = set()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    @contextmanager
    def handled(self, numbers: Iterable[signal.Signals]) -> Iterator[None]:
        """Handle these signals here, on the main thread."""
        handlers = {it: signal.signal(it, self._signalled) for it in numbers}
        former = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(former)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, _: object) -> None:
        self._is_over |= number in ENDING
        self._wanted.add(number)

    def core_failed(self, failure: CoreFailed) -> None:
        self.failure = failure
        # Where the pipe is full it wakes as well.
        with suppress(BlockingIOError):
            os.write(self._writing, b".")

    def next(self) -> frozenset[int] | None:
        """Wait; return the signals that want something, None where the service is to end."""
        os.read(self._reading, WAKES)
        if self._is_over or self.failure is not None:
            return None
        wanted, self._wanted = self._wanted, set()
        return frozenset(wanted)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)
