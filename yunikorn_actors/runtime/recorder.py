"""Writes a trace while the core runs: header, one record for each delivered message, footer.

Records are appended as they happen, so a trace of a killed process can be read up to its last
whole record. A disk that is full ends the recording, not the core; the failure is kept.
"""

import threading
from pathlib import Path
from typing import Any, BinaryIO

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import FORMAT_VERSION, encode, record_of


class Recorder:
    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self.failure: OSError | None = None
        self._lock = threading.Lock()
        self._file: BinaryIO | None = path.open("wb")
        self._write(encode({"record": "header", "format": FORMAT_VERSION, **header}))

    def add(self, delivery: Delivery) -> None:
        self._write(encode(record_of(delivery)))

    def close(self, footer: dict[str, Any]) -> None:
        self._write(encode({"record": "footer", **footer}))
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            self._end(file)

    def _write(self, data: bytes) -> None:
        with self._lock:
            file = self._file
            if file is None:
                return
            try:
                file.write(data)
            except OSError as error:
                self.failure, self._file = error, None
        if self.failure is not None:
            self._end(file)

    def _end(self, file: BinaryIO) -> None:
        """Closing flushes, which fails on a full disk as well."""
        try:
            file.close()
        except OSError as error:
            self.failure = self.failure or error
