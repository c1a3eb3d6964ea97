"""A journal whose files are short, so that each few records begin another one."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from yunikorn_actors.errors import NoReply
from yunikorn_actors.journal import writing
from yunikorn_actors.journal.compaction import fold
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import ENTRIES
from yunikorn_actors.journal.restored_state import Entry
from yunikorn_actors.journal.writing import Journal

_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.002
_SYNC_S: Final = 0.001


class _Inline:
    """Makes a snapshot in this process, as another one makes it: that takes a while to begin."""

    is_at_work = False

    def __init__(self, folder: Folder, number: int) -> None:
        former = folder.last_snapshot
        fold(folder.path, number)
        folder.adopt(number)
        folder.drop_before(former)

    def stop(self, _: float | None) -> bool:
        """It is over."""
        return True


@contextmanager
def _short_files(*, in_process: bool) -> Iterator[None]:
    space = vars(writing)
    others: dict[str, Any] = {"ROTATE_BYTES": 1, "ROTATE_SNAPSHOTS": 0, "SYNC_S": _SYNC_S}
    if in_process:
        others["Folding"] = _Inline
    former = {name: space[name] for name in others}
    try:
        space.update(others)
        yield
    finally:
        space.update(former)


def append_rotating(path: str, entries: Sequence[Entry], *, in_process: bool) -> None:
    """Write them into several files; wait until there is a snapshot of the first of these."""
    folder, half = Folder(path), len(entries) // 2
    with _short_files(in_process=in_process):
        journal = Journal(path)
        for entry in entries[:half]:
            journal.append(entry)
        if half:
            _wait(folder, journal.number)
        for entry in entries[half:]:
            journal.append(entry)
        journal.close()


def _wait(folder: Folder, number: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while folder.last_snapshot <= number or folder.numbers(ENTRIES)[-1] <= number:
        if time.monotonic() > deadline:
            raise NoReply("no snapshot is made of a journal whose file is long enough")
        time.sleep(_POLL_S)
