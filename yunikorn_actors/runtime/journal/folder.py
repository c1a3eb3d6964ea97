"""The folder of a journal: snapshots, and files with what came after each of them.

`snapshot-N` is the state before the first record of `entries-N`. A core that starts reads the last
snapshot and the entries after it, writes the next snapshot, and begins the next file: so what was
dropped at a torn end stays dropped, and no file is ever changed again. The files before the last
snapshot but one go.

A record is written before `append` returns, so a process that is killed loses none. A thread brings
it to the disk within 100 ms; this is what a power cut may take. Where a record cannot be written,
the file is cut back to the record before it and nothing more is taken.
"""

import errno
import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.errors import JournalError
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.runtime.journal.frames import framed, frames_in
from yunikorn_actors.runtime.journal.truth import Truth
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.version import VERSION

FORMAT: Final = 1
SYNC_S: Final = 0.05
_MODE: Final = 0o600
"""What was submitted stands in it, names of users and all."""
_REMEDIES: Final = {
    errno.ENOSPC: "make room on that disk",
    errno.ESHUTDOWN: "give the core more time to stop",
}
_ENTRIES: Final = "entries"
_SNAPSHOT: Final = "snapshot"


class Journal:
    def __init__(self, path: str | Path) -> None:
        """Take the folder, and read what is there; it is made if it is missing."""
        self.path = Path(path)
        self.failure: OSError | None = None
        self.restored: CoreRestored | None = None
        """What to go on with; None if this is the first core."""
        self._lock = _taken(self.path)
        self._file = -1
        self._end = 0
        self._writing = threading.Lock()
        self._is_dirty = threading.Event()
        self._closing = False
        self._thread = threading.Thread(
            target=self._sync, name="yunikorn-actors-journal", daemon=True
        )
        try:
            self._go_on()
        except BaseException:
            os.close(self._lock)
            raise
        self._thread.start()

    def _go_on(self) -> None:
        numbers = _numbers(self.path)
        self.number = max(numbers, default=0) + 1
        """Of its file: no other core has had it."""
        if numbers:
            self.restored = _read(self.path).told()
            _write_snapshot(self.path, self.number, self.restored)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(_file(self.path, _ENTRIES, self.number), flags, _MODE)
        self._write(framed(_header(_ENTRIES)))
        os.fsync(self._file)
        _sync_folder(self.path)
        _drop_before(self.path, self.number - 1)

    def append(self, entry: bytes) -> None:
        """Write a record; it survives this process as soon as this returns."""
        with self._writing:
            if self.failure is None:
                try:
                    self._write(framed(entry))
                except OSError as error:
                    self._fail(error)
        if self.failure is not None:
            raise JournalError(self._why(self.failure)) from self.failure
        self._is_dirty.set()

    def close(self) -> None:
        """Bring everything to the disk, and let the folder go."""
        if self._closing:
            return
        self._closing = True
        self._is_dirty.set()
        self._thread.join()
        with self._writing:
            # A stop that ran out of time leaves a handler behind: the number of this file may be
            # another's by the time that it writes.
            self.failure = self.failure or OSError(errno.ESHUTDOWN, "it is closed")
            os.close(self._file)
        os.close(self._lock)

    def forget(self) -> None:
        """This is a copy in a forked process: the folder is the parent's."""
        self._closing = True
        os.close(self._file)
        os.close(self._lock)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self._end += len(data)

    def _fail(self, error: OSError) -> None:
        # A part of the record may be there: the next core would take it for a torn one.
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
        self.failure = error

    def _why(self, error: OSError) -> str:
        remedy = _REMEDIES.get(error.errno or 0, "see to that disk")
        return (
            f"the journal {self.path} cannot be written: {error.strerror}; nothing more is taken, "
            f"and all that was announced is kept: {remedy}, and start again"
        )

    def _sync(self) -> None:
        is_last = False
        while not is_last and self.failure is None:
            self._is_dirty.wait()
            self._is_dirty.clear()
            # Read first: what was written before the end was asked for is brought to the disk.
            is_last = self._closing
            try:
                os.fdatasync(self._file)
            except OSError as error:
                self.failure = error
            if not is_last:
                time.sleep(SYNC_S)


def _taken(path: Path) -> int:
    """Make the folder this process's own; a killed one lets go of it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise JournalError(
            f"the journal {path} belongs to a core that runs: stop that one, or use another folder"
        ) from error
    return lock


def _file(path: Path, kind: str, number: int) -> Path:
    return path / f"{kind}-{number:08}"


def _numbers(path: Path, kind: str = "*") -> list[int]:
    """Return the numbers of the files of a kind, or of all, the lowest first."""
    names = [it.name.rpartition("-")[2] for it in path.glob(f"{kind}-*")]
    return sorted(int(name) for name in names if name.isdecimal())


def _header(kind: str) -> bytes:
    written_by = {"name": "yunikorn-actors", "version": VERSION}
    return encode({"journal": kind, "format": FORMAT, "package": written_by})


def _read(path: Path) -> Truth:
    """Read the last snapshot and all that came after it."""
    truth = Truth()
    first = max(_numbers(path, _SNAPSHOT), default=0)
    if first:
        snapshot = _file(path, _SNAPSHOT, first)
        [payload] = _payloads(snapshot, may_be_torn=False)
        truth.begin_with(msgspec.msgpack.decode(payload, type=CoreRestored))
    for number in _numbers(path, _ENTRIES):
        if number >= first:
            for payload in _payloads(_file(path, _ENTRIES, number), may_be_torn=True):
                truth.take(payload)
    return truth


def _payloads(file: Path, *, may_be_torn: bool) -> list[memoryview]:
    frames = list(frames_in(file, may_be_torn=may_be_torn))
    end = frames[-1].end if frames else 0
    torn = file.stat().st_size - end
    if torn:
        logger.warning(
            "{}: the last record was not written whole, {} bytes are dropped", file, torn
        )
    if not frames and may_be_torn:
        return []
    header: dict[str, Any] = msgspec.msgpack.decode(frames[0].payload) if frames else {}
    if header.get("format") != FORMAT:
        raise JournalError(
            f"{file} has format {header.get('format')}, this version reads {FORMAT}: start the "
            "version that wrote it"
        )
    return [frame.payload for frame in frames[1:]]


def _write_snapshot(path: Path, number: int, message: CoreRestored) -> None:
    """Write it beside the others, and give it its name when it is whole."""
    part = path / "part"
    number_of_file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
    with os.fdopen(number_of_file, "wb") as file:
        file.write(framed(_header(_SNAPSHOT)) + framed(encode(message)))
        file.flush()
        os.fsync(file.fileno())
    part.replace(_file(path, _SNAPSHOT, number))
    _sync_folder(path)


def _drop_before(path: Path, number: int) -> None:
    for kind in (_ENTRIES, _SNAPSHOT):
        for old in _numbers(path, kind):
            if old < number:
                _file(path, kind, old).unlink()


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
