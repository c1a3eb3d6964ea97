"""The sequence of files that make the state: a snapshot, and the files with entries behind it.

Each file says in its header behind which place of which other it goes on, so the sequence is found
from its end. What stands behind such a place was dropped, and stays so.

Files that were lost at the end leave the beginning of what was recorded: it is read, and a line in
the log says what is missing. Files that do not hold together are refused. A file that was begun
while a core runs is early until the one before it is on the disk: when that one lacks its end after
a power cut, the early one records what followed the lost part, and is left out too.
"""

from pathlib import Path
from typing import Final, NamedTuple

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, frames_in
from yunikorn_actors.journal.headers import (
    COUNTED,
    EARLY,
    ENTRIES,
    SNAPSHOT,
    EndOfFile,
    Header,
    bytes_of,
    first_header,
)
from yunikorn_actors.recording.logs import logger

ANEW: Final = (
    "move the folder away: the core then begins anew, and learns from the resource managers what "
    "runs"
)

RESTORE: Final = "restore it from a copy"


class Link(NamedTuple):
    """A file with entries, and where its whole records end."""

    number: int
    path: Path
    end: EndOfFile | None
    """None in the last one, which may end with a record that was not written whole."""


class Row(NamedTuple):
    """What makes the state: a snapshot, if its number is not 0, and the files after it."""

    snapshot: int
    links: list[Link]
    journal_id: str
    """Empty if no file names one."""


def row_of(folder: Folder, before: int | None = None) -> Row:
    """Find the files that count: all of them, or those before the one with this number."""
    return _Files(folder).row(before)


