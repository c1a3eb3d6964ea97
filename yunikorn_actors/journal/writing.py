"""Writing the journal of a core that runs; old files give way to a snapshot.

A record is written before `append` returns, so a process that is killed loses none. A thread brings
it to the disk within 100 ms; this is what a power cut may take. When a record cannot be written,
the file is cut back to the record before it and nothing more is taken.

When a file is long enough, the same thread begins the next one, and another process makes a
snapshot of what came before it (`compaction`). The core waits for neither.
"""

import errno
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.compaction import Folding, write_part
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder, write_all
from yunikorn_actors.journal.frames import check_of, framed
from yunikorn_actors.journal.headers import (
    COUNTED,
    EARLY,
    ENTRIES,
    EndOfFile,
    header_of,
)
from yunikorn_actors.journal.restore import policies_of, read
from yunikorn_actors.journal.restored_state import APPLICATION_BYTES_MAX, Entry
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.values.masking import masked_repr

# One write to the disk for all records of that time: a sync for each would cap the core at the
# speed of the disk.
SYNC_S: Final = 0.05
ROTATE_BYTES: Final = 64 * 2**20
"""A file is at least so long before another one is begun."""
ROTATE_SNAPSHOTS: Final = 2
"""And at least this many times as long as the last snapshot: snapshots cost in proportion then."""
_REMEDIES: Final = {
    errno.ENOSPC: "make room on that disk",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
    errno.ESHUTDOWN: "give the core more time to stop",
}


