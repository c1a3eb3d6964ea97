"""Making a snapshot: the state of all that came before a file, on the disk, and read back."""

import os
from contextlib import suppress

from yunikorn_actors.journal.folder import Folder, write_all
from yunikorn_actors.journal.frames import framed
from yunikorn_actors.journal.headers import PART, SNAPSHOT, header_of
from yunikorn_actors.journal.restore import Reading, begun_with, without_collections
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored


def write_part(folder: Folder, number: int, journal_id: str, read: Reading) -> CoreRestored:
    """Bring the snapshot of a state to the disk, and return what stands in it."""
    with without_collections():
        state = read.truth.as_message()
        header = header_of(SNAPSHOT, number, journal_id, read.place, read.truth.digest())
    try:
        part = folder.create(PART, number)
        try:
            write_all(part, header + framed(encode(state)))
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
    with without_collections():
        begun_with(folder.file(PART, number))
