"""The process that makes a snapshot, as the core's process sees it.

In a thread of this process the same work would take the core's time: one interpreter runs one
thread at a time. A snapshot gets its name here, when it is on the disk and was checked; then the
files go that are older than the snapshot it began with. A kill at any moment leaves a journal that
can be read.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder, write_all
from yunikorn_actors.journal.frames import framed
from yunikorn_actors.journal.headers import PART, SNAPSHOT, header_of
from yunikorn_actors.journal.restore import (
    BadSnapshot,
    Reading,
    begun_with,
    read,
)
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.values.garbage import without_collections

CHILD: Final = "yunikorn_actors.journal.compaction"


class Folding:
    """The work on one snapshot, as the process sees it that has the folder."""

    def __init__(self, folder: Folder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._stopping = False
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", CHILD, str(folder.path), str(number)],
            # It ends when nobody holds the other end, however this process ended.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # The module has to be found whatever the embedder did to its path.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._thread = threading.Thread(
            target=self._run, name="yunikorn-actors-journal-snapshot", daemon=True
        )
        # At the limit of threads: the process would work for nobody.
        try:
            self._thread.start()
        except BaseException:
            with self._process as process:
                process.kill()
            raise

    @property
    def is_at_work(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> bool:
        """Return whether it has come to rest in this time: a disk may hold it up."""
        self._stopping = True
        # At any moment: what it has written has no name yet.
        self._process.kill()
        self._thread.join(timeout)
        return not self.is_at_work

    def _run(self) -> None:
        process = self._process
        try:
            with process:
                assert process.stdout is not None
                said = process.stdout.read().decode(errors="replace").strip()
            # Only a process that has checked its own work ends with 0.
            if process.returncode == 0:
                self._adopt()
                return
            self._folder.file(PART, self._number).unlink(missing_ok=True)
        except Exception as error:  # noqa: BLE001 - the edge: it is said below, and tried again later
            said = str(error)
        if not self._stopping:
            last = said.rpartition("\n")[2] or f"it ended with status {process.returncode}"
            logger.warning("no snapshot of the journal was made, its files stay: {}", last)

    def _adopt(self) -> None:
        former = self._folder.last_snapshot
        self._folder.adopt(self._number)
        # The former one was read, and the new one was read back.
        self._folder.drop_before(former)


# The process that makes a snapshot of what is on the disk, as the next core would read it.
#
# It begins no sooner than the files it reads are closed, changes none of them, and checks what it
# has written. It ends with the process that has the folder, however that one ends (ADR 30).


def write_part(folder: Folder, number: int, journal_id: str, read: Reading) -> CoreRestored:
    """Bring the snapshot of a state to the disk, and return what stands in it."""
    with without_collections():
        state = read.truth.as_message()
        header = header_of(SNAPSHOT, number, journal_id, read.place, read.truth.digest())
    try:
        part = folder.create(PART, number)
        try:
            write_all(part, header + framed(encode(state)))
            # On the disk before it is read back: the check is of what a power cut would leave.
            os.fsync(part)
        finally:
            os.close(part)
    except OSError:
        # On a full disk it takes the room that the next attempt needs.
        with suppress(OSError):
            folder.file(PART, number).unlink()
        raise
    return state


def check_part(folder: Folder, number: int) -> None:
    """Make the state again from a snapshot, which says what the state has to be."""
    # Read from the disk and applied, as the next core would: a snapshot that cannot be read must
    # never replace the files it was made from.
    with without_collections():
        begun_with(folder.file(PART, number))


NICE: Final = 5
"""The core has more urgent work."""
STDIN: Final = 0


def fold(path: Path, number: int) -> None:
    """Bring to the disk a snapshot of all before the file with this number, and check it."""
    folder = Folder(path)
    row = row_of(folder, before=number)
    write_part(folder, number, row.journal_id, read(folder, row))
    check_part(folder, number)


def _end_with_the_other() -> None:
    # Not by way of `sys.stdin`: its lock would be held when the interpreter ends.
    # The other end of the pipe is closed when the core's process ends, however it ends.
    while os.read(STDIN, 1):
        pass
    # At once: a thread of this process may be in the middle of writing a part, which counts for
    # nothing.
    os._exit(1)


def main(path: str, number: str) -> None:
    # A terminal and a supervisor tell the whole group; the core's process says when it is over.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    # Before any work, so that it never outlives the core.
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    os.nice(NICE)
    try:
        fold(Path(path), int(number))
    except (OSError, BadSnapshot) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
