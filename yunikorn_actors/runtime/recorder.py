"""Writes a trace while the core runs: header, one record for each delivered message, footer.

Records are gathered where messages are handled and written by a thread of the recorder, so that no
handler ever waits for a disk. What is gathered is written at once after a pause and every half
second otherwise: of a process that is killed no more than that is missing, and the rest can be read
up to its last whole record. A disk that is full ends the recording, not the core; the failure is
kept.
"""

import atexit
import errno
import os
import threading
from io import FileIO
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import FORMAT_VERSION, encode, record_of
from yunikorn_actors.runtime.logs import alarm, logger

GATHER_S: Final = 0.5
CLOSE_TIMEOUT_S: Final = 30.0


class Recorder:
    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self.failure: OSError | None = None
        self._file = _opened(path)
        self._changed = threading.Condition()
        """Guards what is gathered and the failure, between the handlers and the writer."""
        self._gathered = [encode({"record": "header", "format": FORMAT_VERSION, **header})]
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="yunikorn-actors-recorder", daemon=True
        )
        self._thread.start()
        # A program that ends without closing: the interpreter would cut a daemon thread off.
        atexit.register(self._end, CLOSE_TIMEOUT_S)

    def add(self, delivery: Delivery) -> None:
        self._gather(encode(record_of(delivery)))

    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Write what is left and end; a disk that takes longer than this is left to itself."""
        self._gather(encode({"record": "footer", **footer}))
        self._end(timeout)

    def _gather(self, data: bytes) -> None:
        with self._changed:
            if self.failure is None and not self._closing.is_set():
                self._gathered.append(data)
                self._changed.notify()

    def _end(self, timeout: float) -> None:
        atexit.unregister(self._end)
        with self._changed:
            self._closing.set()
            self._changed.notify()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.failure = OSError(
                errno.ETIMEDOUT, "the disk did not take the trace in time", str(self.path)
            )

    # -- on its own thread

    def _run(self) -> None:
        try:
            with self._file:
                while data := self._next():
                    self._write_all(data)
                    # A pause that the end cuts short: each write takes all that came in it.
                    self._closing.wait(GATHER_S)
        except OSError as error:
            self._fail(error)

    def _next(self) -> bytes:
        """Wait until something was gathered; nothing means the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._gathered or self._closing.is_set())
            # Taken away under the lock, written without it: no handler waits for the disk.
            gathered, self._gathered = self._gathered, []
        return b"".join(gathered)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def _fail(self, error: OSError) -> None:
        with self._changed:
            self.failure = error
            # What comes from now on is not kept: there is no disk to take it.
            self._gathered = []
        text = f"the trace {self.path} ends here, the core goes on: {error}"
        if not logger.error("{}", text):
            alarm(text)


def _opened(path: Path) -> FileIO:
    try:
        return path.open("wb", buffering=0)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the trace cannot be written: {os.strerror(error.errno or 0)}; choose a file in a "
            "directory that exists and may be written to",
            str(path),
        ) from error
