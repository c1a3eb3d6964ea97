"""The folder of a journal: its names, its lock, and the order in which files come and go.

`snapshot-N` is the state before the first record of `entries-N`. No file is changed once another
goes on. A file that was begun while a core runs is `early` until the one before it is on the disk.
Which of the files count is in `file_sequence`, what stands in them in `restore`.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.frames import framed
from yunikorn_actors.journal.headers import (
    COUNTED,
    EARLY,
    ENTRIES,
    PART,
    SNAPSHOT,
    Begun,
    begun_in,
    bytes_of,
    check_is_file,
)
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.recording.trace_file import OWNER_ONLY


class Folder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._has_made_lock = False

    def take(self) -> int:
        """Make the folder this process's own; a killed one lets go of it."""
        check_is_file(self._lock)
        try:
            if not self.path.is_dir():
                # Only its owner: requests may hold what nobody else is to read.
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sync(self.path.parent)
            self._has_made_lock = not self._lock.exists()
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} cannot be kept there: {error.strerror}: name a folder "
                "that this process may make and write"
            ) from error
        try:
            # Held as long as the process lives: a kill lets go of it.
            _hold(lock, self._lock)
        except OSError as error:
            os.close(lock)
            raise JournalError(
                f"the journal {self.path} belongs to a core that runs: stop that one, or use "
                "another folder"
            ) from error
        return lock

    def leave(self, lock: int) -> None:
        """Let go of a folder that was refused, as it was found."""
        # Refused before anything was written: the folder is as it was found.
        if self._has_made_lock:
            self._lock.unlink(missing_ok=True)
        os.close(lock)

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def begun(self) -> Begun:
        """The last file that was begun for good, as the file `lock` tells."""
        with suppress(FileNotFoundError):
            return begun_in(bytes_of(self._lock))
        return Begun()

    @property
    def has_begun(self) -> bool:
        """Whether a file was ever begun for good: `lock` is empty until then, and never again."""
        with suppress(FileNotFoundError):
            return self._lock.stat().st_size > 0
        return False

    def numbers(self, *kinds: str) -> list[int]:
        """Return the numbers of the files of these kinds, the lowest first."""
        # `Path.glob` would find nothing in a folder that cannot be read, and say nothing.
        names = (it.name.rpartition("-")[::2] for it in self.path.iterdir())
        return sorted(
            int(number)
            # Exactly the names that this package writes: a copy with another name is none.
            for kind, number in names
            if kind in kinds and number.isdecimal() and f"{int(number):08}" == number
        )

    def file(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number:08}"

    def sync(self) -> None:
        """Bring the names of the files to the disk."""
        _sync(self.path)

    @property
    def last_snapshot(self) -> int:
        """Its number; 0 if there is none."""
        return max(self.numbers(SNAPSHOT), default=0)

    def bytes_of_snapshot(self) -> int:
        last = self.last_snapshot
        return self.file(SNAPSHOT, last).stat().st_size if last else 0

    # -- writing

    def create(self, kind: str, number: int) -> int:
        """Return the descriptor of a new file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self.file(kind, number), flags, OWNER_ONLY)
        try:
            # The name too has to survive a power cut: a file without it is lost.
            self.sync()
        except OSError:
            os.close(descriptor)
            self.file(kind, number).unlink()
            raise
        return descriptor

    def drop_parts(self) -> None:
        parts = [self.file(PART, number) for number in self.numbers(PART)]
        for part in parts:
            # All checked before any goes: a folder that is not as expected is left alone.
            check_is_file(part)
        for part in parts:
            part.unlink()

    def adopt(self, number: int) -> None:
        """Give a snapshot its name: from now on it counts."""
        # Atomic: after a kill there is either the part or the snapshot.
        self.file(PART, number).replace(self.file(SNAPSHOT, number))
        self.sync()

    def drop_before(self, number: int) -> None:
        """Remove what is older than this snapshot, which was read, or made and read back."""
        for kind in COUNTED:
            for old in self.numbers(kind):
                if old < number:
                    self.file(kind, old).unlink()

    def settle(self, number: int, journal_id: str) -> None:
        """What comes before this file, and its own first record, are on the disk."""
        lock = os.open(self._lock, os.O_WRONLY | os.O_CLOEXEC)
        try:
            # The witness first: with it the file counts, and its loss would be noticed.
            os.pwrite(lock, framed(encode(Begun(journal_id=journal_id, number=number))), 0)
            os.fsync(lock)
        finally:
            os.close(lock)
        # Renamed last: from here on a file before it that lacks its end is damage and not a power
        # cut.
        self.file(EARLY, number).replace(self.file(ENTRIES, number))
        self.sync()


def write_all(
    descriptor: int, data: bytes, write: Callable[[int, memoryview], int] | None = None
) -> None:
    """Write all of it; a disk that gets full takes a part first."""
    view = memoryview(data)
    while view:
        view = view[(write or os.write)(descriptor, view) :]


def _hold(lock: int, path: Path) -> None:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # A core that was refused may have removed it between the two calls, and a third made another.
    if not os.path.samestat(os.fstat(lock), path.stat()):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _sync(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