class Journal:
    def __init__(self, path: str | Path, policies: Policies = NO_POLICIES) -> None:
        """Take the folder, and read what is there; it is made if it is missing.

        Raises MissingPolicy where what is there was decided by one that is not among `policies`.
        """
        self._policies = policies
        self.failure: OSError | None = None
        self.restored: CoreRestored | None = None
        """What to go on with; None if this is the first core."""
        self._folder = Folder(path)
        # Before anything is read: another core that still runs could write behind it.
        self._lock = self._folder.take()
        self._file = -1
        self._end = 0
        self._check = 0
        """The checksum of the last record of its file."""
        # Held for one write, and for the change of files.
        self._writing = threading.Lock()
        self._is_dirty = threading.Event()
        self._closing = False
        self._ending = threading.Lock()
        """Guards which thread lets go of the files: the last that is at work on them."""
        self._has_synced = False
        """The thread has done its last."""
        self._is_left = False
        """Nobody waits for the thread any more."""
        self._is_settled = True
        """Whether what comes before its file is on the disk."""
        self._tried_at = 0
        """The length of its file when no other could be begun."""
        self._folding: Folding | None = None
        self._thread = threading.Thread(
            target=self._sync, name="yunikorn-actors-journal", daemon=True
        )
        try:
            self._go_on()
            self._thread.start()
        except BaseException as error:
            self._folder.leave(self._lock)
            if self._file >= 0:
                os.close(self._file)
            # Faults of the journal say their remedy already.
            if isinstance(error, OSError) and not isinstance(error, JournalError):
                raise JournalError(self._why(error)) from error
            raise

    def _go_on(self) -> None:
        folder = self._folder
        try:
            row = row_of(folder)
            made = read(folder, row)
        except JournalError:
            raise
        except OSError as error:
            raise JournalError(
                f"the journal {folder.path} cannot be read: {error.strerror}: let user "
                f"{os.geteuid()} list and read it (chown, chmod), or name another folder"
            ) from error
        # Refused before anything is changed: with other policies the state would be another one.
        self._policies.compare(policies_of(row, made.truth), f"journal {folder.path}")
        # Nothing was changed up to here: what cannot be read stays as it is.
        folder.drop_parts()
        self._id = row.journal_id or os.urandom(16).hex()
        self.number = max(folder.begun.number, *folder.numbers(*COUNTED), 0) + 1
        """Of its first file: no other core has had it."""
        self._current = self.number
        self._file = folder.create(EARLY, self.number)
        try:
            # The header is on the disk before the file counts.
            self._write(self._header(self.number, made.place))
            os.fsync(self._file)
            if made.place is not None:
                # Ended applications are the only part that would grow without a bound.
                made.truth.forget(APPLICATION_BYTES_MAX)
                self.restored = write_part(folder, self.number, self._id, made)
        except OSError:
            # Nothing was announced yet, and the disk may be full.
            with suppress(OSError):
                folder.file(EARLY, self.number).unlink()
            raise
        if made.place is not None:
            # In this order: the snapshot counts, then the file that goes on from it, then older
            # ones may go.
            folder.adopt(self.number)
        folder.settle(self.number, self._id)
        # The snapshot that was read is good. The new one was not read back yet.
        folder.drop_before(row.snapshot)

    def _header(self, number: int, after: EndOfFile | None) -> bytes:
        return header_of(ENTRIES, number, self._id, after, policies=self._policies.digests)

    def append(self, entry: Entry) -> None:
        """Write a record; it survives this process as soon as this returns."""
        # Under the lock: the thread may be about to put the next file in the place of this one, and
        # each record has to follow the last one of its own file.
        with self._writing:
            if self.failure is None:
                self._append(entry)
        if self.failure is not None:
            raise JournalError(self._why(self.failure)) from self.failure
        # Set behind the write: the thread syncs everything that stood there when it woke.
        self._is_dirty.set()

    def _append(self, entry: Entry) -> None:
        try:
            # Named by the one before it, so a removed record is found.
            self._write(framed(encode(replace(entry, follows=self._check))))
        except OSError as error:
            self._fail(error)

    def close(self, timeout: float | None = None) -> None:
        """Bring everything to the disk, and let the folder go.

        A disk may not answer. After `timeout` seconds the rest is left to the thread, which keeps
        the folder for as long as the disk holds it up; nothing more is taken.
        """
        if self._closing:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        self._closing = True
        self._is_dirty.set()
        self._thread.join(_left(deadline))
        # Together: either the thread has done its last, or it lets go of the files itself, later.
        with self._ending:
            self._is_left = not self._has_synced
        if self._is_left:
            self.failure = self.failure or OSError(errno.ESHUTDOWN, "its disk does not answer")
            logger.warning(
                "the disk of the journal {} has not answered in {:g} s: what was written last may "
                "not be on it",
                self._folder.path,
                timeout,
            )
        else:
            self._let_go(deadline)

    def _let_go(self, deadline: float | None = None) -> None:
        """Called when the thread has done its last; who is in the middle of writing is waited for.

        After the deadline files stay open: a number that is closed may be another file's.
        """
        seconds = _left(deadline)
        # First the other process: it reads files of this folder.
        if self._folding is not None and not self._folding.stop(seconds):
            return
        if not self._writing.acquire(timeout=-1 if seconds is None else seconds):
            return
        try:
            # Nothing more is taken: a late handler must not write under a number that is another
            # file's.
            self.failure = self.failure or OSError(errno.ESHUTDOWN, "it is closed")
            for descriptor in (self._file, self._lock):
                with suppress(OSError):
                    os.close(descriptor)
        finally:
            self._writing.release()

    def forget(self) -> None:
        """This is a copy in a forked process: the folder is the parent's."""
        self._closing = True
        # Only the descriptors of this copy; the lock of the parent stays held.
        os.close(self._file)
        os.close(self._lock)

    def _write(self, data: bytes) -> None:
        write_all(self._file, data)
        self._end += len(data)
        self._check = check_of(data)

    def _fail(self, error: OSError) -> None:
        # A part of the record may be there: the next core would take it for a torn one.
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
        self.failure = error

    def _why(self, error: OSError) -> str:
        remedy = _REMEDIES.get(error.errno or 0, "see to that disk")
        return (
            f"the journal {self._folder.path} cannot be written: {error.strerror}; nothing more is "
            f"taken, and all that was announced is kept: {remedy}, and start again"
        )

    # -- the thread

    def _sync(self) -> None:
        try:
            self._sync_until_closed()
        except Exception as error:  # noqa: BLE001 - the edge: nothing would be brought to the disk
            fault = error if isinstance(error, OSError) else None
            self.failure = fault or OSError(errno.EIO, masked_repr(error))
        # Under `_ending`, so exactly one of the two threads lets go.
        with self._ending:
            self._has_synced = True
        if self._is_left:
            self._let_go()

    def _sync_until_closed(self) -> None:
        is_last = False
        while not is_last and self.failure is None:
            self._is_dirty.wait()
            self._is_dirty.clear()
            # Read first: what was written before the end was asked for is brought to the disk.
            is_last = self._closing
            os.fdatasync(self._file)
            if not is_last:
                # Never at the end: a file that is begun then would have nothing in it.
                if self._is_long_enough():
                    self._rotate()
                time.sleep(SYNC_S)
        self._write_end()

    def _write_end(self) -> None:
        with self._writing:
            if self.failure is None:
                # Without it the next core could not tell a file that lost its end from a whole one.
                self._append(Entry(at_ns=time.time_ns(), ended=True))
                with suppress(OSError):
                    os.fdatasync(self._file)
            # A stop that ran out of time leaves a handler behind: the number of this file may be
            # another's by the time that it writes.
            self.failure = self.failure or OSError(errno.ESHUTDOWN, "it is closed")

    # Also not while a snapshot is being made: the next one begins where that ends.
    def _is_long_enough(self) -> bool:
        grown = self._end - self._tried_at
        if grown < ROTATE_BYTES or (self._folding is not None and self._folding.is_at_work):
            return False
        return grown >= ROTATE_SNAPSHOTS * self._folder.bytes_of_snapshot()

    def _rotate(self) -> None:
        """Go on in the next file, and have a snapshot made; where that fails all goes on as it is.

        Context waits for no disk: what it writes into the next file counts once the former one is
        on the disk, and is early until then.
        """
        # The former file may not have its final name yet, if that failed the last time.
        try:
            self._settle()
            former = self._begin()
        except OSError as error:
            self._tried_at = self._end
            logger.warning("no file of the journal could be begun, the last one grows: {}", error)
            return
        self._tried_at = 0
        try:
            os.fdatasync(former)
            # Its first record, too: a snapshot beside an empty file would say that some was lost.
            os.fdatasync(self._file)
        finally:
            os.close(former)
        try:
            # Only now is the former file whole for good, so the new one may lose the name `early`.
            self._settle()
            self._folding = Folding(self._folder, self._current)
        except (OSError, RuntimeError) as error:
            # Processes and threads may be at their limit, which says nothing of the disk.
            logger.warning("no snapshot of the journal could be begun: {}", error)

    def _begin(self) -> int:
        """Return the file that is left; nobody writes into it any more."""
        folder = self._folder
        # Above every number that was ever used in this folder.
        number = max(self._current, *folder.numbers(*COUNTED)) + 1
        created = folder.create(EARLY, number)
        # Made outside of the lock, as that takes a disk its time; only the change of files keeps
        # Context waiting.
        with self._writing:
            former, end, check = self._file, self._end, self._check
            place = EndOfFile(number=self._current, bytes=end, check=check)
            # From the next record on everything goes to the new file.
            self._file, self._end = created, 0
            try:
                self._write(self._header(number, place))
            except OSError:
                # Back to the former one, as if nothing had been tried.
                self._file, self._end, self._check = former, end, check
                os.close(created)
                folder.file(EARLY, number).unlink()
                raise
            self._current, self._is_settled = number, False
        return former

    def _settle(self) -> None:
        if not self._is_settled:
            self._folder.settle(self._current, self._id)
            self._is_settled = True


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