class _Files:
    """What the first records of all files say."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._first = folder.last_snapshot
        self._paths: dict[int, Path] = {}
        """Of the files with entries."""
        for kind in (ENTRIES, EARLY):
            for number in folder.numbers(kind):
                # Renamed by hand, or copied: reading either would be a guess.
                if number in self._paths:
                    raise JournalError(
                        f"{self._paths[number]} and {folder.file(kind, number)} are the same file "
                        f"twice (byte 0): move {folder.file(kind, number)} away"
                    )
                self._paths[number] = folder.file(kind, number)
        self._headers: dict[Path, Header | None] = {}
        self._damaged: dict[Path, Damaged] = {}
        for kind in COUNTED:
            for number in folder.numbers(kind):
                self._look_at(folder.file(kind, number), number)
        self._id = self._id_of_all()

    # -- each file by itself, and whether they are of one journal

    def _look_at(self, path: Path, number: int) -> None:
        try:
            header = self._headers[path] = first_header(path)
        except Damaged as damaged:
            self._headers[path], self._damaged[path] = None, damaged
            return
        if header is None:
            return
        # The header names the kind too, so a file under a wrong name is found.
        kind = SNAPSHOT if header.journal == SNAPSHOT else ENTRIES
        is_at_home = (path.name.startswith(SNAPSHOT)) == (kind == SNAPSHOT)
        if is_at_home and header.number in (0, number):
            return
        own = self._folder.file(kind, header.number or number)
        remedy = f"move it away, and restore {path} from a copy if there was one"
        if not own.exists() and header.number:
            remedy = f"give it its name back (mv {path} {own})"
        raise JournalError(f"{path} was written as {own.name} (byte 0): {remedy}")

    def _id_of_all(self) -> str:
        named = {path: it.journal_id for path, it in self._headers.items() if it and it.journal_id}
        ids = [*named.values()]
        # The witness in `lock` knows best; without it the id that most files have counts.
        witness = self._folder.begun.journal_id
        own = witness or max(ids, key=ids.count, default="")
        foreign = [str(path) for path, it in named.items() if it != own]
        if foreign:
            lock = self._folder.path / "lock"
            is_lock_alone = len(foreign) == len(named) and len({*ids}) == 1
            other = f"; or, if these files belong together, remove {lock}" if is_lock_alone else ""
            raise JournalError(
                f"{foreign[0]} belongs to another journal than the rest of this folder (byte 0): "
                f"move {' and '.join(foreign)} away, and restore the file of that name from a copy "
                f"if there was one{other}"
            )
        return own

    # -- the row

    def row(self, before: int | None) -> Row:
        number = self._last() if before is None else before
        links: list[Link] = []
        end: EndOfFile | None = None
        # From the end: only there is known how far the file before it counts.
        while number is not None:
            header = self._header(number, end)
            if number != before:
                links.append(Link(number, self._paths[number], end))
            after = header.after
            if number == self._first:
                # Its first file goes on where the snapshot ends, or one of the two is of another
                # journal.
                self._compare_with_snapshot(number, after)
                break
            if after is None or self._is_where_the_snapshot_ends(after):
                break
            # It would go round: a file cannot follow a later one.
            if after.number >= number:
                raise JournalError(
                    f"{self._paths[number]} goes on from {after.number}, a later file (byte 0): it "
                    "does not have its own name: give it that back, or restore it from a copy"
                )
            number, end = after.number, after
            if not end.bytes:
                raise JournalError(
                    f"{self._folder.file(SNAPSHOT, number)} is missing (byte 0): restore it from a "
                    f"copy; or {ANEW}"
                )
        if before is None:
            self._say_what_is_missing(links[0].number if links else self._first)
        # Found from the end, read from the beginning.
        return Row(self._first, links[::-1], self._id)

    def _header(self, number: int, end: EndOfFile | None) -> Header:
        if number not in self._paths:
            raise self._refused(number, "is missing", 0)
        path = self._paths[number]
        if path in self._damaged:
            raise self._refused(number, str(self._damaged[path]), 0)
        header = self._headers[path]
        if header is None:
            wanted = "" if end is None else f" of {end.bytes}"
            raise self._refused(number, f"is damaged at byte 0{wanted}", 0)
        return header

    def _compare_with_snapshot(self, number: int, after: EndOfFile | None) -> None:
        snapshot = self._folder.file(SNAPSHOT, number)
        header = self._headers.get(snapshot)
        if header is None or not header.is_chained or header.after == after:
            return
        raise self._refused(number, f"does not go on where {snapshot} ends (byte 0)", 0)

    def _is_where_the_snapshot_ends(self, after: EndOfFile) -> bool:
        """Whether the file with the number of the snapshot was lost before this one was begun."""
        snapshot = self._headers.get(self._folder.file(SNAPSHOT, self._first))
        if snapshot is not None and snapshot.after is not None:
            return snapshot.after == after
        return after == EndOfFile(number=self._first, bytes=0)

    def _last(self) -> int | None:
        # The highest number that was begun for good; an early one may not count.
        for number in sorted(self._paths, reverse=True):
            if number >= self._first and self._counts(number):
                return number
        if self._first:
            return None
        if self._folder.has_begun or any(it.name.startswith(ENTRIES) for it in self._headers):
            lost = [str(it) for it in self._headers] or [str(self._folder.file(ENTRIES, 1))]
            state = "is empty" if self._headers else "is missing"
            raise JournalError(
                f"{lost[0]} {state} (byte 0), and nothing else is left of this journal: restore it "
                f"from a copy; or {ANEW}"
            )
        return None

    def _counts(self, number: int) -> bool:
        """Whether this file may be the last one: it was begun, and the one before it is whole."""
        path = self._paths[number]
        header = self._headers[path]
        if header is None:
            return path in self._damaged
        is_early, after = path.name.startswith(EARLY), header.after
        # Without the name of an early file it was settled: then the one before it is on the disk.
        if not is_early or after is None or after.number not in self._paths or not after.bytes:
            return True
        former = self._paths[after.number]
        # Read as a whole: its length alone says nothing of zeros at its end.
        if _is_whole(former, after.bytes):
            return True
        logger.warning(
            "{} lost its end (byte {}), so {}, which goes on from there, is dropped too",
            former,
            former.stat().st_size,
            path,
        )
        return False

    def _say_what_is_missing(self, last: int) -> None:
        newest = max(self._folder.begun.number, self._first, *self._paths, 0)
        # From the first file behind what was read.
        start = last if last == self._first else last + 1
        for number in range(max(1, start), newest + 1):
            path = self._paths.get(number, self._folder.file(ENTRIES, number))
            if number in self._paths and (self._headers[path] or path.name.startswith(EARLY)):
                # It is read; or it was begun and lost before anything that it tells was announced.
                continue
            state = "is empty" if number in self._paths else "is missing"
            logger.warning(
                "{} {}: what it told is lost from byte 0 on, and the core goes on from what was "
                "recorded before it",
                path,
                state,
            )
        if self._has_no_witness():
            logger.warning(
                "{} does not say which file was the last one: nobody knows whether newer files are "
                "missing",
                self._folder.path / "lock",
            )

    def _has_no_witness(self) -> bool:
        chained = any(it is not None and it.is_chained for it in self._headers.values())
        return chained and not self._folder.begun.number

    def _refused(self, number: int, what: str, place: int) -> JournalError:
        path = self._paths.get(number, self._folder.file(ENTRIES, number))
        return refused(self._folder, path, number, what, place)


def refused(
    folder: Folder, path: Path, number: int, what: str, place: int, remedy: str = RESTORE
) -> JournalError:
    """Say what is wrong with a file with entries, and how to go on without what it holds."""
    where = "" if "byte" in what else f" (byte {place})"
    way_out = _way_out(folder, path, number, place)
    return JournalError(f"{path} {what}{where}: {remedy}; or {way_out}")


def _way_out(folder: Folder, path: Path, number: int, place: int) -> str:
    later = [
        str(folder.file(kind, it)) for kind in COUNTED for it in folder.numbers(kind) if it > number
    ]
    first = folder.last_snapshot
    is_first = not any(first <= it < number for it in folder.numbers(ENTRIES, EARLY))
    if not place and is_first and number != first:
        return ANEW
    acts = [f"cut it there (truncate -s {place} {path})"] if place else []
    away = later if place or not path.exists() else [str(path), *later]
    if away:
        acts.append(f"move {' and '.join(away)} away")
    return f"{' and '.join(acts)}, which gives up what was decided afterwards"


def _is_whole(path: Path, end: int) -> bool:
    try:
        return bool(sum(1 for _ in frames_in(bytes_of(path), end)))
    except Damaged:
        return False
