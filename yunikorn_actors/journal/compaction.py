"""A process that makes a snapshot of what is on the disk, as the next core would read it.

It begins no sooner than the files it reads are closed, changes none of them, and checks what it has
written. It ends with the process that has the folder, however that one ends.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.restore import BadSnapshot, read
from yunikorn_actors.journal.snapshots import check_part, write_part

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
    while os.read(STDIN, 1):
        pass
    os._exit(1)


def main(path: str, number: str) -> None:
    # A terminal and a supervisor tell the whole group; the core's process says when it is over.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    os.nice(NICE)
    try:
        fold(Path(path), int(number))
    except (OSError, BadSnapshot) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
