"""The file of a recording: plain or compressed, in one piece or in segments.

A segment begins with the header, so it can be read by itself. The newest has the name that was
asked for; those before it have `.1`, `.2` and so on behind it, the oldest the highest number.
"""

import os
import stat
import zlib
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final

OWNER_ONLY: Final = 0o600
"""What was submitted stands in it, names of users and all."""


class TraceFile:
    def __init__(self, path: Path, *, compress: bool, rotate_bytes: int, keep: int) -> None:
        self._path = path
        self._compress = compress
        self._rotate_bytes = rotate_bytes
        self._keep = keep
        self._size = 0
        self._file = _opened(path)
        self._pack = zlib.compressobj(level=1)

    @property
    def is_full(self) -> bool:
        """Whether what comes next belongs into the next segment."""
        return 0 < self._rotate_bytes <= self._size

    def write(self, data: bytes) -> None:
        """Write whole records; they can be read from now on, whatever becomes of this process."""
        if self._compress:
            # After a full flush a reader can unpack all that is there.
            data = self._pack.compress(data) + self._pack.flush(zlib.Z_FULL_FLUSH)
        view = memoryview(data)
        while view:
            # A pipe may take only a part at a time.
            view = view[self._file.write(view) :]
        self._size += len(data)

    def rotate(self) -> None:
        """Go on in a new file under the same name; the oldest of too many goes."""
        self.finish()
        # From the oldest on, so that none is overwritten before it has moved.
        for number in range(self._keep, 0, -1):
            former = self._path if number == 1 else segment(self._path, number - 1)
            with suppress(FileNotFoundError):
                former.replace(segment(self._path, number))
        self._file, self._size = _opened(self._path), 0
        self._pack = zlib.compressobj(level=1)

    def finish(self) -> None:
        """Write the end of what is compressed, and close."""
        if self._compress:
            self._file.write(self._pack.flush())
        self.close()

    def close(self) -> None:
        self._file.close()


def segment(path: Path, number: int) -> Path:
    """Name a segment that was written before; 1 is the last of these."""
    return path.with_name(f"{path.name}.{number}")


def _opened(path: Path) -> FileIO:
    """Open a file for writing; a pipe that nobody reads must not hold the start of a core up."""
    try:
        # Opened without waiting: nobody may read from a pipe.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NONBLOCK
        number = os.open(path, flags, OWNER_ONLY)
    except OSError as error:
        remedy = "choose a file in a directory that exists and may be written to"
        if path.exists() and stat.S_ISFIFO(path.stat().st_mode):
            remedy = "begin to read from the pipe first"
        reason = os.strerror(error.errno or 0)
        text = f"the trace cannot be written: {reason}; {remedy}"
        raise OSError(error.errno, text, str(path)) from error
    # From here on writing waits, as a disk may.
    os.set_blocking(number, True)
    return FileIO(number, "wb")
