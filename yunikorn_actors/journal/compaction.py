"""The process that makes a snapshot of what is on the disk, as the next core would read it.

It begins no sooner than the files it reads are closed, changes none of them, and checks what it has
written. It ends with the process that has the folder, however that one ends (ADR 30).
"""

import os
import signal
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
from yunikorn_actors.values.garbage import without_collections


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
